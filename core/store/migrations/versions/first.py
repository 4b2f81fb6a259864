"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    _projects_and_goldens()
    _runs()
    _criteria_and_judges()
    _people()
    _replies()
    _machinery()


def _projects_and_goldens() -> None:
    op.create_table(
        "projects",
        sa.Column("project_id", sa.String(80), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("imported_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("project_id"),
    )
    op.create_table(
        "consents",
        sa.Column("project_id", sa.String(80), nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        sa.Column("with_key", sa.Boolean(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("project_id", "endpoint"),
    )
    op.create_table(
        "goldens",
        sa.Column("golden_id", sa.String(80), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("n_items", sa.Integer(), nullable=False),
        sa.Column("n_sources", sa.Integer(), nullable=False),
        sa.Column("n_systems", sa.Integer(), nullable=False),
        sa.Column("n_ratings", sa.Integer(), nullable=False),
        sa.Column("aspects", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("ratings", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("golden_id"),
    )
    op.create_table(
        "golden_items",
        sa.Column("golden_id", sa.String(80), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["golden_id"], ["goldens.golden_id"]),
        sa.PrimaryKeyConstraint("golden_id", "position"),
    )
    op.create_table(
        "project_goldens",
        sa.Column("project_id", sa.String(80), nullable=False),
        sa.Column("golden_id", sa.String(80), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["golden_id"], ["goldens.golden_id"]),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("project_id", "golden_id"),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(80), nullable=False),
        sa.Column("project_id", sa.String(80), nullable=False),
        sa.Column("golden_id", sa.String(80), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("aspect", sa.Text(), nullable=False),
        sa.Column("judge_spec", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("calls_expected", sa.Integer(), nullable=False),
        sa.Column("usage", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("snapshots", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.Double(), nullable=False),
        sa.Column("begun_by", sa.String(40), nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["golden_id"], ["goldens.golden_id"]),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_index("ix_runs_project_id", "runs", ["project_id"], unique=False)
    op.create_index("ix_runs_status", "runs", ["status"], unique=False)
    op.create_table(
        "run_documents",
        sa.Column("run_id", sa.String(80), nullable=False),
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("blob", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.PrimaryKeyConstraint("run_id", "name"),
    )
    op.create_table(
        "run_scores",
        sa.Column("run_id", sa.String(80), nullable=False),
        sa.Column("criteria_id", sa.String(80), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("blob", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.PrimaryKeyConstraint("run_id", "criteria_id"),
    )


def _criteria_and_judges() -> None:
    op.create_table(
        "criteria",
        sa.Column("project_id", sa.String(80), nullable=False),
        sa.Column("criteria_id", sa.String(80), nullable=False),
        sa.Column("golden_id", sa.String(80), nullable=False),
        sa.Column("aspect", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("project_id", "criteria_id"),
    )
    op.create_table(
        "criteria_edits",
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=True),
        sa.Column("project_id", sa.String(80), nullable=False),
        sa.Column("parent_id", sa.String(80), nullable=False),
        sa.Column("criteria_id", sa.String(80), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id", "criteria_id"], ["criteria.project_id", "criteria.criteria_id"]),
        sa.ForeignKeyConstraint(["project_id", "parent_id"], ["criteria.project_id", "criteria.criteria_id"]),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("project_id", "parent_id", "criteria_id", name="criteria_edits_once"),
    )
    op.create_table(
        "criteria_alignments",
        sa.Column("project_id", sa.String(80), nullable=False),
        sa.Column("criteria_id", sa.String(80), nullable=False),
        sa.Column("run_id", sa.String(80), nullable=False),
        sa.Column("side", sa.String(20), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id", "criteria_id"], ["criteria.project_id", "criteria.criteria_id"]),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.PrimaryKeyConstraint("project_id", "criteria_id", "run_id", "side"),
    )
    op.create_table(
        "judges",
        sa.Column("project_id", sa.String(80), nullable=False),
        sa.Column("judge_id", sa.String(80), nullable=False),
        sa.Column("golden_id", sa.String(80), nullable=False),
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


def _people() -> None:
    op.create_table(
        "labels",
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=True),
        sa.Column("project_id", sa.String(80), nullable=False),
        sa.Column("golden_id", sa.String(80), nullable=False),
        sa.Column("pass_id", sa.String(80), nullable=False),
        sa.Column("rater", sa.Text(), nullable=False),
        sa.Column("item_id", sa.Text(), nullable=False),
        sa.Column("aspect", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("form", sa.String(80), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("taken_from", sa.String(80), nullable=False),
        sa.ForeignKeyConstraint(["golden_id"], ["goldens.golden_id"]),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("project_id", "rater", "form", "aspect", name="labels_once"),
    )
    op.create_index("labels_of_golden", "labels", ["project_id", "golden_id"], unique=False)
    op.create_index("labels_of_pass", "labels", ["project_id", "pass_id", "rater"], unique=False)
    op.create_table(
        "events",
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=True),
        sa.Column("project_id", sa.String(80), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("form", sa.String(80), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("project_id", "form", name="events_once"),
    )
    op.create_index("events_of_kind", "events", ["project_id", "kind"], unique=False)
    op.create_table(
        "drafts",
        sa.Column("project_id", sa.String(80), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("base", sa.String(80), nullable=False),
        sa.Column("began_at", sa.Double(), nullable=False),
        sa.Column("kept_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("project_id", "subject", "author"),
    )


def _replies() -> None:
    op.create_table(
        "replies",
        sa.Column("reply_key", sa.String(80), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("reply_key"),
    )
    op.create_table(
        "run_replies",
        sa.Column("run_id", sa.String(80), nullable=False),
        sa.Column("reply_key", sa.String(80), nullable=False),
        sa.Column("paid", sa.Boolean(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.PrimaryKeyConstraint("run_id", "reply_key"),
    )
    op.create_table(
        "project_replies",
        sa.Column("project_id", sa.String(80), nullable=False),
        sa.Column("reply_key", sa.String(80), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("project_id", "reply_key"),
    )


def _machinery() -> None:
    op.create_table(
        "blocks",
        sa.Column("block_key", sa.String(80), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("block_key"),
    )
    op.create_table(
        "workers",
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("beat_at", sa.Double(), nullable=False),
        sa.Column("capability", sa.String(20), nullable=False),
        sa.PrimaryKeyConstraint("worker_id"),
    )
