"""What a scoring will ask for and cost, from the first of its items; nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from core.data import load_golden
from core.export.aspect_judges import AspectJudges, sum_of
from core.export.repeval_judge import RepEvalJudge
from core.judging.base import CallEstimate
from core.scoring.item_file import items_of
from core.scoring.mending import model_behind
from core.scoring.request import RowJudge, ScoreRequest, affordable_items
from core.scoring.run import open_judge

SAMPLE = 200
"""Items that stand for all the others."""


def estimate_scoring(request: ScoreRequest) -> CallEstimate | None:
    """Calls, tokens and price of scoring all items of a file; None for a judge that asks no language model.

    At most: what an earlier call scored, or what the reply cache holds, costs nothing.  Raises what `score_file` does
    for a judge or items that cannot be used.
    """
    with closing(open_judge(replace(request, check=None))) as judge:
        model = model_behind(judge)
        if model is None or not model.is_llm or isinstance(judge, RepEvalJudge):
            return None
        items = items_of(request, judge)
        sample = next(items.batches(SAMPLE), ())
        n_items = min(items.n_items, affordable_items(request.budget, judge.calls_an_item) or items.n_items)
        one = judge.estimate(sample)
        scoring = CallEstimate(n_items * judge.calls_an_item, *one.scaled(n_items / max(1, len(sample))))
        return scoring if request.check is None else sum_of([scoring, *_of_check(request, request.check, judge)])


def _of_check(request: ScoreRequest, check: Path, together: RowJudge) -> Iterator[CallEstimate]:
    """What measuring asks of every item of its golden set, together and of each judge alone, at most."""
    golden = load_golden(check)
    with closing(open_judge(replace(request, check=None, together=False))) as alone:
        for judge in (together, alone):
            if isinstance(judge, AspectJudges):
                yield judge.estimate(golden.items)
