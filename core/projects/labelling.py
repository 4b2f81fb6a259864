"""Labelling passes: begin one, join it, save labels in it, stop; what comes of it.

Out of a pass come progress and agreement, decisions where raters disagree, and a new golden set.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from core.errors import AccessError, NotFoundError, UsageError
from core.projects.roles import requires
from core.projects.triage import list_triage
from core.records import GoldenSet
from core.review.agreement import (
    Combine,
    PassSummary,
    ReplacedLabel,
    labelled_golden,
    labels_in,
    ratings_of,
    replaced,
    summary,
)
from core.review.log import given_reason
from core.review.passes import (
    REMARK,
    Adjudicated,
    AnnotationSession,
    EarlierLabels,
    Label,
    LabelPass,
    OthersSaid,
    PassEntry,
    PassRequest,
    RaterJoined,
    RaterStopped,
    StillRating,
    fitting,
    passes_from,
)
from core.review.plan import LabelAspect, LabelPlan, item_order
from core.store.store import Store

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
    taken = _chosen_labels(store, request, {golden.items[k].item_id for k in plan.positions})
    pass_id = f"l{uuid.uuid4().hex[:12]}"
    from_whom = tuple(sorted({label.rater for label in taken}))
    begun = LabelPass(name, request.golden_id, plan, len(taken), from_whom, subject=pass_id)
    store.events.add(request.project_id, begun, store.actor)
    store.labels.take_over(request.project_id, request.golden_id, pass_id, taken)
    return pass_id


def _order(store: Store, request: PassRequest, golden: GoldenSet) -> tuple[int, ...]:
    judges, ratings = [], None
    if request.order == "disagreement":
        judges = [row.judge for row in store.judges.all(request.project_id, request.golden_id, request.aspect)]
        labels = store.labels.of_golden(request.project_id, request.golden_id)
        ratings = ratings_of(golden, labels, request.aspect).values
    return item_order(golden, request.order, seed=request.seed, limit=request.limit, judges=judges, ratings=ratings)


def _chosen_labels(store: Store, request: PassRequest, item_ids: set[str]) -> list[Label]:
    """The labels that a request takes over, of these items alone.  UsageError where somebody is named who has none."""
    if not request.take_over:
        return []
    wanted = set(request.take_over)
    labels = fitting(store.labels.of_golden(request.project_id, request.golden_id), request.aspects)
    chosen = [label for label in labels if (label.pass_id, label.rater) in wanted]
    if missing := wanted - {(label.pass_id, label.rater) for label in chosen}:
        pass_id, rater = min(missing)
        raise UsageError(f"{rater} gave no labels in pass {pass_id[:24]!r} that this pass could take over.")
    return [label for label in chosen if label.item_id in item_ids]


def earlier_labels(
    store: Store, project_id: str, golden_id: str, aspects: Sequence[LabelAspect]
) -> tuple[EarlierLabels, ...]:
    """Who labelled how many items of the golden set on these aspects, pass by pass; what lies off a scale is no part.

    In the order in which they were given.
    """
    items: dict[tuple[str, str], set[str]] = {}
    for label in fitting(store.labels.of_golden(project_id, golden_id), aspects):
        items.setdefault((label.pass_id, label.rater), set()).add(label.item_id)
    return tuple(EarlierLabels(*which, len(labelled)) for which, labelled in items.items())


def list_passes(store: Store, project_id: str, golden_id: str | None = None) -> list[LabelPass]:
    """The project's labelling passes (of one golden set), newest first."""
    passes = passes_from(store.events.all(project_id, PassEntry))
    return [labelling for labelling in reversed(passes) if golden_id in (None, labelling.golden_id)]


def get_pass(store: Store, project_id: str, pass_id: str) -> LabelPass:
    """NotFoundError for an unknown id."""
    passes = passes_from(store.events.all(project_id, PassEntry, pass_id))
    if not passes:
        raise NotFoundError(f"There is no labelling pass {pass_id[:24]!r} in this project.")
    return passes[0]


# ── a rater in a pass ────────────────────────────────────────────────────────────────────────────────────────


@requires("annotator")
def join_pass(
    store: Store, project_id: str, pass_id: str, *, seen: AnnotationSession | None = None
) -> AnnotationSession:
    """What the person who acts has to rate in a pass, and what they have saved; the first call makes them a rater.

    `seen` is what an earlier call gave: only what was saved since is read then, so that a press costs the same on the
    first item and on the thousandth, and the same comes back where that is nothing.  UsageError when nobody said who
    they are.
    """
    rater = _named_rater(store)
    if seen is not None and (seen.pass_id, seen.rater) == (pass_id, rater):
        return _updated(store, project_id, seen)
    labelling = get_pass(store, project_id, pass_id)
    if rater not in labelling.raters:
        form = _once("joined", pass_id, rater)
        store.events.add(project_id, RaterJoined(labelling.name, subject=pass_id), store.actor, form=form)
        labelling = get_pass(store, project_id, pass_id)
    return _session(store, labelling, rater)


