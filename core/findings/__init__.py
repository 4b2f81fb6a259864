"""Results in words: terminal, screens, reports and notebooks print the same `Finding`.

`core.report.headline` sums up several results.

::

    agreement       judges compared with raters, each other, the baseline and a regression; yes or no
    weak_spots      subgroups where a judge fails, its biases, its intervals
    system_quality  which system is better
    over_time       rechecks on newer labels, monitoring of newer texts

Each claim follows from a test, never from a point value. Without a test, the sentence says so.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A result in words. `headline` is for stakeholders; `detail` has statistic, level, n and interval.

    `cautions` are sentences that qualify the headline. `next_step` is the recommended action; "" for none.
    """

    headline: str
    detail: str = ""
    cautions: tuple[str, ...] = ()
    next_step: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the finding for a terminal: headline, detail, cautions and next step."""
        notes = (f"Note: {caution}" for caution in self.cautions)
        return tuple(filter(None, (self.headline, self.detail, *notes, self.next_step)))
