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
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

import numpy as np

from core.errors import UsageError
from core.records import FloatArray, IntArray, Interval, Item, Scale, json_fields
from core.stats.change import LEAST_STREAM, StreamMean, share_of_level, stream_mean
from core.stats.claims import LEAST_SOURCES, TOO_FEW
from core.stats.intervals import ROUNDING
from core.stats.system_means import JudgedItems, MeanEstimate, system_means
from core.wording import counted

By = Literal["day", "week", "version"]
UNKNOWN = "no version"
POWER, _POWER_QUANTILE = 0.8, 0.8416212335729143


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
        return json_fields(self, but=("reach",)) | {"interval": ends, "moved": self.moved}


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
    items: Sequence[Item],
    times: Sequence[datetime | None],
    scores: FloatArray,
    labels: FloatArray,
    scale: Scale,
    *,
    by: By,
    alpha: float,
) -> Watched:
    """Means by period, and what has moved since the baseline: the first periods that hold `LEAST_STREAM` sources.

    `times` (n,) say when the texts `items` were written (UTC), None where nobody says; `scores` are on the human
    `scale` (NaN = unread), and so are `labels` (NaN = none).  `alpha` is the chance of any false alarm, ever.
    UsageError as `periods_of`.
    """
    codes, names = periods_of(items, times, by)
    keys = [item.source_id or item.source or f"\0{item.item_id}" for item in items]
    sources = np.unique(keys, return_inverse=True)[1].astype(np.intp)
    read, labelled = ~np.isnan(scores), ~np.isnan(labels)
    enough = (k for k in range(len(names)) if np.unique(sources[(codes <= k) & read]).size >= LEAST_STREAM)
    last = next(enough, 0)  # of the baseline
    first, rest = (stream_mean(scores[at], sources[at]) for at in (read & (codes <= last), read & (codes > last)))
    known = None
    if first is not None:
        known = first.radius(alpha / 2, first.n_sources) if by == "version" else first.half_width(alpha / 2)
    corrected = None
    if labelled.any():  # a period is taken for a system
        corrected = system_means(JudgedItems(labels, scores, sources, codes, tuple(names), scale)).systems
    periods = []
    for k, name in enumerate(names):
        inside = codes == k
        mean = stream_mean(scores[inside & read], sources[inside & read])
        change = None if k <= last else _movement(first, mean, known, share_of_level(alpha / 4, k - last))
        counts = [int((inside & which).sum()) for which in (inside, ~read, labelled)]
        own = None if corrected is None else corrected[k].corrected
        periods.append(Period(name, counts[0], counts[1], counts[2], mean, own, k <= last, change))
    return Watched(tuple(periods), first, _movement(first, rest, known, alpha / 4), alpha)


def periods_of(items: Sequence[Item], times: Sequence[datetime | None], by: By) -> tuple[IntArray, list[str]]:
    """The period of each text, (n,), as places in the names of all periods in order.

    UsageError for texts without times where periods are days or weeks.
    """
    if by == "version":
        named = [item.system_id or UNKNOWN for item in items]
        order = sorted(range(len(items)), key=lambda k: 0.0 if (at := times[k]) is None else at.timestamp())
        names = list(dict.fromkeys(named[k] for k in order))
    else:
        if missing := times.count(None):
            raise UsageError(
                f"{missing:,} of {len(times):,} texts have no time that can be read, and periods are {by}s. Name its "
                "column with --map time=COLUMN (2026-11-23T09:30:00), or take --by version."
            )
        days = [at.date() for at in times if at is not None]
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

    `n_items` anchors were read at both; `n_lost` could not be read now.  `interval` is None at the first look, where
    no score has changed at all, and under 8 sources; `reason` says which.
    """

    n: int
    n_items: int
    n_lost: int
    change: float | None
    interval: Interval | None
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
        ends = None if self.interval is None else self.interval.as_json()
        return json_fields(self, but=("interval",)) | {"interval": ends, "moved": self.moved}


def look_again(looks: Sequence[Mapping[str, float]], sources: Mapping[str, str], alpha: float) -> AnchorLook:
    """Compare the last of `looks` (anchor → score, those that were read) with the first.

    `sources` are those of the anchors; `alpha` is the chance of a false alarm over all looks.
    """
    from scipy.special import stdtrit

    first, now, n = looks[0], looks[-1], len(looks)
    both = [anchor for anchor in first if anchor in now]
    look = AnchorLook(n, len(both), len(first) - len(both), None, None)
    if n == 1 or not both:
        reason = "the first look, which later ones are held against" if n == 1 else "no anchor could be read again"
        return replace(look, reason=reason)
    changes = np.array([now[anchor] - first[anchor] for anchor in both])
    codes = np.unique([sources[anchor] for anchor in both], return_inverse=True)[1].astype(np.intp)
    if np.abs(changes).max() <= ROUNDING:
        return replace(look, change=0.0, reason="not one score has changed")
    mean = stream_mean(changes, codes)
    assert mean is not None
    look = replace(look, change=mean.value)
    if mean.n_sources < LEAST_SOURCES or mean.error is None:
        return replace(look, reason=TOO_FEW)
    level, freedom = share_of_level(alpha, n - 1), mean.n_sources - 1
    half = float(stdtrit(freedom, 1.0 - level / 2.0)) * mean.error
    method = f"t({freedom}) over sources, look {n - 1} after the first"
    return replace(look, interval=Interval(mean.value - half, mean.value + half, 1.0 - level, method, mean.n_sources))
