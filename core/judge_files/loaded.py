"""A judge out of a file, ready to score items and frames: what a calibrated and a fused judge have in common."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from core.data import Table, build_golden
from core.data.cells import read_id
from core.data.columns import ALIASES, METRIC, mapping_of
from core.data.columns import Mapping as Columns
from core.data.sources import first_error
from core.data.split import calibration_digests, text_digest
from core.errors import GoldenError, UsageError
from core.judge_files.judge_reading import kept_columns
from core.judging.judge_protocol import OnProgress
from core.records import GoldenSet, Item, ItemKind, Scored, Task, Verdict
from core.verdicts import Verdicts

if TYPE_CHECKING:
    import pandas as pd


ADDED = ("score", "calibrated", "unscored", "mark", "calibration_item")
_TEXTS = ("item_id", "source_id", "system_id", "source", "context", "target", "references")
_SAMPLE = 50
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
    def spec(self) -> str:
        """What scores, in a word: the spec of a judge, ``repeval:MODEL``, or ``fused``."""

    @property
    def calls_an_item(self) -> int:
        """How often one item is judged: once for each of the criteria."""
        return 1

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
        """A copy of `frame` with the columns `ADDED` appended, index and order kept.

        Columns are found by their own names or the usual aliases (`core.data.columns`); `columns` maps roles to columns
        where they have other names.  Each row is an item of its own, also where an id comes again.  `prefix` stands in
        front of their names.

        ``calibration_item`` is true where the text's label chose or fitted the judge.
        ``score`` and ``calibrated`` are float64, NaN where there is none; ``unscored`` says why, and is missing where
        a score is.  ``metric_<name>`` columns serve the parts of a fusion that are handed in.  GoldenError names
        columns that the judge needs and the frame lacks, UsageError one that is in the way.
        """
        import pandas as pd

        if not isinstance(frame, pd.DataFrame):
            raise UsageError(f"score_frame takes a pandas DataFrame; {type(frame).__name__} came.")
        names = [f"{prefix}{name}" for name in ADDED]
        names_there = [str(column) for column in frame.columns]
        if twice := sorted({name for name in names_there if names_there.count(name) > 1}):
            raise UsageError(f"The frame has two columns called {twice[0]!r}; rename one.")
        if taken := [name for name in names if name in names_there]:
            raise UsageError(
                f"The frame has a column {taken[0]!r} already, where the verdicts would go. Rename or drop it, or "
                "give a prefix: score_frame(frame, prefix='judge_')."
            )
        golden = _items(frame, names_there, self, columns or {}) if len(frame) else None
        verdicts = [] if golden is None else self.score(golden.items, metrics=golden.metrics)
        return _with_verdicts(frame, verdicts, names, "; ".join(self.marks))

    @cached_property
    def _calibration_texts(self) -> frozenset[str]:
        return calibration_digests(self.card)

    def marked(self, items: Sequence[Item], verdicts: Iterable[Verdict]) -> Verdicts:
        """`verdicts` on `items`, in order; those on texts whose labels chose or fitted the judge say so."""
        known = self._calibration_texts
        if not known:
            return Verdicts(verdicts)
        return Verdicts(
            replace(verdict, calibration_item=True) if text_digest(item) in known else verdict
            for item, verdict in zip(items, verdicts, strict=True)
        )

    @property
    def item_kind(self) -> ItemKind | None:
        """The kind of the items, None where the file does not tell it."""
        return self.task.kind

    @property
    def frame_needs(self) -> tuple[str, ...]:
        """Roles that must have a column in a frame."""
        return self.needs


def _with_verdicts(frame: pd.DataFrame, verdicts: Sequence[Verdict], names: Sequence[str], mark: str) -> pd.DataFrame:
    import pandas as pd

    scored = [verdict if isinstance(verdict, Scored) else None for verdict in verdicts]
    calibrated = [None if verdict is None else verdict.calibrated for verdict in scored]
    reasons = [None if isinstance(verdict, Scored) else _reason(verdict.reason, verdict.detail) for verdict in verdicts]
    values: tuple[Any, ...] = (
        np.array([np.nan if verdict is None else verdict.value for verdict in scored], dtype=np.float64),
        np.array([np.nan if value is None else value for value in calibrated], dtype=np.float64),
        pd.array(reasons, dtype="string"),
        pd.array([mark] * len(frame), dtype="string"),
        np.array([verdict.calibration_item for verdict in verdicts], dtype=np.bool_),
    )
    return frame.assign(**dict(zip(names, values, strict=True)))


def _reason(reason: str, detail: str) -> str:
    return f"{reason}: {detail}" if detail else reason


def _items(frame: pd.DataFrame, names_there: list[str], judge: LoadedJudge, columns: Mapping[str, str]) -> GoldenSet:
    """One item a row, in order, with the frame's ids where every row has one of its own."""
    plain = frame.set_axis(names_there, axis=1)
    head = _rows(plain.head(_SAMPLE))
    mapping = _mapping(mapping_of(names_there, head, columns, kept_columns(judge.card)))
    _require(mapping, ("target", *judge.frame_needs), names_there)
    if judge.item_kind is not None:
        mapping = mapping.with_kind(judge.item_kind)
    ids = mapping.roles.get("item_id")
    used = plain[[column for role, column in mapping.roles.items() if role != "item_id"]]
    mapping = replace(mapping, roles={role: column for role, column in mapping.roles.items() if role != "item_id"})
    table = Table("frame", tuple(names_there), tuple(_rows(used)))
    built = build_golden(table, mapping, name="frame", labels_needed=False)
    if built.golden is None:
        raise first_error(built.findings, "frame")
    texts = [] if ids is None else [read_id(cell) for cell in _cells(plain[ids])]
    if len(set(texts)) < len(frame) or not all(texts):
        return built.golden
    items = (replace(item, item_id=text) for item, text in zip(built.golden.items, texts, strict=True))
    return replace(built.golden, items=tuple(items))


def _mapping(columns: Columns) -> Columns:
    """The roles that scoring reads: texts, groups, metrics; labels play no part."""
    roles = {role: column for role, column in columns.roles.items() if role in _TEXTS or role.startswith(METRIC)}
    return replace(columns, roles=roles)


def _require(mapping: Columns, needs: Sequence[str], names_there: Sequence[str]) -> None:
    lacking = [role for role in needs if role not in mapping.roles]
    if lacking:
        also = "; ".join(f"{role} (or {', '.join(ALIASES.get(role, ())[:4])} …)" for role in lacking)
        raise GoldenError(
            f"the judge needs columns that the frame lacks: {also}. It has: {', '.join(names_there)[:300]}. Rename a "
            f"column, or say which it is: score_frame(frame, columns={{{lacking[0]!r}: NAME}}).",
            file="frame",
            column=lacking[0],
        )


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dictionaries, missing cells as None."""
    columns = {name: _cells(frame[name]) for name in frame.columns}
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _cells(column: pd.Series[Any]) -> list[Any]:
    """The cells as Python's own values, missing ones as None."""
    return [None if gone else cell for cell, gone in zip(column.tolist(), column.isna().tolist(), strict=True)]
