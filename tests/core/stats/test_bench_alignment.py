"""The benchmark runs from the repository root and agrees with scipy; its speed is read from its own output."""

from __future__ import annotations

import json
import subprocess
import sys


def test_the_benchmark_prints_one_json_object_and_agrees_with_scipy(repository):
    sizes = "--candidates 3 --sources 8 --systems 6".split()
    command = [sys.executable, "tests/bench/bench_alignment.py", "--json", *sizes]
    done = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)["sample"]
    assert set(found) == {"spearman", "kendall"}
    for one in found.values():
        assert one["largest_gap"] < 1e-9
        assert one["largest_gap_resampled"] < 1e-9
