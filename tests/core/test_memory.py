"""How often Python looks for circles of objects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def python(text: str) -> str:
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_what_lives_on_is_not_looked_through_again_and_circles_still_go() -> None:
    before, after, living = map(int, python(GROWING).split())
    assert before >= 3  # a look through everything at each growth by a quarter
    assert after == 0  # a million new objects are ten looks at the youngest, the last of them one at the middle
    assert living < 110_000  # of a million circles: those since the last look
