"""A language model rates items by a plan, the assistants' numbers before it (Fusion-Eval): the asking itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from core.errors import JudgeError
from core.fusion.llm import FusionJudge, numbers_of
from core.fusion.plan import helper_of, plan_messages
from core.judging.llm import LLMJudge
from core.judging.verdicts import total_usage
from core.progress import SILENT, Progress, Stage
from core.providers.base import Completion, Reply, Request
from core.records import FloatArray, Item, JudgeScores, Scored, Task, Unscored, Usage, Verdict

BATCH = 40
PLAN_TOKENS = 1_500


@dataclass
class ModelRatings:
    """What the model was asked and what it said so far: `verdicts` by position and aspect, `replies` by item id.

    `expected` calls are announced to `progress`.
    """

    model: LLMJudge
    parts: Sequence[JudgeScores]
    items: Sequence[Item]
    expected: int
    progress: Progress = SILENT
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    verdicts: dict[int, dict[str, Verdict]] = field(default_factory=dict)
    replies: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def write_plan(self, tasks: Sequence[Task]) -> str:
        """The text of the plan that the model writes.  JudgeError where it writes none."""
        self._publish("plan", "the model writes the plan")
        messages = plan_messages(tasks, [helper_of(part) for part in self.parts])
        reply = self._complete([Request(self.model.model, messages, 0.0, PLAN_TOKENS)])[0]
        if not isinstance(reply, Completion):
            raise JudgeError(f"The model wrote no plan: {reply.message}")
        return reply.text

    def rate(self, judge: FusionJudge, positions: Sequence[int]) -> None:
        """Rate the items at `positions` by the plan of `judge`."""
        for start in range(0, len(positions), BATCH):
            self._publish("items", f"{start:,} of {len(positions):,} items")
            batch = positions[start : start + BATCH]
            replies = self._complete(
                [judge.request(self.model.model, self.items[k], numbers_of(self.parts, k)) for k in batch]
            )
            for k, reply in zip(batch, replies, strict=True):
                self.verdicts[k] = judge.read(self.items[k].item_id, reply)
                if isinstance(reply, Completion):
                    self.replies[self.items[k].item_id] = (reply.text,)
        self._publish("done", "done")

    def values(self, aspect: str) -> FloatArray:
        """(n_items,) scores on an aspect, NaN = unscored or not asked."""
        values = np.full(len(self.items), np.nan)
        for k, verdicts in self.verdicts.items():
            values[k] = verdict.value if isinstance(verdict := verdicts[aspect], Scored) else np.nan
        return values

    def unread(self) -> dict[str, dict[str, int]]:
        """How many verdicts are missing, by aspect and reason."""
        counts: dict[str, Counter[str]] = {}
        for verdicts in self.verdicts.values():
            for aspect, verdict in verdicts.items():
                if isinstance(verdict, Unscored):
                    counts.setdefault(aspect, Counter())[verdict.reason] += 1
        return {aspect: dict(reasons) for aspect, reasons in counts.items()}

    def _publish(self, phase: str, message: str) -> None:
        self.progress.publish(Stage(phase, message, self.calls, self.expected, self.usage))

    def _complete(self, requests: Sequence[Request]) -> list[Reply]:
        arrived = 0

        def count(_index: int, _reply: object) -> None:
            nonlocal arrived
            arrived += 1
            self.progress.advance(arrived, len(requests))

        replies = self.model.provider.complete(requests, on_reply=count)
        self.calls, self.usage = self.calls + len(requests), self.usage + total_usage(replies)
        return replies
