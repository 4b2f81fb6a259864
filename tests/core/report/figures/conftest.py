"""What the tests of figures share."""

from __future__ import annotations

from datetime import UTC, datetime

from core.records import Alignment, Interval

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def aligned(value: float | None, low: float = 0.0, high: float = 0.0, reason: str = "") -> Alignment:
    """An alignment on 40 items, with an interval where `high` lies above `low`."""
    interval = Interval(low, high) if high > low else None
    return Alignment("spearman", "sample", value, n=40, interval=interval, reason=reason)
