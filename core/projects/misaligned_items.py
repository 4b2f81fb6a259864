"""Find calibration items on which the judge disagrees with the raters, explain scores, and save triage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from core.calibration.calibration_records import MISALIGNED_FROM, Calibration
from core.errors import ConflictError, JobError, JudgeError, NotFoundError
from core.projects.calibration import calibration_asked, split_of_run
from core.projects.labelling import Triage, TriageVerdict
from core.projects.start_and_resume import is_imported, judge_run, load_judge_state
from core.records import FloatArray, Item, Scored, ScoreMatrix
from core.settings import Settings
from core.store.runs import RESULT
from core.store.store import Store, requires

GapSide = Literal["too lenient", "too strict", "aligned", "unread"]


@dataclass(frozen=True, slots=True)
class ItemScore:
    """Score and label of an item, for given criteria.

    Attributes:
        score: None for an unreadable reply.
        gap: Standardised score minus standardised label. Positive if the judge is too lenient, negative if too strict.
            None for an unreadable reply.
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
        """The kind of gap: too lenient, too strict, aligned (below `MISALIGNED_FROM`), or unread (`gap` is None)."""
        if self.gap is None:
            return "unread"
        if abs(self.gap) < MISALIGNED_FROM:
            return "aligned"
        return "too lenient" if self.gap > 0 else "too strict"

    @property
    def is_misaligned(self) -> bool:
        return self.side in ("too lenient", "too strict")


class ScoredItems(tuple[ItemScore, ...]):
    """Scored items. They can be counted by whether the judge is too lenient, too strict or aligned."""

    @cached_property
    def by_id(self) -> Mapping[str, ItemScore]:
        return {item.item_id: item for item in self}

    @cached_property
    def counts(self) -> Mapping[GapSide, int]:
        """Number of items for each kind of gap: too lenient, too strict, aligned, or unread (unreadable reply)."""
        return Counter(item.side for item in self)

    @cached_property
    def misaligned(self) -> tuple[ItemScore, ...]:
        return tuple(item for item in self if item.is_misaligned)


def item_scores(store: Store, run_id: str, criteria_id: str) -> ScoredItems:
    """List the scores of the calibration items that a run scored with the given criteria.

    The largest |gap| comes first, and unreadable replies come last. Held-out items are left out, because they must stay
    unseen. Raises NotFoundError for an unknown run, or if the run has no scores for the criteria.
    """
    from core.calibration.proposals import standardised_gap

    request = calibration_asked(store, run_id)
    golden = store.goldens.load(request.golden_id)
    matrix = _scores(store, run_id, golden.item_ids, criteria_id)
    at = np.asarray(split_of_run(store, run_id, golden).calibration, dtype=np.intp)
    scores, labels = matrix.values[0, at], golden.labels(request.aspect)[at]
    gaps = standardised_gap(scores, labels)
    reasons = {unscored.item_id: unscored.reason for unscored in matrix.unscored.get(criteria_id, ())}
    rows = []
    for k in np.argsort(-np.nan_to_num(np.abs(gaps), nan=-1.0), kind="stable").tolist():
        item, scored = golden.items[at[k]], not np.isnan(scores[k])
        if not scored and item.item_id not in reasons:  # the run did not score it
            continue
        score, gap = (float(values[k]) if scored else None for values in (scores, gaps))
        rows.append(ItemScore(item, float(labels[k]), score, gap, reasons.get(item.item_id, "")))
    return ScoredItems(rows)


def item_changes(store: Store, run_id: str, criteria_id: str, parent_id: str) -> dict[str, bool]:
    """Find the calibration items that became misaligned or aligned from one set of criteria of a run to another.

    Args:
        criteria_id: The later criteria.
        parent_id: The earlier criteria.

    Returns:
        A dict from item id to True if the item became misaligned (|gap| of at least `MISALIGNED_FROM`), False if it
        became aligned.

    Raises:
        NotFoundError: The run has no scores for one of the criteria.
    """
    request = calibration_asked(store, run_id)
    golden = store.goldens.load(request.golden_id)
    matrix = _scores(store, run_id, golden.item_ids, parent_id, criteria_id)
    at = list(split_of_run(store, run_id, golden).calibration)
    crossed = crossed_items(matrix.values[:, at], golden.labels(request.aspect)[at], MISALIGNED_FROM)
    return {golden.item_ids[at[k]]: misaligned for k, misaligned in crossed.items()}


