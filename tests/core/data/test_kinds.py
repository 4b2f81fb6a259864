"""Item kinds and the texts of structured cells."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.data.cells import readable, source_text, target_text
from core.data.proposal import detect_kind

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


def test_hostile_sources_are_classified_quickly() -> None:
    for text in ("a[" * 50_000, "a" * 100_000 + "[", " " * 100_000, "f(" * 50_000, "a | " * 30_000):
        assert kind(source=text) in ("source_target", "data_text", "single")
