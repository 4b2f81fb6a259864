"""A recording beside a golden set: what matches, what is read, what a person has to decide.

Replies or scores of one item come to its verdict, with a tally of all that could not be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from core.data.cells import CellError, read_number, shown
from core.data.scale import narrowest_scale, usual_scales
from core.data.verdict_files.columns import Columns, propose_columns
from core.data.verdict_files.preview import (
    ImportChoices,
    ImportPreview,
    Unread,
    Use,
    findings_of,
)
from core.data.verdict_files.recording import Entry, Recording, Reply, doubled_rows, entries
from core.errors import AspectError
from core.records import GoldenSet, Scale, Scored, UnscoredReason, Verdict
from core.verdicts import Reading, Verdicts, mean_verdict

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


class ReadReply(Protocol):
    """The reader of replies (`core.judging.parse.read_rating`), handed in: this layer knows no judges."""

    def __call__(
        self, reply: str, scale: Scale, aspect: str = "", finish: str = "stop", *, letters: bool = False
    ) -> Reading: ...


class Reader:
    """Reads the rows of one item after the other, on the scale that the judge was given."""

    def __init__(self, use: Use, choices: ImportChoices, scale: Scale, aspect: str, read_reply: ReadReply) -> None:
        self.tally = Tally()
        self._use, self._choices, self._aspect, self._onto = use, choices, aspect, scale
        self._scale = choices.scale or scale
        self._raw = choices.take == "own" and choices.scale is None
        self._read_reply = read_reply
        self._beyond: list[str] = []

    def verdict(self, item_id: str, rows: Sequence[Entry], *, keep_replies: bool = True) -> Verdict:
        """The mean over the item's readable replies or scores, mapped to the aspect's scale where that was chosen.

        `Verdict.raw` holds the judge's words as they came: its replies, or beside its scores those that `keep_replies`
        lets count as such, else the reasons.
        """
        readings: list[Reading] = []
        for entry in rows:
            for reading, text in self._replies(entry) if self._use == "replies" else (self._score(entry),):
                self.tally.n += 1
                if reading.value is None:
                    self.tally.miss(reading.reason or "no verdict", entry, text)
                readings.append(reading)
        raw = self._words(rows, keep_replies=keep_replies)
        verdict = mean_verdict(item_id, readings, explanation=raw[0] if raw else "", raw=raw)
        if isinstance(verdict, Scored) and self._choices.take == "map":
            return replace(verdict, value=mapped(verdict.value, self._scale, self._onto))
        return verdict

    def _words(self, rows: Sequence[Entry], *, keep_replies: bool) -> tuple[str, ...]:
        replies = [reply.text for entry in rows for reply in entry.replies or ()]
        if self._use == "replies":
            return tuple(replies)
        kept = tuple(text for text in replies if text) if keep_replies else ()
        return kept or tuple(entry.reason for entry in rows if entry.reason)

    def suggested(self) -> Scale | None:
        """The narrowest usual scale that would hold (nearly) all numbers, where the one in use does not."""
        if not self.tally.mostly_on_another_scale:
            return None
        ends = self.tally.ends
        if self._use == "scores":
            return narrowest_scale(*ends) if ends is not None else None
        for scale in usual_scales():
            held = sum(self._read_reply(text, scale, self._aspect).value is not None for text in self._beyond)
            if held >= 0.95 * len(self._beyond) and all(scale.holds(end) for end in ends or ()):
                return scale
        return None

    def _replies(self, entry: Entry) -> Iterator[tuple[Reading, str]]:
        for reply in entry.replies or (Reply(""),):
            reading = self._reading(reply)
            if reading.value is not None:
                self.tally.seen.append(reading.value)
                yield reading, reply.text
                continue
            if reading.reason == "out of range" and len(self._beyond) < _TRIED:
                self._beyond.append(reply.text)
            yield replace(reading, detail="None of its replies could be read."), reply.text

    def _reading(self, reply: Reply) -> Reading:
        if reply.finish == "error":
            return Reading(None, "provider error")
        return self._read_reply(reply.text, self._scale, self._aspect, reply.finish, letters=self._choices.letters)

    def _score(self, entry: Entry) -> tuple[Reading, str]:
        """A number; Good and Bad (pass and fail, true and false) are the ends of the scale."""
        if (word := verdict_word(entry.score)) is not None:
            self.tally.words += 1
            low, high = (0.0, 1.0) if self._raw else (self._scale.low, self._scale.high)
            return Reading(high if word else low), ""
        number = number_in(entry.score)
        text = "" if entry.score is None else shown(entry.score)
        if not isinstance(number, float):
            return Reading(None, "no verdict", detail=f"{number or 'The score is empty'}."), text
        self.tally.seen.append(number)
        if self._raw or self._scale.holds(number):
            return Reading(number), text
        return Reading(None, "out of range", detail=f"The score {number:g} lies outside {self._scale}."), text


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


def match(
    recording: Recording,
    golden: GoldenSet,
    aspect: str,
    choices: ImportChoices | None = None,
    *,
    read_reply: ReadReply,
) -> ImportPreview:
    """What `recording` says about the items of `golden` on `aspect`, and everything a person should know about it.

    Linear in the rows; only replies to items of the golden set are read, by `read_reply`.  AspectError for an
    aspect that the golden set does not have, GoldenError for a row without a usable item id, UsageError for a choice
    that cannot be.
    """
    if aspect not in golden.aspects:
        known = ", ".join(golden.aspects) or "none"
        raise AspectError(f"there is no aspect {aspect!r}; it has {known}.", file=golden.name)
    chosen = choices or ImportChoices()
    columns = propose_columns(recording, aspect, tuple(golden.aspects)).corrected(chosen.columns)
    use = chosen.use or _default_use(columns)
    by_item, unknown, n_rows = _by_item(recording, columns, aspect, golden)
    scale = golden.aspects[aspect].scale
    reader, keep_replies = Reader(use, chosen, scale, aspect, read_reply), "replies" in columns.roles
    verdicts = Verdicts(reader.verdict(item_id, rows, keep_replies=keep_replies) for item_id, rows in by_item.items())
    preview = ImportPreview(
        file=recording.name,
        shape=recording.shape,
        columns=columns,
        golden_id=golden.digest,
        aspect=aspect,
        scale=scale,
        choices=chosen,
        use=use,
        n_rows=n_rows,
        item_ids=golden.item_ids,
        unknown=unknown,
        doubled={item_id: twice for item_id, rows in by_item.items() if (twice := doubled_rows(rows))},
        n_replies=reader.tally.n,
        unread=dict(reader.tally.unread.most_common()),
        examples={reason: tuple(kept) for reason, kept in reader.tally.examples.items()},
        observed=reader.tally.ends,
        suggested=reader.suggested(),
        aspects=_aspects_in(recording, columns),
        findings=(),
        verdicts=verdicts,
    )
    return findings_of(preview, recording, words=reader.tally.words)


def _by_item(
    recording: Recording, columns: Columns, aspect: str, golden: GoldenSet
) -> tuple[dict[str, list[Entry]], tuple[str, ...], int]:
    """Rows by item of the golden set, in its order; the ids that are none of its items; how many rows there are."""
    rows: dict[str, list[Entry]] = {item_id: [] for item_id in golden.item_ids}
    unknown: dict[str, None] = {}
    n_rows = 0
    for entry in entries(recording, columns, aspect):
        n_rows += 1
        if entry.item_id in rows:
            rows[entry.item_id].append(entry)
        else:
            unknown[entry.item_id] = None
    return {item_id: claims for item_id, claims in rows.items() if claims}, tuple(unknown), n_rows


def _default_use(columns: Columns) -> Use:
    """Replies where they are named plainly or alone, else the scores."""
    exact = columns.found.get("replies") in ("exact", "corrected")
    return "replies" if "score" not in columns.roles or exact else "scores"


def _aspects_in(recording: Recording, columns: Columns) -> tuple[str, ...]:
    """Aspects that the file holds scores of, each in a column or in rows of its own."""
    rated = columns.roles.get("aspect")
    if rated is None:
        return tuple(columns.of_aspect)
    said: Mapping[str, None] = {str(row[rated])[:80]: None for row in recording.rows if row.get(rated)}
    return tuple(said)[:50]
