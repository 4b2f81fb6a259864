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

from core.data import files, open_table, read_table, read_upload, tables
from core.errors import GoldenError

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


def test_a_path_is_read_and_names_the_table(tmp_path: Path) -> None:
    path = tmp_path / "set.JSONL"
    path.write_text('{"target": "x"}\n\n', encoding="utf-8")
    table = read_table(path)
    assert (table.name, len(table.rows)) == ("set.JSONL", 1)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found_even_among_others_in_quotes(delimiter: str) -> None:
    lines = ["item_id#target#human_a", '1#"a, b; c | d, e; f"#"3,5"', "2#plain#4"]
    table = read_table("\n".join(lines).replace("#", delimiter).encode(), "set.csv")
    assert table.columns == ("item_id", "target", "human_a")
    assert table.rows[0] == {"item_id": "1", "target": "a, b; c | d, e; f", "human_a": "3,5"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_unicode_encodings_are_read_without_a_finding(encoding: str, ending: str) -> None:
    text = "item_id,target\n1,né à Łódź\n" if ending == ".csv" else '{"item_id": "1", "target": "né à Łódź"}\n'
    table = read_table(text.encode(encoding), "set" + ending)
    assert table.columns == ("item_id", "target")
    assert table.rows[0]["target"] == "né à Łódź"
    assert table.findings == ()


def test_windows_1252_is_read_with_a_warning_that_names_the_line() -> None:
    table = read_table("item_id,target\n1,plain\n2,café – €\n".encode("cp1252"), "set.csv")
    assert table.rows[1]["target"] == "café – €"
    (finding,) = table.findings
    assert (finding.severity, finding.row) == ("warning", 2)
    assert "line 3" in finding.message


def test_delimiters_are_found_without_known_names_and_with_a_short_row() -> None:
    table = read_table(b"key,words,mark\n1,a,2\n2,b\n3,c,4\n", "set.csv")
    assert table.columns == ("key", "words", "mark")
    (finding,) = read_table(b'{"t": "x"}\n{"t": "\xe9"}\n', "set.jsonl").findings
    assert finding.row == 2


def test_bytes_of_no_encoding_are_refused() -> None:
    with pytest.raises(GoldenError, match="neither UTF-8"):
        read_table(b"target\n\x81\xff\n", "set.csv")
    with pytest.raises(GoldenError, match="UTF-16"):
        read_table(b"\xff\xfet\x00\x00\xd8x\x00", "set.csv")


BROKEN: list[tuple[str, bytes, str, int | None]] = [
    ("a.jsonl", b'{"target": "x"}\n\n{"target": \n', "Line 3 is not JSON", 2),
    ("a.jsonl", b'{"target": "x"}\n[1]\n', "Line 2 must be a JSON object, a list came", 2),
    ("a.jsonl", b"[" * 100_000, "nested too deeply", 1),
    ("a.jsonl", b'{"human_a": ' + b"9" * 5000 + b"}", "number in it is too long", 1),
    ("a.json", b'[{"target": "x"},\n oops]', "not JSON at line 2", None),
    ("a.json", b'["x"]', "JSON object was expected, a str came", 1),
    ("a.json", b'"x"', "array of objects was expected, a str came", None),
    ("a.json", b"[]", "no data rows", None),
    ("a.csv", b"target,human_a\nx,1\ny,2,3\n", "3 cells came where the header names 2", 2),
    ("a.csv", b'target,human_a\n"x,1\ny,2\n', "broken at line 3", 1),
    ("a.csv", b"target,target\nx,1\n", "Two columns have this name", None),
    ("a.csv", b"target,human_a\n", "no data rows", None),
    ("a.csv", b"\n\n", "empty", None),
    ("a.csv", b"", "empty", None),
    ("a.csv", b"<!DOCTYPE html><html>", "web page", None),
    ("a.csv", b"PK\x03\x04rest", r"\.xlsx", None),
    ("a.csv", b"x" * 201 + b"\n1\n", "longer than 200", None),
    ("a.csv", b",".join(b"c%d" % i for i in range(2001)) + b"\n1\n", "at most 2000", None),
    ("a.csv.gz", b"target\nx\n", "gzip data is broken", None),
    ("a.csv.gz", gzip.compress(b"target\nx\n" * 99, mtime=0)[:-12], "gzip data is broken", None),
    ("a.csv.gz", gzip.compress(b"", mtime=0), "empty", None),
    ("a.parquet", b"PAR1 and nothing more", "Parquet data is broken", None),
    ("a.xlsx", b"not a zip", "not an XLSX workbook", None),
    ("a.pdf", b"%PDF", "file type is not known", None),
    ("", b"x", "file type is not known", None),
]


@pytest.mark.parametrize(("name", "content", "message", "row"), BROKEN)
def test_broken_files_are_refused_with_place_and_reason(
    name: str, content: bytes, message: str, row: int | None
) -> None:
    with pytest.raises(GoldenError, match=message) as caught:
        read_table(content, name)
    assert caught.value.row == row
    assert caught.value.file == (name or "(unnamed)")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(("name", "content", "message", "row"), [case for case in BROKEN if case[0]])
def test_they_are_refused_in_the_same_words_when_they_are_read_row_by_row(
    tmp_path: Path, name: str, content: bytes, message: str, row: int | None
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(GoldenError, match=message) as caught:
        list(open_table(tmp_path / name, max_mb=None).rows())
    assert caught.value.row == row


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match="no such file"):
        read_table(tmp_path / "absent.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(GoldenError, match="cannot be opened"):
        read_table(tmp_path / "folder.csv")


def test_a_short_row_is_filled_and_told() -> None:
    table = read_table(b"item_id,target,human_a\n1,x,3\n2,y\n", "a.csv")
    assert table.rows[1] == {"item_id": "2", "target": "y"}
    (finding,) = table.findings
    assert (finding.severity, finding.row, finding.column) == ("warning", 2, "human_a")


def test_a_million_short_rows_are_told_in_few_words() -> None:
    table = read_table(b"item_id,target,human_a\n" + b"1,x\n" * 1_000, "a.csv")
    assert len(table.findings) == 11
    assert table.findings[-1].message == "990 more like this in this column."


def test_nameless_index_columns_are_kept_aside_and_blank_ones_dropped() -> None:
    assert read_table(b",target,\n0,x,\n1,y,\n", "a.csv").columns == ("(column 1)", "target")


def test_json_lines_under_a_json_ending_are_read() -> None:
    assert len(read_table(b'{"target": "x"}\n{"target": "y"}\n', "a.json").rows) == 2


@pytest.mark.parametrize("text", ['{"data": [{"target": "x"}], "has_more": false}', '{"target":\n "x"}'])
def test_a_page_of_an_api_and_a_lone_object_are_rows_too(text: str) -> None:
    assert read_table(text.encode(), "a.json").rows == ({"target": "x"},)


def test_line_separators_inside_json_texts_do_not_break_lines() -> None:
    table = read_table('{"target": "a\u2028b\u0085c"}\r\n'.encode(), "a.jsonl")
    assert table.rows[0]["target"] == "a\u2028b\u0085c"


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_large_files_are_refused_before_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "big.csv"
    path.write_bytes(b"target\n" + b"x" * 3_000_000)
    with pytest.raises(GoldenError, match="at most 2 MB are read, 3 MB came"):
        read_table(path, max_mb=2)
    with pytest.raises(GoldenError, match="too large"):
        read_table(path.read_bytes(), "big.csv", max_mb=2)


def test_gzip_bombs_are_refused() -> None:
    bomb = gzip.compress(b"target\n" + b"0" * 5_000_000, mtime=0)
    assert len(bomb) < 10_000
    with pytest.raises(GoldenError, match="Unpacked, it is too large"):
        read_table(bomb, "a.csv.gz", max_mb=1)


def test_xlsx_bombs_are_refused_before_unpacking(formats: dict[str, Any]) -> None:
    out = io.BytesIO(formats[".xlsx"](ROWS))
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/media/zeros.bin", b"0" * 5_000_000)
    assert len(out.getvalue()) < 100_000
    with pytest.raises(GoldenError, match="larger than 1 MB"):
        read_table(out.getvalue(), "a.xlsx", max_mb=1)


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


def test_a_row_number_beyond_any_sheet_is_refused(formats: dict[str, Any]) -> None:
    book = rewritten(formats[".xlsx"](ROWS), lambda part: part.replace(b'<row r="3"', b'<row r="999999999"'))
    with pytest.raises(GoldenError, match="too many rows"):
        read_table(book, "a.xlsx")


def test_parquet_that_unpacks_too_large_is_refused(formats: dict[str, Any]) -> None:
    packed = formats[".parquet"]([{"target": "x" * 100_000}] * 50)
    assert len(packed) < 200_000
    with pytest.raises(GoldenError, match="larger than 1 MB"):
        read_table(packed, "a.parquet", max_mb=1)


def test_rows_and_cells_are_bounded(monkeypatch: pytest.MonkeyPatch, formats: dict[str, Callable[..., bytes]]) -> None:
    rows = [{"target": f"text {i}"} for i in range(12)]
    monkeypatch.setattr(files, "MAX_ROWS", 10)
    for ending, write in formats.items():
        with pytest.raises(GoldenError, match="too many rows; at most 10"):
            read_table(write(rows), "a" + ending)
    monkeypatch.setattr(tables, "MAX_CELLS", 5)
    with pytest.raises(GoldenError, match="too many cells"):
        read_table(formats[".xlsx"](rows), "a.xlsx")


def test_a_cell_of_ten_megabytes_is_read_whole() -> None:
    table = read_table(b"item_id,target\n1," + b"y" * 10_000_000 + b"\n", "a.csv")
    assert len(table.rows[0]["target"]) == 10_000_000


def test_an_upload_is_read_elsewhere_and_the_same(
    monkeypatch: pytest.MonkeyPatch, formats: dict[str, Callable[..., bytes]]
) -> None:
    monkeypatch.setattr(tables, "SMALL", 0)
    rows = [{"item_id": "1", "target": "\ud800 ä", "human_a": [1, None, True]}, {"item_id": "2", "more": {"a": 1.5}}]
    for ending in (".jsonl", ".jsonl.gz", ".json"):
        data = formats[ending](rows)
        assert read_upload(data, f"a{ending}") == read_table(data, f"a{ending}"), ending
    with pytest.raises(GoldenError, match="Line 2 is not JSON") as caught:
        read_upload(b"{}\n{\n", "a.jsonl")
    assert (caught.value.file, caught.value.row) == ("a.jsonl", 2)
    latin = read_upload("item_id,target\n1,caf\xe9\n".encode("cp1252"), "a.csv")
    assert [finding.severity for finding in latin.findings] == ["warning"]


def test_nesting_and_values_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = b'{"target": ' + b"[" * 80 + b"]" * 80 + b"}"
    for data, name in ((deep, "a.jsonl"), (b"[" + deep + b"]", "a.json")):
        with pytest.raises(GoldenError, match="nested too deeply: more than 64 levels"):
            read_table(data, name)
    monkeypatch.setattr(files, "MAX_VALUES", 20)
    for data, name in (
        (b'{"a": [' + b"1," * 30 + b"1]}", "a.jsonl"),
        (b'[{"a": [' + b"[]," * 30 + b"1]}]", "a.json"),
        (b"a,b,c\n" + b"1,2,3\n" * 8, "a.csv"),
    ):
        with pytest.raises(GoldenError, match="too many values; at most 20"):
            read_table(data, name)
    assert len(read_table(b'{"target": "' + b"a, [b], {c}, " * 30 + b'"}', "a.jsonl").rows) == 1


# ── workbooks ────────────────────────────────────────────────────────────────────────────────────────────────


def workbook(*lines: list[Any], sheets: int = 1) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for line in lines:
        sheet.append(line)
    for number in range(1, sheets):
        book.create_sheet(f"more {number}")
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_formulas_stay_text() -> None:
    table = read_table(workbook(["target", "human_a"], ["x", "=1+1"], ["=HYPERLINK(1)", 2]), "a.xlsx")
    assert table.rows[0]["human_a"] == "=1+1"
    assert table.rows[1]["target"] == "=HYPERLINK(1)"


def test_the_first_sheet_is_read_and_others_are_told() -> None:
    table = read_table(workbook(["target"], ["x"], sheets=2), "a.xlsx")
    assert [finding.severity for finding in table.findings] == ["note"]
    assert "2 sheets" in table.findings[0].message


def test_blank_lines_before_and_between_are_skipped_and_stray_cells_refused() -> None:
    assert len(read_table(workbook([], ["target"], [None], ["x"]), "a.xlsx").rows) == 1
    with pytest.raises(GoldenError, match="right of the 1 named") as caught:
        read_table(workbook(["target"], ["x"], ["y", "note"]), "a.xlsx")
    assert caught.value.row == 2
    with pytest.raises(GoldenError, match="first sheet is empty"):
        read_table(workbook(), "a.xlsx")


def test_dates_become_text() -> None:
    import datetime

    table = read_table(workbook(["target", "item_id"], ["x", datetime.date(2024, 5, 1)]), "a.xlsx")
    assert table.rows[0]["item_id"].startswith("2024-05-01")


def test_a_zip_that_is_no_workbook_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("word/document.xml", "<x/>")
    with pytest.raises(GoldenError, match="not an XLSX workbook"):
        read_table(out.getvalue(), "a.xlsx")
    with zipfile.ZipFile(out, "a") as packed:
        packed.writestr("[Content_Types].xml", "<broken")
    with pytest.raises(GoldenError, match="workbook cannot be read"):
        read_table(out.getvalue(), "a.xlsx")


def test_json_numbers_beyond_floats_survive_the_reading() -> None:
    rows = read_table(json.dumps({"target": "x", "human_a": 10**400}).encode(), "a.jsonl").rows
    assert rows[0]["human_a"] == 10**400
