"""Results → plotly figures.  Pure: records in, a figure out; no screen, no store; plotly is imported when used.

`runs` draws calibrations, `trends` what changes with labels, samples and time, `analyses`, `comparison` (fusions
too), `misaligned` and `repeval` what their screens show; `style` holds what all figures share.
"""

from core.report.figures.runs import (
    Race,
    Sides,
    best_so_far_figure,
    candidates_figure,
    labels_figure,
    race_figure,
    sides_figure,
)
from core.report.figures.style import LEVEL_NAMES, STATISTIC_NAMES, Mark, describe, measure_name

__all__ = [
    "LEVEL_NAMES",
    "STATISTIC_NAMES",
    "Mark",
    "Race",
    "Sides",
    "best_so_far_figure",
    "candidates_figure",
    "describe",
    "labels_figure",
    "measure_name",
    "race_figure",
    "sides_figure",
]
