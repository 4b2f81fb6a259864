"""A label belongs to a labelling pass, and says so where it was taken over from an earlier one.

A label that is there goes to the pass it was given in: the one that its rater had joined by then, over its golden set,
with its aspect and item.  Where several fit, to the first of them; where none does, to the first pass over its golden
set and aspect.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

PASS, JOINED = "labelling pass", "joined"

_labels = sa.table(
    "labels",
    *(sa.column(name) for name in ("number", "project_id", "golden_id", "pass_id", "rater", "item_id", "aspect")),
    sa.column("created_at"),
)
_events = sa.table(
    "events", *(sa.column(name) for name in ("number", "project_id", "kind", "subject", "actor", "body", "created_at"))
)
_items = sa.table("golden_items", *(sa.column(name) for name in ("golden_id", "position", "body")))


def upgrade() -> None:
    for name in ("pass_id", "taken_from"):
        op.add_column("labels", sa.Column(name, sa.String(length=80), server_default="", nullable=False))
    _give_passes(op.get_bind())
    op.drop_index("labels_of_rater", "labels")
    op.create_index("labels_of_pass", "labels", ["project_id", "pass_id", "rater"])


def _give_passes(connection: sa.Connection) -> None:
    passes, given = _passes(connection), []
    for row in connection.execute(sa.select(_labels)).all():
        rater, item_id, aspect = (json.loads(text) for text in (row.rater, row.item_id, row.aspect))
        own = passes.get((row.project_id, row.golden_id), [])
        pass_id = pass_of(own, rater, item_id, aspect, row.created_at)
        given.append({"n": row.number, "found": pass_id})
    if given:
        which = _labels.c.number == sa.bindparam("n")
        connection.execute(sa.update(_labels).where(which).values(pass_id=sa.bindparam("found")), given)


def _passes(connection: sa.Connection) -> dict[tuple[str, str], list[KnownPass]]:
    """(project, golden set) → its passes, oldest first."""
    query = sa.select(_events).where(_events.c.kind.in_((PASS, JOINED))).order_by(_events.c.number)
    passes: dict[tuple[str, str], list[KnownPass]] = {}
    by_id: dict[tuple[str, str], KnownPass] = {}
    for event in connection.execute(query).all():
        which = (event.project_id, json.loads(event.subject))
        if event.kind == PASS:
            body = json.loads(json.loads(event.body))
            own = _items.c.golden_id == body["golden_id"]
            bodies = connection.scalars(sa.select(_items.c.body).where(own).order_by(_items.c.position))
            item_ids = [json.loads(item)[0] for item in bodies]
            by_id[which] = known_pass(which[1], body, item_ids, event.created_at)
            passes.setdefault((event.project_id, body["golden_id"]), []).append(by_id[which])
        elif which in by_id:
            by_id[which].joined.setdefault(json.loads(event.actor), event.created_at)
    return passes


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
