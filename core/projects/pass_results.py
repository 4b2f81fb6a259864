"""What comes of a labelling pass: agreement, progress, decisions where raters disagree, and a new golden set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from core.data.split import text_digest
from core.errors import AccessError, UsageError
from core.projects.judge_line import JudgeVersion, judge_line
from core.projects.labelling import (
    PICKING,
    Adjudicated,
    LabelAspect,
    LabelPass,
    LabelsFrozen,
    OthersSaid,
    get_pass,
    list_passes,
    rated_in,
    still_rating,
)
from core.projects.misaligned_items import Triage, list_triage
from core.projects.project_judges import judges_shown
from core.projects.roles import given_reason, requires
from core.records import AspectLabels, FloatArray, GoldenSet, Interval, JudgeScores, Rating
from core.stats import RaterTable, alpha_metric, krippendorff_alpha
from core.stats.raters import alpha_interval
from core.store.labels import Label
from core.store.store import Store

Combine = Literal["fill", "decided", "replace"]
Decided = Mapping[tuple[str, str], float]
"""(aspect, item id) → adjudicated value."""
GROWTH_POINTS = 20


def ratings_of(golden: GoldenSet, labels: Sequence[Label], aspect: str) -> RaterTable:
    """The labels of one aspect over the golden set's items, raters in the order of their first label.

    Labels of items that the golden set does not have are left out.
    """
    position = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    known = [label for label in labels if label.aspect == aspect and label.item_id in position]
    own = [label for label in known if label.value is not None]
    raters = tuple(dict.fromkeys(label.rater for label in own))
    values = np.full((len(raters), len(position)), np.nan)
    for label in own:
        values[raters.index(label.rater), position[label.item_id]] = label.value
    return RaterTable(raters, values)


# ── agreement ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class AspectAgreement:
    """How raters agree on an aspect so far; `alpha` None is undefined, `n_double` items have two labels or more.

    `growth` holds (n, alpha of the first n doubly rated items).  `interval` is None where alpha is undefined or the
    items come from too few sources.
    """

    aspect: str
    alpha: float | None
    alpha_metric: str
    n_double: int
    n_labels: int
    growth: tuple[tuple[int, float | None], ...]
    interval: Interval | None = None


def agreement(golden: GoldenSet, labels: Sequence[Label], aspect: LabelAspect, order: Sequence[int]) -> AspectAgreement:
    """Agreement on an aspect, and how it came about; `order` are the positions of the items in the order of rating."""
    ratings, metric = ratings_of(golden, labels, aspect.aspect), alpha_metric(aspect.scale)
    double = set(ratings.rated_twice.tolist())
    there = [position for position in order if position in double]
    ends = np.unique(np.linspace(1, len(there), min(GROWTH_POINTS, len(there))).round().astype(int)) if there else ()
    return AspectAgreement(
        aspect=aspect.aspect,
        alpha=krippendorff_alpha(ratings.values, metric).value if ratings.raters else None,
        alpha_metric=metric,
        n_double=len(double),
        n_labels=int(ratings.rated.sum()),
        growth=tuple((int(end), krippendorff_alpha(ratings.values[:, there[:end]], metric).value) for end in ends),
        interval=alpha_interval(ratings, aspect.scale, golden.source_codes),
    )


# ── items to decide, and progress ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An item on which raters disagree on an aspect: who said what, how far apart they are in steps of the scale."""

    item_id: str
    aspect: str
    labels: tuple[Label, ...]
    steps_apart: float


def disagreements(
    golden: GoldenSet, labels: Sequence[Label], aspects: Sequence[LabelAspect]
) -> tuple[Disagreement, ...]:
    """Items whose raters lie more than a step apart (a tenth of the range where there are no steps).

    Furthest apart first, relative to the scale; on a scale of two steps any difference counts.
    """
    by_item = _by_item(labels)
    by_distance: list[tuple[float, Disagreement]] = []
    for aspect in aspects:
        span = aspect.scale.high - aspect.scale.low
        step = aspect.scale.step or span / 10
        for item in golden.items:
            own = by_item.get((aspect.aspect, item.item_id), [])
            values = [label.value for label in own if label.value is not None]
            apart = max(values) - min(values) if len(values) > 1 else 0.0
            binary = span <= step and apart > 0
            if apart > step + 1e-9 or binary:
                by_distance.append((apart / span, Disagreement(item.item_id, aspect.aspect, tuple(own), apart / step)))
    return tuple(disagreement for _, disagreement in sorted(by_distance, key=lambda pair: -pair[0]))


def _by_item(labels: Sequence[Label]) -> dict[tuple[str, str], list[Label]]:
    """(aspect, item id) → its labels, those without a value left out."""
    by_item: dict[tuple[str, str], list[Label]] = {}
    for label in labels:
        if label.value is not None:
            by_item.setdefault((label.aspect, label.item_id), []).append(label)
    return by_item


