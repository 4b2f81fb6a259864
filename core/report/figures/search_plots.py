"""Draw the candidates of a calibration: in drafting order, by number of exemplars, or by length.

Axes stay fixed while a run grows. Undefined alignments are left out, never drawn as 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.records import Alignment
from core.report.figures.chart import Series, chart, ends_of, level_line, rounded_ends
from core.report.figures.svg import AMBER, BLUE, PALE, TEAL, Drawing, Shape
from core.wording import counted, estimate, number

_COLOURS = {"stopped": PALE, "rejected": PALE, "not finished": BLUE, "kept": BLUE, "chosen": TEAL}
"""Groups of candidates, the last in front."""
_SHAPES: dict[str, Shape] = {"chosen": "diamond", "rejected": "ring", "not finished": "ring"}
CROWDED = 40
"""With more candidates than this, all but the chosen ones are pale and small."""


def candidates_figure(
    candidates: Sequence[tuple[str, str, Alignment | None]],
    baseline: Alignment | None,
    *,
    measure: str,
    slots: int = 0,
    along: str = "candidates, in drafting order",
    places: Sequence[float] = (),
) -> Drawing:
    """Draw the alignment of each candidate.

    Args:
        candidates: Name, group and alignment of each candidate.
        baseline: Alignment of the baseline.
        measure: Title of the vertical axis.
        slots: Expected number of candidates, which fixes the length of the horizontal axis from the start.
        along: Title of the horizontal axis.
        places: Positions of the candidates on the horizontal axis; empty for 1, 2, 3, and so on.
    """
    at = places or range(1, len(candidates) + 1)
    known = [
        (place, name, group, alignment, alignment.value)
        for place, (name, group, alignment) in zip(at, candidates, strict=True)
        if alignment is not None and alignment.value is not None
    ]
    x = (along, 0.0, max(slots, 1, *at) + 1.0)
    series, held = [], ends_of(baseline)
    for group, colour in _COLOURS.items():
        own = [(place, alignment, value) for place, _, of, alignment, value in known if of == group]
        quiet = len(candidates) > CROWDED and group != "chosen"
        points, intervals = [(place, value) for place, _, value in own], [found.interval for _, found, _ in own]
        shape, size = _SHAPES.get(group, "dot"), 2.5 if quiet else 4
        series += [Series(group, PALE if quiet else colour, points, shape, size, intervals=intervals)] if own else []
    says = "No candidate has been measured yet."
    if known:
        _, best, _, highest, _ = max(known, key=lambda own: own[-1])
        says = f"{len(known):,} of {counted(len(candidates), 'candidate')} measured. Highest: {best}, "
        says += f"{estimate(highest)}." + ("" if baseline is None else f" Baseline: {estimate(baseline)}.")
    if baseline is not None and baseline.value is not None:
        series.append(level_line(f"baseline {number(baseline.value)}", baseline.value, AMBER, x))
    for _, _, _, alignment, _ in known:
        held += ends_of(alignment)
    return chart("candidates", "All candidates", says, series, x=x, y=(measure, *rounded_ends(held)))
