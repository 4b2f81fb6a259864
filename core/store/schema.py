"""The tables.  A change here needs a new `HEAD`, and a step in `core.store.database` that leads to it from the old one.

Text that people, files or models wrote is `SafeText`: JSON-quoted in the database, because Postgres refuses the
NUL character that SQLite takes.  Times are seconds since 1970 (UTC) by the clock of the database's machine.
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa

HEAD = "2"


class SafeText(sa.types.TypeDecorator[str]):
    """Text of any origin, kept as a JSON string: equal texts stay equal, every character survives."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:
        return None if value is None else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Any) -> str | None:
        return None if value is None else str(json.loads(value))


metadata = sa.MetaData()
_TYPES: dict[str, Any] = {
    "key": sa.String(80),
    "word": sa.String(40),
    "short": sa.String(20),
    "safe": SafeText,
    "json": sa.Text,
    "int": sa.Integer,
    "bool": sa.Boolean,
    "real": sa.Double,
    "bytes": sa.LargeBinary,
}


def _table(name: str, columns: str, *constraints: Any) -> sa.Table:
    """A table of columns ``name:type``: `*` before a name is part of the key, `?` behind a type takes NULL.

    In place of a type, ``>table`` refers to the column of that name in another table.
    """
    made = []
    for word in columns.split():
        column, kind = word.lstrip("*").rstrip("?").split(":")
        refers = [sa.ForeignKey(f"{kind[1:]}.{column}")] if kind.startswith(">") else []
        made.append(
            sa.Column(
                column,
                _TYPES["key" if refers else kind],
                *refers,
                primary_key=word.startswith("*"),
                nullable=word.endswith("?"),
            )
        )
    return sa.Table(name, metadata, *made, *constraints)


def _of_criteria(column: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["project_id", column], ["criteria.project_id", "criteria.criteria_id"])


projects = _table("projects", "*project_id:key name:safe created_at:real imported_at:real?")

goldens = _table(
    "goldens",
    "*golden_id:key kind:word n_items:int n_sources:int n_systems:int n_ratings:int aspects:json body:json "
    "ratings:json created_at:real",
)

golden_items = _table("golden_items", "*golden_id:>goldens *position:int body:json")

project_goldens = _table("project_goldens", "*project_id:>projects *golden_id:>goldens name:safe created_at:real")

runs = _table(
    "runs",
    "*run_id:key project_id:>projects golden_id:>goldens kind:word title:safe aspect:safe judge_spec:safe request:json "
    "status:short phase:safe message:safe error:safe calls:int calls_expected:int usage:json attempt:int snapshots:int "
    "begun_by:word cancel_requested:bool worker_id:safe version:int created_at:real updated_at:real started_at:real? "
    "finished_at:real?",
    sa.Index("ix_runs_project_id", "project_id"),
    sa.Index("ix_runs_status", "status"),
)

documents = _table("run_documents", "*run_id:>runs *name:word body:json blob:bytes")

scores = _table("run_scores", "*run_id:>runs *criteria_id:key body:json blob:bytes")

criteria = _table(
    "criteria",
    "*project_id:>projects *criteria_id:key golden_id:key aspect:safe body:json created_at:real",
)

edits = _table(
    "criteria_edits",
    "*number:int project_id:key parent_id:key criteria_id:key created_at:real",
    sa.UniqueConstraint("project_id", "parent_id", "criteria_id", name="criteria_edits_once"),
    _of_criteria("parent_id"),
    _of_criteria("criteria_id"),
)

alignments = _table(
    "criteria_alignments",
    "*project_id:key *criteria_id:key *run_id:>runs *side:short status:short body:json created_at:real",
    _of_criteria("criteria_id"),
)

judges = _table(
    "judges",
    "*project_id:>projects *judge_id:key golden_id:>goldens aspect:safe name:safe body:json blob:bytes replies:bytes? "
    "created_at:real",
)

labels = _table(
    "labels",
    "*number:int project_id:>projects golden_id:>goldens pass_id:key rater:safe item_id:safe aspect:safe value:real? "
    "comment:safe form:key created_at:real taken_from:key",
    sa.UniqueConstraint("project_id", "rater", "form", "aspect", name="labels_once"),
    sa.Index("labels_of_golden", "project_id", "golden_id"),
    sa.Index("labels_of_pass", "project_id", "pass_id", "rater"),
)

events = _table(
    "events",
    "*number:int project_id:>projects kind:word subject:safe actor:safe role:short form:key body:safe created_at:real",
    sa.UniqueConstraint("project_id", "form", name="events_once"),
    sa.Index("events_of_kind", "project_id", "kind"),
)

drafts = _table(
    "drafts", "*project_id:>projects *subject:safe *author:safe text:safe base:key began_at:real kept_at:real"
)

replies = _table("replies", "*reply_key:key body:safe created_at:real")

run_replies = _table("run_replies", "*run_id:>runs *reply_key:key paid:bool body:safe?")

blocks = _table("blocks", "*block_key:key body:json created_at:real")

workers = _table("workers", "*worker_id:safe place:safe pid:int started_at:real beat_at:real capability:short")
