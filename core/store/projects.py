"""Projects: a name over golden sets, criteria and runs."""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from core.errors import NotFoundError
from core.kept import ProjectSummary
from core.store.database import Database, fields_of
from core.store.patience import Part
from core.store.schema import (
    alignments,
    consents,
    criteria,
    documents,
    drafts,
    edits,
    events,
    judges,
    labels,
    project_goldens,
    project_replies,
    projects,
    run_replies,
    runs,
    scores,
)

_OF_RUNS = (documents, scores, run_replies)
_OF_PROJECT = (
    *(alignments, edits, criteria, judges, labels, drafts, consents, events),
    *(project_replies, runs, project_goldens, projects),
)
"""In the order in which rows can go: each table before those that it refers to."""


class Projects(Part):
    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, name: str, project_id: str | None = None) -> str:
        """Enter a project; with a `project_id` that exists already nothing changes.  Returns the id."""
        identity = project_id or f"p{uuid.uuid4().hex[:12]}"
        with self._db.write() as connection:
            row = {"project_id": identity, "name": name, "created_at": self._db.now(connection)}
            connection.execute(self._db.insert_new(projects), row)
        return identity

    def all(self) -> list[ProjectSummary]:
        """Every project, oldest first."""
        with self._db.read() as connection:
            found = connection.execute(_counted().order_by(projects.c.created_at, projects.c.project_id))
            return [ProjectSummary(**fields_of(row)) for row in found]

    def remove(self, project_id: str) -> None:
        """Take a project out with all that belongs to it alone; golden sets stay, other projects may share them."""
        its_runs = sa.select(runs.c.run_id).where(runs.c.project_id == project_id)
        with self._db.write() as connection:
            for table in _OF_RUNS:
                connection.execute(sa.delete(table).where(table.c.run_id.in_(its_runs)))
            for table in _OF_PROJECT:
                connection.execute(sa.delete(table).where(table.c.project_id == project_id))

    def get(self, project_id: str) -> ProjectSummary:
        """NotFoundError for an unknown id."""
        with self._db.read() as connection:
            row = connection.execute(_counted().where(projects.c.project_id == project_id)).one_or_none()
        if row is None:
            raise NotFoundError(f"There is no project {project_id!r}. It may have been made in another CONCORD_HOME.")
        return ProjectSummary(**fields_of(row))


def _counted() -> sa.Select[tuple[str, str, float, float | None, int, int]]:
    def count(table: sa.Table, name: str) -> sa.Label[int]:
        within = sa.select(sa.func.count()).where(table.c.project_id == projects.c.project_id)
        return within.scalar_subquery().label(name)

    return sa.select(
        projects.c.project_id,
        projects.c.name,
        projects.c.created_at,
        projects.c.imported_at,
        count(project_goldens, "n_goldens"),
        count(runs, "n_runs"),
    )
