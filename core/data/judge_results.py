"""Read the scores or replies of another judge from a file, and match them with items by id.

::

    open_results(file)                   open a result file
    propose_columns(results, aspect)     guess the role of each column; users can correct it
    rows_of(results, columns)            yield one ResultRow for each row
    verdict_of(rows, readings)           combine the rows of one item into a verdict
    read_verdicts(path, task)            read the VERDICTS argument of a command
    as_verdicts(verdicts, task)          convert any form that Python callers can pass
    preview(results, golden, aspect)     show what an import would add
    read_replies_file(path, scale)       run the command `read-ratings`

A file has one row for each item, or for each sample of an item, in any format of `core.data.tables`. Nested objects
become columns with dotted names, such as `output.score`.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from numbers import Real
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from core.data.cells import (
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
from core.data.columns import ColumnRoles, How, by_name, first_named
from core.data.labels import off_scale
from core.data.reshape import PREFERENCES, side_named
from core.data.split import task_of
from core.data.tables import (
    LIMITS,
    MAX_COLUMNS,
    USUAL_MB,
    FileProblem,
    Row,
    Severity,
    Table,
    TableFile,
    open_table,
    read_upload,
    suffix_of,
)
from core.errors import GoldenError, UsageError
from core.files import json_lines, write_text
from core.judging.parse import read_rating
from core.records import FloatArray, GoldenSet, JudgeScores, Scale, Scored, Task, Unscored, UnscoredReason, Verdict
from core.verdicts import BY_ORDER, CALIBRATED, CALIBRATION_ITEM, Reading, Verdicts, mean_verdict
from core.wording import counted

MAX_ROWS = 400_000
"""Maximum number of rows in an uploaded file, unless golden sets may have more items."""
HEAD_ROWS = 1_000
"""Number of rows read to find the columns of a file of any length."""


# ── files and their columns ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ResultFile:
    """A file of results: its columns in order, and a table that can be read repeatedly."""

    name: str
    columns: tuple[str, ...]
    table: Table | TableFile = field(repr=False)

    def numbered(self) -> Iterator[tuple[int, Row]]:
        """Yield every row with its number in the file; an absent key becomes an empty cell."""
        return ((number, flattened(row)) for number, row in self.table.numbered())


def open_results(file: Path | str | bytes, name: str = "", *, max_mb: float = USUAL_MB) -> ResultFile:
    """Open a file of replies or scores.

    A file with an unknown extension is read as JSON lines, plain or gzip.

    Args:
        file: A path to a file of any size, or the bytes of an upload.
        name: The file name of an upload.
        max_mb: The maximum size of an upload in MB, compressed and uncompressed.

    Raises:
        GoldenError: The file cannot be read.
    """
    label = name or (Path(file).name if not isinstance(file, bytes) else "")
    suffix = (suffix_of(label) or ".jsonl").removesuffix(".gz")
    table: Table | TableFile
    if isinstance(file, bytes):
        most = max(MAX_ROWS, LIMITS.items)
        table = read_upload(file, label, suffix=suffix, max_mb=max_mb, max_rows=most)
        rows: Iterable[Row] = table.rows
    else:
        table = open_table(file, suffix=suffix, max_mb=None)
        rows = islice(table.rows(), HEAD_ROWS)
    columns = tuple(dict.fromkeys(column for row in rows for column in flattened(row)))
    if len(columns) > MAX_COLUMNS:
        raise GoldenError(
            f"The file has {len(columns)} columns, but the limit is {MAX_COLUMNS}. Remove the columns that you don't "
            "need.",
            file=label,
        )
    return ResultFile(label, columns, table)


def flattened(row: Row, prefix: str = "") -> dict[str, Any]:
    """Flatten nested objects into columns with dotted names."""
    flat: dict[str, Any] = {}
    for name, cell in row.items():
        if isinstance(cell, Mapping) and cell:
            flat |= flattened(cell, f"{prefix}{name}.")
        else:
            flat[prefix + name] = cell
    return flat


Role = Literal["item_id", "replies", "score", "reason", "sample", "aspect"]
ROLES: tuple[Role, ...] = get_args(Role)
OWN_NAMES: Mapping[str, str] = {role: role for role in ROLES} | {"replies": "responses"}
_ALIASES: Mapping[Role, str] = {
    "item_id": "id custom_id example_id instance_id uid item key sample_id row_id idx index",
    "replies": "response replies reply judge_response judge_reply judge_output raw_response raw_responses raw_output "
    "raw completions completion outputs output output_text generations generation answer text content message",
    "score": "rating value judge_score judge_rating llm_score scores grade points stars mark verdict prediction",
    "reason": "explanation feedback rationale justification critique comment reasoning analysis",
    "sample": "seed sample_index sample_number sample_no sample_idx repetition repeat trial draw run_index",
}
_PLAIN_REPLIES = frozenset(
    "responses response replies reply judge_response judge_reply judge_output raw_response raw_responses "
    "raw_output".split()
)
"""Reply columns that are used next to a score; `output` or `text` may be the judged text."""
_AROUND_ASPECT = re.compile("^(?:judge_|llm_|(?:score|rating|grade|value)s?_)+|_(?:score|rating|grade|value)s?$")


@dataclass(frozen=True)
class Columns(ColumnRoles):
    """The columns of a result file, by role."""

    def check_role(self, role: str) -> None:
        """Raise UsageError unless a column of a result file can have this role."""
        if role not in ROLES:
            raise UsageError(f"{role!r} isn't a role in a results file. Use one of: {', '.join(ROLES)}.")

    @property
    def replies_first(self) -> bool:
        """Whether a row's replies are used instead of its score.

        They are if there is no score column, if the replies column is called `responses`, or if the user chose that
        column.
        """
        return "score" not in self.roles or self.found.get("replies") in ("exact", "corrected")


def propose_columns(results: ResultFile, aspect: str = "") -> Columns:
    """Propose a column for each role, by the role's usual name or one of its aliases.

    A score column named after `aspect` (coherence, score_coherence, scores.coherence) takes precedence over a general
    score column.
    """
    shallow = sorted(results.columns, key=lambda column: column.count("."))
    found = {role: by_name(shallow, (OWN_NAMES[role], *_ALIASES.get(role, "").split()), _last) for role in ROLES}
    named = (column for column in shallow if aspect and folded(column.split(".")[0]) not in _PLAIN_REPLIES)
    own = [column for column in named if _AROUND_ASPECT.sub("", _last(column)) == folded(aspect)]
    found["score"] = own[:1] + found["score"]
    if found["score"]:
        found["replies"] = [name for name in found["replies"] if _last(name) in _PLAIN_REPLIES]
    roles: dict[str, str] = {}
    for role in ROLES:
        if free := [column for column in found[role] if column not in roles.values()]:
            roles[role] = free[0]
    if "replies" in roles and "score" not in roles:
        roles.pop("reason", None)  # without a score it may be the reply itself
    how: dict[str, How] = {
        role: "exact" if name.lower() == OWN_NAMES[role] else "alias" for role, name in roles.items()
    }
    return Columns(roles, results.columns, how)


def _last(column: str) -> str:
    return folded(column.rsplit(".", 1)[-1])


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One row of a result file.

    `replies` is None if the row has a `score`, which is kept as in the file. `words` are the replies, or the reason
    given with a score.
    """

    row: int
    item_id: str
    replies: tuple[str, ...] | None
    score: Any
    words: tuple[str, ...]
    cells: Row


