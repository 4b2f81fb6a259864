"""Parquet and XLSX: packed files, decoded by a confined process whose memory, time and answer are bounded."""

from __future__ import annotations

from collections import abc
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from core.confined.asking import Allowance, Reader, RefusedError
from core.data.content import (
    Content,
    Parsed,
    bound_values,
    checked_values,
    column_names,
    most_rows,
    without_blank_columns,
)
from core.records import Finding

MAX_CELLS = 5_000_000

READER = Reader("core.data.decoding")
"""One process for all files of this one; it starts with the first."""


def parse_parquet(content: Content) -> Parsed:
    """Parquet, decoded a few rows at a time."""
    with refusals(content):
        options = {"rows": most_rows(content), "start": 0}
        allowance = Allowance.of(len(content.data))
        with closing(READER.ask("parquet", content.data, options, allowance, most=content.unpacked)) as lines:
            columns = column_names(next(lines), content)
            rows: list[dict[str, Any]] = []
            n_values = 0
            for cells in lines:
                n_values += checked_values(cells, content, len(rows) + 1)
                bound_values(n_values, content)
                rows.append(dict(zip(columns, cells, strict=True)))
    return Parsed(columns, tuple(rows))


def parquet_stream(path: Path, content: Content, start: int = 0) -> abc.Iterator[tuple[str, ...] | dict[str, Any]]:
    """The columns of a file of any length, then its rows after the first `start`."""
    options = {"rows": None, "start": start}
    with refusals(content):
        allowance = Allowance.of(path.stat().st_size, streaming=True)
        with closing(READER.ask("parquet", path, options, allowance)) as lines:
            columns = column_names(next(lines), content)
            yield columns
            for cells in lines:
                yield dict(zip(columns, cells, strict=True))


def parse_xlsx(content: Content) -> Parsed:
    """The first sheet of a workbook, its first filled row being the header; formulas stay text."""
    options = {"rows": most_rows(content), "cells": MAX_CELLS, "unpacked": content.unpacked}
    with refusals(content):
        allowance = Allowance.of(len(content.data))
        with closing(READER.ask("xlsx", content.data, options, allowance, most=2 * content.unpacked)) as lines:
            (n_sheets,) = next(lines)
            columns, rows = _sheet_rows(lines, content)
    told = f"The workbook has {n_sheets} sheets; the first one was read."
    return Parsed(columns, rows, [Finding("note", told)] if n_sheets > 1 else [])


def _sheet_rows(
    lines: abc.Iterable[list[Any]], content: Content
) -> tuple[tuple[str, ...], tuple[abc.Mapping[str, Any], ...]]:
    columns: tuple[str, ...] = ()
    rows: list[dict[str, Any]] = []
    for cells in lines:
        if not columns:
            columns = column_names(cells, content)
        elif len(cells) > len(columns) and any(cell not in (None, "") for cell in cells[len(columns) :]):
            raise content.refuse(f"A cell stands right of the {len(columns)} named columns.", row=len(rows) + 1)
        else:
            rows.append(dict(zip(columns, cells, strict=False)))
    if not columns:
        raise content.refuse("The first sheet is empty.")
    return without_blank_columns(columns, rows), tuple(rows)


@contextmanager
def refusals(content: Content) -> abc.Iterator[None]:
    """What the confined process refuses, as an error that names the file."""
    try:
        yield
    except RefusedError as refused:
        raise content.refuse(refused.message, row=refused.row, column=refused.column) from refused
