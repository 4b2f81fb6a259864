"""Where a judge fails: its alignment in every part of the items, and its scores beside people's labels."""

from __future__ import annotations

from itertools import groupby

from core.comparison.examination import Distribution, Examination
from core.comparison.fails import Part
from core.findings.weak_spots import DIVISIONS, distribution_words
from core.report.figures.axes import WIDE
from core.report.figures.style import AMBER, BLUE, QUIET, measure_name
from core.report.figures.svg import Drawing, box, drawing, line, words
from core.report.figures.whiskers import Row, whiskers
from core.wording import percent

_NUMBER = 5.0
"""Width of a letter of a number."""


def parts_figure(examination: Examination, *, most: int = 40, width: int = WIDE) -> Drawing:
    """Every part with its interval, division by division; amber where the judge is shown to be worse."""
    overall = examination.overall
    rows = [Row.of("all items", overall, QUIET, "open diamond")]
    for _, parts in groupby(examination.parts, key=lambda part: part.division):
        rows += [_row(part) for part in parts]
    title = "Alignment in every part of the items"
    measure = measure_name(overall.statistic, overall.level)
    return whiskers("parts", title, rows[: most + 1], measure=measure, width=width)


def _row(part: Part) -> Row:
    colour = AMBER if part.worse else BLUE
    kind = DIVISIONS[part.division].lower() + (", worse than the others" if part.worse else "")
    return Row.of(part.name, part.alignment, colour, kind=kind)


def distribution_figure(distribution: Distribution, *, width: int = WIDE) -> Drawing:
    """The share of people's labels (blue) and of the judge's scores (amber) in each part of the scale."""
    sides = [("people", distribution.people.shares, BLUE)]
    if distribution.judge is not None:
        sides.append(("judge", distribution.judge.shares, AMBER))
    left, top, bottom = 8.0, 52.0, 180.0
    breadth = (width - 2 * left) / len(distribution.parts)
    bar = breadth * 0.8 / len(sides)
    highest = max(max(shares) for _, shares, _ in sides) or 1.0
    every = -(-max(_NUMBER * len(name) + 6 for name in distribution.parts) // breadth) or 1
    parts = [line((left, bottom), (width - left, bottom), QUIET)]
    for place, (name, shares, colour) in enumerate(sides):
        parts += [box(left + 90 * place, 8, 12, 12, colour), words(name, left + 90 * place + 18, 18)]
        for k, share in enumerate(shares):
            x, height = left + k * breadth + breadth * 0.1 + place * bar, (bottom - top) * share / highest
            parts.append(box(x, bottom - height, bar * 0.94, height, colour))
            if bar >= 26:
                short = percent(share).replace("under", "<").replace("over", ">")
                parts.append(words(short, x + bar / 2, bottom - height - 5, "middle", size=11))
    for k, name in enumerate(distribution.parts):
        if k % every == 0:
            parts.append(words(name, left + (k + 0.5) * breadth, bottom + 16, "middle", fill=QUIET, size=11))
    said = [
        f"{name}: "
        + ", ".join(f"{part} {percent(share)}" for part, share in zip(distribution.parts, shares, strict=True))
        for name, shares, _ in sides
    ]
    title = "People's labels and the judge's scores over the scale"
    return drawing(
        "distribution", title, f"{'; '.join(said)}. {distribution_words(distribution)}", (width, bottom + 24), parts
    )
