"""Judges side by side: whiskers with the human ceiling, the matrix of tests, scores against labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.records import FloatArray, Scale
from core.report.figures.axes import HALF, WIDE, Panel, Sign
from core.report.figures.matrix import MatrixCell, matrix
from core.report.figures.style import (
    ALIKE,
    AMBER,
    BETTER,
    BLUE,
    PALE,
    QUIET,
    TEAL,
    WORSE,
    snapped,
)
from core.report.figures.svg import Drawing, drawing, mark, path, words
from core.wording import counted, number, p_figure, percent

if TYPE_CHECKING:
    from core.comparison.curve import ScoreBin
    from core.stats.conformal import KeptShare


JITTER = 0.12  # of a step, so that equal labels do not hide each other


@dataclass(frozen=True)
class PairCells:
    """Row minus column in alignment, as (n, n) arrays with NaN where undefined; `words` say each cell in full."""

    names: tuple[str, ...]
    difference: FloatArray
    p: FloatArray
    words: tuple[tuple[str, ...], ...]


def significance_figure(cells: PairCells, *, alpha: float, measure: str) -> Drawing:
    """Row against column: green where the row agrees better beyond chance, orange where worse, grey where open."""
    n = len(cells.names)
    shown = [[_pair_cell(cells, i, j, alpha) for j in range(n)] for i in range(n)]
    title = f"Every judge against every other: {measure}, row minus column"
    return matrix("significance", title, cells.names, cells.names, shown, corner="row minus column")


def _pair_cell(cells: PairCells, i: int, j: int, alpha: float) -> MatrixCell | None:
    difference, p = float(cells.difference[i, j]), float(cells.p[i, j])
    if i == j or np.isnan(difference):
        return None
    colour = ALIKE
    if not np.isnan(p) and p <= alpha and difference:
        colour = BETTER if difference > 0 else WORSE
    written = f"{difference:+.2f}".replace("0.", ".", 1).replace("-", "−")
    return MatrixCell(colour, (written, p_figure(p, "p —")), says=cells.words[i][j] if i < j else "")


def scatter_figure(
    labels: FloatArray, scores: FloatArray, *, scale: Scale, of: str, picked: int | None = None, width: int = HALF
) -> Drawing:
    """Draw scores (n,) against labels (n,), one point per item; the item at `picked` stands out.

    Equal labels and few distinct scores are spread a little, so that no point hides another.
    """
    across, along = np.random.default_rng(0).uniform(-1, 1, (2, labels.size)) * JITTER * (scale.step or 0.0)
    crowded = 4 * np.unique(scores).size < labels.size  # whole numbers, say
    x, y = labels + across, scores + along * crowded
    room = 0.04 * (scale.high - scale.low)
    ends = snapped(y.tolist())
    panel = Panel.sized(width, 420, (scale.low - room, scale.high + room), ends)
    parts = list(panel.ground(f"raters ({scale})", of))
    parts += [mark(*panel.at(x[k], y[k]), BLUE, size=4, opacity=0.55) for k in range(labels.size) if k != picked]
    if picked is not None:
        parts.append(mark(*panel.at(x[picked], y[picked]), AMBER, size=9))
    says = f"{counted(labels.size, 'item')}; labels from {number(labels.min())} to {number(labels.max())}."
    return drawing("scatter", f"{of} against the raters' labels", says, (width, 420), parts)


def curve_figure(
    bins: Sequence[ScoreBin],
    line: Sequence[tuple[float, float]],
    scale: Scale,
    *,
    on_scale: bool,
    points: Sequence[tuple[float, float]] = (),
    point: str = "an item",
    width: int = WIDE,
) -> Drawing:
    """Mean label at each stretch of scores, the map through them, and where score and label would be equal.

    `points`: score and label of items, drawn behind and named `point` in the legend.
    """
    signs = [Sign(point, PALE)] if points else []
    signs += [Sign("score = label", QUIET, None, "2 4")] if on_scale else []
    signs += [Sign("isotonic map", TEAL, None)] if line else []
    signs.append(Sign("mean label (number of items)", BLUE))
    scores = [*(own.mean_score for own in bins), *(x for x, _ in (*line, *points))]
    scores += [scale.low, scale.high] if on_scale else []
    low, high = min(scores, default=scale.low), max(scores, default=scale.high)
    room, aside = 0.04 * (scale.high - scale.low), 0.04 * ((high - low) or 1.0)
    ends = (low - aside, high + aside), (scale.low - room, scale.high + 3 * room)
    panel = Panel.sized(width, 380, *ends, signs=signs)
    parts = list(panel.ground("judge's score", "mean label of the raters"))
    for k, (x, y) in enumerate(points):  # points on one another are moved apart a little, always the same way
        aside_px, above_px = ((k * 0.618034) % 1 - 0.5) * 4, ((k * 0.754878) % 1 - 0.5) * 8
        parts.append(mark(panel.x(x) + aside_px, panel.y(y) + above_px, PALE, size=2.6, opacity=0.7))
    if on_scale:
        parts += path([panel.at(scale.low, scale.low), panel.at(scale.high, scale.high)], QUIET, dash="2 4")
    parts += path([panel.at(x, y) for x, y in line], TEAL, width=3)
    parts += path([panel.at(own.mean_score, own.mean_label) for own in bins] if points else [], BLUE, width=1.5)
    most = max((own.n for own in bins), default=1)
    for own in bins:
        x, y = panel.at(own.mean_score, own.mean_label)
        size = 4 + 7 * (own.n / most) ** 0.5
        parts += [mark(x, y, BLUE, size=size), words(f"{own.n:,}", x, y - size - 5, "middle")]
    said = [
        f"scores near {number(own.mean_score)}: mean label {number(own.mean_label)} ({counted(own.n, 'item')})"
        for own in bins
    ]
    return drawing("scores", "What scores mean in labels", f"{'; '.join(said)}.", (width, 380), parts)


def kept_figure(kept: Sequence[KeptShare], *, wrong: bool, width: int = WIDE) -> Drawing:
    """The error of the surest verdicts against the share kept, and the least that any choice could have.

    `wrong`: the error is a share of wrong answers, else points of the scale.
    """
    signs = [Sign("the surest are kept", BLUE), Sign("the least possible", QUIET, None, "6 4")]
    most = max((point.error for point in kept), default=1.0)
    panel = Panel.sized(width, 320, (0, 100), (0.0, 1.1 * (most or 1.0)), signs=signs)
    parts = list(panel.ground("% of the verdicts kept", "wrong answers" if wrong else "mean error in points"))
    parts += path([panel.at(100 * point.share, point.best) for point in kept], QUIET, dash="6 4")
    parts += path([panel.at(100 * point.share, point.error) for point in kept], BLUE)
    parts += panel.marks([(100 * point.share, point.error) for point in kept], BLUE, size=3)
    shown = [point for point in kept if round(100 * point.share) in (20, 40, 60, 80, 100)]
    said = [f"{percent(point.share)} kept: {number(point.error)}" for point in shown]
    return drawing("kept", "Error against the share of verdicts kept", f"{'; '.join(said)}.", (width, 320), parts)
