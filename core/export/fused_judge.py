"""A fused judge out of a file, with the face of a calibrated one: items in, verdicts out."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from core.errors import GoldenError
from core.export.calibrated_judge import task_in
from core.export.frames import Metrics, scored_frame
from core.export.fused_file import FusedJudge, Restored
from core.judging.base import OnProgress
from core.records import GoldenSet, Item, ItemKind, Scale, Task, Verdict

if TYPE_CHECKING:
    import pandas as pd


class Marked(Restored, Protocol):
    """A judge out of a judge file, with the words that must stand with its verdicts."""

    @property
    def marks(self) -> tuple[str, ...]: ...


@dataclass
class LoadedFusion:
    """A fused judge ready to score; `marks` must stand with every verdict.

    It grows while scoring: when a part cannot be computed, or a judge inside has something to say of itself.

    The judges among its parts stay open between calls, until `close`.
    """

    fused: FusedJudge
    open_judge: Callable[[Mapping[str, Any]], Marked]
    said: tuple[str, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)
    _open: dict[int, Marked] = field(default_factory=dict)
    _inside: dict[str, None] = field(default_factory=dict)

    @property
    def card(self) -> Mapping[str, Any]:
        """The checked content of the file."""
        return self.fused.card

    @property
    def task(self) -> Task:
        """What is rated; the scale is unbounded where the file does not tell it."""
        body = self.card.get("task")
        if body is not None:
            return task_in(body, "fused judge")
        return Task(self.fused.aspect, "source_target", Scale(-math.inf, math.inf))

    @property
    def marks(self) -> tuple[str, ...]:
        """Words that must stand with every verdict; ask after scoring, since a part may turn out to be missing."""
        parts = (
            f"The part {name} could not be computed and counts as its mean: {why}" for name, why in self.missing.items()
        )
        return (*self.said, *self._inside, *parts)

    @property
    def needs(self) -> tuple[str, ...]:
        """Metric columns that items have to bring, e.g. ``metric_bleurt``."""
        named = (part.assistant or part.column for part in self.fused.parts if part.judge is None)
        return tuple(name for name in named if name.startswith("metric_"))

    def score(
        self,
        items: Sequence[Item],
        *,
        explain: bool = False,
        on_progress: OnProgress | None = None,
        metrics: Metrics | None = None,
    ) -> list[Verdict]:
        """One verdict per item, in order; `metrics` are the numbers for parts that are handed in.

        A fusion gives no reasons, so `explain` adds none.  UsageError when no part can be computed on these items,
        GoldenError when `metrics` are not one number an item.
        """
        if not items:
            return []
        for name, values in (metrics or {}).items():
            if len(values) != len(items):
                raise GoldenError(f"{len(values)} values came for {len(items)} items.", column=f"metric_{name}")
        told = {name: tuple(values) for name, values in (metrics or {}).items()}
        found = self.fused.score(GoldenSet("items", self._kind(items), tuple(items), {}, metrics=told), self._opened)
        self.missing.update(found.missing)
        if on_progress is not None:
            on_progress(len(items), len(items))
        return list(found.verdicts)

    async def score_async(self, items: Sequence[Item], *, explain: bool = False) -> list[Verdict]:
        """As `score`, in a thread."""
        return await asyncio.to_thread(self.score, items, explain=explain)

    def score_one(self, item: Item, *, explain: bool = False) -> Verdict:
        """The verdict on one item."""
        return self.score([item], explain=explain)[0]

    def score_frame(
        self, frame: pd.DataFrame, *, columns: Mapping[str, str] | None = None, prefix: str = ""
    ) -> pd.DataFrame:
        """`frame` with the columns score, calibrated, unscored and mark appended (see `core.export.frames`).

        Columns called ``metric_<name>`` serve the parts that are handed in.
        """
        return scored_frame(
            frame,
            lambda items, metrics: self.score(items, metrics=metrics),
            kind=None if self.card.get("task") is None else self.task.kind,
            marks=lambda: self.marks,
            columns=columns,
            prefix=prefix,
        )

    def close(self) -> None:
        """Release the connections of the judges among the parts."""
        while self._open:
            self._open.popitem()[1].close()

    def _kind(self, items: Sequence[Item]) -> ItemKind:
        if self.card.get("task") is not None:
            return self.task.kind
        return "source_target" if any(item.source for item in items) else "single"

    def _opened(self, card: Mapping[str, Any]) -> Restored:
        if id(card) not in self._open:  # cards live as long as the file's parts do
            judge = self._open[id(card)] = self.open_judge(card)
            self._inside |= dict.fromkeys(judge.marks)
        return _StaysOpen(self._open[id(card)])


@dataclass(frozen=True)
class _StaysOpen:
    """A judge that whoever borrowed it cannot close."""

    judge: Restored

    def score(self, items: Sequence[Item]) -> list[Verdict]:
        return self.judge.score(items)

    def close(self) -> None:
        """Left to the owner."""
