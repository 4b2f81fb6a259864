"""Texts that people are typing and have not saved, so that a closed tab or a restarted server takes nothing along."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "drafts",
        sa.Column("project_id", sa.String(length=80), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("base", sa.String(length=80), nullable=False),
        sa.Column("began_at", sa.Double(), nullable=False),
        sa.Column("kept_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("project_id", "subject", "author"),
    )
