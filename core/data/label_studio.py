"""Read Label Studio's exports: JSON with annotations inside, and the cells of its CSV and JSON-MIN files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from core.data.cells import CellError, parse_json, read_number
from core.data.findings import Finding
from core.data.tables import Row, Table

_NUMBERS = ("rating", "number")


def with_label_studio(table: Table) -> Table:
    """Turn a Label Studio export into one row per rating, with plain numbers as labels.

    Any other table comes back as it is.  Cancelled annotations are left out, and so are answers that are not ratings
    or numbers.
    """
    if {"data", "annotations"} <= set(table.columns) and all(map(_is_task, table.rows)):
        return _of_tasks(table)
    columns = {column for column in table.columns if _holds_answers(table, column)}
    if not columns:
        return table
    plain = [{name: _number(cell) if name in columns else cell for name, cell in row.items()} for row in table.rows]
    return replace(table, rows=tuple(plain))


def _of_tasks(table: Table) -> Table:
    """One row per rating; one per text where there are none."""
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    left_out = 0
    for number, task in table.numbered():
        ratings, others = _ratings(task)
        rows += ratings
        numbers += [number] * len(ratings)
        left_out += others
    findings = table.findings
    if left_out:
        message = (
            f"{left_out:,} answers of this Label Studio export are left out: they are no ratings, numbers or choices "
            "between two texts."
        )
        findings += (Finding("note", message),)
    if not rows:
        findings += (Finding("note", "No annotation of this Label Studio export holds a rating. Its texts were read."),)
        rows = [{"item_id": task.get("id")} | dict(task["data"]) for task in table.rows]
        numbers = [number for number, _ in table.numbered()]
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    return replace(table, rows=tuple(rows), numbers=tuple(numbers), columns=columns, findings=findings)


def _is_task(row: Row) -> bool:
    return isinstance(row.get("data"), dict) and isinstance(row.get("annotations"), list)


def _ratings(task: Row) -> tuple[list[dict[str, Any]], int]:
    """A row for each rating of a task, and how many answers are none."""
    rows: list[dict[str, Any]] = []
    left_out = 0
    for annotation in task["annotations"]:
        if not isinstance(annotation, dict) or annotation.get("was_cancelled"):
            continue
        rater = annotation.get("completed_by")
        if isinstance(rater, dict):
            rater = rater.get("email") or rater.get("id")
        for answer in annotation.get("result") or ():
            value = answer.get("value") if isinstance(answer, dict) else None
            rating = _number([value])
            if rating is None and isinstance(value, dict) and value.get("selected") in ("left", "right"):
                rating = value["selected"]
            if rating is None:
                left_out += 1
            else:
                own = {"annotator_id": rater, "aspect": answer.get("from_name"), "value": rating}
                rows.append({"item_id": task.get("id")} | dict(task["data"]) | own)
    return rows, left_out


def _holds_answers(table: Table, column: str) -> bool:
    """Whether a column holds cells such as ``[{"rating": 5}]`` alone."""
    cells = [row[column] for row in table.rows if row.get(column) not in (None, "", [])]
    return bool(cells) and all(_number(cell) is not None for cell in cells)


def _number(cell: Any) -> Any:
    """The number in ``[{"rating": 5}]``; None for anything else."""
    answers = parse_json(cell) if isinstance(cell, str) and cell[:2] == "[{" else cell
    if not isinstance(answers, list) or len(answers) != 1 or not isinstance(answers[0], dict):
        return None
    number = next((answers[0][name] for name in _NUMBERS if name in answers[0]), None)
    choices = answers[0].get("choices")
    if isinstance(choices, list) and len(choices) == 1:
        with suppress(CellError):
            number = read_number(choices[0])
    return number if isinstance(number, (int, float)) and not isinstance(number, bool) else None
