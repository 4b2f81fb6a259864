"""A recording next to a golden set: the verdict on each item, what a person chooses and is told before it is kept.

::

    match(recording, golden, aspect, choices) ── ImportPreview ── as_judge(name) ── JudgeScores, replies by item id

A score on another scale is counted and asked about, never clipped or guessed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from core.data.cells import AmbiguousCommaError, CellError, folded, is_no_value, read_id, read_number, shown
from core.data.columns import first_named
from core.data.pairs import PREFERENCES, side_named
from core.data.reply_files import (
    BY_ORDER,
    CALIBRATION_ITEM,
    OWN_NAMES,
    Columns,
    RecordedRow,
    Recording,
    Role,
    entries,
    is_marked,
    open_recording,
    propose_columns,
)
from core.data.scale import narrowest_scale, off_scale
from core.data.sources import FileFinding
from core.data.split import task_of
from core.errors import GoldenError, UsageError
from core.records import FloatArray, GoldenSet, JudgeScores, Scale, Scored, UnscoredReason, Verdict
from core.verdicts import Reading, Verdicts, mean_verdict
from core.wording import counted

Use = Literal["replies", "scores"]

_EXAMPLES, _EXAMPLE_TEXT = 3, 200
_MANY = 0.05
"""Share of numbers out of range from which the scale is in question, and not a few slips."""
_CHOICES = frozenset((-1.0, 0.0, 0.5, 1.0, 1.5, 2.0))
"""Numbers that stand for a choice between two texts and a tie, if no other comes."""


class ReadReply(Protocol):
    """The reader of replies (`core.judging.parse.read_rating`), handed in: this layer knows no judges."""

    def __call__(self, reply: str, scale: Scale, aspect: str = "", *, letters: bool = False) -> Reading: ...


@dataclass(frozen=True)
class ImportChoices:
    """What a person decided; all of it has a default that takes the file at its word.

    `columns` corrects the roles (None: nothing plays it).  `use` says what to take where a file holds both replies
    and scores.  `scale` is the scale that the judge was given, None for the aspect's; where it is another, `take`
    "map" maps it linearly to the aspect's ends, "own" leaves the numbers on a scale of their own.  With "own" and no
    scale, scores are taken as they are.  `letters`: the judge was offered letters, A for the low end.
    """

    columns: Mapping[Role, str | None] = field(default_factory=dict)
    use: Use | None = None
    scale: Scale | None = None
    take: Literal["map", "own"] = "map"
    letters: bool = False
    higher_is_better: bool = True

    @property
    def any_number(self) -> bool:
        """Whether scores are taken as they are, whatever their scale."""
        return self.take == "own" and self.scale is None


@dataclass(frozen=True, slots=True)
class Unread:
    """A reply or a row that gave no number: where it stands and how it begins."""

    item_id: str
    row: int
    text: str


@dataclass
class Tally:
    """What was read: `n` replies or scores, the numbers before any mapping, and the unread by reason.

    `n_sides` counts words for a side of a pair.
    """

    n: int = 0
    numbers: list[float] = field(default_factory=list)
    n_sides: int = 0
    unread: Counter[UnscoredReason] = field(default_factory=Counter)
    examples: dict[UnscoredReason, list[Unread]] = field(default_factory=dict)


class RecordingReader:
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
        self._codes: frozenset[float] = frozenset()

    def leave_out_codes(self, scores: Iterable[Any]) -> None:
        """Look through all scores for codes that say that an item could not be judged, such as -1; none is a score."""
        numbers = np.array([n for score in scores if isinstance(n := number_in(score), float)], dtype=np.float64)
        off = off_scale(numbers, self._scale)
        if self._choices.any_number or not off.own:
            self._codes = frozenset(numbers[off.mask].tolist())

    def verdict(self, item_id: str, rows: Sequence[RecordedRow]) -> Verdict:
        """The mean over the item's readable replies or scores, mapped to the aspect's scale where that was chosen.

        `Verdict.raw` holds the judge's words as they came: its replies, or next to scores without any the reasons.
        """
        readings: list[Reading] = []
        for entry in rows:
            for reading, text in self._replies(entry) if self._use == "replies" else (self._score(entry),):
                self.tally.n += 1
                if reading.value is None:
                    reason = reading.reason or "no verdict"
                    self.tally.unread[reason] += 1
                    examples = self.tally.examples.setdefault(reason, [])
                    if len(examples) < _EXAMPLES:
                        examples.append(Unread(entry.item_id, entry.row, text[:_EXAMPLE_TEXT]))
                readings.append(reading)
        raw = tuple(reply for entry in rows for reply in entry.replies or ())
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
        """The narrowest usual scale that would hold all scores, where many lie outside the one in use."""
        numbers = self.tally.numbers
        many = self.tally.unread["out of range"] >= _MANY * self.tally.n > 0
        return narrowest_scale(min(numbers), max(numbers)) if many and numbers and self._use == "scores" else None

    def _replies(self, entry: RecordedRow) -> Iterator[tuple[Reading, str]]:
        for reply in entry.replies or ("",):
            reading = self._read_reply(reply, self._scale, self._aspect, letters=self._choices.letters)
            if reading.value is not None:
                self.tally.numbers.append(reading.value)
                yield reading, reply
            else:
                yield replace(reading, detail="None of its replies could be read."), reply

    def _score(self, entry: RecordedRow) -> tuple[Reading, str]:
        if self._sides and isinstance(entry.score, str) and (side := side_named(entry.score)) is not None:
            self.tally.n_sides += 1
            return Reading(side), ""
        number, text = number_in(entry.score), "" if entry.score is None else shown(entry.score)
        if not isinstance(number, float):
            return Reading(None, "no verdict", detail=f"{number or 'The score is empty'}."), text
        self.tally.numbers.append(number)
        if number in self._codes:
            return Reading(None, "out of range", detail=f"The score {number:g} lies outside the others."), text
        if self._choices.any_number or self._scale.holds(number):
            return Reading(number), text
        return Reading(None, "out of range", detail=f"The score {number:g} lies outside {self._scale}."), text


def with_notes(verdict: Verdict, entry: RecordedRow) -> Verdict:
    """`verdict` with what our own verdict files say next to the score: the mapped score and the calibration mark."""
    if not isinstance(verdict, Scored):
        return replace(verdict, calibration_item=True) if entry.calibration_item else verdict
    number = number_in(entry.calibrated)
    mapped = number if isinstance(number, float) and verdict.n_read + verdict.n_unread == 1 else None
    return replace(verdict, calibrated=mapped, calibration_item=entry.calibration_item)


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
    use = choices.use or ("replies" if columns.replies_first else "scores")
    rows: dict[str, list[RecordedRow]] = {item_id: [] for item_id in golden.item_ids}
    unknown: dict[str, None] = {}
    n_rows = 0
    for entry in entries(recording, columns, aspect):
        n_rows += 1
        if entry.item_id in rows:
            rows[entry.item_id].append(entry)
        else:
            unknown[entry.item_id] = None
    reader = RecordingReader(use, choices, scale, aspect, read_reply, pairs=golden.kind == "pair")
    if use == "scores":
        reader.leave_out_codes(entry.score for own in rows.values() for entry in own)
    verdicts = Verdicts(reader.verdict(item_id, own) for item_id, own in rows.items() if own)
    doubled: dict[str, tuple[int, ...]] = {}
    for item_id, own in rows.items():
        by_sample: dict[str, tuple[int, ...]] = {}
        for entry in own:
            by_sample[entry.sample] = (*by_sample.get(entry.sample, ()), entry.row)
        doubled |= {item_id: next((same for same in by_sample.values() if len(same) > 1), ())}
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
        doubled={item_id: same for item_id, same in doubled.items() if same},
        tally=reader.tally,
        suggested=reader.suggested(),
        verdicts=by_order(verdicts, recording, columns, reader, aspect),
        pairs=golden.kind == "pair" and scale == PREFERENCES and use == "scores",
    )


def by_order(
    verdicts: Verdicts, recording: Recording, columns: Columns, reader: RecordingReader | None = None, aspect: str = ""
) -> Verdicts:
    """`verdicts` with the score of each order, where a file holds them (`BY_ORDER`) and their mean is the verdict's.

    A score of the file is placed as `reader` placed the verdicts.  Where a column names the aspect of each row, only
    the rows of `aspect` count.
    """
    if not set(BY_ORDER) <= set(columns.columns):
        return verdicts
    item_id, of_aspect = columns.roles["item_id"], columns.of_rows(aspect)
    turned: dict[str, float] = {}
    for row in filter(of_aspect, recording.rows):
        first, second = (number_in(row.get(name)) for name in BY_ORDER)
        known = verdicts.by_id.get(read_id(row.get(item_id)))
        if not isinstance(known, Scored) or not isinstance(first, float) or not isinstance(second, float):
            continue
        if reader is not None:
            first, second = reader.placed(first), reader.placed(second)
        if math.isclose((first + second) / 2.0, known.value, abs_tol=1e-9):
            turned[known.item_id] = second
    return Verdicts(
        replace(verdict, turned=turned.get(verdict.item_id)) if isinstance(verdict, Scored) else verdict
        for verdict in verdicts
    )


@dataclass(frozen=True)
class ImportPreview:
    """How a recording fits a golden set on one aspect.

    `n_rows` counts the rows read (those of the aspect, where a column names it).  `unknown` are the file's ids that no
    item has, `doubled` the rows of items with several that no sample number tells apart.  `suggested` is a usual scale
    that holds the numbers where the stated one does not.  `pairs`: scores choose between two texts.  `verdicts` are
    those of the items that have a row, with the judge's words; `item_ids` are all of the golden set.
    """

    recording: Recording
    golden_id: str
    item_ids: tuple[str, ...]
    aspect: str
    scale: Scale
    choices: ImportChoices
    columns: Columns
    use: Use
    n_rows: int
    unknown: tuple[str, ...]
    doubled: Mapping[str, tuple[int, ...]]
    tally: Tally
    suggested: Scale | None
    verdicts: Verdicts
    pairs: bool = False

    @cached_property
    def values(self) -> FloatArray:
        """(n_items,) float64 in the golden set's order, NaN where there is no score."""
        return self.verdicts.aligned(self.item_ids)

    @cached_property
    def calibration_items(self) -> tuple[int, ...]:
        """Positions of the items that the file marks: their labels chose or fitted the judge."""
        marked = {verdict.item_id for verdict in self.verdicts if verdict.calibration_item}
        return tuple(k for k, item_id in enumerate(self.item_ids) if item_id in marked)

    @cached_property
    def without_row(self) -> tuple[str, ...]:
        """Items that no row is about."""
        return tuple(item_id for item_id in self.item_ids if item_id not in self.verdicts.by_id)

    @property
    def n_items(self) -> int:
        return len(self.item_ids)

    @property
    def n_matched(self) -> int:
        """How many items have a row."""
        return len(self.verdicts)

    @property
    def n_scored(self) -> int:
        return len(self.verdicts) - len(self.verdicts.unscored)

    @property
    def n_unread(self) -> int:
        return self.tally.unread.total()

    @property
    def stated_scale(self) -> Scale:
        """The scale that the judge was given."""
        return self.choices.scale or self.scale

    @property
    def mapped(self) -> bool:
        """Whether the judge's scale has other ends than the aspect's."""
        return (self.stated_scale.low, self.stated_scale.high) != (self.scale.low, self.scale.high)

    @property
    def on_scale(self) -> bool:
        """Whether `values` lie on the aspect's scale, as given or mapped."""
        if self.choices.any_number:
            return self.use == "replies"
        return self.choices.take == "map" or not self.mapped

    @property
    def note(self) -> str:
        """One sentence on what the judge is; the same file with the same choices gives the same."""
        stated = self.stated_scale
        how = f"on {stated}, mapped linearly to {self.scale}" if self.mapped else f"on {stated}"
        if not self.on_scale:
            how = "as they are, on a scale of their own" if self.choices.any_number else f"on their own scale {stated}"
        letters = ", letters with A for the low end" if self.choices.letters else ""
        lower = "" if self.choices.higher_is_better else "; lower is better"
        return f"{self.use.capitalize()} recorded in {self.recording.name[:80]}, {how}{letters}{lower}."

    @cached_property
    def aspects(self) -> tuple[str, ...]:
        """Aspects that the file holds scores of, each in a column or in rows of its own."""
        column = self.columns.roles.get("aspect")
        if column is None:
            return tuple(self.columns.of_aspect)
        return tuple(dict.fromkeys(str(row[column])[:80] for row in self.recording.rows if row.get(column)))[:50]

    @cached_property
    def findings(self) -> tuple[FileFinding, ...]:
        """Errors forbid the import, warnings and notes do not."""
        return (*self.recording.findings, *_findings(self))

    @property
    def problems(self) -> tuple[str, ...]:
        """Why it cannot be added as it stands, in words; empty when it can."""
        return tuple(finding.message for finding in self.findings if finding.severity == "error")

    def as_judge(self, name: str) -> tuple[JudgeScores, Mapping[str, tuple[str, ...]]]:
        """The judge, and by item id its replies (or the reasons next to its scores).

        UsageError with the first of `problems`.
        """
        if self.problems:
            raise UsageError(f"{self.recording.name} cannot be added: {self.problems[0]}")
        judge = JudgeScores(
            name=name.strip(),
            kind="imported",
            aspect=self.aspect,
            values=self.values,
            unscored=self.verdicts.unscored,
            on_scale=self.on_scale,
            higher_is_better=self.choices.higher_is_better,
            note=self.note,
            calls_per_item=self.tally.n / self.n_matched if self.use == "replies" and self.n_matched else None,
            turned=self.verdicts.of_items(self.item_ids).turned,
            seen=self.calibration_items,
            mapped=self.verdicts.of_items(self.item_ids).mapped if self.choices.higher_is_better else None,
        )
        return judge, {verdict.item_id: verdict.raw for verdict in self.verdicts if verdict.raw}


