"""Read a file of recorded replies or scores: its rows flattened, its content hashed; what a row says of an item.

Nested objects become columns with dotted names.  The output or error file of a batch endpoint is known by its lines:
``{"id", "custom_id", "response": {"status_code", "body"}, "error"}``, where the body is that of a chat completion, a
completion or a response of the Responses API.  Anything else is a table: one row per item, or per item and sample.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal, get_args

from core.data.cells import aspect_key, clean_text, folded, read_id, read_list, shown
from core.data.columns import ALIASES as GOLDEN_ALIASES
from core.data.columns import KNOWN_ASPECTS, ColumnRoles, How, by_name
from core.data.files import MAX_COLUMNS, USUAL_MB, open_source, suffix_of
from core.data.findings import Finding
from core.data.tables import Table, TableFile, open_table, read_table
from core.errors import GoldenError, UsageError

Row = Mapping[str, Any]

REPLY_OF_BATCH = "response.body"
CALIBRATED, CALIBRATION_ITEM = "calibrated", "calibration_item"
"""Columns of our own verdict files: the score on the raters' scale, and whether the label chose or fitted the judge."""
_DEEPEST = 4
Finish = Literal["stop", "length", "refusal", "error"]

_DEEPEST_TEXT = 8
_TOO_DEEP = "(nested too deeply to be read)"
_FINISHES: Mapping[str, Finish] = {
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "incomplete"), "length"),
    **dict.fromkeys(("content_filter", "refusal", "safety"), "refusal"),
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A judge's words.  `finish` is how the endpoint ended them; "error": the request failed, `text` says how."""

    text: str
    finish: Finish = "stop"


def replies_in(cell: Any) -> tuple[Reply, ...]:
    """The replies in a cell: a text, a list (or JSON text of one), a chat message; null is an empty reply.

    An empty list holds none.
    """
    if isinstance(cell, tuple):  # made from a batch or an eval
        return cell
    if cell is None or cell == "":
        return (Reply(""),)
    return tuple(Reply(text_of(entry)) for entry in read_list(cell))


def text_of(value: Any, depth: int = 0) -> str:
    """The words in a JSON value: itself, the content of a message, the joined texts of its parts."""
    if value is None:
        return ""
    if isinstance(value, str):
        return clean_text(value)
    if depth > _DEEPEST_TEXT:
        return _TOO_DEEP
    if isinstance(value, Mapping):
        for name in ("content", "text", "output_text"):
            if name in value:
                return text_of(value[name], depth + 1)
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        return "".join(text_of(part, depth + 1) for part in value)
    try:
        return clean_text(json.dumps(value, ensure_ascii=False))
    except (RecursionError, TypeError, ValueError):
        return _TOO_DEEP if isinstance(value, list | Mapping) else clean_text(str(value))


def _of_batch(columns: Sequence[str], first: Row) -> bool:
    """Whether a file is the output of a batch endpoint, by its column names and first row."""
    answered = first.get("response")
    answer = isinstance(answered, Mapping) and "body" in answered
    return "custom_id" in columns and (answer or bool(first.get("error")))


