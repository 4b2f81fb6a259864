"""Small item files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import core
from core.records import Item

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
