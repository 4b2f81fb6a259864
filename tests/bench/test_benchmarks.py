"""Benchmarks run from the repository root and agree with the library beside them; their output tells their speed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

RunScript = Callable[..., tuple[int, str, str]]


def measured(run_script: RunScript, name: str, *options: str) -> Any:
    """The one JSON object that a benchmark prints."""
    code, out, _ = run_script(f"tests/bench/{name}.py", "--json", *options)
    assert code == 0
    return json.loads(out)


def test_alignments_agree_with_scipy(run_script: RunScript) -> None:
    found = measured(run_script, "bench_alignment", *"--candidates 3 --sources 8 --systems 6".split())["sample"]
    assert set(found) == {"spearman", "kendall"}
    for statistic in found.values():
        assert statistic["largest_gap"] < 1e-9
        assert statistic["largest_gap_resampled"] < 1e-9


def test_comparisons_agree_with_scipy(repository: Path) -> None:
    """As a process of its own, as somebody starts it."""
    command = [sys.executable, *"tests/bench/bench_compare.py --json --judges 3 --sources 10 --systems 6".split()]
    done = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)["compared"]
    assert len(found) == 6
    assert all(pair["largest_gap"] < 1e-9 for pair in found.values())


def test_metrics_agree_with_rouge_score(run_script: RunScript, shared_data: Path) -> None:
    sizes = "--items 20 --loop-items 4 --names overlap chrf".split()
    ceiling = measured(run_script, "bench_metrics", "--data", str(shared_data), *sizes)
    assert ceiling["n_items"] == 20
    assert set(ceiling["seconds"]) == {"overlap", "chrf"}
    for metric in ceiling["rouge"].values():
        assert metric["largest_gap"] == pytest.approx(0.0, abs=1e-12)


def test_where_there_is_nothing_no_sentence_claims_anything(run_script: RunScript) -> None:
    """At most 5 % of the runs, over sentences on parts, biases, bar and systems, as far as 40 runs can tell that."""
    found = measured(run_script, "bench_null", "--runs", "40")
    assert set(found) == {"shuffled", "sources", "few", "pairs"}
    assert all(design["claiming"] <= binom.ppf(0.999, design["runs"], 0.05) for design in found.values())
