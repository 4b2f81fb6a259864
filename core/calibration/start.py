"""Before the first step: can these labels rank anything, and at which level?"""

from __future__ import annotations

import numpy as np

from core.calibration.board import Side
from core.data.labels_needed import ENOUGH, LEAST
from core.errors import AspectError
from core.records import GoldenSet, Level, Task


def require_usable(golden: GoldenSet, task: Task, side: Side) -> None:
    """AspectError, with the way out, when the calibration labels are too few or all equal."""
    labelled = golden.aspects[task.aspect].n_labelled
    if side.n < LEAST:
        raise AspectError(
            f"aspect {task.aspect!r} has {labelled} labels, of which {side.n} fall on the calibration side; at least "
            f"{LEAST} are needed there ({ENOUGH} are advised). Label more items or choose a larger calibration "
            "share.",
            file=golden.name,
        )
    if float(np.ptp(side.labels)) == 0.0:
        raise AspectError(
            f"all {side.n} calibration labels of aspect {task.aspect!r} equal {side.labels[0]:g}: nothing can "
            "correlate with a constant. Choose another aspect, or label items on which people differ.",
            file=golden.name,
        )


def choose_level(side: Side) -> Level:
    """Sample level when most labelled items stand in groups of at least 3 with differing labels, else dataset."""
    sizes = np.bincount(side.sources)
    low = np.full(len(sizes), np.inf)
    high = np.full(len(sizes), -np.inf)
    np.minimum.at(low, side.sources, side.labels)
    np.maximum.at(high, side.sources, side.labels)
    usable = (sizes >= 3) & (high > low)
    return "sample" if usable.sum() >= 3 and sizes[usable].sum() >= side.n / 2 else "dataset"
