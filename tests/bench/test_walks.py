"""The cheapest walk is done from the repository root, and its files are those whose functions it called."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import core
import core.errors
import core.judging.llm_judge
import core.providers.scripted


def test_a_walk_is_done_and_counts_the_files_whose_functions_it_calls(repository: Path) -> None:
    command = [sys.executable, "tests/bench/bench_walks.py", "--json", "--only", "alignment"]
    done = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True)
    (walk,) = json.loads(done.stdout).values()
    files = {(repository / file).resolve() for file in walk["files"]}

    def home_of(thing: object) -> Path:
        return Path(str(inspect.getsourcefile(thing)))  # type: ignore[arg-type]

    called = (core.judging.llm_judge.LLMJudge, core.providers.scripted.ScriptedProvider, core.align)
    assert {home_of(one) for one in called} <= files
    assert home_of(core.errors) not in files  # imported, and nothing of it called
    assert walk["lines"] == sum(len(file.read_text("utf-8").splitlines()) for file in files)
