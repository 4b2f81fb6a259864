"""A recording beside a golden set: its replies or scores of one item come to a verdict, with a tally of the unread."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from core.data.cells import AmbiguousCommaError, CellError, aspect_key, is_no_value, read_id, read_number, shown
from core.data.columns import ALIASES, by_name
from core.data.pairs import PREFERENCES, side_named
from core.data.scale import narrowest_scale, off_scale, usual_scales
from core.data.split import task_of
from core.data.verdict_files.preview import ImportChoices, ImportPreview, Tally, Use
from core.data.verdict_files.recording import (
    BY_ORDER,
    CALIBRATION_ITEM,
    Columns,
    Entry,
    Recording,
    Reply,
    doubled_rows,
    entries,
    is_marked,
    open_recording,
    propose_columns,
    text_of,
)
from core.errors import GoldenError
from core.records import FloatArray, GoldenSet, Scale, Scored, Verdict
from core.verdicts import Reading, Verdicts, mean_verdict

GOOD = frozenset("good pass passed yes true correct positive up thumbs_up 👍".split())
BAD = frozenset("bad fail failed no false incorrect negative down thumbs_down 👎".split())

_TRIED = 100
"""So many replies out of range are read again, to see which usual scale would hold them."""


class ReadReply(Protocol):
    """The reader of replies (`core.judging.parse.read_rating`), handed in: this layer knows no judges."""

    def __call__(
        self, reply: str, scale: Scale, aspect: str = "", finish: str = "stop", *, letters: bool = False
    ) -> Reading: ...


class Reader:
    """Reads the rows of one item after the other, on the scale that the judge was given.

    Where `pairs` are judged by preference, a score may be a word for a side: A, B or a tie.
    """

    def __init__(
        self, use: Use, choices: ImportChoices, scale: Scale, aspect: str, read_reply: ReadReply, *, pairs: bool = False
    ) -> None:
        self.tally = Tally()
        self._use, self._choices, self._aspect, self._onto = use, choices, aspect, scale
        self._scale = choices.scale or scale
        self._sides = pairs and self._scale == PREFERENCES
        self._read_reply = read_reply
        self._beyond: list[str] = []
        self._codes: frozenset[float] = frozenset()

    def leave_out_codes(self, scores: Iterable[Any]) -> None:
        """Look through all scores for codes that say that an item could not be judged, such as -1; none is a score."""
        numbers = np.array([n for score in scores if isinstance(n := number_in(score), float)], dtype=np.float64)
        off = off_scale(numbers, self._scale)
        if self._choices.any_number or not off.own:
            self._codes = frozenset(numbers[off.mask].tolist())

    def verdict(self, item_id: str, rows: Sequence[Entry]) -> Verdict:
        """The mean over the item's readable replies or scores, mapped to the aspect's scale where that was chosen.

        `Verdict.raw` holds the judge's words as they came: its replies, or beside scores without any the reasons.
        """
        readings: list[Reading] = []
        for entry in rows:
            for reading, text in self._replies(entry) if self._use == "replies" else (self._score(entry),):
                self.tally.n += 1
                if reading.value is None:
                    self.tally.miss(reading.reason or "no verdict", entry, text)
                readings.append(reading)
        raw = tuple(reply.text for entry in rows for reply in entry.replies or ())
        if self._use == "scores":
            raw = tuple(filter(None, raw)) or tuple(entry.reason for entry in rows if entry.reason)
        verdict = with_notes(mean_verdict(item_id, readings, explanation=raw[0] if raw else "", raw=raw), rows[0])
        return replace(verdict, value=self.placed(verdict.value)) if isinstance(verdict, Scored) else verdict

    def placed(self, score: float) -> float:
        """A score of the judge as it counts: on the aspect's scale where it was chosen to map them."""
        if self._choices.take != "map":
            return score
        share = (score - self._scale.low) / (self._scale.high - self._scale.low)
        return self._onto.low + share * (self._onto.high - self._onto.low)

    def suggested(self) -> Scale | None:
        """The narrowest usual scale that would hold (nearly) all numbers, where the one in use does not."""
        ends = self.tally.ends
        if not self.tally.mostly_on_another_scale:
            return None
        if self._use == "scores":
            return narrowest_scale(*ends) if ends is not None else None
        for scale in usual_scales():
            held = sum(self._read_reply(text, scale, self._aspect).value is not None for text in self._beyond)
            if held >= 0.95 * len(self._beyond) and all(scale.holds(end) for end in ends or ()):
                return scale
        return None

    def _replies(self, entry: Entry) -> Iterator[tuple[Reading, str]]:
        for reply in entry.replies or (Reply(""),):
            reading = reading_of(reply, self._read_reply, self._scale, self._aspect, letters=self._choices.letters)
            if reading.value is not None:
                self.tally.numbers.append(reading.value)
                yield reading, reply.text
                continue
            if reading.reason == "out of range" and len(self._beyond) < _TRIED:
                self._beyond.append(reply.text)
            yield replace(reading, detail="None of its replies could be read."), reply.text

    def _score(self, entry: Entry) -> tuple[Reading, str]:
        """A number; Good and Bad (pass and fail, true and false) are the ends of the scale."""
        word = "_".join(str(entry.score).lower().split()) if isinstance(entry.score, str | bool) else ""
        if word in GOOD or word in BAD:
            self.tally.n_words += 1
            low, high = (0.0, 1.0) if self._choices.any_number else (self._scale.low, self._scale.high)
            return Reading(high if word in GOOD else low), ""
        if self._sides and isinstance(entry.score, str) and (side := side_named(entry.score)) is not None:
            self.tally.n_sides += 1
            return Reading(side), ""
        number = number_in(entry.score)
        text = "" if entry.score is None else shown(entry.score)
        if not isinstance(number, float):
            return Reading(None, "no verdict", detail=f"{number or 'The score is empty'}."), text
        self.tally.numbers.append(number)
        if number in self._codes:
            return Reading(None, "out of range", detail=f"The score {number:g} lies outside the others."), text
        if self._choices.any_number or self._scale.holds(number):
            return Reading(number), text
        return Reading(None, "out of range", detail=f"The score {number:g} lies outside {self._scale}."), text


