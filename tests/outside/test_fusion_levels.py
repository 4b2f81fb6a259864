"""A part of a fusion that chooses something chooses it at the level that the fusion reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.outside.strangers import write

N_SOURCES = 12


@pytest.fixture
def few(repository: Path, tmp_path: Path) -> Path:
    """The first sources of the sample, their texts cut short so that reading them takes a second."""
    lines = (repository / "sample_data" / "summaries.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    kept = list(dict.fromkeys(row["source_id"] for row in rows))[:N_SOURCES]
    short = (row | {"target": row["target"][:60]} for row in rows if row["source_id"] in kept)
    return write(tmp_path / "few.jsonl", short)


def test_repeval_chooses_its_cells_at_the_level_that_the_fusion_reports(
    concord: Callable[..., Any], few: Path, tmp_path: Path
) -> None:
    cells = {}
    for level in ("dataset", "sample"):
        out = tmp_path / level
        answer = concord(
            *("fuse", few, "--aspect", "coherence", "--with", "overlap,repeval", "--bootstrap", 0),
            *("--level", level, "--out", out),
        )
        assert answer.code == 0, answer.body
        assert answer.body["fused"]["level"] == level
        parts = yaml.safe_load((out / "fused.yaml").read_text("utf-8"))["parts"]
        result = next(part["repeval"] for part in parts if part["name"] == "repeval")
        cells[level] = [(cell["layer"], cell["token"]) for cell in result["cells"]]
    assert cells["sample"] != cells["dataset"]  # the labels of one source are ranked apart from those of another
