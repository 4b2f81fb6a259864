"""Benchmarks run from the repository root and agree with the library beside them; their output tells their speed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom


def measured(repository: Path, name: str, *options: str) -> Any:
    """The one JSON object that a benchmark prints."""
    command = [sys.executable, f"tests/bench/{name}.py", "--json", *options]
    return json.loads(subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout)


def test_alignments_agree_with_scipy(repository: Path) -> None:
    found = measured(repository, "bench_alignment", *"--candidates 3 --sources 8 --systems 6".split())["sample"]
    assert set(found) == {"spearman", "kendall"}
    for statistic in found.values():
        assert statistic["largest_gap"] < 1e-9
        assert statistic["largest_gap_resampled"] < 1e-9


def test_comparisons_agree_with_scipy(repository: Path) -> None:
    found = measured(repository, "bench_compare", *"--judges 3 --sources 10 --systems 6".split())["compared"]
    assert len(found) == 6
    assert all(pair["largest_gap"] < 1e-9 for pair in found.values())


def test_metrics_agree_with_rouge_score(repository: Path, shared_data: Path) -> None:
    sizes = "--items 20 --loop-items 4 --names overlap chrf".split()
    ceiling = measured(repository, "bench_metrics", "--data", str(shared_data), *sizes)
    assert ceiling["n_items"] == 20
    assert set(ceiling["seconds"]) == {"overlap", "chrf"}
    for metric in ceiling["rouge"].values():
        assert metric["largest_gap"] == pytest.approx(0.0, abs=1e-12)


def test_where_there_is_nothing_no_sentence_claims_anything(repository: Path) -> None:
    """At most 5 % of the runs, over sentences on parts, biases, bar and systems, as far as 40 runs can tell that."""
    found = measured(repository, "bench_null", "--runs", "40")
    assert set(found) == {"shuffled", "sources", "few"}
    assert all(design["claiming"] <= binom.ppf(0.999, design["runs"], 0.05) for design in found.values())
