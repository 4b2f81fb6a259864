"""Labelling passes, in which raters label the items of a golden set.

All raters get the same first items, so that their agreement can be measured early. The further items are divided among
the raters when the pass starts (`LabelPlan`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Literal

from core.errors import NotFoundError, UsageError
from core.records import Anchor, GoldenSet, Scale
from core.store.labels import REMARK, WITHDRAWN, Label
from core.store.log import Entry
from core.store.store import Store, requires

MOST_RATERS = 100
MOST_KEYS = 11
"""Maximum number of steps of a scale that is labelled with single keys."""


@dataclass(frozen=True, slots=True)
class LabelAspect:
    """An aspect to rate, with its scale and a one-sentence definition."""

    aspect: str
    scale: Scale
    definition: str = ""

    def takes(self, value: float) -> bool:
        """Whether a label is on the scale (and on a step, if the scale has steps)."""
        low, step = self.scale.low, self.scale.step
        return self.scale.holds(value) and (not step or abs(math.remainder(value - low, step)) < 1e-9 * step)

    def choices(self) -> tuple[float, ...]:
        """The labels to choose from, lowest first; empty if raters type a number."""
        low, high, step = self.scale.low, self.scale.high, self.scale.step
        count = round((high - low) / step) + 1 if step else 0
        return tuple(low + k * step for k in range(count)) if step and count <= MOST_KEYS else ()


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """Plan of a labelling pass.

    Attributes:
        positions: Positions of the items in the golden set, in the order of rating. Set by `start_pass`.
        shared: Number of items at the start that all raters get.
        overlap: Number of raters who get each further item.
        order: "file" for the order of the golden set; otherwise random.
    """

    aspects: tuple[LabelAspect, ...]
    positions: tuple[int, ...] = ()
    n_raters: int = 3
    shared: int = 20
    overlap: int = 1
    instructions: str = ""
    order: str = "random"

    def __post_init__(self) -> None:
        names = [aspect.aspect.strip() for aspect in self.aspects]
        if not all(names) or not 0 < len(set(names)) == len(names):
            raise UsageError("A labelling pass must have at least one aspect, and each aspect needs a unique name.")
        if any(not aspect.scale.low < aspect.scale.high for aspect in self.aspects):
            raise UsageError("The lower end of a scale must be below its upper end.")
        if not 1 <= self.overlap <= self.n_raters <= MOST_RATERS or self.shared < 0:
            raise UsageError(
                f"A pass can have 1 to {MOST_RATERS} raters. Assign each item to at least one rater, "
                "and to no more raters than the pass has."
            )

    def assigned(self, rater: int) -> tuple[int, ...]:
        """Return the positions of a rater's items, in order.

        Raters are numbered from 0 in the order of joining. Raters beyond `n_raters` get the items of an earlier rater.
        """
        head, tail = self.positions[: self.shared], self.positions[self.shared :]
        turn = (rater - k * self.overlap for k in range(len(tail)))
        return (*head, *(position for position, k in zip(tail, turn, strict=True) if k % self.n_raters < self.overlap))


LONGEST_ANCHOR = 200
"""Maximum length of a level description on screens, in characters."""


# ── log entries of a pass ──────────────────────────────────────────────────────────────────────────────────────


class PassEntry(Entry):
    """A log entry about a labelling pass. The subject is the pass."""


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
    """A log entry: a user's decision on the label of an item. The subject is the labelling pass."""

    kind = "adjudicated"
    does = "decided on a label"
    item_id: str
    aspect: str
    value: float
    reason: str


@dataclass(frozen=True)
class LabelsFrozen(Entry):
    """A log entry: the labels of a pass were saved as a new golden set (the subject)."""

    kind = "labels frozen"
    does = "froze the labels of {0.name}"
    name: str
    pass_id: str


# ── passes ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class LabelPass(PassEntry):
    """A labelling pass over a golden set. `raters` are in order of joining; `stopped` lists the raters who left."""

    kind = "labelling pass"
    does = "started the labelling pass {0.name}"
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
        """Return the positions of the rater's items in the golden set, in order."""
        return self.plan.assigned(self.raters.index(rater))