def rows_of(results: ResultFile, columns: Columns, aspect: str = "") -> Iterator[ResultRow]:
    """Yield the rows of a result file in file order.

    If a column names the aspect of each row, only the rows of `aspect` are yielded.

    Raises:
        GoldenError: The file has no ids, no replies or scores, or no rows on `aspect`. Or a row has no id, or repeats
            an earlier id without a sample number.
    """
    roles, name = columns.roles, results.name
    listed = f"Rename one of these columns: {', '.join(columns.columns)[:300]}."
    if "item_id" not in roles:
        raise GoldenError(f"The file has no column with item ids (item_id, id …). {listed}", file=name, row=1)
    if not roles.keys() & {"replies", "score"}:
        wanted = "replies (responses, reply, output …) or scores (score, rating, value …)"
        raise GoldenError(f"The file has no column with {wanted}. {listed}", file=name)
    replies, score, reason, sample = (roles.get(role, "") for role in ("replies", "score", "reason", "sample"))
    of_aspect = roles.get("aspect", "") if aspect else ""
    first: dict[tuple[str, str], int] = {}
    others: dict[str, None] = {}
    for row, cells in results.numbered():
        if of_aspect and aspect_key(about := text_of(cells.get(of_aspect))) != aspect_key(aspect):
            others[about[:60]] = None
            continue
        cell = cells.get(roles["item_id"])
        item_id = "" if isinstance(cell, bool | list | dict) else read_id(cell)
        if not item_id:
            raise GoldenError("The item id is missing.", file=name, row=row, column=roles["item_id"])
        number = read_id(cells.get(sample)) if sample else ""
        if (before := first.setdefault((item_id, number), row)) != row:
            message = f"Item {shown(item_id)} occurs twice, in rows {before} and {row}. Keep one row per item."
            hint = "If the rows are samples, number them in a column called sample."
            raise GoldenError(f"{message} {hint}", file=name, row=row)
        texts = replies_in(cells[replies]) if replies in cells else ()
        use_replies = replies in cells and (columns.replies_first or score not in cells)
        words = texts if use_replies else tuple(filter(None, texts or [text_of(cells.get(reason))]))
        yield ResultRow(row, item_id, texts if use_replies else None, cells.get(score), words, cells)
    if not first and of_aspect:
        names = ", ".join(sorted(others)[:10]) or "nothing"
        raise GoldenError(
            f"The file has no rows for the aspect {aspect!r}. The column {of_aspect!r} contains: {names}.", file=name
        )


