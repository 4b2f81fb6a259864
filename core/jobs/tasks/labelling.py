"""Labelling passes: begin one, save labels, see agreement grow, adjudicate, freeze the result (desks: `desks`)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from core.errors import AccessError, NotFoundError, UsageError
from core.jobs.tasks.access import requires
from core.jobs.tasks.convert import moment
from core.jobs.tasks.triage import list_triage
from core.jobs.views.labelling import (
    AspectAgreement,
    HarvestView,
    OthersSaid,
    PassRequest,
    PassView,
)
from core.jobs.views.reviews import Triage
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
from core.labelling.plan import LabelAspect, LabelPlan, item_order
from core.records import GoldenSet
from core.store.codec import Packed, pack, unpack
from core.store.rows import EventRow, LabelRow, NewLabel
from core.store.store import Store

PASS, JOINED, ADJUDICATED = "labelling pass", "joined", "adjudicated"
REMARK = ""
"""Stands in an aspect's place for a comment that was typed before any label was given."""
_LONGEST_COMMENT = 5_000
_LONGEST_NAME = 120


@requires("reviewer")
def start_pass(store: Store, request: PassRequest) -> str:
    """Begin a labelling pass and return its id.

    UsageError for a plan that makes no sense, NotFoundError for an unknown project or golden set.
    """
    store.projects.get(request.project_id)
    golden = store.goldens.load(request.golden_id)
    name = " ".join(request.name.split())
    if not 1 <= len(name) <= _LONGEST_NAME:
        raise UsageError(f"A labelling pass has a name of 1 to {_LONGEST_NAME} characters.")
    plan = LabelPlan(
        aspects=request.aspects,
        positions=_order(store, request, golden),
        n_raters=request.n_raters,
        shared=request.shared,
        overlap=request.overlap,
        blind=request.blind,
        instructions=request.instructions.strip(),
    )
    pass_id = f"l{uuid.uuid4().hex[:12]}"
    body = {"did": f"began the labelling pass {name}", "name": name, "golden_id": request.golden_id}
    store.events.add(request.project_id, PASS, pass_id, store.actor, body | {"plan": pack(plan).body})
    return pass_id


@requires("viewer")
def list_passes(store: Store, project_id: str, golden_id: str | None = None) -> list[PassView]:
    """The project's labelling passes (of one golden set), newest first."""
    joined = store.events.all(project_id, JOINED)
    found = [_view(event, joined) for event in store.events.all(project_id, PASS)]
    return [one for one in reversed(found) if golden_id in (None, one.golden_id)]


@requires("viewer")
def get_pass(store: Store, project_id: str, pass_id: str) -> PassView:
    """NotFoundError for an unknown id."""
    found = store.events.all(project_id, (PASS, JOINED), pass_id)
    if not found:
        raise NotFoundError(f"There is no labelling pass {pass_id[:24]!r} in this project.")
    return _view(found[0], found[1:])


@requires("annotator")
def others_said(store: Store, project_id: str, pass_id: str, item_id: str) -> OthersSaid:
    """What other raters and the judges said of an item, where the pass shows it; AccessError where it is blind."""
    found = get_pass(store, project_id, pass_id)
    if found.plan.blind:
        raise AccessError(f"{found.name} is blind: what others said is shown to nobody who labels in it.")
    aspects = {one.aspect for one in found.plan.aspects}
    rows = {(row.rater, row.aspect): row.value for row in store.labels.history(project_id, found.golden_id, item_id)}
    place = store.goldens.load(found.golden_id).item_ids.index(item_id)
    shelf = [row.judge for row in store.judges.all(project_id, found.golden_id) if row.judge.aspect in aspects]
    return OthersSaid(
        tuple(
            (rater, aspect, value)
            for (rater, aspect), value in rows.items()
            if aspect in aspects and rater != store.actor.name
        ),
        tuple((one.name, one.aspect, float(one.values[place])) for one in shelf if not np.isnan(one.values[place])),
    )