@dataclass(frozen=True)
class AnnotationSession:
    """The work of one rater in a labelling pass.

    Attributes:
        assigned: Ids of the rater's items, in order.
        labels: Maps (item id, aspect) to the newest label. A label with the value None means "cannot tell".
    """

    pass_id: str
    rater: str
    aspects: tuple[str, ...]
    assigned: tuple[str, ...]
    labels: Mapping[tuple[str, str], Label]
    comments: Mapping[str, str]

    @cached_property
    def done(self) -> frozenset[str]:
        """The ids of items that have a label on every aspect."""
        n_given = Counter(item_id for item_id, _ in self.labels)
        return frozenset(item_id for item_id, n in n_given.items() if n == len(self.aspects))

    @property
    def first_open(self) -> str | None:
        """The id of the first unfinished item; None when all are done."""
        return next((item_id for item_id in self.assigned if item_id not in self.done), None)

    def values(self, item_id: str) -> dict[str, float | None]:
        """Return the labels of an item by aspect, without the aspects that have no label."""
        keys = ((item_id, aspect) for aspect in self.aspects)
        return {key[1]: self.labels[key].value for key in keys if key in self.labels}


def list_passes(store: Store, project_id: str, golden_id: str | None = None) -> list[LabelPass]:
    """List the labelling passes of a project, or of one golden set, newest first."""
    passes: dict[str, LabelPass] = {}
    for entry in store.events.all(project_id, PassEntry):
        labelling = passes.get(entry.subject)
        if isinstance(entry, LabelPass):
            passes[entry.pass_id] = entry
        elif labelling is not None and isinstance(entry, RaterStopped):
            passes[entry.subject] = replace(labelling, stopped=(*labelling.stopped, entry.actor))
        elif labelling is not None and entry.actor not in labelling.raters:
            passes[entry.subject] = replace(labelling, raters=(*labelling.raters, entry.actor))
    return [labelling for labelling in reversed(passes.values()) if golden_id in (None, labelling.golden_id)]


def get_pass(store: Store, project_id: str, pass_id: str) -> LabelPass:
    """Return a labelling pass by its id. Raises NotFoundError if it is unknown."""
    for labelling in list_passes(store, project_id):
        if labelling.pass_id == pass_id:
            return labelling
    raise NotFoundError(f"Labelling pass {pass_id[:24]!r} not found in this project. Choose a pass of this project.")


def frozen_from(store: Store, project_id: str, golden_id: str) -> Iterator[tuple[str, LabelPass]]:
    """Yield the passes that produced a golden set and its predecessors, as (golden set id, pass), newest first."""
    passes: dict[str, LabelPass] | None = None
    while frozen := store.events.all(project_id, LabelsFrozen, golden_id):
        if passes is None:
            passes = {labelling.pass_id: labelling for labelling in list_passes(store, project_id)}
        labelling = passes.pop(frozen[-1].pass_id, None)  # each pass once, because an imported log may contain a cycle
        if labelling is None:
            return
        yield golden_id, labelling
        golden_id = labelling.golden_id


# ── a rater in a pass ──────────────────────────────────────────────────────────────────────────────────────────


@requires("annotator")
def join_pass(store: Store, project_id: str, pass_id: str) -> AnnotationSession:
    """Return the user's items and labels in a pass. The first call makes the user a rater of the pass.

    Raises UsageError if the user has no name.
    """
    rater, labelling = named_user(store), get_pass(store, project_id, pass_id)
    if rater not in labelling.raters:
        store.events.add(project_id, RaterJoined(labelling.name, subject=pass_id), store.actor)
        labelling = get_pass(store, project_id, pass_id)
    return _session(store, labelling, rater)


def _session(store: Store, labelling: LabelPass, rater: str) -> AnnotationSession:
    item_ids = store.goldens.load(labelling.golden_id).item_ids
    assigned = dict.fromkeys(item_ids[k] for k in labelling.assigned(rater))
    labels: dict[tuple[str, str], Label] = {}
    comments: dict[str, str] = {}
    for label in store.labels.history(labelling.project_id, labelling.pass_id, rater):
        if label.item_id in assigned:
            comments[label.item_id] = label.comment
            labels.pop((label.item_id, label.aspect), None)
            if label.aspect in labelling.aspects and not label.is_withdrawn:
                labels[label.item_id, label.aspect] = label
    return AnnotationSession(labelling.pass_id, rater, labelling.aspects, tuple(assigned), labels, comments)


