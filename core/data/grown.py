"""What a newer golden set adds to an older one: sources and texts known by what they say, not by their ids."""

from __future__ import annotations

from dataclasses import dataclass

from core.data.split import has_sources, source_digest, text_digest
from core.records import GoldenSet
from core.wording import counted


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
