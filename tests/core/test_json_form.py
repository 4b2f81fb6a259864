"""core.json_form: every field by its name, what is empty as null, an interval with its method beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from core.json_form import json_fields
from core.records import Alignment, Interval


@dataclass(frozen=True)
class Made:
    value: float | None
    interval: Interval | None
    parts: tuple[Alignment, ...]
    words: tuple[str, ...] = ()
    reason: str = ""
    passes: bool = False

    def as_json(self) -> dict[str, Any]:
        return json_fields(self)


@pytest.mark.parametrize(
    ("interval", "ends", "method"), [(Interval(0.1, 0.2, method="t"), [0.1, 0.2], "t"), (None, None, None)]
)
def test_a_record_field_by_field(interval: Interval | None, ends: Any, method: Any) -> None:
    part = Alignment("pearson", "dataset", 0.0, 3)
    body = Made(0.0, interval, (part,), ("a", "b")).as_json()
    assert body == {
        "value": 0.0,
        "interval": ends,
        "interval_method": method,
        "parts": [part.as_json()],
        "words": ["a", "b"],
        "reason": None,
        "passes": False,
    }
    assert part.as_json()["reason"] is None
    assert "interval" not in json_fields(Made(None, interval, ()), but=("interval",))
    assert "interval_method" not in json_fields(Made(None, interval, ()), but=("interval",))
