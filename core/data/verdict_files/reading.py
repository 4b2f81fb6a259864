"""Replies or scores of one item → its number, with a tally of all that could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from core.data.cells import shown
from core.data.verdict_files.entries import Entry
from core.data.verdict_files.preview import ImportChoices, Unread
from core.data.verdict_files.replies import Reply
from core.data.verdict_files.scales import (
    USUAL,
    ends,
    mapped,
    number_in,
    suggested_scale,
    verdict_word,
)
from core.judging.parse import Reading, read_rating
from core.records import Scale, Unscored, UnscoredReason

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
    def mostly_on_another_scale(self) -> bool:
        """Whether so much lies out of range that the scale is in question, and not a few slips."""
        return self.unread["out of range"] >= _MANY * self.n > 0

    def miss(self, reason: UnscoredReason, entry: Entry, text: str) -> None:
        """Count one that gave no number."""
        self.unread[reason] += 1
        kept = self.examples.setdefault(reason, [])
        if len(kept) < _EXAMPLES:
            kept.append(Unread(entry.item_id, entry.row, text[:_EXAMPLE_TEXT]))


class Reader(Protocol):
    """Reads the rows of one item after the other."""

    @property
    def tally(self) -> Tally: ...

    def read(self, item_id: str, rows: Sequence[Entry]) -> float | Unscored:
        """The item's number: the mean over its readable replies or scores."""
        ...

    def words(self, rows: Sequence[Entry]) -> tuple[str, ...]:
        """The judge's words on the item, as they came."""
        ...

    def suggested(self) -> Scale | None:
        """A usual scale that would hold the numbers, where the one in use does not."""
        ...


class ReplyReader:
    """Reads replies with `core.judging.parse` on the scale that the judge was given."""

    def __init__(self, choices: ImportChoices, scale: Scale, aspect: str) -> None:
        self.tally = Tally()
        self._choices, self._onto, self._aspect = choices, scale, aspect
        self._scale = choices.scale or scale
        self._beyond: list[str] = []

    def read(self, item_id: str, rows: Sequence[Entry]) -> float | Unscored:
        values: list[float] = []
        first: UnscoredReason | None = None
        for entry in rows:
            for reply in entry.replies or (Reply(""),):
                self.tally.n += 1
                reading = self._reading(reply)
                if reading.value is not None:
                    values.append(reading.value)
                    continue
                reason = reading.reason or "no verdict"
                first = first or reason
                self.tally.miss(reason, entry, reply.text)
                if reason == "out of range" and len(self._beyond) < _TRIED:
                    self._beyond.append(reply.text)
        self.tally.seen += values
        if not values:
            return Unscored(item_id, first or "empty", "None of its replies could be read.")
        mean = sum(values) / len(values)
        return mean if self._choices.take == "own" else mapped(mean, self._scale, self._onto)

    def words(self, rows: Sequence[Entry]) -> tuple[str, ...]:
        return tuple(reply.text for entry in rows for reply in entry.replies or ())

    def suggested(self) -> Scale | None:
        """The narrowest usual scale on which nearly all of what lay out of range is read."""
        wide = sorted((s for s in USUAL if s != self._scale), key=lambda s: (s.high - s.low, s.low))
        for scale in wide if self.tally.mostly_on_another_scale else ():
            held = sum(read_rating(text, scale, self._aspect).value is not None for text in self._beyond)
            if held >= 0.95 * len(self._beyond) and all(scale.holds(end) for end in ends(self.tally.seen) or ()):
                return scale
        return None

    def _reading(self, reply: Reply) -> Reading:
        if reply.finish == "error":
            return Reading(None, "provider error")
        return read_rating(reply.text, self._scale, self._aspect, reply.finish, letters=self._choices.letters)


class ScoreReader:
    """Reads a column of scores; Good and Bad (pass and fail, true and false) are the ends of the scale."""

    def __init__(self, choices: ImportChoices, scale: Scale, *, keep_replies: bool) -> None:
        self.tally = Tally()
        self._onto, self._keep_replies = scale, keep_replies
        self._raw = choices.take == "own" and choices.scale is None
        self._own = choices.take == "own"
        self._scale = choices.scale or scale

    def read(self, item_id: str, rows: Sequence[Entry]) -> float | Unscored:
        found = [self._score(entry) for entry in rows]
        values = [one for one in found if isinstance(one, float)]
        if not values:
            return next(one for one in found if isinstance(one, Unscored))
        mean = sum(values) / len(values)
        return mean if self._own else mapped(mean, self._scale, self._onto)

    def words(self, rows: Sequence[Entry]) -> tuple[str, ...]:
        said: Iterable[str] = (reply.text for entry in rows for reply in entry.replies or ())
        kept = tuple(text for text in said if text) if self._keep_replies else ()
        return kept or tuple(entry.reason for entry in rows if entry.reason)

    def suggested(self) -> Scale | None:
        seen = ends(self.tally.seen)
        return suggested_scale(*seen) if seen is not None and self.tally.mostly_on_another_scale else None

    def _score(self, entry: Entry) -> float | Unscored:
        self.tally.n += 1
        if (word := verdict_word(entry.score)) is not None:
            self.tally.words += 1
            low, high = (0.0, 1.0) if self._raw else (self._scale.low, self._scale.high)
            return float(high if word else low)
        number = number_in(entry.score)
        if isinstance(number, float):
            self.tally.seen.append(number)
            if self._raw or self._scale.holds(number):
                return number
            return self._missed("out of range", entry, f"The score {number:g} lies outside {self._scale}.")
        return self._missed("no verdict", entry, f"{number or 'The score is empty'}.")

    def _missed(self, reason: UnscoredReason, entry: Entry, detail: str) -> Unscored:
        self.tally.miss(reason, entry, "" if entry.score is None else shown(entry.score))
        return Unscored(entry.item_id, reason, detail)
