"""Strengths of systems out of preferences: by people, and by a judge as a ring below."""

from __future__ import annotations

from core.report.figures.axes import WIDE
from core.report.figures.style import AMBER, BLUE
from core.report.figures.svg import Drawing
from core.report.figures.whiskers import Row, whiskers
from core.stats.preferences import Strength, Strengths
from core.wording import range_words, signed


def strengths_figure(people: Strengths, judge: Strengths | None, judge_name: str, *, width: int = WIDE) -> Drawing:
    """Strongest for people first; systems that nobody compared have no row."""
    of_judge = {} if judge is None else {strength.system: strength for strength in judge.systems}
    rows = []
    for strength in people.systems:
        rows.append(Row(strength.system, strength.value, strength.interval, _words(strength), AMBER, kind="people"))
        if other := of_judge.get(strength.system):
            rows.append(Row("", other.value, other.interval, _words(other), BLUE, "ring", kind=judge_name))
    ends = [end for row in rows for end in row.ends] or [-1.0, 1.0]
    room = 0.04 * (max(ends) - min(ends)) or 0.1
    return whiskers(
        "strengths",
        "Strength of each system",
        rows,
        measure="log-odds of being preferred to an average system; 95 % intervals",
        ends=(min(ends) - room, max(ends) + room),
        width=width,
    )


def _words(strength: Strength) -> str:
    ends = f" {range_words(strength.interval)}" if strength.interval else ""
    return f"{signed(strength.value)}{ends}"
