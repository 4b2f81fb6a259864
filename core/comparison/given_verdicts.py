"""Verdicts in any form as records, on the labelled items that did not choose or fit their judge."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from core.data.columns import Codes
from core.data.labels import off_scale
from core.data.reply_files import out_of_range
from core.data.split import task_of, text_digest, texts_behind
from core.errors import UsageError
from core.judge_files.documents import read_card
from core.judge_files.verdict_files import read_verdicts
from core.records import Alignment, FloatArray, GoldenSet, IntArray, Scale, Scored, Task, Unscored, Verdict
from core.stats import LabelledItems
from core.stats.choices import YesNo
from core.verdicts import Verdicts

if TYPE_CHECKING:
    from core.comparison.measures import Preferences

_Counted = TypeVar("_Counted", Alignment, YesNo, "Preferences")

AnyVerdicts = Path | str | Sequence[Verdict] | Mapping[str, float]
"""A file of verdicts or replies, `Verdicts` or other records, or scores by item id (a Mapping or a pandas Series)."""

JudgeFiles = Path | str | Sequence[Path | str] | None
"""The file of the judge, or the files of several."""


@dataclass(frozen=True)
class LabelledVerdicts:
    """Verdicts with the labelled items that they name.

    Items that the judge was calibrated on are among the `items` only if `kept`; `n_calibration` counts them.
    `seen` are the positions of all items that it must not be measured on, labelled or not.
    """

    verdicts: Verdicts
    items: LabelledItems
    item_ids: Sequence[str]
    seen: IntArray
    n_calibration: int
    kept: bool

    @cached_property
    def scores(self) -> FloatArray:
        """(n_items,), NaN = unscored."""
        return self.verdicts.aligned(self.item_ids)

    @cached_property
    def mapped(self) -> FloatArray | None:
        """The scores on the raters' scale, None without a map."""
        return self.verdicts.of_items(self.item_ids).mapped

    @property
    def scored(self) -> IntArray:
        """Positions in the golden set that have both a label and a score, ascending."""
        return self.items.positions[~np.isnan(self.scores)]

    def counted(self, found: _Counted) -> _Counted:
        """`found` with the number of items that the judge was calibrated on, as left out or as kept."""
        n = self.n_calibration
        return replace(found, n_calibration_left_out=0 if self.kept else n, n_calibration_kept=n if self.kept else 0)


def labelled_verdicts(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    judge_file: JudgeFiles = None,
    *,
    all_items: bool = False,
    seen: IntArray | None = None,
    name: str = "",
    may_be_none: bool = False,
) -> LabelledVerdicts:
    """`verdicts` on the labelled items of `golden`, without those whose labels chose or fitted the judge.

    The verdicts mark those items, and `judge_file` knows their texts; `seen` gives their positions where they are known
    already.  `all_items` keeps them.  `name` tells one judge from another in messages.

    Raises:
        AspectError: The golden set has no such aspect.
        UsageError: No item is left, unless there `may_be_none`.
    """
    records, labels = in_records(verdicts, task_of(golden, aspect)), golden.labels(aspect)
    named = np.array([item_id in records.by_id for item_id in golden.item_ids], dtype=np.bool_)
    positions = np.flatnonzero(named & ~np.isnan(labels))
    whose = f" of judge {name}" if name else ""
    if not positions.size and not may_be_none:
        raise UsageError(
            f"None of the {len(records.by_id)} verdicts{whose} belongs to an item of {golden.name} with a label on "
            f"{aspect!r}. Item ids there look like {', '.join(golden.item_ids[:3])}."
        )
    seen = calibration_items(golden, records, judge_file) if seen is None else seen
    behind = np.isin(positions, seen)
    if not all_items:
        if behind.all() and not may_be_none:
            raise UsageError(NOTHING_UNSEEN.format(n=positions.size, whose=whose))
        positions = positions[~behind]
    return LabelledVerdicts(
        records,
        LabelledItems.of(golden, aspect, positions),
        [golden.item_ids[k] for k in positions],
        seen[:0] if all_items else seen,
        int(behind.sum()),
        kept=all_items,
    )


NOTHING_UNSEEN = (
    "Every labelled item that the verdicts{whose} name ({n}) was used to choose or fit a judge, so no "
    "independent item is left to measure on. Label more items. --all-items (all_items=True in Python) measures "
    "on these, with an "
    "optimistic result."
)


