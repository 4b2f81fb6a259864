"""From items to the texts a model reads, and the rule by which long ones are cut.

A template holds ``{hypothesis}`` (the rated text) and may hold ``{source}``, ``{context}`` and ``{criterion}``.  Fields
are put in once, as they are: braces inside an item's text mean nothing.  What is too long for the model loses the
*beginning* of its source first, then of its context, and only then of the hypothesis itself, because states are read
at the end.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import JudgeError, UsageError
from core.records import Item
from core.repeval.states.model import token_ids

FIELDS = ("source", "context", "hypothesis", "criterion")
HYPOTHESIS_ONLY = "{hypothesis}"
CUT_ORDER = ("source", "context", "hypothesis")
_FIELD = re.compile(r"\{(" + "|".join(FIELDS) + r")\}")
_BRACED = re.compile(r"\{([A-Za-z_]+)\}")
_FOLDER = Path(__file__).resolve().parent.parent / "prompts"


def templates() -> dict[str, str]:
    """The templates that come with Concord by name; each is a file in `core/repeval/prompts`."""
    return {path.stem: path.read_text("utf-8").rstrip("\n") for path in sorted(_FOLDER.glob("*.txt"))}


def template_text(template: str) -> str:
    """A template by its name, or the text given; "" is the hypothesis only.  UsageError when it cannot be used."""
    text = HYPOTHESIS_ONLY if not template.strip() else templates().get(template.strip(), template)
    if "{hypothesis}" not in text:
        known = ", ".join(templates())
        raise UsageError(
            "The template must hold {hypothesis}, the place of the rated text; "
            f"{text[:80]!r} came. Leave it empty for the hypothesis only, or name one of: {known}."
        )
    unknown = sorted(set(_BRACED.findall(text)) - set(FIELDS))
    if unknown:
        allowed = ", ".join(f"{{{name}}}" for name in FIELDS)
        raise UsageError(f"The template has the unknown field {{{unknown[0]}}}; allowed are {allowed}.")
    return text


def render(template: str, fields: Mapping[str, str]) -> str:
    """`template` with its fields put in, once."""
    return _FIELD.sub(lambda field: fields.get(field[1], ""), template)


def item_fields(item: Item, criterion: str = "") -> dict[str, str]:
    """The fields of one item."""
    return {"source": item.source, "context": item.context, "hypothesis": item.target, "criterion": criterion}


@dataclass(frozen=True)
class TokenRows:
    """Token ids of each prompt, and whether it was cut to fit."""

    ids: list[list[int]]
    cut: list[bool]


def fit_prompts(tokenizer: Any, template: str, fields: Sequence[Mapping[str, str]], limit: int) -> TokenRows:
    """Token ids of `template` filled with each of `fields`, at most `limit` long by the rule of this module.

    JudgeError when the template alone is longer than that.
    """
    ids = token_ids(tokenizer, [render(template, texts) for texts in fields])
    cut = [len(row) > limit for row in ids]
    for i, too_long in enumerate(cut):
        if too_long:
            ids[i] = _shortened(tokenizer, template, dict(fields[i]), ids[i], limit)
    return TokenRows(ids, cut)


def _shortened(tokenizer: Any, template: str, fields: dict[str, str], ids: list[int], limit: int) -> list[int]:
    for name in CUT_ORDER:
        while len(ids) > limit and fields[name] and f"{{{name}}}" in template:
            own = max(1, len(token_ids(tokenizer, [fields[name]])[0]))
            characters = math.ceil(len(fields[name]) * min(1.0, (len(ids) - limit) / own))
            fields[name] = _from_word(fields[name], characters)
            ids = token_ids(tokenizer, [render(template, fields)])[0]
    if len(ids) > limit:
        raise JudgeError(
            f"The template alone takes {len(ids)} tokens, but only {limit} are allowed (by the model or `max_tokens`). "
            "Shorten the template."
        )
    return ids


def _from_word(text: str, start: int) -> str:
    """`text` from the first word that begins at or after `start`; from `start` itself when no word does."""
    space = re.compile(r"\s\S").search(text, max(start - 1, 0))
    return text[space.start() + 1 :] if space else text[start:]
