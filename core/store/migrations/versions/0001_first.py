"""The first schema: projects, golden sets, runs with their steps and scores, criteria, replies, workers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _projects_and_goldens()
    _runs()
    _results()
    _criteria()
    _replies_and_workers()


def _projects_and_goldens() -> None:
    op.create_table(
        "goldens",
        sa.Column("golden_id", sa.String(length=80), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
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
        "projects",
        sa.Column("project_id", sa.String(length=80), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("project_id"),
    )
    op.create_table(
        "golden_items",
        sa.Column("golden_id", sa.String(length=80), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["golden_id"], ["goldens.golden_id"]),
        sa.PrimaryKeyConstraint("golden_id", "position"),
    )
    op.create_table(
        "project_goldens",
        sa.Column("project_id", sa.String(length=80), nullable=False),
        sa.Column("golden_id", sa.String(length=80), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["golden_id"], ["goldens.golden_id"]),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("project_id", "golden_id"),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(length=80), nullable=False),
        sa.Column("project_id", sa.String(length=80), nullable=False),
        sa.Column("golden_id", sa.String(length=80), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("aspect", sa.Text(), nullable=False),
        sa.Column("judge_spec", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("calls_expected", sa.Integer(), nullable=False),
        sa.Column("usage", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("handed_over", sa.Integer(), nullable=False),
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


def _results() -> None:
    op.create_table(
        "run_documents",
        sa.Column("run_id", sa.String(length=80), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("blob", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.PrimaryKeyConstraint("run_id", "name"),
    )
    op.create_table(
        "run_scores",
        sa.Column("run_id", sa.String(length=80), nullable=False),
        sa.Column("criteria_id", sa.String(length=80), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("blob", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.PrimaryKeyConstraint("run_id", "criteria_id"),
    )
    op.create_table(
        "run_steps",
        sa.Column("run_id", sa.String(length=80), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=80), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("blob", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.PrimaryKeyConstraint("run_id", "number"),
    )


def _criteria() -> None:
    op.create_table(
        "criteria",
        sa.Column("project_id", sa.String(length=80), nullable=False),
        sa.Column("criteria_id", sa.String(length=80), nullable=False),
        sa.Column("golden_id", sa.String(length=80), nullable=False),
        sa.Column("aspect", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.project_id"]),
        sa.PrimaryKeyConstraint("project_id", "criteria_id"),
    )
    op.create_table(
        "criteria_alignments",
        sa.Column("project_id", sa.String(length=80), nullable=False),
        sa.Column("criteria_id", sa.String(length=80), nullable=False),
        sa.Column("run_id", sa.String(length=80), nullable=False),
        sa.Column("side", sa.String(length=20), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id", "criteria_id"], ["criteria.project_id", "criteria.criteria_id"]),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"]),
        sa.PrimaryKeyConstraint("project_id", "criteria_id", "run_id", "side"),
    )
    op.create_table(
        "criteria_edits",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("project_id", sa.String(length=80), nullable=False),
        sa.Column("parent_id", sa.String(length=80), nullable=False),
        sa.Column("criteria_id", sa.String(length=80), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["project_id", "criteria_id"], ["criteria.project_id", "criteria.criteria_id"]),
        sa.ForeignKeyConstraint(["project_id", "parent_id"], ["criteria.project_id", "criteria.criteria_id"]),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("project_id", "parent_id", "criteria_id", name="criteria_edits_once"),
    )


def _replies_and_workers() -> None:
    op.create_table(
        "replies",
        sa.Column("reply_key", sa.String(length=80), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("reply_key"),
    )
    op.create_table(
        "workers",
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("beat_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("worker_id"),
    )
