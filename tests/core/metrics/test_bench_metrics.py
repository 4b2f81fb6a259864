"""The benchmark runs from the repository root and agrees with rouge_score; its speed is read from its own output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def test_the_benchmark_prints_one_json_object_and_agrees_with_rouge_score(repository: Path, shared_data: Path) -> None:
    sizes = "--items 20 --loop-items 4 --names overlap chrf".split()
    command = [sys.executable, "tests/bench/bench_metrics.py", "--json", "--data", str(shared_data), *sizes]
    done = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert found["n_items"] == 20
    assert set(found["seconds"]) == {"overlap", "chrf"}
    for one in found["rouge"].values():
        assert one["largest_gap"] == pytest.approx(0.0, abs=1e-12)