@dataclass(frozen=True)
class PassSummary:
    """A pass from above: progress by rater (name → items done), agreement by aspect, and what is to be decided.

    `n_touched` of its `n_items` have a label, of `n_sources` sources.
    `queue` holds first where raters disagree, then what triage called mislabelled; `flagged` maps (aspect, item id) →
    that triage, `decided` the same → the adjudicated value.  `assigned` maps rater → items they have to rate.
    """

    done: Mapping[str, int]
    n_items: int
    n_touched: int
    n_sources: int
    agreement: tuple[AspectAgreement, ...]
    queue: tuple[Disagreement, ...]
    decided: Decided
    flagged: Mapping[tuple[str, str], Triage]
    assigned: Mapping[str, int]


# ── a new golden set ─────────────────────────────────────────────────────────────────────────────────────────


def labelled_golden(
    golden: GoldenSet,
    labels: Sequence[Label],
    aspects: Sequence[LabelAspect],
    *,
    name: str,
    combine: Combine = "fill",
    decided: Decided | None = None,
) -> GoldenSet:
    """A new golden set with these labels: single ratings kept, gold = their mean or what was `decided`.

    Golden labels stay with "fill", which only fills gaps; "decided" puts decisions in their place, "replace" decisions
    and new labels.  Single ratings that were there before stay only where none of the new ones counts.  UsageError when
    nothing was labelled or decided.
    """
    if not decided and not any(label.value is not None for label in labels):
        raise UsageError("Nobody has given a label yet, so there is nothing to freeze.")
    gold = dict(golden.aspects)
    ratings = list(golden.ratings)
    for aspect in aspects:
        means = np.ma.masked_invalid(ratings_of(golden, labels, aspect.aspect).values).mean(axis=0)
        new: list[float | None] = means.tolist()  # None without a rating
        old = golden.aspects.get(aspect.aspect)
        before = old.values if old is not None else (None,) * len(golden.items)
        agreed = [(decided or {}).get((aspect.aspect, item.item_id)) for item in golden.items]
        order = {"fill": (before, agreed, new), "decided": (agreed, before, new), "replace": (agreed, new, before)}
        values = tuple(
            next((value for value in three if value is not None), None) for three in zip(*order[combine], strict=True)
        )
        if values != before:
            gold[aspect.aspect] = AspectLabels(
                aspect.aspect, replace(aspect.scale, given=True), values, old is not None and old.ranks
            )
        taken = {
            item.item_id
            for item, a, b in zip(golden.items, new, before, strict=True)
            if a is not None and (combine == "replace" or b is None)
        }
        own = [
            Rating(label.item_id, label.rater, aspect.aspect, label.value, label.comment)
            for label in labels
            if label.aspect == aspect.aspect and label.value is not None and label.item_id in taken
        ]
        if own:
            ratings = [rating for rating in ratings if rating.aspect != aspect.aspect]
        ratings += own
    return replace(golden, name=name, aspects=gold, ratings=tuple(ratings))


@requires("reviewer")
def pass_summary(store: Store, project_id: str, pass_id: str) -> PassSummary:
    """A pass from above: who has done how much, agreement as it grew, and the items to decide.

    To decide are the items on which raters disagree, and those of the golden set that triage called mislabelled.
    """
    labelling = get_pass(store, project_id, pass_id)
    golden = store.goldens.load(labelling.golden_id)
    labels, decided = _labels(store, labelling, golden), decisions(store, project_id, pass_id)
    known = set(golden.item_ids)
    flagged = {
        (aspect, item_id): triage
        for aspect in labelling.aspects
        for item_id, triage in list_triage(store, project_id, labelling.golden_id, aspect).items()
        if triage.verdict == "label wrong" and item_id in known
    }
    by_item = _by_item(labels)
    queue = {(each.aspect, each.item_id): each for each in disagreements(golden, labels, labelling.plan.aspects)}
    for aspect, item_id in flagged:
        own = tuple(by_item.get((aspect, item_id), ()))
        queue.setdefault((aspect, item_id), Disagreement(item_id, aspect, own, steps_apart=0.0))
    items_of: dict[str, set[str]] = {rater: set() for rater in labelling.raters}
    for label in labels:
        items_of.setdefault(label.rater, set()).add(label.item_id)
    labelled = {label.item_id for label in labels}
    touched = [k for k in labelling.plan.positions if golden.items[k].item_id in labelled]
    return PassSummary(
        done={rater: len(items) for rater, items in items_of.items()},
        n_items=len(labelling.plan.positions),
        n_touched=len(touched),
        n_sources=np.unique(golden.source_codes[touched]).size,
        agreement=tuple(
            agreement(golden, labels, aspect, labelling.plan.positions) for aspect in labelling.plan.aspects
        ),
        queue=tuple(disagreement for which, disagreement in queue.items() if which not in decided),
        decided=decided,
        flagged=flagged,
        assigned={rater: len(labelling.assigned(rater)) for rater in labelling.raters},
    )


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
        (rated, n_open), *_ = rating
        raise AccessError(f"You have {n_open:,} items left to rate in {rated.name}. Finish them before you decide.")
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
def freeze_labels(store: Store, project_id: str, pass_id: str, *, name: str, combine: Combine = "fill") -> str:
    """A new golden set with the labels of a pass, its single ratings and its decisions; returns its id.

    Golden labels are kept unless `combine` says otherwise.  The golden set that was labelled stays as it is.
    UsageError when nobody has labelled anything, or nothing would change.
    """
    golden, frozen = _frozen(store, project_id, pass_id, name, combine)
    if frozen.aspects == golden.aspects:
        raise UsageError(
            "Every item that was labelled or decided has a golden label already, and those are kept, so freezing would "
            "change nothing. Choose to replace golden labels, or label items that have none."
        )
    labelling = get_pass(store, project_id, pass_id)
    origins = {}
    for aspect in frozen.aspects:
        ratings = {rating for rating in frozen.ratings if rating.aspect == aspect}
        if ratings - set(golden.ratings):
            origins[aspect] = labelling.name
        elif ratings:
            origins[aspect] = rated_in(store, project_id, golden.digest, aspect)

    def keep() -> str:
        golden_id = store.goldens.add(project_id, frozen)
        store.events.add(project_id, LabelsFrozen(labelling.name, pass_id, origins, subject=golden_id), store.actor)
        return golden_id

    return store.together(keep)


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
            labels = _labels_on(store, earlier.golden_id, version.aspect)
            items = store.goldens.load(earlier.golden_id).items
            known |= {text_digest(items[k]) for k in np.flatnonzero(~np.isnan(labels)).tolist()}
    items = store.goldens.load(golden_id).items
    return tuple(k for k in calibration if text_digest(items[k]) in known)