def replies_in(cell: Any) -> tuple[str, ...]:
    """Read the replies in a cell: one text, a list of texts (or its JSON), or a chat message.

    A null cell counts as an empty reply.
    """
    return ("",) if cell is None or cell == "" else tuple(map(text_of, read_list(cell)))


def text_of(value: Any) -> str:
    """Return the text of a JSON value: a text, the content of a chat message, or the joined texts of its parts."""
    if value is None or isinstance(value, str):
        return clean_text(value or "")
    if isinstance(value, Mapping) and (name := next((n for n in ("content", "text", "output_text") if n in value), "")):
        return text_of(value[name])
    if isinstance(value, list) and value and all(isinstance(part, Mapping) for part in value):
        return "".join(map(text_of, value))
    return clean_text(json.dumps(value, ensure_ascii=False, default=str))


# ── verdicts ─────────────────────────────────────────────────────────────────────────────────────────────────────


def score_in(cell: Any, *, pairs: bool = False) -> Reading:
    """Read the score in a cell: a number, or for `pairs` also "A", "B" or "tie".

    If the cell contains no score, the reading has no value. The reading's `detail` then says what the cell contains; it
    is "" for an empty cell, NaN and N/A.
    """
    if pairs and isinstance(cell, str) and (side := side_named(cell)) is not None:
        return Reading(side)
    if is_no_value(cell) or (isinstance(cell, float) and math.isnan(cell)):
        return Reading(None, "no verdict")
    try:
        number = read_number(cell)
    except CellError:
        return Reading(None, "no verdict", detail=f"{shown(cell)} isn't a number.")
    return Reading(number, None if number is not None else "no verdict")


def out_of_range(number: float, scale: Scale) -> Reading:
    """Return a reading without a value, whose reason is that `number` lies outside `scale`."""
    return Reading(None, "out of range", detail=f"The score {number:g} is outside the scale {scale}.")


def readings_of(row: ResultRow, task: Task) -> list[Reading]:
    """Return the readings of a row: of its replies on the scale of `task`, or of its score, unchanged."""
    if row.replies is None:
        return [score_in(row.score, pairs=task.kind == "pair")]
    return [read_rating(reply, task.scale, task.aspect) for reply in row.replies]


