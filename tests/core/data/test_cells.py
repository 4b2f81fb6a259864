"""Cells: numbers that are numbers, lists by JSON only, ids, damaged text."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data.cells import (
    AmbiguousCommaError,
    CellError,
    Comma,
    cell_at,
    clean_text,
    read_list,
    read_number,
)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (None, None),
        ("", None),
        ("  ", None),
        (3, 3.0),
        (2.5, 2.5),
        (True, 1.0),
        ("false", 0.0),
        (" 4.50 ", 4.5),
        ("-1e2", -100.0),
        (".5", 0.5),
        ("3,5", 3.5),
    ],
)
def test_numbers(cell: Any, value: float | None) -> None:
    assert read_number(cell) == value


UNREAD = ["nan", "NaN", "inf", "-Infinity", math.nan, math.inf, "1e999", "1_000", "١", "four", "=1+1", "1;2", [1], {}]
TOO_LARGE = ["1e101", 1e308, -(10**200), 10**400]  # their squares are no numbers


@pytest.mark.parametrize("cell", [*UNREAD, *TOO_LARGE, "9" * 10_000_000], ids=lambda cell: str(cell)[:20])
def test_what_is_no_finite_number_is_refused_in_few_words(cell: Any) -> None:
    with pytest.raises(CellError, match="too large" if cell in TOO_LARGE else ".") as caught:
        read_number(cell)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("cell", "entries"),
    [
        (None, []),
        ("", []),
        ([1, None], [1, None]),
        ("[1, 2.5]", [1, 2.5]),
        (' ["a"]', ["a"]),
        ("[1] see note", ["[1] see note"]),
        ("__import__('os')", ["__import__('os')"]),
        (4, [4]),
        ("[" * 100_000, ["[" * 100_000]),
    ],
)
def test_lists_are_parsed_as_json_or_not_at_all(cell: Any, entries: list[Any]) -> None:
    assert read_list(cell) == entries


@given(st.text(alphabet=st.characters(blacklist_categories=[])))
def test_cleaned_text_can_be_encoded_and_keeps_its_length(text: str) -> None:
    cleaned = clean_text(text)
    assert "\x00" not in cleaned
    assert len(cleaned.encode()) >= len(cleaned) == len(text)


COMMAS = """
    2,5 - 2.5
    0,125 - 0.125
    12,34 - 12.34
    1,2345 - 1.2345
    1,234 decimal 1.234
    1,234 thousands 1234
    -12,000 thousands -12000
    1,234,567.5 thousands 1234567.5
"""


@pytest.mark.parametrize("line", COMMAS.strip().splitlines())
def test_commas(line: str) -> None:
    cell, comma, value = line.split()
    meaning: dict[str, Comma | None] = {"-": None, "decimal": "decimal", "thousands": "thousands"}
    assert read_number(cell, meaning[comma]) == float(value)


@pytest.mark.parametrize("cell", ["1,234", "+12,345", "-999,000"])
def test_a_comma_that_can_mean_two_things_is_no_number(cell: str) -> None:
    with pytest.raises(AmbiguousCommaError, match="can mean"):
        read_number(cell)


@pytest.mark.parametrize(("cell", "comma"), [("2,5", "thousands"), ("1,234,567", None), ("1.234,5", "decimal")])
def test_a_comma_out_of_place_is_no_number(cell: str, comma: Comma | None) -> None:
    with pytest.raises(CellError, match="a number was expected"):
        read_number(cell, comma)


@pytest.mark.parametrize(
    ("path", "cell"),
    [
        ("plain", 1),
        ("a.b[0].c", "deep"),
        ("a.b[1]", "second"),
        ("a.b[2]", None),
        ("a.none.c", None),
        ("plain.b", None),
        ("text.k[1]", 8),
        ("own.name", "a column"),
        ("a..b", None),
        ("[0]", None),
    ],
)
def test_a_path_names_a_cell_within_nested_json(path: str, cell: object) -> None:
    row = {"plain": 1, "a": {"b": [{"c": "deep"}, "second"]}, "text": '{"k": [7, 8]}', "own.name": "a column"}
    assert cell_at(row, path) == cell
