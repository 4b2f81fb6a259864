"""Decode files of unknown origin in a separate process, with limited memory and time and without secrets.

`run_job` starts the process. A job in the process reads the file and writes values as lines of JSON. The output is
parsed as JSON and never executed, so a malicious file can only use up the limits of the process.

`core.data.tables` lists the jobs for Parquet files and workbooks.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from core.errors import ConcordError, GoldenError

_ROOT = Path(__file__).resolve().parents[1]
_MB = 1 << 20
_MEMORY, _SECONDS = 900 * _MB, 8
_MEMORY_TIMES, _SECONDS_EACH_MB = 16, 4
_LONGEST = 256 * _MB
_VALUE, _REFUSED, _SPENT, _END = b"V", b"R", b"S", b"."
"""First byte of a line: a value, the reason for a refusal, a limit that was exceeded, or the end."""

_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""Complete environment of the decoding process, without keys, database addresses or folders."""

Job = Callable[[IO[bytes], Mapping[str, Any]], Iterable[Any]]
"""A function from an opened file and options to values that JSON can hold."""


class RefusedError(Exception):
    """The file was refused. `message` tells users why; `row` (from 1) and `column` locate the problem."""

    def __init__(self, message: str, row: int | None = None, column: str | None = None) -> None:
        super().__init__(message)
        self.message, self.row, self.column = message, row, column


def allowance(size: int, *, streaming: bool = False) -> dict[str, int]:
    """Return the limits for decoding a file of `size` bytes.

    The keys are `memory` (bytes), `seconds` (of CPU time), and `wall` (seconds of elapsed time). With `streaming`,
    `wall` is 0 (no limit), because the caller decides how fast rows are read.
    """
    seconds = _SECONDS + _SECONDS_EACH_MB * (size // _MB)
    wall = 0 if streaming else 60 + 10 * seconds
    return {"memory": max(_MEMORY, _MEMORY_TIMES * size), "seconds": seconds, "wall": wall}


def run_job(
    module: str,
    job: str,
    file: bytes | Path,
    options: Mapping[str, Any],
    allowed: Mapping[str, int],
    *,
    most: int = 0,
    folder: Path = _ROOT,
) -> Generator[Any, None, None]:
    """Run a job of `module` on a file in a sandboxed process, and yield the job's values.

    Args:
        module: A module in `folder` whose `JOBS` maps names to jobs.
        file: The content of the file, or its path.
        allowed: The limits, as returned by `allowance`.
        most: Maximum number of bytes of all values together; 0 for no limit.

    Raises:
        RefusedError: The job refuses the file, or exceeds its limits.
        OSError: The path cannot be opened.
    """
    code = (
        f"import sys; sys.path[:0] = {[str(_ROOT), str(folder)]!r}; import {module} as module; "
        "from core.sandbox import work; work(module.JOBS, sys.argv[1])"
    )
    request = json.dumps({"job": job, "options": dict(options), **allowed})
    size = 0
    with _opened(file) as source:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", code, request],
                env=_ENVIRONMENT,
                cwd="/",
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as problem:
            raise RefusedError("On this machine, Concord can't start the process that reads files.") from problem
        with process:
            try:
                while True:
                    line = process.stdout.readline(_LONGEST) if process.stdout else b""
                    size += len(line)
                    if most and size > most:
                        raise RefusedError(f"The unpacked file is larger than {most // _MB} MB. Split the file.")
                    if line[:1] == _END:
                        return
                    if line[:1] != _VALUE or not line.endswith(b"\n"):
                        raise _refusal(line[:1], line[1:], allowed)
                    yield json.loads(line[1:])
            finally:
                process.kill()


def _opened(file: bytes | Path) -> IO[bytes]:
    if isinstance(file, Path):
        return file.open("rb")
    spooled: Any = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    spooled.write(file)
    spooled.flush()
    spooled.seek(0)
    return spooled  # type: ignore[no-any-return]


def _refusal(kind: bytes, rest: bytes, allowed: Mapping[str, int]) -> RefusedError:
    if kind == _REFUSED:
        refusal = json.loads(rest)
        return RefusedError(str(refusal["message"]), refusal["row"], refusal["column"])
    limits = f"{allowed['memory'] // _MB} MB of memory and {allowed['seconds']} s of computing time"
    if kind == _SPENT:
        spent = "memory" if rest.strip() == b"memory" else "time"
        return RefusedError(
            f"Reading the file takes more {spent} than Concord allows for this file size ({limits}). Split the file."
        )
    return RefusedError(
        f"The file can't be read within {limits}, or its data is damaged. Save the file again, or split it."
    )


# ── in the decoding process ────────────────────────────────────────────────────────────────────────────────────


class _OutOfTimeError(BaseException):
    """The CPU time is used up."""


def work(jobs: Mapping[str, Job], request: str) -> None:
    """Run the requested job within limits.

    Reads the file from standard input, and writes the values to standard output.
    """
    asked = json.loads(request)
    _limit(asked["memory"], asked["seconds"], asked["wall"])
    with open(0, "rb") as file, open(1, "wb", buffering=1 << 18) as out:
        try:
            for value in jobs[asked["job"]](file, asked["options"]):
                out.write(_VALUE + json.dumps(value, separators=(",", ":")).encode() + b"\n")
            last = _END
        except ConcordError as error:
            places = {name: getattr(error, name, None) for name in ("row", "column")}
            message = getattr(error, "message", "") or str(error)
            last = _REFUSED + json.dumps({"message": message, **places}).encode()
        except MemoryError:
            last = _SPENT + b"memory"
        except _OutOfTimeError:
            last = _SPENT + b"time"
        out.write(last + b"\n")


def _limit(memory: int, seconds: int, wall: int) -> None:
    """Limit memory in bytes beyond current use, CPU seconds, and wall-clock seconds (0: no limit)."""
    signal.signal(signal.SIGXCPU, _out_of_time)
    with suppress(OSError, ValueError, IndexError):  # no /proc on this system
        memory += int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    for what, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_AS, memory, memory),
        (resource.RLIMIT_CPU, seconds, seconds + 2),
    ):
        with suppress(ValueError, OSError):  # this system does not support the limit; the others still hold
            resource.setrlimit(what, (soft, hard))
    signal.alarm(wall)  # the signal ends the process


