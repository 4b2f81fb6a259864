"""A judge out of a file, ready to score: what a calibrated and a fused judge have in common."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from core.judging.base import OnProgress
from core.records import Item, ItemKind, Task, Verdict
from core.verdicts import Verdicts

if TYPE_CHECKING:
    import pandas as pd

Metrics = Mapping[str, Sequence[float | None]]
"""Metric name → one number an item, None where there is none."""


class LoadedJudge(ABC):
    """Items in, verdicts out.  `card` is the checked content of the file, `task` what is rated."""

    card: Mapping[str, Any]
    task: Task

    @property
    @abstractmethod
    def marks(self) -> tuple[str, ...]:
        """Words that must stand with every verdict; empty when nothing is to be said.  Ask after scoring."""

    @property
    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """What an item must have beside its target: parts of it, or columns such as ``metric_bleurt``."""

    @abstractmethod
    def score(
        self,
        items: Sequence[Item],
        *,
        explain: bool = False,
        on_progress: OnProgress | None = None,
        metrics: Metrics | None = None,
    ) -> Verdicts:
        """One verdict per item, in order; `explain` adds reasons where the judge gives any.

        `metrics` are numbers for those parts of a fusion that are handed in; other judges look at no numbers.
        """

    @abstractmethod
    def close(self) -> None:
        """Release connections.  Safe to call twice."""

    async def score_async(self, items: Sequence[Item], *, explain: bool = False) -> Verdicts:
        """As `score`, in a thread, so that the event loop goes on."""
        return await asyncio.to_thread(self.score, items, explain=explain)

    def score_one(self, item: Item, *, explain: bool = False) -> Verdict:
        """The verdict on one item."""
        return self.score([item], explain=explain)[0]

    def score_frame(
        self, frame: pd.DataFrame, *, columns: Mapping[str, str] | None = None, prefix: str = ""
    ) -> pd.DataFrame:
        """`frame` with the columns score, calibrated, unscored and mark appended (see `core.export.frames`).

        Columns called ``metric_<name>`` serve the parts of a fusion that are handed in.
        """
        from core.export.frames import scored_frame

        return scored_frame(self, frame, columns=columns, prefix=prefix)

    @property
    def item_kind(self) -> ItemKind | None:
        """The kind of the items, None where the file does not tell it."""
        return self.task.kind

    @property
    def frame_needs(self) -> tuple[str, ...]:
        """Roles that must have a column in a frame."""
        return self.needs
