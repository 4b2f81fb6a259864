"""JSON that claims to be a record: what is bent is named."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest

from core.errors import ArchiveError
from core.export.archive.shapes import parsed
from core.records import FloatArray, Interval
from core.store.codec import pack


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


PACKED = pack(WHOLE)
BODY = json.loads(PACKED.body)


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
        ("named", {"k": [True]}, "named.k[0] must be a number or null; true came."),
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
    with pytest.raises(ArchiveError, match=re.escape(words)):
        parsed(Whole, BODY | {field: value}, "here", blob=PACKED.blob)


def test_fields_that_may_be_absent() -> None:
    assert parsed(Whole, {k: v for k, v in BODY.items() if k != "left_out"}, "here", blob=PACKED.blob).name == "n"
    with pytest.raises(ArchiveError, match="here: Whole lacks name"):
        parsed(Whole, {k: v for k, v in BODY.items() if k != "name"}, "here", whole="Whole", blob=PACKED.blob)
