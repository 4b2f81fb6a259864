"""What a recheck found: the record, its decision, and the decision in words.

Three decisions are possible.  *Fallen*: the interval of the change lies below 0.  *Holds*: a fall of `fall` or more is
ruled out.  *Cannot be told*: neither, for so few items; then the record says how many would tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from core.drift.change import Change
from core.drift.shift import Shift
from core.records import Alignment
from core.stats import Difference

Decision = Literal["holds", "fallen", "cannot be told"]


@dataclass(frozen=True)
class Recheck:
    """What a recheck found.  `then` is the file's held-out alignment, `now` that on the newer labels.

    `against` is the judge minus another on the same new items; `paired` its alignment minus that of its earlier
    verdicts on the common items; `labels` and `scores` how both are distributed beside before.  None where not asked
    for or not known.  `n_left_out` items were known to the calibration and are no part of `now`.
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
    n_left_out: int = 0
    against: Difference | None = None
    against_name: str = ""
    paired: Difference | None = None
    labels: Shift | None = None
    scores: Shift | None = None
    notes: tuple[str, ...] = ()

    @property
    def unread_share(self) -> float | None:
        """Share of the labelled items without a score; None where there is none."""
        return self.now.n_unscored / self.n_labelled if self.n_labelled else None

    def as_json(self) -> dict[str, Any]:
        """The JSON answer of `recheck`."""
        return {
            "aspect": self.aspect,
            "judge": self.judge,
            "golden": {"name": self.golden_name, "digest": self.golden_digest},
            "decision": self.decision,
            "words": self.words,
            "now": self.now.as_json(),
            "then": self.then.as_json(),
            "change": self.change.as_json(),
            "against": None if self.against is None else {"name": self.against_name} | self.against.as_json(),
            "paired": None if self.paired is None else self.paired.as_json(),
            "labels": None if self.labels is None else self.labels.as_json(),
            "scores": None if self.scores is None else self.scores.as_json(),
            "n_labelled": self.n_labelled,
            "n_left_out": self.n_left_out,
            "unread_share": self.unread_share,
            "notes": list(self.notes),
        }


def decided(change: Change, *, same: bool = False) -> Decision:
    """The decision that a change leaves; `same` where both are of the same items, so that there is no chance in it."""
    if change.value is None:
        return "cannot be told"
    if same:
        return "holds" if change.value > -change.fall else "fallen"
    if change.interval is None:
        return "cannot be told"
    if change.interval.high < 0:
        return "fallen"
    return "holds" if change.interval.low > -change.fall else "cannot be told"


def in_words(decision: Decision, change: Change, now: Alignment, *, same: bool = False) -> str:
    """The decision in a sentence or two."""
    if change.value is None:
        return f"Whether the alignment has fallen cannot be told: {change.reason}."
    moved = f"{'down' if change.value < 0 else 'up'} by {abs(change.value):.3f}"
    if same:
        how = "scores as before" if decision == "holds" else "has changed"
        return f"On the items that it was exported with the judge {how}: {moved}."
    if change.interval is None:
        return f"Whether the alignment has fallen cannot be told: {change.reason or 'there is no interval'}."
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
