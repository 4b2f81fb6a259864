"""An index for what a rater's desk asks after every press: their labels of one golden set."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_index("labels_of_rater", "labels", ["project_id", "golden_id", "rater"])
