"""Decode Parquet files and workbooks into rows of plain cells.  Runs in the confined process only (`core.sandbox`)."""

from __future__ import annotations

import datetime
import decimal
import math
import warnings
import zipfile
import zlib
from collections import abc
from typing import IO, Any

from core.data.tables import MORE_ROWS, table_rows
from core.errors import GoldenError
from core.sandbox import Job

PARQUET_ROWS = 64

Options = abc.Mapping[str, Any]


def _bound_rows(n_rows: int, options: Options) -> None:
    most = options["rows"]
    if most is not None and n_rows > most:
        raise GoldenError(f"The file has too many rows; at most {most:,} are read. {MORE_ROWS}")


def parquet_rows(file: IO[bytes], options: Options) -> abc.Iterator[list[Any]]:
    """Yield the column names, then each row's cells, read a few rows at a time.

    `options`: ``rows`` that are read at most (None: any number).  GoldenError for what cannot be read.
    """
    import pyarrow as arrow
    from pyarrow import parquet

    done = 0
    try:
        opened = parquet.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False)
        _bound_rows(opened.metadata.num_rows, options)
        yield opened.schema_arrow.names
        for field in opened.schema_arrow:
            _check_type(field.name, field.type)
        for batch in opened.iter_batches(PARQUET_ROWS, use_threads=False):
            columns = [[plain_cell(cell.as_py()) for cell in column] for column in batch.columns]
            yield from ([column[k] for column in columns] for k in range(batch.num_rows))
            done += batch.num_rows
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


def plain_cell(cell: Any) -> Any:
    """Return a cell as JSON holds it, within lists and objects too: dates as ISO text, decimals as floats."""
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


def xlsx_rows(file: IO[bytes], options: Options) -> abc.Iterator[list[Any]]:
    """Yield notes on the sheets, then number and cells of each filled row of the first visible one.

    Formulas stay text.  `options`: ``rows`` and ``cells`` that are read at most, and ``unpacked`` bytes that the parts
    may have together.
    """
    _bound_workbook(file, options["unpacked"])
    file.seek(0)
    import openpyxl

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of styles and extensions that do not concern the cells
            book = openpyxl.load_workbook(file, read_only=True, keep_links=False)
            sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"] or book.worksheets
            if not sheets:
                raise GoldenError("The workbook has no sheet with cells.")
            sheet, n_rows, n_cells = sheets[0], 0, 0
            sheet.reset_dimensions()  # what the file says of its size may be wrong
            first = f"The sheet {sheet.title[:60]!r} was read, the first of {len(book.worksheets)}."
            yield [f"{first} Save others as files to read them."] if len(book.worksheets) > 1 else []
            for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
                n_cells += len(cells)
                if n_cells > options["cells"]:
                    raise GoldenError(f"The sheet spans too many cells; at most {options['cells']:,} are read.")
                if all(cell is None or cell == "" for cell in cells):
                    continue
                _bound_rows(n_rows, options)
                n_rows += 1
                yield [number, [plain_cell(cell) for cell in cells]]
    except (GoldenError, MemoryError):
        raise
    except Exception as problem:  # a hostile workbook can make the XML reader raise nearly anything
        raise GoldenError(f"The workbook cannot be read: {str(problem)[:200]}.") from problem


def _bound_workbook(file: IO[bytes], limit: int) -> None:
    """Refuse a file that is not a workbook, unpacks too large, or declares XML entities.

    By a document type, a few bytes could unfold to gigabytes or to local files.
    """
    try:
        with zipfile.ZipFile(file) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > limit:
                raise GoldenError(f"Unpacked, the workbook is larger than {limit >> 20} MB.")
            if "[Content_Types].xml" not in packed.namelist():
                raise GoldenError("This is not an XLSX workbook.")
            for entry in packed.infolist():
                markup = entry.filename.lower().endswith((".xml", ".rels"))
                if markup and b"<!DOCTYPE" in packed.read(entry).replace(b"\0", b""):  # UTF-16 too
                    raise GoldenError("The workbook declares XML entities, which no spreadsheet program writes.")
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, RuntimeError) as problem:
        raise GoldenError("This is not an XLSX workbook (old .xls files must be saved as .xlsx).") from problem


def _prepare_parquet() -> None:
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401


def _prepare_xlsx() -> None:
    import openpyxl  # noqa: F401


JOBS: abc.Mapping[str, Job] = {"parquet": parquet_rows, "xlsx": xlsx_rows, "table": table_rows}
PREPARED = {"parquet": _prepare_parquet, "xlsx": _prepare_xlsx}
"""For `core.sandbox.Reader`."""
