"""Files of what another judge said: replies or scores by item id, read, and what each row says of an item.

::

    load_recording(file) ── Recording ── propose_columns(recording, aspect) ── Columns (correctable)
                                └── entries(recording, columns) ── RecordedRow for each row

Formats: whatever `core.data.read_table` reads, with one row per item, or per item and sample.  Nested objects become
columns with dotted names.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

from core.data.cells import aspect_key, clean_text, folded, read_id, read_list, shown
from core.data.columns import ALIASES as GOLDEN_ALIASES
from core.data.columns import KNOWN_ASPECTS, ColumnRoles, How, by_name
from core.data.sources import MAX_COLUMNS, USUAL_MB, FileFinding, open_source, suffix_of
from core.data.tables import Row, Table, TableFile, open_table, read_table
from core.errors import GoldenError, UsageError

CALIBRATED, CALIBRATION_ITEM = "calibrated", "calibration_item"
"""Columns of our own verdict files: the score on the raters' scale, and whether the label chose or fitted the judge."""
BY_ORDER = ("score_a_first", "score_b_first")
"""Columns of scores of pairs asked both ways round, with text A first and with text B first; high prefers B in both."""

MAX_ROWS = 400_000
"""Rows of a recording: one per item, or one per item and sample."""
HEAD_ROWS = 1_000
"""Rows that say which columns a recording of any length has."""

_LONGEST_ID, _DEEPEST, _DEEPEST_TEXT = 500, 4, 8
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
    """What the file holds: the columns in their order, and flat rows (column → cell, an absent key is an empty cell).

    `digest` is the hash of the bytes that were read; `findings` are those of the reading itself.  The rows of a
    `TableFile` are read anew on each pass.
    """

    name: str
    columns: tuple[str, ...]
    table: Table | TableFile = field(repr=False)
    digest: str = ""
    findings: tuple[FileFinding, ...] = ()

    def numbered(self) -> Iterator[tuple[int, Row]]:
        """Every row with its number in the file."""
        if isinstance(self.table, Table):
            yield from self.table.numbered()
            return
        for row in (rows := self.table.rows()):
            yield rows.number, flattened(row)

    @property
    def rows(self) -> Iterator[Row]:
        return (row for _, row in self.numbered())


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
    suffix = _suffix(label)
    data = file if isinstance(file, bytes) else open_source(file, suffix=suffix, max_mb=max_mb).data()
    table = read(data, label, suffix=suffix, max_mb=max_mb, max_rows=max_rows)
    rows = tuple(map(flattened, table.rows))
    digest = hashlib.sha256(data).hexdigest()
    return Recording(label, _columns_of(rows, label), replace(table, rows=rows), digest, table.findings)


def open_recording(path: Path) -> Recording:
    """As `load_recording`, for a file of any length, with the columns of its first `HEAD_ROWS` rows.

    An encoding is not guessed: text has to be UTF-8 or UTF-16.
    """
    table = open_table(path, suffix=_suffix(path.name), max_mb=None)
    if table.encoding == "cp1252":
        raise table.source.refuse("The text is not UTF-8; save the file as UTF-8.")
    return Recording(path.name, _columns_of(map(flattened, islice(table.rows(), HEAD_ROWS)), path.name), table)


def _suffix(label: str) -> str:
    return (suffix_of(label) or ".jsonl").removesuffix(".gz")


def _columns_of(rows: Iterable[Row], label: str) -> tuple[str, ...]:
    columns = tuple(dict.fromkeys(column for row in rows for column in row))
    if len(columns) > MAX_COLUMNS:
        raise GoldenError(f"{len(columns)} columns came; at most {MAX_COLUMNS} are read", file=label)
    return columns


