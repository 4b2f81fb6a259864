"""How many labels calibrating takes: what was measured, the thresholds that follow, and the sentences that say so.

Every number counts *calibration* labels, those that choose the criteria: where half of the sources are held out, about
half of all labels.  `core.data.split.calibration_labels` counts them as a split will make them.

Measured over 34 runs of the offline judge on public sets, mean alignment with people on held-out items (METHODS §7).
"""

from __future__ import annotations

from dataclasses import dataclass

LEAST = 8
"""Fewer calibration labels cannot be told apart from chance: nothing is calibrated."""
TO_STACK = 50
"""Fewer labels to fit on, and no weights are learnt for a fusion."""
ENOUGH = 100
"""Calibration labels that are advised; with fewer, refining was measured to fit their noise."""
ENOUGH_IN_ALL = 200
"""The same with half of the sources held out."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What `n` calibration labels gave: the mean over the runs, and the share of runs below no criteria (None: not
    counted)."""

    n: int
    calibrated: float
    share_below: float | None


NO_CRITERIA, UNREFINED = 0.500, 0.520
"""Means over the same runs without criteria, and with 20 labels when nothing is refined."""
MEASURED = (
    Measured(20, 0.495, None),
    Measured(50, 0.515, 0.44),
    Measured(100, 0.526, 0.26),
    Measured(200, 0.536, 0.24),
)


def few_labels(n: int, *, refining: bool = False) -> str:
    """What is to be expected of `n` calibration labels, in sentences; "" where there are enough."""
    if n >= ENOUGH:
        return ""
    least, some, enough, _ = MEASURED
    if n < TO_STACK:
        measured = (
            f"In measured runs, calibrating on {least.n} labels did no better than using no criteria "
            f"({_coefficient(least.calibrated)} and {_coefficient(NO_CRITERIA)})."
        )
    else:
        measured = (
            f"In measured runs, calibrating did worse than using no criteria in {some.share_below:.0%} of runs on "
            f"{some.n} labels, in {enough.share_below:.0%} on {enough.n}."
        )
    advice = f"{n} calibration labels: {ENOUGH} are advised ({ENOUGH_IN_ALL} in all with half of the sources held out)."
    if not refining:
        return f"{advice} {measured}"
    return (
        f"{advice} {measured} Do not refine with fewer: on {least.n} labels refining lowered the mean from "
        f"{_coefficient(UNREFINED)} to {_coefficient(least.calibrated)}."
    )


def few_held_out(n: int) -> str:
    """What `n` held-out labels mean for the report; "" where there are enough."""
    return "" if n >= ENOUGH else f"{n} held-out labels: the interval of the reported alignment is wide."


def too_few_to_stack(n: int) -> str:
    """Why no weights are learnt on `n` labels; "" where they are enough."""
    if n >= TO_STACK:
        return ""
    return f"{n} labels to fit on: weights are learnt from {TO_STACK} labels on, since on fewer they fit noise"


def _coefficient(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")