def named_user(store: Store) -> str:
    """Return the name of the user. Raises UsageError if there is none."""
    if not store.actor.name.strip():
        raise UsageError("Enter your name first. It is saved with your labels and votes.")
    return store.actor.name


def _rater_of(store: Store, labelling: LabelPass, item_id: str) -> str:
    """Return the user's name. Raises UsageError if the user does not rate in the pass, or the item is not in it."""
    rater, item_ids = named_user(store), store.goldens.load(labelling.golden_id).item_ids
    if rater not in labelling.raters or rater in labelling.stopped:
        raise UsageError(
            f"You aren't a rater in {labelling.name}, or you have stopped rating. Only the raters of a pass can save "
            "labels."
        )
    if item_id not in {item_ids[k] for k in labelling.plan.positions}:
        raise UsageError(f"Item {item_id[:60]!r} isn't in {labelling.name}. Choose an item of this pass.")
    return rater


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
    """Save the user's labels of an item, and the comment on it. Earlier labels stay in the history.

    Args:
        values: Maps each aspect to its label; None means "cannot tell". If empty, only the comment is saved.
        comment: Replaces the earlier comment.
        form: Id of the call. A second call with the same id changes nothing.

    Raises:
        UsageError: An aspect or item is unknown, a label is off the scale, or the user does not rate in the pass.
    """
    labelling = get_pass(store, project_id, pass_id)
    rater = _rater_of(store, labelling, item_id)
    if set(values) - set(labelling.aspects):
        raise UsageError(f"Labels in this pass must be for {', '.join(labelling.aspects)}; got {', '.join(values)}.")
    remark = Label(rater, item_id, REMARK, None, comment.strip(), pass_id)
    for aspect in labelling.plan.aspects:
        value = values.get(aspect.aspect)
        if value is not None and not aspect.takes(value):
            steps = f" in steps of {aspect.scale.step:g}" if aspect.scale.step else ""
            raise UsageError(
                f"The label for {aspect.aspect} is {value:g}, but the scale is {aspect.scale}{steps}. Choose a label "
                "on the scale."
            )
    labels = [replace(remark, aspect=aspect, value=value) for aspect, value in values.items()]
    store.labels.add(project_id, labelling.golden_id, labels or [remark], form=form)


@requires("annotator")
def undo_label(store: Store, project_id: str, pass_id: str, *, form: str) -> str | None:
    """Undo the user's newest label in a pass. Return the id of its item, or None if there is no label to undo.

    Another call undoes the label before that. All labels stay in the history. `form` and errors are as in `save_label`.
    """
    rater, labelling, undoing = store.actor.name, get_pass(store, project_id, pass_id), WITHDRAWN + form
    said = store.labels.history(project_id, pass_id, rater)
    if sent := next((label for label in said if label.form == undoing), None):  # a repeated call with the same form
        return sent.item_id
    given = [label for label in store.labels.current(project_id, pass_id, rater) if label.aspect != REMARK]
    if not given:
        return None
    last = given[-1]
    comment = next(label.comment for label in reversed(said) if label.item_id == last.item_id)
    _rater_of(store, labelling, last.item_id)
    store.labels.add(project_id, labelling.golden_id, [replace(last, value=None, comment=comment)], form=undoing)
    return last.item_id


@requires("annotator")
def stop_rating(store: Store, project_id: str, pass_id: str) -> None:
    """End the user's rating in a pass for good. The user's labels still count, and other raters' labels become visible.

    Does nothing if the user does not rate in the pass.
    """
    rater, labelling = store.actor.name, get_pass(store, project_id, pass_id)
    if rater in labelling.raters and rater not in labelling.stopped:
        store.events.add(project_id, RaterStopped(labelling.name, subject=pass_id), store.actor)


def still_rating(
    store: Store, project_id: str, golden_id: str, aspects: Sequence[str] | None = None
) -> list[tuple[LabelPass, int]]:
    """List the passes over a golden set in which the user still has items to rate, as (pass, number of items left).

    Until these passes are finished, don't show the user gold labels or labels of other raters. `aspects` limits the
    list to passes with at least one of these aspects.
    """
    rater, rating = store.actor.name, []
    for labelling in list_passes(store, project_id, golden_id) if rater else []:
        concerned = aspects is None or {*labelling.aspects} & {*aspects}
        if concerned and rater in labelling.raters and rater not in labelling.stopped:
            session = _session(store, labelling, rater)
            if n_open := len(session.assigned) - len(session.done):
                rating.append((labelling, n_open))
    return rating


