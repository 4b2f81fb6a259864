"""Labelling passes: begin one, rate in it, stop (what a rater has to do: `desks`; what comes of it: `adjudication`)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from core.errors import AccessError, NotFoundError, UsageError
from core.kept import moment
from core.labelling.harvest import Label, ratings_of
from core.labelling.plan import LabelPlan, item_order
from core.projects.access import requires
from core.projects.earlier_labels import chosen_labels
from core.projects.views.labelling import OthersSaid, PassRequest, PassView, StillRating
from core.records import GoldenSet
from core.store.codec import Packed, pack, unpack
from core.store.rows import EventRow, LabelRow, NewLabel
from core.store.store import Store

PASS, JOINED, STOPPED = "labelling pass", "joined", "stopped rating"
REMARK = ""
"""Stands in an aspect's place for a comment, which is of the item and not of one label."""
_LONGEST_COMMENT = 5_000
_LONGEST_NAME = 120


@requires("reviewer")
def start_pass(store: Store, request: PassRequest) -> str:
    """Begin a labelling pass and return its id.

    UsageError for a plan that makes no sense or labels to take over that are not there, NotFoundError for an unknown
    project or golden set.
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
    taken = chosen_labels(store, request, [golden.items[k].item_id for k in plan.positions])
    pass_id = f"l{uuid.uuid4().hex[:12]}"
    did = f"began the labelling pass {name}"
    if taken:
        labels = "1 earlier label" if len(taken) == 1 else f"{len(taken):,} earlier labels"
        did += f" and took over {labels} of {', '.join(sorted({row.rater for row in taken}))}"
    body = {"did": did, "name": name, "golden_id": request.golden_id, "plan": pack(plan).body}
    store.events.add(request.project_id, PASS, pass_id, store.actor, body)
    store.labels.take_over(request.project_id, request.golden_id, pass_id, taken)
    return pass_id


@requires("viewer")
def list_passes(store: Store, project_id: str, golden_id: str | None = None) -> list[PassView]:
    """The project's labelling passes (of one golden set), newest first."""
    later = store.events.all(project_id, (JOINED, STOPPED))
    found = [_view(event, later) for event in store.events.all(project_id, PASS)]
    return [one for one in reversed(found) if golden_id in (None, one.golden_id)]


@requires("viewer")
def get_pass(store: Store, project_id: str, pass_id: str) -> PassView:
    """NotFoundError for an unknown id."""
    found = store.events.all(project_id, (PASS, JOINED, STOPPED), pass_id)
    if not found:
        raise NotFoundError(f"There is no labelling pass {pass_id[:24]!r} in this project.")
    return _view(found[0], found[1:])


@requires("annotator")
def others_said(store: Store, project_id: str, pass_id: str, item_id: str) -> OthersSaid:
    """What other raters of the pass and the judges said of an item, where it shows that; AccessError where blind."""
    found = get_pass(store, project_id, pass_id)
    if found.plan.blind:
        raise AccessError(f"{found.name} is blind: what others said is shown to nobody who labels in it.")
    aspects = {one.aspect for one in found.plan.aspects}
    rows = {(row.rater, row.aspect): row.value for row in store.labels.history(project_id, pass_id, item_id)}
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
    """Keep what the person who acts says of an item in a pass: aspect → label, None = cannot tell.

    `form` is the id of the form that was sent: sent twice it counts once.  Other raters' labels are never touched, and
    earlier ones of the same rater stay in the history.  UsageError for a label off the scale, an aspect or item that
    is no part of the pass, an endless comment, or somebody who has stopped rating in it.
    """
    found = get_pass(store, project_id, pass_id)
    known = {one.aspect: one for one in found.plan.aspects}
    if not values or set(values) - set(known):
        raise UsageError(f"A label is for {', '.join(known)}; {', '.join(values) or 'nothing'} came.")
    for name, value in values.items():
        if value is not None and not known[name].takes(value):
            steps = f" in steps of {known[name].scale.step:g}" if known[name].scale.step else ""
            raise UsageError(f"The label of {name} is {value:g}; the scale is {known[name].scale}{steps}.")
    new = [NewLabel(item_id, name, value, comment.strip()) for name, value in values.items()]
    _keep(store, found, new, form)


