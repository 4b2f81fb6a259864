"""Labelling passes for raters: who rates which items, what levels mean, labels and marked words, joining and stopping.

The first `shared` items go to every rater, so that their agreement shows early; each further item goes to `overlap`
of them, in turns.  The plan is fixed when the pass begins, so that nobody's work moves while they do it.
"""

from __future__ import annotations

import math
import re
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from core.errors import NotFoundError, UsageError
from core.records import Anchor, Scale
from core.store.labels import REMARK, RESTORED, WITHDRAWN, Label
from core.store.log import Entry
from core.store.store import Store, requires

Order = Literal["random", "file", "unsure"]
ORDERS: tuple[Order, ...] = ("random", "file", "unsure")
PICKING = ("unsure", "disagreement")
"""Orders, one of an earlier version, whose first items are no random draw: their labels say nothing of a mean."""
MOST_RATERS = 100
MOST_KEYS = 11
"""A scale of up to this many steps is labelled with single keys."""


@dataclass(frozen=True, slots=True)
class LabelAspect:
    """What to rate: an aspect, its scale, and a sentence on what it means."""

    aspect: str
    scale: Scale
    definition: str = ""

    def takes(self, value: float) -> bool:
        """Whether a rater may give `value`: within the scale, and on one of its steps where it has steps."""
        step = self.scale.step
        if not self.scale.holds(value):
            return False
        return not step or abs((value - self.scale.low) / step - round((value - self.scale.low) / step)) < 1e-9

    def choices(self) -> tuple[float, ...]:
        """The labels to choose from, lowest first; empty for a continuous scale (a number is typed)."""
        step = self.scale.step
        if step is None or step <= 0:
            return ()
        count = round((self.scale.high - self.scale.low) / step) + 1
        return tuple(self.scale.low + k * step for k in range(count)) if count <= MOST_KEYS else ()


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """A labelling pass: `positions` (into the golden set) in the order of rating, for `n_raters` people.

    `order` is how `start_pass` finds the positions.
    """

    aspects: tuple[LabelAspect, ...]
    positions: tuple[int, ...] = ()
    n_raters: int = 3
    shared: int = 20
    overlap: int = 1
    instructions: str = ""
    order: str = "random"  # an earlier version had more of them

    def __post_init__(self) -> None:
        names = [aspect.aspect.strip() for aspect in self.aspects]
        if not all(names) or not 0 < len(set(names)) == len(names):
            raise UsageError("A labelling pass rates at least one aspect, each with its own name.")
        if any(not aspect.scale.low < aspect.scale.high for aspect in self.aspects):
            raise UsageError("A scale runs from a lower to a higher number.")
        if not 1 <= self.n_raters <= MOST_RATERS:
            raise UsageError(f"A pass is for 1 to {MOST_RATERS} raters, not {self.n_raters}.")
        if not 1 <= self.overlap <= self.n_raters or self.shared < 0:
            raise UsageError(f"Each item goes to 1 to {self.n_raters} raters, and 0 or more to all of them.")

    def assigned(self, rater: int) -> tuple[int, ...]:
        """Positions that a rater (0, 1, … in the order of joining) rates, in order.

        Who joins beyond `n_raters` gets the items of an earlier rater and adds overlap.
        """
        rater %= self.n_raters
        head = self.positions[: self.shared]
        tail = (
            position
            for k, position in enumerate(self.positions[self.shared :])
            if (rater - k * self.overlap) % self.n_raters < self.overlap
        )
        return (*head, *tail)


_LONGEST_COMMENT = 5_000
LONGEST_ANCHOR, MOST_ANCHORS = 200, 100


# ── what is logged of a pass ─────────────────────────────────────────────────────────────────────────────────


class PassEntry(Entry):
    """An event of a labelling pass (the subject): somebody began, joined or left it."""


@dataclass(frozen=True)
class RaterJoined(PassEntry):
    kind = "joined"
    does = "joined {0.name}"
    name: str


class RaterStopped(RaterJoined):
    kind = "stopped rating"
    does = "stopped rating in {0.name}"


@dataclass(frozen=True)
class Adjudicated(Entry):
    """The gold label of an item on which the raters of a pass, the subject, disagree."""

    kind = "adjudicated"
    does = "decided a label"
    item_id: str
    aspect: str
    value: float
    reason: str


@dataclass(frozen=True)
class LabelsFrozen(Entry):
    """The labels of a pass frozen into a golden set, the subject; `rated_in` names the pass per aspect with ratings."""

    kind = "labels frozen"
    does = "froze the labels of {0.name}"
    name: str
    pass_id: str
    rated_in: Mapping[str, str] = field(default_factory=dict)