def calibration_items(
    golden: GoldenSet, verdicts: Verdicts | Collection[str], judge_file: JudgeFiles = None, *, map_too: bool = True
) -> IntArray:
    """Positions of the items whose labels chose or fitted a judge: there its alignment is optimistic.

    These are the items that `verdicts` mark (or the ids given), and those whose texts the judge files name, including
    the judges inside a fused one.  Without `map_too` not those whose labels only fitted the map to the raters' scale.
    """
    marked = (
        {verdict.item_id for verdict in verdicts if verdict.calibration_item}
        if isinstance(verdicts, Verdicts)
        else set(verdicts)
    )
    files = [judge_file] if isinstance(judge_file, Path | str) else list(judge_file or ())
    cards = [read_card(file, accept_edited=True) for file in files]
    known = [texts for card in cards for texts in texts_behind(card)]
    behind = {digest for texts in known for digest in (texts.calibration if map_too else texts.behind_scores)}
    only_mapped = set() if map_too else {digest for texts in known for digest in texts.only_mapped} - behind
    at = []
    for k, item in enumerate(golden.items):
        digest = text_digest(item) if known else ""
        if digest in behind or (item.item_id in marked and digest not in only_mapped):
            at.append(k)
    return np.array(at, dtype=np.intp)


def in_records(verdicts: AnyVerdicts, task: Task, codes: Codes | Literal["scale"] | None = None) -> Verdicts:
    """Whatever form verdicts come in as `Verdicts`; what is no score beside the labels is Unscored ("out of range").

    `codes` says what the scores of a file on pairs stand for.  UsageError for anything that does not say which item a
    number belongs to, and for scores that are no numbers.
    """
    if isinstance(verdicts, Path | str):
        return read_verdicts(verdicts, task.scale, task.aspect, pairs=task.kind == "pair", codes=codes)
    records = verdicts if isinstance(verdicts, Verdicts) else _of_python(verdicts)
    off, _ = off_scale(records.values, task.scale)
    if not off.any():
        return records
    return Verdicts(
        Unscored(
            one.item_id,
            "out of range",
            out_of_range(one.value, task.scale).detail,
            calibration_item=one.calibration_item,
        )
        if is_off and isinstance(one, Scored)
        else one
        for one, is_off in zip(records, off.tolist(), strict=True)
    )


def off_scale_words(verdicts: Verdicts, scale: Scale) -> list[str]:
    """How many scores count for nothing because they lie off the scale of the labels, and whether the others do too."""
    lost = [verdict for verdict in verdicts.unscored if verdict.reason == "out of range" and verdict.detail]
    words = []
    if lost:
        words.append(f"Not used: {len(lost):,} of {len(verdicts):,} scores. {lost[0].detail}")
    known = verdicts.values[~np.isnan(verdicts.values)]
    if off_scale(known, scale)[1] and verdicts.mapped is None:  # mapped scores are compared on the raters' scale
        words.append(
            f"The scores run from {known.min():g} to {known.max():g}, and the labels from {scale}. Correlations hold; "
            "errors and bias do not."
        )
    return words


def _of_python(verdicts: Any) -> Verdicts:
    """What a Python caller gave as `Verdicts`; UsageError for a form that is not taken."""
    kind = type(verdicts).__name__
    series: Any = verdicts  # of pandas, which need not be loaded
    if hasattr(series, "index") and hasattr(series, "to_dict") and getattr(series, "ndim", 0) == 1:
        labels = list(series.index)
        if not all(isinstance(label, str) for label in labels) or len(set(labels)) < len(labels):
            raise UsageError(f"The index of the Series must hold each item id once, as text. {FORMS}")
        return _of_numbers(dict(zip(labels, series.tolist(), strict=True)))
    if isinstance(verdicts, Mapping):
        return _of_numbers(verdicts)
    if not isinstance(verdicts, Iterable) or getattr(verdicts, "ndim", 1) != 1:
        raise UsageError(f"{kind} is not a known form of verdicts. {FORMS}")
    records = list(verdicts)
    if strange := [record for record in records if not isinstance(record, Scored | Unscored)]:
        raise UsageError(f"{kind} of {type(strange[0]).__name__} does not say which item has which score. {FORMS}")
    return Verdicts(records)


FORMS = (
    "Pass a path to a file, Verdicts, a list of Verdict records, a mapping from item id to number, or a pandas "
    "Series of numbers indexed by item id."
)


def _of_numbers(scores: Mapping[Any, Any]) -> Verdicts:
    """Numbers by item id as verdicts; None and NaN are unscored."""
    numbers: dict[str, float] = {}
    for item_id, score in scores.items():
        if not isinstance(item_id, str):
            raise UsageError(f"Item ids are text; {item_id!r} ({type(item_id).__name__}) came as one. {FORMS}")
        if isinstance(score, bool | np.bool_) or not (score is None or isinstance(score, Real)):
            what = f"{score!r:.60} ({type(score).__name__})"
            raise UsageError(f"The score of item {item_id!r} is {what}, not a number. {FORMS}")
        numbers[item_id] = math.nan if score is None else float(score)
        if math.isinf(numbers[item_id]):
            raise UsageError(f"The score of item {item_id!r} is infinite. Use NaN or None for unscored.")
    return Verdicts.of_scores(numbers)
