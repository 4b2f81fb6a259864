"""The committed sample sets are read without complaint; `test_make.py` pins their bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.data import check_file, load_golden

SETS = {
    "summaries.jsonl": ("source_target", 24, 6, (1, 5)),
    "dialogue.jsonl": ("source_context_target", 24, 5, (1, 3)),
    "data_to_text.csv": ("data_text", 32, 4, (1, 6)),
    "notifications.jsonl": ("source_target", 40, 6, (1, 5)),
}


@pytest.mark.parametrize("name", SETS)
def test_a_set_has_three_raters_and_only_few_labels_to_find_fault_with(name: str, repository: Path) -> None:
    path = repository / "sample_data" / name
    golden = load_golden(path)
    scale = next(iter(golden.aspects.values())).scale
    assert (golden.kind, golden.n_sources, golden.n_systems, (scale.low, scale.high)) == SETS[name]
    assert len(golden.items) == golden.n_sources * golden.n_systems
    assert len(golden.ratings) == 3 * len(golden.items) * len(golden.aspects)
    assert all("calibration labels" in finding["message"] for finding in check_file(path)["findings"])
