"""Labelling passes: begin one, join it, save labels in it, stop; what comes of it.

Out of a pass come progress and agreement, decisions where raters disagree, and a new golden set.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from core.comparison.judged import by_need, judged_items
from core.comparison.sureness import expected_errors
from core.data.verdict_files.scored import ScoredRows
from core.errors import AccessError, NotFoundError, UsageError
from core.project_records import GoldenSummary
from core.projects.judge_line import judge_line
from core.projects.judges_shown import JudgesShown, judges_shown
from core.projects.roles import requires
from core.records import FloatArray, GoldenSet
from core.review.agreement import PassSummary, ratings_of
from core.review.passes import (
    REMARK,
    RESTORED,
    WITHDRAWN,
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
    TeamProgress,
    fitting,
    last_step,
    passes_from,
)
from core.review.plan import LabelAspect, LabelPlan, item_order
from core.stats.labels_needed import STEPS, LabelPilot, LabelPlanning, plan_labels
from core.stats.system_means import system_means
from core.store.store import Store
from core.texts import visible_name

_LONGEST_NAME = 120


@requires("reviewer")
def start_pass(store: Store, request: PassRequest) -> str:
    """Begin a labelling pass and return its id.

    UsageError for a plan that makes no sense or labels to take over that are not there, NotFoundError for an unknown
    project or golden set.
    """
    store.projects.get(request.project_id)
    golden = store.goldens.load(request.golden_id)
    name = " ".join(visible_name(request.name).split())
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
        order=request.order,
    )
    taken = _chosen_labels(store, request, {golden.items[k].item_id for k in plan.positions})
    pass_id = f"l{uuid.uuid4().hex[:12]}"
    from_whom = tuple(sorted({label.rater for label in taken}))
    begun = LabelPass(name, request.golden_id, plan, len(taken), from_whom, subject=pass_id)

    def begin() -> None:
        store.events.add(request.project_id, begun, store.actor)
        store.labels.take_over(request.project_id, request.golden_id, pass_id, taken)

    store.together(begin)
    return pass_id


def _order(store: Store, request: PassRequest, golden: GoldenSet) -> tuple[int, ...]:
    if request.order in ("random", "file"):
        return item_order(golden, request.order, seed=request.seed, limit=request.limit)
    shown = judges_shown(store, request.project_id, request.golden_id, request.aspect)
    if request.order == "widest":
        needed = _needed(golden, request.aspect, shown, request.seed)
        return item_order(golden, "widest", seed=request.seed, limit=request.limit, needed=needed)
    if request.order == "unsure":
        expected = _expected(golden, request.aspect, shown)
        return item_order(golden, "unsure", seed=request.seed, limit=request.limit, expected=expected)
    judges = [row.judge for row in shown.entries]
    ratings = ratings_of(golden, store.labels.of_golden(request.project_id, request.golden_id), request.aspect).values
    return item_order(golden, "disagreement", seed=request.seed, limit=request.limit, judges=judges, ratings=ratings)


def _expected(golden: GoldenSet, aspect: str, shown: JudgesShown) -> tuple[FloatArray, FloatArray] | None:
    """How far the version in use may err on each item, else the oldest judge of which that is known; and the labels."""
    if aspect not in golden.aspects:
        return None
    rows = sorted(shown.entries, key=lambda row: row.judge_id != shown.own)
    errors = (expected_errors(golden, aspect, row.judge) for row in rows)
    known = next((own for own in errors if not np.isnan(own).all()), None)
    return None if known is None else (known, golden.labels(aspect))


def _needed(golden: GoldenSet, aspect: str, shown: JudgesShown, seed: int) -> tuple[str, ...]:
    """The ids of the judged items without a label, those first that shorten the widest interval of a system's mean."""
    rows = sorted(shown.entries, key=lambda row: row.judge_id != shown.own)
    if not rows or golden.kind == "pair" or aspect not in golden.aspects or not any(i.system_id for i in golden.items):
        return ()
    judge = rows[0].judge
    judged = judged_items(golden, aspect, ScoredRows(golden.item_ids, judge.upward), seen=judge.seen)
    return by_need(judged, system_means(judged.items), seed=seed)


