"""What is known of how good systems are: means on the human scale beside each other, and their differences."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from core.records import Interval, Scale


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean on the human scale.  None is undefined; `reason` says why there is no value, or no interval beside one."""

    value: float | None
    interval: Interval | None = None
    reason: str = ""

    def within(self, scale: Scale) -> MeanEstimate:
        """The same, value and interval cut off at the ends of `scale`: a correction may lead beyond them."""
        if self.value is None:
            return self
        value = min(max(self.value, scale.low), scale.high)
        return replace(self, value=value, interval=self.interval and self.interval.within(scale.low, scale.high))

    @property
    def width(self) -> float:
        """Of the interval, infinite where there is none."""
        return np.inf if self.interval is None else self.interval.high - self.interval.low

    def as_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "interval": None if self.interval is None else self.interval.as_json(),
            "reason": self.reason or None,
        }


@dataclass(frozen=True, slots=True)
class SystemMean:
    """One system: `corrected` beside `labels_only` and `judge_only`, the naive mean of its verdicts.

    `n_labelled` items have a label, `n_judged` a verdict, `n_both` both.  `weight` is the mean λ.  `n_effective`: so
    many labels alone would give an interval as narrow as the corrected one.  `note` is for whoever reads the corrected
    mean.
    """

    name: str
    corrected: MeanEstimate
    labels_only: MeanEstimate
    judge_only: MeanEstimate
    n_labelled: int
    n_judged: int
    n_both: int
    weight: float | None = None
    n_effective: float | None = None
    note: str = ""

    def within(self, scale: Scale) -> SystemMean:
        """The same, all means and intervals cut off at the ends of `scale`."""
        return replace(
            self,
            corrected=self.corrected.within(scale),
            labels_only=self.labels_only.within(scale),
            judge_only=self.judge_only.within(scale),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "corrected": self.corrected.as_json(),
            "labels_only": self.labels_only.as_json(),
            "judge_only": self.judge_only.as_json(),
            "n_labelled": self.n_labelled,
            "n_judged": self.n_judged,
            "n_both": self.n_both,
            "weight": self.weight,
            "n_effective": self.n_effective,
            "note": self.note or None,
        }


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """Corrected mean of system `a` minus that of `b`; what sources they share have in common cancels.

    `p` is two-sided, `p_holm` corrected over the pairs of the table; None under 8 sources, with `reason`.
    `interval` is the 95 % one of this pair alone, `tested` as wide as the test is strict: it leaves 0 out where
    `p_holm` lets a claim be made, and only there.
    """

    a: str
    b: str
    value: float
    interval: Interval | None
    p: float | None
    p_holm: float | None
    reason: str = ""
    tested: Interval | None = None

    def bounded(self, value: float, width: float) -> MeanDifference:
        """The same with the difference `value` of the bounded means, its intervals within ±`width` of the scale."""
        interval, tested = (
            ends and replace(ends, low=min(ends.low, value), high=max(ends.high, value)).within(-width, width)
            for ends in (self.interval, self.tested)
        )
        return replace(self, value=value, interval=interval, tested=tested)

    @property
    def reversed(self) -> MeanDifference:
        """`b` minus `a`."""
        turned = [ends and replace(ends, low=-ends.high, high=-ends.low) for ends in (self.interval, self.tested)]
        return replace(self, a=self.b, b=self.a, value=-self.value, interval=turned[0], tested=turned[1])

    def as_json(self) -> dict[str, Any]:
        return {
            "a": self.a,
            "b": self.b,
            "value": self.value,
            "interval": None if self.interval is None else self.interval.as_json(),
            "tested_interval": None if self.tested is None else self.tested.as_json(),
            "p": self.p,
            "p_holm": self.p_holm,
            "reason": self.reason or None,
        }


@dataclass(frozen=True)
class SystemMeans:
    """All systems, and every pair of those with a corrected mean.

    `correlation` is Pearson's of verdicts with labels within systems, over `n_both` items, None where undefined, and
    `p_correlation` that of no or a negative one; `spread` the standard deviation of labels within systems.  `mapped`:
    verdicts went through a map to the human `scale`.  `n_sources` is how many hold an item with label and verdict.
    """

    systems: tuple[SystemMean, ...]
    differences: tuple[MeanDifference, ...]
    correlation: float | None
    p_correlation: float | None
    spread: float | None
    n_both: int
    n_sources: int
    mapped: bool
    scale: Scale
    notes: tuple[str, ...] = field(default=())

    @property
    def corrected(self) -> tuple[SystemMean, ...]:
        """The systems with a corrected mean, highest first."""
        known = [(system.corrected.value, system) for system in self.systems if system.corrected.value is not None]
        return tuple(system for _, system in sorted(known, key=lambda pair: -pair[0]))

    @property
    def by_need(self) -> tuple[SystemMean, ...]:
        """The systems by who needs labels most: those without an interval, fewest labels first, then by its width."""
        return tuple(sorted(self.systems, key=lambda system: (-system.corrected.width, system.n_both)))

    def as_json(self) -> dict[str, Any]:
        """The JSON of `estimate-means` (DESIGN §3), with the differences and what the judge is worth beside it."""
        return {
            "systems": {system.name: system.as_json() for system in self.systems},
            "differences": [difference.as_json() for difference in self.differences],
            "judge": {
                "correlation": self.correlation,
                "p": self.p_correlation,
                "n": self.n_both,
                "n_sources": self.n_sources,
                "mapped": self.mapped,
            },
            "scale": [self.scale.low, self.scale.high],
            "notes": list(self.notes),
        }
