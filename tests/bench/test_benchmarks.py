"""Benchmarks run from the repository root and agree with the library beside them; their output tells their speed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

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
