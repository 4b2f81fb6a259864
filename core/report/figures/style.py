"""What all figures share: colours, names of statistics and levels, and the ends of axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.records import Alignment, Level, Statistic
from core.wording import estimate, number

INK, QUIET, GRID, PAPER = "#14202E", "#5B6875", "#DDE3EA", "#FFFFFF"
BLUE, AMBER, TEAL, PALE = "#0B5CAD", "#A8480A", "#0F766E", "#C3CBD5"
PURPLE, ROSE = "#7A3E9D", "#9F1239"
PEOPLE = "#F6E7D8"
"""The band of people among themselves."""
BETTER, WORSE, ALIKE = "#BFE3DC", "#F6D7B8", "#EEF1F5"
COOL, WARM = "#6BA0D8", "#DB9B55"
"""Above and below 0 in a matrix: light enough for dark numbers."""
LINES = (BLUE, AMBER, TEAL, PURPLE, ROSE, "#4D7C0F", "#0E7490", QUIET)
DARK = {
    INK: "#E8EDF3",
    QUIET: "#A3B0BE",
    GRID: "#2E3946",
    PAPER: "#11171F",
    BLUE: "#6BAEF5",
    AMBER: "#F0A35E",
    TEAL: "#4FC3B3",
    PALE: "#566371",
    PURPLE: "#C79BE8",
    ROSE: "#F4829C",
    PEOPLE: "#3A2C1E",
    BETTER: "#1F5A50",
    WORSE: "#6B3E17",
    ALIKE: "#262F3A",
    COOL: "#2E5F94",
    WARM: "#85531B",
    "#4D7C0F": "#9CCC52",
    "#0E7490": "#4CC3DE",
}
"""Each colour's counterpart on a dark page."""
STATISTIC_NAMES: dict[Statistic, str] = {
    "pearson": "Pearson r",
    "spearman": "Spearman rho",
    "kendall": "Kendall tau-b",
}
LEVEL_NAMES: dict[Level, str] = {"dataset": "dataset level", "sample": "sample level", "system": "system level"}


def measure_name(statistic: Statistic, level: Level) -> str:
    """E.g. "Spearman rho, sample level": how every axis and column of alignments is headed."""
    return f"{STATISTIC_NAMES[statistic]}, {LEVEL_NAMES[level]}"


def describe(alignment: Alignment | None) -> str:
    """`0.41 [0.35, 0.47]`, or "—" for what is undefined or not there yet: the one figure of a judge on all screens."""
    if alignment is None or alignment.interval is None:
        return number(None if alignment is None else alignment.value)
    return estimate(alignment)


@dataclass(frozen=True, slots=True)
class Mark:
    """One line or place of a figure; `group` decides its colour, `detail` stands in the hover box."""

    name: str
    alignment: Alignment | None
    group: str = ""
    detail: str = ""


def value_range(alignments: Iterable[Alignment | None]) -> tuple[float, float]:
    """Ends of an axis that holds all values and intervals."""
    return snapped([end for alignment in alignments for end in ends_of(alignment)])


def ends_of(alignment: Alignment | None) -> list[float]:
    """The value of an alignment and the ends of its interval; nothing where it is undefined."""
    if alignment is None or alignment.value is None:
        return []
    return [alignment.value, *((alignment.interval.low, alignment.interval.high) if alignment.interval else ())]


def snapped(values: Sequence[float]) -> tuple[float, float]:
    """Ends of an axis, moved out to the next .2 so that a growing run moves them rarely; within [-1, 1]."""
    if not values:
        return 0.0, 1.0
    low = max(math.floor((min(*values, 0.0) - 0.01) * 5) / 5, -1.02)
    high = min(math.ceil((max(values) + 0.03) * 5) / 5, 1.02)
    return (low if min(values) < 0 else 0.0), max(high, 0.2)