# ── level descriptions ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class AnchorsSet(Entry):
    """A log entry with the level descriptions of an aspect.

    The subject is the golden set, and the newest entry counts.
    """

    kind = "anchors"
    does = "described the scale's levels"
    aspect: str
    anchors: tuple[Anchor, ...]

    @property
    def texts(self) -> dict[float, str]:
        """The description of each level, by its value."""
        return {anchor.value: anchor.text for anchor in self.anchors if anchor.text}


def get_anchors(store: Store, project_id: str, golden_id: str, aspect: str) -> AnchorsSet:
    """Return the level descriptions of an aspect; empty if there are none.

    A golden set that a labelling pass produced starts with the descriptions of the golden set that was labelled. Pass
    the `number` of the result to `set_anchors` as `expected`.
    """
    entries = store.events.all(project_id, AnchorsSet, golden_id)
    number, passes = entries[-1].number if entries else 0, frozen_from(store, project_id, golden_id)
    while True:
        for entry in reversed(entries):
            if entry.aspect == aspect:
                return replace(entry, number=number)
        _, labelling = next(passes, (golden_id, None))
        if labelling is None:
            return AnchorsSet(aspect, (), number=number)
        entries = store.events.all(project_id, AnchorsSet, labelling.golden_id)


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
    """Replace the level descriptions of an aspect. An empty text removes a description.

    `expected` is the `number` that `get_anchors` returned. Raises ConflictError if somebody else has changed the
    descriptions since.
    """
    written = tuple(Anchor(float(value), " ".join(text.split())) for value, text in sorted(texts.items()))
    entry = AnchorsSet(aspect, tuple(anchor for anchor in written if anchor.text), subject=golden_id)
    store.events.add(project_id, entry, store.actor, expected=expected)
    return get_anchors(store, project_id, golden_id, aspect)


# ── highlights ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A highlighted part of the judged text: `text[start:end] == words`, in characters."""

    start: int
    end: int
    words: str

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end or len(self.words) != self.end - self.start:
            raise UsageError("A highlight must cover at least one character of the text. Select it again.")


@dataclass(frozen=True)
class Highlighted(Entry):
    """A log entry: all highlights of a rater (actor) in an item of a pass (subject). Only the newest entry counts."""

    kind = "highlights"
    does = "highlighted words in an item"
    item_id: str
    spans: tuple[Span, ...]


def find_span(text: str, words: str, near: int) -> Span:
    """Find the occurrence of `words` in `text` that starts closest to the index `near`.

    Raises UsageError if there is none.
    """
    if not words.strip():
        raise UsageError("Select words in the text, then highlight the selection.")
    starts = [found.start() for found in re.finditer(f"(?={re.escape(words)})", text)]
    if not starts:
        raise UsageError("The text to rate doesn't contain these words. Select words from that text.")
    start = min(starts, key=lambda start: abs(start - near))
    return Span(start, start + len(words), words)


def highlights(store: Store, project_id: str, pass_id: str) -> dict[tuple[str, str], Highlighted]:
    """Return a dict from (rater, item id) to the rater's newest highlights, for all items of a pass."""
    entries = store.events.all(project_id, Highlighted, pass_id)
    newest = {(entry.actor, entry.item_id): entry for entry in entries}
    return {which: entry for which, entry in newest.items() if entry.spans}


def my_highlights(store: Store, project_id: str, pass_id: str) -> dict[str, tuple[Span, ...]]:
    """Return a dict from item id to the user's highlights in the item, for all items of a pass."""
    marked = highlights(store, project_id, pass_id)
    return {item_id: entry.spans for (rater, item_id), entry in marked.items() if rater == store.actor.name}


@requires("reviewer")
def item_highlights(store: Store, project_id: str, pass_id: str, item_id: str) -> dict[str, tuple[Span, ...]]:
    """Return a dict from rater to the rater's highlights in an item."""
    marked = highlights(store, project_id, pass_id)
    return {rater: entry.spans for (rater, other), entry in marked.items() if other == item_id}


