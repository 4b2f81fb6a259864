"""Small item files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import core
from core.records import Item
from core.scoring import ScoreRequest
from core.scoring.parts import Plan
from core.scoring.places import Place

WriteItems = Callable[[Path, int], Path]


@pytest.fixture(scope="session")
def sample_items(repository: Path) -> tuple[Item, ...]:
    """The 144 sample summaries."""
    return core.load_items(repository / "sample_data" / "summaries.jsonl").items


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


@pytest.fixture
def plan(tmp_path: Path, judge_file: Path, write_items: WriteItems) -> Plan:
    source = write_items(tmp_path / "items.jsonl", 30)
    request = ScoreRequest(Path("items"), judge_file, Path("part.jsonl"), workers=1)
    place, out = Place(str(source)), Place(str(tmp_path / "parts.jsonl"))
    return Plan(request, judge_file.read_bytes(), place, out, parquet=False, size=8, fused=False)
