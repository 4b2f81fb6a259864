"""Before the first step: can these labels rank anything?"""

from __future__ import annotations

import numpy as np

from core.data.labels_needed import ENOUGH, LEAST
from core.errors import AspectError
from core.records import GoldenSet, Task
from core.stats import LabelledItems


def require_usable(golden: GoldenSet, task: Task, side: LabelledItems) -> None:
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
