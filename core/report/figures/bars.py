"""How many fall where: labels over their scale, and any counts by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.records import AspectLabels, FloatArray, Scale
from core.report.figures.axes import HALF
from core.report.figures.style import BLUE, QUIET
from core.report.figures.svg import Drawing, box, drawing, line, shortened, words
from core.wording import counted

_MOST_STEPS, _PARTS = 11, 10
_NUMBER = 5.0
"""Width of a letter of a number."""


@dataclass(frozen=True, slots=True)
class LabelBar:
    """`n` labels from `low` to `high`; both are the same where labels are steps."""

    low: float
    high: float
    n: int

    @property
    def name(self) -> str:
        return f"{self.low:g}" if self.low == self.high else f"{self.low:.3g}–{self.high:.3g}"


def label_bars(labels: FloatArray, scale: Scale) -> tuple[LabelBar, ...]:
    """Labels (n,) counted by step where all lie on steps of the scale, else in ten parts of it of equal width.

    Where the scale has no step, whole numbers are steps of 1.  Parts are closed below; the last is closed above too.
    Labels beyond an end, as before a scale is put right, have bars as well.
    """
    low, high = float(labels.min(initial=scale.low)), float(labels.max(initial=scale.high))
    step = scale.step or (1.0 if labels.size and np.all(np.mod(labels, 1) == 0) else 0.0)
    steps = round((high - low) / step) + 1 if step else 0
    numbers = (labels - low) / step if step else labels
    if 1 < steps <= _MOST_STEPS and np.allclose(numbers, np.round(numbers), atol=1e-9):
        counts = np.bincount(np.round(numbers).astype(np.intp), minlength=steps)
        values = [low + k * step for k in range(steps)]
        return tuple(LabelBar(value, value, int(n)) for value, n in zip(values, counts, strict=True))
    counts, edges = np.histogram(labels, bins=_PARTS, range=(low, high))
    return tuple(LabelBar(float(edges[k]), float(edges[k + 1]), int(n)) for k, n in enumerate(counts))


def labels_figure(labels: AspectLabels, *, width: int = HALF) -> Drawing:
    """How the labels of one aspect spread over its scale."""
    values = np.array([value for value in labels.values if value is not None], dtype=np.float64)
    bars = label_bars(values, labels.scale)
    head = f"{labels.aspect} ({labels.scale}), {counted(values.size, 'labelled item')}"
    return bars_figure("labels", head, [bar.name for bar in bars], [bar.n for bar in bars], width=width, head=head)


def bars_figure(
    name: str, title: str, names: Sequence[str], counts: Sequence[int], *, width: int, head: str = ""
) -> Drawing:
    """Upright bars with their counts above and their names below; `head` stands above all."""
    left = 8.0
    top, bottom = (44.0, 164.0) if head else (22.0, 150.0)
    breadth = (width - 2 * left) / max(len(counts), 1)
    every = -(-max((_NUMBER * len(text) + 6 for text in names), default=0) // breadth) or 1
    parts = [line((left, bottom), (width - left, bottom), QUIET)]
    parts += [words(shortened(head, 60), left, 16, weight="bold")] if head else []
    for k, (text, n) in enumerate(zip(names, counts, strict=True)):
        height, x = (bottom - top) * n / max([*counts, 1]), left + k * breadth
        parts.append(box(x + breadth * 0.12, bottom - height, breadth * 0.76, height, BLUE))
        parts.append(words(f"{n:,}", x + breadth / 2, bottom - height - 6, "middle"))
        if k % every == 0:
            parts.append(words(text, x + breadth / 2, bottom + 16, "middle", fill=QUIET, size=11))
    described = "; ".join(f"{text}: {n:,}" for text, n in zip(names, counts, strict=True))
    return drawing(name, title, f"{described}.", (width, bottom + 24), parts)
