"""Benchmarks run from the repository root and agree with the library beside them; their output tells their speed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

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


def test_where_there_is_nothing_no_sentence_claims_anything(run_script: RunScript) -> None:
    """At most 5 % of the runs, over sentences on parts, biases, bar and systems, as far as 20 runs can tell that."""
    found = measured(run_script, "bench_null", "--runs", "20")
    assert set(found) == {"shuffled", "sources", "few", "pairs"}
    assert all(design["claiming"] <= binom.ppf(0.999, design["runs"], 0.05) for design in found.values())
