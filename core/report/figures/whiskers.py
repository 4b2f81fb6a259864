"""Rows of names, each with its dot and interval on one axis and its figures at the right end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from core.records import Alignment, FloatArray, Interval, JudgeKind
from core.report.figures.chart import WIDE, Axis, ends_of, snapped
from core.report.figures.svg import (
    AMBER,
    BLUE,
    GRID,
    INK,
    PEOPLE,
    PURPLE,
    QUIET,
    ROSE,
    TEAL,
    Drawing,
    Shape,
    box,
    drawing,
    legible,
    line,
    mark,
    shortened,
    words,
)
from core.wording import DASH, change_figures, estimate

if TYPE_CHECKING:
    from core.calibration.ablate import AblationRow
    from core.calibration.calibration_records import BothSides
    from core.stats.choices import Strengths
    from core.stats.system_means import SystemMeans

LEFT, RIGHT = 232, 138
"""Room for names and for figures."""
NARROW = 360
"""Width of a drawing for a telephone, whose names stand above their intervals."""
KIND_COLOURS: dict[JudgeKind, str] = {
    "calibrated": TEAL,
    "no criteria": AMBER,
    "style": PURPLE,
    "imported": BLUE,
    "metric": QUIET,
    "repeval": ROSE,
    "fused": INK,
}
_MOST_SAID = 30


@dataclass(frozen=True, slots=True)
class WhiskerRow:
    """`figures` are written at the right end; `kind` below the name, in the row's colour; `reason` where undefined.

    `like_person` is the judge against the mean of the other raters, the target of the raters' band: a small ring in
    the band's colour.
    """

    name: str
    value: float | None
    interval: Interval | None
    figures: str
    colour: str = QUIET
    shape: Shape = "dot"
    kind: str = ""
    reason: str = ""
    like_person: Alignment | None = None

    @classmethod
    def of(
        cls,
        name: str,
        alignment: Alignment,
        colour: str = QUIET,
        shape: Shape = "dot",
        *,
        kind: str = "",
        like_person: Alignment | None = None,
    ) -> WhiskerRow:
        """A row that shows an alignment."""
        value, interval = alignment.value, alignment.interval
        return cls(name, value, interval, estimate(alignment), colour, shape, kind, alignment.reason, like_person)


def whiskers(
    name: str,
    title: str,
    rows: Sequence[WhiskerRow],
    *,
    measure: str,
    people: Alignment | None = None,
    close: bool = False,
    width: int = WIDE,
) -> Drawing:
    """The rows below each other in the order given; `people` among themselves are a band behind all of them.

    The axis ends at the next fifth beyond what it holds; `close`: shortly beyond it, for values that are no alignment.
    The drawing has a narrow form for telephones.
    """
    held = ends_of(people)
    for row in rows:
        held += [] if row.value is None else [row.value]
        held += [row.interval.low, row.interval.high] if row.interval and row.value is not None else []
        held += ends_of(row.like_person)
    low, high = snapped(held)
    if close:
        held = held or [-1.0, 1.0]
        room = 0.04 * (max(held) - min(held)) or 0.1
        low, high = min(held) - room, max(held) + room
    top = 24 if people is not None and people.value is not None else 8
    told = [legible(f"{shortened(row.name, 60)}: {row.figures}") for row in rows[:_MOST_SAID]]
    says = f"{'; '.join(told)}." + (f" And {len(rows) - _MOST_SAID} more." if len(rows) > _MOST_SAID else "")
    says += "" if people is None else f" One rater against the mean of the others: {estimate(people)}."
    like = [f"{shortened(row.name, 60)}: {estimate(row.like_person)}" for row in rows[:_MOST_SAID] if row.like_person]
    says += f" Judges against that same target: {'; '.join(like)}." if like else ""
    drawn = []
    for narrow in (False, True):
        whole, edge = (NARROW, 14) if narrow else (width, LEFT)
        axis = Axis(low, high, edge, whole - (14 if narrow else RIGHT))
        heights = [(44 if narrow else 26) + (11 if row.kind else 0) for row in rows]
        tops = [float(top), *(top + end for end in accumulate(heights))]
        parts = list(_ground(axis, people, top, tops[-1], measure))
        for row, y, below in zip(rows, tops, tops[1:], strict=False):
            parts += _row(axis, row, y, below, whole)
        drawn.append(drawing(name, title, says, (whole, tops[-1] + 42), parts))
    return replace(drawn[0], narrow=drawn[1])


def _ground(axis: Axis, people: Alignment | None, top: float, bottom: float, title: str) -> Iterator[Markup]:
    """The band of the raters, grid lines, tick labels, and the axis' title under them."""
    if people is not None and people.value is not None:
        low, high = (people.interval.low, people.interval.high) if people.interval else (people.value, people.value)
        x = axis(people.value)
        yield box(axis(low), top, axis(high) - axis(low), bottom - top, PEOPLE)
        yield line((x, top), (x, bottom), AMBER, width=1.5, dash="5 3")
        middle = min(max(x, axis.start + 100), axis.end - (40 if axis.start == LEFT else 100))
        yield words(f"one rater against the others: {people.value:.2f}", middle, top - 8, "middle", fill=INK)
    for tick, name in axis.ticks():
        x = axis(tick)
        yield line((x, top), (x, bottom), QUIET if abs(tick) < 1e-9 else GRID)
        yield words(name, x, bottom + 16, "middle", fill=QUIET)
    yield words(title, (axis.start + axis.end) / 2, bottom + 34, "middle", fill=QUIET)


