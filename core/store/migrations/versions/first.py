"""The first schema.  It never changes, so it stands as SQL, in the words of SQLite."""

from __future__ import annotations

from alembic import op

revision = "2"
down_revision = None

_IN_POSTGRES = {"DOUBLE": "DOUBLE PRECISION", "BLOB": "BYTEA", "number INTEGER": "number SERIAL"}
_SCHEMA = """
CREATE TABLE projects (
    project_id VARCHAR(80) NOT NULL, name TEXT NOT NULL, created_at DOUBLE NOT NULL, imported_at DOUBLE,
    PRIMARY KEY (project_id)
);
CREATE TABLE goldens (
    golden_id VARCHAR(80) NOT NULL, kind VARCHAR(40) NOT NULL, n_items INTEGER NOT NULL, n_sources INTEGER NOT NULL,
    n_systems INTEGER NOT NULL, n_ratings INTEGER NOT NULL, aspects TEXT NOT NULL, body TEXT NOT NULL,
    ratings TEXT NOT NULL, created_at DOUBLE NOT NULL,
    PRIMARY KEY (golden_id)
);
CREATE TABLE golden_items (
    golden_id VARCHAR(80) NOT NULL, position INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (golden_id, position), FOREIGN KEY (golden_id) REFERENCES goldens (golden_id)
);
CREATE TABLE project_goldens (
    project_id VARCHAR(80) NOT NULL, golden_id VARCHAR(80) NOT NULL, name TEXT NOT NULL, created_at DOUBLE NOT NULL,
    PRIMARY KEY (project_id, golden_id), FOREIGN KEY (project_id) REFERENCES projects (project_id),
    FOREIGN KEY (golden_id) REFERENCES goldens (golden_id)
);
CREATE TABLE runs (
    run_id VARCHAR(80) NOT NULL, project_id VARCHAR(80) NOT NULL, golden_id VARCHAR(80) NOT NULL,
    kind VARCHAR(40) NOT NULL, title TEXT NOT NULL, aspect TEXT NOT NULL, judge_spec TEXT NOT NULL,
    request TEXT NOT NULL, status VARCHAR(20) NOT NULL, phase TEXT NOT NULL, message TEXT NOT NULL,
    error TEXT NOT NULL, calls INTEGER NOT NULL, calls_expected INTEGER NOT NULL, usage TEXT NOT NULL,
    attempt INTEGER NOT NULL, snapshots INTEGER NOT NULL, begun_by VARCHAR(40) NOT NULL,
    cancel_requested BOOLEAN NOT NULL, worker_id TEXT NOT NULL, version INTEGER NOT NULL,
    created_at DOUBLE NOT NULL, updated_at DOUBLE NOT NULL, started_at DOUBLE, finished_at DOUBLE,
    PRIMARY KEY (run_id), FOREIGN KEY (project_id) REFERENCES projects (project_id),
    FOREIGN KEY (golden_id) REFERENCES goldens (golden_id)
);
CREATE INDEX ix_runs_project_id ON runs (project_id);
CREATE INDEX ix_runs_status ON runs (status);
CREATE TABLE run_documents (
    run_id VARCHAR(80) NOT NULL, name VARCHAR(40) NOT NULL, body TEXT NOT NULL, blob BLOB NOT NULL,
    PRIMARY KEY (run_id, name), FOREIGN KEY (run_id) REFERENCES runs (run_id)
);
CREATE TABLE run_scores (
    run_id VARCHAR(80) NOT NULL, criteria_id VARCHAR(80) NOT NULL, body TEXT NOT NULL, blob BLOB NOT NULL,
    PRIMARY KEY (run_id, criteria_id), FOREIGN KEY (run_id) REFERENCES runs (run_id)
);
CREATE TABLE criteria (
    project_id VARCHAR(80) NOT NULL, criteria_id VARCHAR(80) NOT NULL, golden_id VARCHAR(80) NOT NULL,
    aspect TEXT NOT NULL, body TEXT NOT NULL, created_at DOUBLE NOT NULL,
    PRIMARY KEY (project_id, criteria_id), FOREIGN KEY (project_id) REFERENCES projects (project_id)
);
CREATE TABLE criteria_edits (
    number INTEGER NOT NULL, project_id VARCHAR(80) NOT NULL, parent_id VARCHAR(80) NOT NULL,
    criteria_id VARCHAR(80) NOT NULL, created_at DOUBLE NOT NULL,
    PRIMARY KEY (number), CONSTRAINT criteria_edits_once UNIQUE (project_id, parent_id, criteria_id),
    FOREIGN KEY (project_id, parent_id) REFERENCES criteria (project_id, criteria_id),
    FOREIGN KEY (project_id, criteria_id) REFERENCES criteria (project_id, criteria_id)
);
CREATE TABLE criteria_alignments (
    project_id VARCHAR(80) NOT NULL, criteria_id VARCHAR(80) NOT NULL, run_id VARCHAR(80) NOT NULL,
    side VARCHAR(20) NOT NULL, status VARCHAR(20) NOT NULL, body TEXT NOT NULL, created_at DOUBLE NOT NULL,
    PRIMARY KEY (project_id, criteria_id, run_id, side),
    FOREIGN KEY (project_id, criteria_id) REFERENCES criteria (project_id, criteria_id),
    FOREIGN KEY (run_id) REFERENCES runs (run_id)
);
CREATE TABLE judges (
    project_id VARCHAR(80) NOT NULL, judge_id VARCHAR(80) NOT NULL, golden_id VARCHAR(80) NOT NULL,
    aspect TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, blob BLOB NOT NULL, replies BLOB,
    created_at DOUBLE NOT NULL,
    PRIMARY KEY (project_id, judge_id), FOREIGN KEY (project_id) REFERENCES projects (project_id),
    FOREIGN KEY (golden_id) REFERENCES goldens (golden_id)
);
CREATE TABLE labels (
    number INTEGER NOT NULL, project_id VARCHAR(80) NOT NULL, golden_id VARCHAR(80) NOT NULL,
    pass_id VARCHAR(80) NOT NULL, rater TEXT NOT NULL, item_id TEXT NOT NULL, aspect TEXT NOT NULL, value DOUBLE,
    comment TEXT NOT NULL, form VARCHAR(80) NOT NULL, created_at DOUBLE NOT NULL, taken_from VARCHAR(80) NOT NULL,
    PRIMARY KEY (number), CONSTRAINT labels_once UNIQUE (project_id, rater, form, aspect),
    FOREIGN KEY (project_id) REFERENCES projects (project_id),
    FOREIGN KEY (golden_id) REFERENCES goldens (golden_id)
);
CREATE INDEX labels_of_golden ON labels (project_id, golden_id);
CREATE INDEX labels_of_pass ON labels (project_id, pass_id, rater);
CREATE TABLE events (
    number INTEGER NOT NULL, project_id VARCHAR(80) NOT NULL, kind VARCHAR(40) NOT NULL, subject TEXT NOT NULL,
    actor TEXT NOT NULL, role VARCHAR(20) NOT NULL, form VARCHAR(80) NOT NULL, body TEXT NOT NULL,
    created_at DOUBLE NOT NULL,
    PRIMARY KEY (number), CONSTRAINT events_once UNIQUE (project_id, form),
    FOREIGN KEY (project_id) REFERENCES projects (project_id)
);
CREATE INDEX events_of_kind ON events (project_id, kind);
CREATE TABLE drafts (
    project_id VARCHAR(80) NOT NULL, subject TEXT NOT NULL, author TEXT NOT NULL, text TEXT NOT NULL,
    base VARCHAR(80) NOT NULL, began_at DOUBLE NOT NULL, kept_at DOUBLE NOT NULL,
    PRIMARY KEY (project_id, subject, author), FOREIGN KEY (project_id) REFERENCES projects (project_id)
);
CREATE TABLE replies (
    reply_key VARCHAR(80) NOT NULL, body TEXT NOT NULL, created_at DOUBLE NOT NULL,
    PRIMARY KEY (reply_key)
);
CREATE TABLE run_replies (
    run_id VARCHAR(80) NOT NULL, reply_key VARCHAR(80) NOT NULL, paid BOOLEAN NOT NULL, body TEXT,
    PRIMARY KEY (run_id, reply_key), FOREIGN KEY (run_id) REFERENCES runs (run_id)
);
CREATE TABLE blocks (
    block_key VARCHAR(80) NOT NULL, body TEXT NOT NULL, created_at DOUBLE NOT NULL,
    PRIMARY KEY (block_key)
);
CREATE TABLE workers (
    worker_id TEXT NOT NULL, place TEXT NOT NULL, pid INTEGER NOT NULL, started_at DOUBLE NOT NULL,
    beat_at DOUBLE NOT NULL, capability VARCHAR(20) NOT NULL,
    PRIMARY KEY (worker_id)
);
"""


def upgrade() -> None:
    schema = _SCHEMA
    if op.get_bind().dialect.name == "postgresql":
        for word, in_postgres in _IN_POSTGRES.items():
            schema = schema.replace(word, in_postgres)
    for statement in schema.split(";\n"):
        if statement.strip():
            op.execute(statement)
