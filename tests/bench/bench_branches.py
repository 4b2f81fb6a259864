"""How much of the packages that must not be wrong their tests go through: branches taken, statements run.

    python tests/bench/bench_branches.py [--json] [--missed 10]

The tests of statistics, judging, store, projects, review and jobs run once, in one process, under coverage.py; told is
each folder of `FOLDERS`, then the files with the most branches never taken.  A branch that was taken was not
thereby checked: `bench_mutants.py` asks that.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("core/stats", "core/judging", "core/store", "core/projects")
TESTS = tuple(f"tests/core/{name}" for name in "stats judging store projects review jobs".split())
COUNTS = ("covered_branches", "num_branches", "covered_lines", "num_statements")


def covered() -> dict[str, dict[str, int]]:
    """File of `FOLDERS`, from the root → its counts."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"COVERAGE_FILE": f"{folder}/data"}
        coverage = [sys.executable, "-m", "coverage"]
        tests = ["-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *TESTS]
        measured = ["run", "--branch", f"--source={','.join(FOLDERS)}"]
        run = subprocess.run([*coverage, *measured, *tests], cwd=ROOT, env=environment, stdout=sys.stderr, check=False)
        if run.returncode > 1:
            raise SystemExit(f"the tests did not run (exit {run.returncode})")
        if run.returncode:
            print("Some tests failed: their branches count as far as they came.", file=sys.stderr)
        report = [*coverage, "json", "-q", "-o", f"{folder}/report.json"]
        subprocess.run(report, cwd=ROOT, env=environment, check=True)
        files = json.loads(Path(folder, "report.json").read_text("utf-8"))["files"]
    return {Path(file).as_posix(): {name: one["summary"][name] for name in COUNTS} for file, one in files.items()}


def by_folder(files: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """The counts of each folder."""
    inside = {folder: [one for file, one in files.items() if file.startswith(f"{folder}/")] for folder in FOLDERS}
    return {
        folder: {name: sum(count[name] for count in counts) for name in COUNTS} for folder, counts in inside.items()
    }


def lines(files: Mapping[str, Mapping[str, int]], n_missed: int) -> list[str]:
    """The table, and the `n_missed` files with the most branches never taken."""

    def row(name: str, one: Mapping[str, int]) -> str:
        branches, statements = one["covered_branches"], one["covered_lines"]
        shares = (branches / max(one["num_branches"], 1), statements / max(one["num_statements"], 1))
        counts = (f"{branches} of {one['num_branches']}", f"{statements} of {one['num_statements']}")
        return f"{name:<42}{counts[0]:>14}{shares[0]:>8.1%}{counts[1]:>16}{shares[1]:>8.1%}"

    missed = sorted(files.items(), key=lambda pair: pair[1]["covered_branches"] - pair[1]["num_branches"])[:n_missed]
    head = f"{'':<42}{'branches taken':>22}{'statements run':>24}"
    return [head, *(row(*pair) for pair in by_folder(files).items()), "", *(row(*pair) for pair in missed)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missed", type=int, default=10, help="how many files with branches never taken are named")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    options = parser.parse_args()
    files = covered()
    told: dict[str, Any] = {"folders": by_folder(files), "files": files}
    print(json.dumps(told) if options.json else "\n".join(lines(files, options.missed)))


if __name__ == "__main__":
    main()