@requires("annotator")
def save_label(
    store: Store,
    project_id: str,
    pass_id: str,
    item_id: str,
    values: Mapping[str, float | None],
    *,
    comment: str = "",
    form: str,
) -> None:
    """Keep what the person who acts says of an item: aspect → label, None = cannot tell; without any, a comment alone.

    `form` is the id of the form that was sent: sent twice it counts once.  Other raters' labels are never touched, and
    earlier ones of the same rater stay in the history.  UsageError for a label outside the scale, an aspect or item
    that is no part of the pass, or an endless comment.
    """
    rater = named_rater(store)
    found = get_pass(store, project_id, pass_id)
    golden = store.goldens.load(found.golden_id)
    ids = golden.item_ids
    if item_id not in ids or ids.index(item_id) not in found.plan.positions:
        raise UsageError(f"Item {item_id[:60]!r} is no part of {found.name}.")
    if len(comment) > _LONGEST_COMMENT:
        raise UsageError(f"A comment may have {_LONGEST_COMMENT:,} characters; this one has {len(comment):,}.")
    known = {one.aspect: one for one in found.plan.aspects}
    if (not values and not comment.strip()) or set(values) - set(known):
        raise UsageError(f"A label is for {', '.join(known)}; {', '.join(values) or 'nothing'} came.")
    for name, value in values.items():
        if value is not None and not known[name].scale.holds(value):
            raise UsageError(f"The label of {name} is {value:g}; the scale is {known[name].scale}.")
    new = [NewLabel(item_id, name, value, comment.strip()) for name, value in (values or {REMARK: None}).items()]
    store.labels.add(project_id, found.golden_id, rater, form, new)


@requires("reviewer")
def harvest(store: Store, project_id: str, pass_id: str) -> HarvestView:
    """A pass from above: who has done how much, agreement as it grew, and the items to decide.

    To decide are the items on which raters part, and those of the golden set that triage called mislabelled.
    """
    found = get_pass(store, project_id, pass_id)
    golden = store.goldens.load(found.golden_id)
    labels = _labels(store, found, golden)
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
    )


@requires("reviewer")
def adjudicate(
    store: Store, project_id: str, pass_id: str, item_id: str, *, aspect: str, value: float, reason: str, form: str
) -> None:
    """Decide the gold label of an item on which raters part; the raters' own labels stay as they are.

    UsageError for an item that the golden set does not have, a value outside the scale or an empty reason.
    """
    found = get_pass(store, project_id, pass_id)
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
def freeze_labels(store: Store, project_id: str, pass_id: str, *, name: str, combine: Combine = "replace") -> str:
    """A new golden set with the labels of a pass, its single ratings and its decisions; returns its id.

    The golden set that was labelled stays as it is.  UsageError when nobody has labelled anything.
    """
    found = get_pass(store, project_id, pass_id)
    golden = store.goldens.load(found.golden_id)
    frozen = labelled_golden(
        golden,
        _labels(store, found, golden),
        found.plan.aspects,
        name=" ".join(name.split()) or f"{golden.name}, labelled",
        combine=combine,
        decided=decisions(store, project_id, pass_id),
    )
    return store.goldens.add(project_id, frozen)


def named_rater(store: Store) -> str:
    """The name of who acts; UsageError when nobody said who they are."""
    if not store.actor.name.strip():
        raise UsageError("Say who you are first: labels are kept by rater. Pick a name in the menu.")
    return store.actor.name


# ── from rows to views ───────────────────────────────────────────────────────────────────────────────────────


def _order(store: Store, request: PassRequest, golden: GoldenSet) -> tuple[int, ...]:
    judges, ratings = [], None
    if request.order == "disagreement":
        judges = [row.judge for row in store.judges.all(request.project_id, request.golden_id, request.aspect)]
        rows = store.labels.current(request.project_id, request.golden_id)
        ratings = ratings_of(golden, [_label(row) for row in rows], request.aspect).values
    return item_order(golden, request.order, seed=request.seed, limit=request.limit, judges=judges, ratings=ratings)


def _view(event: EventRow, joined: Sequence[EventRow]) -> PassView:
    body: Mapping[str, Any] = event.body
    return PassView(
        pass_id=event.subject,
        project_id=event.project_id,
        golden_id=str(body["golden_id"]),
        name=str(body["name"]),
        plan=_plan(str(body["plan"])),
        author=event.actor,
        created_at=moment(event.created_at),
        raters=tuple(dict.fromkeys(one.actor for one in joined if one.subject == event.subject)),
    )


@lru_cache(maxsize=32)
def _plan(packed: str) -> LabelPlan:
    """A plan never changes, and every save reads it: the last few are handed out again."""
    return unpack(LabelPlan, Packed(packed))


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


def _labels(store: Store, found: PassView, golden: GoldenSet) -> list[Label]:
    """What everybody thinks now of the items and aspects of the pass."""
    items = {golden.items[k].item_id for k in found.plan.positions}
    aspects = {one.aspect for one in found.plan.aspects}
    rows = store.labels.current(found.project_id, found.golden_id)
    return [_label(row) for row in rows if row.item_id in items and row.aspect in aspects]


def _label(row: LabelRow) -> Label:
    return Label(row.rater, row.item_id, row.aspect, row.value, row.comment)


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
