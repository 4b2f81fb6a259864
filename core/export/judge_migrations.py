"""Files of judges from before, brought up to the present version: one numbered step a version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from core.errors import JudgeError
from core.export.judge_schema import VERSION, Kind
from core.judging.parse import PARSER

Card = dict[str, Any]

NO_DIGEST = "This file is of version 1, which has no digest: whether it was changed after the export cannot be told."


def migrated(card: Mapping[str, Any], kind: Kind, where: str) -> Card:
    """`card` as a file of the present version holds it.  JudgeError for a version that there is not, or not yet."""
    version = card.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise JudgeError(f"{where}: version must be a whole number from 1 to {VERSION}; {version!r:.40} came.")
    if version > VERSION:
        raise JudgeError(
            f"{where}: has version {version}, from a newer Concord; this one reads up to version {VERSION}. "
            "Update Concord, or export the judge with this one."
        )
    found = dict(card)
    for step in range(version, VERSION):
        try:
            found = STEPS[kind][step](found) | {"version": step + 1}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise JudgeError(
                f"{where}: cannot be brought from version {step} to {step + 1}: a part is missing or damaged "
                f"({type(error).__name__}: {error}). Export the judge again."
            ) from error
    return found


def prompts_of(judge: Mapping[str, Any]) -> dict[str, str]:
    """Purpose → prompt, name and version, of a judge's state; empty for one that is asked nothing in words."""
    sampling = judge.get("sampling")
    if not isinstance(sampling, Mapping):
        return {}
    named = {"score": "prompt", "draft": "draft_prompt", "refine": "refine_prompt"}
    found = {purpose: str(sampling[field]) for purpose, field in named.items() if sampling.get(field)}
    persona = sampling.get("persona", "none")
    return found if persona == "none" else found | {"persona": f"persona_{persona}.v1"}


def parser_of(judge: Mapping[str, Any]) -> str | None:
    """What reads the replies of a judge of this state; None for one whose scores are computed."""
    return None if judge.get("spec") == "offline" else PARSER


def _judge_from_1(card: Card) -> Card:
    """Adds what version 1 did not hold; what nobody knows stays null."""
    found: Card = {
        "concord": "",
        "digest": None,
        "prompts": prompts_of(card["judge"]),
        "parser": parser_of(card["judge"]),
        "approved": False,
        "approvals": [],
        "ceiling": None,
        "held_out_opened": None,
        "calls": None,
        "created": "",
        "isotonic": None,
        "settings": {},
        "join": "mean",
    } | card
    return found | {"warnings": [*card.get("warnings", []), NO_DIGEST]}


def _fusion_from_1(card: Card) -> Card:
    """Adds what version 1 did not hold; kind and scale come out of a judge among the parts, if there is one."""
    parts = [dict(part) for part in card["parts"]]
    tasks = [part["judge"]["task"] for part in parts if part.get("judge") is not None]
    task = None
    if tasks:
        same = {name: tasks[0][name] for name in ("kind", "scale")}
        task = {"aspect": card["aspect"], **same, "definition": tasks[0].get("definition") or ""}
    found: Card = {"concord": "", "digest": None, "created": "", "task": task} | card
    return found | {"parts": parts, "warnings": [*card.get("warnings", []), NO_DIGEST]}


STEPS: Mapping[Kind, Mapping[int, Callable[[Card], Card]]] = {
    "judge": {1: _judge_from_1},
    "fusion": {1: _fusion_from_1},
}
"""By kind: version → what makes the next version of it."""
