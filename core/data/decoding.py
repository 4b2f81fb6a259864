"""Parquet and workbooks → rows of plain cells.  Runs in the confined process only (`core.sandbox`)."""

from __future__ import annotations

import datetime
import decimal
import math
import warnings
import zipfile
import zlib
from collections import abc
from typing import IO, Any

from core.data.tables import MORE_ROWS
from core.errors import GoldenError
from core.sandbox import Job

PARQUET_ROWS = 64

Options = abc.Mapping[str, Any]


def _bound_rows(n_rows: int, options: Options) -> None:
    most = options["rows"]
    if most is not None and n_rows > most:
        raise GoldenError(f"The file has too many rows; at most {most:,} are read. {MORE_ROWS}")


# ── Parquet ──────────────────────────────────────────────────────────────────────────────────────────────────


def parquet_rows(file: IO[bytes], options: Options) -> abc.Iterator[list[Any]]:
    """The column names, then each row's cells, a few rows at a time.

    `options`: ``rows`` that are read at most (None: any number).  GoldenError names row and column of what cannot be
    read.
    """
    import pyarrow as arrow
    from pyarrow import parquet

    done = 0
    try:
        opened = parquet.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False)
        _bound_rows(opened.metadata.num_rows, options)
        pandas = (opened.schema_arrow.pandas_metadata or {}).get("index_columns", ())
        index = [one for one in pandas if isinstance(one, dict) and isinstance(one.get("name"), str)]
        # a numbered index with a name is in no column of the file
        yield [*opened.schema_arrow.names, *(one["name"] for one in index)]
        for field in opened.schema_arrow:
            _check_type(field.name, field.type)
        for batch in opened.iter_batches(PARQUET_ROWS, use_threads=False):
            columns = [_cells(batch, k, done) for k in range(batch.num_columns)]
            for k in range(batch.num_rows):
                yield [*(column[k] for column in columns), *(one["start"] + one["step"] * done for one in index)]
                done += 1
            _bound_rows(done, options)
    except MemoryError:
        raise
    except (arrow.ArrowException, OSError, ValueError, OverflowError, TypeError, KeyError) as problem:
        row = done + 1 if done else None
        raise GoldenError(f"The Parquet data is broken: {str(problem)[:200]}.", row=row) from problem


def _check_type(column: str, kind: Any, *, inner: bool = False) -> None:
    """Refuse categories within lists and objects: a few bytes of them unfold to gigabytes."""
    from pyarrow import types

    if types.is_dictionary(kind) and inner:
        raise GoldenError("Categories within lists are not read; save the column as plain text.", column=column)
    for k in range(getattr(kind, "num_fields", 0)):
        _check_type(column, kind.field(k).type, inner=True)


def _cells(batch: Any, place: int, done: int) -> list[Any]:
    """The cells of one column of a batch as JSON has them."""
    import pyarrow as arrow
    from pyarrow import compute, types

    column, kind = batch.column(place), batch.schema.field(place).type
    if types.is_dictionary(kind):
        column = column.dictionary_decode()
    elif getattr(kind, "unit", "") == "ns":  # Python's dates and times end at microseconds
        like = {types.is_duration: arrow.duration("us"), types.is_time64: arrow.time64("us")}
        coarser = next((other for holds, other in like.items() if holds(kind)), None)
        column = compute.cast(column, coarser or arrow.timestamp("us", kind.tz), safe=False)
    cells: list[Any] = []
    for row, cell in enumerate(column, start=done + 1):
        try:
            cells.append(plain_cell(cell.as_py()))
        except (arrow.ArrowException, ValueError, OverflowError, KeyError) as problem:
            came = f"a {cell.type} that is not a valid date, time or text ({str(problem)[:120]})"
            name = batch.schema.names[place]
            raise GoldenError(f"The cell cannot be read: {came}.", row=row, column=name) from problem
    return cells


def plain_cell(cell: Any) -> Any:
    """A cell as JSON holds it, within lists and objects too: dates as ISO text, decimals as floats, bytes as text."""
    if cell is None or isinstance(cell, (str, bool, int, float)):
        return cell
    if isinstance(cell, (list, tuple)):
        return [plain_cell(inner) for inner in cell]
    if isinstance(cell, abc.Mapping):
        return {str(key): plain_cell(inner) for key, inner in cell.items()}
    if isinstance(cell, decimal.Decimal):
        return float(cell) if cell.is_finite() else math.nan
    if isinstance(cell, (datetime.date, datetime.time)):
        return cell.isoformat()
    return bytes(cell).decode("utf-8", "replace") if isinstance(cell, (bytes, bytearray)) else str(cell)


