"""Which rows belong to a project: one query a table, in an order that does not depend on ids where time tells one."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from core.store.schema import (
    alignments,
    criteria,
    documents,
    edits,
    events,
    golden_items,
    goldens,
    judges,
    labels,
    project_goldens,
    project_replies,
    replies,
    run_replies,
    runs,
    scores,
)


def rows_of(name: str, project_id: str, *, replies: bool) -> sa.Select[Any] | None:
    """The query for the rows of table `name` that belong to a project; None where they are to be left out."""
    if name in ("run_replies", "replies"):
        return (_replies(project_id) if name == "replies" else _of_runs(run_replies, project_id)) if replies else None
    by_number = {"criteria_edits": edits, "labels": labels, "events": events}
    if name in by_number:
        table = by_number[name]
        return sa.select(table).where(table.c.project_id == project_id).order_by(table.c.number)
    of_runs = {"run_documents": documents, "run_scores": scores}
    if name in of_runs:
        return _of_runs(of_runs[name], project_id)
    if name in ("goldens", "golden_items"):
        table = {"goldens": goldens, "golden_items": golden_items}[name]
        return sa.select(table).where(table.c.golden_id.in_(_used(project_id))).order_by(*table.primary_key.columns)
    dated = {
        "project_goldens": project_goldens,
        "runs": runs,
        "criteria": criteria,
        "criteria_alignments": alignments,
        "judges": judges,
    }[name]
    keys = [one for one in dated.primary_key.columns if one.name != "project_id"]
    return sa.select(dated).where(dated.c.project_id == project_id).order_by(dated.c.created_at, *keys)


def without_run() -> sa.Select[Any]:
    """How many replies no run is noted for."""
    noted = sa.select(run_replies.c.reply_key)
    return sa.select(sa.func.count()).select_from(replies).where(replies.c.reply_key.not_in(noted))


def _used(project_id: str) -> Any:
    """Golden sets that the project has, or that something in it is about."""
    tables = (project_goldens, runs, criteria, judges, labels)
    return sa.union(*(sa.select(table.c.golden_id).where(table.c.project_id == project_id) for table in tables))


def _of_runs(table: sa.Table, project_id: str) -> sa.Select[Any]:
    rest = [one for one in table.primary_key.columns if one.name != "run_id"]
    query = sa.select(table).join(runs, runs.c.run_id == table.c.run_id).where(runs.c.project_id == project_id)
    return query.order_by(runs.c.created_at, runs.c.run_id, *rest)


def _replies(project_id: str) -> sa.Select[Any]:
    """What the project's runs asked for, and what came with the project; the installation's own where both are."""
    asked = sa.select(run_replies.c.reply_key).join(runs, runs.c.run_id == run_replies.c.run_id)
    paid_here = sa.select(replies).where(replies.c.reply_key.in_(asked.where(runs.c.project_id == project_id)))
    own = project_replies.c
    came = sa.select(own.reply_key, own.body, own.created_at).where(
        own.project_id == project_id, own.reply_key.not_in(paid_here.with_only_columns(replies.c.reply_key))
    )
    both = sa.union_all(paid_here, came).subquery()
    return sa.select(both).order_by(both.c.created_at, both.c.reply_key)
