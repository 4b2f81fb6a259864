"""Match verdicts in any form with labelled items, except those used to choose or fit the judge."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from core.data.judge_results import AnyVerdicts, as_verdicts
from core.data.split import task_of, text_digest, texts_behind
from core.errors import UsageError
from core.judge_files.documents import read_card
from core.records import Alignment, FloatArray, GoldenSet, IntArray
from core.stats import LabelledItems
from core.stats.choices import YesNo
from core.verdicts import Verdicts

if TYPE_CHECKING:
    from core.comparison.measures import Preferences

_Counted = TypeVar("_Counted", Alignment, YesNo, "Preferences")

JudgeFiles = Path | str | Sequence[Path | str] | None
"""The file of the judge, or the files of several."""


@dataclass(frozen=True)
class LabelledVerdicts:
    """Verdicts with their labelled items.

    Calibration items of the judge are among the `items` only if `kept`; `n_calibration` counts them. `seen` are the
    positions of all items excluded from measuring the judge, labelled or not.
    """

    verdicts: Verdicts
    items: LabelledItems
    item_ids: Sequence[str]
    seen: IntArray
    n_calibration: int
    kept: bool

    @cached_property
    def scores(self) -> FloatArray:
        """(n_items,) scores, NaN = unscored."""
        return self.verdicts.aligned(self.item_ids)

    @cached_property
    def mapped(self) -> FloatArray | None:
        """(n_items,) scores mapped to the raters' scale; None if there is no map."""
        return self.verdicts.of_items(self.item_ids).mapped

    @property
    def scored(self) -> IntArray:
        """Positions in the golden set that have both a label and a score, ascending."""
        return self.items.positions[~np.isnan(self.scores)]

    def counted(self, found: _Counted) -> _Counted:
        """Return `found` with the number of calibration items that were left out, or kept by `all_items`."""
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
    """Match `verdicts` with the labelled items of `golden`, except those used to choose or fit the judge.

    Marks in the verdicts and texts in `judge_file` identify the excluded items, or `seen` gives their positions.
    `all_items` keeps them. `name` identifies the judge in messages. Raises AspectError if the golden set has no such
    aspect, and UsageError if no item is left (`may_be_none` allows that).
    """
    records, labels = as_verdicts(verdicts, task_of(golden, aspect)), golden.labels(aspect)
    named = np.array([item_id in records.by_id for item_id in golden.item_ids], dtype=np.bool_)
    positions = np.flatnonzero(named & ~np.isnan(labels))
    whose = f" from judge {name}" if name else ""
    if not positions.size and not may_be_none:
        raise UsageError(
            f"None of the {len(records.by_id)} verdicts{whose} matches an item in {golden.name} that has a label for "
            f"{aspect!r}. In the golden set, item ids look like {', '.join(golden.item_ids[:3])}."
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
    "All {n} labelled items with verdicts{whose} were used to choose or fit a judge, so no item is left for measuring "
    "agreement. Label more items, or add --all-items (all_items=True in Python) to get an optimistic result."
)


def calibration_items(
    golden: GoldenSet, verdicts: Verdicts | Collection[str], judge_file: JudgeFiles = None, *, map_too: bool = True
) -> IntArray:
    """Find the items whose labels were used to choose or fit a judge, so that its alignment on them is optimistic.

    Returns positions of two kinds of items: those marked in `verdicts` (or with one of its ids), and those whose texts
    are in the judge files. A fused judge also has the items of the judges in it. Without `map_too`, items whose labels
    were used only to fit the map to the raters' scale are not included.
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
