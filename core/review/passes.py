"""Labels, the labelling passes they are given in, and what a rater has to do in one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

import numpy as np

from core.errors import UsageError
from core.review.log import UNWRITTEN, Entry
from core.review.plan import LabelAspect, LabelPlan, Order

REMARK = ""
"""Stands in an aspect's place for a comment, which is of the item and not of one label."""
_LONGEST_COMMENT = 5_000
WITHDRAWN, RESTORED = "undone:", "undone-to:"
"""How the forms of labels begin that undo one: nothing is said any more, or what was said before."""
_PAUSE_SECONDS = 600.0
"""A longer gap between two saves is a break, and says nothing about a rater's pace."""


@dataclass(frozen=True, slots=True)
class Label:
    """What a rater said of one item on one aspect in a pass; `value` None = looked at, and no label can be given.

    `taken_from` is the earlier pass that it was taken over from, "" for none.  `number` grows with time; it is 0, and
    `at` in 1970, until the label is saved.
    """

    rater: str
    item_id: str
    aspect: str
    value: float | None
    comment: str = ""
    pass_id: str = ""
    taken_from: str = ""
    number: int = field(default=0, compare=False)
    at: datetime = UNWRITTEN
    form: str = field(default="", compare=False)

    @property
    def is_withdrawn(self) -> bool:
        """Whether it undoes the only label there was: the item is open again on this aspect."""
        return self.form.startswith(WITHDRAWN)

    @property
    def undoes(self) -> bool:
        return self.is_withdrawn or self.form.startswith(RESTORED)


@dataclass(frozen=True, slots=True)
class Step:
    """A label as a rater gave it, and the one that it took the place of; None: there was none."""

    label: Label
    before: Label | None


def last_step(said: Iterable[Label]) -> Step | None:
    """The newest label of one rater in a pass that is not undone; `said` is all they said there, oldest first.

    A comment is no step, nor is a label that was taken over.
    """
    steps: list[Step] = []
    now: dict[tuple[str, str], Label | None] = {}
    for label in said:
        which = (label.item_id, label.aspect)
        if label.aspect == REMARK:
            continue
        if label.undoes:
            del steps[-1:]
        elif not label.taken_from:
            steps.append(Step(label, now.get(which)))
        now[which] = None if label.is_withdrawn else label
    return steps[-1] if steps else None


# ── what is logged of a pass ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class PassEntry(Entry):
    """A labelling pass, which is the subject, begun, joined or left."""


@dataclass(frozen=True)
class RaterJoined(PassEntry):
    kind = "joined"
    does = "joined {0.name}"
    name: str


@dataclass(frozen=True)
class RaterStopped(PassEntry):
    kind = "stopped rating"
    does = "stopped rating in {0.name}"
    name: str


@dataclass(frozen=True)
class Adjudicated(Entry):
    """The gold label of an item on which the raters of a pass, the subject, disagree."""

    kind = "adjudicated"
    does = "decided a label"
    item_id: str
    aspect: str
    value: float
    reason: str


@dataclass(frozen=True, slots=True)
class RatedIn:
    """The labelling passes, by name, whose single ratings of an aspect a golden set holds; "" is its file."""

    aspect: str
    passes: tuple[str, ...]


@dataclass(frozen=True)
class LabelsFrozen(Entry):
    """The labels of a pass frozen into a golden set, the subject; `rated_in` has an entry an aspect with ratings."""

    kind = "labels frozen"
    does = "froze the labels of {0.name}"
    name: str
    pass_id: str
    rated_in: tuple[RatedIn, ...] = ()


def passes_behind(entries: Sequence[LabelsFrozen], aspect: str) -> tuple[str, ...]:
    """Whose single ratings of an aspect a golden set holds, by the entries about it, oldest first; "" is its file."""
    known = {rated.aspect: rated.passes for rated in entries[-1].rated_in} if entries else {}
    return known.get(aspect, ("",))


