"""Drive a calibration loop straight from a judge, in this process: the command line, notebooks, tests."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from core.calibration.steps import (
    Answer,
    DraftStep,
    RefineStep,
    ScoreStep,
    Standing,
    Work,
)
from core.judging.base import Judge, OnProgress
from core.records import GoldenSet, Task

OnStanding = Callable[[Standing], None]
T = TypeVar("T")


def answer(work: Work, judge: Judge, golden: GoldenSet, task: Task, on_progress: OnProgress | None = None) -> Answer:
    """Have `judge` do one step of work."""
    match work:
        case DraftStep(requests=requests):
            return judge.draft(task, requests)
        case RefineStep(requests=refinements):
            return judge.refine(task, refinements)
        case ScoreStep(criteria=criteria, positions=positions):
            items = [golden.items[p] for p in positions]
            return judge.score(task, items, criteria, on_progress=on_progress)


def run_inline(
    loop: Generator[Any, Any, T],
    judge: Judge,
    golden: GoldenSet,
    task: Task,
    on_standing: OnStanding | None = None,
    *,
    answering: Callable[[Any, Judge, GoldenSet, Task], Any] = answer,
) -> T:
    """Run `loop` to its end; `on_standing` is shown every snapshot.  Errors of the judge pass through.

    `answering` does the steps of work of loops that know more kinds of it than a calibration.
    """
    reply: Any = None
    while True:
        try:
            step = loop.send(reply)
        except StopIteration as end:
            result: T = end.value
            return result
        if isinstance(step, Standing):
            reply = None
            if on_standing is not None:
                on_standing(step)
        else:
            reply = answering(step, judge, golden, task)
