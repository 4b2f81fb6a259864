"""LLM fusion: the plan first where the model writes it, then the items in batches, then judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from core.errors import JudgeError, UsageError
from core.fusion.llm import OVERALL, FusionJudge, numbers_of
from core.fusion.plan import helper_of, plan_messages
from core.jobs.runs.work import RunWork
from core.jobs.tasks.fusion_plans import FusionBench, bench_for
from core.jobs.tasks.style_grid.asking import language_model
from core.jobs.views.fusion import FusionRequest, FusionRunView
from core.judging.llm import LLMJudge
from core.judging.verdicts import total_usage
from core.progress import Stage
from core.providers.base import Completion, Reply, Request
from core.records import JudgeScores, Scored, Unscored, Usage, Verdict

BATCH = 40
PLAN_TOKENS = 1_500


def run_fusion(work: RunWork) -> FusionRunView:
    """Rate item by item by the plan, and enter a judge for each aspect and one of the overall score.

    Items without a text to rate cost no call; with a budget the rest stays unasked.
    """
    request = work.request(FusionRequest)
    bench = bench_for(work.store, request)
    model = language_model(request.judge_spec, work.settings, work.replies, gate=work.gate)
    try:
        fusing = _Fusing(work, request, bench, model)
        plan = request.plan or fusing.written_plan()
        fusing.rate_all(bench.judge(plan))
    finally:
        model.close()
    work.progress.publish(Stage("done", "done", fusing.calls, fusing.expected, fusing.usage))
    names = [*request.aspects, *([] if OVERALL in request.aspects else [OVERALL])]
    judges = {name: work.add_judge(fusing.judge(name), fusing.replies) for name in names} if fusing.verdicts else {}
    left = len(fusing.rateable) - len(fusing.verdicts)
    stopped = f"The budget of {request.budget} calls left {left} items out." if left else ""
    return FusionRunView(judges, plan, fusing.calls, fusing.unread(), stopped)


@dataclass
class _Fusing:
    """What the model was asked and what it said; `verdicts` by position, then by name of aspect."""

    work: RunWork
    request: FusionRequest
    bench: FusionBench
    model: LLMJudge
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    verdicts: dict[int, dict[str, Verdict]] = field(default_factory=dict)
    replies: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def rateable(self) -> list[int]:
        """Positions of the items that have a text."""
        return [k for k in self.bench.positions if self.bench.golden.items[k].target.strip()]

    @property
    def expected(self) -> int:
        calls = len(self.rateable) + (not self.request.plan)
        return calls if self.request.budget is None else min(calls, self.request.budget)

    def written_plan(self) -> str:
        """The plan that the model writes.  JudgeError where it cannot be used."""
        self.work.progress.publish(Stage("plan", "the model writes the plan", 0, self.expected, self.usage))
        messages = plan_messages(self.bench.tasks, [helper_of(part) for part in self.bench.parts])
        reply = self._complete([Request(self.model.model, messages, 0.0, PLAN_TOKENS)])[0]
        if not isinstance(reply, Completion):
            raise JudgeError(f"The model wrote no plan: {reply.message}")
        try:
            return self.bench.judge(reply.text).plan.text
        except UsageError as error:
            raise JudgeError(
                f"The model's plan cannot be used: {error} Write the plan yourself, or let it be proposed from the "
                "measured alignment."
            ) from error

    def rate_all(self, judge: FusionJudge) -> None:
        items, asked = self.bench.golden.items, self.rateable[: self.expected - self.calls]
        for start in range(0, len(asked), BATCH):
            message = f"{start:,} of {len(asked):,} items"
            self.work.progress.publish(Stage("items", message, self.calls, self.expected, self.usage))
            positions = asked[start : start + BATCH]
            replies = self._complete(
                [judge.request(self.model.model, items[k], numbers_of(self.bench.parts, k)) for k in positions]
            )
            for k, reply in zip(positions, replies, strict=True):
                self.verdicts[k] = judge.read(items[k].item_id, reply)
                if isinstance(reply, Completion):
                    self.replies[items[k].item_id] = (reply.text,)

    def _complete(self, requests: Sequence[Request]) -> list[Reply]:
        arrived = 0

        def count(_index: int, _reply: object) -> None:
            nonlocal arrived
            arrived += 1
            self.work.progress.advance(arrived, len(requests))

        replies = self.model.provider.complete(requests, on_reply=count)
        self.calls, self.usage = self.calls + len(requests), self.usage + total_usage(replies)
        return replies

    def unread(self) -> dict[str, dict[str, int]]:
        """How many verdicts are missing, by name of aspect and reason."""
        found: dict[str, Counter[str]] = {}
        for verdicts in self.verdicts.values():
            for name, verdict in verdicts.items():
                if isinstance(verdict, Unscored):
                    found.setdefault(name, Counter())[verdict.reason] += 1
        return {name: dict(counts) for name, counts in found.items()}

    def judge(self, name: str) -> JudgeScores:
        """The fused score of an aspect, or the overall one, as a judge."""
        request, golden = self.request, self.bench.golden
        values = np.full(len(golden.items), np.nan)
        for k, verdicts in self.verdicts.items():
            values[k] = verdict.value if isinstance(verdict := verdicts[name], Scored) else np.nan
        overall = name == OVERALL and OVERALL not in request.aspects
        what = "all in all" if overall else name
        return JudgeScores(
            name=f"LLM fusion · {request.judge_spec}{' · overall' if overall else ''}",
            kind="fused",
            aspect=request.aspects[0] if overall else name,
            values=values,
            unscored=tuple(v for verdicts in self.verdicts.values() if isinstance(v := verdicts[name], Unscored)),
            seen=tuple(sorted({*request.plan_seen}.union(*(part.seen for part in self.bench.parts)))),
            note=f"{request.judge_spec} rates {what} by {len(self.bench.parts)} assistants, all aspects in a call.",
            run_id=self.work.run.run_id,
            calls_per_item=1.0 / len(request.aspects),
        )
