"""The benchmark runs from the repository root and agrees with scipy; its speed is read from its own output."""

from __future__ import annotations

import json
import subprocess
import sys


def test_the_benchmark_prints_one_json_object_and_agrees_with_scipy(repository):
    sizes = "--judges 3 --sources 10 --systems 6".split()
    command = [sys.executable, "tests/bench/bench_compare.py", "--json", *sizes]
    done = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)["compared"]
    assert len(found) == 6
    for one in found.values():
        assert one["largest_gap"] < 1e-9