def rated_in(store: Store, project_id: str, golden_id: str, aspect: str) -> str:
    """The name of the labelling pass whose single ratings of an aspect a golden set holds; "" is its file.

    Ceiling and Alt-Test on the golden set use these ratings.
    """
    entries = store.events.all(project_id, LabelsFrozen, golden_id)
    return entries[-1].rated_in.get(aspect, "") if entries else ""


# ── a pass ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class LabelPass(PassEntry):
    """A labelling pass over a golden set, as it was begun.

    `raters` are those who joined, in that order, `stopped` those of them who rate no more.
    """

    kind = "labelling pass"
    does = "began the labelling pass {0.name}"
    name: str
    golden_id: str
    plan: LabelPlan
    raters: tuple[str, ...] = field(default=(), kw_only=True)
    stopped: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def pass_id(self) -> str:
        return self.subject

    @property
    def aspects(self) -> tuple[str, ...]:
        """The names of the aspects to rate."""
        return tuple(planned.aspect for planned in self.plan.aspects)

    def assigned(self, rater: str) -> tuple[int, ...]:
        """Positions in the golden set that somebody who joined has to rate, in order."""
        return self.plan.assigned(self.raters.index(rater))


@dataclass(frozen=True)
class AnnotationSession:
    """One rater's work in a pass: the `assigned` item ids in order, and what they have said of them so far.

    `labels` maps (item id, aspect) to the newest label (value None: cannot tell), `comments` item id to the comment;
    `version` is the number of the newest label in it.
    """

    pass_id: str
    rater: str
    aspects: tuple[str, ...]
    assigned: tuple[str, ...]
    labels: Mapping[tuple[str, str], Label] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    version: int = 0

    @cached_property
    def done(self) -> frozenset[str]:
        """The items that have a label on every aspect."""
        n_given = Counter(item_id for item_id, _ in self.labels)
        return frozenset(item_id for item_id, n in n_given.items() if n == len(self.aspects))

    @property
    def first_open(self) -> str | None:
        """The first item that is not done; None when all are."""
        return next((item_id for item_id in self.assigned if item_id not in self.done), None)

    def values(self, item_id: str) -> dict[str, float | None]:
        """Aspect → the label of an item, done or not."""
        given = {aspect: self.labels.get((item_id, aspect)) for aspect in self.aspects}
        return {aspect: label.value for aspect, label in given.items() if label is not None}

    def updated(self, new: Sequence[Label]) -> AnnotationSession:
        """The session with newer labels of the rater, oldest first; itself if there are none."""
        if not new:
            return self
        assigned, labels, comments = set(self.assigned), dict(self.labels), dict(self.comments)
        for label in new:
            if label.item_id in assigned and label.aspect in (REMARK, *self.aspects):
                comments[label.item_id] = label.comment
                labels.pop((label.item_id, label.aspect), None)
                if label.aspect != REMARK and not label.is_withdrawn:
                    labels[label.item_id, label.aspect] = label
        return replace(self, labels=labels, comments=comments, version=new[-1].number)


def list_passes(store: Store, project_id: str, golden_id: str | None = None) -> list[LabelPass]:
    """The project's labelling passes (of one golden set), newest first, with those who joined and stopped."""
    entries, passes = store.events.all(project_id, PassEntry), dict[str, LabelPass]()
    for entry in entries:
        if isinstance(entry, LabelPass):
            passes[entry.pass_id] = entry
        elif (labelling := passes.get(entry.subject)) is None:
            continue
        elif isinstance(entry, RaterStopped):
            passes[entry.subject] = replace(labelling, stopped=(*labelling.stopped, entry.actor))
        else:
            raters = tuple(dict.fromkeys((*labelling.raters, entry.actor)))
            passes[entry.subject] = replace(labelling, raters=raters)
    return [labelling for labelling in reversed(passes.values()) if golden_id in (None, labelling.golden_id)]


def get_pass(store: Store, project_id: str, pass_id: str) -> LabelPass:
    """NotFoundError for an unknown id."""
    labelling = next((each for each in list_passes(store, project_id) if each.pass_id == pass_id), None)
    if labelling is None:
        raise NotFoundError(f"There is no labelling pass {pass_id[:24]!r} in this project.")
    return labelling


# ── a rater in a pass ────────────────────────────────────────────────────────────────────────────────────────


