"""JSON against the annotations of records: what the store wrote passes, what is bent is named."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest

from core.export.archive.shapes import mismatch
from core.records import Alignment, FloatArray, Interval, JudgeScores, Unscored
from core.store.codec import Packed, pack, unpack


@dataclass(frozen=True)
class Whole:
    """One field of every kind that records have."""

    name: str
    choice: Literal["a", "b"]
    real: float
    maybe: int | None
    pair: tuple[str, float]
    many: tuple[Interval, ...]
    named: dict[str, tuple[float | None, ...]]
    array: FloatArray
    anything: Any
    left_out: bool = False


WHOLE = Whole(
    "n", "a", 1, None, ("x", 0.5), (Interval(0.0, 1.0),), {"k": (None, 1.0)}, np.array([[1.0, np.nan]]), [1]
)  # fmt: skip


def _json(value: Any) -> tuple[Any, int]:
    packed = pack(value)
    return json.loads(packed.body), len(packed.blob) // 8


@pytest.mark.parametrize(
    "record",
    [
        WHOLE,
        Alignment("kendall", "system", None, 3, reason="constant"),
        JudgeScores("j", "metric", "a", np.array([1.0, np.nan]), (Unscored("i", "empty", raw=("x",)),), (1,)),
    ],
    ids=lambda record: type(record).__name__,
)
def test_what_the_store_wrote_passes(record: Any) -> None:
    value, n_floats = _json(record)
    assert mismatch(type(record), value, n_floats) == ""
    assert type(unpack(type(record), Packed(json.dumps(value), pack(record).blob))) is type(record)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", 5, "name must be a text; 5 came."),
        ("name", None, "name must be a text; null came."),
        ("choice", "c", 'choice must be one of a, b; "c" came.'),
        ("choice", ["a"], 'choice must be one of a, b; ["a"] came.'),
        ("real", True, "real must be a number; true came."),
        ("real", "1", 'real must be a number; "1" came.'),
        ("maybe", 1.5, "maybe must be a whole number or null; 1.5 came."),
        ("pair", ["x"], "pair must be a list of 2; one of 1 came."),
        ("pair", {"0": "x"}, "pair must be a list;"),
        ("many", [{"low": 0.0}], "many[0] lacks high."),
        ("many", [[0.0, 1.0]], "many[0] must be an object; [0.0, 1.0] came."),
        ("named", [], "named must be an object; [] came."),
        ("named", {"k": [1.0, "2"]}, 'named.k[1] must be a number or null; "2" came.'),
        ("array", {"shape": [3], "offset": 0}, "within its blob"),
        ("array", {"shape": [2], "offset": 1}, "within its blob"),
        ("array", {"shape": [-1], "offset": 0}, "within its blob"),
        ("array", {"shape": [2**62, 4], "offset": 0}, "within its blob"),
        ("array", {"shape": [1, 1, 1, 1, 1, 1, 1, 1, 1], "offset": 0}, "within its blob"),
        ("array", [1.0], "array must be an array; [1.0] came."),
        ("left_out", 0, "left_out must be true or false; 0 came."),
    ],
)
def test_what_is_bent_is_named(field: str, value: Any, words: str) -> None:
    found, n_floats = _json(WHOLE)
    assert words in mismatch(Whole, found | {field: value}, n_floats)


def test_fields_that_may_be_absent() -> None:
    found, n_floats = _json(WHOLE)
    del found["left_out"]
    assert mismatch(Whole, found, n_floats) == ""
    del found["name"]
    assert mismatch(Whole, found, n_floats) == "Whole lacks name."


def test_a_kind_that_nobody_can_check() -> None:
    with pytest.raises(TypeError, match="No check"):
        mismatch(bytes, "x")