def _row(axis: Axis, row: WhiskerRow, top: float, below: float, width: float) -> Iterator[Markup]:
    """Name, figures and interval: next to each other, or on a telephone name and figures above the interval."""
    narrow = width == NARROW
    y = below - 18 if narrow else (top + below) / 2
    named = top + 13 if narrow else y - 3 if row.kind else y + 4
    x, anchor = (0, "start") if narrow else (LEFT - 12, "end")
    yield words(shortened(row.name, 34), x, named, anchor, halo=narrow)
    if row.kind:
        yield words(row.kind, x, top + 26 if narrow else y + 11, anchor, fill=row.colour, size=11, halo=narrow)
    yield words(row.figures, width, top + 13 if narrow else y + 4, "end", halo=narrow)
    if row.value is None:
        if row.reason:
            reason = shortened(row.reason, 50 if narrow else 90)
            yield words(f"{DASH} {reason}", 0 if narrow else LEFT + 6, y + 4, fill=QUIET)
    else:
        if row.interval is not None:
            yield line((axis(row.interval.low), y), (axis(row.interval.high), y), row.colour, width=2)
        yield mark(axis(row.value), y, row.colour, row.shape)
    like = row.like_person
    if like is not None and like.value is not None:
        if like.interval is not None:
            yield line((axis(like.interval.low), y + 9), (axis(like.interval.high), y + 9), AMBER)
        yield mark(axis(like.value), y + 9, AMBER, "ring", size=3)


# ── judges ───────────────────────────────────────────────────────────────────────────────────────────────────


def leaderboard_figure(
    judges: Sequence[tuple[str, JudgeKind, Alignment, Alignment | None]], ceiling: Alignment | None, *, measure: str
) -> Drawing:
    """Every judge by name and kind with its alignment on one axis, raters among themselves as a band behind.

    The last of each is the judge against the mean of the other raters, the band's target.
    """
    rows = [
        WhiskerRow.of(
            name, alignment, KIND_COLOURS[kind], kind="baseline" if kind == "no criteria" else kind, like_person=like
        )
        for name, kind, alignment, like in judges
    ]
    return whiskers("leaderboard", "Every judge with its interval", rows, measure=measure, people=ceiling)


def sides_figure(
    judges: Mapping[str, BothSides],
    *,
    measure: str,
    people: Alignment | None = None,
    like_person: Alignment | None = None,
    width: int = WIDE,
) -> Drawing:
    """Held-out (filled) above calibration (hollow) for each judge by name: how optimistic the second is.

    `people` among themselves are a band; `like_person` is the first judge against the same target.
    """
    shown: list[WhiskerRow] = []
    for (name, sides), colour in zip(judges.items(), (BLUE, TEAL, QUIET) * len(judges), strict=False):
        like = None if shown else like_person
        shown.append(WhiskerRow.of(f"{name}, held-out", sides.held_out, colour, like_person=like))
        shown.append(WhiskerRow.of("calibration", sides.calibration, colour, "ring"))
    title = "Agreement with raters: held-out and calibration"
    return whiskers("sides", title, shown, measure=measure, people=people, width=width)


