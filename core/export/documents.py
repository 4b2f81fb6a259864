"""The files of judges that Concord writes and reads again: their versions and schemas, and whether a file is one.

`core.export.judge_document` and `core.export.fused_document` say field by field what these files hold, as pydantic
models: the same models check what is written and what is read, make the JSON Schema, and give the words of an error.
Loading pydantic takes a tenth of a second, so they are imported late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from core.errors import JudgeError, UsageError
from core.export.faults import fault_words

if TYPE_CHECKING:
    from pydantic import BaseModel

    from core.export.fused_document import FusionDocument
    from core.export.judge_document import JudgeDocument

Document = TypeVar("Document", bound="BaseModel")
Kind = Literal["judge", "fusion"]
VERSION = 1
"""Version of the files of judges.  2 and 3 were used in development, so the next one is 4."""
DEVELOPMENT = (2, 3)
"""Versions of files written before the first release, of judges and of projects; none of them is read."""
UPGRADES: dict[Kind, dict[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {"judge": {}, "fusion": {}}
"""Version → what makes of a file of that version one of the next, for versions before the present one."""

FORMATS: Mapping[Kind, str] = {"judge": "concord-judge", "fusion": "concord-fusion"}
FAULTS_SHOWN = 3
"""Faults that one error names."""


def judge_schema(kind: Kind = "judge") -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `judge.yaml`, or of a fused judge's file.  UsageError for another kind."""
    if kind not in FORMATS:
        raise UsageError(f"There are schemas of a judge and of a fusion, not of {kind!r}.")
    from core.export.fused_document import FusionDocument
    from core.export.judge_document import JudgeDocument

    schema = (JudgeDocument if kind == "judge" else FusionDocument).model_json_schema()
    schema["properties"]["version"] |= {"const": VERSION}
    named = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:concord:{kind}:{VERSION}"}
    return named | schema | {"title": f"Concord file of a {kind}, version {VERSION}"}


def version_problem(version: object, present: int, again: str) -> str:
    """Why a file of this version cannot be read by a Concord that writes `present`, in words; "" when it can.

    `again` says how the file is made anew, e.g. "export the judge again".
    """
    if type(version) is not int or version < 1:
        return f"version must be the whole number {present}; {version!r:.40} came."
    if version in DEVELOPMENT:
        return f"was written by a development version of Concord (file version {version}); make it anew: {again}."
    if version > present:
        return (
            f"has version {version}, from a newer Concord; this one reads version {present}. Update Concord, or "
            f"{again} with this one."
        )
    return ""


def in_present_version(card: Mapping[str, Any], kind: Kind, where: str) -> dict[str, Any]:
    """`card` as the present version has it.  JudgeError for a version that cannot be read; `where` names the file."""
    if problem := version_problem(card.get("version"), VERSION, "export the judge again"):
        raise JudgeError(f"{where}: {problem}")
    present = dict(card)
    while present["version"] != VERSION:
        present = UPGRADES[kind][present["version"]](present)
    return present


def judge_document(card: Mapping[str, Any], where: str) -> JudgeDocument:
    """What the card of a judge file in the present version (plain JSON types) holds; JudgeError as `check_card`."""
    from core.export.judge_document import JudgeDocument

    return _parsed(JudgeDocument, card, where)


def fusion_document(card: Mapping[str, Any], where: str) -> FusionDocument:
    """What the card of a fused judge's file holds; JudgeError as `check_card`."""
    from core.export.fused_document import FusionDocument

    return _parsed(FusionDocument, card, where)


def check_card(card: Mapping[str, Any], kind: Kind, where: str) -> None:
    """JudgeError for a card that is not what the schema says: path in the file, what was allowed, what came.

    `where` names the file.
    """
    (judge_document if kind == "judge" else fusion_document)(card, where)


def _parsed(model: type[Document], card: Mapping[str, Any], where: str) -> Document:
    from pydantic import ValidationError

    try:
        return model.model_validate(dict(card))
    except ValidationError as error:
        faults = fault_words(model, error)
        more = f" (and {len(faults) - FAULTS_SHOWN} more)" if len(faults) > FAULTS_SHOWN else ""
        raise JudgeError(
            f"{where}: {' '.join(faults[:FAULTS_SHOWN])}{more} Correct it, or export the judge again."
        ) from None
