"""Reading files: every format, encodings, delimiters, and clear errors for broken and hostile content."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.data import open_table, read_table, read_upload, tables
from core.errors import GoldenError
from tests.core.data.conftest import as_csv

ROWS = [
    {"item_id": "1", "target": "Żółw, “x”; y | z\nnew line", "human_a": 3.5},
    {"item_id": "2", "target": "b", "human_a": 1},
]


def test_every_format_gives_the_same_columns_and_rows(formats: dict[str, Any]) -> None:
    for ending, write in formats.items():
        table = read_table(write(ROWS), "set" + ending)
        assert table.columns == ("item_id", "target", "human_a"), ending
        told = [(row["item_id"], row["target"], float(row["human_a"])) for row in table.rows]
        assert told == [("1", ROWS[0]["target"], 3.5), ("2", "b", 1.0)], ending
        assert table.findings == (), ending


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found_even_among_others_in_quotes(delimiter: str) -> None:
    lines = ["item_id#target#human_a", '1#"a, b; c | d, e; f"#"3,5"', "2#plain#4"]
    table = read_table("\n".join(lines).replace("#", delimiter).encode(), "set.csv")
    assert table.columns == ("item_id", "target", "human_a")
    assert table.rows[0] == {"item_id": "1", "target": "a, b; c | d, e; f", "human_a": "3,5"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_unicode_encodings_are_read_without_a_finding(encoding: str, ending: str) -> None:
    text = "item_id,target\n1,né à Łódź\n" if ending == ".csv" else '{"item_id": "1", "target": "né à Łódź"}\n'
    table = read_table(text.encode(encoding), "set" + ending)
    assert table.columns == ("item_id", "target")
    assert table.rows[0]["target"] == "né à Łódź"
    assert table.findings == ()


BROKEN: list[tuple[str, bytes, str, int | None]] = [
    ("a.jsonl", b'{"target": "x"}\n\n{"target": \n', "Line 3 isn't valid JSON", 3),
    ("a.jsonl", b'{"target": "x"}\n[1]\n', "Line 2 must be a JSON object; got a list", 2),
    ("a.jsonl", b"[" * 100_000, "nested too deeply", 1),
    ("a.jsonl", b'{"human_a": ' + b"9" * 5000 + b"}", "a number that is too long", 1),
    ("a.json", b'[{"target": "x"},\n oops]', "isn't valid JSON at line 2", None),
    ("a.json", b'"x"', "array of objects; got a str", None),
    ("a.csv", b"target,human_a\nx,1\ny,2,3\n", "3 cells, but the header has 2", 3),
    ("a.csv", b'target,human_a\n"x,1\ny,2\n', "CSV line 3", 2),
    ("a.csv", b"target,target\nx,1\n", "Two columns have this name", None),
    ("a.csv", b"target,human_a\n", "no data rows", None),
    ("a.csv", b"", "empty", None),
    ("a.csv", b"PK\x03\x04rest", r"\.xlsx", None),
    ("a.csv", b"x" * 201 + b"\n1\n", "longer than 200", None),
    ("a.csv", b",".join(b"c%d" % i for i in range(2001)) + b"\n1\n", "the limit is 2000", None),
    ("a.csv.gz", b"target\nx\n", "gzip file is damaged", None),
    ("a.csv.gz", gzip.compress(b"target\nx\n" * 99, mtime=0)[:-12], "gzip file is damaged", None),
    ("a.parquet", b"PAR1 and nothing more", "Parquet data is damaged", None),
    ("a.xlsx", b"not a zip", "isn't an XLSX workbook", None),
    ("a.pdf", b"%PDF", "Unknown file type", None),
]


@pytest.mark.parametrize(("name", "content", "message", "row"), BROKEN)
def test_broken_files_are_refused_with_place_and_reason_whole_and_row_by_row(
    tmp_path: Path, name: str, content: bytes, message: str, row: int | None
) -> None:
    path = tmp_path / (name or "nameless")
    path.write_bytes(content)
    for read in (lambda: read_table(content, name), lambda: list(open_table(path, max_mb=None).rows())):
        with pytest.raises(GoldenError, match=message) as caught:
            read()
        assert caught.value.row == row
        assert caught.value.file in (name or "(unnamed)", path.name)
        assert len(str(caught.value)) < 400


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_large_files_are_refused_before_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "big.csv"
    path.write_bytes(b"target\n" + b"x" * 3_000_000)
    with pytest.raises(GoldenError, match="larger than the limit of 2 MB"):
        read_table(path, max_mb=2)
    with pytest.raises(GoldenError, match="larger than the limit"):
        read_table(path.read_bytes(), "big.csv", max_mb=2)


def test_what_unpacks_too_large_is_refused_before_it_is_read(formats: dict[str, Any]) -> None:
    book = io.BytesIO(formats[".xlsx"](ROWS))
    with zipfile.ZipFile(book, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/media/zeros.bin", b"0" * 5_000_000)
    for name, content, message in (
        ("a.csv.gz", gzip.compress(b"target\n" + b"0" * 5_000_000, mtime=0), "When unpacked, the file is larger"),
        ("a.xlsx", book.getvalue(), "larger than 1 MB"),
        ("a.parquet", formats[".parquet"]([{"target": "x" * 100_000}] * 50), "larger than 1 MB"),
    ):
        assert len(content) < 200_000
        with pytest.raises(GoldenError, match=message):
            read_table(content, name, max_mb=1)


def rewritten(book: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """`book` with the XML of its first sheet changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            part = old.read(name)
            new.writestr(name, change(part) if name == "xl/worksheets/sheet1.xml" else part)
    return out.getvalue()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_workbooks_with_xml_entities_are_refused(formats: dict[str, Any], encoding: str) -> None:
    declared = f'<?xml version="1.0"?>{" " * 2000}<!DOCTYPE s [<!ENTITY a "{"ha" * 50}">]>'
    book = rewritten(formats[".xlsx"](ROWS), lambda part: (declared + part.decode()).encode(encoding))
    with pytest.raises(GoldenError, match="declares XML entities"):
        read_table(book, "a.xlsx")


