"""Match verdicts with labelled items, except items that were used to choose or fit the judge."""

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

    Attributes:
        item_ids: Ids of `items`, in the same order.
        seen: Positions of all items left out because the judge has seen them, labelled or not.
        n_calibration: Number of labelled items that have a verdict and were used to choose or fit the judge.
        kept: Whether `items` includes the judge's calibration items.
    """

    verdicts: Verdicts
    items: LabelledItems
    item_ids: Sequence[str]
    seen: IntArray
    n_calibration: int
    kept: bool

    @cached_property
    def scores(self) -> FloatArray:
        """Scores (n_items,), NaN = unscored."""
        return self.verdicts.aligned(self.item_ids)

    @cached_property
    def mapped(self) -> FloatArray | None:
        """Scores (n_items,) mapped to the raters' scale; None if there is no map."""
        return self.verdicts.of_items(self.item_ids).mapped

    @property
    def scored(self) -> IntArray:
        """Positions in the golden set of items with both a label and a score, ascending."""
        return self.items.positions[~np.isnan(self.scores)]

    def counted(self, found: _Counted) -> _Counted:
        """Return a copy of `found` that also says how many calibration items were left out, or kept."""
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
    """Match `verdicts` with the labelled items of `golden`, without items that were used to choose or fit the judge.

    Args:
        judge_file: Items whose texts the file contains as calibration items are left out, as are items marked in
            `verdicts`.
        all_items: Leave out no items.
        seen: Positions of the items to leave out instead.
        name: Name of the judge for error messages.
        may_be_none: Return an empty result, rather than an error, if no item is left.

    Raises:
        AspectError: The golden set has no such aspect.
        UsageError: No item is left.
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
    "agreement. Label more items, or add --all-items (all_items=True in Python) to accept an optimistic result."
)


def calibration_items(
    golden: GoldenSet, verdicts: Verdicts | Collection[str], judge_file: JudgeFiles = None, *, map_too: bool = True
) -> IntArray:
    """Return the positions of items whose labels were used to choose or fit a judge.

    Args:
        verdicts: Items marked in the verdicts are included. Item ids may be given instead, and are all included.
        judge_file: Items are included if the file contains their texts. The file of a fused judge also has the texts of
            the judges that it combines.
        map_too: Include items whose labels were used only to fit the map to the human scale.
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
