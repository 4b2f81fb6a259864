"""Ablations and analyses of a calibration: what each part of the judge brings, and what winning criteria looked like.

Points are candidates; a value with few of them under it shows them all, so that nobody takes three points for a law.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from core.report.figures.axes import HALF, WIDE, Axis, Panel, Sign
from core.report.figures.style import (
    AMBER,
    BLUE,
    INK,
    PALE,
    QUIET,
    TEAL,
    measure_name,
    value_range,
)
from core.report.figures.svg import Drawing, area, box, drawing, line, path, shortened, words
from core.report.figures.whiskers import bottom_axis, whisker
from core.wording import estimate, number, signed, signed_range

if TYPE_CHECKING:
    from core.calibration.ablate import AblationRow
    from core.calibration.analyse import Analyses, Kind, Line, PatternGroup

LEAST_FOR_BOX = 5
"""Quartiles of fewer candidates than this say less than the points themselves."""

JITTER = 0.16  # of the distance between two groups
LEVEL = 0.05  # of p after Holm's correction, below which a difference is drawn as beyond chance
_SIDE, _ROW, _HIGH = 190, 44, 340


def variant_name(row: AblationRow) -> str:
    """How a row is headed, e.g. "final judge (mean of 3)"."""
    n = len(row.criteria_ids)
    if row.key == "final":
        return f"final judge (mean of {n})" if n > 1 else "final judge"
    return row.key


def ablation_figure(rows: Sequence[AblationRow], *, measure: str) -> Drawing:
    """The variants below each other: alignment on both sides of the split, and what each loses or gains on held-out.

    The first of `rows` is the final judge, against which the others are measured; it has no difference of its own.
    """
    top = 30.0
    bottom = top + _ROW * len(rows)
    ends = value_range([alignment for row in rows for alignment in (row.calibration, row.held_out)])
    sides, gaps = Axis(*ends, _SIDE, 560), Axis(*_around_zero(rows), 610, WIDE - 60)
    parts = [words(f"held-out filled, calibration hollow; {measure}", _SIDE, 16, fill=QUIET)]
    parts.append(words("minus the final judge, held-out", gaps.start, 16, fill=QUIET))
    parts += [*bottom_axis(sides, top, bottom, ""), *bottom_axis(gaps, top, bottom, "")]
    said = []
    for k, row in enumerate(rows):
        y = top + _ROW * (k + 0.5)
        parts.append(words(shortened(variant_name(row), 30), _SIDE - 12, y + 4, "end"))
        parts += whisker(sides, y - 7, row.held_out.value, row.held_out.interval, colour=BLUE)
        parts += whisker(sides, y + 7, row.calibration.value, row.calibration.interval, colour=QUIET, shape="ring")
        if row.difference is not None:
            beyond = row.p_holm is not None and row.p_holm < LEVEL
            parts += whisker(gaps, y, row.difference, row.interval, colour=AMBER if beyond else QUIET, shape="diamond")
            parts.append(words(f"{row.difference:+.3f}".replace("-", "−"), WIDE, y + 4, "end"))
        said.append(_variant_words(row))
    parts.append(words("orange: differs beyond chance", gaps.start, bottom + 34, fill=AMBER, size=11))
    return drawing("ablation", "What each part brings", f"{'; '.join(said)}.", (WIDE, bottom + 40), parts)


def _variant_words(row: AblationRow) -> str:
    held = f"{variant_name(row)}: held-out {estimate(row.held_out)}, calibration {estimate(row.calibration)}"
    if row.difference is None:
        return held
    ends = "" if row.interval is None else f" {signed_range(row.interval)}"
    return f"{held}, minus the final judge {signed(row.difference)}{ends}"


def _around_zero(rows: Sequence[AblationRow]) -> tuple[float, float]:
    """An axis with 0 in it, a little wider than all intervals, at least ± .05."""
    known = [0.05, -0.05]
    for row in rows:
        if row.difference is not None:
            known += [row.difference] + ([row.interval.low, row.interval.high] if row.interval else [])
    reach = max(known) - min(known)
    return min(known) - 0.08 * reach, max(known) + 0.08 * reach


# ── what the candidates looked like ──────────────────────────────────────────────────────────────────────────


def size_figure(found: Analyses) -> Drawing:
    """Drafts by exemplar size: every draft a point, the median a bar, a box where there are at least 5 of them."""
    drafts = [place for place in found.places if place.kind == "draft"]
    sizes = sorted({draft.exemplars for draft in drafts})
    groups = [np.array([draft.value for draft in drafts if draft.exemplars == size]) for size in sizes]
    panel = Panel.sized(HALF, _HIGH, _sides(len(sizes)), _near([draft.value for draft in drafts]), below=2)
    names = [
        (float(k), (f"{size:g}", f"n = {own.size}")) for k, (size, own) in enumerate(zip(sizes, groups, strict=True))
    ]
    title, measure = "exemplars a draft was drawn from", measure_name(found.statistic, found.level)
    parts = list(panel.ground(title, measure, x_ticks=names))
    for k, own in enumerate(groups):
        low, middle, high = np.percentile(own, [25, 50, 75]).tolist()
        if own.size >= LEAST_FOR_BOX:
            (left, upper), (right, lower) = panel.at(k - 0.3, high), panel.at(k + 0.3, low)
            parts.append(line(panel.at(k, float(own.min())), panel.at(k, float(own.max())), QUIET))
            parts.append(box(left, upper, right - left, lower - upper, PALE, stroke=QUIET))
        parts.append(line(panel.at(k - 0.3, middle), panel.at(k + 0.3, middle), QUIET, width=3))
    spread = [(sizes.index(draft.exemplars) + _shift(k), draft.value) for k, draft in enumerate(drafts)]
    parts += panel.marks(spread, BLUE, opacity=0.75, size=4)
    said = [
        f"{size:g} exemplars: median {number(float(np.median(own)))}, n = {own.size}"
        for size, own in zip(sizes, groups, strict=True)
    ]
    return drawing("by_size", "Drafts by exemplar size", f"{'; '.join(said) or 'None'}.", (HALF, _HIGH), parts)


def length_figure(found: Analyses) -> Drawing:
    """Alignment over the length of the criteria in words, with the regression line and the 95 % band of its mean."""
    fit = found.by_length
    lengths, values = [place.words for place in found.places] or [0], [place.value for place in found.places]
    margin = max(3.0, 0.05 * (max(lengths) - min(lengths)))
    looks = [(name, colour, [place for place in found.places if place.kind == name]) for name, colour in _KINDS]
    signs = [Sign(name, colour) for name, colour, own in looks if own]
    signs += [Sign("least squares, 95 % band" if fit.low else "least squares", INK, None)] if fit.middle else []
    across, upwards = (min(lengths) - margin, max(lengths) + margin), _near([*values, *_inside(fit, values)])
    panel = Panel.sized(HALF, _HIGH, across, upwards, signs=signs)
    parts = list(panel.ground("words in the criteria", measure_name(found.statistic, found.level)))
    if fit.low:
        around = [*zip(fit.words, fit.high, strict=True), *list(zip(fit.words, fit.low, strict=True))[::-1]]
        parts.append(area([panel.at(x, y) for x, y in around], BLUE))
    parts += path([panel.at(x, y) for x, y in zip(fit.words, fit.middle, strict=False)], INK)
    for _, colour, own in looks:
        parts += panel.marks([(place.words, place.value) for place in own], colour, opacity=0.75, size=4)
    slope = "" if fit.slope is None else f" {signed(fit.slope)} for 100 words more."
    says = f"{len(values):,} criteria of {min(lengths):,} to {max(lengths):,} words.{slope}"
    return drawing("by_length", "Alignment by length of the criteria", says, (HALF, _HIGH), parts)


_KINDS: tuple[tuple[Kind, str], ...] = (("draft", BLUE), ("refinement", TEAL), ("fitted strengths", AMBER))


def pattern_figure(found: Analyses) -> Drawing:
    """Groups of criteria: every one a point, the mean a diamond with its interval; an empty group keeps its place."""
    groups = found.by_pattern
    ends = [end for group in groups if group.interval for end in (group.interval.low, group.interval.high)]
    upwards = _near([*(place.value for place in found.places), *ends])
    panel = Panel.sized(HALF, _HIGH, _sides(len(groups)), upwards, below=2)
    names = [(float(k), (group.pattern, f"n = {group.n}")) for k, group in enumerate(groups)]
    measure = measure_name(found.statistic, found.level)
    parts = list(panel.ground("pattern of the criteria", measure, x_ticks=names))
    for k, group in enumerate(groups):
        own = [place.value for place in found.places if place.pattern == group.pattern]
        parts += panel.marks([(k + _shift(i), value) for i, value in enumerate(own)], PALE, size=4)
        parts += _mean(panel, k, group)
    said = [f"{group.pattern}: mean {number(group.mean)}, n = {group.n}" for group in groups]
    return drawing("by_pattern", "Alignment by pattern of the criteria", f"{'; '.join(said)}.", (HALF, _HIGH), parts)


def _mean(panel: Panel, k: int, group: PatternGroup) -> Iterator[Markup]:
    if group.mean is None:
        yield words("none", panel.x(k), (panel.y.start + panel.y.end) / 2, "middle")
        return
    yield from panel.whisker(k, group.interval, TEAL, width=2)
    yield from panel.marks([(k, group.mean)], TEAL, "diamond", size=6)
    x, y = panel.at(k + JITTER + 0.06, group.mean)
    yield words(f"{group.mean:.3f}", x, y + 4, weight="bold")


def _shift(k: int) -> float:
    """Steps sideways that keep points of one group apart: the golden ratio spreads any number of them evenly."""
    return JITTER * (2.0 * math.modf(0.5 + k * 0.6180339887)[0] - 1.0)


def _sides(n: int) -> tuple[float, float]:
    return -0.6, max(n, 1) - 0.4


def _near(values: Sequence[float]) -> tuple[float, float]:
    """Ends of an axis close around the values: what is compared is their spread, not their distance from 0."""
    known = list(values) or [0.0]
    reach = max(max(known) - min(known), 0.1)
    return max(min(known) - 0.1 * reach, -1.02), min(max(known) + 0.12 * reach, 1.02)


def _inside(fit: Line, values: Sequence[float]) -> list[float]:
    """The ends of the band, as far as half the spread of the points: a band of four points may reach anywhere."""
    if not fit.low:
        return []
    reach = max(max(values) - min(values), 0.1) / 2
    return [max(min(fit.low), min(values) - reach), min(max(fit.high), max(values) + reach)]
