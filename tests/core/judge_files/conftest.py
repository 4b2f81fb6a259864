"""Judge files to work on: real ones, calibrated on the sample summaries."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.judge_files.documents import parsed
from core.judge_files.judge_writing import sealed

FILES = Path(__file__).parent / "files"

Card = dict[str, Any]
WriteCard = Callable[..., Path]


_CARDS = {
    "offline": parsed((FILES / "judge_offline.yaml").read_text("utf-8"), "file"),
    "scripted": parsed((FILES / "judge_scripted.yaml").read_text("utf-8"), "file"),
    "fused": parsed((FILES / "fused.yaml").read_text("utf-8"), "file"),
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
