"""Cells: numbers that are numbers, lists by JSON only, ids, damaged text, texts of structured cells, item kinds."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data.cells import (
    CellError,
    aspect_key,
    cell_at,
    clean_text,
    read_list,
    read_number,
    readable,
    source_text,
    target_text,
)
from core.data.columns import detect_kind


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
        ("0,125", 0.125),
        ("1,2345", 1.2345),
    ],
)
def test_numbers(cell: Any, value: float | None) -> None:
    assert read_number(cell) == value


UNREAD = ["nan", "NaN", "inf", "-Infinity", math.nan, math.inf, "1e999", "1_000", "١", "four", "=1+1", "1;2", [1], {}]
TOO_LARGE = ["1e101", 1e308, -(10**200), 10**400]  # their squares are no numbers


@pytest.mark.parametrize("cell", [*UNREAD, *TOO_LARGE, "9" * 10_000_000], ids=lambda cell: str(cell)[:20])
def test_what_is_no_finite_number_is_refused_in_few_words(cell: Any) -> None:
    with pytest.raises(CellError, match="larger than" if cell in TOO_LARGE else ".") as caught:
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


@pytest.mark.parametrize("cell", ["1,234", "+12,345", "-999,000"])
def test_a_comma_that_can_mean_two_things_is_no_number(cell: str) -> None:
    with pytest.raises(CellError, match="can mean"):
        read_number(cell)


@pytest.mark.parametrize(
    ("path", "cell"),
    [
        ("plain", 1),
        ("a.b[0].c", "deep"),
        ("a.b[1]", "second"),
        ("a.b[2]", None),
        ("a.none.c", None),
        ("text.k[1]", 8),
        ("own.name", "a column"),
    ],
)
def test_a_path_names_a_cell_within_nested_json(path: str, cell: object) -> None:
    row = {"plain": 1, "a": {"b": [{"c": "deep"}, "second"]}, "text": '{"k": [7, 8]}', "own.name": "a column"}
    assert cell_at(row, path) == cell


MESSAGES = [{"role": "user", "content": "Hi"}, {"speaker": "bot", "text": "Hello\nyou"}]
ROLES = {"target": "target", "source": "source", "context": "context"}


def test_objects_become_lines() -> None:
    value = {
        "name": "Loch Fyne",
        "food": ["fish", "chips"],
        "area": None,
        "price": {"low": 1.0, "high": 2.5},
        "open": True,
    }
    assert readable(value) == "name: Loch Fyne\nfood: fish, chips\nprice:\n  low: 1\n  high: 2.5\nopen: true"
    assert source_text(json.dumps(value)) == readable(value)


def test_plain_text_is_left_as_it_is_even_when_it_looks_like_code() -> None:
    for text in ("  spaced ", "[1] a footnote", "{not json", "{}", "=SUM(A1)"):
        assert source_text(text) == text
        assert target_text(text) == text


def test_messages_are_read_however_they_are_indented() -> None:
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    for indent in (None, 1, 4):
        assert target_text(json.dumps(turns, indent=indent)) == source_text(turns) == "user: hi\nassistant: hello"


def test_vowel_signs_tell_aspects_apart() -> None:
    assert len({aspect_key(name) for name in ("कला", "कली", "กิน", "กุน")}) == 4
    assert aspect_key("Fact Check!") == aspect_key("fact_check") == "fact_check"


def kind(**columns: Any) -> str:
    return detect_kind([{"target": "t", **columns}] * 3, {r: r for r in ROLES if r in columns or r == "target"})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("A plain document.", "source_target"),
        (MESSAGES, "conversation"),
        ("User: hi\nAssistant: hello", "conversation"),
        ("A: hi\nB: hello\nA: bye", "conversation"),
        ("Note: one\nThe rest is prose.", "source_target"),
        ({"name": "x"}, "data_text"),
        ('{"name": "x"}', "data_text"),
        ([["a", "b", "c"]], "data_text"),
        ("inform(name=none,area=citycentre,near='X')", "data_text"),
        ("?request(food=x)", "data_text"),
        ("goodbye()", "data_text"),
        ("A | b | C\nD | e | F", "data_text"),
        ("Print(x) is a function (as we know)", "source_target"),
        ("", "single"),
    ],
)
def test_kind_follows_from_the_source(source: Any, expected: str) -> None:
    assert kind(source=source) == expected


def test_hostile_sources_are_classified_quickly() -> None:
    for text in ("a[" * 50_000, "a" * 100_000 + "[", " " * 100_000, "f(" * 50_000, "a | " * 30_000):
        assert kind(source=text) in ("source_target", "data_text", "single")
