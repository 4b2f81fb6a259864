"""Read files of another judge's replies or scores by item id.

::

    load_recording(file) ── Recording ── propose_columns(recording, aspect) ── Columns (correctable)
                                └── entries(recording, columns) ── RecordedRow for each row ── verdict_of an item's
    read_scored(path) ── ScoredRows: the scores of a file of any length

Formats: whatever `core.data.read_table` reads, with one row per item, or per item and sample.  Nested objects become
columns with dotted names.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from core.data.cells import (
    AmbiguousCommaError,
    CellError,
    aspect_key,
    clean_text,
    folded,
    is_no_value,
    read_id,
    read_list,
    read_number,
    shown,
)
from core.data.columns import ALIASES as GOLDEN_ALIASES
from core.data.columns import KNOWN_ASPECTS, ColumnRoles, How, by_name, first_named
from core.data.reshape import side_named
from core.data.tables import MAX_COLUMNS, USUAL_MB, Row, Table, TableFile, open_table, read_table, suffix_of
from core.errors import GoldenError, UsageError
from core.records import FloatArray, Scale, Scored, Verdict
from core.verdicts import Reading, mean_verdict

Use = Literal["replies", "scores"]
ReadReply = Callable[..., Reading]
"""The reader of replies (`core.judging.parse.read_rating`), handed in: this layer knows no judges."""

CALIBRATED, CALIBRATION_ITEM = "calibrated", "calibration_item"
"""Columns of our own verdict files: the score on the raters' scale, and whether the label chose or fitted the judge."""
BY_ORDER = ("score_a_first", "score_b_first")
"""Columns of scores of pairs asked both ways round, with text A first and with text B first; high prefers B in both."""

MAX_ROWS = 400_000
"""Rows of a recording: one per item, or one per item and sample."""
_HEAD_ROWS = 1_000
"""Rows that say which columns a recording of any length has."""

_DEEPEST, _DEEPEST_TEXT = 4, 8
_TOO_DEEP = "(nested too deeply to be read)"


def replies_in(cell: Any) -> tuple[str, ...]:
    """The replies in a cell: a text, a list (or JSON text of one), a chat message; null is an empty reply.

    An empty list holds none.
    """
    return ("",) if cell is None or cell == "" else tuple(map(text_of, read_list(cell)))


def text_of(value: Any, depth: int = 0) -> str:
    """The words in a JSON value: itself, the content of a message, the joined texts of its parts."""
    if value is None:
        return ""
    if isinstance(value, str):
        return clean_text(value)
    if depth > _DEEPEST_TEXT:
        return _TOO_DEEP
    if isinstance(value, Mapping) and (name := next((n for n in ("content", "text", "output_text") if n in value), "")):
        return text_of(value[name], depth + 1)
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        return "".join(text_of(part, depth + 1) for part in value)
    try:
        return clean_text(json.dumps(value, ensure_ascii=False))
    except (RecursionError, TypeError, ValueError):
        return _TOO_DEEP if isinstance(value, list | Mapping) else clean_text(str(value))


