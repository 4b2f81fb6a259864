"""Which run asked for which reply, and replies that came with an imported project, kept apart from everybody's."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "run_replies",
        sa.Column("run_id", sa.String(length=80), nullable=False),
        sa.Column("reply_key", sa.String(length=80), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.PrimaryKeyConstraint("run_id", "reply_key"),
    )
    op.create_table(
        "project_replies",
        sa.Column("project_id", sa.String(length=80), nullable=False),
        sa.Column("reply_key", sa.String(length=80), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("project_id", "reply_key"),
    )