# ── workbooks ────────────────────────────────────────────────────────────────────────────────────────────────


def xlsx_rows(file: IO[bytes], options: Options) -> abc.Iterator[list[Any]]:
    """Findings on the sheets, then number and cells of each filled row of the first visible one; formulas stay text.

    Hidden rows are left out.  A merged cell has its value in each of its rows.

    `options`: ``rows`` and ``cells`` that are read at most, ``unpacked`` bytes that the parts may have together.
    """
    _bound_workbook(file, options["unpacked"])
    file.seek(0)
    import openpyxl

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of styles and extensions that do not concern the cells
            book = openpyxl.load_workbook(file, keep_links=False)
            if not book.worksheets:
                raise GoldenError("The workbook has no sheet with cells.")
            visible = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"] or book.worksheets
            sheet = visible[0]
            if sheet.max_row * sheet.max_column > options["cells"]:
                raise GoldenError(f"The sheet spans too many cells; at most {options['cells']} are read.")
            hidden = {number for number, row in sheet.row_dimensions.items() if row.hidden}
            merged: dict[int, dict[int, Any]] = {}  # number of a row → place of a column → value
            for area in sheet.merged_cells.ranges:
                value = sheet.cell(area.min_row, area.min_col).value
                for number in range(area.min_row + 1, area.max_row + 1):
                    merged.setdefault(number, {})[area.min_col - 1] = value
            notes, name = [], repr(sheet.title[:60])
            if len(visible) > 1:
                message = (
                    f"The first of {len(visible)} visible sheets was read, {name}. Save others as files to read them."
                )
                notes.append(["note", message])
            if sheet is not book.worksheets[0]:
                notes.append(["note", f"Hidden sheets are skipped; {name} was read."])
            if hidden:
                what = "1 hidden row was" if len(hidden) == 1 else f"{len(hidden):,} hidden rows were"
                notes.append(["warning", f"{what} left out. Clear the filter or unhide rows to use them."])
            yield notes
            n_rows = 0
            for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
                if number in hidden or all(cell is None or cell == "" for cell in cells):
                    continue
                _bound_rows(n_rows, options)
                n_rows += 1
                above = merged.get(number, {})
                yield [number, [plain_cell(above.get(k) if cell is None else cell) for k, cell in enumerate(cells)]]
    except (GoldenError, MemoryError):
        raise
    except Exception as problem:  # a hostile workbook can make the XML reader raise nearly anything
        raise GoldenError(f"The workbook cannot be read: {str(problem)[:200]}.") from problem


def _bound_workbook(file: IO[bytes], limit: int) -> None:
    """Refuse what is no workbook, unpacks too large, or declares XML entities.

    By a document type, a few bytes could unfold to gigabytes or to local files.
    """
    try:
        with zipfile.ZipFile(file) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > limit:
                raise GoldenError(f"Unpacked, the workbook is larger than {limit >> 20} MB.")
            if "[Content_Types].xml" not in packed.namelist():
                raise GoldenError("This is not an XLSX workbook.")
            for entry in packed.infolist():
                if not entry.filename.lower().endswith((".xml", ".rels")):
                    continue
                tail = b""
                with packed.open(entry) as part:
                    while chunk := part.read(1 << 20):
                        tail += chunk.replace(b"\0", b"")  # UTF-16 too
                        if b"<!DOCTYPE" in tail:
                            raise GoldenError(
                                "The workbook declares XML entities, which no spreadsheet program writes."
                            )
                        tail = tail[-9:]
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, RuntimeError) as problem:
        raise GoldenError("This is not an XLSX workbook (old .xls files must be saved as .xlsx).") from problem


# ── whole tables ─────────────────────────────────────────────────────────────────────────────────────────────


def table_rows(file: IO[bytes], options: Options) -> abc.Iterator[Any]:
    """A text file (`options` are those of `read_table`) as a table: columns and findings, then numbered rows."""
    from dataclasses import asdict

    from core.data.tables import read_table

    table = read_table(file.read(), **options)
    yield {"columns": table.columns, "findings": [asdict(finding) for finding in table.findings]}
    yield from table.numbered()


def _prepare_parquet() -> None:
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401


def _prepare_xlsx() -> None:
    import openpyxl  # noqa: F401


JOBS: abc.Mapping[str, Job] = {"parquet": parquet_rows, "xlsx": xlsx_rows, "table": table_rows}
PREPARED = {"parquet": _prepare_parquet, "xlsx": _prepare_xlsx}
"""For `core.sandbox.Reader`."""
