from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import core
from core.data.tables import read_table
from core.spreadsheets import csv_text, original_cell, safe_cell


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "＝1", "-"])
def test_what_a_spreadsheet_would_run_is_put_behind_an_apostrophe(text: str) -> None:
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize("value", ["plain", "a = b", "-0.5", "+1e-3", ".5", "", 3, -2.5, "'tis", "''"])
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


_STARTS = st.sampled_from(["", "'", "''", "=", "+", "-", "@", "\t", "\r", "\n", " ", "＝", "＠", "'=", "' -", "''@"])
_TEXTS = st.tuples(_STARTS, st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8))


@given(_TEXTS.map("".join))
def test_what_is_escaped_comes_back(text: str) -> None:
    escaped = safe_cell(text)
    assert isinstance(escaped, str)
    assert original_cell(escaped) == text


@given(st.lists(_TEXTS.map("".join), min_size=1, max_size=5))
def test_a_table_that_is_written_is_read_back_as_it_was(texts: list[str]) -> None:
    data = csv_text(["target", "n"], [[text, "x"] for text in texts]).encode()
    assert [row["target"] for row in read_table(data, "t.csv").rows] == texts


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "'", "'=", "''-", "＝", "－7"])
def test_no_item_is_lost_between_its_golden_set_and_its_verdicts(start: str, tmp_path: Path) -> None:
    ids = [f"{start}{k}x" for k in range(6)]
    golden, verdicts = tmp_path / "golden.csv", tmp_path / "verdicts.csv"
    golden.write_text(
        csv_text(["item_id", "target", "human_q"], [[i, f"text {k}", k % 5 + 1] for k, i in enumerate(ids)])
    )
    verdicts.write_text(csv_text(["item_id", "score"], [[i, k % 5 + 1] for k, i in enumerate(ids)]))
    assert list(core.load_golden(golden).item_ids) == ids
    assert core.align(core.load_golden(golden), verdicts, "q").n == 6
