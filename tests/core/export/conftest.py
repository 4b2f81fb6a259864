"""Judge files to work on: real ones of version 1, and the same brought up to the present version."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.export.judge_file import checked, sealed
from core.export.judge_reading import read_document

FILES = Path(__file__).parent / "files"

Card = dict[str, Any]
WriteCard = Callable[..., Path]


@pytest.fixture(scope="session")
def old_files() -> Path:
    """Files that an earlier version of the code wrote: judge_1_offline, judge_1_scripted, fused_1 (.yaml)."""
    return FILES


def _present(name: str, kind: Any = "judge") -> Card:
    return sealed(checked(read_document(FILES / name), kind))


_CARDS = {
    "offline": _present("judge_1_offline.yaml"),
    "scripted": _present("judge_1_scripted.yaml"),
    "fused": _present("fused_1.yaml", "fusion"),
}


@pytest.fixture
def offline_card() -> Card:
    """The card of a calibrated offline judge; three criteria, with a map."""
    return copy.deepcopy(_CARDS["offline"])


@pytest.fixture
def scripted_card() -> Card:
    """The card of a judge that is asked in words (the scripted stand-in); one criteria."""
    return copy.deepcopy(_CARDS["scripted"])


@pytest.fixture
def fused_card() -> Card:
    """The card of a fused judge: an offline judge and two metrics."""
    return copy.deepcopy(_CARDS["fused"])


@pytest.fixture
def write_card(tmp_path: Path) -> WriteCard:
    """Write a card as a file (JSON, which is read like YAML and quicker); `seal` gives it a digest that fits."""

    def write(card: Card, *, seal: bool = True, name: str = "judge.yaml") -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(sealed(card) if seal else card), encoding="utf-8")
        return path

    return write