def with_notes(verdict: Verdict, entry: Entry) -> Verdict:
    """`verdict` with what our own verdict files say beside the score: the mapped score and the calibration mark."""
    if not isinstance(verdict, Scored):
        return replace(verdict, calibration_item=True) if entry.calibration_item else verdict
    number = number_in(entry.calibrated)
    mapped = number if isinstance(number, float) and verdict.n_read + verdict.n_unread == 1 else None
    return replace(verdict, calibrated=mapped, calibration_item=entry.calibration_item)


def reading_of(
    reply: Reply, read_reply: ReadReply, scale: Scale, aspect: str = "", *, letters: bool = False
) -> Reading:
    """What `read_reply` reads in a reply; nothing in one whose request failed."""
    if reply.finish == "error":
        return Reading(None, "provider error")
    return read_reply(reply.text, scale, aspect, reply.finish, letters=letters)


def number_in(cell: Any) -> float | str | None:
    """The number in a score cell, None for an empty one, NaN or N/A, or a sentence that says why it is neither."""
    if is_no_value(cell) or (isinstance(cell, float) and math.isnan(cell)):
        return None
    try:
        return read_number(cell)
    except AmbiguousCommaError as problem:
        return f"{problem}: write it with a decimal point"
    except CellError:
        return f"{shown(cell)} is no number"


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
    scale = task_of(golden, aspect).scale
    choices = choices or ImportChoices()
    columns = propose_columns(recording, aspect, tuple(golden.aspects)).corrected(choices.columns)
    use = choices.use or default_use(columns)
    rows: dict[str, list[Entry]] = {item_id: [] for item_id in golden.item_ids}
    unknown: dict[str, None] = {}
    n_rows = 0
    for entry in entries(recording, columns, aspect):
        n_rows += 1
        if entry.item_id in rows:
            rows[entry.item_id].append(entry)
        else:
            unknown[entry.item_id] = None
    reader = Reader(use, choices, scale, aspect, read_reply, pairs=golden.kind == "pair")
    if use == "scores":
        reader.leave_out_codes(entry.score for own in rows.values() for entry in own)
    verdicts = Verdicts(reader.verdict(item_id, own) for item_id, own in rows.items() if own)
    return ImportPreview(
        recording=recording,
        golden_id=golden.digest,
        item_ids=golden.item_ids,
        aspect=aspect,
        scale=scale,
        choices=choices,
        columns=columns,
        use=use,
        n_rows=n_rows,
        unknown=tuple(unknown),
        doubled={item_id: doubled for item_id, own in rows.items() if (doubled := doubled_rows(own))},
        tally=reader.tally,
        suggested=reader.suggested(),
        verdicts=by_order(verdicts, recording, columns, reader.placed, aspect),
        pairs=golden.kind == "pair" and scale == PREFERENCES and use == "scores",
    )


