"""Charts of the candidates of a calibration: in the order found, by exemplar size, and by length.

Axes stay as they are while a run grows.  An undefined alignment is not drawn, and never drawn as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from core.records import Alignment
from core.report.figures.chart import HALF, Series, chart, ends_of, level_line, snapped
from core.report.figures.svg import AMBER, BLUE, PALE, TEAL, Drawing, Shape
from core.wording import counted, estimate, measure_name, number

if TYPE_CHECKING:
    from core.calibration.ablate import Analyses, Kind

_COLOURS = {"stopped": PALE, "rejected": PALE, "not finished": BLUE, "kept": BLUE, "chosen": TEAL}
"""Groups of candidates, the last in front."""
_SHAPES: dict[str, Shape] = {"chosen": "diamond", "rejected": "ring", "not finished": "ring"}
CROWDED = 40
"""With more candidates than this, all but the chosen ones are pale and small."""
_KINDS: dict[Kind, str] = {"draft": BLUE, "refinement": TEAL, "fitted strengths": AMBER}


def candidates_figure(
    candidates: Sequence[tuple[str, str, Alignment | None]],
    baseline: Alignment | None,
    *,
    measure: str,
    slots: int = 0,
) -> Drawing:
    """Draw the alignment of every candidate (name, group, alignment) in the order they were made.

    `slots` is how many candidates are expected in all, which fixes the horizontal axis from the start.
    """
    known = [
        (place, name, group, alignment, alignment.value)
        for place, (name, group, alignment) in enumerate(candidates, 1)
        if alignment is not None and alignment.value is not None
    ]
    x = ("candidates, in the order they were drafted", 0.0, max(slots, len(candidates), 1) + 1.0)
    series, held = [], ends_of(baseline)
    for group, colour in _COLOURS.items():
        own = [(place, alignment, value) for place, _, of, alignment, value in known if of == group]
        quiet = len(candidates) > CROWDED and group != "chosen"
        points, intervals = [(place, value) for place, _, value in own], [found.interval for _, found, _ in own]
        shape, size = _SHAPES.get(group, "dot"), 2.5 if quiet else 4
        series += [Series(group, PALE if quiet else colour, points, shape, size, intervals=intervals)] if own else []
    says = "No candidate is measured yet."
    if known:
        _, best, _, highest, _ = max(known, key=lambda own: own[-1])
        says = f"{len(known):,} of {counted(len(candidates), 'candidate')} measured. Highest: {best}, "
        says += f"{estimate(highest)}." + ("" if baseline is None else f" Baseline: {estimate(baseline)}.")
    if baseline is not None and baseline.value is not None:
        series.append(level_line(f"baseline {number(baseline.value)}", baseline.value, AMBER, x))
    for _, _, _, alignment, _ in known:
        held += ends_of(alignment)
    return chart("candidates", "Every candidate", says, series, x=x, y=(measure, *snapped(held)))


def size_figure(found: Analyses) -> Drawing:
    """Draw the alignment of drafts by exemplar size, with the median of each size."""
    drafts = [place for place in found.places if place.kind == "draft"]
    sizes = sorted({draft.exemplars for draft in drafts})
    values = {size: [draft.value for draft in drafts if draft.exemplars == size] for size in sizes}
    points = [(float(k), value) for k, own in enumerate(values.values()) for value in own]
    medians = [(float(k), float(np.median(own))) for k, own in enumerate(values.values())]
    said = [
        f"{size:g} exemplars: median {number(median)}, n = {len(own)}"
        for (size, own), (_, median) in zip(values.items(), medians, strict=True)
    ]
    return chart(
        "by_size",
        "Drafts by exemplar size",
        f"{'; '.join(said) or 'None'}.",
        [Series("a draft", BLUE, points, size=4, opacity=0.5), Series("median", AMBER, medians, "diamond", size=6)],
        x=("exemplars a draft was drawn from", -0.6, max(len(sizes), 1) - 0.4),
        y=(measure_name(found.statistic, found.level), *_near([draft.value for draft in drafts])),
        ticks=[(k, f"{size:g} (n = {len(own)})") for k, (size, own) in enumerate(values.items())],
        width=HALF,
    )


def length_figure(found: Analyses) -> Drawing:
    """Draw the alignment of candidates over the length of their criteria in words."""
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
    """Return the ends of an axis close around the values: their spread matters, not their distance from 0."""
    known = list(values) or [0.0]
    reach = max(max(known) - min(known), 0.1)
    return max(min(known) - 0.1 * reach, -1.02), min(max(known) + 0.12 * reach, 1.02)