@requires("annotator")
def join_pass(
    store: Store, project_id: str, pass_id: str, *, seen: AnnotationSession | None = None
) -> AnnotationSession:
    """The user's items and saved labels in a pass; the first call makes them a rater.

    `seen` is what an earlier call gave: only what was saved since is read then, so that a press costs the same on the
    first item and on the thousandth, and the same comes back where that is nothing.  UsageError when nobody said who
    they are.
    """
    rater = _named_rater(store)
    if seen is not None and (seen.pass_id, seen.rater) == (pass_id, rater):
        return seen.updated(store.labels.since(project_id, pass_id, rater, seen.version))
    labelling = get_pass(store, project_id, pass_id)
    if rater not in labelling.raters:
        form = _once("joined", pass_id, rater)
        store.events.add(project_id, RaterJoined(labelling.name, subject=pass_id), store.actor, form=form)
        labelling = get_pass(store, project_id, pass_id)
    return _session(store, labelling, rater)


def _session(store: Store, labelling: LabelPass, rater: str) -> AnnotationSession:
    item_ids = store.goldens.load(labelling.golden_id).item_ids
    assigned = tuple(item_ids[k] for k in labelling.assigned(rater))
    session = AnnotationSession(labelling.pass_id, rater, labelling.aspects, assigned)
    return session.updated(store.labels.since(labelling.project_id, session.pass_id, rater, 0))


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
    """Save the user's labels of an item in a pass: aspect → label, None = cannot tell.

    The comment takes the place of the one before; without `values` it alone is kept.  `form` is the id of the form that
    was sent: sent twice it counts once.  Other raters' labels are never touched, and earlier ones of the same rater
    stay in the history.  UsageError for a label off the scale, an aspect or item that is no part of the pass, an
    endless comment, or somebody who has not joined it or has stopped rating in it.
    """
    labelling = get_pass(store, project_id, pass_id)
    if set(values) - set(labelling.aspects):
        raise UsageError(f"A label is for {', '.join(labelling.aspects)}; got {', '.join(values)}.")
    remark = Label(_named_rater(store), item_id, REMARK, None, comment.strip(), pass_id)
    labels = [replace(remark, aspect=aspect, value=value) for aspect, value in values.items()]
    _save(store, labelling, labels or [remark], form)


def _save(store: Store, labelling: LabelPass, labels: Sequence[Label], form: str) -> None:
    """Keep labels of one item; UsageError for what cannot be saved in this pass."""
    golden, planned = store.goldens.load(labelling.golden_id), {each.aspect: each for each in labelling.plan.aspects}
    item_ids = {golden.item_ids[k] for k in labelling.plan.positions}
    for label in labels:
        aspect = planned.get(label.aspect)
        if aspect is not None and label.value is not None and not aspect.takes(label.value):
            steps = f" in steps of {aspect.scale.step:g}" if aspect.scale.step else ""
            raise UsageError(f"The label of {aspect.aspect} is {label.value:g}; the scale is {aspect.scale}{steps}.")
        if label.item_id not in item_ids:
            raise UsageError(f"Item {label.item_id[:60]!r} is not in {labelling.name}.")
        if (length := len(label.comment)) > _LONGEST_COMMENT:
            raise UsageError(f"A comment may have {_LONGEST_COMMENT:,} characters; this one has {length:,}.")
        if label.rater not in labelling.raters:
            raise UsageError(f"Join {labelling.name} first. Only its raters can save labels there.")
        if label.rater in labelling.stopped:
            raise UsageError(f"You have stopped rating in {labelling.name}; no more labels of yours are stored there.")
    store.labels.add(labelling.project_id, labelling.golden_id, labels, form=form)


@requires("annotator")
def undo_label(store: Store, project_id: str, pass_id: str, *, form: str) -> str | None:
    """Undo the user's newest label in a pass; None if there is none.

    Returns its item, which has on that aspect what it had before: an earlier label, or none.  Called again it takes
    back the one before.  All of it stays in the history.  `form` and errors as `save_label`.
    """
    rater, labelling = _named_rater(store), get_pass(store, project_id, pass_id)
    said = store.labels.since(project_id, pass_id, rater, 0)
    sent = next((label for label in said if label.form in (WITHDRAWN + form, RESTORED + form)), None)
    if sent is not None:
        return sent.item_id
    # labels that are not undone, each with the one before it; a comment is no such step
    steps: list[tuple[Label, Label | None]] = []
    now: dict[tuple[str, str], Label | None] = {}
    for label in [label for label in said if label.aspect != REMARK]:
        which = (label.item_id, label.aspect)
        if label.undoes:
            del steps[-1:]
        else:
            steps.append((label, now.get(which)))
        now[which] = None if label.is_withdrawn else label
    if not steps:
        return None
    last, before = steps[-1]
    comment = next(label.comment for label in reversed(said) if label.item_id == last.item_id)
    undone = replace(before or replace(last, value=None), comment=comment)
    _save(store, labelling, [undone], (RESTORED if before else WITHDRAWN) + form)
    return undone.item_id


