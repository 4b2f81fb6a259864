from __future__ import annotations

import csv
import io

import pytest

from core.spreadsheets import csv_text, safe_cell


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "＝1", "-"])
def test_what_a_spreadsheet_would_run_is_put_behind_an_apostrophe(text: str) -> None:
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize("value", ["plain", "a = b", "-0.5", "+1e-3", ".5", "", 3, -2.5, "'=1"])
def test_what_it_would_not_run_stays(value: str | float) -> None:
    assert safe_cell(value) == value


def test_a_missing_value_is_an_empty_cell() -> None:
    assert safe_cell(None) == ""


def test_a_file_reads_back() -> None:
    text = csv_text(["name", "=n"], [["a,b", 1], ['"q"\nnew line', -0.5], ["=x", None]])
    assert list(csv.reader(io.StringIO(text))) == [
        ["name", "'=n"],
        ["a,b", "1"],
        ['"q"\nnew line', "-0.5"],
        ["'=x", ""],
    ]
