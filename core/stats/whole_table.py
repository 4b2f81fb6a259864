"""Everything that can be said about one judge beside the people: every statistic at every level, and on the scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from core.records import LEVELS, STATISTICS, Alignment, Scale
from core.stats.absolute import AbsoluteErrors, absolute_errors
from core.stats.agreement import BinaryAgreement, StepAgreement, binary_agreement, step_agreement
from core.stats.intervals import RESAMPLES, with_interval


@dataclass(frozen=True)
class WholeTable:
    """`alignments`: three statistics at each of three levels; the rest is on the scale itself, None where it has no
    meaning there: `errors` and `steps` when scores leave the scale, `binary` when the scale has other than two steps.
    `note` says why something is None.
    """

    alignments: tuple[Alignment, ...]
    errors: AbsoluteErrors | None
    steps: StepAgreement | None
    binary: BinaryAgreement | None
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """The JSON of `align --all` (DESIGN §3), with the parts beside it."""
        return {
            "alignments": [one.as_json() for one in self.alignments],
            "errors": None if self.errors is None else self.errors.as_json(),
            "steps": None if self.steps is None else self.steps.as_json(),
            "binary": None if self.binary is None else self.binary.as_json(),
            "note": self.note or None,
        }


def whole_table(
    scores: ArrayLike,
    labels: ArrayLike,
    source_codes: ArrayLike | None = None,
    system_codes: ArrayLike | None = None,
    *,
    scale: Scale,
    seed: int,
    resamples: int = RESAMPLES,
) -> WholeTable:
    """All of one judge's `scores` (n_items,) beside `labels` (n_items,), NaN = missing; `scale` is the labels'.

    Each alignment draws its own resamples from `seed`, so that it equals the one asked for alone.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    alignments = tuple(
        with_interval(
            x,
            y,
            source_codes,
            system_codes,
            statistic=statistic,
            level=level,
            generator=np.random.default_rng(seed),
            resamples=resamples,
        )
        for level in LEVELS
        for statistic in STATISTICS
    )
    scored = x[~np.isnan(x) & ~np.isnan(y)]
    if scored.size and not (scale.low <= scored.min() and scored.max() <= scale.high):
        told = f"scores go from {scored.min():g} to {scored.max():g}, the scale is {scale}"
        return WholeTable(alignments, None, None, None, f"{told}: errors and agreement need scores on the scale")
    two = scale.step is not None and scale.high - scale.low == scale.step
    middle = (scale.low + scale.high) / 2
    return WholeTable(
        alignments,
        absolute_errors(x, y),
        step_agreement(x, y, scale),
        binary_agreement(x, y, threshold=middle) if two else None,
    )
