"""Highlights: the words of an item that a rater marked as the reason for a label, by place and as quoted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.errors import UsageError
from core.review.log import Entry

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
            raise UsageError(f"An item may have {MOST_SPANS} highlights of one person; these are {len(self.spans)}.")


def find_span(text: str, words: str, near: int) -> Span:
    """The place of `words` in `text` that begins nearest to `near`.  UsageError where they do not stand there."""
    if not words.strip():
        raise UsageError("Select words of the text first, then mark them.")
    if len(words) > LONGEST_SPAN:
        raise UsageError(
            f"A highlight is of 1 to {LONGEST_SPAN:,} characters of the text; this one has {len(words):,}."
        )
    starts, at = [], text.find(words)
    while at >= 0:
        starts.append(at)
        at = text.find(words, at + 1)
    if not starts:
        raise UsageError("These words do not stand in the text. Select words of the judged text alone.")
    start = min(starts, key=lambda start: abs(start - near))
    return Span(start, start + len(words), words)


def with_span(spans: Iterable[Span], new: Span) -> tuple[Span, ...]:
    """In the order of the text; what lies within the new one, or is the same, goes."""
    kept = [span for span in spans if not (new.start <= span.start and span.end <= new.end)]
    return tuple(sorted([*kept, new]))


def highlights_from(entries: Iterable[Highlighted]) -> dict[tuple[str, str], tuple[Span, ...]]:
    """(rater, item id) → what they have marked, from the entries of one pass, oldest first."""
    return {(entry.actor, entry.item_id): entry.spans for entry in entries}
