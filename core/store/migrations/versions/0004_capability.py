"""What a worker's machine computes on, beside its heartbeat."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column(
        "workers",
        sa.Column("capability", sa.String(length=20), server_default="cpu", nullable=False),
    )
