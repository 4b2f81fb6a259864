"""Scoring with a fused judge, which takes a file as a whole."""

from __future__ import annotations

from contextlib import closing

from core.api.loading import load_judge
from core.data import load_items
from core.errors import UsageError
from core.export.fused_judge import FusedJudge
from core.files import write_text
from core.providers.base import ReplyStore
from core.scoring.item_file import columns_behind
from core.scoring.output import header, verdict_batch
from core.scoring.request import FusedScores, ScoreRequest


def score_fused(request: ScoreRequest, *, replies: ReplyStore | None = None) -> FusedScores:
    """Score a file as a whole with the fused judge of `request`; `out` is written at the end.

    `replies` keeps those of a fusion by a language model.
    UsageError for another judge, a budget or intervals, which a fused judge does not take.
    """
    if request.coverage is not None:
        raise UsageError(f"{request.judge_file}: is a fused judge, whose verdicts come without intervals.")
    if request.judge or request.budget is not None:
        raise UsageError(f"{request.judge_file}: is a fused judge, which takes no --judge and no --budget.")
    with closing(load_judge(request.judge_file, replies=replies, accept_edited=request.accept_edited)) as judge:
        assert isinstance(judge, FusedJudge)
        request = request.settled(judge)
        golden = load_items(request.items, mapping=request.mapping, kept=columns_behind(judge))
        verdicts = judge.score(golden.items, metrics=golden.metrics)
    batch = verdict_batch(golden.items, verdicts, judge.marks, request)
    write_text(request.out, header(request) + batch.text)
    used = tuple(part.name for part in judge.parts if part.name not in judge.missing)
    return FusedScores(batch.n_items, batch.n_scored, used, dict(judge.missing), judge.marks)