def rated_words(passes: Sequence[str]) -> str:
    """`First pass`; `the file and First pass, merged`.  "" without any."""
    named = " and ".join(name or "the file" for name in passes)
    return f"{named}, merged" if len(passes) > 1 else named


# ── a pass ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class PassRequest:
    """A labelling pass to begin.  `limit` None rates every item; `order` says what comes first.

    `take_over` names (pass id, rater) whose earlier labels of these items count in it as that rater's.
    """

    project_id: str
    golden_id: str
    name: str
    aspects: tuple[LabelAspect, ...]
    n_raters: int = 3
    shared: int = 20
    overlap: int = 1
    order: Order = "random"
    limit: int | None = None
    seed: int = 0
    blind: bool = True
    instructions: str = ""
    take_over: tuple[tuple[str, str], ...] = ()

    @property
    def aspect(self) -> str:
        """The first aspect, for lists."""
        return self.aspects[0].aspect if self.aspects else ""


@dataclass(frozen=True)
class LabelPass(PassEntry):
    """A labelling pass over a golden set, as it was begun; `taken_over` earlier labels of `taken_from` count in it.

    `raters` are those who joined, in that order, `stopped` those of them who rate no more.
    """

    kind = "labelling pass"
    name: str
    golden_id: str
    plan: LabelPlan
    taken_over: int = 0
    taken_from: tuple[str, ...] = ()
    raters: tuple[str, ...] = field(default=(), kw_only=True)
    stopped: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def did(self) -> str:
        did = f"began the labelling pass {self.name}"
        if not self.taken_over:
            return did
        labels = "1 earlier label" if self.taken_over == 1 else f"{self.taken_over:,} earlier labels"
        return f"{did} and took over {labels} of {', '.join(self.taken_from)}"

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

    def check(self, label: Label, position: int | None) -> None:
        """UsageError for what cannot be saved in this pass; `position` is the item's in the golden set, None = none."""
        aspect = next((planned for planned in self.plan.aspects if planned.aspect == label.aspect), None)
        if aspect is not None and label.value is not None and not aspect.takes(label.value):
            steps = f" in steps of {aspect.scale.step:g}" if aspect.scale.step else ""
            raise UsageError(f"The label of {aspect.aspect} is {label.value:g}; the scale is {aspect.scale}{steps}.")
        if position not in self.plan.positions:
            raise UsageError(f"Item {label.item_id[:60]!r} is no part of {self.name}.")
        if (length := len(label.comment)) > _LONGEST_COMMENT:
            raise UsageError(f"A comment may have {_LONGEST_COMMENT:,} characters; this one has {length:,}.")
        if label.rater in self.stopped:
            raise UsageError(f"You have stopped rating in {self.name}; nothing more is kept of you there.")


def passes_from(entries: Sequence[PassEntry]) -> list[LabelPass]:
    """The labelling passes that the entries, oldest first, add up to, oldest first."""

    def actors(kind: type[PassEntry], pass_id: str) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(entry.actor for entry in entries if isinstance(entry, kind) and entry.subject == pass_id)
        )

    return [
        replace(begun, raters=actors(RaterJoined, begun.pass_id), stopped=actors(RaterStopped, begun.pass_id))
        for begun in entries
        if isinstance(begun, LabelPass)
    ]


@dataclass(frozen=True, slots=True)
class EarlierLabels:
    """What a rater said in an earlier pass: on how many items."""

    pass_id: str
    rater: str
    n_items: int


def fitting(labels: Iterable[Label], aspects: Sequence[LabelAspect]) -> list[Label]:
    """Those of the labels given in passes that are on one of these aspects, and on its scale."""
    known = {aspect.aspect: aspect for aspect in aspects}
    return [
        label
        for label in labels
        if label.pass_id and label.aspect in known and (label.value is None or known[label.aspect].takes(label.value))
    ]


