"""How a figure changes: agreement of raters as they label, judging styles with more samples, rechecks over time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from core.records import Alignment, Scale
from core.report.figures.axes import WIDE, Panel, Sign
from core.report.figures.style import (
    AMBER,
    BLUE,
    QUIET,
    TEAL,
    measure_name,
    snapped,
    value_range,
)
from core.report.figures.svg import Drawing, area, drawing, line, path, shortened
from core.wording import estimate, number

if TYPE_CHECKING:
    from core.comparison.periods import Watched
    from core.projects.label_passes import AspectAgreement

DECISIONS = {"holds": TEAL, "fallen": AMBER, "inconclusive": QUIET}


def growth_figure(agreement: AspectAgreement, *, n_expected: int) -> Drawing:
    """Krippendorff's alpha of the first 1, 2, … doubly rated items; a whisker at the last where its interval is known.

    An undefined alpha is a gap.  `n_expected` items will be doubly rated in all: it fixes the horizontal axis.
    """
    items, alphas = [n for n, _ in agreement.growth], [alpha for _, alpha in agreement.growth]
    last, interval = items[-1] if items else 0, agreement.interval
    known = [alpha for alpha in alphas if alpha is not None]
    ends = snapped([*known, *((interval.low, interval.high) if interval else ())])
    panel = Panel.sized(WIDE, 280, (0, max(n_expected, last, 1) + 1), ends)
    parts = list(panel.ground("items rated by two or more", f"Krippendorff's alpha, {agreement.alpha_metric}"))
    places = [None if alpha is None else panel.at(n, alpha) for n, alpha in zip(items, alphas, strict=True)]
    parts += path(places, BLUE)
    parts += panel.marks([(n, a) for n, a in zip(items, alphas, strict=True) if a is not None], BLUE, size=3)
    parts += panel.whisker(last, interval if last else None, BLUE, width=2)
    says = f"alpha {number(known[-1])} on {last:,} items." if known else "No alpha yet."
    return drawing("growth", "Agreement as items were rated", says, (WIDE, 280), parts)


@dataclass(frozen=True, slots=True)
class RecheckPoint:
    """A recheck: when, on which golden set, its alignment, and what was decided."""

    when: datetime
    name: str
    now: Alignment
    decision: str


def history_figure(points: Sequence[RecheckPoint], then: Alignment) -> Drawing:
    """Alignment with its interval at each recheck, in order of time; the exported value as a line in its interval.

    Rechecks stand at equal distances, whatever the time between them; undefined ones keep their place without a mark.
    """
    shown = [decision for decision in DECISIONS if any(point.decision == decision for point in points)]
    signs = [Sign(decision, DECISIONS[decision]) for decision in shown]
    signs.append(Sign("exported with, and its 95 % interval", BLUE, None, "6 4"))
    ends = value_range([*(point.now for point in points), then])
    panel = Panel.sized(WIDE, 340, (-0.6, len(points) - 0.4), ends, signs=signs, below=2)
    names = [
        (float(k), (f"{point.when:%Y-%m-%d}", shortened(point.name, 22 if len(points) < 7 else 12)))
        for k, point in enumerate(points)
    ]
    parts = list(panel.ground("", measure_name(then.statistic, then.level), x_ticks=names))
    if then.interval is not None:
        (left, low), (right, high) = panel.at(-0.6, then.interval.low), panel.at(len(points) - 0.4, then.interval.high)
        parts.append(area(((left, low), (right, low), (right, high), (left, high)), BLUE, opacity=0.12))
    if then.value is not None:
        parts += panel.level(then.value, BLUE)
    for k, point in enumerate(points):
        if point.now.value is not None:
            parts += panel.whisker(k, point.now.interval, DECISIONS[point.decision], width=3)
            parts += panel.marks([(k, point.now.value)], DECISIONS[point.decision], size=6)
    told = [f"{point.when:%Y-%m-%d}, {shortened(point.name, 40)}: {estimate(point.now)}" for point in points]
    says = f"Exported with {estimate(then)}. {'; '.join(told)}."
    return drawing("rechecks", "Alignment at each recheck", says, (WIDE, 340), parts)


_HEIGHT, _MOST_TICKS = 340, 14
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def periods_figure(watched: Watched, *, aspect: str, scale: Scale) -> Drawing:
    """Draw one mark per period, hollow in the baseline and a diamond after a move, next to corrected means.

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