def test_rows_and_cells_are_bounded(monkeypatch: pytest.MonkeyPatch, formats: dict[str, Callable[..., bytes]]) -> None:
    rows = [{"target": f"text {i}"} for i in range(12)]
    monkeypatch.setattr(tables, "MAX_ROWS", 10)
    for ending, write in formats.items():
        with pytest.raises(GoldenError, match="too many rows; at most 10"):
            read_table(write(rows), "a" + ending)
    monkeypatch.setattr(tables, "MAX_CELLS", 5)
    with pytest.raises(GoldenError, match="too many cells"):
        read_table(formats[".xlsx"](rows), "a.xlsx")


def test_an_upload_is_read_elsewhere_and_the_same(
    monkeypatch: pytest.MonkeyPatch, formats: dict[str, Callable[..., bytes]]
) -> None:
    monkeypatch.setattr(tables, "SMALL", 0)
    rows = [{"item_id": "1", "target": "\ud800 ä", "human_a": [1, None, True]}, {"item_id": "2", "more": {"a": 1.5}}]
    for ending in (".jsonl", ".jsonl.gz", ".json"):
        data = formats[ending](rows)
        assert read_upload(data, f"a{ending}") == read_table(data, f"a{ending}"), ending
    with pytest.raises(GoldenError, match="Line 2 isn't valid JSON") as caught:
        read_upload(b"{}\n{\n", "a.jsonl")
    assert (caught.value.file, caught.value.row) == ("a.jsonl", 2)
    latin = read_upload("item_id,target\n1,caf\xe9\n".encode("cp1252"), "a.csv")
    assert [finding.severity for finding in latin.findings] == ["warning"]


def test_nesting_and_values_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = b'{"target": ' + b"[" * 80 + b"]" * 80 + b"}"
    for data, name in ((deep, "a.jsonl"), (b"[" + deep + b"]", "a.json")):
        with pytest.raises(GoldenError, match="nested more than 64 levels deep"):
            read_table(data, name)
    monkeypatch.setattr(tables, "MAX_VALUES", 20)
    for data, name in (
        (b'{"a": [' + b"1," * 30 + b"1]}", "a.jsonl"),
        (b'[{"a": [' + b"[]," * 30 + b"1]}]", "a.json"),
        (b"a,b,c\n" + b"1,2,3\n" * 8, "a.csv"),
    ):
        with pytest.raises(GoldenError, match="more than 20 values"):
            read_table(data, name)
    assert len(read_table(b'{"target": "' + b"a, [b], {c}, " * 30 + b'"}', "a.jsonl").rows) == 1


# ── row by row ──────────────────────────────────────────────────────────────────────────────────────────────────

MANY: list[dict[str, Any]] = [
    {"item_id": f"i{k}", "target": f'Line one, {k}\nline "two" é', "source": "a; b"} for k in range(150)
]


def spaced_jsonl() -> bytes:
    """The first lines have an empty one between them."""
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in MANY).replace("\n", "\n\n", 3).encode()


def in_row_groups() -> bytes:
    import pyarrow as arrow
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist(MANY), out, row_group_size=40)
    return out.getvalue()


FILES = {
    "f.csv": lambda: as_csv(MANY),
    "f.csv.gz": lambda: gzip.compress(as_csv(MANY), mtime=0),
    "f.jsonl": spaced_jsonl,
    "f.ndjson.gz": lambda: gzip.compress(spaced_jsonl(), mtime=0),
    "f.parquet": in_row_groups,
    "wide.csv": lambda: as_csv(MANY).decode().encode("utf-16"),
}


@pytest.fixture(params=FILES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    found = tmp_path / request.param
    found.write_bytes(FILES[request.param]())
    return found


def test_rows_one_by_one_are_those_of_the_whole_table(path: Path) -> None:
    rows = open_table(path, max_mb=None).rows()
    assert list(rows) == MANY == list(read_table(path).rows)
    assert (rows.findings, rows.columns) == ((), ("item_id", "target", "source"))


@pytest.mark.parametrize(
    ("name", "message"), [("f.jsonl.gz", "row 1: Line 1 isn't valid JSON"), ("f.csv.gz", "Line 2 is longer")]
)
def test_an_endless_line_is_refused_before_it_fills_the_memory(
    tmp_path: Path, name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "LONGEST_LINE", 10_000)
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"item_id,target\n" + b"a" * 1_000_000, mtime=0))
    with pytest.raises(GoldenError, match=message):
        next(iter(open_table(path, max_mb=None).rows()))


def test_a_packed_file_of_any_length_may_not_unfold_to_far_more_than_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "UNPACKED_FREELY", 1 << 20)
    path = tmp_path / "f.csv.gz"
    path.write_bytes(gzip.compress(b"item_id,target\n" + b"a,b\n" * 2_000_000, mtime=0))
    with pytest.raises(GoldenError, match="When unpacked, the file is larger"):
        open_table(path, max_mb=None)
