"""Keys and passwords are cut out of files, and their places told."""

from __future__ import annotations

from typing import Any

import pytest

from core.errors import REMOVED
from core.judge_files.judge_writing import sealed, without_secrets, yaml_text

KEY = "sk-proj-4f9ZqT1vN0wXy8Lk2Jd7"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("openai:m@https://ann:hunter2@host.org/v1", "openai:m@https://host.org/v1"),
        ("openai:m@https://ann:p@ss@host.org/v1", "openai:m@https://host.org/v1"),
        ("http://h/v1?x=1&token=abc#top", f"http://h/v1?x=1&token={REMOVED}#top"),
        (f"the key is {KEY}.", f"the key is {REMOVED}."),
        ("Authorization: Bearer abcdefghijklmnop1234", f"Authorization: {REMOVED}"),
        ("AKIAABCDEFGHIJKLMNOP", REMOVED),
    ],
)
def test_secrets_go(text: str, clean: str) -> None:
    assert without_secrets(text) == (clean, ["the file"])
    assert without_secrets({"a": [1, {"b": text}]}) == ({"a": [1, {"b": clean}]}, ["a[1].b"])


@pytest.mark.parametrize(
    "text",
    [
        "openai:m@http://127.0.0.1:8000/v1",
        "Write to ann@example.org about the key-value pairs.",
        "A task-oriented, risk-averse answer with a key_point is better.",
        "see http://host.org/a?page=2 and mail@x.org",
        "sha256:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f",
        "",
    ],
)
def test_what_is_none_stays(text: str) -> None:
    assert without_secrets(text) == (text, [])


def test_numbers_in_base64_stay_whatever_they_look_like() -> None:
    cell = {"direction": "AKIAABCDEFGHIJKLMNOP"}
    assert without_secrets({"repeval": {"cells": [cell]}}) == ({"repeval": {"cells": [cell]}}, [])


def test_a_file_says_what_was_left_out(scripted_card: dict[str, Any]) -> None:
    scripted_card["judge"]["spec"] = "openai:m@https://ann:hunter2@host.org/v1"
    scripted_card["task"]["definition"] = f"Ask with {KEY}"
    card = sealed(scripted_card)
    text = yaml_text(card)
    assert "hunter2" not in text
    assert KEY not in text
    assert card["warnings"][-1].endswith("from this file: task.definition, judge.spec.")