def verdict_of(rows: Sequence[ResultRow], readings: Sequence[Reading]) -> Verdict:
    """Return the verdict on one item: the mean of the `readings` of its `rows`.

    The rows of Concord's own files also say three things about an item: its mapped score, whether it is a calibration
    item, and its score for each order of a pair. The verdict includes them.
    """
    words, cells = tuple(text for row in rows for text in row.words), rows[0].cells
    verdict = mean_verdict(rows[0].item_id, readings, explanation=words[0] if words else "", raw=words)
    marked = str(cells.get(CALIBRATION_ITEM)).strip().lower() in ("true", "1", "1.0", "yes")
    if not isinstance(verdict, Scored):
        return replace(verdict, calibration_item=marked)
    mapped, first, second = (score_in(cells.get(name)).value for name in (CALIBRATED, *BY_ORDER))
    orders = (
        first is not None and second is not None and math.isclose((first + second) / 2, verdict.value, abs_tol=1e-9)
    )
    alone = verdict.n_read + verdict.n_unread == 1
    turned, calibrated = second if orders else None, mapped if alone else None
    return replace(verdict, turned=turned, calibrated=calibrated, calibration_item=marked)


Read = list[tuple[ResultRow, list[Reading]]]


def read_rows(results: ResultFile, rows: Iterable[ResultRow], task: Task) -> tuple[Read, bool]:
    """Read the score or replies of each row.

    A score outside the scale that is a typing error or a code for "unread" gets the reason "out of range".

    Returns:
        Each row with its readings.
        Whether the scores use a scale of their own instead of the task's.

    Raises:
        GoldenError: For pairs of texts, it is unclear which text a score prefers.
    """
    read = [(row, readings_of(row, task)) for row in rows]
    codes = {
        reading.value
        for row, readings in read
        if row.replies is None and side_named(str(row.score)) is None
        for reading in readings
        if reading.value is not None
    }
    unclear = codes and codes <= {-1, 0, 0.5, 1, 1.5, 2} and "n_read" not in results.columns  # our files have 1 to 3
    if task.kind == "pair" and task.scale == PREFERENCES and unclear:
        numbers = ", ".join(f"{number:g}" for number in sorted(codes))
        message = f"The scores are {numbers}, so it's unclear what each score means."
        raise GoldenError(f"{message} Write A, B or tie; or 1 for A, 3 for B and 2 for a tie.", file=results.name)
    values = np.array([reading.value for _, readings in read for reading in readings], dtype=np.float64)
    off, own = off_scale(values, task.scale)
    is_off = iter(off.tolist())
    marked = [
        (row, [out_of_range(one.value or 0.0, task.scale) if next(is_off) else one for one in readings])
        for row, readings in read
    ]
    return marked, own


def by_item(read: Read) -> Verdicts:
    """Return one verdict for each item, in order of first appearance."""
    items: dict[str, tuple[list[ResultRow], list[Reading]]] = {}
    for row, readings in read:
        rows, found = items.setdefault(row.item_id, ([], []))
        rows.append(row)
        found += readings
    return Verdicts(verdict_of(rows, found) for rows, found in items.values())


def read_verdicts(path: Path | str, task: Task) -> Verdicts:
    """Read verdicts from a file of scores or replies.

    The verdict on an item is the mean of its samples, or of its readable replies.

    Raises:
        GoldenError: A score is not a number, or `rows_of` or `read_rows` fails.
    """
    results = open_results(path)
    rows = list(rows_of(results, propose_columns(results, task.aspect), task.aspect))
    for row in rows:
        if row.replies is None and (detail := score_in(row.score, pairs=task.kind == "pair").detail):
            message = f"{detail} Leave the cell empty if there is no score."
            raise GoldenError(message, file=results.name, row=row.row)
    return by_item(read_rows(results, rows, task)[0])


AnyVerdicts = Path | str | Sequence[Verdict] | Mapping[str, float]
"""A file of scores or replies, `Verdicts` or other records, or scores by item id (a Mapping or a pandas Series)."""

FORMS = (
    "Give the verdicts as a file path, a Verdicts object, a list of Verdict records, or numbers by "
    "item id (a mapping or a pandas Series)."
)