def label_planning(
    store: Store,
    project_id: str,
    golden: GoldenSummary,
    aspect: str,
    *,
    n_items: int,
    n_ratings: int,
    n_sources: int = 0,
) -> LabelPlanning:
    """What `n_items` labels from `n_ratings` ratings would tell, by the judge in use where it was measured on this set.

    They are of `n_sources` sources; 0: of as many as a random draw has on average.
    """
    n_raters = max(1, round(n_ratings / max(1, n_items)))
    return _planned(golden, n_items, n_raters, _pilot(store, project_id, golden, aspect), n_sources)


def planning_curve(
    store: Store, project_id: str, golden: GoldenSummary, aspect: str, *, now: PassSummary, n_ratings: int
) -> tuple[LabelPlanning, ...]:
    """The same at several numbers of items up to those of a pass, those labelled `now` among them.

    There are as many ratings an item as now, and at other numbers as many sources as a random draw has on average.
    """
    pilot, n_raters = _pilot(store, project_id, golden, aspect), max(1, round(n_ratings / max(1, now.n_touched)))
    counts = sorted({now.n_touched, now.n_items, *(n for n in STEPS if n < now.n_items)})
    return tuple(_planned(golden, n, n_raters, pilot, now.n_sources * (n == now.n_touched)) for n in counts)


def _planned(
    golden: GoldenSummary, n_items: int, n_raters: int, pilot: LabelPilot | None, n_sources: int = 0
) -> LabelPlanning:
    n_items = max(1, min(n_items, golden.n_items))
    per_source = golden.n_items / max(1, golden.n_sources)
    n_sources = n_sources or round(golden.n_sources * (1.0 - (1.0 - n_items / golden.n_items) ** per_source))
    return plan_labels(n_items, max(1, min(n_sources, n_items)), n_raters, pilot=pilot)


def _pilot(store: Store, project_id: str, golden: GoldenSummary, aspect: str) -> LabelPilot | None:
    line = judge_line(store, project_id, aspect)
    version = line.default or (line.versions[-1] if line.versions else None)
    measured = None if version is None else version.on(golden.golden_id)
    held_out = None if measured is None else measured.held_out
    if held_out is None or held_out.interval is None or held_out.level == "system":
        return None
    usual = max(1, round(held_out.n * golden.n_sources / golden.n_items))
    return LabelPilot(held_out, held_out.n, held_out.interval.n_sources or usual)


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
def undo_label(store: Store, project_id: str, pass_id: str, *, form: str) -> str | None:
    """Take back the newest label that the person who acts gave in a pass, None where there is none to take back.

    Returns its item, which has on that aspect what it had before: an earlier label, or none.  Called again it takes
    back the one before.  All of it stays in the history.  `form` and errors as `save_label`.
    """
    rater, labelling = _named_rater(store), get_pass(store, project_id, pass_id)
    said = store.labels.since(project_id, pass_id, rater, 0)
    sent = next((label for label in said if label.form in (WITHDRAWN + form, RESTORED + form)), None)
    if sent is not None:
        return sent.item_id
    if (step := last_step(said)) is None:
        return None
    comment = next(label.comment for label in reversed(said) if label.item_id == step.label.item_id)
    undone = replace(step.before or replace(step.label, value=None), comment=comment, taken_from="")
    _save(store, labelling, [undone], (RESTORED if step.before else WITHDRAWN) + form)
    return undone.item_id


def team_progress(store: Store, project_id: str, pass_id: str) -> TeamProgress:
    """How far everybody together is in a pass; says nothing of who said what."""
    labelling = get_pass(store, project_id, pass_id)
    given = Counter(
        (label.rater, label.item_id)
        for label in store.labels.current(project_id, pass_id)
        if label.aspect in labelling.aspects
    )
    done = Counter(rater for (rater, _), n in given.items() if n == len(labelling.aspects))
    planned = sum(len(labelling.assigned(rater)) for rater in labelling.raters)
    return TeamProgress(done, max(planned, labelling.plan.n_ratings))


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


def _named_rater(store: Store) -> str:
    """The name of who acts; UsageError when nobody said who they are."""
    if not store.actor.name.strip():
        raise UsageError("Enter your name first. Labels are stored by rater.")
    return store.actor.name


def _once(what: str, pass_id: str, rater: str) -> str:
    """The id of the form by which a rater does something in a pass that can be done once."""
    return f"{what}:{uuid.uuid5(uuid.NAMESPACE_OID, f'{pass_id}:{rater}').hex}"