def _findings(preview: ImportPreview) -> Iterator[FileFinding]:
    """What is wrong with the file, then its ids, its columns, and its numbers."""
    roles, found, use, tally = preview.columns.roles, preview.columns.found, preview.use, preview.tally
    role: Role = "replies" if use == "replies" else "score"
    there = _listed(preview.aspects)
    if role not in roles:
        if preview.aspects and (use == "scores" or "score" not in roles):
            message = f"The file holds scores of {there}, and none under the name {preview.aspect}. Choose the "
            yield FileFinding("error", f"{message}column of scores that belongs to it.")
            return
        usual = "replies (responses, reply, output …)" if role == "replies" else "scores (score, rating, value …)"
        message = f"No column holds {usual}. Choose one; the file has {_listed(preview.columns.columns)}."
        yield FileFinding("error", message)
        return
    if not preview.n_rows:
        yield FileFinding("error", f"The file holds rows about {there}, and none about {preview.aspect}.")
        return
    if not preview.n_matched:
        yield FileFinding(
            "error",
            f"None of the {len(preview.unknown):,} item ids in the file is in the golden set. The file has "
            f"{_listed(preview.unknown[:3])}; the golden set has {_listed(preview.without_row[:3])}. Choose the column "
            "that holds the golden set's ids.",
        )
    elif preview.unknown:
        yield FileFinding(
            "warning",
            f"{counted(len(preview.unknown), 'item id of the file is', 'item ids of the file are')} not in the golden "
            f"set, which has no labels to compare the judge with there: {_first(preview.unknown)}",
        )
    if preview.doubled:
        item_id, rows = next(iter(preview.doubled.items()))
        yield FileFinding(
            "error",
            f"{counted(len(preview.doubled), 'item stands', 'items stand')} more than once: {item_id!r} in rows "
            f"{' and '.join(map(str, rows[:4]))}. Keep one row per item, or choose the column that numbers its "
            "samples.",
            row=rows[-1],
        )
    if preview.without_row and preview.n_matched:
        yield FileFinding(
            "warning",
            f"{len(preview.without_row):,} of the {preview.n_items:,} items of the golden set have no row and stay "
            f"unscored: {_first(preview.without_row)}",
        )
    for named in preview.columns.found_by("alias"):
        yield FileFinding("note", f"is taken for the {OWN_NAMES[named]}", column=roles[named])
    for used in ("item_id", role):
        if found.get(used) != "corrected" and (rest := preview.columns.also.get(used)):
            yield FileFinding("note", f"{_listed(rest[:5])} could hold the {used} too; it can be chosen instead.")
    if others := [name for name in preview.aspects if folded(name) != folded(preview.aspect)]:
        yield FileFinding("note", f"The file also holds {_listed(others[:8])}; import it once for each aspect.")
    stated = preview.stated_scale
    if tally.n_sides:
        words = counted(tally.n_sides, "choice was taken as a number", "choices were taken as numbers")
        yield FileFinding("note", f"{words}: A 1, a tie 2, B 3.")
    choices = sorted(set(tally.numbers))
    if preview.pairs and not preview.choices.scale and choices and _CHOICES.issuperset(choices):
        yield FileFinding(
            "error",
            f"The scores are {', '.join(f'{number:g}' for number in choices)}, and none is 3, which prefers the second "
            "text. Say on which scale the judge answered, such as another from 1 to 2, mapped to that of the aspect.",
        )
    unread = dict(tally.unread.most_common())
    if off := unread.pop("out of range", 0):
        ends = f", which run from {min(choices):g} to {max(choices):g}," if choices and use == "scores" else ""
        hint = f" They would fit {preview.suggested}." if preview.suggested is not None else ""
        yield FileFinding(
            "warning",
            f"{off:,} of {tally.n:,} {use}{ends} lie outside {stated} and are not used.{hint} If the judge was given "
            "another scale, say which, or take the numbers as they are.",
        )
    if unread:
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in unread.items())
        yield FileFinding(
            "warning", f"No number was found in {sum(unread.values()):,} of {tally.n:,} {use}: {reasons}."
        )
    scored = preview.values[~np.isnan(preview.values)]
    if not scored.size and preview.n_matched:
        yield FileFinding("error", "No item got a score, so there is nothing to compare. See the reasons and examples.")
    elif scored.size > 1 and scored.min() == scored.max():
        yield FileFinding(
            "warning",
            f"All {scored.size:,} scores are {scored[0]:g}: a judge that gives everything the same number has no "
            "correlation with anybody.",
        )
    if preview.on_scale and preview.mapped:
        yield FileFinding("note", f"Numbers on {stated} are mapped linearly to {preview.scale}.")
    if n_seen := len(preview.calibration_items):
        message = f"The judge was calibrated on {counted(n_seen, 'item')}, as the file says."
        yield FileFinding("note", f"{message} Comparisons leave them out.")
    if not preview.on_scale:
        yield FileFinding("note", "The scores stay on a scale of their own: correlations hold, errors and bias do not.")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name[:60] for name in names[:12])