def as_verdicts(verdicts: AnyVerdicts, task: Task) -> Verdicts:
    """Convert verdicts in any supported form to `Verdicts`.

    A value outside the scale that is a typing error or a code for "unread" becomes Unscored.

    Raises:
        UsageError: `verdicts` doesn't have a number or None for each item id.
        GoldenError: `read_verdicts` fails.
    """
    if isinstance(verdicts, Path | str):
        return read_verdicts(verdicts, task)
    given: Any = verdicts
    if hasattr(given, "to_dict") and hasattr(given, "index"):  # pandas, which need not be loaded
        if not given.index.is_unique:
            raise UsageError(f"The index of the Series must contain each item id once. {FORMS}")
        given = given.to_dict()
    if isinstance(given, Mapping):
        numbers: dict[str, float] = {}
        for item_id, score in given.items():
            fits = score is None or (isinstance(score, Real) and not isinstance(score, bool | np.bool_))
            if not isinstance(item_id, str) or not fits or (score is not None and math.isinf(score)):
                form = "Each item id must be a string, and each score a finite number"
                message = f"{form}; got {item_id!r:.60} with {score!r:.60}."
                raise UsageError(f"{message} Use None for unscored. {FORMS}")
            numbers[item_id] = math.nan if score is None else float(score)
        records = Verdicts.of_scores(numbers)
    else:
        listed = list(given) if isinstance(given, Iterable) else [given]
        if strange := [one for one in listed if not isinstance(one, Scored | Unscored)]:
            raise UsageError(f"{type(strange[0]).__name__} isn't a verdict with an item id. {FORMS}")
        records = Verdicts(listed)
    off, _ = off_scale(records.values, task.scale)
    return Verdicts(
        Unscored(
            one.item_id,
            "out of range",
            out_of_range(one.value, task.scale).detail,
            calibration_item=one.calibration_item,
        )
        if is_off and isinstance(one, Scored)
        else one
        for one, is_off in zip(records, off.tolist(), strict=True)
    )


def off_scale_words(verdicts: Verdicts, scale: Scale) -> list[str]:
    """Return a warning if some scores can't be used, and another if the judge uses its own scale."""
    lost = [verdict for verdict in verdicts.unscored if verdict.reason == "out of range" and verdict.detail]
    words = []
    if lost:
        words.append(f"{len(lost):,} of {len(verdicts):,} scores can't be used. {lost[0].detail}")
    known = verdicts.values[~np.isnan(verdicts.values)]
    if off_scale(known, scale)[1] and verdicts.mapped is None:  # mapped scores are compared on the raters' scale
        words.append(
            f"The scores range from {known.min():g} to {known.max():g}, but the labels use the scale {scale}. "
            "Correlations are valid, but errors and bias aren't."
        )
    return words


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Scores by item: ids, `scores` (n,) with NaN for unscored items, and the system and source of each item.

    `systems` and `sources` are empty if the file has no column for them.
    """

    item_ids: Sequence[str]
    scores: FloatArray
    systems: Sequence[str] = ()
    sources: Sequence[str] = ()


def read_groups(path: Path) -> dict[str, tuple[str, str]]:
    """Map each item id of a file to its system and source ("" if not named).

    The map is empty if the file has neither column.
    """
    results = open_results(path)
    item = propose_columns(results).roles.get("item_id")
    system, source = ("".join(first_named(results.columns, role)) for role in ("system_id", "source_id"))
    if not item or not system + source:
        return {}
    return {
        read_id(row.get(item)): (read_id(row.get(system)), read_id(row.get(source))) for _, row in results.numbered()
    }


# ── the import screen ────────────────────────────────────────────────────────────────────────────────────────────

_EXAMPLES, _EXAMPLE_TEXT = 3, 200


@dataclass(frozen=True)
class ImportPreview:
    """Preview of an import: how a result file fits a golden set on one aspect.

    Attributes:
        n_rows: Number of rows read.
        n_matched: Number of items of the golden set with at least one row.
        n: Number of replies or scores.
        unread: Number of unreadable replies or scores, by reason.
        examples: A few unreadable texts for each reason: (item id, row number, start of the text).
        judge: The resulting judge, still without a name.
        replies: For each item id, its replies, or the reasons given with its scores.
        findings: Problems of the file. Errors prevent the import.
    """

    file: str
    golden_id: str
    columns: Columns
    n_rows: int
    n_matched: int
    n: int
    unread: Counter[UnscoredReason]
    examples: Mapping[UnscoredReason, Sequence[tuple[str, int, str]]]
    judge: JudgeScores
    replies: Mapping[str, tuple[str, ...]]
    findings: tuple[FileProblem, ...]

    @property
    def use(self) -> Literal["replies", "scores"]:
        return "replies" if self.columns.replies_first else "scores"

    @property
    def n_scored(self) -> int:
        return int(np.isfinite(self.judge.values).sum())

    @property
    def problems(self) -> tuple[str, ...]:
        """Reasons why the file can't be added; empty if it can."""
        return tuple(finding.message for finding in self.findings if finding.severity == "error")

    def as_judge(self, name: str) -> JudgeScores:
        """Return the judge under the given name.

        Raises UsageError with the first of `problems` if the file can't be added.
        """
        if self.problems:
            raise UsageError(f"Can't add {self.file}: {self.problems[0]}")
        return replace(self.judge, name=name.strip())


