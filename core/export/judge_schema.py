"""The schemas of the files of judges, and the check that tells a person what is wrong where.

`schema/judge-3.json` and `schema/fusion-3.json` are JSON Schemas (draft 2020-12) that document every field; others can
validate files with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from core.errors import JudgeError, UsageError

Kind = Literal["judge", "fusion"]
VERSION = 3
"""Version of both files, the only one that is read: older ones do not hold what a recheck needs."""

FORMATS: Mapping[Kind, str] = {"judge": "concord-judge", "fusion": "concord-fusion"}
SCHEMAS = Path(__file__).parent / "schema"
TOLD = 3
"""Faults told of at once."""

_TYPES = {
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


def schema_path(kind: Kind = "judge") -> Path:
    """Where the schema's file lies."""
    if kind not in FORMATS:
        raise UsageError(f"There are schemas of a judge and of a fusion, not of {kind!r}.")
    return SCHEMAS / f"{kind}-{VERSION}.json"


def judge_schema(kind: Kind = "judge") -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `judge.yaml`, or of a fused judge's file.  UsageError for another kind."""
    found: dict[str, Any] = json.loads(schema_path(kind).read_text(encoding="utf-8"))
    return found


def check_version(card: Mapping[str, Any], where: str) -> None:
    """JudgeError for a version that is none, or another than the present one.  `where` names the file."""
    version = card.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise JudgeError(f"{where}: version must be the whole number {VERSION}; {version!r:.40} came.")
    if version > VERSION:
        raise JudgeError(
            f"{where}: has version {version}, from a newer Concord; this one reads version {VERSION}. "
            "Update Concord, or export the judge with this one."
        )
    if version < VERSION:
        raise JudgeError(
            f"{where}: has version {version}, from before the first release of Concord; this one reads version "
            f"{VERSION}. Export the judge again."
        )


def check_card(card: Mapping[str, Any], kind: Kind, where: str) -> None:
    """JudgeError for a card that the schema does not allow: path in the file, what was allowed, what came.

    `where` names the file.
    """
    faults = sorted(islice(_validator(kind).iter_errors(card), 100), key=lambda fault: list(map(str, fault.path)))
    if not faults:
        return
    told = list(dict.fromkeys(_words(fault) for fault in faults))
    more = f" (and {len(told) - TOLD} more)" if len(told) > TOLD else ""
    raise JudgeError(f"{where}: {' '.join(told[:TOLD])}{more} Correct it, or export the judge again.")


@cache
def _validator(kind: Kind) -> Any:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    return Draft202012Validator(judge_schema(kind))


def _words(fault: Any) -> str:
    """One sentence on one fault."""
    path, allowed, came = _path(fault.absolute_path), fault.validator_value, _shown(fault.instance)
    match fault.validator:
        case "required":
            lacking = [name for name in allowed if name not in fault.instance]
            return f"{path} lacks {', '.join(lacking)}."
        case "additionalProperties":
            known = set(fault.schema.get("properties", ()))
            others = ", ".join(map(_shown, sorted(set(fault.instance) - known)))
            return f"{path} may hold {', '.join(sorted(known))}; {others} came."
        case "type":
            names = [allowed] if isinstance(allowed, str) else allowed
            said = " or ".join(_TYPES[name] for name in names)
        case "const":
            said = _shown(allowed)
        case "enum":
            said = f"one of {', '.join(map(str, allowed))}"
        case "minimum" | "exclusiveMinimum":
            said = f"{'at least' if fault.validator == 'minimum' else 'above'} {allowed:g}"
        case "maximum":
            said = f"at most {allowed:g}"
        case "minItems" | "maxItems":
            said = f"a list of {'at least' if fault.validator == 'minItems' else 'at most'} {allowed}"
            came = f"one of {len(fault.instance)}"
        case "minLength" | "maxLength":
            said = f"a text of {'at least' if fault.validator == 'minLength' else 'at most'} {allowed:,} characters"
        case "pattern":
            said = f"a text of the form {allowed}"
        case other:  # uniqueItems and what a later schema may add: the library's own words
            return f"{path}: {other}: {fault.message[:200]}."
    return f"{path} must be {said}; {came} came."


def _path(parts: Iterable[str | int]) -> str:
    """``task.scale.low``, ``criteria[0].text``; "the file" for its top."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.lstrip(".") or "The file"


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