def _first(names: Sequence[str]) -> str:
    return f"{_listed(names[:10])}{' …' if len(names) > 10 else '.'}"


# ── scores of any number ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """A row per item: ids, `scores` (n,) with NaN for unscored, and the names of its system and source.

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
    columns = propose_columns(recording, aspect)
    item, score = columns.roles.get("item_id"), columns.roles.get("score")
    if columns.replies_first or "sample" in columns.roles or not item or not score:
        return None
    system, source = group_columns(recording.columns)
    of_aspect = columns.of_rows(aspect)
    scores: dict[str, float] = {}
    systems: list[str] = []
    sources: list[str] = []
    marked: set[str] = set()
    for row, cells in recording.numbered():
        if not of_aspect(cells):
            continue
        item_id, number = read_id(cells.get(item)), number_in(cells.get(score))
        if not item_id:
            raise GoldenError("there is no item_id", file=path.name, row=row, column=item)
        if item_id in scores:
            raise GoldenError(f"item {shown(item_id)} comes twice; keep one line per item", file=path.name, row=row)
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
    item, (system, source) = propose_columns(recording).roles.get("item_id"), group_columns(recording.columns)
    if not item or not system + source:
        return {}
    return {
        read_id(row.get(item)): (read_id(row.get(system) if system else ""), read_id(row.get(source) if source else ""))
        for row in recording.rows
    }


def group_columns(columns: Sequence[str]) -> tuple[str, str]:
    """Those of systems and of sources, "" for none."""
    system, source = ("".join(first_named(columns, role)) for role in ("system_id", "source_id"))
    return system, source