@requires("annotator")
def stop_rating(store: Store, project_id: str, pass_id: str) -> None:
    """Stop the user's rating in a pass for good; their labels count.

    From then on they may see what others said.  UsageError for somebody who does not rate in it.
    """
    rater, labelling = _named_rater(store), get_pass(store, project_id, pass_id)
    if rater not in labelling.raters:
        raise UsageError(f"{rater} does not rate in {labelling.name}.")
    form = _once("stopped", pass_id, rater)
    store.events.add(project_id, RaterStopped(labelling.name, subject=pass_id), store.actor, form=form)


def still_rating(
    store: Store, project_id: str, golden_id: str, aspects: Sequence[str] | None = None
) -> list[tuple[LabelPass, int]]:
    """The passes over a golden set (and these aspects) in which the person who acts has items left, and how many.

    Whoever does should see neither golden labels nor what others said of its items.
    """
    rater = store.actor.name
    rating = []
    for labelling in list_passes(store, project_id, golden_id) if rater else []:
        concerned = aspects is None or {*labelling.aspects} & {*aspects}
        if not concerned or rater not in labelling.raters or rater in labelling.stopped:
            continue
        session = _session(store, labelling, rater)
        if n_open := len(session.assigned) - len(session.done):
            rating.append((labelling, n_open))
    return rating


def _named_rater(store: Store) -> str:
    """The name of who acts; UsageError when nobody said who they are."""
    if not store.actor.name.strip():
        raise UsageError("Enter your name first. Labels are stored by rater.")
    return store.actor.name


def _once(what: str, pass_id: str, rater: str) -> str:
    """The id of the form by which a rater does something in a pass that can be done once."""
    return f"{what}:{uuid.uuid5(uuid.NAMESPACE_OID, f'{pass_id}:{rater}').hex}"


# ── what the levels of a scale mean ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class AnchorsSet(Entry):
    """The anchors of an aspect of a golden set, the subject, as a person wrote them; the newest entry counts."""

    kind = "anchors"
    does = "wrote what the levels of the scale mean"
    aspect: str
    anchors: tuple[Anchor, ...]

    def __post_init__(self) -> None:
        values = [anchor.value for anchor in self.anchors]
        if len(values) > MOST_ANCHORS or len({*values}) < len(values) or not all(map(math.isfinite, values)):
            raise UsageError(f"A scale has at most {MOST_ANCHORS} anchors, each for its own level.")
        longest = max((len(anchor.text) for anchor in self.anchors), default=0)
        if longest > LONGEST_ANCHOR:
            raise UsageError(f"An anchor may have {LONGEST_ANCHOR} characters; one of these has {longest:,}.")

    @property
    def texts(self) -> dict[float, str]:
        """Level → what it means."""
        return {anchor.value: anchor.text for anchor in self.anchors if anchor.text}


def get_anchors(store: Store, project_id: str, golden_id: str, aspect: str) -> AnchorsSet:
    """The meaning of each level of the aspect; empty if nobody has written it.

    A golden set that was frozen from a labelling pass keeps what was written of the one that was labelled, until
    somebody writes anew.  `number` is that of the newest entry about the golden set, of any aspect (0 for none):
    `set_anchors` takes it as `expected`.
    """
    newest = store.events.all(project_id, AnchorsSet, golden_id)[-1:]
    number, seen = newest[0].number if newest else 0, set[str]()
    while golden_id not in seen:
        seen.add(golden_id)
        for entry in reversed(store.events.all(project_id, AnchorsSet, golden_id)):
            if entry.aspect == aspect:
                return replace(entry, number=number)
        if frozen := store.events.all(project_id, LabelsFrozen, golden_id):
            golden_id = get_pass(store, project_id, frozen[-1].pass_id).golden_id
    return AnchorsSet(aspect, (), number=number)