def preview(
    results: ResultFile, golden: GoldenSet, aspect: str, corrected: Mapping[Role, str | None] | None = None
) -> ImportPreview:
    """Match results with the items of `golden`, and return a preview. Nothing is stored.

    Args:
        aspect: The aspect that the results are about.
        corrected: Maps roles to the columns that the user chose; None means that no column has the role.

    Raises:
        AspectError: The aspect is unknown.
        UsageError: A chosen column is unknown.
        GoldenError: `rows_of` or `read_rows` fails.
    """
    task, columns = task_of(golden, aspect), propose_columns(results, aspect)
    for role, column in (corrected or {}).items():
        columns = columns.with_role(role, column)
    rows, known = list(rows_of(results, columns, aspect)), frozenset(golden.item_ids)
    read, own_scale = read_rows(results, (row for row in rows if row.item_id in known), task)
    verdicts = by_item(read)
    unread = Counter[UnscoredReason]()
    examples: dict[UnscoredReason, list[tuple[str, int, str]]] = {}
    for row, readings in read:
        for reading, text in zip(readings, row.replies or [shown(row.score)], strict=True):
            if reading.reason is not None:
                unread[reading.reason] += 1
                of_reason = examples.setdefault(reading.reason, [])
                of_reason += [(row.item_id, row.row, text[:_EXAMPLE_TEXT])] * (len(of_reason) < _EXAMPLES)
    use, n = "replies" if columns.replies_first else "scores", sum(len(readings) for _, readings in read)
    of_items = verdicts.of_items(golden.item_ids)
    how = "on their own scale, without mapping" if own_scale else f"on the scale {task.scale}"
    judge = JudgeScores(
        name=results.name,
        kind="imported",
        aspect=aspect,
        values=of_items.values,
        unscored=verdicts.unscored,
        on_scale=not own_scale,
        note=f"{use.capitalize()} recorded in {results.name[:80]}, {how}.",
        calls_per_item=n / len(verdicts) if use == "replies" and verdicts else None,
        turned=of_items.turned,
        seen=tuple(k for k, verdict in enumerate(of_items) if verdict.calibration_item),
        mapped=of_items.mapped,
    )
    unknown = list(dict.fromkeys(row.item_id for row in rows if row.item_id not in known))
    findings = (*results.table.findings, *_import_findings(judge, verdicts, unknown, golden, task))
    return ImportPreview(
        file=results.name,
        golden_id=golden.digest,
        columns=columns,
        n_rows=len(rows),
        n_matched=len(verdicts),
        n=n,
        unread=unread,
        examples=examples,
        judge=judge,
        replies={verdict.item_id: verdict.raw for verdict in verdicts if verdict.raw},
        findings=findings,
    )