@requires("annotator")
def save_comment(store: Store, project_id: str, pass_id: str, item_id: str, comment: str, *, form: str) -> None:
    """Keep the person's comment on an item, in place of the one before; their labels stay as they are.

    `form` and errors as `save_label`.
    """
    _keep(store, get_pass(store, project_id, pass_id), [NewLabel(item_id, REMARK, None, comment.strip())], form)


def _keep(store: Store, found: PassView, new: Sequence[NewLabel], form: str) -> None:
    rater, ids = named_rater(store), store.goldens.load(found.golden_id).item_ids
    for label in new:
        if label.item_id not in ids or ids.index(label.item_id) not in found.plan.positions:
            raise UsageError(f"Item {label.item_id[:60]!r} is no part of {found.name}.")
        if len(label.comment) > _LONGEST_COMMENT:
            raise UsageError(
                f"A comment may have {_LONGEST_COMMENT:,} characters; this one has {len(label.comment):,}."
            )
    if rater in found.stopped:
        raise UsageError(f"You have stopped rating in {found.name}; nothing more is kept of you there.")
    store.labels.add(found.project_id, found.golden_id, found.pass_id, rater, new, form=form)


@requires("annotator")
def stop_rating(store: Store, project_id: str, pass_id: str) -> None:
    """The person who acts rates no more in a pass; what they said counts.  Once, and not to be undone.

    From then on they may see what others said.  UsageError for somebody who does not rate in it.
    """
    rater, found = named_rater(store), get_pass(store, project_id, pass_id)
    if rater not in found.raters:
        raise UsageError(f"{rater} does not rate in {found.name}.")
    form = f"stopped:{uuid.uuid5(uuid.NAMESPACE_OID, f'{pass_id}:{rater}').hex}"
    store.events.add(project_id, STOPPED, pass_id, store.actor, {"did": f"stopped rating in {found.name}"}, form=form)


@requires("viewer")
def still_rating(
    store: Store, project_id: str, golden_id: str, aspects: Sequence[str] | None = None
) -> list[StillRating]:
    """The passes over a golden set (and these aspects) in which the person who acts has items left to rate.

    Whoever does should see neither golden labels nor what others said of its items.
    """
    rater = store.actor.name
    rating = []
    for found in list_passes(store, project_id, golden_id) if rater else []:
        own = {one.aspect for one in found.plan.aspects}
        if rater not in found.raters or rater in found.stopped or (aspects is not None and not own & set(aspects)):
            continue
        items = store.goldens.load(golden_id).items
        said: dict[str, set[str]] = {}
        for row in store.labels.current(project_id, found.pass_id, rater):
            said.setdefault(row.item_id, set()).add(row.aspect)
        seat = found.raters.index(rater)
        left = [k for k in found.plan.assigned(seat) if not own <= said.get(items[k].item_id, set())]
        if left:
            rating.append(StillRating(found.pass_id, found.name, len(left)))
    return rating


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
        rows = store.labels.of_golden(request.project_id, request.golden_id)
        ratings = ratings_of(golden, [label_of(row) for row in rows], request.aspect).values
    return item_order(golden, request.order, seed=request.seed, limit=request.limit, judges=judges, ratings=ratings)


def _view(event: EventRow, later: Sequence[EventRow]) -> PassView:
    def actors(kind: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.actor for one in later if (one.kind, one.subject) == (kind, event.subject)))

    body: Mapping[str, Any] = event.body
    return PassView(
        pass_id=event.subject,
        project_id=event.project_id,
        golden_id=str(body["golden_id"]),
        name=str(body["name"]),
        plan=_plan(str(body["plan"])),
        author=event.actor,
        created_at=moment(event.created_at),
        raters=actors(JOINED),
        stopped=actors(STOPPED),
    )


@lru_cache(maxsize=32)
def _plan(packed: str) -> LabelPlan:
    """A plan never changes, and every save reads it: the last few are handed out again."""
    return unpack(LabelPlan, Packed(packed))


def label_of(row: LabelRow) -> Label:
    """What a saved row says."""
    return Label(row.rater, row.item_id, row.aspect, row.value, row.comment)