def by_order(
    verdicts: Verdicts,
    recording: Recording,
    columns: Columns,
    placed: Callable[[float], float] = float,
    aspect: str = "",
) -> Verdicts:
    """`verdicts` with the score of each order, where a file holds them (`BY_ORDER`) and their mean is the verdict's.

    `placed` does to a score of the file what was done to the verdicts.  Where a column names the aspect of each row,
    only the rows of `aspect` count.
    """
    item_id, rated, wanted = columns.roles["item_id"], columns.roles.get("aspect", ""), aspect_key(aspect)
    if not set(BY_ORDER) <= set(columns.columns):
        return verdicts
    turned: dict[str, float] = {}
    for row in recording.rows:
        if rated and wanted and aspect_key(text_of(row.get(rated))) != wanted:
            continue
        first, second = (number_in(row.get(name)) for name in BY_ORDER)
        known = verdicts.by_id.get(read_id(row.get(item_id)))
        if not isinstance(known, Scored) or not isinstance(first, float) or not isinstance(second, float):
            continue
        first, second = placed(first), placed(second)
        if math.isclose((first + second) / 2.0, known.value, abs_tol=1e-9):
            turned[known.item_id] = second
    return Verdicts(
        replace(verdict, turned=turned.get(verdict.item_id)) if isinstance(verdict, Scored) else verdict
        for verdict in verdicts
    )


def default_use(columns: Columns) -> Use:
    """Replies where they are named plainly or alone, else the scores."""
    exact = columns.found.get("replies") in ("exact", "corrected")
    return "replies" if "score" not in columns.roles or exact else "scores"


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """A row an item: ids, `scores` (n,) with NaN for unscored, and the names of its system and source.

    `systems` and `sources` are empty where the file has no such column.  `calibration_items` are the ids that the file
    marks: their labels chose or fitted the judge.
    """

    item_ids: Sequence[str]
    scores: FloatArray
    systems: Sequence[str] = ()
    sources: Sequence[str] = ()
    calibration_items: frozenset[str] = frozenset()


def read_scored(path: Path, aspect: str = "") -> ScoredRows | None:
    """The scores of a file of any length; None for one that is no plain table of scores.

    Where a column names the aspect of each row, only the rows of `aspect` count.  GoldenError names the row of a
    missing or doubled id and of a score that is no number.
    """
    recording = open_recording(path)
    roles = propose_columns(recording, aspect)
    if recording.of_batch or default_use(roles) == "replies" or "sample" in roles.roles:
        return None
    item, score = roles.roles.get("item_id", ""), roles.roles.get("score", "")
    if not item or not score:
        return None
    system, source = group_columns(recording.columns)
    rated, wanted = roles.roles.get("aspect", "") if aspect else "", aspect_key(aspect)
    scores: dict[str, float] = {}
    systems: list[str] = []
    sources: list[str] = []
    marked: set[str] = set()
    for row, cells in recording.numbered():
        if rated and aspect_key(text_of(cells.get(rated))) != wanted:
            continue
        item_id, number = read_id(cells.get(item)), number_in(cells.get(score))
        if not item_id:
            raise GoldenError("there is no item_id", file=path.name, row=row, column=item)
        if item_id in scores:
            raise GoldenError(f"item {shown(item_id)} stands twice; keep one line an item", file=path.name, row=row)
        if isinstance(number, str):
            raise GoldenError(f"{number} (empty or null means unscored)", file=path.name, row=row, column=score)
        scores[item_id] = np.nan if number is None else number
        if system:
            systems.append(read_id(cells.get(system)))
        if source:
            sources.append(read_id(cells.get(source)))
        if is_marked(cells.get(CALIBRATION_ITEM)):
            marked.add(item_id)
    values = np.fromiter(scores.values(), dtype=np.float64, count=len(scores))
    return ScoredRows(list(scores), values, systems, sources, frozenset(marked))


def read_groups(path: Path) -> dict[str, tuple[str, str]]:
    """item_id → system and source, "" where not named, of a table of replies; empty where it names neither."""
    recording = open_recording(path)
    item, (system, source) = propose_columns(recording).roles.get("item_id", ""), group_columns(recording.columns)
    if recording.of_batch or not item or not system + source:
        return {}
    return {
        read_id(row.get(item)): (read_id(row.get(system) if system else ""), read_id(row.get(source) if source else ""))
        for row in recording.rows
    }


def group_columns(columns: Sequence[str]) -> tuple[str, str]:
    """Those of systems and of sources, "" for none."""
    system, source = (next(iter(by_name(columns, (n, *ALIASES[n]))), "") for n in ("system_id", "source_id"))
    return system, source
