"""What people do: their labels, and a log of everything else (comments, decisions, sign-off, openings)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "labels",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=80), nullable=False),
        sa.Column("golden_id", sa.String(length=80), nullable=False),
        sa.Column("rater", sa.Text(), nullable=False),
        sa.Column("item_id", sa.Text(), nullable=False),
        sa.Column("aspect", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("form", sa.String(length=80), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["golden_id"], ["goldens.golden_id"]),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("project_id", "rater", "form", "aspect", name="labels_once"),
    )
    op.create_index("labels_of_golden", "labels", ["project_id", "golden_id"])
    op.create_table(
        "events",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=80), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("form", sa.String(length=80), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("project_id", "form", name="events_once"),
    )
    op.create_index("events_of_kind", "events", ["project_id", "kind"])
