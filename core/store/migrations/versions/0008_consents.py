"""Which projects were imported, and which endpoints people have allowed those to ask.

Projects that were imported before this are found by the entry that their import wrote in the log; the demo, which comes
with Concord, is none.
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_DEMO = "demo"


def upgrade() -> None:
    op.add_column("projects", sa.Column("imported_at", sa.Double(), nullable=True))
    op.create_table(
        "consents",
        sa.Column("project_id", sa.String(length=80), nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        sa.Column("with_key", sa.Boolean(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("project_id", "endpoint"),
    )
    events = sa.table("events", *(sa.column(name) for name in ("project_id", "kind", "role", "body", "created_at")))
    projects = sa.table("projects", sa.column("project_id"), sa.column("imported_at"))
    connection = op.get_bind()
    written_here = sa.select(events).where(events.c.kind == "audit", events.c.role.not_like("%(imported)"))
    for row in connection.execute(written_here).all():
        did = str(json.loads(json.loads(row.body)).get("did", ""))
        if did.startswith("imported the project") and row.project_id != _DEMO:
            which = projects.c.project_id == row.project_id
            connection.execute(sa.update(projects).where(which).values(imported_at=row.created_at))
