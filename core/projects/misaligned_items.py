"""Item by item: how criteria scored the calibration items of a run, why, and what people found there (*triage*)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from core.calibration.calibration_records import MISALIGNED_FROM
from core.errors import ConflictError, JobError, JudgeError, NotFoundError, UsageError
from core.projects.calibration import calibration_asked, sides_of
from core.projects.reasons import TRIAGE_VERDICTS, Triage, TriageVerdict
from core.projects.run_control import is_imported, judge_run, kept_judge
from core.records import FloatArray, Item, Scored, ScoreMatrix
from core.settings import Settings
from core.store.store import Store, requires

GapSide = Literal["too lenient", "too strict", "aligned", "unread"]


@dataclass(frozen=True, slots=True)
class ItemScore:
    """A score by criteria on one calibration item, with its label.

    `gap` is standardised score minus standardised label: above 0 the judge is too lenient, below too strict.
    `score` and `gap` are None where the reply could not be read; `reason` then says why.
    """

    item: Item
    label: float
    score: float | None
    gap: float | None
    reason: str = ""

    @property
    def item_id(self) -> str:
        return self.item.item_id

    @property
    def side(self) -> GapSide:
        """On which side of the raters the judge is; aligned below `MISALIGNED_FROM`."""
        if self.gap is None:
            return "unread"
        if abs(self.gap) < MISALIGNED_FROM:
            return "aligned"
        return "too lenient" if self.gap > 0 else "too strict"

    @property
    def is_misaligned(self) -> bool:
        return self.side in ("too lenient", "too strict")


class ScoredItems(tuple[ItemScore, ...]):
    """Items that criteria scored; what is asked of all of them is found out once."""

    @cached_property
    def by_id(self) -> Mapping[str, ItemScore]:
        return {item.item_id: item for item in self}

    @cached_property
    def counts(self) -> Mapping[GapSide, int]:
        """Side → how many items are on it; 0 for a side without any."""
        return Counter(item.side for item in self)

    @cached_property
    def misaligned(self) -> tuple[ItemScore, ...]:
        return tuple(item for item in self if item.is_misaligned)


def item_scores(store: Store, run_id: str, criteria_id: str) -> ScoredItems:
    """The calibration items that the run scored with these criteria, largest |gap| first, unscored ones last.

    Held-out items are left out on purpose: looking at them one by one would end their being held out.  NotFoundError
    for an unknown run, or criteria that it did not score.
    """
    from core.calibration.proposals import standardised_gap

    request = calibration_asked(store, run_id)
    golden = store.goldens.load(request.golden_id)
    matrix = _scores(store, run_id, golden.item_ids, criteria_id)
    at = np.asarray(sides_of(store, run_id, golden).calibration, dtype=np.intp)
    scores, labels = matrix.values[0, at], golden.labels(request.aspect)[at]
    gaps = standardised_gap(scores, labels)
    reasons = {unscored.item_id: unscored.reason for unscored in matrix.unscored.get(criteria_id, ())}
    rows = []
    for k in np.argsort(-np.nan_to_num(np.abs(gaps), nan=-1.0), kind="stable").tolist():
        item, scored = golden.items[at[k]], not np.isnan(scores[k])
        if not scored and item.item_id not in reasons:  # the run left it out
            continue
        score, gap = (float(values[k]) if scored else None for values in (scores, gaps))
        rows.append(ItemScore(item, float(labels[k]), score, gap, reasons.get(item.item_id, "")))
    return ScoredItems(rows)


def item_changes(store: Store, run_id: str, criteria_id: str, parent_id: str) -> dict[str, bool]:
    """Item id → whether it became misaligned from `parent_id` to `criteria_id` in that run, or (False) aligned.

    They are calibration items whose |gap| crossed `MISALIGNED_FROM`, without those that either left unscored.
    NotFoundError where the run did not score both.
    """
    request = calibration_asked(store, run_id)
    golden = store.goldens.load(request.golden_id)
    matrix = _scores(store, run_id, golden.item_ids, parent_id, criteria_id)
    at = list(sides_of(store, run_id, golden).calibration)
    before, after = matrix.values[:, at]
    crossed = crossed_items(before, after, golden.labels(request.aspect)[at], MISALIGNED_FROM)
    return {golden.item_ids[at[k]]: misaligned for k, misaligned in crossed.items()}


def crossed_items(before: FloatArray, after: FloatArray, labels: FloatArray, min_gap: float) -> dict[int, bool]:
    """Place → whether its |standardised gap| rose to `min_gap` or (False) fell below it; all arrays are (n,)."""
    from core.calibration.proposals import standardised_gap

    gaps = np.abs([standardised_gap(scores, labels) for scores in (before, after)])
    was, now = gaps >= min_gap
    crossed = np.flatnonzero((was != now) & ~np.isnan(gaps).any(axis=0))
    return {place: bool(now[place]) for place in crossed.tolist()}


def explain_item(
    store: Store, settings: Settings, run_id: str, criteria_id: str, item_id: str
) -> tuple[str, tuple[str, ...]]:
    """The judge's reasons on an item under these criteria (or the clauses that moved the score), and its replies.

    An embedded judge is asked again, which costs nothing; a remote one's reply comes from the store, and where it is
    not there the explanation says so: nothing is ever sent from here.  JobError when the run did not score the item.
    """
    from core.judging.judge_specs import IMPORTED, SILENT, restore_judge
    from core.judging.parse import ends_otherwise, read_rating

    score = item_scores(store, run_id, criteria_id).by_id.get(item_id)
    of = judge_run(store, run_id)
    state = kept_judge(store, of)
    if score is None or state is None:
        raise JobError(f"Run {run_id} did not score item {item_id} with these criteria.")
    request = calibration_asked(store, run_id)
    task = request.task(store.goldens.load(request.golden_id))
    criteria = store.criteria.get(store.runs.get(run_id).project_id, criteria_id).criteria
    gate = IMPORTED if is_imported(store, of) else SILENT
    try:
        with closing(restore_judge(state, settings, store.replies.of_run(run_id), gate=gate)) as judge:
            (verdict,) = judge.score(task, [score.item], [criteria], explain=True).explained
    except JudgeError as error:  # a remote judge's reply that is not kept here, or a judge that may not be made
        return str(error), ()
    if not isinstance(verdict, Scored):
        return verdict.detail, verdict.raw
    readings = [(reply, read_rating(reply, task.scale, task.aspect).value) for reply in verdict.raw]
    if any(value is not None and ends_otherwise(reply, value, task.scale, task.aspect) for reply, value in readings):
        return f"{verdict.explanation}\n\nA reply ends with another rating than the one that counts.", verdict.raw
    return verdict.explanation, verdict.raw


def _scores(store: Store, run_id: str, item_ids: tuple[str, ...], *criteria_ids: str) -> ScoreMatrix:
    """(n_criteria, n_items), one row for each of `criteria_ids`.  NotFoundError where the run did not score one."""
    matrix = store.results.scores(run_id, item_ids, criteria_ids)
    for criteria_id in criteria_ids:
        if criteria_id not in matrix.criteria_ids:
            raise NotFoundError(f"Run {run_id} has no scores of criteria {criteria_id}.")
    return matrix


# ── triage ───────────────────────────────────────────────────────────────────────────────────────────────────

_LONGEST_NOTE = 5_000


@dataclass(frozen=True, slots=True)
class TriageRequest:
    """A request to record a verdict on items under the criteria or judge `subject_id`; None keeps the earlier value.

    A verdict of "" takes back the one before.
    """

    golden_id: str
    aspect: str
    subject_id: str
    verdict: TriageVerdict | Literal[""] | None = None
    note: str | None = None
    picked: bool | None = None


@requires("annotator")
def save_triage(
    store: Store, project_id: str, item_id: str, request: TriageRequest, *, form: str = "", seen: int | None = None
) -> int:
    """Save a verdict on a misaligned item, and return the number of the entry.

    An item can be picked or noted without a verdict.  `seen` is the number of the triage that the person saw (0: none),
    and with it ConflictError where somebody else was faster.  UsageError for an unknown verdict, or an endless note.
    """
    verdict, note = request.verdict, request.note
    if verdict and verdict not in TRIAGE_VERDICTS:
        raise UsageError(f"A triage verdict is {', '.join(TRIAGE_VERDICTS)}; got {verdict!r}.")
    if note is not None and len(note) > _LONGEST_NOTE:
        raise UsageError(f"A note may have {_LONGEST_NOTE:,} characters; this one has {len(note):,}.")
    about, said = (request.golden_id, request.aspect), store.events.all(project_id, Triage, item_id)
    own = [triage for triage in said if (triage.golden_id, triage.aspect) == about]
    before = own[-1] if own else Triage(*about, "", "", subject=item_id)
    triage = Triage(
        request.golden_id,
        request.aspect,
        request.subject_id,
        before.verdict if verdict is None else verdict,
        before.note if note is None else note.strip(),
        before.picked if request.picked is None else request.picked,
        subject=item_id,
    )
    changed = seen is not None and before.number not in (0, seen) and not (before.is_blank and not seen)
    if changed and (not store.actor.name or before.actor != store.actor.name):
        did = (
            f"said {before.verdict!r} of this item"
            if before.verdict
            else before.description.replace("an item", "this item")
        )
        raise ConflictError(
            f"{before.actor or 'Somebody'} {did} while you were looking at it. Look at it again, then decide; "
            "nothing was overwritten.",
            theirs=before.verdict,
            yours=triage.verdict,
        )
    expected = None if seen is None else said[-1].number if said else 0  # of any aspect
    return store.events.add(project_id, triage, store.actor, form=form, expected=expected)


@requires("annotator")
def triage_items(
    store: Store, project_id: str, seen: Mapping[str, int], request: TriageRequest, *, form: str = ""
) -> tuple[dict[str, int], dict[str, str]]:
    """Save the same verdict on several items; item id → number of its entry, and item id → why it was left alone.

    `seen` maps each item id → the number of the triage that the person saw (0: none).  An item on which somebody else
    was faster is left alone.
    """
    numbers, refused = {}, {}
    for item_id, number in seen.items():
        own_form = f"{form}:{item_id}" if form else ""
        try:
            numbers[item_id] = save_triage(store, project_id, item_id, request, form=own_form, seen=number)
        except ConflictError as error:
            refused[item_id] = str(error)
    return numbers, refused
