"""Results in words: the terminal, screens, reports and notebooks print the same `Finding`.

`core.report.headline` sums up several results.

::

    agreement       judges next to raters and each other: leaderboard, gain, rater, regression, yes or no
    weak_spots      where a judge fails, its biases, its intervals
    system_quality  which system is better
    over_time       rechecks on newer labels, monitoring of newer texts

Each claim follows from a test in the record, never from a point value; without a test the sentence says so.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A result in words: a `headline` that a stakeholder can repeat; statistic, level, n and interval as `detail`.

    `cautions` are sentences that weaken it.  `next_step` says what to do now; "" for nothing.
    """

    headline: str
    detail: str = ""
    cautions: tuple[str, ...] = ()
    next_step: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """Non-empty parts, a line each, for a terminal."""
        notes = (f"Note: {caution}" for caution in self.cautions)
        return tuple(filter(None, (self.headline, self.detail, *notes, self.next_step)))