# ── a rater in a pass ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SavedLabel:
    """What a rater said last of an item: aspect → label (None = cannot tell), and the comment.

    `taken` maps those of the aspects whose label was taken over → the id of the pass it was given in; `at` is when the
    last of the others was given, None without any.
    """

    values: Mapping[str, float | None]
    comment: str
    taken: Mapping[str, str] = field(default_factory=dict)
    at: datetime | None = field(default=None, compare=False)

    def updated(self, label: Label) -> SavedLabel:
        """With a later label in place of the one before; a comment alone leaves the labels as they are."""
        if label.aspect == REMARK:
            return replace(self, comment=label.comment)
        taken = {aspect: pass_id for aspect, pass_id in self.taken.items() if aspect != label.aspect}
        if label.is_withdrawn:
            values = {aspect: value for aspect, value in self.values.items() if aspect != label.aspect}
            return SavedLabel(values, label.comment, taken, self.at)
        if label.taken_from:
            taken[label.aspect] = label.taken_from
        at = self.at if label.taken_from else label.at
        return SavedLabel({**self.values, label.aspect: label.value}, label.comment, taken, at)


@dataclass(frozen=True)
class AnnotationSession:
    """One rater's work in a pass: the `assigned` item ids in order, and what they have said of them so far.

    `version` is the number of the newest label in it.
    """

    pass_id: str
    rater: str
    aspects: tuple[str, ...]
    assigned: tuple[str, ...]
    given: Mapping[str, SavedLabel] = field(default_factory=dict)
    version: int = 0

    @cached_property
    def saved(self) -> Mapping[str, SavedLabel]:
        """Of the items that have a label on every aspect."""
        return {item_id: label for item_id, label in self.given.items() if len(label.values) == len(self.aspects)}

    @property
    def n_done(self) -> int:
        return len(self.saved)

    @property
    def first_open(self) -> str | None:
        """The first item that is not done; None when all are."""
        return next((item_id for item_id in self.assigned if item_id not in self.saved), None)

    @property
    def seconds_left(self) -> float | None:
        """The rater's median time between items, breaks left out, for each open item; None before three items."""
        gaps = np.diff(np.unique([label.at.timestamp() for label in self.saved.values() if label.at is not None]))
        gaps = gaps[(gaps > 0) & (gaps < _PAUSE_SECONDS)]
        return float(np.median(gaps) * (len(self.assigned) - self.n_done)) if gaps.size >= 2 else None

    def said(self, item_id: str) -> SavedLabel:
        """What was said of an item so far, done or not."""
        return self.given.get(item_id) or SavedLabel({}, "")

    def updated(self, new: Sequence[Label]) -> AnnotationSession:
        """With what the rater has said since, oldest first; itself where that is nothing."""
        if not new:
            return self
        assigned, known, given = set(self.assigned), {*self.aspects, REMARK}, dict(self.given)
        for label in new:
            if label.item_id in assigned and label.aspect in known:
                given[label.item_id] = given.get(label.item_id, SavedLabel({}, "")).updated(label)
        return replace(self, given=given, version=new[-1].number)


@dataclass(frozen=True, slots=True)
class StillRating:
    """A pass in which somebody has items left to rate."""

    pass_id: str
    name: str
    n_open: int


@dataclass(frozen=True, slots=True)
class TeamProgress:
    """How many ratings everybody together has given in a pass, of those planned; an item rated by two counts twice."""

    by_rater: Mapping[str, int]
    planned: int

    @property
    def done(self) -> int:
        return sum(self.by_rater.values())


@dataclass(frozen=True, slots=True)
class OthersSaid:
    """What others said of an item in a pass that is not blind: (who, aspect, label or None for "cannot tell").

    `judges` holds a judge's score on its own scale.
    """

    raters: tuple[tuple[str, str, float | None], ...]
    judges: tuple[tuple[str, str, float], ...]
