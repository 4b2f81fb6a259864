"""Drive a calibration loop straight from a judge, in this process: the command line, notebooks, tests."""

from __future__ import annotations

from collections.abc import Callable

from core.calibration.steps import (
    Answer,
    Calibration,
    CalibrationLoop,
    DraftStep,
    RefineStep,
    ScoreStep,
    Standing,
    Work,
)
from core.judging.base import Judge, OnProgress
from core.records import GoldenSet, Task

OnStanding = Callable[[Standing], None]


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
    loop: CalibrationLoop, judge: Judge, golden: GoldenSet, task: Task, on_standing: OnStanding | None = None
) -> Calibration:
    """Run `loop` to its end; `on_standing` is shown every snapshot.  Errors of the judge pass through."""
    reply: Answer = None
    while True:
        try:
            step = loop.send(reply)
        except StopIteration as end:
            result: Calibration = end.value
            return result
        if isinstance(step, Standing):
            reply = None
            if on_standing is not None:
                on_standing(step)
        else:
            reply = answer(step, judge, golden, task)