def standing_figure(rows: Mapping[str, Alignment], *, measure: str, width: int = WIDE) -> Drawing:
    """A few alignments by name, in one order of colours: raters, judge, baseline."""
    shown = [
        WhiskerRow.of(name, alignment, colour)
        for (name, alignment), colour in zip(rows.items(), (AMBER, BLUE, TEAL), strict=False)
    ]
    return whiskers("standing", "Agreement next to raters and the baseline", shown, measure=measure, width=width)


def variant_name(row: AblationRow) -> str:
    """How a row is headed, e.g. "final judge (mean of 3)"."""
    if row.key != "final":
        return row.key
    return f"final judge (mean of {n})" if (n := len(row.criteria_ids)) > 1 else "final judge"


def ablation_figure(rows: Sequence[AblationRow], *, measure: str) -> Drawing:
    """Each variant on both sides of the split, held-out filled, calibration hollow.

    Below the name stands held-out minus the final judge, the first of `rows`; amber where it differs beyond chance.
    """
    shown = []
    for row in rows:
        beyond = row.p_holm is not None and row.p_holm <= 0.05
        gap = "" if row.difference is None else f"{change_figures(row.difference, row.interval)} to final"
        colour = AMBER if beyond else BLUE
        shown.append(WhiskerRow.of(variant_name(row), row.held_out, colour, kind=gap))
        shown.append(WhiskerRow.of("calibration", row.calibration, QUIET, "ring"))
    return whiskers("ablation", "What each part adds", shown, measure=measure)


def random_figure(values: FloatArray, projection: float | None, *, measure: str) -> Drawing:
    """Medians of the test alignments of random directions with their middle 95 %, and the projection."""
    rows = []
    if projection is not None:
        rows.append(WhiskerRow("the projection", projection, None, f"{projection:.2f}".replace("-", "−"), AMBER))
    if not np.isnan(values).all():
        low, middle, high = np.nanquantile(values, (0.025, 0.5, 0.975)).tolist()
        ends = Interval(low, high)
        rows.append(WhiskerRow("random", middle, ends, change_figures(middle, ends).replace("+", ""), QUIET))
    return whiskers("random", "The projection and random directions", rows, measure=f"test, {measure}")


# ── systems ──────────────────────────────────────────────────────────────────────────────────────────────────


def system_means_figure(means: SystemMeans, aspect: str, *, most: int) -> Drawing:
    """Corrected means of the `most` highest systems, the mean of the labels alone as a ring below."""
    rows = []
    for system in means.corrected[:most]:
        own, alone = system.corrected, system.labels_only
        rows.append(WhiskerRow(system.name, own.value, own.interval, estimate(own), BLUE))
        if alone.interval is not None and alone != own:
            rows.append(WhiskerRow("labels alone", alone.value, alone.interval, estimate(alone), QUIET, "ring"))
    measure = f"mean {aspect}, corrected by the labels; 95 % intervals"
    return whiskers("system-means", f"Mean {aspect} of each system", rows, measure=measure, close=True)


def strengths_figure(people: Strengths, judge: Strengths | None, judge_name: str) -> Drawing:
    """Strengths by raters, and by the judge as a ring below; systems without a comparison have no row."""
    of_judge = {} if judge is None else {strength.system: strength for strength in judge.systems}
    rows = []
    for own in people.systems:
        figures = change_figures(own.value, own.interval)
        rows.append(WhiskerRow(own.system, own.value, own.interval, figures, AMBER, kind="raters"))
        if other := of_judge.get(own.system):
            figures = change_figures(other.value, other.interval)
            rows.append(WhiskerRow("", other.value, other.interval, figures, BLUE, "ring", kind=judge_name))
    measure = "log-odds of being preferred to an average system; 95 % intervals"
    return whiskers("strengths", "Strength of each system", rows, measure=measure, close=True)