def _labels_on(store: Store, golden_id: str, aspect: str) -> FloatArray:
    """(n_items,) labels, NaN for none, as where the golden set lacks the aspect."""
    golden = store.goldens.load(golden_id)
    return golden.labels(aspect) if aspect in golden.aspects else np.full(len(golden.items), np.nan)


@requires("reviewer")
def replaced_labels(
    store: Store, project_id: str, pass_id: str, combine: Combine
) -> tuple[tuple[str, str, float, float], ...]:
    """(item id, aspect, before, after) of the golden labels that freezing with `combine` would replace."""
    golden, frozen = _frozen(store, project_id, pass_id, "", combine)
    return tuple(
        (item.item_id, name, before, after)
        for name, labels in golden.aspects.items()
        for item, before, after in zip(golden.items, labels.values, frozen.aspects[name].values, strict=True)
        if before is not None and after is not None and before != after
    )


def _frozen(store: Store, project_id: str, pass_id: str, name: str, combine: Combine) -> tuple[GoldenSet, GoldenSet]:
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
    )
    return golden, frozen


def _labels(store: Store, labelling: LabelPass, golden: GoldenSet) -> list[Label]:
    """What everybody thinks now of the items of the pass, each label with its rater's newest comment."""
    now = store.labels.current(labelling.project_id, labelling.pass_id)
    items = {golden.items[k].item_id for k in labelling.plan.positions}
    comments = {(label.rater, label.item_id): label.comment for label in now}
    return [
        replace(label, comment=comments[label.rater, label.item_id])
        for label in now
        if label.item_id in items and label.aspect in labelling.aspects
    ]


@requires("annotator")
def others_said(store: Store, project_id: str, pass_id: str, item_id: str) -> OthersSaid:
    """What other raters of the pass and the judges said of an item.

    AccessError where the pass is blind, and in any other before the person who acts has rated the item themselves.
    """
    labelling = get_pass(store, project_id, pass_id)
    if labelling.plan.blind:
        raise AccessError(f"{labelling.name} is blind: what others said is shown to nobody who labels in it.")
    newest: dict[tuple[str, str], float | None] = {}
    for label in store.labels.history(project_id, pass_id, item_id):
        newest.pop((label.rater, label.aspect), None)
        if not label.is_withdrawn:
            newest[label.rater, label.aspect] = label.value
    if any((store.actor.name, aspect) not in newest for aspect in labelling.aspects):
        raise AccessError("What others said of this item is shown once you have rated it.")
    place = store.goldens.load(labelling.golden_id).item_ids.index(item_id)
    judges = [
        row.judge
        for aspect in labelling.aspects
        for row in judges_shown(store, project_id, labelling.golden_id, aspect).entries
    ]
    return OthersSaid(
        tuple(
            (rater, aspect, value)
            for (rater, aspect), value in newest.items()
            if aspect in labelling.aspects and rater != store.actor.name
        ),
        tuple(
            (judge.name, judge.aspect, float(judge.values[place]))
            for judge in judges
            if not np.isnan(judge.values[place])
        ),
    )
