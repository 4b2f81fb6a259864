"""How many fall where: labels over their scale, and the judge's scores next to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from core.findings.weak_spots import distribution_words
from core.records import AspectLabels, FloatArray, Scale
from core.report.figures.chart import HALF, WIDE
from core.report.figures.svg import AMBER, BLUE, QUIET, Drawing, box, drawing, line, shortened, words
from core.wording import counted, percent

if TYPE_CHECKING:
    from core.comparison.examination import Distribution

_MOST_STEPS, _PARTS = 11, 10
_NUMBER = 5.0
"""Width of a letter of a number."""
_LEFT = 8.0


def label_bars(labels: FloatArray, scale: Scale) -> dict[str, int]:
    """Name → how many labels: by step where all of (n,) lie on steps of the scale, else in ten parts of equal width.

    Where the scale has no step, whole numbers are steps of 1.  Parts are closed below; the last is closed above too.
    Labels beyond an end have bars as well.
    """
    low, high = float(labels.min(initial=scale.low)), float(labels.max(initial=scale.high))
    step = scale.step or (1.0 if labels.size and np.all(np.mod(labels, 1) == 0) else 0.0)
    steps = round((high - low) / step) + 1 if step else 0
    numbers = (labels - low) / step if step else labels
    if 1 < steps <= _MOST_STEPS and np.allclose(numbers, np.round(numbers), atol=1e-9):
        counts = np.bincount(np.round(numbers).astype(np.intp), minlength=steps)
        return {f"{low + k * step:g}": int(n) for k, n in enumerate(counts)}
    counts, edges = np.histogram(labels, bins=_PARTS, range=(low, high))
    return {f"{edges[k]:.3g}–{edges[k + 1]:.3g}": int(n) for k, n in enumerate(counts)}


def labels_figure(labels: AspectLabels, *, width: int = HALF) -> Drawing:
    """How the labels of one aspect spread over its scale."""
    values = np.array([value for value in labels.values if value is not None], dtype=np.float64)
    bars = label_bars(values, labels.scale)
    head = f"{labels.aspect} ({labels.scale}), {counted(values.size, 'labelled item')}"
    says = "; ".join(f"{name}: {n:,}" for name, n in bars.items())
    series = [("", list(bars.values()), [f"{n:,}" for n in bars.values()], BLUE)]
    return _bars(("labels", head, f"{says}."), list(bars), series, width, head)


def distribution_figure(distribution: Distribution, *, width: int = WIDE) -> Drawing:
    """The share of raters' labels (blue) and of the judge's scores (amber) in each part of the scale."""
    sides = [("raters", distribution.people.shares, BLUE)]
    if distribution.judge is not None:
        sides.append(("judge", distribution.judge.shares, AMBER))
    series, said = [], []
    for name, shares, colour in sides:
        written = [percent(share) for share in shares]
        said.append(f"{name}: " + ", ".join(map(" ".join, zip(distribution.parts, written, strict=True))))
        short = [text.replace("under", "<").replace("over", ">") for text in written]
        series.append((name, shares, short, colour))
    title = "Raters' labels and the judge's scores over the scale"
    says = f"{'; '.join(said)}. {distribution_words(distribution)}"
    return _bars(("distribution", title, says), distribution.parts, series, width, "")


def _bars(
    about: tuple[str, str, str],
    names: Sequence[str],
    series: Sequence[tuple[str, Sequence[float], Sequence[str], str]],
    width: int,
    head: str,
) -> Drawing:
    """Groups of bars, one of each of `series` (name, heights, what is written above them, colour)."""
    top, bottom = 44.0, 164.0
    breadth = (width - 2 * _LEFT) / max(len(names), 1)
    bar = breadth * 0.8 / len(series)
    highest = max((value for _, values, _, _ in series for value in values), default=0) or 1
    every = -(-max((_NUMBER * len(text) + 6 for text in names), default=0) // breadth) or 1
    parts = [line((_LEFT, bottom), (width - _LEFT, bottom), QUIET)]
    parts += [words(shortened(head, 60), _LEFT, 16, weight="bold")] if head else []
    for place, (name, values, written, colour) in enumerate(series):
        if name:
            parts += [box(_LEFT + 90 * place, 8, 12, 12, colour), words(name, _LEFT + 90 * place + 18, 18)]
        for k, (value, text) in enumerate(zip(values, written, strict=True)):
            x, height = _LEFT + (k + 0.1) * breadth + place * bar, (bottom - top) * value / highest
            parts.append(box(x, bottom - height, bar * 0.94, height, colour))
            if not name or bar >= 26:
                parts.append(words(text, x + bar / 2, bottom - height - 6, "middle", size=11 if name else 12))
    for k, text in enumerate(names):
        if k % every == 0:
            parts.append(words(text, _LEFT + (k + 0.5) * breadth, bottom + 16, "middle", fill=QUIET, size=11))
    return drawing(*about, (width, bottom + 24), parts)
