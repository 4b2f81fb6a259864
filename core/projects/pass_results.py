"""What comes of a labelling pass: progress and agreement, decisions where raters disagree, and a new golden set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.data.split import text_digest
from core.errors import AccessError, UsageError
from core.projects.judge_line import judge_line
from core.projects.labelling import get_pass, list_passes, still_rating
from core.projects.roles import requires
from core.projects.triage import list_triage
from core.records import FloatArray, GoldenSet, JudgeScores, Scale
from core.review.agreement import (
    AspectAgreement,
    Combine,
    PassSummary,
    RatedBy,
    ReplacedLabel,
    agreement,
    labelled_golden,
    labels_in,
    replaced,
    summary,
)
from core.review.judge_versions import JudgeVersion
from core.review.log import given_reason
from core.review.passes import Adjudicated, Label, LabelPass, LabelsFrozen, RatedIn, passes_behind
from core.review.plan import PICKING
from core.store.store import Store


@dataclass(frozen=True, slots=True)
class Mergeable:
    """Single ratings of an aspect that a golden set holds already: of which passes ("" is its file), and how many
    items are rated by the pass to be frozen alone, and merged with them."""

    aspect: str
    passes: tuple[str, ...]
    alone: RatedBy
    merged: RatedBy


@requires("reviewer")
def pass_summary(store: Store, project_id: str, pass_id: str) -> PassSummary:
    """A pass from above: who has done how much, agreement as it grew, and the items to decide.

    To decide are the items on which raters disagree, and those of the golden set that triage called mislabelled.
    """
    labelling = get_pass(store, project_id, pass_id)
    golden = store.goldens.load(labelling.golden_id)
    known = set(golden.item_ids)
    flagged = {
        (aspect, item_id): triage
        for aspect in labelling.aspects
        for item_id, triage in list_triage(store, project_id, labelling.golden_id, aspect).items()
        if triage.verdict == "label wrong" and item_id in known
    }
    return summary(labelling, golden, _labels(store, labelling, golden), decisions(store, project_id, pass_id), flagged)


def passes_to_merge(store: Store, labelling: LabelPass, aspect: str) -> list[LabelPass]:
    """The other passes over the same items that rate an aspect on the same scale, newest first."""
    return [
        other
        for other in list_passes(store, labelling.project_id, labelling.golden_id)
        if other.pass_id != labelling.pass_id and _planned(other, aspect) == _planned(labelling, aspect)
    ]


@requires("reviewer")
def agreement_over(store: Store, project_id: str, pass_ids: Sequence[str], aspect: str) -> AspectAgreement:
    """Agreement on an aspect over several passes at once; of a rater who rated an item in two the newer label counts.

    UsageError for passes over different items, or without this aspect on one scale.
    """
    passes = [get_pass(store, project_id, pass_id) for pass_id in dict.fromkeys(pass_ids)]
    first = passes[0]
    planned = next((known for known in first.plan.aspects if known.aspect == aspect), None)
    if planned is None or {other.golden_id for other in passes} != {first.golden_id}:
        raise UsageError(f"Agreement on {aspect} is counted over passes that rate it on the same golden set.")
    if any(_planned(other, aspect) != planned.scale for other in passes):
        raise UsageError(f"These passes rate {aspect} on different scales.")
    golden = store.goldens.load(first.golden_id)
    labels = [label for labelling in passes for label in _labels(store, labelling, golden)]
    order = dict.fromkeys(position for labelling in passes for position in labelling.plan.positions)
    return agreement(golden, sorted(labels, key=lambda label: label.number), planned, tuple(order))


def _planned(labelling: LabelPass, aspect: str) -> Scale | None:
    return next((known.scale for known in labelling.plan.aspects if known.aspect == aspect), None)


@requires("reviewer")
def adjudicate(
    store: Store, project_id: str, pass_id: str, item_id: str, *, aspect: str, value: float, reason: str, form: str
) -> None:
    """Decide the gold label of an item on which raters disagree; the raters' own labels stay as they are.

    UsageError for an item that the golden set does not have, a value outside the scale or an empty reason; AccessError
    for whoever has items left to rate (`still_rating`).
    """
    labelling = get_pass(store, project_id, pass_id)
    if rating := still_rating(store, project_id, labelling.golden_id, labelling.aspects):
        left = f"{rating[0].n_open:,} items left to rate in {rating[0].name}"
        raise AccessError(f"You have {left}; whoever still rates does not decide.")
    if item_id not in store.goldens.load(labelling.golden_id).item_ids:
        raise UsageError(f"Item {item_id[:60]!r} is no part of the golden set of {labelling.name}.")
    scale = next((planned.scale for planned in labelling.plan.aspects if planned.aspect == aspect), None)
    if scale is None or not scale.holds(value):
        raise UsageError(f"The decision on {aspect} is {value:g}; the scale is {scale or 'not known'}.")
    decision = Adjudicated(item_id, aspect, float(value), given_reason(reason), subject=pass_id)
    store.events.add(project_id, decision, store.actor, form=form)


def decisions(store: Store, project_id: str, pass_id: str) -> dict[tuple[str, str], float]:
    """(aspect, item id) → adjudicated value; a later decision replaces an earlier one."""
    return {
        (decision.aspect, decision.item_id): decision.value
        for decision in store.events.all(project_id, Adjudicated, pass_id)
    }


@requires("reviewer")
def freeze_labels(
    store: Store, project_id: str, pass_id: str, *, name: str, combine: Combine = "fill", merge: bool = False
) -> str:
    """A new golden set with the labels of a pass, its single ratings and its decisions; returns its id.

    Golden labels are kept unless `combine` says otherwise.  With `merge` the single ratings that the golden set holds
    already (of earlier passes, or of its file) count beside those of the pass.  The golden set that was labelled stays
    as it is.  UsageError when nobody has labelled anything, or nothing would change.
    """
    golden, frozen = _frozen(store, project_id, pass_id, name, combine, merge=merge)
    if frozen.aspects == golden.aspects:
        raise UsageError(
            "Every item that was labelled or decided has a golden label already, and those are kept, so freezing would "
            "change nothing. Choose to replace golden labels, or label items that have none."
        )
    labelling = get_pass(store, project_id, pass_id)
    rated_in = _rated_in(store, labelling, golden, frozen)

    def keep() -> str:
        golden_id = store.goldens.add(project_id, frozen)
        store.events.add(project_id, LabelsFrozen(labelling.name, pass_id, rated_in, subject=golden_id), store.actor)
        return golden_id

    return store.together(keep)


def rated_in(store: Store, project_id: str, golden_id: str, aspect: str) -> tuple[str, ...]:
    """The names of the labelling passes whose single ratings of an aspect a golden set holds; "" is its file.

    Ceiling and Alt-Test on the golden set are of these.  Where it has no single ratings, what is said is of none.
    """
    return passes_behind(store.events.all(project_id, LabelsFrozen, golden_id), aspect)


def picked_labels(store: Store, project_id: str, golden_id: str, aspect: str) -> tuple[int, ...]:
    """Positions in a golden set whose labels of an aspect are no random draw, as far as passes gave them.

    Such are those of a pass that began where judges disagree or one is least sure; none once every item has a label.
    """
    if not np.isnan(_labels_on(store, golden_id, aspect)).any():
        return ()
    passes = {labelling.pass_id: labelling for labelling in list_passes(store, project_id)}
    picked: set[int] = set()
    later: set[int] = set()
    while frozen := store.events.all(project_id, LabelsFrozen, golden_id):
        labelling = passes.pop(frozen[-1].pass_id, None)
        if labelling is None:
            break
        now, before = (_labels_on(store, which, aspect) for which in (golden_id, labelling.golden_id))
        own = set(np.flatnonzero(~np.isnan(now) & (now != before)).tolist()) - later
        picked |= own if labelling.plan.order in PICKING else set()
        later |= own
        golden_id = labelling.golden_id
    return tuple(sorted(picked))


def seen_labels(store: Store, project_id: str, golden_id: str, judge: JudgeScores) -> tuple[int, ...]:
    """Positions in a golden set whose labels may have chosen or fitted what gives the scores of `judge`.

    They are `judge.seen`.  A version that was made before the golden set came, and was only measured on it, can have
    learnt from labels of earlier golden sets of the project alone: there it has seen the texts that had one.
    """
    version = judge_line(store, project_id, judge.aspect).of_run(judge.run_id)
    return judge.seen if version is None else learnt_from(store, project_id, golden_id, version, judge.seen)


def learnt_from(
    store: Store, project_id: str, golden_id: str, version: JudgeVersion, calibration: tuple[int, ...]
) -> tuple[int, ...]:
    """Those of the `calibration` items of a golden set whose labels may have chosen or fitted a version's scores."""
    if version.made.at >= store.goldens.get(golden_id).created_at:
        return calibration
    known: set[str] = set()
    for earlier in store.goldens.all(project_id):
        if earlier.created_at <= version.made.at:
            labels = _labels_on(store, earlier.golden_id, version.made.aspect)
            items = store.goldens.load(earlier.golden_id).items
            known |= {text_digest(items[k]) for k in np.flatnonzero(~np.isnan(labels)).tolist()}
    items = store.goldens.load(golden_id).items
    return tuple(k for k in calibration if text_digest(items[k]) in known)


