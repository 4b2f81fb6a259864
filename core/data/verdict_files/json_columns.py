"""Some columns of JSON lines, a few megabytes at a time: never a record a line where that can be spared.

pyarrow reads a block whose cells are what a table of scores mostly holds (texts, and numbers in one column); Python's
own reader takes a block that is otherwise, and where a line is wrong, `TableFile.rows` says which and why.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from core.data.tables import TableFile

ROWS = 20_000
"""Rows taken at once of a file that is read one by one."""

_BLOCK = 4 << 20
"""Bytes taken at once; a block ends with a line."""

Chunk = Mapping[str, Sequence[Any]]
"""Column → its cells in some rows that follow each other, None where a row has none."""


def json_columns(table: TableFile, wanted: Sequence[str], number: str) -> Iterator[tuple[Sequence[int], Chunk]]:
    """The rows' numbers in the file, and the cells of `wanted` columns; that called `number` mostly holds numbers.

    GoldenError, when it is reached, for a line that is no object.
    """
    start = line = 0
    if table.document is None and table.source.suffix in (".jsonl", ".ndjson") and table.encoding == "utf-8-sig":
        for block in table.source.blocks(_BLOCK):
            text = block.removeprefix(codecs.BOM_UTF8) if not start else block
            n_lines = text.count(b"\n") + (not text.endswith(b"\n"))
            numbers: Sequence[int] = range(line + 1, line + 1 + n_lines)
            cells = _by_column(text, wanted, number)
            if cells is None:
                filled = [k for k, one in enumerate(text.decode().split("\n")) if one and not one.isspace()]
                numbers, cells = [line + 1 + k for k in filled], _by_line(text, wanted)
            if cells is None:
                break
            yield numbers, cells
            start += len(numbers)
            line += n_lines
        else:
            return
    rows = table.rows(start)
    numbered = ((rows.number, row) for row in rows)
    while some := list(islice(numbered, ROWS)):
        yield [number for number, _ in some], _cells([row for _, row in some], wanted)


def _by_column(text: bytes, wanted: Sequence[str], number: str) -> Chunk | None:
    """None for what is not quite as expected: a blank line, an id that is a number, a score that is a text."""
    import pyarrow as arrow
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    types = arrow.schema([(name, arrow.float64() if name == number else arrow.string()) for name in wanted])
    options = ParseOptions(explicit_schema=types, unexpected_field_behavior="ignore")
    try:
        read = read_json(io.BytesIO(text), ReadOptions(use_threads=False, block_size=len(text) + 1), options)
    except arrow.ArrowInvalid:
        return None
    if read.num_rows != text.count(b"\n") + (not text.endswith(b"\n")):
        return None
    return {name: read[name].to_numpy().tolist() for name in wanted}


def _by_line(text: bytes, wanted: Sequence[str]) -> Chunk | None:
    """None where a line is no JSON object."""
    lines = [line for line in text.decode().split("\n") if line and not line.isspace()]
    try:
        values = json.loads(f"[{','.join(lines)}]")
    except (ValueError, RecursionError):
        return None
    return (
        _cells(values, wanted) if len(values) == len(lines) and all(type(value) is dict for value in values) else None
    )


def _cells(rows: Sequence[Mapping[str, Any]], wanted: Sequence[str]) -> Chunk:
    return {name: [row.get(name) for row in rows] for name in wanted}
