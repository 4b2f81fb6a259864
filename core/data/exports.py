"""What systems in use wrote, and what people said of it, out of the exports of the tools that log it.

Known by their columns, each in one or several files (JSONL, JSON, CSV, Parquet):

=============  ===========================================================  ======================================
tool           texts                                                        people's labels
=============  ===========================================================  ======================================
Langfuse       observations (root ones) or traces: ``input``, ``output``    scores whose ``source`` is ANNOTATION
Phoenix        spans (root ones): ``attributes.output.value``               annotations of ``annotator_kind`` HUMAN
MLflow         traces: ``request``, ``response``                            assessments of ``source_type`` HUMAN
OpenAI Evals   output items: ``sample.input``, ``sample.output``            none
promptfoo      ``results.results``: ``prompt.raw``, ``response.output``     a person's grade of a result
Inspect        ``samples`` of a log as JSON: ``input``, ``output``          none
plain          a table as golden sets have it, with a column of times       ``human_<aspect>``
=============  ===========================================================  ======================================

In Langfuse the ``value`` of a category is its place in a list and that of a text is always 0, so neither is a label;
a category whose name is a number is.  Snake case and camel case are both read.  What people said of a step within a
trace is no label of the trace.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

from core.data.cells import CellError, folded, parse_json, read_id, read_number
from core.data.columns import HUMAN, mapping_of
from core.data.columns import Mapping as Columns
from core.data.files import LIMITS
from core.data.findings import FindingLog, first_error, has_errors
from core.data.items import ITEM_ROLES, RowReader
from core.data.tables import TableFile, open_table
from core.data.verdict_files.recording import suffix_of_recording, text_of
from core.errors import GoldenError, UsageError
from core.records import Item
from core.texts import is_blank

Row = Mapping[str, Any]
TIMES = ("timestamp", "time", "start_time", "created_at", "request_time", "timestamp_ms", "date", "day", "at")
"""Columns that say when a text was written, the likeliest first."""

_MILLISECONDS_FROM = 1e11
_HEAD, _DEEPEST = 500, 8

PLAIN = "plain"
"""What a table of no known tool is called."""

NOT_ROOT = "steps within a trace (the trace itself counts)"
OF_STEPS = "labels of steps within a trace"
NO_TEXT = "rows without a text"
NO_NUMBER = "labels that are no numbers (categories and texts)"
OTHER_LABELS = "labels of other names"
BY_MACHINE = "labels by judges or code, not by people"
REPEATED = "rows whose id came before"


@dataclass(frozen=True, slots=True)
class Written:
    """A text that a system wrote: `at` is when (UTC), None where nobody says."""

    item: Item
    at: datetime | None = None


@dataclass(frozen=True)
class Traffic:
    """All texts of some files, in the order they came; `labels` the mean of people's labels by item id.

    `tools` says what each file was taken for; `left_out` maps what was not read → how many.
    """

    rows: tuple[Written, ...]
    labels: Mapping[str, float] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)


@dataclass
class _Reading:
    """What has been read so far, for labels called `name`.

    `steps` are the ids of the steps within traces, `of_steps` what of `labels` may be of one: step → trace and values.
    """

    name: str
    rows: dict[str, Written] = field(default_factory=dict)
    labels: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    steps: set[str] = field(default_factory=set)
    of_steps: dict[str, list[tuple[str, float]]] = field(default_factory=lambda: defaultdict(list))
    left_out: Counter[str] = field(default_factory=Counter)
    columns: dict[str, None] = field(default_factory=dict)

    def add(self, item: Item, at: Any) -> None:
        if is_blank(item.target):
            self.left_out[NO_TEXT] += 1
        elif item.item_id in self.rows:
            self.left_out[REPEATED] += 1
        else:
            self.rows[item.item_id] = Written(item, time_in(at))

    def label(self, item_id: str, name: Any, value: Any, *, person: bool = True, step: str = "") -> None:
        """A label called `name`, "" where the tool has no names for them; `step` names what of the trace it is on."""
        if not person:
            self.left_out[BY_MACHINE] += 1
        elif name and folded(text_of(name)) != folded(self.name):
            self.left_out[OTHER_LABELS] += 1
        elif (number := _number(value)) is None:
            self.left_out[NO_NUMBER] += 1
        elif step:
            self.of_steps[step].append((item_id, number))
        else:
            self.labels[item_id].append(number)

    def settle(self) -> None:
        """Labels of steps are left out, those of whole traces kept, once all files have said which is which."""
        for step, given in self.of_steps.items():
            if step in self.steps:
                self.left_out[OF_STEPS] += len(given)
                continue
            for item_id, number in given:
                self.labels[item_id].append(number)


def read_traffic(
    paths: Sequence[Path],
    label: str,
    given: Mapping[str, str] = MappingProxyType({}),
    kept: Mapping[str, str] = MappingProxyType({}),
) -> Traffic:
    """The texts of all `paths`, and people's labels called `label` among them.

    `given`: role → column; each file has some of these columns, and is then read as a plain table.  `kept`: as
    `load_golden` takes it.  UsageError for a given column that is in no file.
    GoldenError for a file that cannot be read, that holds neither texts nor labels of a known form, and where all of
    them together hold no text.
    """
    reading, tools = _Reading(label), {}
    for path in paths:
        tools[path.name] = _read(path, reading, given, kept)
    if lacking := [column for column in given.values() if column not in reading.columns]:
        raise UsageError(f"No file has a column {lacking[0][:60]!r}. There are: {', '.join(reading.columns)[:400]}.")
    if not reading.rows:
        gone = ", ".join(f"{n:,} {why}" for why, n in reading.left_out.items())
        raise GoldenError(
            f"There is no text to judge in {', '.join(tools)}{f' (left out: {gone})' if gone else ''}. Labels alone "
            "are not enough: add the export of the traces or spans."
        )
    reading.settle()
    labels = {item_id: fmean(values) for item_id, values in reading.labels.items()}
    return Traffic(tuple(reading.rows.values()), labels, tools, dict(reading.left_out))


def _read(path: Path, reading: _Reading, given: Mapping[str, str], kept: Mapping[str, str]) -> str:
    """Read one file; returns the tool that it is taken for."""
    table = open_table(path, suffix=suffix_of_recording(path.name), max_mb=None, max_rows=LIMITS.items)
    rows = table.rows()
    head = list(islice(rows, _HEAD))
    reading.columns |= dict.fromkeys(rows.columns)
    given = {role: column for role, column in given.items() if column in rows.columns}
    for tool, forms, read in () if given else _TOOLS:
        if any(all(_has(row, name) for name in form) for form in forms for row in head):
            for row in table.rows():
                read(row, reading)
            return tool
    kept = {role: column for role, column in kept.items() if role in ITEM_ROLES or role.startswith(HUMAN)}
    _read_plain(table, mapping_of(rows.columns, head, given, kept), reading)
    return PLAIN


def _read_plain(table: TableFile, mapping: Columns, reading: _Reading) -> None:
    columns, name = mapping.columns, table.source.name
    if "target" not in mapping.roles or mapping.layout == "long":
        raise GoldenError(
            f"This is no export that Concord knows, and no column holds the text to judge. There are: "
            f"{', '.join(columns)[:300]}. Name the column of the texts 'target'.",
            file=name,
        )
    log = FindingLog()
    reader = RowReader(mapping, log)
    names = {folded(column): column for column in columns}
    time = next((names[name] for name in TIMES if name in names), "")
    label = mapping.roles.get(HUMAN + reading.name) or names.get(HUMAN + folded(reading.name), "")
    for place, row in enumerate(rows := table.rows(), start=1):
        item = reader.read(place, rows.number, row)
        reading.add(item, row.get(time))
        if label and row.get(label) not in (None, ""):
            reading.label(item.item_id, "", row[label])
    if has_errors(findings := log.sorted()):
        raise first_error(findings, name)


# ── the tools ────────────────────────────────────────────────────────────────────────────────────────────────


def _langfuse_text(row: Row, reading: _Reading) -> None:
    trace = _cell(row, "trace_id", "traceId")
    if trace and _cell(row, "parent_observation_id", "parentObservationId"):
        reading.left_out[NOT_ROOT] += 1
        reading.steps.add(read_id(row.get("id")))
        return
    _add(
        reading,
        trace or _cell(row, "id"),
        row.get("input"),
        row.get("output"),
        system=_cell(row, "provided_model_name", "model", "version", "release"),
        at=_cell(row, "start_time", "startTime", "timestamp"),
    )


def _langfuse_score(row: Row, reading: _Reading) -> None:
    kind = text_of(_cell(row, "data_type", "dataType")).upper()
    value = row.get("value") if kind in ("NUMERIC", "BOOLEAN", "") else _cell(row, "string_value", "stringValue")
    person = text_of(row.get("source")).upper() == "ANNOTATION"
    trace, step = (
        read_id(_cell(row, *names)) for names in (("trace_id", "traceId"), ("observation_id", "observationId"))
    )
    reading.label(trace, row.get("name"), value, person=person, step=step)


def _phoenix_span(row: Row, reading: _Reading) -> None:
    if row.get("parent_id"):
        reading.left_out[NOT_ROOT] += 1
        return
    where = (_cell(row, name) for name in ("context.span_id", "attributes.input.value", "attributes.output.value"))
    _add(reading, *where, system=_cell(row, "attributes.llm.model_name"), at=row.get("start_time"))


def _phoenix_annotation(row: Row, reading: _Reading) -> None:
    value = _cell(row, "result.score", "result.label")
    person = text_of(row.get("annotator_kind")).upper() == "HUMAN"
    reading.label(read_id(row.get("span_id")), _cell(row, "annotation_name", "name"), value, person=person)


def _mlflow_trace(row: Row, reading: _Reading) -> None:
    trace = _cell(row, "trace_id", "request_id")
    system = _cell(row, "tags.model", "tags.version", "trace_metadata.mlflow.modelId")
    _add(
        reading,
        trace,
        row.get("request"),
        row.get("response"),
        system=system,
        at=_cell(row, "request_time", "timestamp_ms"),
    )
    spans = _entries(row.get("spans"))
    reading.steps |= {read_id(span.get("span_id")) for span in spans if _cell(span, "parent_span_id", "parent_id")}
    for assessment in _entries(row.get("assessments")):
        if _has(assessment, "feedback.value"):
            person = text_of(_cell(assessment, "source.source_type")).upper() == "HUMAN"
            name = _cell(assessment, "assessment_name", "name")
            value, step = _at(assessment, "feedback.value"), read_id(assessment.get("span_id"))
            reading.label(read_id(trace), name, value, person=person, step=step)


def _evals_item(row: Row, reading: _Reading) -> None:
    asked = _cell(
        row, "sample.input", *(f"datasource_item.{name}" for name in ("input", "question", "prompt", "source"))
    )
    source = row.get("datasource_item") if asked is None else asked
    where = _cell(row, "datasource_item_id", "id"), source, _cell(row, "sample.output")
    _add(reading, *where, system=_cell(row, "sample.model"), at=row.get("created_at"))


def _promptfoo(row: Row, reading: _Reading) -> None:
    at = _cell(row, "results.timestamp", "createdAt")
    for result in _entries(_at(row, "results.results")):
        item_id = _cell(result, "id") or f"{result.get('testIdx', '')}-{result.get('promptIdx', '')}"
        asked, output = _cell(result, "prompt.raw", "prompt"), _cell(result, "response.output", "response")
        _add(reading, item_id, asked, output, system=_cell(result, "provider.id", "provider"), at=at)
        for grade in _entries(_cell(result, "gradingResult.componentResults")):
            if _cell(grade, "assertion.type") == "human":
                reading.label(read_id(item_id), "", grade.get("score"))


def _inspect(row: Row, reading: _Reading) -> None:
    at = _cell(row, "eval.created", "stats.started_at")
    for sample in _entries(row.get("samples")):
        epoch = sample.get("epoch", 1)
        item_id = f"{sample.get('id')}" + (f"#{epoch}" if epoch not in (1, None) else "")
        output = _cell(sample, "output.completion", "output.choices", "output")
        system = _cell(sample, "output.model") or _cell(row, "eval.model")
        _add(reading, item_id, sample.get("input"), output, system=system, at=at)


_TOOLS: Sequence[tuple[str, Sequence[set[str]], Callable[[Row, _Reading], None]]] = (
    ("OpenAI Evals", ({"datasource_item_id"},), _evals_item),
    ("promptfoo", ({"results.results"},), _promptfoo),
    ("Inspect", ({"samples", "eval.model"},), _inspect),
    ("Phoenix annotations", ({"span_id", "annotator_kind"},), _phoenix_annotation),
    ("Phoenix", ({"context.span_id", "attributes.output.value"},), _phoenix_span),
    ("MLflow", ({"trace_id", "request", "response"}, {"request_id", "request", "response"}), _mlflow_trace),
    (
        "Langfuse scores",
        ({"trace_id", "name", "value", "source"}, {"traceId", "name", "value", "source"}),
        _langfuse_score,
    ),
    (
        "Langfuse",
        (
            {"trace_id", "parent_observation_id", "output"},
            {"traceId", "parentObservationId", "output"},
            {"id", "input", "output", "timestamp", "project_id"},
            {"id", "input", "output", "timestamp", "projectId"},
        ),
        _langfuse_text,
    ),
)


# ── cells ────────────────────────────────────────────────────────────────────────────────────────────────────


def _add(reading: _Reading, item_id: Any, source: Any, target: Any, *, system: Any = None, at: Any = None) -> None:
    item = Item(read_id(item_id), words_in(target), "", read_id(system), words_in(source))
    reading.add(item, at)


_MISSING = object()


def _at(row: Row, name: str) -> Any:
    """The cell of that name: a column of its own, or a field of an object ("results.results")."""
    if name in row:
        return row[name]
    first, _, rest = name.partition(".")
    inner = row.get(first)
    return _at(inner, rest) if rest and isinstance(inner, Mapping) else _MISSING


def _has(row: Row, name: str) -> bool:
    return _at(row, name) is not _MISSING


def _cell(row: Row, *names: str) -> Any:
    """The first of these cells that is not empty."""
    return next((cell for name in names if (cell := _at(row, name)) not in (None, "", [], _MISSING)), None)


def _entries(cell: Any) -> list[Mapping[str, Any]]:
    """The objects of a list, or of the JSON text of one."""
    value = _parsed(cell)
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def words_in(cell: Any, depth: int = 0) -> str:
    """The words of a logged input or output: a text, a chat (a line a message), or JSON text of either."""
    value = _parsed(cell)
    if depth < _DEEPEST and isinstance(value, Mapping):
        inner = _cell(value, "messages", "choices", "message", "content", "text")
        only = list(value.values()) if len(value) == 1 else []
        if inner is not None or only:
            return words_in(only[0] if inner is None else inner, depth + 1)
    if depth < _DEEPEST and isinstance(value, list):
        chat = len(value) > 1 and all(isinstance(entry, Mapping) and "role" in entry for entry in value)
        words = (words_in(entry, depth + 1) for entry in value)
        if chat:
            words = (f"{text_of(entry['role'])}: {text_of(entry)}" for entry in value)
        return "\n".join(words)
    return text_of(value)


def _parsed(cell: Any) -> Any:
    """A cell, or what its text holds where that is a JSON list or object."""
    if isinstance(cell, str) and cell.lstrip()[:1] in ("{", "["):
        value = parse_json(cell)
        return cell if value is None else value
    return cell


def _number(cell: Any) -> float | None:
    if isinstance(cell, bool):
        return float(cell)
    if isinstance(cell, list | Mapping):
        return None
    try:
        return read_number(cell)
    except CellError:
        return None


def time_in(cell: Any) -> datetime | None:
    """A moment in UTC: ISO text, seconds or milliseconds since 1970, a day; None for anything else."""
    if isinstance(cell, datetime):
        moment = cell
    elif isinstance(cell, int | float) and not isinstance(cell, bool):
        seconds = cell / 1000 if cell > _MILLISECONDS_FROM else cell
        try:
            return datetime.fromtimestamp(seconds, UTC)
        except (OverflowError, OSError, ValueError):
            return None
    else:
        try:
            moment = datetime.fromisoformat(text_of(cell).strip())
        except ValueError:
            return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def item_line(row: Written, item_id: str) -> str:
    """A text as a line of a golden set, under this id: what `score` reads."""
    body = {name: getattr(row.item, name) for name in ("system_id", "source_id", "source", "context", "target")}
    body |= {"item_id": item_id, "references": list(row.item.references)}
    return json.dumps({name: cell for name, cell in body.items() if cell}, ensure_ascii=False) + "\n"
