"""A judge file of a real calibration, and small item files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import core
from core.export import judge_yaml
from core.records import Item

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def judge_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An offline judge calibrated on the sample summaries, with an isotonic map and more than one criteria."""
    golden = core.load_golden(ROOT / "sample_data" / "summaries.jsonl")
    result = core.calibrate(golden, "relevance", preset="quick", rounds=0)
    path = tmp_path_factory.mktemp("judge") / "judge.yaml"
    path.write_text(judge_yaml(result), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def sample_items() -> tuple[Item, ...]:
    """The 144 sample summaries."""
    return core.load_items(ROOT / "sample_data" / "summaries.jsonl").items


WriteItems = Callable[[Path, int], Path]


@pytest.fixture(scope="session")
def write_items(sample_items: tuple[Item, ...]) -> WriteItems:
    """Writes n items, all different, as JSON lines."""

    def write(path: Path, n: int) -> Path:
        with path.open("w", encoding="utf-8") as file:
            for k in range(n):
                item = sample_items[k % len(sample_items)]
                row = {"item_id": f"i{k}", "source": item.source, "target": f"{item.target} It was case {k}."}
                file.write(json.dumps(row) + "\n")
        return path

    return write
