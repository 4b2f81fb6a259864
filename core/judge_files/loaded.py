"""A judge out of a file, ready to score items and frames: what all kinds of judges have in common."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from core.data import Table, build_golden
from core.data.cells import read_id
from core.data.columns import ALIASES, METRIC, mapping_of
from core.data.sources import first_error
from core.data.split import calibration_digests, text_digest
from core.errors import GoldenError, UsageError
from core.judge_files.judge_reading import kept_columns
from core.judging.judge_protocol import OnProgress
from core.judging.reply_verdicts import NO_TEXT, has_texts
from core.records import GoldenSet, Item, ItemKind, Scored, Task, Unscored, Usage, Verdict
from core.texts import is_blank
from core.verdicts import Verdicts

if TYPE_CHECKING:
    import pandas as pd

    from core.judging.llm_judge import LLMJudge


ADDED = ("score", "calibrated", "unscored", "mark", "calibration_item")
_TEXTS = ("item_id", "source_id", "system_id", "source", "context", "target", "references")
_SAMPLE = 50
AT_ONCE = 64
_THREADS = ThreadPoolExecutor(AT_ONCE, "concord-score")  # its threads start when they are needed
Metrics = Mapping[str, Sequence[float | None]]
"""Metric name → one number an item, None where there is none."""


class LoadedJudge(ABC):
    """Items in, verdicts out.

    `card` is the checked content of the file, `task` what is rated.  `marks` are sentences that must stand with every
    verdict; read them after scoring.
    """

    card: Mapping[str, Any]
    task: Task
    marks: tuple[str, ...]

    @property
    @abstractmethod
    def spec(self) -> str:
        """What scores, in a word: the spec of a judge, ``repeval:MODEL``, or ``fused``."""

    @property
    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """What an item must have besides its target: parts of it, or columns such as ``metric_bleurt``."""

    @property
    def models(self) -> tuple[LLMJudge, ...]:
        """The language models that are asked; none for a judge that computes."""
        return ()

    @property
    def frame_needs(self) -> tuple[str, ...]:
        """Roles that must have a column in a frame."""
        return self.needs

    @property
    def item_kind(self) -> ItemKind | None:
        """The kind of the items, None where the file does not say it."""
        return self.task.kind

    @abstractmethod
    def score(
        self,
        items: Sequence[Item],
        *,
        explain: bool = False,
        of_more: bool = False,
        on_progress: OnProgress | None = None,
        metrics: Metrics | None = None,
    ) -> Verdicts:
        """Return one verdict per item, in order; `explain` adds reasons where the judge gives any.

        Items of a batch `of_more` may all lack what the judge needs: they are Unscored.  `metrics` are numbers for
        those parts of a fusion that are handed in; other judges look at no numbers.
        """

    @abstractmethod
    def close(self) -> None:
        """Release connections.  Safe to call twice."""

    async def score_async(self, items: Sequence[Item], *, explain: bool = False, of_more: bool = False) -> Verdicts:
        """Score in a thread, so that the event loop continues; up to `AT_ONCE` calls at the same time."""
        score = partial(self.score, items, explain=explain, of_more=of_more)
        return await asyncio.get_running_loop().run_in_executor(_THREADS, score)

    def score_one(self, item: Item, *, explain: bool = False) -> Verdict:
        """Return the verdict on one item."""
        return self.score([item], explain=explain)[0]

    def score_frame(
        self, frame: pd.DataFrame, *, columns: Mapping[str, str] | None = None, prefix: str = ""
    ) -> pd.DataFrame:
        """Return a copy of `frame` with the columns `ADDED` appended, index and order kept.

        Columns are found by their own names or the usual aliases (`core.data.columns`); `columns` maps roles to columns
        where they have other names.  Each row is an item of its own, also where an id is repeated.  `prefix` stands in
        front of the new names.

        ``calibration_item`` is true where the text's label chose or fitted the judge.
        ``score`` and ``calibrated`` are float64, NaN where there is none; ``unscored`` says why, and is missing where
        a score is.  ``metric_<name>`` columns serve the parts of a fusion that are handed in.  GoldenError names
        columns that the judge needs and the frame lacks, UsageError one that is in the way.
        """
        import pandas as pd

        if not isinstance(frame, pd.DataFrame):
            raise UsageError(f"score_frame takes a pandas DataFrame; {type(frame).__name__} came.")
        there = [str(column) for column in frame.columns]
        if twice := sorted({name for name in there if there.count(name) > 1}):
            raise UsageError(f"The frame has two columns called {twice[0]!r}; rename one.")
        if taken := [f"{prefix}{name}" for name in ADDED if f"{prefix}{name}" in there]:
            raise UsageError(
                f"The frame has a column {taken[0]!r} already, where the verdicts would go. Rename or drop it, or "
                "give a prefix: score_frame(frame, prefix='judge_')."
            )
        golden = _items(frame.set_axis(there, axis=1), self, columns or {}) if len(frame) else None
        verdicts = Verdicts() if golden is None else self.score(golden.items, metrics=golden.metrics)
        mapped = [verdict.calibrated if isinstance(verdict, Scored) else None for verdict in verdicts]
        reasons = [
            ": ".join(filter(None, (verdict.reason, verdict.detail))) if isinstance(verdict, Unscored) else None
            for verdict in verdicts
        ]
        values: tuple[Any, ...] = (
            verdicts.values,
            np.array(mapped, dtype=np.float64),
            pd.array(reasons, dtype="string"),
            pd.array(["; ".join(self.marks)] * len(frame), dtype="string"),
            np.array([verdict.calibration_item for verdict in verdicts], dtype=np.bool_),
        )
        return frame.assign(**{f"{prefix}{name}": column for name, column in zip(ADDED, values, strict=True)})

    @cached_property
    def _calibration_texts(self) -> frozenset[str]:
        return calibration_digests(self.card)

    def marked(self, items: Sequence[Item], verdicts: Iterable[Verdict]) -> Verdicts:
        """Mark those of the `verdicts` on `items`, in order, whose labels chose or fitted the judge."""
        known = self._calibration_texts
        if not known:
            return Verdicts(verdicts)
        return Verdicts(
            replace(verdict, calibration_item=True) if text_digest(item) in known else verdict
            for item, verdict in zip(items, verdicts, strict=True)
        )


class RowJudge(LoadedJudge):
    """A judge that scores item by item: a calibrated one, or a RepEval score."""

    calls_an_item = 1
    spent = Usage()
    """What the replies have cost since it was loaded; nothing for a judge that asks no endpoint."""
    remarks: tuple[str, ...] = ()
    """What users have to know about how its scores came about, in sentences.  Read them after scoring."""

    @abstractmethod
    def _scored(
        self, items: Sequence[Item], *, explain: bool, coverage: float | None, on_progress: OnProgress | None
    ) -> Sequence[Verdict]:
        """Return one verdict for each of `items`, at least one, which have all parts."""

    def score(
        self,
        items: Sequence[Item],
        *,
        explain: bool = False,
        of_more: bool = False,
        on_progress: OnProgress | None = None,
        metrics: Metrics | None = None,
        coverage: float | None = None,
    ) -> Verdicts:
        """Return one verdict per item, in order.  `explain` adds the reasons of the best of the criteria.

        `coverage` adds intervals that hold so large a share of raters' labels (0.5 to 0.99), where the judge has them.

        An item without a part that the judge needs is Unscored ("missing input"); where no item has it, the column
        was left out, and GoldenError says so, unless the items are a batch `of_more`.  `metrics` play no part.
        ConsentError where the model of a file is not allowed here; JudgeError as the judge raises it.
        """
        usable, lacking = self.divided(items, of_more=of_more)
        scored = self._scored(usable, explain=explain, coverage=coverage, on_progress=on_progress) if usable else ()
        return self._in_order(items, lacking, scored)

    def divided(self, items: Sequence[Item], *, of_more: bool = True) -> tuple[list[Item], dict[str, Unscored]]:
        """Return the items that have all parts, and item id → why it cannot be scored for the others.

        GoldenError when no item has a part, unless they are a batch `of_more`: a column was left out or not found.
        """
        lacking = {
            item.item_id: Unscored(item.item_id, "missing input", NO_TEXT)
            for item in items
            if not has_texts(self.task, item)
        }
        for part in self.needs:
            without = [item.item_id for item in items if is_blank("".join(getattr(item, part)))]
            if without and len(without) == len(items) and not of_more:
                shown = ", ".join(without[:3]) + (f" and {len(without) - 3:,} more" if len(without) > 3 else "")
                raise GoldenError(
                    f"the judge of {self.task.aspect} rates each item with its {part}, and no item has one ({shown}). "
                    f"Add a column {part!r}, or name the one that holds it.",
                    column=part,
                )
            detail = f"The item has no {part}; this judge was calibrated on items that have one."
            for item_id in without:
                lacking.setdefault(item_id, Unscored(item_id, "missing input", detail))
        return [item for item in items if item.item_id not in lacking], lacking

    def _in_order(
        self, items: Sequence[Item], lacking: Mapping[str, Unscored], verdicts: Sequence[Verdict]
    ) -> Verdicts:
        """Put `verdicts` and those of the `lacking` items in the order of `items`."""
        judged = iter(verdicts)
        return self.marked(items, (lacking.get(item.item_id) or next(judged) for item in items))


def _items(frame: pd.DataFrame, judge: LoadedJudge, columns: Mapping[str, str]) -> GoldenSet:
    """Return one item a row, in order, with the frame's ids where every row has one of its own."""
    there = list(frame.columns)
    mapping = mapping_of(there, _rows(frame.head(_SAMPLE)), columns, kept_columns(judge.card))
    # the roles that scoring reads: texts, groups, metrics; labels play no part
    roles = {role: column for role, column in mapping.roles.items() if role in _TEXTS or role.startswith(METRIC)}
    if lacking := [role for role in ("target", *judge.frame_needs) if role not in roles]:
        also = "; ".join(f"{role} (or {', '.join(ALIASES.get(role, ())[:4])} …)" for role in lacking)
        raise GoldenError(
            f"the judge needs columns that the frame lacks: {also}. It has: {', '.join(there)[:300]}. Rename a "
            f"column, or say which it is: score_frame(frame, columns={{{lacking[0]!r}: NAME}}).",
            file="frame",
            column=lacking[0],
        )
    ids = roles.pop("item_id", None)
    mapping = replace(mapping, roles=roles)
    if judge.item_kind is not None:
        mapping = mapping.with_kind(judge.item_kind)
    table = Table("frame", tuple(there), tuple(_rows(frame[list(roles.values())])))
    built = build_golden(table, mapping, name="frame", labels_needed=False)
    if built.golden is None:
        raise first_error(built.findings, "frame")
    texts = [] if ids is None else [read_id(row[ids]) for row in _rows(frame[[ids]])]
    if len(set(texts)) < len(frame) or not all(texts):
        return built.golden
    items = (replace(item, item_id=text) for item, text in zip(built.golden.items, texts, strict=True))
    return replace(built.golden, items=tuple(items))


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as dictionaries of Python's own values, missing cells as None."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")  # type: ignore[return-value]
