"""What readers of the log count on in the entries of each kind; entries of other kinds may say anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from core.export.archive.shapes import mismatch
from core.labelling.plan import LabelPlan

_AGENDA: Any = tuple[dict[str, Any], ...]
READ: dict[str, dict[str, Any]] = {
    "comment": {"text": str, "line": int | None},
    "comment settled": {"comment": int},
    "lock": {"locked": bool},
    "state": {"to": str, "reason": str, "evidence": str | None},
    "proposal": {"to": str, "reason": str},
    "triage": {"aspect": str},
    "held-out opened": {"aspect": str},
    "labelling pass": {"name": str, "golden_id": str, "plan": str},
    "adjudicated": {"item_id": str, "aspect": str, "value": float},
    "meeting": {"name": str, "golden_id": str, "aspect": str, "agenda": _AGENDA},
    "meeting point": {"point": int},
    "meeting table": {"names": tuple[str, ...]},
    "vote": {"point": int, "voter": str, "choice": str, "note": str},
    "decision": {"point": int, "verdict": str, "reason": str},
    "fusion plan": {"text": str, "origin": str, "seen": tuple[int, ...]},
}


@cache
def _packed() -> dict[str, dict[str, Any]]:
    from core.projects.views.reviews import Evidence  # here, since what joins store and algorithms imports us

    return {"labelling pass": {"plan": LabelPlan}, "state": {"evidence": Evidence}}


def event_problem(kind: str, body: Mapping[str, Any]) -> str:
    """What an entry of the log lacks that its readers count on, in words; "" for nothing."""
    for name, wanted in READ.get(kind, {}).items():
        if name not in body:
            return f"an entry of kind {kind!r} lacks {name}"
        if problem := mismatch(wanted, body[name], at=name):
            return problem
    return ""


def packed_problem(kind: str, body: Mapping[str, Any]) -> str:
    """What is wrong with a record that an entry (which `event_problem` let pass) holds as JSON text; "" for nothing."""
    for name, wanted in _packed().get(kind, {}).items():
        if (text := body[name]) is not None and (problem := _packed_problem(wanted, text, name)):
            return problem
    return ""


def _packed_problem(wanted: Any, text: str, name: str) -> str:
    """What is wrong with a record that stands in an entry as JSON text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return f"{name} is text that is no JSON"
    return mismatch(wanted, value, at=name)
