"""Item by item: how criteria scored the calibration items of a run, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, overload

import numpy as np

from core.errors import JobError, JudgeError, NotFoundError
from core.projects.calibration import scored_as, sides_of
from core.projects.rescore import ChangedItem, changed_items
from core.projects.runs import is_imported, judge_run, kept_judge
from core.records import FloatArray, GoldenSet, IntArray, Item, Scored, ScoreMatrix
from core.settings import Settings
from core.store.store import Store

MISALIGNED_FROM = 0.5
"""The least |gap| of a misaligned item, in standard deviations of each side."""

GapSide = Literal["too lenient", "too strict", "aligned", "unread"]


@dataclass(frozen=True, slots=True)
class ItemScore:
    """What criteria gave one calibration item, beside the people.

    `gap` is standardised score minus standardised label: above 0 the judge is too lenient, below too strict.
    `rank_gap` is the place of the score minus the place of the label among the items that have a score, both from
    the lowest, ties at their middle.  `score` and the gaps are None where the reply could not be read; `reason` then
    says why.
    """

    item_id: str
    source_id: str
    system_id: str
    label: float
    score: float | None
    gap: float | None
    reason: str = ""
    rank_gap: float | None = None

    @property
    def side(self) -> GapSide:
        """On which side of the people the judge is; aligned below `MISALIGNED_FROM`."""
        if self.gap is None:
            return "unread"
        if abs(self.gap) < MISALIGNED_FROM:
            return "aligned"
        return "too lenient" if self.gap > 0 else "too strict"

    @property
    def is_misaligned(self) -> bool:
        return self.side in ("too lenient", "too strict")


class ScoredItems(Sequence[ItemScore]):
    """Items that criteria scored, in the order of `item_scores`; what is asked of all of them is found out once."""

    def __init__(self, items: Sequence[ItemScore]) -> None:
        self._items = tuple(items)

    @overload
    def __getitem__(self, place: int) -> ItemScore: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[ItemScore, ...]: ...
    def __getitem__(self, place: int | slice) -> ItemScore | tuple[ItemScore, ...]:
        return self._items[place]

    def __len__(self) -> int:
        return len(self._items)

    @cached_property
    def by_id(self) -> Mapping[str, ItemScore]:
        return {item.item_id: item for item in self._items}

    @cached_property
    def counts(self) -> Mapping[GapSide, int]:
        """Side → how many items are on it; 0 for a side without any."""
        return Counter(item.side for item in self._items)

    @cached_property
    def misaligned(self) -> tuple[ItemScore, ...]:
        return tuple(item for item in self._items if item.is_misaligned)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        return tuple(sorted({item.source_id for item in self._items}))

    @cached_property
    def systems(self) -> tuple[str, ...]:
        return tuple(sorted({item.system_id for item in self._items if item.system_id}))

    @cached_property
    def labels(self) -> tuple[float, float]:
        """The lowest and the highest label; (0, 0) without items."""
        labels = [item.label for item in self._items]
        return min(labels, default=0.0), max(labels, default=0.0)


@dataclass(frozen=True, slots=True)
class ExplainedItem:
    """One item in full with the judge's words: reasons, or the clauses that moved the score; `raw` are the replies."""

    item: Item
    score: ItemScore
    explanation: str
    raw: tuple[str, ...]


def item_scores(store: Store, run_id: str, criteria_id: str) -> tuple[ItemScore, ...]:
    """The calibration items that the run scored with these criteria, largest |gap| first, unscored ones last.

    Held-out items are left out on purpose: looking at them one by one would end their being held out.  NotFoundError
    for an unknown run, or criteria that it did not score.
    """
    gaps = _Gaps.of(store, run_id, criteria_id)
    order = np.argsort(-np.nan_to_num(np.abs(gaps.gaps), nan=-1.0), kind="stable")
    rows = (gaps.item(k) for k in order.tolist())
    return tuple(row for row in rows if row is not None)