@requires("reviewer")
def set_anchors(
    store: Store,
    project_id: str,
    golden_id: str,
    aspect: str,
    texts: Mapping[float, str],
    *,
    expected: int | None = None,
) -> AnchorsSet:
    """Write what the levels of an aspect mean, in place of what was written before; an empty text is none.

    `expected` is the `number` of the anchors that the person saw: ConflictError where somebody was faster.  UsageError
    for a text that is too long.
    """
    store.projects.get(project_id)
    written = tuple(Anchor(float(value), " ".join(text.split())) for value, text in sorted(texts.items()))
    entry = AnchorsSet(aspect, tuple(anchor for anchor in written if anchor.text), subject=golden_id)
    store.events.add(project_id, entry, store.actor, expected=expected)
    return get_anchors(store, project_id, golden_id, aspect)


# ── words that raters mark ───────────────────────────────────────────────────────────────────────────────────

MOST_SPANS, LONGEST_SPAN = 50, 2_000


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Words of the judged text: `text[start:end] == words`, counted in characters."""

    start: int
    end: int
    words: str

    def __post_init__(self) -> None:
        if self.start < 0 or not 0 < self.end - self.start <= LONGEST_SPAN or len(self.words) != self.end - self.start:
            raise UsageError(f"A highlight has 1 to {LONGEST_SPAN:,} characters of the text.")


@dataclass(frozen=True)
class Highlighted(Entry):
    """All that a rater, the actor, has marked in an item of a pass, the subject; their newest entry counts."""

    kind = "highlights"
    does = "marked words of an item"
    item_id: str
    spans: tuple[Span, ...]

    def __post_init__(self) -> None:
        if len(self.spans) > MOST_SPANS:
            raise UsageError(f"An item may have {MOST_SPANS} highlights by one rater; got {len(self.spans)}.")


def find_span(text: str, words: str, near: int) -> Span:
    """The place of `words` in `text` that begins nearest to `near`.  UsageError where they do not stand there."""
    if not words.strip():
        raise UsageError("Select words of the text first, then mark them.")
    starts = [found.start() for found in re.finditer(f"(?={re.escape(words)})", text)]
    if not starts:
        raise UsageError("These words are not in the text. Select words of the judged text only.")
    start = min(starts, key=lambda start: abs(start - near))
    return Span(start, start + len(words), words)


def my_highlights(store: Store, project_id: str, pass_id: str) -> dict[str, tuple[Span, ...]]:
    """Item id → the words of its text that the person who acts has marked in a pass."""
    entries = store.events.all(project_id, Highlighted, pass_id)
    marked = {entry.item_id: entry.spans for entry in entries if entry.actor == store.actor.name}
    return {item_id: spans for item_id, spans in marked.items() if spans}


@requires("reviewer")
def item_highlights(store: Store, project_id: str, pass_id: str, item_id: str) -> dict[str, tuple[Span, ...]]:
    """Rater → the words that they have marked in an item."""
    entries = store.events.all(project_id, Highlighted, pass_id)
    marked = {entry.actor: entry.spans for entry in entries if entry.item_id == item_id}
    return {rater: spans for rater, spans in marked.items() if spans}


@requires("annotator")
def mark_words(
    store: Store, project_id: str, pass_id: str, item_id: str, words: str, *, near: int = 0, form: str
) -> tuple[Span, ...]:
    """Mark words of the judged text, where they stand nearest to character `near`; all marked there come back.

    UsageError for words that the text does not have, an item that is no part of the pass, or somebody who has no part
    in it.  `form` as `save_label`.
    """
    labelling, rater = get_pass(store, project_id, pass_id), store.actor.name
    golden = store.goldens.load(labelling.golden_id)
    position = golden.item_ids.index(item_id) if item_id in golden.item_ids else None
    if position not in labelling.plan.positions or rater not in labelling.raters or rater in labelling.stopped:
        raise UsageError(f"{rater or 'Nobody'} does not rate item {item_id[:60]!r} in {labelling.name}.")
    new = find_span(golden.items[position].target, words, near)
    before = my_highlights(store, project_id, pass_id).get(item_id, ())
    kept = [span for span in before if not (new.start <= span.start and span.end <= new.end)]  # else marked twice
    entry = Highlighted(item_id, tuple(sorted([*kept, new])), subject=pass_id)
    store.events.add(project_id, entry, store.actor, form=form)
    return entry.spans


@requires("annotator")
def unmark_words(
    store: Store, project_id: str, pass_id: str, item_id: str, span: Span, *, form: str
) -> tuple[Span, ...]:
    """Take a highlight away; what is left comes back."""
    before = my_highlights(store, project_id, pass_id).get(item_id, ())
    entry = Highlighted(item_id, tuple(known for known in before if known != span), subject=pass_id)
    store.events.add(project_id, entry, store.actor, form=form)
    return entry.spans