def _import_findings(
    judge: JudgeScores, verdicts: Verdicts, unknown: Sequence[str], golden: GoldenSet, task: Task
) -> Iterator[FileProblem]:
    """Yield findings on unmatched ids, on scores off the scale, and on scores without information."""
    without = [item_id for item_id in golden.item_ids if item_id not in verdicts.by_id]
    found: list[tuple[Severity, str]] = []
    if not verdicts:
        message = (
            f"None of the {len(unknown):,} item ids in the file match the golden set. The file has "
            f"{_listed(unknown[:3])}; the golden set has {_listed(without[:3])}. Choose the column that contains the "
            "golden set's ids."
        )
        found.append(("error", message))
    else:
        if unknown:
            what = counted(len(unknown), "item id in the file isn't", "item ids in the file aren't")
            found.append(("warning", f"{what} in the golden set. These items are ignored: {_listed(unknown)}"))
        if without:
            message = f"{len(without):,} of the {len(golden.items):,} items in the golden set have no row in the file"
            found.append(("warning", f"{message} and stay unscored: {_listed(without)}"))
    found += [("warning", words) for words in off_scale_words(verdicts, task.scale)]
    scored = judge.values[~np.isnan(judge.values)]
    if verdicts and not scored.size:
        found.append(
            ("error", "No item has a score, so Concord can't compare anything. Check why the items are unscored.")
        )
    elif scored.size > 1 and scored.min() == scored.max():
        found.append(("warning", f"All {scored.size:,} scores are {scored[0]:g}, so correlation is undefined."))
    if judge.seen:
        message = f"According to the file, the judge was calibrated on {counted(len(judge.seen), 'item')}."
        found.append(("note", f"{message} Comparisons exclude these items."))
    return (FileProblem(severity, message) for severity, message in found)


def _listed(names: Collection[str], most: int = 10) -> str:
    return ", ".join(name[:60] for name in list(names)[:most]) + (" …" if len(names) > most else "")


# ── replies → ratings ────────────────────────────────────────────────────────────────────────────────────────────


def read_replies_file(
    path: Path | str, scale: Scale, out: Path | str | None = None, *, aspect: str = ""
) -> dict[str, Any]:
    """Read every reply in `path`, write one line per item to `out`, and return the counts.

    `out` is written completely or not at all. If `out` is None, no file is written.

    Returns:
        ``{"n_items", "n_replies", "n_read", "n_unread", "reasons": {reason: count}}``

    Raises:
        GoldenError: A row cannot be used. The message has the row number.
    """
    rows = read_replies(path, lambda reply: read_rating(reply, scale, aspect))
    if out is not None:
        write_text(Path(out), json_lines(rows))
    n_read, reasons = sum(row["n_read"] for row in rows), Counter(reason for row in rows for reason in row["unread"])
    return {
        "n_items": len(rows),
        "n_replies": n_read + reasons.total(),
        "n_read": n_read,
        "n_unread": reasons.total(),
        "reasons": dict(reasons.most_common()),
    }


def read_replies(path: Path | str, read: Callable[[str], Reading]) -> list[dict[str, Any]]:
    """Read the replies in a file with `read`, and return one line of a ratings file for each item.

    A line has the mean of the readable replies, and the reasons why the other replies could not be read.
    """
    results = open_results(path)
    columns = propose_columns(results)
    readings: dict[str, list[Reading]] = {}
    for row in rows_of(results, columns):
        if row.replies is None:
            column = columns.roles.get("replies", "responses")
            raise GoldenError(
                "This row has no replies. Add the replies as a list of texts.",
                file=results.name,
                row=row.row,
                column=column,
            )
        readings.setdefault(row.item_id, []).extend(map(read, row.replies))
    lines = []
    for item_id, of_item in readings.items():
        verdict = mean_verdict(item_id, of_item)
        unread = [reading.reason or "no verdict" for reading in of_item if reading.value is None]
        lines.append(
            {
                "item_id": item_id,
                "score": verdict.value if isinstance(verdict, Scored) else None,
                "n_read": len(of_item) - len(unread),
                "n_unread": len(unread),
                "unread": unread,
            }
        )
    return lines
