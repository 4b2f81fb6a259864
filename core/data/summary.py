"""A golden set in one sentence, and what a newer one adds to an older one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from core.data.split import has_sources, source_digest, text_digest
from core.records import GoldenSet
from core.wording import counted


def sentence(golden: GoldenSet, *, labels: bool = True) -> str:
    """``1,600 items from 16 systems over 100 sources, 3 people each; labels use 4 of 5 levels.``

    `labels` False says nothing of what the labels are, for somebody who is still to give theirs.
    """
    words = counted(len(golden.items), "item")
    words += f" from {counted(golden.n_systems, 'system')}" if golden.n_systems else ""
    words += f" over {counted(golden.n_sources, 'source')}" if golden.n_sources < len(golden.items) else ""
    if not golden.aspects:
        return f"{words}; no labels yet."
    if people := set(Counter((rating.item_id, rating.aspect) for rating in golden.ratings).values()):
        low, high = min(people), max(people)
        each = f"{low} to {high} people" if low < high else "1 person" if low == 1 else f"{low} people"
        words += f", {each} each"
    partly = max(labelled.n_labelled for labelled in golden.aspects.values())
    words += f", {partly:,} of them labelled" if partly < len(golden.items) else ""
    return f"{words}{'; ' + used if labels and (used := _levels_words(golden)) else ''}."


def _levels_words(golden: GoldenSet) -> str:
    """How many levels of their scales the labels use; those that single people gave, if known."""
    given: dict[str, set[float]] = {}
    for rating in golden.ratings:
        given.setdefault(rating.aspect, set()).add(rating.value)
    used: dict[str, tuple[int, int]] = {}
    for aspect, labels in golden.aspects.items():
        low, high, step = labels.scale.low, labels.scale.high, labels.scale.step
        values = given.get(aspect) or {value for value in labels.values if value is not None}
        if step is None or any(abs((value - low) / step - round((value - low) / step)) > 1e-9 for value in values):
            continue  # a scale without levels, or means of several people
        used[aspect] = (len(values), round((high - low) / step) + 1)
    if len(set(used.values())) == 1 and len(used) == len(golden.aspects):
        n_used, n_levels = next(iter(used.values()))
        return f"labels use {'all ' if n_used == n_levels else f'{n_used} of '}{n_levels} levels"
    narrow = {aspect: levels for aspect, levels in used.items() if levels[0] < levels[1]}
    if not narrow:
        return "labels use every level" if used else ""
    least = min(narrow, key=lambda aspect: narrow[aspect][0] / narrow[aspect][1])
    more = f" ({len(narrow) - 1} more aspects leave levels out)" if len(narrow) > 1 else ""
    return f"labels of {least} use {narrow[least][0]} of {narrow[least][1]} levels{more}"


@dataclass(frozen=True, slots=True)
class Grown:
    """`known` and `new` are source_ids of the newer set, in order; `n_gone` sources of the older one are not in it.

    `n_new_items` texts are not in the older set.  `labels_added` is, by aspect, how many more items the newer set has
    labels on (negative: fewer), aspects without a difference left out.
    """

    known: tuple[str, ...]
    new: tuple[str, ...]
    n_gone: int
    n_new_items: int
    labels_added: dict[str, int]

    def words(self, older: str = "the older one") -> str:
        """One sentence: what it adds to the older set of that name."""
        if not self.known:
            return f"It shares no source with {older}."
        added = [counted(n, "new source") for n in (len(self.new),) if n]
        added += [counted(n, "new text") for n in (self.n_new_items,) if n]
        more = sum(n for n in self.labels_added.values() if n > 0)
        fewer = -sum(n for n in self.labels_added.values() if n < 0)
        added += [counted(more, "more label")] if more else []
        kept = f"{counted(len(self.known), 'source')} known from {older}"
        lost = [counted(self.n_gone, "source") + " left out"] if self.n_gone else []
        lost += [counted(fewer, "label") + " fewer"] if fewer else []
        head = f"It adds {_listed(added)} to {kept}" if added else f"It has the same texts: {kept}"
        return f"{head}{'; ' + _listed(lost) if lost else ''}."


def grown(old: GoldenSet, new: GoldenSet) -> Grown:
    """What `new` adds to `old`.  A source is known when one of its texts is (`core.data.split.source_digest`)."""
    by_source = has_sources(old) and has_sources(new)
    before, now = _sources(old, by_source=by_source), _sources(new, by_source=by_source)
    texts_before, texts_now = (set().union(*sources.values()) for sources in (before, now))
    known = {name for name, texts in now.items() if texts & texts_before}
    items_before = {text_digest(item) for item in old.items}
    counts = {
        aspect: (new.aspects[aspect].n_labelled if aspect in new.aspects else 0)
        - (old.aspects[aspect].n_labelled if aspect in old.aspects else 0)
        for aspect in (*new.aspects, *(name for name in old.aspects if name not in new.aspects))
    }
    return Grown(
        known=tuple(name for name in now if name in known),
        new=tuple(name for name in now if name not in known),
        n_gone=sum(not texts & texts_now for texts in before.values()),
        n_new_items=len({text_digest(item) for item in new.items} - items_before),
        labels_added={aspect: n for aspect, n in counts.items() if n},
    )


def _sources(golden: GoldenSet, *, by_source: bool) -> dict[str, set[str]]:
    """source_id → digests of its texts, in order of first appearance."""
    texts: dict[str, set[str]] = {}
    for item in golden.items:
        texts.setdefault(item.source_id, set()).add(source_digest(item, by_source=by_source))
    return texts


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