def flattened(row: Row, prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Objects within objects as dotted columns, `_DEEPEST` levels down; what lies deeper stays as it is."""
    flat: dict[str, Any] = {}
    for name, cell in row.items():
        if isinstance(cell, Mapping) and cell and depth < _DEEPEST:
            flat |= flattened(cell, f"{prefix}{name}.", depth + 1)
        else:
            flat[prefix + name] = cell
    return flat


@dataclass(frozen=True)
class Recording:
    """What the file holds: the columns in their order, and flat rows, read anew on each pass of a `TableFile`."""

    name: str
    columns: tuple[str, ...]
    table: Table | TableFile = field(repr=False)

    def numbered(self) -> Iterator[tuple[int, Row]]:
        """Every row (column → cell, an absent key is an empty cell) with its number in the file."""
        return ((number, flattened(row)) for number, row in self.table.numbered())


def load_recording(
    file: str | Path | bytes,
    name: str | None = None,
    *,
    max_mb: float = USUAL_MB,
    max_rows: int | None = MAX_ROWS,
    read: Callable[..., Table] = read_table,
) -> Recording:
    """Read a file of recorded replies or scores; one of an unknown ending is taken for JSON lines, plain or gzip.

    `file` is a path or the bytes of an upload (then `name` gives its ending); `max_mb` bounds it, packed and unpacked;
    `read` reads its table (`core.data.read_upload` for a file of unknown origin).  GoldenError names the row that
    cannot be read.
    """
    label = name or (Path(file).name if not isinstance(file, bytes) else "")
    table = read(file, label, suffix=_suffix(label), max_mb=max_mb, max_rows=max_rows)
    return _recording(label, table, table.rows)


def open_recording(path: Path) -> Recording:
    """As `load_recording`, for a file of any length, with the columns of its first `_HEAD_ROWS` rows."""
    table = open_table(path, suffix=_suffix(path.name), max_mb=None)
    return _recording(path.name, table, islice(table.rows(), _HEAD_ROWS))


def _suffix(label: str) -> str:
    return (suffix_of(label) or ".jsonl").removesuffix(".gz")


def _recording(label: str, table: Table | TableFile, rows: Iterable[Row]) -> Recording:
    columns = tuple(dict.fromkeys(column for row in rows for column in flattened(row)))
    if len(columns) > MAX_COLUMNS:
        raise GoldenError(f"{len(columns)} columns are too many; at most {MAX_COLUMNS} are read", file=label)
    return Recording(label, columns, table)


# ── which column plays which part ────────────────────────────────────────────────────────────────────────────────

Role = Literal["item_id", "replies", "score", "reason", "sample", "aspect"]
ROLES: tuple[Role, ...] = get_args(Role)

OWN_NAMES: Mapping[str, str] = {role: role for role in ROLES} | {"replies": "responses"}
_ALIASES: Mapping[Role, tuple[str, ...]] = {
    "item_id": tuple("id custom_id example_id instance_id uid item key sample_id row_id idx index".split()),
    "replies": tuple(
        "response replies reply judge_response judge_reply judge_output raw_response raw_responses raw_output raw "
        "completions completion outputs output output_text generations generation answer text content message".split()
    ),
    "score": tuple(
        "rating value judge_score judge_rating llm_score scores grade points stars mark verdict prediction".split()
    ),
    "reason": tuple("explanation feedback rationale justification critique comment reasoning analysis".split()),
    "sample": tuple(
        "seed sample_index sample_number sample_no sample_idx repetition repeat trial draw run_index".split()
    ),
    "aspect": GOLDEN_ALIASES["aspect"],
}
_PLAIN_REPLIES = frozenset(
    "responses response replies reply judge_response judge_reply judge_output raw_response raw_responses "
    "raw_output".split()
)
"""Reply columns that hold the judge's own words even next to a score; `output` or `text` may be what was judged."""

_SCORE_WORDS = "score|scores|rating|ratings|grade|value"


@dataclass(frozen=True)
class Columns(ColumnRoles):
    """The roles of a recording; `of_aspect` maps an aspect → the column of its scores, where the file holds several."""

    of_aspect: Mapping[str, str] = field(default_factory=dict)

    def check_role(self, role: str) -> None:
        """Raise UsageError for a name that is no role in a recording."""
        if role not in ROLES:
            raise UsageError(f"{role!r} is not a field of a recording; there are {', '.join(ROLES)}.")

    @property
    def replies_first(self) -> bool:
        """Whether replies are taken where a row has both: they are named plainly or alone."""
        return "score" not in self.roles or self.found.get("replies") in ("exact", "corrected")

    def of_rows(self, aspect: str) -> Callable[[Row], bool]:
        """Whether a row is about `aspect`; true of every row where no column names one, or `aspect` is empty."""
        column, wanted = self.roles.get("aspect", ""), aspect_key(aspect)
        return lambda row: not column or not wanted or aspect_key(text_of(row.get(column))) == wanted


def propose_columns(recording: Recording, aspect: str = "", aspects: Collection[str] = ()) -> Columns:
    """The columns of `recording` by name: a role's own name first, then aliases in their order.

    A column of scores named after `aspect` goes before a general one.  `aspects` are names to look for besides the
    usual ones.  A column that could be the judged text rather than the judge's words plays no part next to scores.
    """
    names = recording.columns
    shallow = sorted(names, key=lambda column: column.count("."))  # before a nested one of the same name
    found: dict[Role, list[str]] = {role: by_name(shallow, (OWN_NAMES[role], *_ALIASES[role]), _last) for role in ROLES}
    wanted = {folded(name): name for name in (*sorted(KNOWN_ASPECTS), *aspects, aspect) if folded(name)}
    of_aspect: dict[str, str] = {}  # coherence, score_coherence, scores.coherence
    for column in names:
        if folded(column.split(".")[0]) in _PLAIN_REPLIES:
            continue
        stem = (
            re.sub(f"^({_SCORE_WORDS})_|_({_SCORE_WORDS})$", "", _last(column))
            .removeprefix("judge_")
            .removeprefix("llm_")
        )
        if stem in wanted:
            of_aspect.setdefault(wanted[stem], column)
    if aspect in of_aspect:
        found["score"].insert(0, of_aspect[aspect])
    if found["score"]:  # only the judge's own words count as replies next to a score
        found["replies"] = [name for name in found["replies"] if _last(name) in _PLAIN_REPLIES]
    roles: dict[str, str] = {}
    for role in ROLES:
        if free := [column for column in found[role] if column not in roles.values()]:
            roles[role] = free[0]
    if "replies" in roles and "score" not in roles and "reason" in roles:
        del roles["reason"]  # a reason explains a score; without one it may be the reply itself
    how: dict[str, How] = {r: "exact" if column.lower() == OWN_NAMES[r] else "alias" for r, column in roles.items()}
    return Columns(roles, names, how, of_aspect)


def _last(column: str) -> str:
    return folded(column.rsplit(".", 1)[-1])


# ── what a row says ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """One row: its number in the file, its `cells`, and what the columns say of them.

    `replies` is None where the row has no such cell.  `score` is as it came; `has_score` tells an empty score
    (unscored) from a missing cell.  `sample` is "" where no column numbers samples.
    """

    row: int
    item_id: str
    replies: tuple[str, ...] | None
    score: Any
    has_score: bool
    reason: str
    sample: str
    cells: Row


def entries(recording: Recording, columns: Columns, aspect: str = "", *, once: bool = False) -> Iterator[RecordedRow]:
    """The entries of all rows, in the file's order.

    Where a column names the aspect of each row, only the rows of `aspect` are given.  GoldenError without a column of
    item ids or in a row; with `once` also for an item that came before and that no sample number tells apart.
    """
    roles, name = columns.roles, recording.name
    if "item_id" not in roles:
        raise GoldenError(
            f"there is no item_id; no column is named so, or id, custom_id and the like. There are "
            f"{', '.join(columns.columns)[:300]}",
            file=name,
            row=1,
        )
    id_column, replies, score = roles["item_id"], roles.get("replies", ""), roles.get("score", "")
    reason, sample, of_aspect = roles.get("reason", ""), roles.get("sample", ""), columns.of_rows(aspect)
    seen: set[tuple[str, str]] = set()
    for row, cells in recording.numbered():
        if not of_aspect(cells):
            continue
        cell = cells.get(id_column)
        item_id = "" if isinstance(cell, bool | list | dict) else read_id(cell)
        if not item_id:
            raise GoldenError("there is no item_id", file=name, row=row, column=id_column)
        entry = RecordedRow(
            row,
            item_id,
            replies_in(cells[replies]) if replies in cells else None,
            cells.get(score) if score else None,
            score in cells,
            text_of(cells.get(reason)) if reason else "",
            read_id(cells.get(sample)) if sample else "",
            cells,
        )
        if once and (item_id, entry.sample) in seen:
            message = f"item {shown(item_id)} appears twice; keep one line per item, or number its samples"
            raise GoldenError(message, file=name, row=row)
        if once:
            seen.add((item_id, entry.sample))
        yield entry


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


def given_number(entry: RecordedRow, file: str) -> float | None:
    """The score of a row, None for an empty one.  GoldenError for one that is no number."""
    number = number_in(entry.score)
    if isinstance(number, str):
        raise GoldenError(f"{number} (empty or null means unscored)", file=file, row=entry.row)
    return number


def score_reading(cell: Any, scale: Scale | None, *, sides: bool = False) -> Reading:
    """The score in a cell; out of range off `scale`, where there is one.  `sides`: it may be A, B or a tie in words."""
    if sides and isinstance(cell, str) and (side := side_named(cell)) is not None:
        return Reading(side)
    number = number_in(cell)
    if not isinstance(number, float):
        return Reading(None, "no verdict", detail=f"{number or 'The score is empty'}.")
    return Reading(number) if scale is None or scale.holds(number) else out_of_range(number, scale)


def readings_of(
    entry: RecordedRow,
    use: Use,
    scale: Scale,
    aspect: str,
    read_reply: ReadReply,
    *,
    own_scale: bool = False,
    sides: bool = False,
) -> list[tuple[Reading, str]]:
    """The readings of a row on `scale`: each reply or score, parsed and raw.

    With `own_scale` any score counts; `sides` as in `score_reading`.
    """
    if use == "scores":
        reading = score_reading(entry.score, None if own_scale else scale, sides=sides)
        return [(reading, "" if entry.score is None else shown(entry.score))]
    found = [(read_reply(reply, scale, aspect), reply) for reply in entry.replies or ("",)]
    why = "None of its replies could be read."
    return [(replace(read, detail=why) if read.value is None else read, reply) for read, reply in found]


def words_of(rows: Sequence[RecordedRow], use: Use) -> tuple[str, ...]:
    """The judge's words on an item as they came: its replies, or next to scores without any its reasons."""
    replies = tuple(reply for entry in rows for reply in entry.replies or ())
    if use == "replies":
        return replies
    return tuple(filter(None, replies)) or tuple(entry.reason for entry in rows if entry.reason)


def out_of_range(number: float, scale: Scale | str) -> Reading:
    """No score: the number lies outside the scale."""
    return Reading(None, "out of range", detail=f"The score {number:g} lies outside {scale}.")


def verdict_of(
    rows: Sequence[RecordedRow],
    readings: Sequence[Reading],
    raw: tuple[str, ...] = (),
) -> Verdict:
    """What the `rows` of one item come to: the mean of their `readings`, and what our own files say next to it.

    That are the mapped score, the calibration mark, and the score of each order of a pair.  `raw` are the judge's words
    as they came.
    """
    verdict, cells = mean_verdict(rows[0].item_id, readings, explanation=raw[0] if raw else "", raw=raw), rows[0].cells
    marked = _is_marked(cells)
    if not isinstance(verdict, Scored):
        return replace(verdict, calibration_item=marked)
    turned = None
    mapped, *orders = (number_in(cells.get(name)) for name in (CALIBRATED, *BY_ORDER))
    first, second = (score if isinstance(score, float) else math.nan for score in orders)
    if math.isclose((first + second) / 2.0, verdict.value, abs_tol=1e-9):
        turned = second
    calibrated = mapped if isinstance(mapped, float) and verdict.n_read + verdict.n_unread == 1 else None
    return replace(verdict, turned=turned, calibrated=calibrated, calibration_item=marked)


def _is_marked(cells: Row) -> bool:
    """Whether the column `calibration_item` says yes, in JSON or in a table of texts."""
    return str(cells.get(CALIBRATION_ITEM)).strip().lower() in ("true", "1", "1.0", "yes")


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
    if columns.replies_first or "sample" in columns.roles or "item_id" not in columns.roles:
        return None
    groups = [first_named(recording.columns, role) for role in ("system_id", "source_id")]
    ids, scores = list[str](), list[float | None]()
    named: tuple[list[str], list[str]] = ([], [])
    marked: set[str] = set()
    for entry in entries(recording, columns, aspect, once=True):
        ids.append(entry.item_id)
        scores.append(given_number(entry, path.name))
        for names, column in zip(named, groups, strict=True):
            names += [read_id(entry.cells.get(one)) for one in column]
        if _is_marked(entry.cells):
            marked.add(entry.item_id)
    return ScoredRows(ids, np.array(scores, dtype=np.float64), named[0], named[1], frozenset(marked))


def read_groups(path: Path) -> dict[str, tuple[str, str]]:
    """item_id → system and source, "" where not named, of a table of replies; empty where it names neither."""
    recording = open_recording(path)
    item = propose_columns(recording).roles.get("item_id")
    system, source = ("".join(first_named(recording.columns, role)) for role in ("system_id", "source_id"))
    if not item or not system + source:
        return {}
    return {
        read_id(row.get(item)): (read_id(row.get(system) if system else ""), read_id(row.get(source) if source else ""))
        for _, row in recording.numbered()
    }
