"""Verdicts: a score for each item or the reason why there is none; what could not be read is never a number."""

from __future__ import annotations

from core.records import Scored
from core.verdicts import Reading, mean_verdict


def test_the_mean_of_what_was_read() -> None:
    """By hand: (2 + 5) / 2 = 3.5 of two of the three replies."""
    readings = [Reading(2.0), Reading(None, "refused"), Reading(5.0)]
    assert mean_verdict("a", readings, explanation="why", raw=("2", "no", "5")) == Scored(
        "a", 3.5, "why", ("2", "no", "5"), n_read=2, n_unread=1
    )
