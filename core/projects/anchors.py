"""What the levels of a scale mean in a project, and the words that raters mark: both are entries of the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from core.errors import UsageError
from core.projects.labelling import get_pass
from core.projects.roles import requires
from core.review.anchors import Anchor, Anchors, AnchorsSet, anchors_from
from core.review.highlights import Highlighted, Span, find_span, highlights_from, with_span
from core.review.passes import LabelsFrozen
from core.store.store import Store


def get_anchors(store: Store, project_id: str, golden_id: str, aspect: str) -> Anchors:
    """What each level of the aspect means, where somebody has written that.

    A golden set that was frozen from a labelling pass keeps what was written of the one that was labelled, until
    somebody writes anew.
    """
    entries = store.events.all(project_id, AnchorsSet, golden_id)
    now = anchors_from(entries, aspect)
    earlier, seen = golden_id, {golden_id}
    while not any(entry.aspect == aspect for entry in entries):
        frozen = store.events.all(project_id, LabelsFrozen, earlier)
        earlier = get_pass(store, project_id, frozen[-1].pass_id).golden_id if frozen else earlier
        if earlier in seen:
            return now
        seen.add(earlier)
        entries = store.events.all(project_id, AnchorsSet, earlier)
    return replace(anchors_from(entries, aspect), number=now.number)


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
    marked = highlights_from(store.events.all(project_id, Highlighted, pass_id))
    return {item_id: spans for (rater, item_id), spans in marked.items() if rater == store.actor.name and spans}


@requires("reviewer")
def item_highlights(store: Store, project_id: str, pass_id: str, item_id: str) -> dict[str, tuple[Span, ...]]:
    """Rater → the words that they have marked in an item."""
    marked = highlights_from(store.events.all(project_id, Highlighted, pass_id))
    return {rater: spans for (rater, marked_item), spans in marked.items() if marked_item == item_id and spans}


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
    entry = Highlighted(item_id, with_span(before, find_span(text, words, near)), subject=pass_id)
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
