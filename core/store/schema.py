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
_key, _word, _short = sa.String(80), sa.String(40), sa.String(20)
_time = sa.Double
_project, _golden, _run = "projects.project_id", "goldens.golden_id", "runs.run_id"
_CRITERIA = ["criteria.project_id", "criteria.criteria_id"]


def _table(name: str, /, *constraints: Any, keys: str, nullable: str = "", **columns: Any) -> sa.Table:
    """A table with these columns, name=type; a text in place of a type names the column that is referred to."""
    made = []
    for column, kind in columns.items():
        refers = [sa.ForeignKey(kind)] if isinstance(kind, str) else []
        made.append(
            sa.Column(
                column,
                _key if refers else kind,
                *refers,
                primary_key=column in keys.split(),
                nullable=column in nullable.split(),
            )
        )
    return sa.Table(name, metadata, *made, *constraints)


projects = _table(
    "projects",
    keys="project_id",
    nullable="imported_at",
    project_id=_key,
    name=SafeText,
    created_at=_time,
    imported_at=_time,
)

goldens = _table(
    "goldens",
    keys="golden_id",
    golden_id=_key,
    kind=_word,
    n_items=sa.Integer,
    n_sources=sa.Integer,
    n_systems=sa.Integer,
    n_ratings=sa.Integer,
    aspects=sa.Text,
    body=sa.Text,
    ratings=sa.Text,
    created_at=_time,
)

golden_items = _table("golden_items", keys="golden_id position", golden_id=_golden, position=sa.Integer, body=sa.Text)

project_goldens = _table(
    "project_goldens",
    keys="project_id golden_id",
    project_id=_project,
    golden_id=_golden,
    name=SafeText,
    created_at=_time,
)

runs = _table(
    "runs",
    sa.Index("ix_runs_project_id", "project_id"),
    sa.Index("ix_runs_status", "status"),
    keys="run_id",
    nullable="started_at finished_at",
    run_id=_key,
    project_id=_project,
    golden_id=_golden,
    kind=_word,
    title=SafeText,
    aspect=SafeText,
    judge_spec=SafeText,
    request=sa.Text,
    status=_short,
    phase=SafeText,
    message=SafeText,
    error=SafeText,
    calls=sa.Integer,
    calls_expected=sa.Integer,
    usage=sa.Text,
    attempt=sa.Integer,
    snapshots=sa.Integer,
    begun_by=_word,
    cancel_requested=sa.Boolean,
    worker_id=SafeText,
    version=sa.Integer,
    created_at=_time,
    updated_at=_time,
    started_at=_time,
    finished_at=_time,
)

documents = _table("run_documents", keys="run_id name", run_id=_run, name=_word, body=sa.Text, blob=sa.LargeBinary)

scores = _table(
    "run_scores", keys="run_id criteria_id", run_id=_run, criteria_id=_key, body=sa.Text, blob=sa.LargeBinary
)

criteria = _table(
    "criteria",
    keys="project_id criteria_id",
    project_id=_project,
    criteria_id=_key,
    golden_id=_key,
    aspect=SafeText,
    body=sa.Text,
    created_at=_time,
)

edits = _table(
    "criteria_edits",
    sa.UniqueConstraint("project_id", "parent_id", "criteria_id", name="criteria_edits_once"),
    sa.ForeignKeyConstraint(["project_id", "parent_id"], _CRITERIA),
    sa.ForeignKeyConstraint(["project_id", "criteria_id"], _CRITERIA),
    keys="number",
    number=sa.Integer,
    project_id=_key,
    parent_id=_key,
    criteria_id=_key,
    created_at=_time,
)

alignments = _table(
    "criteria_alignments",
    sa.ForeignKeyConstraint(["project_id", "criteria_id"], _CRITERIA),
    keys="project_id criteria_id run_id side",
    project_id=_key,
    criteria_id=_key,
    run_id=_run,
    side=_short,
    status=_short,
    body=sa.Text,
    created_at=_time,
)

judges = _table(
    "judges",
    keys="project_id judge_id",
    nullable="replies",
    project_id=_project,
    judge_id=_key,
    golden_id=_golden,
    aspect=SafeText,
    name=SafeText,
    body=sa.Text,
    blob=sa.LargeBinary,
    replies=sa.LargeBinary,
    created_at=_time,
)

labels = _table(
    "labels",
    sa.UniqueConstraint("project_id", "rater", "form", "aspect", name="labels_once"),
    sa.Index("labels_of_golden", "project_id", "golden_id"),
    sa.Index("labels_of_pass", "project_id", "pass_id", "rater"),
    keys="number",
    nullable="value",
    number=sa.Integer,
    project_id=_project,
    golden_id=_golden,
    pass_id=_key,
    rater=SafeText,
    item_id=SafeText,
    aspect=SafeText,
    value=sa.Double,
    comment=SafeText,
    form=_key,
    created_at=_time,
    taken_from=_key,
)

events = _table(
    "events",
    sa.UniqueConstraint("project_id", "form", name="events_once"),
    sa.Index("events_of_kind", "project_id", "kind"),
    keys="number",
    number=sa.Integer,
    project_id=_project,
    kind=_word,
    subject=SafeText,
    actor=SafeText,
    role=_short,
    form=_key,
    body=SafeText,
    created_at=_time,
)

drafts = _table(
    "drafts",
    keys="project_id subject author",
    project_id=_project,
    subject=SafeText,
    author=SafeText,
    text=SafeText,
    base=_key,
    began_at=_time,
    kept_at=_time,
)

replies = _table("replies", keys="reply_key", reply_key=_key, body=SafeText, created_at=_time)

run_replies = _table(
    "run_replies",
    keys="run_id reply_key",
    nullable="body",
    run_id=_run,
    reply_key=_key,
    paid=sa.Boolean,
    body=SafeText,
)

blocks = _table("blocks", keys="block_key", block_key=_key, body=sa.Text, created_at=_time)

workers = _table(
    "workers",
    keys="worker_id",
    worker_id=SafeText,
    place=SafeText,
    pid=sa.Integer,
    started_at=_time,
    beat_at=_time,
    capability=_short,
)
