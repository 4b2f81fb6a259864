"""What the candidates of a calibration looked like: exemplar size and length of the criteria.

Points are candidates; a value with few of them under it shows them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from core.report.figures.axes import HALF, Panel, Sign
from core.report.figures.style import AMBER, BLUE, PALE, QUIET, TEAL, measure_name
from core.report.figures.svg import Drawing, box, drawing, line
from core.wording import number

if TYPE_CHECKING:
    from core.calibration.ablate import Analyses, Kind

LEAST_FOR_BOX = 5
"""Quartiles of fewer candidates than this say less than the points themselves."""
JITTER = 0.16  # of the distance between two groups
_HIGH = 340
_KINDS: tuple[tuple[Kind, str], ...] = (("draft", BLUE), ("refinement", TEAL), ("fitted strengths", AMBER))


def size_figure(found: Analyses) -> Drawing:
    """Drafts by exemplar size: every draft a point, the median a bar, a box where there are at least 5 of them."""
    drafts = [place for place in found.places if place.kind == "draft"]
    sizes = sorted({draft.exemplars for draft in drafts})
    groups = [(f"{size:g}", [draft.value for draft in drafts if draft.exemplars == size]) for size in sizes]
    ends = _near([draft.value for draft in drafts])
    panel = Panel.sized(HALF, _HIGH, (-0.6, max(len(groups), 1) - 0.4), ends, below=2)
    ticks = [(float(k), (name, f"n = {len(own)}")) for k, (name, own) in enumerate(groups)]
    measure = measure_name(found.statistic, found.level)
    parts = list(panel.ground("exemplars a draft was drawn from", measure, x_ticks=ticks))
    for k, (_, own) in enumerate(groups):
        low, middle, high = np.percentile(own, [25, 50, 75]).tolist()
        if len(own) >= LEAST_FOR_BOX:
            (left, upper), (right, lower) = panel.at(k - 0.3, high), panel.at(k + 0.3, low)
            parts.append(line(panel.at(k, min(own)), panel.at(k, max(own)), QUIET))
            parts.append(box(left, upper, right - left, lower - upper, PALE, stroke=QUIET))
        parts.append(line(panel.at(k - 0.3, middle), panel.at(k + 0.3, middle), QUIET, width=3))
        # steps sideways keep points apart: the golden ratio spreads any number of them evenly
        shifts = [JITTER * (2.0 * math.modf(0.5 + i * 0.6180339887)[0] - 1.0) for i in range(len(own))]
        spread = [(k + shift, value) for shift, value in zip(shifts, own, strict=True)]
        parts += panel.marks(spread, BLUE, opacity=0.75, size=4)
    said = [f"{name} exemplars: median {number(float(np.median(own)))}, n = {len(own)}" for name, own in groups]
    return drawing("by_size", "Drafts by exemplar size", f"{'; '.join(said) or 'None'}.", (HALF, _HIGH), parts)


def length_figure(found: Analyses) -> Drawing:
    """Alignment over the length of the criteria in words."""
    lengths, values = [place.words for place in found.places] or [0], [place.value for place in found.places]
    margin = max(3.0, 0.05 * (max(lengths) - min(lengths)))
    looks = [(name, colour, [place for place in found.places if place.kind == name]) for name, colour in _KINDS]
    signs = [Sign(name, colour) for name, colour, own in looks if own]
    across = (min(lengths) - margin, max(lengths) + margin)
    panel = Panel.sized(HALF, _HIGH, across, _near(values), signs=signs)
    parts = list(panel.ground("words in the criteria", measure_name(found.statistic, found.level)))
    for _, colour, own in looks:
        parts += panel.marks([(place.words, place.value) for place in own], colour, opacity=0.75, size=4)
    says = f"{len(values):,} criteria of {min(lengths):,} to {max(lengths):,} words."
    return drawing("by_length", "Alignment by length of the criteria", says, (HALF, _HIGH), parts)


def _near(values: Sequence[float]) -> tuple[float, float]:
    """Ends of an axis close around the values: their spread matters, not their distance from 0."""
    known = list(values) or [0.0]
    reach = max(max(known) - min(known), 0.1)
    return max(min(known) - 0.1 * reach, -1.02), min(max(known) + 0.12 * reach, 1.02)