def _session(store: Store, labelling: LabelPass, rater: str) -> AnnotationSession:
    item_ids = store.goldens.load(labelling.golden_id).item_ids
    assigned = tuple(item_ids[k] for k in labelling.assigned(rater))
    return _updated(
        store, labelling.project_id, AnnotationSession(labelling.pass_id, rater, labelling.aspects, assigned)
    )


def _updated(store: Store, project_id: str, session: AnnotationSession) -> AnnotationSession:
    return session.updated(store.labels.since(project_id, session.pass_id, session.rater, session.version))


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
    labelling = get_pass(store, project_id, pass_id)
    if not values or set(values) - set(labelling.aspects):
        raise UsageError(f"A label is for {', '.join(labelling.aspects)}; {', '.join(values) or 'nothing'} came.")
    remark = Label(_named_rater(store), item_id, REMARK, None, comment.strip(), pass_id)
    _save(store, labelling, [replace(remark, aspect=aspect, value=value) for aspect, value in values.items()], form)


@requires("annotator")
def save_comment(store: Store, project_id: str, pass_id: str, item_id: str, comment: str, *, form: str) -> None:
    """Keep the person's comment on an item, in place of the one before; their labels stay as they are.

    `form` and errors as `save_label`.
    """
    remark = Label(_named_rater(store), item_id, REMARK, None, comment.strip(), pass_id)
    _save(store, get_pass(store, project_id, pass_id), [remark], form)


def _save(store: Store, labelling: LabelPass, labels: Sequence[Label], form: str) -> None:
    item_ids = store.goldens.load(labelling.golden_id).item_ids
    for label in labels:
        labelling.check(label, item_ids.index(label.item_id) if label.item_id in item_ids else None)
    store.labels.add(labelling.project_id, labelling.golden_id, labels, form=form)


@requires("annotator")
def stop_rating(store: Store, project_id: str, pass_id: str) -> None:
    """The person who acts rates no more in a pass; what they said counts.  Once, and not to be undone.

    From then on they may see what others said.  UsageError for somebody who does not rate in it.
    """
    rater, labelling = _named_rater(store), get_pass(store, project_id, pass_id)
    if rater not in labelling.raters:
        raise UsageError(f"{rater} does not rate in {labelling.name}.")
    form = _once("stopped", pass_id, rater)
    store.events.add(project_id, RaterStopped(labelling.name, subject=pass_id), store.actor, form=form)


def still_rating(
    store: Store, project_id: str, golden_id: str, aspects: Sequence[str] | None = None
) -> list[StillRating]:
    """The passes over a golden set (and these aspects) in which the person who acts has items left to rate.

    Whoever does should see neither golden labels nor what others said of its items.
    """
    rater = store.actor.name
    rating = []
    for labelling in list_passes(store, project_id, golden_id) if rater else []:
        concerned = aspects is None or {*labelling.aspects} & {*aspects}
        if not concerned or rater not in labelling.raters or rater in labelling.stopped:
            continue
        session = _session(store, labelling, rater)
        if n_open := len(session.assigned) - session.n_done:
            rating.append(StillRating(labelling.pass_id, labelling.name, n_open))
    return rating


@requires("annotator")
def others_said(store: Store, project_id: str, pass_id: str, item_id: str) -> OthersSaid:
    """What other raters of the pass and the judges said of an item, where it shows that; AccessError where blind."""
    labelling = get_pass(store, project_id, pass_id)
    if labelling.plan.blind:
        raise AccessError(f"{labelling.name} is blind: what others said is shown to nobody who labels in it.")
    newest = {(label.rater, label.aspect): label.value for label in store.labels.history(project_id, pass_id, item_id)}
    place = store.goldens.load(labelling.golden_id).item_ids.index(item_id)
    judges = [
        row.judge for row in store.judges.all(project_id, labelling.golden_id) if row.judge.aspect in labelling.aspects
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
            if judge.aspect in labelling.aspects and not np.isnan(judge.values[place])
        ),
    )


def _named_rater(store: Store) -> str:
    """The name of who acts; UsageError when nobody said who they are."""
    if not store.actor.name.strip():
        raise UsageError("Say who you are first: labels are kept by rater. Pick a name in the menu.")
    return store.actor.name


def _once(what: str, pass_id: str, rater: str) -> str:
    """The id of the form by which a rater does something in a pass that can be done once."""
    return f"{what}:{uuid.uuid5(uuid.NAMESPACE_OID, f'{pass_id}:{rater}').hex}"


# ── what comes of a pass ─────────────────────────────────────────────────────────────────────────────────────────


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
    return replaced(*_frozen(store, project_id, pass_id, "", combine))


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
    """What everybody thinks now in the pass."""
    return labels_in(labelling, golden, store.labels.current(labelling.project_id, labelling.pass_id))
