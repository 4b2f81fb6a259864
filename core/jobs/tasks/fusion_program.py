"""LLM fusion as a durable run: the plan first where the model writes it, then the items in batches, then judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.errors import JudgeError, UsageError
from core.fusion.llm import OVERALL, numbers_of
from core.fusion.plan import helper_of, plan_messages
from core.jobs.documents import RESULT
from core.jobs.journal import Journal
from core.jobs.tasks.consent import gate_of
from core.jobs.tasks.convert import request_of
from core.jobs.tasks.fusion_plans import bench_for
from core.jobs.tasks.style_grid.asking import language_model
from core.jobs.views.fusion import FusionRequest, FusionRunView
from core.judging.verdicts import total_usage
from core.providers.base import Completion, Request
from core.records import FloatArray, JudgeScores, Scored, Unscored, Usage, content_digest
from core.settings import Settings
from core.store.codec import Packed, pack, unpack
from core.store.rows import Progress, RunRow
from core.store.store import Store

BATCH = 40
PLAN_TOKENS = 1_500


@dataclass(frozen=True, slots=True)
class PlanStep:
    """Let the model write the plan."""

    assistants: tuple[str, ...]


@dataclass(frozen=True)
class PlanAnswer:
    """What the model wrote, and what it cost."""

    text: str
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class FuseStep:
    """Rate the items at `positions` by `plan`."""

    plan: str
    positions: tuple[int, ...]


@dataclass(frozen=True)
class FusedBatch:
    """(n_names, n) `values` in the order of `names`, NaN = unscored; `replies` by item id."""

    names: tuple[str, ...]
    values: FloatArray
    unscored: Mapping[str, tuple[Unscored, ...]]
    replies: Mapping[str, tuple[str, ...]]
    calls: int
    usage: Usage = field(default_factory=Usage)


Step = PlanStep | FuseStep


class FusionProgram:
    """See `core.jobs.engine.Program`."""

    def __init__(self, store: Store, settings: Settings, run: RunRow) -> None:
        request = request_of(run)
        assert isinstance(request, FusionRequest)
        self.store, self.run, self._request = store, run, request
        self._bench = bench_for(store, request)
        replies = store.replies.of_run(run.run_id, run.project_id)
        self._model = language_model(request.judge_spec, settings, replies, gate=gate_of(store, run))
        self._batches: list[tuple[FuseStep, FusedBatch]] = []

    def steps(self) -> Generator[Any, Any, FusionRunView]:
        """Items without a text to rate cost no call; with a budget the rest stays unasked."""
        plan, usage, calls = self._request.plan, Usage(), 0
        items = self._bench.golden.items
        at = [k for k in self._bench.positions if items[k].target.strip()]
        expected = len(at) + (not plan)
        if self._request.budget is not None:
            expected = min(expected, self._request.budget)
        if not plan:
            yield Progress("plan", "the model writes the plan", 0, expected, usage)
            written: PlanAnswer = yield PlanStep(tuple(one.name for one in self._bench.parts))
            plan, usage, calls = self._checked(written.text), usage + written.usage, 1
        asked = at[: expected - calls]
        for start in range(0, len(asked), BATCH):
            yield Progress("items", f"{start:,} of {len(asked):,} items", calls, expected, usage)
            step = FuseStep(plan, tuple(asked[start : start + BATCH]))
            batch: FusedBatch = yield step
            self._batches.append((step, batch))
            calls, usage = calls + batch.calls, usage + batch.usage
        yield Progress("done", "done", calls, expected, usage)
        left = len(at) - len(asked)
        stopped = f"The budget of {self._request.budget} calls left {left} items out." if left else ""
        return FusionRunView({}, plan, calls, self._counted(), stopped)

    def question(self, step: Step | Progress) -> str:
        if isinstance(step, Progress):
            return ""
        return content_digest("step", [type(step).__name__, pack(step).body])

    def work(self, step: Step, on_progress: Callable[[int, int], None]) -> Packed:
        if isinstance(step, PlanStep):
            return pack(self._plan())
        return pack(self._fuse(step, on_progress))

    def read(self, step: Step, stored: Packed) -> Any:
        return unpack(PlanAnswer if isinstance(step, PlanStep) else FusedBatch, stored)

    def keep(self, step: Step, answer: Any) -> None:
        """Nothing but the answer: judges are entered at the end."""

    def note(self, snapshot: Progress, journal: Journal) -> None:
        journal.note(snapshot, lambda: Packed("{}"))

    def finish(self, result: FusionRunView) -> str:
        """Enter a judge for each aspect, and one of the overall score on the first; "budget" where it cut short."""
        names = [*self._request.aspects, *([] if OVERALL in self._request.aspects else [OVERALL])]
        judges = {name: self._enter(name) for name in names} if self._batches else {}
        view = FusionRunView(judges, result.plan, result.calls, result.unscored, result.stopped_early)
        self.store.results.put_document(self.run.run_id, RESULT, pack(view))
        return "budget" if result.stopped_early else "done"

    def close(self) -> None:
        self._model.close()

    def _checked(self, text: str) -> str:
        try:
            return self._bench.judge(text).plan.text
        except UsageError as error:
            raise JudgeError(
                f"The model's plan cannot be used: {error} Write the plan yourself, or let it be proposed from the "
                "measured alignment."
            ) from error

    def _plan(self) -> PlanAnswer:
        messages = plan_messages(self._bench.tasks, [helper_of(part) for part in self._bench.parts])
        reply = self._model.provider.complete([Request(self._model.model, messages, 0.0, PLAN_TOKENS)])[0]
        if not isinstance(reply, Completion):
            raise JudgeError(f"The model wrote no plan: {reply.message}")
        return PlanAnswer(reply.text, reply.usage)

    def _fuse(self, step: FuseStep, on_progress: Callable[[int, int], None]) -> FusedBatch:
        judge, items = self._bench.judge(step.plan), self._bench.golden.items
        requests = [
            judge.request(self._model.model, items[k], numbers_of(self._bench.parts, k)) for k in step.positions
        ]
        arrived = 0

        def count(_index: int, _reply: object) -> None:
            nonlocal arrived
            arrived += 1
            on_progress(arrived, len(requests))

        replies = self._model.provider.complete(requests, on_reply=count)
        verdicts = [judge.read(items[k].item_id, reply) for k, reply in zip(step.positions, replies, strict=True)]
        names = tuple(verdicts[0])
        values = [[one.value if isinstance(one := row[name], Scored) else np.nan for row in verdicts] for name in names]
        unscored = {name: tuple(one for row in verdicts if isinstance(one := row[name], Unscored)) for name in names}
        texts = {
            items[k].item_id: (reply.text,)
            for k, reply in zip(step.positions, replies, strict=True)
            if isinstance(reply, Completion)
        }
        return FusedBatch(names, np.array(values), unscored, texts, len(requests), total_usage(replies))

    def _counted(self) -> dict[str, dict[str, int]]:
        found: dict[str, Counter[str]] = {}
        for _, batch in self._batches:
            for name, rows in batch.unscored.items():
                found.setdefault(name, Counter()).update(one.reason for one in rows)
        return {name: dict(counts) for name, counts in found.items() if counts}

    def _enter(self, name: str) -> str:
        request, golden = self._request, self._bench.golden
        values = np.full(len(golden.items), np.nan)
        unscored: list[Unscored] = []
        replies: dict[str, tuple[str, ...]] = {}
        for step, batch in self._batches:
            values[list(step.positions)] = batch.values[batch.names.index(name)]
            unscored += batch.unscored.get(name, ())
            replies |= batch.replies
        seen = sorted({*request.plan_seen}.union(*(part.seen for part in self._bench.parts)))
        overall = name == OVERALL and OVERALL not in request.aspects
        told = "all in all" if overall else name
        judge = JudgeScores(
            name=f"LLM fusion · {request.judge_spec}{' · overall' if overall else ''}",
            kind="fused",
            aspect=request.aspects[0] if overall else name,
            values=values,
            unscored=tuple(unscored),
            seen=tuple(seen),
            note=f"{request.judge_spec} rates {told} by {len(self._bench.parts)} assistants, all aspects in a call.",
            run_id=self.run.run_id,
            calls_per_item=1.0 / len(request.aspects),
        )
        return self.store.judges.add(request.project_id, request.golden_id, judge, replies)
