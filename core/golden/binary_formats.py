"""Parquet and XLSX: packed files, read piece by piece so that what they unpack to stays bounded."""

from __future__ import annotations

import datetime
import decimal
import io
import warnings
import zipfile
import zlib
from collections import abc
from typing import Any

from core.errors import GoldenError
from core.golden.content import Content, Parsed, bound_rows, column_names, without_blank_columns
from core.records import Finding

MAX_CELLS = 20_000_000


def parse_parquet(content: Content) -> Parsed:
    """Parquet, a few rows at a time so that the unpacked size can be bounded."""
    import pyarrow as arrow
    from pyarrow import parquet

    rows: list[dict[str, Any]] = []
    try:
        file = parquet.ParquetFile(io.BytesIO(content.data))
        bound_rows(file.metadata.num_rows, content)
        columns = column_names(file.schema_arrow.names, content)
        unpacked = 0
        for batch in file.iter_batches(batch_size=64):
            unpacked += batch.nbytes
            if unpacked > content.limit:
                raise content.refuse(f"Unpacked, the file is larger than {content.limit >> 20} MB.")
            rows.extend({key: plain_cell(cell) for key, cell in row.items()} for row in batch.to_pylist())
    except (arrow.ArrowException, OSError, ValueError) as problem:
        raise content.refuse(f"The Parquet data is broken: {str(problem)[:200]}.") from problem
    return Parsed(columns, tuple(rows))


def parse_xlsx(content: Content) -> Parsed:
    """The first sheet of a workbook, its first filled row being the header; formulas stay text."""
    _bound_workbook(content)
    import openpyxl

    findings: list[Finding] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of styles and extensions that do not concern the cells
            book = openpyxl.load_workbook(io.BytesIO(content.data), read_only=True, data_only=False, keep_links=False)
            if not book.worksheets:
                raise content.refuse("The workbook has no sheet with cells.")
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # a stored dimension may be wrong, or large on purpose
            parsed = _sheet_rows(sheet.iter_rows(values_only=True), content)
    except GoldenError:
        raise
    except Exception as problem:  # a hostile workbook can make the XML reader raise nearly anything
        raise content.refuse(f"The workbook cannot be read: {str(problem)[:200]}.") from problem
    if len(book.worksheets) > 1:
        findings.append(Finding("note", f"The workbook has {len(book.worksheets)} sheets; the first one was read."))
    return Parsed(parsed.columns, parsed.rows, findings)


def _sheet_rows(lines: abc.Iterable[abc.Sequence[Any]], content: Content) -> Parsed:
    columns: tuple[str, ...] = ()
    rows: list[dict[str, Any]] = []
    slots = 0
    for count, cells in enumerate(lines):
        bound_rows(count, content)
        slots += len(cells)
        if slots > MAX_CELLS:
            raise content.refuse(f"The sheet spans too many cells; at most {MAX_CELLS} are read.")
        if all(cell is None or cell == "" for cell in cells):
            continue
        if not columns:
            columns = column_names(cells, content)
        elif len(cells) > len(columns) and any(cell not in (None, "") for cell in cells[len(columns) :]):
            raise content.refuse(f"A cell stands right of the {len(columns)} named columns.", row=len(rows) + 1)
        else:
            rows.append({column: plain_cell(cell) for column, cell in zip(columns, cells, strict=False)})
    if not columns:
        raise content.refuse("The first sheet is empty.")
    return Parsed(without_blank_columns(columns, rows), tuple(rows))


def _bound_workbook(content: Content) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(content.data)) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > content.limit:
                raise content.refuse(f"Unpacked, the workbook is larger than {content.limit >> 20} MB.")
            if "[Content_Types].xml" not in packed.namelist():
                raise content.refuse("This is not an XLSX workbook.")
            if any(_declares_entities(packed, entry) for entry in packed.infolist()):
                raise content.refuse("The workbook declares XML entities, which no spreadsheet program writes.")
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        ValueError,
        OSError,
        NotImplementedError,
        RuntimeError,
    ) as problem:
        raise content.refuse("This is not an XLSX workbook (old .xls files must be saved as .xlsx).") from problem


def _declares_entities(packed: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bool:
    """Whether a part has a document type, by which a few bytes could unfold to gigabytes or to local files."""
    if not entry.filename.lower().endswith((".xml", ".rels")):
        return False
    tail = b""
    with packed.open(entry) as part:
        while chunk := part.read(1 << 20):
            if b"<!DOCTYPE" in tail + chunk.replace(b"\0", b""):
                return True
            tail = chunk.replace(b"\0", b"")[-9:]
    return False


def plain_cell(cell: Any) -> Any:
    """A cell as JSON would hold it: dates as ISO text, decimals as floats, bytes as text."""
    if isinstance(cell, decimal.Decimal):
        return float(cell)
    if isinstance(cell, (datetime.date, datetime.time)):
        return cell.isoformat()
    if isinstance(cell, datetime.timedelta):
        return str(cell)
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell
