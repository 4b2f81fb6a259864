"""What a recheck found: the record, its decision, and the decision in words.

Three decisions are possible.  *Fallen*: the interval of the change lies below 0.  *Holds*: a fall of `fall` or more is
ruled out.  *Cannot be told*: neither, for so few items; then the record says how many would tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from core.drift.change import Change
from core.drift.shift import Shift
from core.json_form import json_fields
from core.records import Alignment
from core.stats import Difference

Decision = Literal["holds", "fallen", "cannot be told"]


@dataclass(frozen=True)
class Recheck:
    """What a recheck found.  `then` is the file's held-out alignment, `now` that on the newer labels.

    `against` is the judge minus another on the same new items; `paired` its alignment minus that of its earlier
    verdicts on the common items; `labels` and `scores` how both are distributed beside before.  None where not asked
    for or not known.  `left_out` counts the labelled items that are no part of `now`, by reason: "calibration" and
    "held_out" (the judge knew their texts), "old" (they had a label in the older golden set), "repeated".
    """

    aspect: str
    judge: str
    golden_name: str
    golden_digest: str
    now: Alignment
    then: Alignment
    change: Change
    decision: Decision
    words: str
    n_labelled: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    against: Difference | None = None
    against_name: str = ""
    paired: Difference | None = None
    labels: Shift | None = None
    scores: Shift | None = None
    notes: tuple[str, ...] = ()

    @property
    def unread_share(self) -> float | None:
        """Share of the newer labelled items without a score; None where there is none."""
        return self.now.n_unscored / self.n_labelled if self.n_labelled else None

    def as_json(self) -> dict[str, Any]:
        """The JSON answer of `recheck`."""
        against = None if self.against is None else {"name": self.against_name} | self.against.as_json()
        return json_fields(self, but=("golden_name", "golden_digest", "against", "against_name")) | {
            "golden": {"name": self.golden_name, "digest": self.golden_digest},
            "against": against,
            "unread_share": self.unread_share,
        }


def decided(change: Change) -> Decision:
    """The decision that a change leaves."""
    if change.interval is None:
        return "cannot be told"
    if change.interval.high < 0:
        return "fallen"
    return "holds" if change.interval.low > -change.fall else "cannot be told"


def in_words(decision: Decision, change: Change, now: Alignment) -> str:
    """The decision in a sentence or two."""
    if change.value is None or change.interval is None:
        return f"Whether the alignment has fallen cannot be told: {change.reason}."
    moved = f"{'down' if change.value < 0 else 'up'} by {abs(change.value):.3f}"
    ends = f"{change.interval.confidence:.0%} interval {change.interval.low:+.3f} to {change.interval.high:+.3f}"
    if decision == "fallen":
        return f"The alignment has fallen: {moved} ({ends})."
    if decision == "holds":
        return f"The alignment holds: {moved} ({ends}), so a fall of {change.fall:g} or more is ruled out."
    needed = (
        f"About {change.n_needed:,} items would tell a fall of {change.fall:g}."
        if change.n_needed is not None
        else f"No number of new items would tell a fall of {change.fall:g}: the exported figure is known too loosely."
    )
    return (
        f"Whether the alignment has fallen cannot be told with {now.n:,} items: {moved} ({ends}); they tell a fall of "
        f"{change.detectable:.3f} or more. {needed}"
    )
