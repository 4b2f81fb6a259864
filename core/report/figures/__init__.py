"""Results → figures.  Pure: records in, a figure out; no screen, no store.

Every figure is an SVG, the same on screens and in the report: `svg` writes elements and drawings, `axes` places
values, `whiskers`, `bars` and `matrix` are its forms.  `runs` draws calibrations, `trends` what changes with labels,
samples and time, `analyses`, `comparison` and `repeval` what their screens show.
"""

from core.report.figures.bars import labels_figure
from core.report.figures.search_plots import Race, best_so_far_figure, candidates_figure, race_figure
from core.report.figures.style import LEVEL_NAMES, STATISTIC_NAMES, Mark, describe, measure_name
from core.report.figures.svg import Drawing, Theme
from core.report.figures.whiskers import Sides, sides_figure

__all__ = [
    "LEVEL_NAMES",
    "STATISTIC_NAMES",
    "Drawing",
    "Mark",
    "Race",
    "Sides",
    "Theme",
    "best_so_far_figure",
    "candidates_figure",
    "describe",
    "labels_figure",
    "measure_name",
    "race_figure",
    "sides_figure",
]
