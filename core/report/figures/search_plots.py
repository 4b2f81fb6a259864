"""The candidates of a calibration: as they are found, and by exemplar size and length of the criteria.

Axes stay as they are while a run grows (so that nothing jumps), and an undefined alignment is drawn as nothing rather
than as 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from core.records import Alignment
from core.report.figures.chart import HALF, Series, chart, ends_of, level_line, snapped
from core.report.figures.svg import AMBER, BLUE, PALE, QUIET, TEAL, Drawing, Shape
from core.wording import counted, estimate, measure_name, number

if TYPE_CHECKING:
    from core.calibration.ablate import Analyses, Kind

_COLOURS = {"stopped": PALE, "rejected": PALE, "not finished": BLUE, "kept": BLUE, "chosen": TEAL}
"""Groups of candidates, the last in front; those out of the race keep quiet."""
_SHAPES: dict[str, Shape] = {"chosen": "diamond", "rejected": "ring", "not finished": "ring"}
CROWDED = 40
"""More candidates than these, and all but the chosen ones keep quiet: the chosen one has to be found."""
_KINDS: dict[Kind, str] = {"draft": BLUE, "refinement": TEAL, "fitted strengths": AMBER}
JITTER = 0.16  # of the distance between two groups


def candidates_figure(
    candidates: Sequence[tuple[str, str, Alignment | None]],
    baseline: Alignment | None,
    *,
    measure: str,
    slots: int = 0,
) -> Drawing:
    """Alignment with its interval for every candidate (name, group, alignment), in the order of their making.

    `slots` is how many candidates are expected in all: it fixes the horizontal axis from the start.
    """
    known = [
        (place, name, group, alignment, alignment.value)
        for place, (name, group, alignment) in enumerate(candidates, 1)
        if alignment is not None and alignment.value is not None
    ]
    x = ("candidates, in the order they were drafted", 0.0, max(slots, len(candidates), 1) + 1.0)
    series = []
    for group, colour in _COLOURS.items():
        own = [(place, value, alignment.interval) for place, _, of, alignment, value in known if of == group]
        if own:
            quiet = len(candidates) > CROWDED and group != "chosen"
            points, intervals = [(place, value) for place, value, _ in own], [ends for *_, ends in own]
            shape, size = _SHAPES.get(group, "dot"), 2.5 if quiet else 4
            series.append(Series(group, PALE if quiet else colour, points, shape, size, intervals=intervals))
    says = "No candidate is measured yet."
    if known:
        _, best, _, highest, _ = max(known, key=lambda own: own[-1])
        says = f"{len(known):,} of {counted(len(candidates), 'candidate')} measured. Highest: {best}, "
        says += f"{estimate(highest)}." + ("" if baseline is None else f" Baseline: {estimate(baseline)}.")
    if baseline is not None and baseline.value is not None:
        series.append(level_line(f"baseline {number(baseline.value)}", baseline.value, AMBER, x))
    held = [end for *_, alignment, _ in known for end in ends_of(alignment)] + ends_of(baseline)
    return chart("candidates", "Every candidate", says, series, x=x, y=(measure, *snapped(held)))


def size_figure(found: Analyses) -> Drawing:
    """Drafts by exemplar size: every draft a point, the median a bar."""
    drafts = [place for place in found.places if place.kind == "draft"]
    sizes = sorted({draft.exemplars for draft in drafts})
    points, bars, ticks, said = list[tuple[float, float]](), list[tuple[float, float | None]](), [], []
    for k, size in enumerate(sizes):
        own = [draft.value for draft in drafts if draft.exemplars == size]
        middle = float(np.median(own))
        bars += [(k - 0.3, middle), (k + 0.3, middle), (k, None)]
        # steps sideways keep points apart: the golden ratio spreads any number of them evenly
        shifts = [JITTER * (2.0 * math.modf(0.5 + i * 0.6180339887)[0] - 1.0) for i in range(len(own))]
        points += [(k + shift, value) for shift, value in zip(shifts, own, strict=True)]
        ticks.append((k, f"{size:g} (n = {len(own)})"))
        said.append(f"{size:g} exemplars: median {number(middle)}, n = {len(own)}")
    return chart(
        "by_size",
        "Drafts by exemplar size",
        f"{'; '.join(said) or 'None'}.",
        [
            Series("median", QUIET, bars, shape=None, line=3),
            Series("a draft", BLUE, points, size=4, opacity=0.75),
        ],
        x=("exemplars a draft was drawn from", -0.6, max(len(sizes), 1) - 0.4),
        y=(measure_name(found.statistic, found.level), *_near([draft.value for draft in drafts])),
        ticks=ticks,
        width=HALF,
    )


def length_figure(found: Analyses) -> Drawing:
    """Alignment over the length of the criteria in words."""
    lengths, values = [place.words for place in found.places] or [0], [place.value for place in found.places]
    margin = max(3.0, 0.05 * (max(lengths) - min(lengths)))
    looks = [(kind, [(place.words, place.value) for place in found.places if place.kind == kind]) for kind in _KINDS]
    return chart(
        "by_length",
        "Alignment by length of the criteria",
        f"{len(values):,} criteria of {min(lengths):,} to {max(lengths):,} words.",
        [Series(kind, _KINDS[kind], own, size=4, opacity=0.75) for kind, own in looks if own],
        x=("words in the criteria", min(lengths) - margin, max(lengths) + margin),
        y=(measure_name(found.statistic, found.level), *_near(values)),
        width=HALF,
    )


def _near(values: Sequence[float]) -> tuple[float, float]:
    """Ends of an axis close around the values: their spread matters, not their distance from 0."""
    known = list(values) or [0.0]
    reach = max(max(known) - min(known), 0.1)
    return max(min(known) - 0.1 * reach, -1.02), min(max(known) + 0.12 * reach, 1.02)
