"""Every result in words, once: the terminal, screens, reports and notebooks print the same `Finding`.

A report joins several results; `core.report.headline` says in words what they come to together.

::

    agreement       judges next to raters and each other: leaderboard, gain, rater, regression, yes or no
    weak_spots      where a judge fails, its biases, how sure it is
    system_quality  which system is better
    over_time       rechecks on newer labels, monitoring of newer texts

A point value never makes a claim: each sentence follows from a test in the record, and says so where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """`headline` is the result in a sentence that a stakeholder can repeat, `detail` statistic, level, n and interval.

    `cautions` weaken it, a sentence each.  `next_step` is what to do now; "" where nothing is.
    """

    headline: str
    detail: str = ""
    cautions: tuple[str, ...] = ()
    next_step: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it for a terminal, without what is empty."""
        notes = (f"Note: {caution}" for caution in self.cautions)
        return tuple(filter(None, (self.headline, self.detail, *notes, self.next_step)))
