"""Item kinds and the texts of structured cells."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.data.kinds import detect_kind, read_turns, readable, reference_texts, source_text, target_text

MESSAGES = [{"role": "user", "content": "Hi"}, {"speaker": "bot", "text": "Hello\nyou"}]
ROLES = {"target": "target", "source": "source", "context": "context"}


def test_messages_become_turns() -> None:
    assert read_turns(MESSAGES) == ["user: Hi", "bot: Hello\nyou"]
    assert source_text(MESSAGES) == "user: Hi\nbot: Hello\nyou"
    assert source_text(json.dumps(MESSAGES)) == source_text(MESSAGES)


def test_parts_of_a_chat_message_are_joined() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}
    assert source_text([message]) == "user: one\ntwo"
    picture = {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "image", "text": None}, None]}
    assert source_text([picture]) == "user: one\n\n", "null is no word"


@pytest.mark.parametrize(
    "value", ["text", [], [1], [{"role": "user"}], [*MESSAGES, "x"], {"role": "u", "content": "x"}]
)
def test_what_is_no_list_of_messages_has_no_turns(value: Any) -> None:
    assert read_turns(value) is None


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


def test_triples_become_rows_and_nested_objects_items() -> None:
    assert readable([["a", "is", "b"], ["c", "is", 1]]) == "a | is | b\nc | is | 1"
    assert readable([{"s": "a", "p": "b"}, {"s": "c", "p": "d"}]) == "- s: a\n  p: b\n- s: c\n  p: d"
    assert readable({"rows": [["a", 1], ["b", 2]]}) == "rows:\n  a | 1\n  b | 2"


def test_plain_text_is_left_as_it_is_even_when_it_looks_like_code() -> None:
    for text in ("  spaced ", "[1] a footnote", "{not json", "{}", "=SUM(A1)"):
        assert source_text(text) == text
        assert target_text(text) == text


def test_a_judged_json_object_stays_json() -> None:
    assert target_text('{"answer": 1}') == '{"answer": 1}'
    assert target_text({"answer": 1}) == '{"answer": 1}'
    assert target_text(json.dumps(MESSAGES)) == source_text(MESSAGES)


def test_references() -> None:
    assert reference_texts('["a", " ", "b"]') == ("a", "b")
    assert reference_texts("one text") == ("one text",)
    assert reference_texts(None) == ()


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
        ("name[The Eagle], eatType[pub]", "data_text"),
        ("A | b | C\nD | e | F", "data_text"),
        ("Print(x) is a function (as we know)", "source_target"),
        ("", "single"),
    ],
)
def test_kind_follows_from_the_source(source: Any, expected: str) -> None:
    assert kind(source=source) == expected


def test_kind_with_context_and_without_source() -> None:
    assert kind(source="dialogue", context="a fact") == "source_context_target"
    assert kind(source="dialogue", context="") == "source_target"
    assert detect_kind([{"target": "t"}], {"target": "target"}) == "single"
    assert detect_kind([{"target": MESSAGES}], {"target": "target"}) == "conversation"
    assert detect_kind([], {"target": "target"}) == "single"


def test_kind_follows_from_the_name_of_the_source_column() -> None:
    assert detect_kind([{"mr": "anything"}], {"source": "mr"}) == "data_text"
    assert detect_kind([{"Dialogue": "anything"}], {"source": "Dialogue"}) == "conversation"


def test_hostile_sources_are_classified_quickly() -> None:
    for text in ("a[" * 50_000, "a" * 100_000 + "[", " " * 100_000, "f(" * 50_000, "a | " * 30_000):
        assert kind(source=text) in ("source_target", "data_text", "single")
