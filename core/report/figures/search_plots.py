"""Calibrations as they run, and what they came to: every candidate, the race, both sides of the split.

Every figure names its statistic and level, keeps its axes while a run grows (so that nothing jumps), and draws an
undefined alignment as nothing rather than as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from markupsafe import Markup

from core.records import Alignment
from core.report.figures.axes import HALF, WIDE, Panel, Sign
from core.report.figures.style import AMBER, BLUE, PALE, QUIET, TEAL, Mark, snapped, value_range
from core.report.figures.svg import Drawing, Point, Shape, drawing, mark, path
from core.wording import counted, estimate, number

if TYPE_CHECKING:
    from core.calibration.calibration_result import LeaderboardSnapshot, TracePoint

_COLOURS = {"chosen": TEAL, "kept": BLUE, "not finished": BLUE}
_SHAPES: dict[str, Shape] = {"chosen": "diamond", "rejected": "ring", "not finished": "ring"}
CROWDED = 40
"""More candidates than these, and all but the chosen ones keep quiet: the chosen one has to be found."""

_ORDER = ("stopped", "rejected", "not finished", "kept", "chosen")


@dataclass(frozen=True, slots=True)
class Race:
    """The way of one candidate."""

    name: str
    group: str
    trace: tuple[TracePoint, ...]


def candidates_figure(marks: Sequence[Mark], baseline: Alignment | None, *, measure: str, slots: int = 0) -> Drawing:
    """Alignment with its interval for every candidate, in the order given (that of their making, so none moves).

    `slots` is how many candidates are expected in all: it fixes the horizontal axis from the start.
    """
    groups = list(dict.fromkeys(mark.group for mark in marks))
    signs = [Sign(group, _COLOURS.get(group, QUIET), _SHAPES.get(group, "dot")) for group in groups]
    ends = value_range([mark.alignment for mark in marks] + [baseline])
    panel = Panel.sized(HALF, 320, (0, max(slots, len(marks), 1) + 1), ends, signs=signs)
    parts = list(panel.ground("candidates, in the order they were drafted", measure))
    crowded = len(marks) > CROWDED
    for place, own in sorted(enumerate(marks, 1), key=lambda placed: placed[1].group == "chosen"):
        if own.alignment is not None and own.alignment.value is not None:
            quiet = crowded and own.group != "chosen"
            parts += panel.whisker(place, own.alignment.interval, PALE if quiet else _line_colour(own.group))
            at, colour = panel.at(place, own.alignment.value), _COLOURS.get(own.group, QUIET)
            parts.append(mark(*at, colour, _SHAPES.get(own.group, "dot"), size=2.5 if quiet else 4))
    parts += _baseline(panel, baseline)
    return drawing("candidates", "Every candidate", _candidates_said(marks, baseline), (HALF, 320), parts)


def _candidates_said(marks: Sequence[Mark], baseline: Alignment | None) -> str:
    known = [own for own in marks if own.alignment is not None and own.alignment.value is not None]
    if not known:
        return "No candidate is measured yet."
    best = max(known, key=lambda own: own.alignment.value if own.alignment and own.alignment.value else 0.0)
    none = "" if baseline is None else f" No criteria: {estimate(baseline)}."
    measured = f"{len(known):,} of {counted(len(marks), 'candidate')} measured"
    return f"{measured}. Highest: {best.name}, {estimate(best.alignment)}.{none}"


def race_figure(races: Sequence[Race], baseline: Race | None, *, measure: str) -> Drawing:
    """How the ranking came about: a line per candidate over the items scored, ending where it dropped out."""
    groups = sorted({race.group for race in races}, key=lambda group: _ORDER.index(group) if group in _ORDER else 0)
    drawn = [point for race in (*races, *([baseline] if baseline else [])) for point in race.trace]
    most = max([1, *(point.items for point in drawn)])
    ends = snapped([point.value for point in drawn if point.value is not None])
    crowded = len(races) > CROWDED
    colours = {group: PALE if crowded and group != "chosen" else _line_colour(group) for group in groups}
    signs = [Sign(group, colours[group]) for group in groups]
    signs += [Sign("no criteria", AMBER, None, "6 4")] if baseline is not None else []
    panel = Panel.sized(WIDE, 340, (0, most * 1.03), ends, signs=signs)
    parts = list(panel.ground("calibration items scored", measure))
    for race in sorted(races, key=lambda race: groups.index(race.group)):
        places, chosen = _way(panel, race), race.group == "chosen"
        colour = colours[race.group]
        parts += path(places, colour, width=3 if chosen else 1.5)
        parts += [mark(*place, colour, size=3.5 if chosen else 2.5) for place in places if place is not None]
    if baseline is not None:
        parts += path(_way(panel, baseline), AMBER, dash="6 4")
    counts = "; ".join(f"{group}: {sum(race.group == group for race in races):,}" for group in groups[::-1])
    says = f"{counted(len(races), 'candidate')}, followed over up to {most:,} items. {counts}."
    return drawing("race", "How the ranking came about", says, (WIDE, 340), parts)


def _way(panel: Panel, race: Race) -> list[Point | None]:
    return [None if point.value is None else panel.at(point.items, point.value) for point in race.trace]


def best_so_far_figure(standing: LeaderboardSnapshot, baseline: Alignment | None, *, measure: str) -> Drawing:
    """Best complete candidate against calls spent, a step line; the judge without criteria as a dashed line."""
    calls, values = [best.calls for best in standing.curve], [best.value for best in standing.curve]
    known = [*values, *([baseline.value] if baseline is not None and baseline.value is not None else [])]
    most = max(standing.calls_expected, standing.calls, *calls, 1)
    panel = Panel.sized(HALF, 320, (0, most * 1.02), snapped(known))
    parts = [*panel.ground("calls", measure), *_baseline(panel, baseline)]
    steps = [panel.at(x, y) for x, y in zip(calls, values, strict=True)]
    corners = [corner for a, b in pairwise(steps) for corner in (a, (b[0], a[1]))] + steps[-1:]
    if calls and standing.calls > calls[-1]:  # nothing has overtaken it since
        corners.append(panel.at(standing.calls, values[-1]))
    parts += [*path(corners, BLUE, width=3), *(mark(*place, BLUE, size=4) for place in steps)]
    says = f"{number(values[-1])} after {standing.calls:,} calls." if values else "No candidate is complete yet."
    return drawing("curve", "Best so far", says, (HALF, 320), parts)


def _line_colour(group: str) -> str:
    """Those that are out of the race keep quiet."""
    return _COLOURS.get(group, PALE)


def _baseline(panel: Panel, baseline: Alignment | None) -> list[Markup]:
    if baseline is None or baseline.value is None:
        return []
    return list(panel.level(baseline.value, name=f"no criteria {number(baseline.value, 3)}"))
