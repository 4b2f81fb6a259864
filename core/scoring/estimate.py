"""What a scoring will ask for and cost, from the first of its items; nothing is sent."""

from __future__ import annotations

from contextlib import closing

from core.export import CalibratedJudge
from core.judging.base import CallEstimate
from core.judging.llm import LLMJudge
from core.scoring.item_file import validate_items
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
        if not isinstance(judge, CalibratedJudge):
            return None
        model = judge.judge
        if not isinstance(model, LLMJudge) or not model.is_llm:
            return None
        items = validate_items(request.items)
        sample = next(items.batches(SAMPLE), ())
        n_items = min(items.n_items, affordable_items(request.budget, len(judge.criteria)) or items.n_items)
        calls = n_items * len(judge.criteria)
        words = sum(len(criteria.text.split()) for criteria in judge.criteria) // len(judge.criteria)
        one = model.estimate(judge.task, sample, words)
        return CallEstimate(calls, *one.scaled(calls / max(1, one.calls)))
