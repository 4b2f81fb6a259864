"""What comes of a labelling pass: progress and agreement, decisions where raters disagree, and a new golden set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from core.errors import AccessError, UsageError
from core.labelling.harvest import (
    Combine,
    Label,
    Parting,
    alpha_interval,
    growth,
    labelled_golden,
    partings,
    ratings_of,
)
from core.labelling.plan import LabelAspect
from core.projects.access import requires
from core.projects.labelling import get_pass, label_of, still_rating
from core.projects.triage import list_triage
from core.projects.views.labelling import AspectAgreement, HarvestView, PassView, ReplacedLabel
from core.projects.views.reviews import Triage
from core.records import GoldenSet
from core.store.rows import LabelRow
from core.store.store import Store

ADJUDICATED = "adjudicated"


@requires("reviewer")
def harvest(store: Store, project_id: str, pass_id: str) -> HarvestView:
    """A pass from above: who has done how much, agreement as it grew, and the items to decide.

    To decide are the items on which raters part, and those of the golden set that triage called mislabelled.
    """
    found = get_pass(store, project_id, pass_id)
    golden = store.goldens.load(found.golden_id)
    rows = _rows(store, found, golden)
    labels = [label_of(row) for row in rows]
    taken = {(row.rater, row.taken_from, row.item_id) for row in rows if row.taken_from}
    decided = decisions(store, project_id, pass_id)
    flagged = _flagged(store, found, golden)
    queue = (*partings(golden, labels, found.plan.aspects), *(_parting(labels, *which) for which in flagged))
    queue = tuple({(one.aspect, one.item_id): one for one in reversed(queue)}.values())[::-1]
    items_of: dict[str, set[str]] = {}
    for one in labels:
        items_of.setdefault(one.rater, set()).add(one.item_id)
    return HarvestView(
        done={rater: len(items_of.get(rater, ())) for rater in dict.fromkeys((*found.raters, *items_of))},
        n_items=len(found.plan.positions),
        n_touched=len(set().union(*items_of.values())) if items_of else 0,
        agreement=tuple(_agreement(golden, labels, one, found.plan.positions) for one in found.plan.aspects),
        queue=tuple(one for one in queue if (one.aspect, one.item_id) not in decided),
        decided=decided,
        flagged=flagged,
        assigned={rater: len(found.plan.assigned(seat)) for seat, rater in enumerate(found.raters)},
        taken=Counter((rater, pass_id) for rater, pass_id, _ in taken),
    )


@requires("reviewer")
def adjudicate(
    store: Store, project_id: str, pass_id: str, item_id: str, *, aspect: str, value: float, reason: str, form: str
) -> None:
    """Decide the gold label of an item on which raters part; the raters' own labels stay as they are.

    UsageError for an item that the golden set does not have, a value outside the scale or an empty reason; AccessError
    for whoever has items left to rate (`still_rating`).
    """
    found = get_pass(store, project_id, pass_id)
    if rating := still_rating(store, project_id, found.golden_id, [one.aspect for one in found.plan.aspects]):
        left = f"{rating[0].n_open:,} items left to rate in {rating[0].name}"
        raise AccessError(f"You have {left}; whoever still rates does not decide.")
    if item_id not in store.goldens.load(found.golden_id).item_ids:
        raise UsageError(f"Item {item_id[:60]!r} is no part of the golden set of {found.name}.")
    scale = next((one.scale for one in found.plan.aspects if one.aspect == aspect), None)
    if scale is None or not scale.holds(value):
        raise UsageError(f"The decision on {aspect} is {value:g}; the scale is {scale or 'not known'}.")
    if not reason.strip():
        raise UsageError("A decision needs a reason, so that people can follow it later.")
    body = {"did": "decided a label", "item_id": item_id, "aspect": aspect, "value": value, "reason": reason.strip()}
    store.events.add(project_id, ADJUDICATED, pass_id, store.actor, body, form=form)


@requires("viewer")
def decisions(store: Store, project_id: str, pass_id: str) -> dict[tuple[str, str], float]:
    """(aspect, item id) → adjudicated value; a later decision replaces an earlier one."""
    events = store.events.all(project_id, ADJUDICATED, pass_id)
    return {(str(one.body["aspect"]), str(one.body["item_id"])): float(one.body["value"]) for one in events}


@requires("reviewer", "froze the labels of a pass")
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
    return store.goldens.add(project_id, frozen)


@requires("reviewer")
def replaced_labels(store: Store, project_id: str, pass_id: str, combine: Combine) -> tuple[ReplacedLabel, ...]:
    """The golden labels that freezing with `combine` would replace by others."""
    golden, frozen = _frozen(store, project_id, pass_id, "", combine)
    return tuple(
        ReplacedLabel(item.item_id, name, before, after)
        for name, labels in golden.aspects.items()
        for item, before, after in zip(golden.items, labels.values, frozen.aspects[name].values, strict=True)
        if before is not None and after is not None and before != after
    )


def _frozen(store: Store, project_id: str, pass_id: str, name: str, combine: Combine) -> tuple[GoldenSet, GoldenSet]:
    """The golden set that was labelled, and with the labels of the pass."""
    found = get_pass(store, project_id, pass_id)
    golden = store.goldens.load(found.golden_id)
    frozen = labelled_golden(
        golden,
        [label_of(row) for row in _rows(store, found, golden)],
        found.plan.aspects,
        name=" ".join(name.split()) or f"{golden.name}, labelled",
        combine=combine,
        decided=decisions(store, project_id, pass_id),
    )
    return golden, frozen


def _flagged(store: Store, found: PassView, golden: GoldenSet) -> dict[tuple[str, str], Triage]:
    """(aspect, item id) → the triage that called the item's label wrong."""
    known = set(golden.item_ids)
    return {
        (one.aspect, item_id): triage
        for one in found.plan.aspects
        for item_id, triage in list_triage(store, found.project_id, found.golden_id, one.aspect).items()
        if triage.verdict == "label wrong" and item_id in known
    }


def _parting(labels: Sequence[Label], aspect: str, item_id: str) -> Parting:
    """An item to decide on though its raters, if any, do not part."""
    said = tuple(one for one in labels if (one.aspect, one.item_id) == (aspect, item_id) and one.value is not None)
    return Parting(item_id, aspect, said, 0.0)


def _rows(store: Store, found: PassView, golden: GoldenSet) -> list[LabelRow]:
    """What everybody thinks now of the items and aspects of the pass, each label with its rater's newest comment."""
    items = {golden.items[k].item_id for k in found.plan.positions}
    aspects = {one.aspect for one in found.plan.aspects}
    rows = store.labels.current(found.project_id, found.pass_id)
    comments = {(row.rater, row.item_id): row.comment for row in rows}
    return [
        replace(row, comment=comments[row.rater, row.item_id])
        for row in rows
        if row.item_id in items and row.aspect in aspects
    ]


def _agreement(
    golden: GoldenSet, labels: Sequence[Label], aspect: LabelAspect, order: Sequence[int]
) -> AspectAgreement:
    from core.stats import alpha_metric, krippendorff_alpha

    found = ratings_of(golden, labels, aspect.aspect)
    metric = alpha_metric(aspect.scale)
    known = ~np.isnan(found.values)
    value = krippendorff_alpha(found.values, metric).value if found.raters else None
    n_double = int((known.sum(axis=0) >= 2).sum())
    return AspectAgreement(
        aspect=aspect.aspect,
        alpha=value,
        alpha_metric=metric,
        n_double=n_double,
        n_labels=int(known.sum()),
        growth=growth(found, aspect, order),
        interval=alpha_interval(golden, found, aspect),
    )
