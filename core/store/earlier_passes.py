"""Which pass a label was given in, for labels that do not say so: of schema 0007, and of project files of version 1.

Frozen with the migration that uses it: labels that were brought up once stay where they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

PASS, JOINED = "labelling pass", "joined"


class KnownPass(NamedTuple):
    """A pass as the log tells it; `joined` maps rater → when, in seconds since 1970."""

    pass_id: str
    golden_id: str
    aspects: Set[str]
    items: Set[str]
    began_at: float
    joined: dict[str, float]


def known_pass(pass_id: str, body: Mapping[str, Any], item_ids: Sequence[str], began_at: float) -> KnownPass:
    """The pass that an entry of the log began; `item_ids` are those of its golden set, in order."""
    plan = json.loads(body["plan"])
    aspects = frozenset(one["aspect"] for one in plan["aspects"])
    items = frozenset(item_ids[position] for position in plan["positions"])
    return KnownPass(pass_id, body["golden_id"], aspects, items, began_at, {})


def pass_of(passes: Sequence[KnownPass], rater: str, item_id: str, aspect: str, at: float) -> str:
    """The id of the pass over the label's golden set (`passes`, oldest first) that it was given in at that time.

    The one that its rater had joined by then and that has its aspect and item; of several the first.  Where there is
    none, the first that had begun, else the first with the aspect, else the first; "" where there is no pass at all.
    """
    fitting = [one for one in passes if aspect == "" or aspect in one.aspects] or passes  # "": a comment alone
    begun = [one for one in fitting if one.began_at <= at and item_id in one.items]
    joined = [one for one in begun if one.joined.get(rater, at + 1) <= at]
    return next((one.pass_id for one in joined or begun or fitting), "")
