"""Replies or scores of one item → its number, with a tally of all that could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from core.data.cells import CellError, read_number, shown
from core.data.scale import narrowest_scale, usual_scales
from core.data.verdict_files.preview import ImportChoices, Unread, Use
from core.data.verdict_files.recording import Entry
from core.data.verdict_files.shapes import Reply
from core.judging.parse import Reading, read_rating
from core.records import Scale, Unscored, UnscoredReason

GOOD = frozenset("good pass passed yes true correct positive up thumbs_up 👍".split())
BAD = frozenset("bad fail failed no false incorrect negative down thumbs_down 👎".split())

_EXAMPLES, _EXAMPLE_TEXT = 3, 200
_MANY = 0.05
_TRIED = 100
"""So many replies out of range are read again, to see which usual scale would hold them."""


@dataclass
class Tally:
    """What was read so far: `n` replies or scores, `seen` the numbers, `unread` by reason, Good and Bad words."""

    n: int = 0
    seen: list[float] = field(default_factory=list)
    unread: Counter[UnscoredReason] = field(default_factory=Counter)
    examples: dict[UnscoredReason, list[Unread]] = field(default_factory=dict)
    words: int = 0

    @property
    def ends(self) -> tuple[float, float] | None:
        """The smallest and the largest number; None where there is none."""
        return (min(self.seen), max(self.seen)) if self.seen else None

    @property
    def mostly_on_another_scale(self) -> bool:
        """Whether so much lies out of range that the scale is in question, and not a few slips."""
        return self.unread["out of range"] >= _MANY * self.n > 0

    def miss(self, reason: UnscoredReason, entry: Entry, text: str) -> None:
        """Count one that gave no number."""
        self.unread[reason] += 1
        kept = self.examples.setdefault(reason, [])
        if len(kept) < _EXAMPLES:
            kept.append(Unread(entry.item_id, entry.row, text[:_EXAMPLE_TEXT]))


class _Read(NamedTuple):
    """One reply or score: its number, or why there is none, in one word and in a sentence, and how it reads."""

    value: float | None
    reason: UnscoredReason = "no verdict"
    detail: str = ""
    text: str = ""


class Reader:
    """Reads the rows of one item after the other, on the scale that the judge was given."""

    def __init__(self, use: Use, choices: ImportChoices, scale: Scale, aspect: str, *, keep_replies: bool) -> None:
        self.tally = Tally()
        self._use, self._choices, self._aspect, self._onto = use, choices, aspect, scale
        self._scale = choices.scale or scale
        self._raw = choices.take == "own" and choices.scale is None
        self._keep_replies = keep_replies
        self._beyond: list[str] = []

    def read(self, item_id: str, rows: Sequence[Entry]) -> float | Unscored:
        """The item's number: the mean over its readable replies or scores."""
        values: list[float] = []
        first: _Read | None = None
        for entry in rows:
            for read in self._replies(entry) if self._use == "replies" else (self._score(entry),):
                self.tally.n += 1
                if read.value is not None:
                    values.append(read.value)
                    continue
                first = first or read
                self.tally.miss(read.reason, entry, read.text)
        if not values:
            return Unscored(item_id, first.reason, first.detail) if first else Unscored(item_id, "empty")
        mean = sum(values) / len(values)
        return mean if self._choices.take == "own" else mapped(mean, self._scale, self._onto)

    def words(self, rows: Sequence[Entry]) -> tuple[str, ...]:
        """The judge's words on the item, as they came: its replies, or the reasons beside its scores."""
        replies = [reply.text for entry in rows for reply in entry.replies or ()]
        if self._use == "replies":
            return tuple(replies)
        kept = tuple(text for text in replies if text) if self._keep_replies else ()
        return kept or tuple(entry.reason for entry in rows if entry.reason)

    def suggested(self) -> Scale | None:
        """The narrowest usual scale that would hold (nearly) all numbers, where the one in use does not."""
        if not self.tally.mostly_on_another_scale:
            return None
        ends = self.tally.ends
        if self._use == "scores":
            return narrowest_scale(*ends) if ends is not None else None
        for scale in usual_scales():
            held = sum(read_rating(text, scale, self._aspect).value is not None for text in self._beyond)
            if held >= 0.95 * len(self._beyond) and all(scale.holds(end) for end in ends or ()):
                return scale
        return None

    def _replies(self, entry: Entry) -> Iterator[_Read]:
        for reply in entry.replies or (Reply(""),):
            reading = self._reading(reply)
            if reading.value is not None:
                self.tally.seen.append(reading.value)
                yield _Read(reading.value)
                continue
            if reading.reason == "out of range" and len(self._beyond) < _TRIED:
                self._beyond.append(reply.text)
            yield _Read(None, reading.reason or "no verdict", "None of its replies could be read.", reply.text)

    def _reading(self, reply: Reply) -> Reading:
        if reply.finish == "error":
            return Reading(None, "provider error")
        return read_rating(reply.text, self._scale, self._aspect, reply.finish, letters=self._choices.letters)

    def _score(self, entry: Entry) -> _Read:
        """A number; Good and Bad (pass and fail, true and false) are the ends of the scale."""
        if (word := verdict_word(entry.score)) is not None:
            self.tally.words += 1
            low, high = (0.0, 1.0) if self._raw else (self._scale.low, self._scale.high)
            return _Read(high if word else low)
        number = number_in(entry.score)
        text = "" if entry.score is None else shown(entry.score)
        if not isinstance(number, float):
            return _Read(None, "no verdict", f"{number or 'The score is empty'}.", text)
        self.tally.seen.append(number)
        if self._raw or self._scale.holds(number):
            return _Read(number)
        return _Read(None, "out of range", f"The score {number:g} lies outside {self._scale}.", text)


def verdict_word(cell: Any) -> bool | None:
    """True for Good and its like, False for Bad, None for anything else."""
    if isinstance(cell, bool):
        return cell
    if not isinstance(cell, str):
        return None
    word = "_".join(cell.strip().lower().split())
    return True if word in GOOD else False if word in BAD else None


def number_in(cell: Any) -> float | str | None:
    """The number in a score cell, None for an empty one, or a sentence that says why it is neither."""
    try:
        return read_number(cell)
    except CellError:
        return f"{shown(cell)} is no number"


def mapped(value: float, scale: Scale, onto: Scale) -> float:
    """`value` of `scale` carried linearly to `onto`: ends to ends.

    >>> mapped(25.0, Scale(0, 100), Scale(1, 5))
    2.0
    """
    return onto.low + (value - scale.low) / (scale.high - scale.low) * (onto.high - onto.low)
