"""The mean verdict of each day, week or version, with how well it is known, beside the baseline."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from core.records import Scale
from core.report.figures.axes import WIDE, Panel, Sign
from core.report.figures.style import AMBER, BLUE, QUIET, TEAL
from core.report.figures.svg import Drawing, drawing, line, shortened

if TYPE_CHECKING:
    from core.comparison.periods import Watched

_HEIGHT, _MOST_TICKS = 340, 14
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def periods_figure(watched: Watched, *, aspect: str, scale: Scale) -> Drawing:
    """A mark a period: hollow in the baseline, a diamond where it has moved; corrected means beside them.

    The line is the baseline's mean; a whisker that leaves it out has moved, at whatever number of looks.
    """
    periods = watched.periods
    signs = [Sign("baseline", QUIET, "ring"), Sign("judge", BLUE), Sign("moved beyond chance", AMBER, "diamond")]
    if any(period.corrected and period.corrected.value is not None for period in periods):
        signs.append(Sign("corrected by labels, 95 %", TEAL))
    step = -(-len(periods) // _MOST_TICKS) or 1
    ticks = [(float(k), (_short(period.name),)) for k, period in enumerate(periods) if not k % step]
    panel = Panel.sized(WIDE, _HEIGHT, (-0.6, len(periods) - 0.4), (scale.low, scale.high), signs=signs)
    parts = list(panel.ground("", f"mean {aspect}, {scale.low:g} to {scale.high:g}", x_ticks=ticks))
    if watched.baseline is not None:
        parts += panel.level(watched.baseline.value, QUIET)
    said = []
    for k, period in enumerate(periods):
        if period.judged is None:
            continue
        moved = period.change is not None and period.change.moved
        at = [(k, period.judged.value)]
        if period.change is not None and period.change.reach is not None:
            low, high = period.judged.value - period.change.reach, period.judged.value + period.change.reach
            parts.append(line(panel.at(k, low), panel.at(k, high), AMBER if moved else BLUE))
        if period.in_baseline:
            parts += panel.marks(at, QUIET, "ring")
        else:
            parts += panel.marks(at, AMBER if moved else BLUE, "diamond" if moved else "dot")
        corrected = period.corrected
        if corrected is not None and corrected.value is not None:
            parts += panel.whisker(k + 0.15, corrected.interval, TEAL)
            parts += panel.marks([(k + 0.15, corrected.value)], TEAL, size=4)
        said.append(f"{shortened(period.name, 30)}: {period.judged.value:.2f}{' (moved)' if moved else ''}")
    words = "; ".join(said[-30:]) or "No verdicts."
    return drawing("periods", f"Mean {aspect} by period", f"{words}.", (WIDE, _HEIGHT), parts)


def _short(name: str) -> str:
    """A day without its year, which the table has."""
    return name[5:] if _DAY.fullmatch(name) else shortened(name, 14)