# ── what a row says ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """One row: `row` is its number in the file; `replies` None where the row has no such cell; `score` as it came.

    `has_score` tells an empty score (unscored) from a missing cell.  `sample` "" where no column numbers samples.
    `calibrated` and `calibration_item` are what our own verdict files say next to a score.
    """

    row: int
    item_id: str
    replies: tuple[str, ...] | None
    score: Any
    has_score: bool
    reason: str = ""
    sample: str = ""
    calibrated: Any = None
    calibration_item: bool = False


def is_marked(cell: Any) -> bool:
    """Whether a cell of the column `calibration_item` says yes, in JSON or in a table of texts."""
    return str(cell).strip().lower() in ("true", "1", "1.0", "yes")


def entries(recording: Recording, columns: Columns, aspect: str = "", *, any_id: bool = False) -> Iterator[RecordedRow]:
    """What each row says, in the file's order.

    Where a column names the aspect of each row, only the rows of `aspect` are given.  GoldenError without a column of
    item ids, and for a row whose id is missing or cannot be shown; `any_id` takes those too, as golden sets do.
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
    for row, cells in recording.numbered():
        if not of_aspect(cells):
            continue
        cell = cells.get(id_column)
        item_id = "" if isinstance(cell, bool | list | dict) else read_id(cell)
        if not item_id:
            raise GoldenError("there is no item_id", file=name, row=row, column=id_column)
        plain = cell.strip() if isinstance(cell, str) else item_id  # `read_id` mends what is damaged
        if not any_id and (not plain.isprintable() or len(item_id) > _LONGEST_ID):
            raise GoldenError(f"the item_id {shown(item_id)} cannot be shown", file=name, row=row, column=id_column)
        yield RecordedRow(
            row,
            item_id,
            replies_in(cells[replies]) if replies in cells else None,
            cells.get(score) if score else None,
            score in cells,
            text_of(cells.get(reason)) if reason else "",
            read_id(cells.get(sample)) if sample else "",
            cells.get(CALIBRATED),
            is_marked(cells.get(CALIBRATION_ITEM)),
        )


def each_once(rows: Iterable[RecordedRow], name: str) -> Iterator[RecordedRow]:
    """The same rows; GoldenError for one whose item came before and that no sample number tells apart."""
    seen: set[tuple[str, str]] = set()
    for entry in rows:
        if (key := (entry.item_id, entry.sample)) in seen:
            message = f"item {shown(entry.item_id)} comes twice; keep one line per item, or number its samples"
            raise GoldenError(message, file=name, row=entry.row)
        seen.add(key)
        yield entry


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
    """The roles of a recording.  `also` lists the other columns that could play a role.

    `of_aspect` maps an aspect → the column of its scores, where the file holds several.
    """

    also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    of_aspect: Mapping[str, str] = field(default_factory=dict)

    def check_role(self, role: str) -> None:
        """Raise UsageError for a name that is no role in a recording."""
        if role not in ROLES:
            raise UsageError(f"{role!r} is no part of a recording; there are {', '.join(ROLES)}.")

    def corrected(self, changes: Mapping[Role, str | None]) -> Columns:
        """With a person's corrections, one after the other, as `with_role`."""
        columns = self
        for role, column in changes.items():
            columns = columns.with_role(role, column)
        return columns

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
    usual ones.  Where a column could be the judged text rather than the judge's words, it is left in `also`.
    """
    names = recording.columns
    shallow = sorted(names, key=lambda column: column.count("."))  # before a nested one of the same name
    found: dict[Role, list[str]] = {role: by_name(shallow, (OWN_NAMES[role], *_ALIASES[role]), _last) for role in ROLES}
    wanted = {folded(name): name for name in (*sorted(KNOWN_ASPECTS), *aspects, aspect) if folded(name)}
    of_aspect: dict[str, str] = {}  # coherence, score_coherence, scores.coherence
    for column in names:
        stem = re.sub(f"^({_SCORE_WORDS})_|_({_SCORE_WORDS})$", "", _last(column))
        stem = stem.removeprefix("judge_").removeprefix("llm_")
        if stem in wanted and not _in_replies(column):
            of_aspect.setdefault(wanted[stem], column)
    of_reply = [c for c in names if _in_replies(c) and _last(c) == folded(aspect) != ""]
    found["replies"] = list(dict.fromkeys([*of_reply, *found["replies"]]))
    if aspect in of_aspect:
        found["score"] = list(dict.fromkeys([of_aspect[aspect], *found["score"]]))
    if found["score"]:
        found["replies"].sort(key=lambda column: _last(column) not in _PLAIN_REPLIES)  # stable
    roles: dict[str, str] = {}
    for role in ROLES:
        free = next((column for column in found[role] if column not in roles.values()), "")
        plain = free in _PLAIN_REPLIES or _last(free) in _PLAIN_REPLIES or _in_replies(free)
        if free and (role != "replies" or not found["score"] or plain):
            roles[role] = free
    if "replies" in roles and "score" not in roles and "reason" in roles:
        del roles["reason"]  # a reason explains a score; without one it may be the reply itself
    how: dict[str, How] = {r: "exact" if column.lower() == OWN_NAMES[r] else "alias" for r, column in roles.items()}
    also = {role: tuple(c for c in found[role] if c != roles.get(role)) for role in ROLES}
    return Columns(roles, names, how, {role: rest for role, rest in also.items() if rest}, of_aspect)


def _last(column: str) -> str:
    return folded(column.rsplit(".", 1)[-1])


def _in_replies(column: str) -> bool:
    """Whether the column lies within an object of replies by aspect: ``responses.coherence``."""
    return "." in column and folded(column.split(".", 1)[0]) in _PLAIN_REPLIES
