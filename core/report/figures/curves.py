"""Charts of scores compared with labels, of mean labels by score, and of the distribution of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from core.records import AspectLabels, FloatArray, Scale
from core.report.figures.chart import HALF, WIDE, Series, chart
from core.report.figures.svg import AMBER, BLUE, QUIET, TEAL, Drawing, box, drawing, line, shortened, words
from core.wording import counted, number

if TYPE_CHECKING:
    from core.comparison.sureness import ScoreBin

JITTER = 0.12  # share of a step, so that equal labels don't hide each other


def scatter_figure(
    labels: FloatArray, scores: FloatArray, *, scale: Scale, of: str, picked: int | None = None
) -> Drawing:
    """Draw scores (n,) against labels (n,), one point per item. The item at index `picked` has another colour."""
    across, along = np.random.default_rng(0).uniform(-1, 1, (2, labels.size)) * JITTER * (scale.step or 0.0)
    crowded = 4 * np.unique(scores).size < labels.size  # for example whole numbers
    points = list(
        zip((labels + across).clip(scale.low, scale.high).tolist(), (scores + along * crowded).tolist(), strict=True)
    )
    heights = [y for _, y in points]
    room, above = 0.04 * (scale.high - scale.low), 0.06 * (max(heights) - min(heights)) or 0.1
    series = [Series("", BLUE, [point for k, point in enumerate(points) if k != picked], size=4, opacity=0.55)]
    series += [] if picked is None else [Series("", AMBER, [points[picked]], size=9)]
    return chart(
        "scatter",
        f"{of} compared with the raters' labels",
        f"{counted(labels.size, 'item')}; labels from {number(labels.min())} to {number(labels.max())}.",
        series,
        x=(f"raters ({scale})", scale.low - room, scale.high + room),
        y=(of, min(heights) - above, max(heights) + above),
        width=HALF,
    )


def curve_figure(
    bins: Sequence[ScoreBin], line: Sequence[tuple[float, float]], scale: Scale, *, on_scale: bool, width: int = WIDE
) -> Drawing:
    """Draw the mean label of each bin of scores, the isotonic map, and the line where score and label are equal."""
    means = [(own.mean_score, own.mean_label) for own in bins]
    scores, series = [x for x, _ in (*means, *line)], list[Series]()
    if on_scale:
        scores += [scale.low, scale.high]
        ends = [(scale.low, scale.low), (scale.high, scale.high)]
        series.append(Series("score = label", QUIET, ends, None, line=2, dash="2 4"))
    if line:
        series.append(Series("isotonic map", TEAL, line, shape=None, line=3))
    series.append(Series("mean label (number of items)", BLUE, means, size=6, said=[f"{own.n:,}" for own in bins]))
    low, high = min(scores, default=scale.low), max(scores, default=scale.high)
    room, aside = 0.04 * (scale.high - scale.low), 0.04 * ((high - low) or 1.0)
    near = [
        f"scores near {number(own.mean_score)}: mean label {number(own.mean_label)} ({counted(own.n, 'item')})"
        for own in bins
    ]
    return chart(
        "scores",
        "Mean label at each score",
        f"{'; '.join(near)}.",
        series,
        x=("judge's score", low - aside, high + aside),
        y=("raters' mean label", scale.low - room, scale.high + 3 * room),
        width=width,
    )


# ── bars ─────────────────────────────────────────────────────────────────────────────────────────────────────

_MOST_STEPS, _PARTS = 11, 10
_NUMBER = 5.0
"""Width of a letter of a number."""
_LEFT = 8.0


def label_bars(labels: FloatArray, scale: Scale) -> dict[str, int]:
    """Count labels (n,) for a bar chart. Return a dict from the name of each bar to its count.

    There is a bar for each step of the scale, or for each whole number if the scale has no step. Labels between two
    steps count for the nearest step. Labels outside the scale have bars too.

    Ten equal ranges replace the steps in two cases: there are too many steps, or there are only two steps and some
    labels lie between them.
    """
    low, high = float(labels.min(initial=scale.low)), float(labels.max(initial=scale.high))
    step = scale.step or 1.0
    numbers = (labels - scale.low) / step
    nearest = np.floor(numbers + 0.5 + 1e-9).astype(np.intp)
    on_steps = bool(np.allclose(numbers, nearest, atol=1e-9))
    first = int(nearest.min(initial=0))
    last = int(nearest.max(initial=round((scale.high - scale.low) / step)))
    if (2 if on_steps else 3) <= last - first + 1 <= _MOST_STEPS:
        counts = np.bincount(nearest - first, minlength=last - first + 1)
        return {f"{scale.low + (first + k) * step:g}": int(n) for k, n in enumerate(counts)}
    counts, edges = np.histogram(labels, bins=_PARTS, range=(low, high))
    return {f"{edges[k]:.3g}–{edges[k + 1]:.3g}": int(n) for k, n in enumerate(counts)}


def labels_figure(labels: AspectLabels, *, width: int = HALF) -> Drawing:
    """Draw the distribution of the labels of one aspect over its scale."""
    values = np.array([value for value in labels.values if value is not None], dtype=np.float64)
    bars = label_bars(values, labels.scale)
    head = f"{labels.aspect} ({labels.scale}), {counted(values.size, 'labelled item')}"
    says = "; ".join(f"{name}: {n:,}" for name, n in bars.items())
    top, bottom, breadth, highest = 44.0, 164.0, (width - 2 * _LEFT) / len(bars), max(bars.values()) or 1
    every = -(-max(_NUMBER * len(name) + 6 for name in bars) // breadth)  # skip names that would overlap
    parts = [line((_LEFT, bottom), (width - _LEFT, bottom), QUIET)]
    parts.append(words(shortened(head, 60), _LEFT, 16, weight="bold"))
    for k, (name, n) in enumerate(bars.items()):
        x, height = _LEFT + (k + 0.5) * breadth, (bottom - top) * n / highest
        parts.append(box(x - 0.4 * breadth, bottom - height, 0.76 * breadth, height, BLUE))
        parts.append(words(f"{n:,}", x, bottom - height - 6, "middle"))
        if k % every == 0:
            parts.append(words(name, x, bottom + 16, "middle", fill=QUIET, size=11))
    return drawing("labels", head, f"{says}.", (width, bottom + 24), parts)
