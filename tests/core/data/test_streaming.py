"""Rows out of every format, one after the other: the same as `read_table` gives, from any row on."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from core.data import files, open_table, read_table
from core.errors import GoldenError
from tests.core.data.conftest import as_csv

ROWS: list[dict[str, Any]] = [
    {"item_id": f"i{k}", "target": f'Line one, {k}\nline "two" é', "source": "a; b"} for k in range(150)
]


def spaced_jsonl() -> bytes:
    """The first lines have an empty one between them."""
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS).replace("\n", "\n\n", 3).encode()


def as_parquet() -> bytes:
    import pyarrow as arrow
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist(ROWS), out, row_group_size=40)
    return out.getvalue()


FILES = {
    "f.csv": lambda: as_csv(ROWS),
    "f.csv.gz": lambda: gzip.compress(as_csv(ROWS), mtime=0),
    "f.jsonl": spaced_jsonl,
    "f.ndjson.gz": lambda: gzip.compress(spaced_jsonl(), mtime=0),
    "f.parquet": as_parquet,
    "wide.csv": lambda: as_csv(ROWS).decode().encode("utf-16"),
}


@pytest.fixture(params=FILES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    found = tmp_path / request.param
    found.write_bytes(FILES[request.param]())
    return found


def test_rows_are_those_of_the_whole_table(path: Path) -> None:
    rows = open_table(path, max_mb=None).rows()
    assert list(rows) == list(read_table(path).rows) == ROWS
    assert rows.columns == ("item_id", "target", "source")
    assert rows.findings == ()


@pytest.mark.parametrize("start", [1, 39, 40, 41, 149, 150])
def test_reading_goes_on_after_any_row(path: Path, start: int) -> None:
    assert list(open_table(path, max_mb=None).rows(start)) == ROWS[start:]


def test_a_broken_row_is_refused_when_it_is_reached(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes(b"item_id,target\na,b\nc,d,e\n")
    rows = iter(open_table(path, max_mb=None).rows())
    assert next(rows) == {"item_id": "a", "target": "b"}
    with pytest.raises(GoldenError, match=r"^f.csv, row 2: 3 cells came where the header names 2"):
        next(rows)


@pytest.mark.parametrize("name", ["f.jsonl.gz", "f.csv.gz"])
def test_an_endless_line_is_refused_before_it_fills_the_memory(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 10_000)
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"item_id,target\n" + b"a" * 1_000_000, mtime=0))
    read = 0
    with pytest.raises(GoldenError, match=r"Line 2 is longer|row 1: Line 1 is not JSON"):
        for row in open_table(path, max_mb=None).rows():
            read += len(row)
    assert read == 0


def test_formats_without_rows_of_their_own_are_bounded_as_a_whole(tmp_path: Path) -> None:
    for name, streams in (("a.csv", True), ("a.jsonl", True), ("a.json", False)):
        path = tmp_path / name
        path.write_text('[{"target": "x"}]' if name == "a.json" else '{"target": "x"}\n')
        table = open_table(path, max_mb=None)
        assert (table.most_rows is None, table.document is None) == (streams, streams)


def test_a_packed_file_of_any_length_may_not_unfold_to_far_more_than_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "UNPACKED_FREELY", 1 << 20)
    path = tmp_path / "f.csv.gz"
    path.write_bytes(gzip.compress(b"item_id,target\n" + b"a,b\n" * 2_000_000, mtime=0))
    with pytest.raises(GoldenError, match="Unpacked, it is too large"):
        open_table(path, max_mb=None)