@dataclass(frozen=True, eq=False)
class _Gaps:
    """Calibration items at positions `at` of the golden set beside what criteria gave them; all arrays (n,)."""

    golden: GoldenSet
    at: IntArray
    scores: FloatArray
    labels: FloatArray
    gaps: FloatArray
    places: FloatArray
    reasons: Mapping[str, str]

    @classmethod
    def of(cls, store: Store, run_id: str, criteria_id: str) -> _Gaps:
        from core.calibration.proposals import rank_gap, standardised_gap

        request = scored_as(store, run_id)
        golden = store.goldens.load(request.golden_id)
        matrix = _scores(store, run_id, golden.item_ids, criteria_id)
        at = np.asarray(sides_of(store, run_id, golden).calibration, dtype=np.intp)
        scores, labels = matrix.values[0, at], golden.labels(request.aspect)[at]
        reasons = {unscored.item_id: unscored.reason for unscored in matrix.unscored.get(criteria_id, ())}
        return cls(golden, at, scores, labels, standardised_gap(scores, labels), rank_gap(scores, labels), reasons)

    def item(self, k: int) -> ItemScore | None:
        """The k-th of them; None where the run left it out."""
        item = self.golden.items[self.at[k]]
        where, label = (item.item_id, item.source_id, item.system_id), float(self.labels[k])
        if not np.isnan(self.scores[k]):
            score, gap, place = float(self.scores[k]), float(self.gaps[k]), float(self.places[k])
            return ItemScore(*where, label, score, gap, self.reasons.get(item.item_id, ""), place)
        if item.item_id in self.reasons:
            return ItemScore(*where, label, None, None, self.reasons[item.item_id])
        return None

    def named(self, item_id: str) -> ItemScore | None:
        """The item of that id; None where it is none of them."""
        ids = self.golden.item_ids
        return next((self.item(k) for k, position in enumerate(self.at.tolist()) if ids[position] == item_id), None)


def item_changes(store: Store, run_id: str, criteria_id: str, parent_id: str) -> tuple[ChangedItem, ...]:
    """The calibration items that became aligned or misaligned from `parent_id` to `criteria_id` in that run.

    An item is misaligned where its |gap| reaches the calibration's `min_gap`.  Those whose gap moved most come first;
    items that either left unscored are no part.  NotFoundError where the run did not score both.
    """
    request = scored_as(store, run_id)
    golden = store.goldens.load(request.golden_id)
    matrix = _scores(store, run_id, golden.item_ids, parent_id, criteria_id)
    at = sides_of(store, run_id, golden).calibration
    parent, new = matrix.values[:, list(at)]
    labels = golden.labels(request.aspect)[list(at)]
    return changed_items(golden, at, labels, parent=parent, new=new, min_gap=request.settings.min_gap)


def explain_item(store: Store, settings: Settings, run_id: str, criteria_id: str, item_id: str) -> ExplainedItem:
    """One item with what the judge of the run says of it under these criteria.

    An embedded judge is asked again, which costs nothing; a remote one's reply comes from the store, and where it is
    not there the explanation says so: nothing is ever sent from here.  JobError when the run did not score the item.
    """
    from core.judging.judge_specs import IMPORTED, SILENT, restore_judge

    score = _Gaps.of(store, run_id, criteria_id).named(item_id)
    request, of = scored_as(store, run_id), judge_run(store, run_id)
    state = kept_judge(store, of)
    if score is None or state is None:
        raise JobError(f"Run {run_id} did not score item {item_id} with these criteria.")
    golden = store.goldens.load(request.golden_id)
    item = golden.items[golden.item_ids.index(item_id)]
    project_id = store.runs.get(run_id).project_id
    criteria = store.criteria.get(project_id, criteria_id).criteria
    replies = store.replies.of_run(run_id)
    gate = IMPORTED if is_imported(store, of) else SILENT
    try:
        with closing(restore_judge(state, settings, replies, gate=gate)) as judge:
            (verdict,) = judge.score(request.task(golden), [item], [criteria], explain=True).explained
    except JudgeError as error:  # a remote judge's reply that is not kept here, or a judge that may not be made
        return ExplainedItem(item, score, str(error), ())
    words = verdict.explanation if isinstance(verdict, Scored) else verdict.detail
    return ExplainedItem(item, score, words, verdict.raw)


def _scores(store: Store, run_id: str, item_ids: tuple[str, ...], *criteria_ids: str) -> ScoreMatrix:
    """(n_criteria, n_items), one row for each of `criteria_ids`.  NotFoundError where the run did not score one."""
    matrix = store.results.scores(run_id, item_ids, criteria_ids)
    for criteria_id in criteria_ids:
        if criteria_id not in matrix.criteria_ids:
            raise NotFoundError(f"Run {run_id} has no scores of criteria {criteria_id}.")
    return matrix
