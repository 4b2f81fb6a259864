"""Format numbers, intervals, p values, counts, money and durations as text, and name judges and versions.

The terminal, screens, reports and files all use these functions. Undefined is "—", never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from core.records import Alignment, Interval, Level, Statistic

DASH = "—"

VERSION_STATES: dict[str, str] = {
    "draft": "not measured yet",
    "proposed": "waiting for approval",
    "approved": "approved",
    "current": "current",
    "retired": "retired",
}
"""State of a version → words for users."""
VERSION_ORIGINS: dict[str, str] = {
    "calibration": "proposed by a calibration",
    "edit": "created from an edit",
    "proposal": "created from an accepted proposal",
    "merge": "created by merging criteria",
    "review": "chosen in a review",
    "criteria": "created from selected criteria",
    "switch": "switched to another model",
}

# ── statistics ───────────────────────────────────────────────────────────────────────────────────────────────

STATISTIC_NAMES: dict[Statistic, str] = {
    "pearson": "Pearson r",
    "spearman": "Spearman rho",
    "kendall": "Kendall tau-b",
}
LEVEL_NAMES: dict[Level, str] = {"dataset": "dataset level", "sample": "sample level", "system": "system level"}
_ALPHA = 0.05


def measure_name(statistic: Statistic, level: Level) -> str:
    """Return a statistic and level in words, for axes and table headers: "Spearman rho, sample level"."""
    return f"{STATISTIC_NAMES[statistic]}, {LEVEL_NAMES[level]}"


def number(value: float | None, digits: int = 2) -> str:
    """Format a number: ``"0.47"``, ``"−0.05"``, or "—" for None; never "−0.00"."""
    return DASH if value is None else f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def signed(value: float | None) -> str:
    """Format a number with its sign: ``"+0.05"``, ``"−0.05"``, or "—" for None."""
    return DASH if value is None else f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")


def range_words(ends: Iterable[float] | None) -> str:
    """Format an `Interval` or its two ends: ``"[0.37, 0.57]"``, or "—" for None."""
    return DASH if ends is None else f"[{', '.join(map(number, ends))}]"


def signed_range(ends: Iterable[float] | None) -> str:
    """Format an `Interval` or its two ends with signs: ``"[−0.03, +0.15]"``, or "—" for None."""
    return DASH if ends is None else f"[{', '.join(map(signed, ends))}]"


class Estimated(Protocol):
    """A value with its interval, such as an alignment, a mean or a strength."""

    @property
    def value(self) -> float | None: ...

    @property
    def interval(self) -> Interval | None: ...


def estimate(found: Estimated | None) -> str:
    """Format value and interval: ``"0.47 [0.37, 0.57]"``; "0.47 (no interval)"; "—" for an undefined value."""
    if found is None or found.value is None:
        return DASH
    return f"{number(found.value)} {range_words(found.interval) if found.interval else '(no interval)'}"


def describe(alignment: Alignment | None) -> str:
    """Format an alignment: ``"0.41 [0.35, 0.47]"``; "0.41" without an interval; "—" for None or undefined."""
    if alignment is None or alignment.interval is None:
        return number(None if alignment is None else alignment.value)
    return estimate(alignment)


def change_figures(value: float, interval: Iterable[float] | None) -> str:
    """Format a difference and its interval: ``"+0.05 [−0.01, +0.11]"``; without an interval, the value alone."""
    return signed(value) + ("" if interval is None else f" {signed_range(interval)}")


ALIKE = "0 in every source"
"""Replaces a difference and its interval if all of them are exactly 0."""


def difference_figures(
    value: float | None,
    interval: Iterable[float] | None,
    p: float | None,
    p_reason: str = "",
    *,
    limit: float = _ALPHA,
) -> str:
    """Format a difference with its test: ``"+0.05 [+0.01, +0.09], p = 0.012"``.

    Without p, "no p" is written, with `p_reason` if given.

    Returns:
        The text; "undefined" if `value` is None; `ALIKE` if the value and both ends of the interval are 0.
    """
    if value is None:
        return "undefined"
    if interval is not None and not any(round(end, 6) for end in (value, *interval)):
        return ALIKE
    tested = p_figure(p, f"no p ({p_reason})" if p_reason else "no p", limit=limit)
    return f"{change_figures(value, consistent_interval(interval, p, limit))}, {tested}"


def consistent_interval(ends: Iterable[float] | None, p: float | None, limit: float = _ALPHA) -> Iterable[float] | None:
    """Return the interval of a difference, or None if it excludes 0 although `p` is above `limit`.

    Only p is corrected for the number of comparisons, so the interval could contradict it.
    """
    if ends is None or p is None or not p > limit:
        return ends
    low, high = ends
    return ends if low <= 0.0 <= high else None


def p_figure(p: float | None, missing: str = "no p", *, limit: float = _ALPHA) -> str:
    """Format a p value: ``"p = 0.012"``, ``"p < 0.001"``, or `missing` for None and NaN.

    A p near `limit` gets as many digits as it needs to differ from `limit`: 0.0496 or 0.0504, never 0.050. If `limit`
    is below 0.05, the text also names it for a p between `limit` and 0.05: ``"p = 0.032, above 0.025"``.
    """
    if p is None or math.isnan(p):
        return missing
    if p < 0.001:
        return "p < 0.001"
    if p >= 0.9995:
        return "p = 1"
    digits = 3
    while digits < 16 and any(round(p, digits) == end != p for end in (limit, _ALPHA)):
        digits += 1
    return f"p = {p:.{digits}f}" + (f", above {limit:g}" if limit < p <= _ALPHA else "")


def p_cell(p: float | None) -> str:
    """Format a p value for a column named p: ``"0.012"``, ``"< 0.001"``, or "—" for None."""
    return p_figure(p, DASH).removeprefix("p ").removeprefix("= ")


# ── counts, money, time ──────────────────────────────────────────────────────────────────────────────────────


def counted(n: int, noun: str, many: str = "") -> str:
    """Format a count: ``"1 item"``, ``"1,600 items"``."""
    return f"{n:,} {noun if n == 1 else many or f'{noun}s'}"


def percent(part: float | None, digits: int = 0) -> str:
    """Format a share: ``"30 %"``, or "—" for None; never "0 %" for a part above 0, nor "100 %" for a part below 1."""
    if part is None:
        return DASH
    least, shown = 10.0**-digits, f"{100 * part:.{digits}f}"
    if part > 0 and float(shown) == 0:
        return f"under {least:g} %"
    return f"over {100 - least:g} %" if part < 1 and float(shown) == 100 else f"{shown} %".replace("-", "−")


def money(cost: float | None) -> str:
    """Format dollars: ``"$1.50"``, or ``"$0.0123"`` if under 10 cents; "—" for an unknown price."""
    return DASH if cost is None else f"${cost:,.2f}" if cost >= 0.1 or cost == 0 else f"${cost:.4f}"


def price_words(cost: float | None) -> str:
    """Format a price to append to a sentence: ``", about $0.12"``; ``", price unknown"`` for None; "" for 0."""
    return ", price unknown" if cost is None else f", about {money(cost)}" if cost else ""


def duration(seconds: float | None) -> str:
    """Format seconds: ``"42 s"``, ``"5 min"``, ``"2 h 10 min"``, ``"3 days"``; "—" for None."""
    if seconds is None:
        return DASH
    whole = max(0, round(seconds))
    if whole < 90:
        return f"{whole} s"
    if whole < 5400:
        return f"{whole // 60} min"
    hours, rest = divmod(whole, 3600)
    return f"{hours} h {rest // 60} min" if hours < 48 else f"{hours // 24} days"


def times(n: int) -> str:
    """Format a number of times: ``"once"``, ``"4 times"``."""
    return "once" if n == 1 else f"{n:,} times"


def capital(text: str) -> str:
    """Capitalise the first letter, and leave the others unchanged."""
    return text[:1].upper() + text[1:]


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────


def in_short(names: Sequence[str], most: int = 4) -> str:
    """List at most `most` names: ``"a"``, ``"a and b"``, ``"a, b, c and 3 others"``."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} others"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def judge_words(spec: str) -> str:
    """Name a judge by its model or file, without host or folder; "—" for an empty spec."""
    kind, colon, rest = spec.partition(":")
    if not colon:
        return spec or DASH
    if spec == "scripted:newsroom":
        return "Simulated reader"
    if kind == "scripted":
        return spec
    if kind == "recorded":
        return f"recorded replies, {PurePath(rest).stem}"
    return rest.partition("@")[0] if kind == "openai" else PurePath(rest).name or spec
