"""A sample of the files of `tests/bench/bench_fuzz.py`, three of each kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_bent_files_end_in_no_traceback(repository: Path) -> None:
    script = repository / "tests" / "bench" / "bench_fuzz.py"
    run = subprocess.run(
        [sys.executable, script, "--files", "42"], capture_output=True, text=True, timeout=600, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "42 files: 0 failed" in run.stdout
