"""The tables.  A change here needs a new numbered migration and a new `HEAD`; a test compares the two.

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
_time = sa.Double
_key = sa.String(80)


def _table(name: str, *parts: Any) -> sa.Table:
    return sa.Table(name, metadata, *parts)


def _column(name: str, kind: Any, *more: Any, nullable: bool = False, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, *more, nullable=nullable, **options)


projects = _table(
    "projects",
    _column("project_id", _key, primary_key=True),
    _column("name", SafeText),
    _column("created_at", _time),
    _column("imported_at", _time, nullable=True),
)

goldens = _table(
    "goldens",
    _column("golden_id", _key, primary_key=True),
    _column("kind", sa.String(40)),
    _column("n_items", sa.Integer),
    _column("n_sources", sa.Integer),
    _column("n_systems", sa.Integer),
    _column("n_ratings", sa.Integer),
    _column("aspects", sa.Text),
    _column("body", sa.Text),
    _column("ratings", sa.Text),
    _column("created_at", _time),
)

golden_items = _table(
    "golden_items",
    _column("golden_id", _key, sa.ForeignKey("goldens.golden_id"), primary_key=True),
    _column("position", sa.Integer, primary_key=True, autoincrement=False),
    _column("body", sa.Text),
)

project_goldens = _table(
    "project_goldens",
    _column("project_id", _key, sa.ForeignKey("projects.project_id"), primary_key=True),
    _column("golden_id", _key, sa.ForeignKey("goldens.golden_id"), primary_key=True),
    _column("name", SafeText),
    _column("created_at", _time),
)

runs = _table(
    "runs",
    _column("run_id", _key, primary_key=True),
    _column("project_id", _key, sa.ForeignKey("projects.project_id"), index=True),
    _column("golden_id", _key, sa.ForeignKey("goldens.golden_id")),
    _column("kind", sa.String(40)),
    _column("title", SafeText),
    _column("aspect", SafeText),
    _column("judge_spec", SafeText),
    _column("request", sa.Text),
    _column("status", sa.String(20), index=True),
    _column("phase", SafeText),
    _column("message", SafeText),
    _column("error", SafeText),
    _column("calls", sa.Integer),
    _column("calls_expected", sa.Integer),
    _column("usage", sa.Text),
    _column("attempt", sa.Integer),
    _column("snapshots", sa.Integer),
    _column("begun_by", sa.String(40)),
    _column("cancel_requested", sa.Boolean),
    _column("worker_id", SafeText),
    _column("version", sa.Integer),
    _column("created_at", _time),
    _column("updated_at", _time),
    _column("started_at", _time, nullable=True),
    _column("finished_at", _time, nullable=True),
)

documents = _table(
    "run_documents",
    _column("run_id", _key, sa.ForeignKey("runs.run_id"), primary_key=True),
    _column("name", sa.String(40), primary_key=True),
    _column("body", sa.Text),
    _column("blob", sa.LargeBinary),
)

scores = _table(
    "run_scores",
    _column("run_id", _key, sa.ForeignKey("runs.run_id"), primary_key=True),
    _column("criteria_id", _key, primary_key=True),
    _column("body", sa.Text),
    _column("blob", sa.LargeBinary),
)

criteria = _table(
    "criteria",
    _column("project_id", _key, sa.ForeignKey("projects.project_id"), primary_key=True),
    _column("criteria_id", _key, primary_key=True),
    _column("golden_id", _key),
    _column("aspect", SafeText),
    _column("body", sa.Text),
    _column("created_at", _time),
)

edits = _table(
    "criteria_edits",
    _column("number", sa.Integer, primary_key=True, autoincrement=True),
    _column("project_id", _key),
    _column("parent_id", _key),
    _column("criteria_id", _key),
    _column("created_at", _time),
    sa.UniqueConstraint("project_id", "parent_id", "criteria_id", name="criteria_edits_once"),
    sa.ForeignKeyConstraint(["project_id", "parent_id"], ["criteria.project_id", "criteria.criteria_id"]),
    sa.ForeignKeyConstraint(["project_id", "criteria_id"], ["criteria.project_id", "criteria.criteria_id"]),
)

alignments = _table(
    "criteria_alignments",
    _column("project_id", _key, primary_key=True),
    _column("criteria_id", _key, primary_key=True),
    _column("run_id", _key, sa.ForeignKey("runs.run_id"), primary_key=True),
    _column("side", sa.String(20), primary_key=True),
    _column("status", sa.String(20)),
    _column("body", sa.Text),
    _column("created_at", _time),
    sa.ForeignKeyConstraint(["project_id", "criteria_id"], ["criteria.project_id", "criteria.criteria_id"]),
)

judges = _table(
    "judges",
    _column("project_id", _key, sa.ForeignKey("projects.project_id"), primary_key=True),
    _column("judge_id", _key, primary_key=True),
    _column("golden_id", _key, sa.ForeignKey("goldens.golden_id")),
    _column("aspect", SafeText),
    _column("name", SafeText),
    _column("body", sa.Text),
    _column("blob", sa.LargeBinary),
    _column("replies", sa.LargeBinary, nullable=True),
    _column("created_at", _time),
)

labels = _table(
    "labels",
    _column("number", sa.Integer, primary_key=True, autoincrement=True),
    _column("project_id", _key, sa.ForeignKey("projects.project_id")),
    _column("golden_id", _key, sa.ForeignKey("goldens.golden_id")),
    _column("pass_id", _key),
    _column("rater", SafeText),
    _column("item_id", SafeText),
    _column("aspect", SafeText),
    _column("value", sa.Double, nullable=True),
    _column("comment", SafeText),
    _column("form", _key),
    _column("created_at", _time),
    _column("taken_from", _key),
    sa.UniqueConstraint("project_id", "rater", "form", "aspect", name="labels_once"),
    sa.Index("labels_of_golden", "project_id", "golden_id"),
    sa.Index("labels_of_pass", "project_id", "pass_id", "rater"),
)

events = _table(
    "events",
    _column("number", sa.Integer, primary_key=True, autoincrement=True),
    _column("project_id", _key, sa.ForeignKey("projects.project_id")),
    _column("kind", sa.String(40)),
    _column("subject", SafeText),
    _column("actor", SafeText),
    _column("role", sa.String(20)),
    _column("form", _key),
    _column("body", SafeText),
    _column("created_at", _time),
    sa.UniqueConstraint("project_id", "form", name="events_once"),
    sa.Index("events_of_kind", "project_id", "kind"),
)

drafts = _table(
    "drafts",
    _column("project_id", _key, sa.ForeignKey("projects.project_id"), primary_key=True),
    _column("subject", SafeText, primary_key=True),
    _column("author", SafeText, primary_key=True),
    _column("text", SafeText),
    _column("base", _key),
    _column("began_at", _time),
    _column("kept_at", _time),
)

replies = _table(
    "replies",
    _column("reply_key", _key, primary_key=True),
    _column("body", SafeText),
    _column("created_at", _time),
)

run_replies = _table(
    "run_replies",
    _column("run_id", _key, sa.ForeignKey("runs.run_id"), primary_key=True),
    _column("reply_key", _key, primary_key=True),
    _column("paid", sa.Boolean),
    _column("body", SafeText, nullable=True),
)

blocks = _table(
    "blocks",
    _column("block_key", _key, primary_key=True),
    _column("body", sa.Text),
    _column("created_at", _time),
)

workers = _table(
    "workers",
    _column("worker_id", SafeText, primary_key=True),
    _column("place", SafeText),
    _column("pid", sa.Integer),
    _column("started_at", _time),
    _column("beat_at", _time),
    _column("capability", sa.String(20)),
)
