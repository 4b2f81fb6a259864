"""Judges of a project: the scores of imported, calibrated, metric and other judges, side by side."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "judges",
        sa.Column("project_id", sa.String(length=80), nullable=False),
        sa.Column("judge_id", sa.String(length=80), nullable=False),
        sa.Column("golden_id", sa.String(length=80), nullable=False),
        sa.Column("aspect", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("blob", sa.LargeBinary(), nullable=False),
        sa.Column("replies", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["golden_id"], ["goldens.golden_id"]),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("project_id", "judge_id"),
    )
