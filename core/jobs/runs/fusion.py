"""LLM fusion: the plan first where the model writes it, then the items, then judges."""

from __future__ import annotations

from core.errors import JudgeError, UsageError
from core.fusion.by_model import ModelRatings
from core.fusion.llm import OVERALL
from core.projects.fusion_plans import FusionBench, bench_for
from core.projects.style_grid.asking import language_model
from core.projects.views.fusion import FusionRequest, FusionRunView
from core.projects.work import RunWork
from core.records import JudgeScores, Unscored


def run_fusion(work: RunWork) -> FusionRunView:
    """Rate item by item by the plan, and enter a judge for each aspect and one of the overall score.

    Items without a text to rate cost no call; with a budget the rest stays unasked.
    """
    request = work.request(FusionRequest)
    bench = bench_for(work.store, request)
    items = bench.golden.items
    rateable = [k for k in bench.positions if items[k].target.strip()]
    calls = len(rateable) + (not request.plan)
    expected = calls if request.budget is None else min(calls, request.budget)
    model = language_model(request.judge_spec, work.settings, work.replies, gate=work.gate)
    try:
        ratings = ModelRatings(model, bench.parts, items, expected, work.progress)
        plan = request.plan or _written_plan(bench, ratings)
        ratings.rate(bench.judge(plan), rateable[: expected - ratings.calls])
    finally:
        model.close()
    names = [*request.aspects, *([] if OVERALL in request.aspects else [OVERALL])] if ratings.verdicts else []
    judges = {
        name: work.add_judge(judge_of(ratings, request, bench, name, work.run.run_id), ratings.replies)
        for name in names
    }
    left = len(rateable) - len(ratings.verdicts)
    stopped = f"The budget of {request.budget} calls left {left} items out." if left else ""
    return FusionRunView(judges, plan, ratings.calls, ratings.unread(), stopped)


def _written_plan(bench: FusionBench, ratings: ModelRatings) -> str:
    """The plan that the model writes.  JudgeError where it cannot be used."""
    text = ratings.write_plan(bench.tasks)
    try:
        return bench.judge(text).plan.text
    except UsageError as error:
        raise JudgeError(
            f"The model's plan cannot be used: {error} Write the plan yourself, or let it be proposed from the "
            "measured alignment."
        ) from error


def judge_of(ratings: ModelRatings, request: FusionRequest, bench: FusionBench, name: str, run_id: str) -> JudgeScores:
    """The fused score of an aspect, or the overall one, as a judge."""
    overall = name == OVERALL and OVERALL not in request.aspects
    what = "all in all" if overall else name
    verdicts = [by_aspect[name] for by_aspect in ratings.verdicts.values()]
    return JudgeScores(
        name=f"LLM fusion · {request.judge_spec}{' · overall' if overall else ''}",
        kind="fused",
        aspect=request.aspects[0] if overall else name,
        values=ratings.values(name),
        unscored=tuple(verdict for verdict in verdicts if isinstance(verdict, Unscored)),
        seen=tuple(sorted({*request.plan_seen}.union(*(part.seen for part in bench.parts)))),
        note=f"{request.judge_spec} rates {what} by {len(bench.parts)} assistants, all aspects in a call.",
        run_id=run_id,
        calls_per_item=1.0 / len(request.aspects),
    )