def crossed_items(scores: FloatArray, labels: FloatArray, min_gap: float) -> dict[int, bool]:
    """Find the items whose |standardised gap| crossed `min_gap`.

    Return a dict from item position to True if |gap| rose, False if it fell.

    `scores` (2, n_items) are the scores before and after a change. `labels` has the shape (n_items,).
    """
    from core.calibration.proposals import standardised_gap

    gaps = np.abs([standardised_gap(row, labels) for row in scores])
    was, now = gaps >= min_gap
    crossed = np.flatnonzero((was != now) & ~np.isnan(gaps).any(axis=0))
    return {place: bool(now[place]) for place in crossed.tolist()}


def explain_item(
    store: Store, settings: Settings, run_id: str, criteria_id: str, item_id: str
) -> tuple[str, tuple[str, ...]]:
    """Explain the score of an item: the judge's reasons (or the effect of each clause), and its replies.

    Nothing is sent to a remote judge; its replies come from the store. If a reply is missing there, the explanation
    says so. Raises JobError if the run did not score the item.
    """
    from core.judging.judge_specs import IMPORTED, SILENT, restore_judge

    score = item_scores(store, run_id, criteria_id).by_id.get(item_id)
    of = judge_run(store, run_id)
    state = load_judge_state(store, of)
    if score is None or state is None:
        raise JobError(
            f"Run {run_id} didn't score item {item_id} with these criteria. Choose an item that the run scored."
        )
    request = calibration_asked(store, run_id)
    task = request.task(store.goldens.load(request.golden_id))
    criteria = store.criteria.get(store.runs.get(run_id).project_id, criteria_id).criteria
    if of == run_id and (result := store.results.read(run_id, RESULT, Calibration)) is not None:
        # clause weights belong to the run that learnt them; rounds and re-scorings weight clauses equally
        criteria = next((each for each in result.chosen if each.criteria_id == criteria_id), criteria)
    gate = IMPORTED if is_imported(store, of) else SILENT
    try:
        with closing(restore_judge(state, settings, store.replies.of_run(run_id), gate=gate)) as judge:
            (verdict,) = judge.score(task, [score.item], [criteria], explain=True).explained
    except JudgeError as error:  # the reply is not stored, or the judge is not allowed
        return str(error), ()
    if not isinstance(verdict, Scored):
        return verdict.detail, verdict.raw
    return verdict.explanation, verdict.raw


def _scores(store: Store, run_id: str, item_ids: tuple[str, ...], *criteria_ids: str) -> ScoreMatrix:
    """Return the scores (n_criteria, n_items). Raises NotFoundError for criteria that the run did not score."""
    matrix = store.results.scores(run_id, item_ids, criteria_ids)
    for criteria_id in criteria_ids:
        if criteria_id not in matrix.criteria_ids:
            raise NotFoundError(
                f"Run {run_id} has no scores for criteria {criteria_id}. Choose criteria for which the run has scores."
            )
    return matrix


# ── triage ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class TriageRequest:
    """A request to triage an item that the criteria or judge `subject_id` scored.

    A field that is None keeps its earlier value. The verdict "" undoes the earlier verdict.
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
    """Save the user's verdict, note or pick for a misaligned item. Return the number of the log entry.

    A picked item is one that the next refinement round learns from.

    Args:
        request: What to save. Fields that are None keep their value.
        form: Id of the call. A second call with the same id changes nothing.
        seen: Number of the item's log entry that the user saw; 0 for none. None skips the check for conflicts.

    Raises:
        ConflictError: Somebody else has added an entry since.
    """
    verdict, note, about = request.verdict, request.note, (request.golden_id, request.aspect)
    said = store.events.all(project_id, Triage, item_id)
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
    if changed and before.actor != store.actor.name:
        raise ConflictError(
            f"{before.actor or 'Someone else'} triaged this item as “{before.verdict or 'no verdict'}” while you had "
            "it open. Nothing was overwritten. Review the item again, then decide.",
        )
    read = said[-1].number if said else 0  # fails if somebody writes between this read and the write
    return store.events.add(project_id, triage, store.actor, form=form, expected=read)


@requires("annotator")
def triage_items(
    store: Store, project_id: str, seen: Mapping[str, int], request: TriageRequest, *, form: str = ""
) -> tuple[dict[str, int], dict[str, str]]:
    """Save the same verdict, note or pick for several misaligned items.

    Items that somebody else has changed in the meantime are skipped.

    Args:
        seen: Maps each item id to the number of the item's log entry that the user saw; 0 for none.
        request: What to save.
        form: Id of the call. A second call with the same id changes nothing.

    Returns:
        A dict from item id to the number of the new log entry, and a dict from item id to why the item was skipped.
    """
    numbers, refused = {}, {}
    for item_id, number in seen.items():
        own_form = f"{form}:{item_id}" if form else ""
        try:
            numbers[item_id] = save_triage(store, project_id, item_id, request, form=own_form, seen=number)
        except ConflictError as error:
            refused[item_id] = str(error)
    return numbers, refused
