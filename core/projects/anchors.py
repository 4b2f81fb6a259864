"""What the levels of a scale mean in a project, and the words that raters mark: both are entries of the log."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from core.errors import UsageError
from core.projects.labelling import LabelsFrozen, get_pass
from core.projects.roles import requires
from core.store.log import Entry
from core.store.store import Store

LONGEST_ANCHOR = 200
MOST_ANCHORS = 100


@dataclass(frozen=True, slots=True)
class Anchor:
    """A level of the scale and what it stands for."""

    value: float
    text: str


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
            raise UsageError(f"A scale has at most {MOST_ANCHORS} anchors, each for a level of its own.")
        longest = max((len(anchor.text) for anchor in self.anchors), default=0)
        if longest > LONGEST_ANCHOR:
            raise UsageError(f"An anchor may have {LONGEST_ANCHOR} characters; one of these has {longest:,}.")


@dataclass(frozen=True, slots=True)
class Anchors:
    """The anchors of one aspect, level → text, and who wrote them.

    `number` is that of the newest entry about the golden set, 0 for none: whoever writes holds it against what came
    since.
    """

    texts: Mapping[float, str]
    number: int = 0
    actor: str = ""


MOST_SPANS, LONGEST_SPAN = 50, 2_000


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Words of the judged text: `text[start:end] == words`, counted in characters."""

    start: int
    end: int
    words: str

    def __post_init__(self) -> None:
        if self.start < 0 or not 0 < self.end - self.start <= LONGEST_SPAN or len(self.words) != self.end - self.start:
            raise UsageError(f"A highlight is of 1 to {LONGEST_SPAN:,} characters of the text.")


@dataclass(frozen=True)
class Highlighted(Entry):
    """All that a rater, the actor, has marked in an item of a pass, the subject; their newest entry counts."""

    kind = "highlights"
    does = "marked words of an item"
    item_id: str
    spans: tuple[Span, ...]

    def __post_init__(self) -> None:
        if len(self.spans) > MOST_SPANS:
            raise UsageError(f"An item may have {MOST_SPANS} highlights of one rater; these are {len(self.spans)}.")


def find_span(text: str, words: str, near: int) -> Span:
    """The place of `words` in `text` that begins nearest to `near`.  UsageError where they do not stand there."""
    if not words.strip():
        raise UsageError("Select words of the text first, then mark them.")
    if len(words) > LONGEST_SPAN:
        raise UsageError(
            f"A highlight is of 1 to {LONGEST_SPAN:,} characters of the text; this one has {len(words):,}."
        )
    starts = [found.start() for found in re.finditer(f"(?={re.escape(words)})", text)]
    if not starts:
        raise UsageError("These words are not in the text. Select words of the judged text alone.")
    start = min(starts, key=lambda start: abs(start - near))
    return Span(start, start + len(words), words)


def get_anchors(store: Store, project_id: str, golden_id: str, aspect: str) -> Anchors:
    """What each level of the aspect means, where somebody has written that.

    A golden set that was frozen from a labelling pass keeps what was written of the one that was labelled, until
    somebody writes anew.
    """
    entries = store.events.all(project_id, AnchorsSet, golden_id)
    number, seen = entries[-1].number if entries else 0, {golden_id}
    while not any(entry.aspect == aspect for entry in entries):
        frozen = store.events.all(project_id, LabelsFrozen, golden_id)
        golden_id = get_pass(store, project_id, frozen[-1].pass_id).golden_id if frozen else golden_id
        if golden_id in seen:
            return Anchors({}, number)
        seen.add(golden_id)
        entries = store.events.all(project_id, AnchorsSet, golden_id)
    newest = next(entry for entry in reversed(entries) if entry.aspect == aspect)
    return Anchors({anchor.value: anchor.text for anchor in newest.anchors if anchor.text}, number, newest.actor)


@requires("reviewer")
def set_anchors(
    store: Store,
    project_id: str,
    golden_id: str,
    aspect: str,
    texts: Mapping[float, str],
    *,
    expected: int | None = None,
) -> Anchors:
    """Write what the levels of an aspect mean, in place of what was written before; an empty text is none.

    `expected` is the `number` of the anchors that the person saw: ConflictError where somebody was faster.  UsageError
    for a text that is too long or an aspect without a name.
    """
    if not aspect.strip():
        raise UsageError("Anchors are of an aspect; none was named.")
    store.projects.get(project_id)
    written = tuple(Anchor(float(value), " ".join(text.split())) for value, text in sorted(texts.items()))
    entry = AnchorsSet(aspect, tuple(anchor for anchor in written if anchor.text), subject=golden_id)
    store.events.add(project_id, entry, store.actor, expected=expected)
    return get_anchors(store, project_id, golden_id, aspect)


# ── highlights ───────────────────────────────────────────────────────────────────────────────────────────────


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
    text = _text_to_mark(store, project_id, pass_id, item_id)
    before = my_highlights(store, project_id, pass_id).get(item_id, ())
    new = find_span(text, words, near)
    kept = [span for span in before if not (new.start <= span.start and span.end <= new.end)]  # else marked twice
    entry = Highlighted(item_id, tuple(sorted([*kept, new])), subject=pass_id)
    store.events.add(project_id, entry, store.actor, form=form)
    return entry.spans


@requires("annotator")
def unmark_words(
    store: Store, project_id: str, pass_id: str, item_id: str, span: Span, *, form: str
) -> tuple[Span, ...]:
    """Take a highlight away; what is left comes back."""
    _text_to_mark(store, project_id, pass_id, item_id)
    before = my_highlights(store, project_id, pass_id).get(item_id, ())
    entry = Highlighted(item_id, tuple(known for known in before if known != span), subject=pass_id)
    store.events.add(project_id, entry, store.actor, form=form)
    return entry.spans


def _text_to_mark(store: Store, project_id: str, pass_id: str, item_id: str) -> str:
    """The judged text of an item that the person who acts may mark."""
    labelling, rater = get_pass(store, project_id, pass_id), store.actor.name
    if rater not in labelling.raters or rater in labelling.stopped:
        raise UsageError(f"{rater or 'Nobody'} does not rate in {labelling.name}.")
    golden = store.goldens.load(labelling.golden_id)
    position = golden.item_ids.index(item_id) if item_id in golden.item_ids else None
    if position not in labelling.plan.positions:
        raise UsageError(f"Item {item_id[:60]!r} is no part of {labelling.name}.")
    return golden.items[position].target
