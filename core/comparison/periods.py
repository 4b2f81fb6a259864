"""Verdicts by day, week or version: the mean of each, whether it moved since the baseline, and whether the judge did.

You may look at the alarm as often as you like, in every period, for ever: intervals are confidence sequences
(`core.stats.change`), whose levels add up to the chance of any false alarm.  Half of it goes to the
baseline (a t interval where periods are days or weeks: those end before anything is compared with them), a quarter to
the periods after it (the k-th gets its share), a quarter to all of them together, which sees slow changes.

Anchors are texts that never change, scored again at every look.  A change of their scores is the judge's own: another
model behind the same name, another server, another temperature.  Every look but the first is compared with the first,
item by item, at a level that shrinks with the number of looks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import numpy as np

from core.errors import UsageError
from core.json_form import json_fields
from core.records import FloatArray, IntArray, Interval, Item, Scale
from core.stats.change import LEAST_STREAM, StreamMean, share_of_level, stream_mean
from core.stats.claims import LEAST_SOURCES, TOO_FEW
from core.stats.intervals import ROUNDING
from core.stats.system_means import JudgedItems, MeanEstimate, system_means
from core.wording import counted

By = Literal["day", "week", "version"]
UNKNOWN = "no version"
POWER, _POWER_QUANTILE = 0.8, 0.8416212335729143


@dataclass(frozen=True, slots=True)
class TrafficText:
    """A text that a system wrote: `at` is when (UTC), None where nobody says."""

    item: Item
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Movement:
    """Mean now minus mean of the baseline, on the human scale; `reach` is half the width of its interval.

    It has moved where the interval leaves out 0.  `detectable` is the change that would be told with probability
    `POWER`.  All None where undefined, with `reason`.
    """

    value: float | None
    reach: float | None
    detectable: float | None
    reason: str = ""

    @property
    def moved(self) -> bool:
        return self.value is not None and self.reach is not None and abs(self.value) > self.reach

    def as_json(self) -> dict[str, Any]:
        """Null where undefined."""
        ends = None if self.value is None or self.reach is None else [self.value - self.reach, self.value + self.reach]
        return {"value": self.value, "interval": ends, "detectable": self.detectable, "moved": self.moved} | {
            "reason": self.reason or None
        }


@dataclass(frozen=True)
class Period:
    """A day, week or version: `judged` is the mean verdict on the human scale, `corrected` the mean with labels.

    `n` texts came, of which `n_unread` have no verdict.  `change` is None in the baseline.
    """

    name: str
    n: int
    n_unread: int
    n_labelled: int
    judged: StreamMean | None
    corrected: MeanEstimate | None
    in_baseline: bool
    change: Movement | None = None

    def as_json(self) -> dict[str, Any]:
        mean = None if self.judged is None else {"value": self.judged.value, "n_sources": self.judged.n_sources}
        return json_fields(self, but=("judged", "corrected", "change")) | {
            "judged": mean,
            "corrected": None if self.corrected is None else self.corrected.as_json(),
            "change": None if self.change is None else self.change.as_json(),
        }


@dataclass(frozen=True)
class Watched:
    """All periods in order; `since` is the change of everything after the baseline together."""

    periods: tuple[Period, ...]
    baseline: StreamMean | None
    since: Movement
    alpha: float

    @property
    def moved(self) -> tuple[Period, ...]:
        """The periods that have moved beyond chance."""
        return tuple(period for period in self.periods if period.change is not None and period.change.moved)


def watch(
    rows: Sequence[TrafficText], scores: FloatArray, labels: FloatArray, scale: Scale, *, by: By, alpha: float
) -> Watched:
    """Means by period, and what has moved since the baseline: the first periods that hold `LEAST_STREAM` sources.

    `scores` (n,) of the texts in `rows` are on the human `scale` (NaN = unread), and so are `labels` (NaN = none).
    `alpha` is the chance of any false alarm, ever.  UsageError for texts without times where periods are days or weeks.
    """
    codes, names = periods_of(rows, by)
    places: dict[str, int] = {}
    keys = [row.item.source_id or row.item.source or f"\0{row.item.item_id}" for row in rows]
    sources = np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.intp)
    read, labelled = ~np.isnan(scores), ~np.isnan(labels)
    enough = (k for k in range(len(names)) if np.unique(sources[(codes <= k) & read]).size >= LEAST_STREAM)
    last = next(enough, 0)  # of the baseline

    means = [stream_mean(scores[at], sources[at]) for at in ((codes == k) & read for k in range(len(names)))]
    early, late = read & (codes <= last), read & (codes > last)
    first, rest = (stream_mean(scores[at], sources[at]) for at in (early, late))
    known = None
    if first is not None:
        known = first.radius(alpha / 2, first.n_sources) if by == "version" else first.half_width(alpha / 2)
    corrected = None
    if labelled.any():  # a period is taken for a system
        corrected = system_means(JudgedItems(labels, scores, sources, codes, tuple(names), scale)).systems
    periods = tuple(
        Period(
            name,
            int((codes == k).sum()),
            int(((codes == k) & ~read).sum()),
            int(((codes == k) & labelled).sum()),
            means[k],
            None if corrected is None else corrected[k].corrected,
            k <= last,
            None if k <= last else _movement(first, means[k], known, share_of_level(alpha / 4, k - last)),
        )
        for k, name in enumerate(names)
    )
    return Watched(periods, first, _movement(first, rest, known, alpha / 4), alpha)


def periods_of(rows: Sequence[TrafficText], by: By) -> tuple[IntArray, list[str]]:
    """The period of each text, (n,), as places in the names of all periods in order.  UsageError as `watch`."""
    if by == "version":
        dated = sorted(rows, key=lambda row: 0.0 if row.at is None else row.at.timestamp())
        names = list(dict.fromkeys(row.item.system_id or UNKNOWN for row in dated))
        named = [row.item.system_id or UNKNOWN for row in rows]
    else:
        if missing := sum(row.at is None for row in rows):
            raise UsageError(
                f"{missing:,} of {len(rows):,} texts have no time that can be read, and periods are {by}s. Name its "
                "column with --map time=COLUMN (2026-11-23T09:30:00), or take --by version."
            )
        days = [row.at.date() for row in rows if row.at is not None]
        named = [(day if by == "day" else day - timedelta(days=day.weekday())).isoformat() for day in days]
        names = sorted(set(named))
    places = {name: k for k, name in enumerate(names)}
    return np.array([places[name] for name in named], dtype=np.intp), names


def _movement(before: StreamMean | None, now: StreamMean | None, known: float | None, level: float) -> Movement:
    """The change from `before`, which lies off by `known` at most, to `now`, known to 1 − `level`."""
    if before is None or now is None:
        return Movement(None, None, None, "no verdicts" if now is None else "the baseline has no verdicts")
    value, own = now.value - before.value, now.radius(level, before.n_sources)
    if known is None or own is None or before.error is None or now.error is None:
        few = counted(min(before.n_sources, now.n_sources), "source")
        return Movement(value, None, None, f"from {few}; alarms begin at {LEAST_STREAM}")
    reach = known + own
    return Movement(value, reach, reach + _POWER_QUANTILE * math.hypot(before.error, now.error))


# ── anchors ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class AnchorLook:
    """What the `n`-th look at the anchors says: mean score now minus at the first look, on the human scale.

    `n_items` anchors were read at both; `n_lost` could not be read now.  `gap` is the mean of score minus label now,
    `gap_before` at the first look.  `interval` is None at the first look, where no score has changed at all, and under
    8 sources; `reason` says which.
    """

    n: int
    n_items: int
    n_lost: int
    change: float | None
    interval: Interval | None
    gap: float | None
    gap_before: float | None
    reason: str = ""

    @property
    def moved(self) -> bool:
        """Whether the judge has moved beyond chance."""
        return self.interval is not None and not self.interval.low <= 0.0 <= self.interval.high

    @property
    def most(self) -> float | None:
        """How far the judge may have moved by what is known; None where nothing is."""
        if self.interval is not None:
            return max(abs(self.interval.low), abs(self.interval.high))
        return 0.0 if self.n > 1 and self.change == 0.0 else None

    def as_json(self) -> dict[str, Any]:
        return json_fields(self, but=("interval",)) | {
            "interval": None if self.interval is None else self.interval.as_json(),
            "moved": self.moved,
        }


def look_again(
    looks: Sequence[Mapping[str, float]], labels: Mapping[str, float], sources: Mapping[str, str], alpha: float
) -> AnchorLook:
    """Compare the last of `looks` (anchor → score, those that were read) with the first.

    `labels` and `sources` are those of the anchors; `alpha` is the chance of a false alarm over all looks.
    """
    from scipy.special import stdtrit

    first, now, n = looks[0], looks[-1], len(looks)
    both = [anchor for anchor in first if anchor in now]
    n_lost = len(first) - len(both)
    labelled = [anchor for anchor in both if anchor in labels]
    gap, before = (
        float(np.mean([look[anchor] - labels[anchor] for anchor in labelled])) if labelled else None
        for look in (now, first)
    )
    if n == 1 or not both:
        reason = "the first look, which later ones are held against" if n == 1 else "no anchor could be read again"
        return AnchorLook(n, len(both), n_lost, None, None, gap, before, reason)
    changes = np.array([now[anchor] - first[anchor] for anchor in both])
    codes = {source: k for k, source in enumerate(dict.fromkeys(sources[anchor] for anchor in both))}
    mean = stream_mean(changes, np.array([codes[sources[anchor]] for anchor in both], dtype=np.intp))
    assert mean is not None
    if np.abs(changes).max() <= ROUNDING:
        return AnchorLook(n, len(both), n_lost, 0.0, None, gap, before, "not one score has changed")
    if mean.n_sources < LEAST_SOURCES or mean.error is None:
        return AnchorLook(n, len(both), n_lost, mean.value, None, gap, before, TOO_FEW)
    level = share_of_level(alpha, n - 1)
    half = float(stdtrit(mean.n_sources - 1, 1.0 - level / 2.0)) * mean.error
    method = f"t({mean.n_sources - 1}) over sources, look {n - 1} after the first"
    interval = Interval(mean.value - half, mean.value + half, 1.0 - level, method, mean.n_sources)
    return AnchorLook(n, len(both), n_lost, mean.value, interval, gap, before)