@requires("annotator")
def add_highlight(
    store: Store, project_id: str, pass_id: str, item_id: str, words: str, *, near: int = 0, form: str
) -> tuple[Span, ...]:
    """Highlight words in the judged text of an item. Return all highlights of the item by the user.

    Args:
        near: Index of a character. If the words occur several times, the nearest occurrence is highlighted.
        form: As in `save_label`.

    Raises:
        UsageError: The text lacks the words, the item is not in the pass, or the user does not rate in the pass.
    """
    labelling = get_pass(store, project_id, pass_id)
    _rater_of(store, labelling, item_id)
    golden = store.goldens.load(labelling.golden_id)
    new = find_span(golden.items[golden.item_ids.index(item_id)].target, words, near)
    before = my_highlights(store, project_id, pass_id).get(item_id, ())
    kept = [span for span in before if not new.start <= span.start < span.end <= new.end]  # covered ones go
    entry = Highlighted(item_id, tuple(sorted([*kept, new])), subject=pass_id)
    store.events.add(project_id, entry, store.actor, form=form)
    return entry.spans


@requires("annotator")
def remove_highlight(
    store: Store, project_id: str, pass_id: str, item_id: str, span: Span, *, form: str
) -> tuple[Span, ...]:
    """Remove one of the user's highlights, and return the others."""
    before = my_highlights(store, project_id, pass_id).get(item_id, ())
    entry = Highlighted(item_id, tuple(known for known in before if known != span), subject=pass_id)
    store.events.add(project_id, entry, store.actor, form=form)
    return entry.spans


# ── triage, and reasons for labels ─────────────────────────────────────────────────────────────────────────────

TriageVerdict = Literal["judge wrong", "label wrong", "ambiguous"]
TRIAGE_VERDICTS: tuple[TriageVerdict, ...] = ("judge wrong", "label wrong", "ambiguous")


@dataclass(frozen=True)
class Triage(Entry):
    """Log entry: the user's verdict on a misaligned item. The subject of the entry is the item.

    Attributes:
        subject_id: Id of the criteria or judge that scored the item.
        verdict: "" if nobody has decided yet.
        picked: Whether the next refinement round learns from the item.
    """

    kind = "triage"
    does = "triaged an item: {0.verdict}"
    golden_id: str
    aspect: str
    subject_id: str
    verdict: TriageVerdict | Literal[""]
    note: str = ""
    picked: bool = False

    @property
    def item_id(self) -> str:
        return self.subject

    @property
    def is_blank(self) -> bool:
        """Whether the entry is empty, so that it undoes an earlier triage of the item."""
        return not (self.verdict or self.picked or self.note)

    @property
    def description(self) -> str:
        if self.verdict:
            return super().description
        if self.picked:
            return "selected an item for the next round"
        return "added a note to an item" if self.note else "undid the verdict on an item"


def list_triage(store: Store, project_id: str, golden_id: str, aspect: str) -> dict[str, Triage]:
    """Return a dict from item id to its newest triage by any user. Items whose triage was undone are left out."""
    said = store.events.all(project_id, Triage)
    found = {triage.item_id: triage for triage in said if (triage.golden_id, triage.aspect) == (golden_id, aspect)}
    return {item_id: triage for item_id, triage in found.items() if not triage.is_blank}


def with_reasons(
    store: Store, project_id: str, golden: GoldenSet, aspect: str, before: datetime | None = None
) -> GoldenSet:
    """Return a golden set with more reasons for its labels: notes on misaligned items, and raters' highlights.

    The result has another digest if reasons were added. Reasons later than `before` are left out (None: no limit), so
    that a resumed run gets the same reasons.
    """
    found: dict[str, list[str]] = {}
    for _, labelling in frozen_from(store, project_id, golden.digest):
        marked = highlights(store, project_id, labelling.pass_id) if aspect in labelling.aspects else {}
        for (_, item_id), entry in marked.items():
            if before is None or entry.at <= before:
                words = ", ".join(f"“{span.words}”" for span in entry.spans)
                found.setdefault(item_id, []).append(f"Marked: {words}")
    for item_id, triage in list_triage(store, project_id, golden.digest, aspect).items():
        if triage.note and (before is None or triage.at <= before):
            found.setdefault(item_id, []).append(f"{triage.verdict}: {triage.note}" if triage.verdict else triage.note)
    if not found:
        return golden
    labels = golden.aspects[aspect]
    reasons = {name: (*labels.reasons.get(name, ()), *found.get(name, ())) for name in {**labels.reasons, **found}}
    return replace(golden, aspects={**golden.aspects, aspect: replace(labels, reasons=reasons)})
