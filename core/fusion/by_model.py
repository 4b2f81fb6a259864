"""LLM fusion (Fusion-Eval): a language model rates items by a plan, the assistants' numbers before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.errors import JudgeError, UsageError
from core.fusion.llm import FusionJudge
from core.fusion.plan import FusionPlan, plan_messages, read_plan
from core.judging.llm import LLMJudge, total_usage
from core.progress import SILENT, Progress, Stage
from core.providers.base import Completion, Reply, Request
from core.records import FloatArray, Item, JudgeScores, Scored, Task, Unscored, Usage, Verdict

BATCH = 40
PLAN_TOKENS = 1_500


@dataclass(frozen=True)
class ModelRatings:
    """What a model rated by `plan`: `verdicts` by aspect (and `OVERALL`), one for each of `positions`.

    `replies` are the texts as they came, by item id.  It took `calls`, the plan's included; `usage` says how many were
    sent and what they cost.  `n_left` items were not asked for want of budget.
    """

    plan: FusionPlan
    positions: tuple[int, ...]
    verdicts: Mapping[str, tuple[Verdict, ...]]
    replies: Mapping[str, tuple[str, ...]]
    calls: int
    usage: Usage
    n_left: int

    def values(self, name: str, n_items: int) -> FloatArray:
        """(n_items,) scores on an aspect, NaN = unscored or not asked."""
        values = np.full(n_items, np.nan)
        for position, verdict in zip(self.positions, self.verdicts[name], strict=True):
            values[position] = verdict.value if isinstance(verdict, Scored) else np.nan
        return values

    def unread(self, name: str) -> dict[str, int]:
        """How many verdicts on an aspect are missing, by reason."""
        return dict(Counter(verdict.reason for verdict in self.verdicts[name] if isinstance(verdict, Unscored)))


def rate_by_model(
    model: LLMJudge,
    items: Sequence[Item],
    tasks: Sequence[Task],
    parts: Sequence[JudgeScores],
    positions: Sequence[int],
    *,
    plan: FusionPlan | None = None,
    budget: int | None = None,
    progress: Progress = SILENT,
) -> ModelRatings:
    """Rate the items at `positions` on the aspects of all `tasks`, one call an item, with the numbers of `parts`.

    Without a `plan` the model writes it first.  Items without a text to rate cost no call; of a `budget` in calls the
    plan's is taken first.  JudgeError where the model writes no plan that can be used.
    """
    rateable = [k for k in positions if items[k].target.strip()]
    calls = len(rateable) + (plan is None)
    asking = _Asking(model, calls if budget is None else min(calls, budget), progress)
    judge = FusionJudge(tuple(tasks), tuple(parts), plan or _written_plan(asking, tasks, parts))
    asked = rateable[: asking.expected - asking.calls]
    verdicts: dict[str, list[Verdict]] = {name: [] for name in judge.scales}
    texts: dict[str, tuple[str, ...]] = {}
    for start in range(0, len(asked), BATCH):
        batch = asked[start : start + BATCH]
        asking.publish("items", f"{start:,} of {len(asked):,} items")
        replies = asking.complete([judge.request(model.model, items[k], k) for k in batch])
        for k, reply in zip(batch, replies, strict=True):
            for name, verdict in judge.read(items[k].item_id, reply).items():
                verdicts[name].append(verdict)
            if isinstance(reply, Completion):
                texts[items[k].item_id] = (reply.text,)
    asking.publish("done", "done")
    return ModelRatings(
        judge.plan,
        tuple(asked),
        {name: tuple(rows) for name, rows in verdicts.items()},
        texts,
        asking.calls,
        asking.usage,
        len(rateable) - len(asked),
    )


def _written_plan(asking: _Asking, tasks: Sequence[Task], parts: Sequence[JudgeScores]) -> FusionPlan:
    asking.publish("plan", "the model writes the plan")
    reply = asking.complete([Request(asking.model.model, plan_messages(tasks, parts), 0.0, PLAN_TOKENS)])[0]
    if not isinstance(reply, Completion):
        raise JudgeError(f"The model wrote no plan: {reply.message}")
    try:
        return read_plan(reply.text, [task.aspect for task in tasks], [part.name for part in parts], "model")
    except UsageError as error:
        raise JudgeError(
            f"The model's plan cannot be used: {error} Write the plan yourself, or let it be proposed from the "
            "measured alignment."
        ) from error


@dataclass
class _Asking:
    """Calls to the model, counted and reported: `expected` of them in all."""

    model: LLMJudge
    expected: int
    progress: Progress
    calls: int = 0
    usage: Usage = field(default_factory=Usage)

    def publish(self, phase: str, message: str) -> None:
        self.progress.publish(Stage(phase, message, self.calls, self.expected, self.usage))

    def complete(self, requests: Sequence[Request]) -> list[Reply]:
        arrived = 0

        def count(_index: int, _reply: object) -> None:
            nonlocal arrived
            arrived += 1
            self.progress.advance(arrived, len(requests))

        replies = self.model.provider.complete(requests, on_reply=count)
        self.calls, self.usage = self.calls + len(requests), self.usage + total_usage(replies)
        return replies