def flattened(row: Row, prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Objects within objects as dotted columns, `_DEEPEST` levels down; what lies deeper stays as it is."""
    flat: dict[str, Any] = {}
    for name, cell in row.items():
        if isinstance(cell, Mapping) and cell and depth < _DEEPEST:
            flat |= flattened(cell, f"{prefix}{name}.", depth + 1)
        else:
            flat[prefix + name] = cell
    return flat


def _batch_row(row: Row) -> dict[str, Any]:
    rest = {name: cell for name, cell in row.items() if name not in ("id", "response", "error")}
    return flattened(rest) | {REPLY_OF_BATCH: _batch_replies(row)}


def _batch_replies(row: Row) -> tuple[Reply, ...]:
    answered = row.get("response")
    status = answered.get("status_code") if isinstance(answered, Mapping) else None
    body = answered.get("body") if isinstance(answered, Mapping) else None
    failure = row.get("error") or (body.get("error") if isinstance(body, Mapping) else None)
    if failure or not isinstance(body, Mapping) or (isinstance(status, int) and status >= 400):
        return (_failed(failure, status),)
    return _replies_of_body(body) or (_failed(None, status),)


def _replies_of_body(body: Row) -> tuple[Reply, ...]:
    """Replies in the body of a (chat) completion (`choices`) or of the Responses API (`output`)."""
    choices = body.get("choices")
    if isinstance(choices, list):
        return tuple(_choice(choice) for choice in choices if isinstance(choice, Mapping))
    output = body.get("output")
    if isinstance(output, list):
        messages = [part for part in output if isinstance(part, Mapping) and part.get("type") == "message"]
        finish = _FINISHES.get(str(body.get("status")), "stop")
        return (Reply("".join(text_of(message) for message in messages), finish),) if messages else ()
    return ()


def _choice(choice: Row) -> Reply:
    message = choice.get("message")
    finish = _FINISHES.get(str(choice.get("finish_reason")), "stop")
    if not isinstance(message, Mapping):
        return Reply(text_of(choice.get("text")), finish)
    if message.get("refusal") and not message.get("content"):
        return Reply(text_of(message["refusal"]), "refusal")
    return Reply(text_of(message.get("content")), finish)


def _failed(failure: Any, status: Any) -> Reply:
    cause = failure.get("message") or failure.get("code") if isinstance(failure, Mapping) else failure
    words = text_of(cause)[:200] if cause else f"the request came back with status {status}" if status else "no answer"
    return Reply(words, "error")


MAX_ROWS = 400_000
"""Rows of a recording: one an item, or one an item and sample."""

HEAD_ROWS = 1_000
"""Rows that say which columns a recording of any length has."""

_LONGEST_ID = 500

ReadTable = Callable[..., Table]


@dataclass(frozen=True)
class Recording:
    """What the file holds: flat rows (column → cell, an absent key is an empty cell) and the columns in their order.

    `of_batch`: it is the output of a batch endpoint.
    `digest` is the hash of the bytes that were read; `findings` tell of the reading itself.
    """

    name: str
    of_batch: bool
    columns: tuple[str, ...]
    rows: Iterable[Mapping[str, Any]] = field(repr=False)
    digest: str = ""
    findings: tuple[Finding, ...] = ()
    numbers: Sequence[int] = field(default=(), repr=False)

    def numbered(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Every row with its number in the file."""
        if isinstance(self.rows, _RowsOfFile):
            return self.rows.numbered()
        return zip(self.numbers or count(1), self.rows, strict=False)


def load_recording(
    file: str | Path | bytes,
    name: str | None = None,
    *,
    max_mb: float = USUAL_MB,
    max_rows: int | None = MAX_ROWS,
    read: ReadTable = read_table,
) -> Recording:
    """Read a file of recorded replies or scores; one of an unknown ending is taken for JSON lines, plain or gzip.

    `file` is a path or the bytes of an upload (then `name` gives its ending); `max_mb` bounds it, packed and unpacked;
    `read` reads its table (`core.data.read_upload` for a file of unknown origin).  GoldenError names the row that
    cannot be read.
    """
    label = name or (Path(file).name if not isinstance(file, bytes) else "")
    suffix = suffix_of_recording(label)
    data = file if isinstance(file, bytes) else open_source(file, suffix=suffix, max_mb=max_mb).data()
    table = read(data, label, suffix=suffix, max_mb=max_mb, max_rows=max_rows)
    of_batch = _of_batch(table.columns, table.rows[0])
    rows = tuple(map(_batch_row if of_batch else flattened, table.rows))
    digest = hashlib.sha256(data).hexdigest()
    return Recording(label, of_batch, _columns_of(rows, label), rows, digest, table.findings, table.numbers)


def open_recording(path: Path) -> Recording:
    """As `load_recording`, for a file of any length: its rows are read anew each time that somebody goes through them.

    The columns are those of the first `HEAD_ROWS` rows.  An encoding is not guessed: text has to be UTF-8 or UTF-16.
    """
    table = open_table(path, suffix=suffix_of_recording(path.name), max_mb=None)
    if table.encoding == "cp1252":
        raise table.source.refuse("The text is not UTF-8; save the file as UTF-8.")
    rows, name = table.rows(), table.source.name
    head = list(islice(rows, HEAD_ROWS))
    of_batch = _of_batch(rows.columns, head[0])
    flat = _batch_row if of_batch else flattened
    return Recording(name, of_batch, _columns_of(map(flat, head), name), _RowsOfFile(table, flat))


@dataclass(frozen=True)
class _RowsOfFile:
    table: TableFile
    flat: Callable[[Row], dict[str, Any]]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return (row for _, row in self.numbered())

    def numbered(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for row in (rows := self.table.rows()):
            yield rows.number, self.flat(row)


def suffix_of_recording(label: str) -> str:
    """The format of a recording by its name; one of an unknown ending is taken for JSON lines."""
    return (suffix_of(label) or ".jsonl").removesuffix(".gz")


def _columns_of(rows: Iterable[Row], label: str) -> tuple[str, ...]:
    columns = tuple(dict.fromkeys(column for row in rows for column in row))
    if len(columns) > MAX_COLUMNS:
        raise GoldenError(f"{len(columns)} columns came; at most {MAX_COLUMNS} are read", file=label)
    return columns


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: `row` is its number in the file; `replies` None where the row has no such cell; `score` as it came.

    `has_score` tells an empty score (unscored) from a missing cell.  `sample` "" where no column numbers samples.
    `calibrated` and `calibration_item` are what our own verdict files say beside a score.
    """

    row: int
    item_id: str
    replies: tuple[Reply, ...] | None
    score: Any
    has_score: bool
    reason: str = ""
    sample: str = ""
    calibrated: Any = None
    calibration_item: bool = False


def is_marked(cell: Any) -> bool:
    """Whether a cell of the column `calibration_item` says yes, in JSON or in a table of texts."""
    return str(cell).strip().lower() in ("true", "1", "1.0", "yes")


def entries(recording: Recording, columns: Columns, aspect: str = "", *, any_id: bool = False) -> Iterator[Entry]:
    """What each row says, in the file's order.

    Where a column names the aspect of each row, only the rows of `aspect` are given.  GoldenError without a column of
    item ids, and for a row whose id is missing or cannot be shown; `any_id` takes those too, as golden sets do.
    """
    roles = columns.roles
    if "item_id" not in roles:
        raise GoldenError(
            f"there is no item_id; no column is named so, or id, custom_id and the like. There are "
            f"{', '.join(columns.columns)[:300]}",
            file=recording.name,
            row=1,
        )
    id_column, reply_column, score_column = roles["item_id"], roles.get("replies", ""), roles.get("score", "")
    reason, sample, rated = roles.get("reason", ""), roles.get("sample", ""), roles.get("aspect", "")
    wanted = aspect_key(aspect)
    for row, cells in recording.numbered():
        if rated and wanted and aspect_key(text_of(cells.get(rated))) != wanted:
            continue
        yield Entry(
            row,
            _item_id(cells.get(id_column), recording.name, row, id_column, any_id=any_id),
            replies_in(cells[reply_column]) if reply_column in cells else None,
            cells.get(score_column) if score_column else None,
            score_column in cells,
            text_of(cells.get(reason)) if reason else "",
            read_id(cells.get(sample)) if sample else "",
            cells.get(CALIBRATED),
            is_marked(cells.get(CALIBRATION_ITEM)),
        )


def each_once(rows: Iterable[Entry], name: str) -> Iterator[Entry]:
    """The same rows; GoldenError for one whose item came before and that no sample number tells apart."""
    seen: set[tuple[str, str]] = set()
    for entry in rows:
        if (key := (entry.item_id, entry.sample)) in seen:
            message = f"item {shown(entry.item_id)} stands twice; keep one line an item, or number its samples"
            raise GoldenError(message, file=name, row=entry.row)
        seen.add(key)
        yield entry


def doubled_rows(claims: Sequence[Entry]) -> tuple[int, ...]:
    """Rows of one item that no sample number tells apart; empty when each is a sample of its own."""
    by_sample: dict[str, list[int]] = {}
    for entry in claims:
        by_sample.setdefault(entry.sample, []).append(entry.row)
    return next((tuple(rows) for rows in by_sample.values() if len(rows) > 1), ())


def _item_id(cell: Any, name: str, row: int, column: str, *, any_id: bool) -> str:
    item_id = "" if isinstance(cell, bool | list | dict) else read_id(cell)
    if not item_id:
        raise GoldenError("there is no item_id", file=name, row=row, column=column)
    plain = cell.strip() if isinstance(cell, str) else item_id  # `read_id` mends what is damaged
    if not any_id and (not plain.isprintable() or len(item_id) > _LONGEST_ID):
        raise GoldenError(f"the item_id {shown(item_id)} cannot be shown", file=name, row=row, column=column)
    return item_id


# ── which column plays which part ────────────────────────────────────────────────────────────────────────────────

BY_ORDER = ("score_a_first", "score_b_first")
"""Columns of scores of pairs asked both ways round, with text A first and with text B first; high prefers B in both."""

Role = Literal["item_id", "replies", "score", "reason", "sample", "aspect"]
ROLES: tuple[Role, ...] = get_args(Role)

OWN_NAMES: Mapping[str, str] = {role: role for role in ROLES} | {"replies": "responses"}
ALIASES: Mapping[Role, tuple[str, ...]] = {
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
PLAIN_REPLIES = frozenset(
    "responses response replies reply judge_response judge_reply judge_output raw_response raw_responses "
    f"raw_output {REPLY_OF_BATCH}".split()
)
"""Reply columns believed to be the judge's own words even beside a score; `output` or `text` may be what was judged."""

_SCORE_WORDS = ("score", "scores", "rating", "ratings", "grade", "value")


@dataclass(frozen=True)
class Columns(ColumnRoles):
    """The roles of a recording.  `also` lists the other columns that could play a role.

    `of_aspect` maps an aspect → the column of its scores, where the file holds several.
    """

    also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    of_aspect: Mapping[str, str] = field(default_factory=dict)

    def check_role(self, role: str) -> None:
        """UsageError for a name that is no role in a recording."""
        if role not in ROLES:
            raise UsageError(f"{role!r} is no part of a recording; there are {', '.join(ROLES)}.")

    def corrected(self, changes: Mapping[Role, str | None]) -> Columns:
        """With a person's corrections, one after the other, as `with_role`."""
        columns = self
        for role, column in changes.items():
            columns = columns.with_role(role, column)
        return columns


def propose_columns(recording: Recording, aspect: str = "", aspects: Collection[str] = ()) -> Columns:
    """The columns of `recording` by name: a role's own name first, then aliases in their order.

    A column of scores named after `aspect` goes before a general one.  `aspects` are names to look for besides the
    usual ones.  Where a column could be the judged text rather than the judge's words, it is left in `also`.
    """
    names = recording.columns
    candidates = {role: _candidates(role, recording) for role in ROLES}
    of_aspect = _score_columns(names, [*sorted(KNOWN_ASPECTS), *aspects, aspect])
    of_reply = [c for c in names if _holds_replies(c) and _last(c) == folded(aspect) != ""]
    candidates["replies"] = of_reply + [c for c in candidates["replies"] if c not in of_reply]
    if aspect in of_aspect:
        candidates["score"] = [of_aspect[aspect], *(c for c in candidates["score"] if c != of_aspect[aspect])]
    if candidates["score"]:
        candidates["replies"].sort(key=lambda column: _last(column) not in PLAIN_REPLIES)  # stable
    roles: dict[str, str] = {}
    for role in ROLES:
        free = [column for column in candidates[role] if column not in roles.values()]
        if free and not (role == "replies" and candidates["score"] and not _plain(free[0])):
            roles[role] = free[0]
    if "replies" in roles and "score" not in roles and "reason" in roles:
        del roles["reason"]  # a reason explains a score; without one it may be the reply itself
    how_named: dict[str, How] = {
        role: "exact" if column.lower() == OWN_NAMES[role] else "alias" for role, column in roles.items()
    }
    also = {role: tuple(c for c in candidates[role] if c != roles.get(role)) for role in ROLES}
    return Columns(roles, names, how_named, {role: rest for role, rest in also.items() if rest}, of_aspect)


def _plain(column: str) -> bool:
    return column in PLAIN_REPLIES or _last(column) in PLAIN_REPLIES or _holds_replies(column)


def _candidates(role: Role, recording: Recording) -> list[str]:
    """Columns that could play `role`, best first: by name, a shallow one before a nested one of the same name."""
    columns = recording.columns
    if recording.of_batch and role == "replies":
        return [column for column in columns if column == REPLY_OF_BATCH]
    shallow = sorted(columns, key=lambda column: column.count("."))
    return by_name(shallow, (OWN_NAMES[role], *ALIASES[role]), _last)


def _last(column: str) -> str:
    return folded(column.rsplit(".", 1)[-1])


def _score_columns(columns: Sequence[str], aspects: Sequence[str]) -> dict[str, str]:
    """Aspect → the column of its scores: ``coherence``, ``score_coherence``, ``scores.coherence``.

    Of two aspects that differ in spelling only, the later one counts.
    """
    wanted = {folded(aspect): aspect for aspect in aspects if folded(aspect)}
    column_of: dict[str, str] = {}
    for column in columns:
        stem = "" if _holds_replies(column) else _without_score_words(_last(column))
        if stem in wanted:
            column_of.setdefault(wanted[stem], column)
    return column_of


def _holds_replies(column: str) -> bool:
    """Whether the column lies within an object of replies by aspect: ``responses.coherence``."""
    return "." in column and folded(column.split(".", 1)[0]) in PLAIN_REPLIES


def _without_score_words(name: str) -> str:
    for word in _SCORE_WORDS:
        name = re.sub(f"^{word}_|_{word}$", "", name)
    return name.removeprefix("judge_").removeprefix("llm_")
