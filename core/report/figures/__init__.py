"""Draw records as SVG charts, the same on screens and in the report.

`svg` writes elements and drawings. `chart`, `whiskers` and `heat_map` are types of charts. `search_plots` draws
candidates of a calibration; `curves` draws scores and labels.
"""

from core.report.figures.curves import labels_figure
from core.report.figures.search_plots import candidates_figure
from core.report.figures.svg import Drawing, Theme
from core.report.figures.whiskers import held_out_figure
from core.wording import LEVEL_NAMES, STATISTIC_NAMES, describe, measure_name

__all__ = [
    "LEVEL_NAMES",
    "STATISTIC_NAMES",
    "Drawing",
    "Theme",
    "candidates_figure",
    "describe",
    "labels_figure",
    "measure_name",
    "held_out_figure",
]