def _out_of_time(*_: object) -> None:
    raise _OutOfTimeError


# ── jobs: Parquet and workbooks ──────────────────────────────────────────────────────────────────────────────

MORE_ROWS = "Split the file."
PARQUET_ROWS = 64


def _bound_rows(n_rows: int, options: Mapping[str, Any]) -> None:
    most = options["rows"]
    if most is not None and n_rows > most:
        raise GoldenError(f"The file has too many rows; at most {most:,} are allowed. {MORE_ROWS}")


def parquet_rows(file: IO[bytes], options: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield the column names of a Parquet file, then the values of each row.

    ``options["rows"]`` is the maximum number of rows; None sets no limit. Raises GoldenError if the file cannot be read
    or has too many rows.
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
        raise GoldenError(
            f"The Parquet data is damaged: {str(problem)[:200]}. Save the file again.", row=row
        ) from problem


def _check_type(column: str, kind: Any, *, inner: bool = False) -> None:
    """Refuse categories within lists and objects, because a few bytes of them can expand to gigabytes."""
    from pyarrow import types

    if types.is_dictionary(kind) and inner:
        raise GoldenError(
            "The column contains a categorical type inside lists or objects. Save the column as plain text.",
            column=column,
        )
    for k in range(getattr(kind, "num_fields", 0)):
        _check_type(column, kind.field(k).type, inner=True)


def plain_cell(cell: Any) -> Any:
    """Convert a cell to JSON types, also inside lists and objects: dates become ISO text, decimals become floats."""
    if cell is None or isinstance(cell, (str, bool, int, float)):
        return cell
    if isinstance(cell, (list, tuple)):
        return [plain_cell(inner) for inner in cell]
    if isinstance(cell, Mapping):
        return {str(key): plain_cell(inner) for key, inner in cell.items()}
    if isinstance(cell, decimal.Decimal):
        return float(cell) if cell.is_finite() else math.nan
    if isinstance(cell, (datetime.date, datetime.time)):
        return cell.isoformat()
    return bytes(cell).decode("utf-8", "replace") if isinstance(cell, (bytes, bytearray)) else str(cell)


def xlsx_rows(file: IO[bytes], options: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield the rows of the first visible sheet of a workbook.

    The first value is a list of notes, for example that other sheets were not read. Each further value is the row
    number and the cells of a row that is not empty. Formulas stay text.

    `options` sets the maximum ``rows``, ``cells``, and total ``unpacked`` bytes.
    """
    _bound_workbook(file, options["unpacked"])
    file.seek(0)
    import openpyxl

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns about styles and extensions that don't affect the cells
            book = openpyxl.load_workbook(file, read_only=True, keep_links=False)
            sheets = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"] or book.worksheets
            if not sheets:
                raise GoldenError("The workbook has no sheet with data.")
            sheet, n_rows, n_cells = sheets[0], 0, 0
            sheet.reset_dimensions()  # the size stated in the file may be wrong
            first = f"Concord read only the first of {len(book.worksheets)} sheets, {sheet.title[:60]!r}."
            yield [f"{first} To read another sheet, save it as a separate file."] if len(book.worksheets) > 1 else []
            for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
                n_cells += len(cells)
                if n_cells > options["cells"]:
                    raise GoldenError(f"The sheet has too many cells. Concord reads at most {options['cells']:,}.")
                if all(cell is None or cell == "" for cell in cells):
                    continue
                _bound_rows(n_rows, options)
                n_rows += 1
                yield [number, [plain_cell(cell) for cell in cells]]
    except (GoldenError, MemoryError):
        raise
    except Exception as problem:  # a hostile workbook can make the XML reader raise nearly anything
        raise GoldenError(f"The workbook can't be read: {str(problem)[:200]}.") from problem


def _bound_workbook(file: IO[bytes], limit: int) -> None:
    """Refuse a file that is not a workbook, unpacks to too many bytes, or declares XML entities.

    With a document type, a few bytes could expand to gigabytes or read local files.
    """
    try:
        with zipfile.ZipFile(file) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > limit:
                raise GoldenError(f"The unpacked workbook is larger than {limit >> 20} MB. Split the file.")
            if "[Content_Types].xml" not in packed.namelist():
                raise GoldenError("This isn't an XLSX workbook.")
            for entry in packed.infolist():
                markup = entry.filename.lower().endswith((".xml", ".rels"))
                if markup and b"<!DOCTYPE" in packed.read(entry).replace(b"\0", b""):  # UTF-16 too
                    raise GoldenError(
                        "The workbook declares XML entities, which spreadsheet programs never write. "
                        "Save it again with a spreadsheet program."
                    )
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, RuntimeError) as problem:
        raise GoldenError("This isn't an XLSX workbook. If it is an old .xls file, save it as .xlsx.") from problem
