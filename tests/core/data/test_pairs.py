"""Pairs of texts: which columns hold them, and people's choices in all their words as numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from core.data import load_golden
from core.data.reshape import PREFERENCES, systems_of
from core.errors import GoldenError
from core.records import GoldenSet


def golden(place: Path, rows: Sequence[Mapping[str, Any]]) -> GoldenSet:
    (place / "g.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load_golden(place / "g.jsonl")


def pair(winner: object, **more: object) -> dict[str, object]:
    row = {"prompt": "Why?", "response_a": "As.", "response_b": "Bs.", "model_a": "m1", "model_b": "m2"}
    return row | {"winner": winner} | more


def test_choices_in_all_their_words(tmp_path: Path) -> None:
    words = {"A": 1, "model_a": 1, "response_a": 1, "left": 1, "m1": 1, "Tie": 2, "tie (bothbad)": 2, "both good": 2}
    words |= {"b": 3, "Model B": 3, "second": 3, "m2": 3}
    made = golden(tmp_path, [pair(word, id=f"p{k}") for k, word in enumerate(words)])
    assert made.kind == "pair"
    assert list(made.aspects) == ["preference"]
    assert made.aspects["preference"].scale == PREFERENCES
    assert made.labels("preference").tolist() == [float(number) for number in words.values()]
    first = made.items[0]
    assert (first.source, first.target, first.context, first.system_id) == ("Why?", "As.", "Bs.", "m1 vs m2")
    assert systems_of(first.system_id) == ("m1", "m2")
    assert systems_of("m1") is None


def test_a_choice_that_is_none_is_refused_where_it_stands(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match=r"row 2.*A preference is A, B or tie, the name of one .* 'perhaps' came"):
        golden(tmp_path, [pair("A", id="1"), pair("perhaps", id="2")])
