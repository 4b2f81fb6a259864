"""Rows out of every format, one after the other: the same as `read_table` gives, from any row on."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from core.data import files, open_table, read_table
from core.errors import GoldenError

ROWS: list[dict[str, Any]] = [
    {"item_id": f"i{k}", "target": f'Line one, {k}\nline "two" é', "source": "a; b"} for k in range(150)
]


def as_csv() -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(ROWS[0]))
    writer.writeheader()
    writer.writerows(ROWS)
    return out.getvalue().encode()


def as_jsonl() -> bytes:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS).replace("\n", "\n\n", 3).encode()


def as_parquet() -> bytes:
    import pyarrow as arrow
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist(ROWS), out, row_group_size=40)
    return out.getvalue()


FILES = {
    "f.csv": as_csv,
    "f.csv.gz": lambda: gzip.compress(as_csv(), mtime=0),
    "f.jsonl": as_jsonl,
    "f.ndjson.gz": lambda: gzip.compress(as_jsonl(), mtime=0),
    "f.parquet": as_parquet,
    "wide.csv": lambda: as_csv().decode().encode("utf-16"),
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


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("f.jsonl", b'{"target": "a"}\n{"target": \n', "row 2: Line 2 is not JSON"),
        ("f.jsonl", b'{"target": "a"}\n[1]\n', "row 2: Line 2 must be a JSON object"),
        ("f.csv", b'item_id,target\na,"never closed\n', "row 1: The CSV is broken at line 2"),
        ("f.csv", b"item_id,target\na,b\nc,d,e\n", "row 2: 3 cells came where the header names 2"),
        ("f.parquet", b"PAR1 no such thing PAR1", "The Parquet data is broken"),
        ("f.csv.gz", gzip.compress(as_csv(), mtime=0)[:-300], "The gzip data is broken or cut off"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(GoldenError, match=f"^f.*{words}"):
        list(open_table(path, max_mb=None).rows())


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("f.csv", b" \n", "The file is empty"),
        ("f.jsonl", b"PK\x03\x04abc", "content is that of a .xlsx"),
        ("f.csv", b"<!DOCTYPE html><p>", "web page"),
        ("f.doc", b"x", "file type is not known"),
    ],
)
def test_files_refused_at_once(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(GoldenError, match=words):
        open_table(path, max_mb=None)
    with pytest.raises(GoldenError, match="There is no such file"):
        open_table(tmp_path / "none.csv", max_mb=None)


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
