"""What a judge is worth in labels, told before anybody labels.

With n labels and N unlabelled verdicts a system, and correlation ρ of verdicts with labels within systems, the
corrected interval is √(1 − ρ²·N/(n + N)) times as wide as that of the labels alone: as wide as n / (1 − ρ²·N/(n + N))
labels would make it.  λ has to be found out from the same labels, which costs about what ρ = 1/√(n − 2) brings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.errors import UsageError
from core.json_form import json_fields
from core.stats.intervals import t_quantile
from core.stats.mean_records import SystemMeans
from core.stats.system_means import LEAST_LABELS
from core.wording import percent

USUAL_CORRELATIONS = (0.3, 0.5, 0.7)
"""Judges correlate with one person's labels within systems by .4 to .6; beside and beyond."""

USUAL_LABELS = 30


@dataclass(frozen=True, slots=True)
class Worth:
    """What `n_labels` of a system and the verdicts of a judge of that `correlation` give.

    `width` is that of the interval as a share of the labels' alone, `n_effective` the labels that would do the same.
    `helps` where verdicts without labels remain and the correlation is above what finding λ out costs.  `half_width` is
    in points of the scale, None where nobody knows how far labels spread; `measured` where the correlation comes from
    labels.
    """

    correlation: float
    width: float
    n_effective: float
    helps: bool
    half_width: float | None
    measured: bool = False

    @property
    def words(self) -> str:
        """What the judge would bring, in a line."""
        whose = (
            f"at the correlation of {self.correlation:.2f} that labels show"
            if self.measured
            else (f"with a judge at correlation {self.correlation:.1f}")
        )
        points = "" if self.half_width is None else f", ± {self.half_width:.2f} points"
        if not self.helps:
            return f"{whose}: nothing, the labels alone do as well{points}"
        return f"{whose}: intervals {percent(1 - self.width)} narrower{points}, as {self.n_effective:.0f} labels alone"

    def as_json(self) -> dict[str, Any]:
        return json_fields(self)


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """What `n_labels` labels a system would give, beside `n_unlabelled` verdicts, by the judge's correlation.

    `break_even` is the least correlation at which the judge helps.
    """

    n_labels: int
    n_unlabelled: int
    break_even: float
    worth: tuple[Worth, ...]

    def as_json(self) -> dict[str, Any]:
        return json_fields(self)


def plan_labels(means: SystemMeans, n_labels: int = USUAL_LABELS) -> LabelPlan:
    """What `n_labels` labels a system would give, with the correlation that labels show so far, if any, first.

    UsageError under `LEAST_LABELS`.
    """
    if n_labels < LEAST_LABELS:
        raise UsageError(f"At least {LEAST_LABELS} labels a system are needed for a corrected mean; got {n_labels}.")
    judged = [system.n_judged for system in means.systems if system.n_judged]
    n_unlabelled = max(int(np.median(judged)) - n_labels, 0) if judged else 0
    break_even = 1.0 / float(np.sqrt(n_labels - 2))
    own = means.correlation if means.n_both >= LEAST_LABELS else None
    correlations = [*(() if own is None else ((max(own, 0.0), True),)), *((r, False) for r in USUAL_CORRELATIONS)]
    alone = None
    if means.spread is not None:
        alone = t_quantile(n_labels - 1) * means.spread / float(np.sqrt(n_labels))
    worth = []
    for correlation, measured in correlations:
        left = 1.0 - correlation**2 * n_unlabelled / (n_labels + n_unlabelled)
        width = float(np.sqrt(max(left, 0.0)))
        half = None if alone is None else width * alone
        n_effective = n_labels / left if left > 0 else float(n_labels + n_unlabelled)
        helps = n_unlabelled > 0 and correlation >= break_even
        worth.append(Worth(correlation, width, n_effective, helps, half, measured))
    return LabelPlan(n_labels, n_unlabelled, break_even, tuple(worth))