def _labels_on(store: Store, golden_id: str, aspect: str) -> FloatArray:
    """(n_items,) labels, NaN for none, as where the golden set lacks the aspect."""
    golden = store.goldens.load(golden_id)
    return golden.labels(aspect) if aspect in golden.aspects else np.full(len(golden.items), np.nan)


@requires("reviewer")
def ratings_to_merge(store: Store, project_id: str, pass_id: str, combine: Combine) -> tuple[Mergeable, ...]:
    """Of each aspect of the pass for which `merge` of `freeze_labels` would make a difference, what it would add."""
    golden, alone = _frozen(store, project_id, pass_id, "", combine)
    _, merged = _frozen(store, project_id, pass_id, "", combine, merge=True)
    offered = []
    for aspect in get_pass(store, project_id, pass_id).aspects:
        apart, together = RatedBy.of(alone, aspect), RatedBy.of(merged, aspect)
        if apart != together:
            offered.append(Mergeable(aspect, rated_in(store, project_id, golden.digest, aspect), apart, together))
    return tuple(offered)


def _rated_in(store: Store, labelling: LabelPass, golden: GoldenSet, frozen: GoldenSet) -> tuple[RatedIn, ...]:
    """Of every aspect of the frozen golden set that has single ratings, the passes that they are of."""
    own, old = set(frozen.ratings) - set(golden.ratings), set(golden.ratings)
    origins = []
    for aspect in frozen.aspects:
        new = any(rating.aspect == aspect for rating in own)
        kept = any(rating.aspect == aspect and rating in old for rating in frozen.ratings)
        earlier = rated_in(store, labelling.project_id, golden.digest, aspect) if kept else ()
        if new or earlier:
            origins.append(RatedIn(aspect, tuple(dict.fromkeys((*earlier, *([labelling.name] if new else []))))))
    return tuple(origins)


@requires("reviewer")
def replaced_labels(store: Store, project_id: str, pass_id: str, combine: Combine) -> tuple[ReplacedLabel, ...]:
    """The golden labels that freezing with `combine` would replace by others."""
    return replaced(*_frozen(store, project_id, pass_id, "", combine))


def _frozen(
    store: Store, project_id: str, pass_id: str, name: str, combine: Combine, *, merge: bool = False
) -> tuple[GoldenSet, GoldenSet]:
    """The golden set that was labelled, and with the labels of the pass."""
    labelling = get_pass(store, project_id, pass_id)
    golden = store.goldens.load(labelling.golden_id)
    frozen = labelled_golden(
        golden,
        _labels(store, labelling, golden),
        labelling.plan.aspects,
        name=" ".join(name.split()) or f"{golden.name}, labelled",
        combine=combine,
        decided=decisions(store, project_id, pass_id),
        merge=merge,
    )
    return golden, frozen


def _labels(store: Store, labelling: LabelPass, golden: GoldenSet) -> list[Label]:
    """What everybody thinks now in the pass."""
    return labels_in(labelling, golden, store.labels.current(labelling.project_id, labelling.pass_id))
