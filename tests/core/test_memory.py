"""How often Python looks for circles of objects."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from core.data import read_table
from core.errors import GoldenError
from core.memory import uncollected

ROOT = Path(__file__).resolve().parents[2]

GROWING = """
import gc
from core.memory import collect_seldom
whole = []
gc.callbacks.append(lambda phase, info: whole.append(1) if (phase, info["generation"]) == ("stop", 2) else None)
def grown():
    whole.clear()
    kept = [[k] for k in range(1_000_000)]
    return len(whole)
before = grown()
collect_seldom()
after = grown()
class Circle:
    living = 0
    def __init__(self):
        self.own = self
        Circle.living += 1
    def __del__(self):
        Circle.living -= 1
for _ in range(1_000_000):
    Circle()
print(before, after, Circle.living)
"""

STARTED = """
import gc, runpy, sys
sys.argv = ["core", "--help"]
try:
    runpy.run_module("core", run_name="__main__")
except SystemExit:
    print(gc.get_threshold())
"""


def python(text: str) -> str:
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_what_lives_on_is_not_looked_through_again_and_circles_still_go() -> None:
    before, after, living = map(int, python(GROWING).split())
    assert before >= 3  # a look through everything at each growth by a quarter
    assert after == 0  # a million new objects are ten looks at the youngest, the last of them one at the middle
    assert living < 110_000  # of a million circles: those since the last look


def test_the_command_line_looks_seldom() -> None:
    assert python(STARTED) == "(100000, 10, 10)"


def test_threads_that_pause_the_search_leave_it_as_it_was() -> None:
    with uncollected():
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_file_that_is_refused_leaves_the_search_on(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("target\n")
    with pytest.raises(GoldenError):
        read_table(tmp_path / "a.csv")
    assert gc.isenabled()
