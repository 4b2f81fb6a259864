"""What a scoring will ask for and cost, from the first of its items; nothing is sent."""

from __future__ import annotations

from contextlib import closing

from core.export.repeval_judge import RepEvalJudge
from core.judging.base import CallEstimate
from core.scoring.item_file import items_of
from core.scoring.mending import model_behind
from core.scoring.request import ScoreRequest, affordable_items
from core.scoring.run import open_judge

SAMPLE = 200
"""Items that stand for all the others."""


def estimate_scoring(request: ScoreRequest) -> CallEstimate | None:
    """Calls, tokens and price of scoring all items of a file; None for a judge that asks no language model.

    At most: what an earlier call scored, or what the reply cache holds, costs nothing.  Raises what `score_file` does
    for a judge or items that cannot be used.
    """
    with closing(open_judge(request)) as judge:
        model = model_behind(judge)
        if model is None or not model.is_llm or isinstance(judge, RepEvalJudge):
            return None
        items = items_of(request, judge)
        sample = next(items.batches(SAMPLE), ())
        n_items = min(items.n_items, affordable_items(request.budget, judge.calls_an_item) or items.n_items)
        one = judge.estimate(sample)
        return CallEstimate(n_items * judge.calls_an_item, *one.scaled(n_items / max(1, len(sample))))
