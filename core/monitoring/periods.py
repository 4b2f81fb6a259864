"""Verdicts by day, week or version: the mean of each, and whether it has moved since the baseline.

Alarms may be looked at as often as one likes, in every period, for ever: intervals are confidence sequences
(`core.stats.confidence_sequence`), whose levels add up to `alpha`.  Half of it goes to the baseline (a t interval where
it is days or weeks: those end before anything is held against them), a quarter to the periods after it (the k-th gets
its share), a quarter to all of them together, which sees what moves slowly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import hypot
from typing import Any, Literal

import numpy as np

from core.data.exports import Written
from core.errors import UsageError
from core.json_form import json_fields
from core.records import FloatArray, IntArray, Scale
from core.stats.confidence_sequence import LEAST, StreamMean, share_of_level, stream_mean
from core.stats.items import BoolArray
from core.stats.mean_records import MeanEstimate, SystemMean
from core.stats.system_means import JudgedItems, system_means
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
        return {"value": self.value, "interval": ends, "detectable": self.detectable, "moved": self.moved} | {
            "reason": self.reason or None
        }


@dataclass(frozen=True)
class Period:
    """A day, week or version: `judged` is the mean verdict on the human scale, `corrected` the mean with labels.

    `n` texts came, of which `n_unread` have no verdict and `n_unsure` one that is marked as unsure (None where nobody
    asked).  `change` is None in the baseline.
    """

    name: str
    n: int
    n_unread: int
    n_unsure: int | None
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


@dataclass(frozen=True, eq=False)
class Stream:
    """Texts in use with what the judge says of them, all (n,): `scores` on the human scale (NaN = unread), `labels`
    (NaN = none), whether they are `unsure` (None where nobody asked).
    """

    rows: Sequence[Written]
    scores: FloatArray
    labels: FloatArray
    scale: Scale
    unsure: BoolArray | None = None


def watch(stream: Stream, by: By, *, baseline: Sequence[str] = (), alpha: float = 0.05) -> Watched:
    """Means by period, and what has moved since the `baseline`.

    The baseline are the periods named; else the first ones, until they hold `LEAST` sources.  `alpha` is the chance of
    any false alarm, ever.  UsageError for a baseline that is not there, an `alpha` outside (0, .5), and texts without
    times where periods are days or weeks.
    """
    codes, names = periods_of(stream.rows, by, baseline=baseline, alpha=alpha)
    sources = _sources(stream.rows)
    chosen = _baseline(names, baseline, codes, sources, stream.scores)
    read = ~np.isnan(stream.scores)
    means = [stream_mean(stream.scores[at], sources[at]) for at in ((codes == k) & read for k in range(len(names)))]
    early, late = read & np.isin(codes, chosen), read & ~np.isin(codes, chosen)
    first, rest = (stream_mean(stream.scores[at], sources[at]) for at in (early, late))
    at = 0 if first is None else first.n_sources
    known = None if first is None else first.radius(alpha / 2, at) if by == "version" else first.half_width(alpha / 2)
    corrected = _corrected(stream, codes, names, sources)
    later = [k for k in range(len(names)) if k not in chosen]
    changes = {
        k: _movement(first, means[k], known, share_of_level(alpha / 4, place)) for place, k in enumerate(later, start=1)
    }
    labelled, unread = ~np.isnan(stream.labels), ~read
    periods = tuple(
        Period(
            name,
            int((codes == k).sum()),
            int(((codes == k) & unread).sum()),
            None if stream.unsure is None else int(((codes == k) & stream.unsure).sum()),
            int(((codes == k) & labelled).sum()),
            means[k],
            None if corrected is None else corrected[k].corrected,
            k in chosen,
            changes.get(k),
        )
        for k, name in enumerate(names)
    )
    return Watched(periods, first, _movement(first, rest, known, alpha / 4), alpha)


def periods_of(
    rows: Sequence[Written], by: By, *, baseline: Sequence[str] = (), alpha: float = 0.05
) -> tuple[IntArray, list[str]]:
    """The period of each text, (n,), as places in the names of all periods in order.  UsageError as `watch`."""
    if not 0 < alpha < 0.5:
        raise UsageError(f"--alpha must lie between 0 and 0.5; {alpha:g} came.")
    codes, names = _periods(rows, by)
    if unknown := [name for name in baseline if name not in names]:
        raise UsageError(f"There is no period {unknown[0][:60]!r}; there are: {', '.join(names)[:300]}.")
    return codes, names


def _movement(before: StreamMean | None, now: StreamMean | None, known: float | None, level: float) -> Movement:
    """The change from `before`, which lies off by `known` at most, to `now`, known to 1 − `level`."""
    if before is None or now is None:
        return Movement(None, None, None, "no verdicts" if now is None else "the baseline has no verdicts")
    value, own = now.value - before.value, now.radius(level, before.n_sources)
    if known is None or own is None or before.error is None or now.error is None:
        few = counted(min(before.n_sources, now.n_sources), "source")
        return Movement(value, None, None, f"from {few}; alarms begin at {LEAST}")
    reach = known + own
    return Movement(value, reach, reach + _POWER_QUANTILE * hypot(before.error, now.error))


def _periods(rows: Sequence[Written], by: By) -> tuple[IntArray, list[str]]:
    if by == "version":
        names = list(dict.fromkeys(row.item.system_id or UNKNOWN for row in sorted(rows, key=_when)))
        named = [row.item.system_id or UNKNOWN for row in rows]
    else:
        missing = sum(row.at is None for row in rows)
        if missing:
            raise UsageError(
                f"{missing:,} of {len(rows):,} texts have no time that can be read, and periods are {by}s. Name its "
                "column timestamp (2026-11-23T09:30:00), or take --by version."
            )
        named = [_start(row.at, by) for row in rows if row.at is not None]
        names = sorted(set(named))
    places = {name: k for k, name in enumerate(names)}
    return np.array([places[name] for name in named], dtype=np.intp), names


def _when(row: Written) -> float:
    return 0.0 if row.at is None else row.at.timestamp()


def _start(at: datetime, by: By) -> str:
    day = at.date()
    return (day if by == "day" else day - timedelta(days=day.weekday())).isoformat()


def _sources(rows: Sequence[Written]) -> IntArray:
    """(n,) the source of each text: as named, else what it was made from, else the text alone."""
    keys = [row.item.source_id or row.item.source or f"\0{row.item.item_id}" for row in rows]
    places: dict[str, int] = {}
    return np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.intp)


def _baseline(
    names: Sequence[str], wanted: Sequence[str], codes: IntArray, sources: IntArray, scores: FloatArray
) -> list[int]:
    """Places of the periods that the others are held against."""
    if wanted:
        return [names.index(name) for name in wanted]
    read = ~np.isnan(scores)
    for k in range(len(names)):
        if np.unique(sources[(codes <= k) & read]).size >= LEAST:
            return list(range(k + 1))
    return [0]


def _corrected(
    stream: Stream, codes: IntArray, names: Sequence[str], sources: IntArray
) -> tuple[SystemMean, ...] | None:
    """Means with the labels there are, a period taken for a system; None without labels."""
    if np.isnan(stream.labels).all():
        return None
    items = JudgedItems(stream.labels, stream.scores, sources, codes, tuple(names), stream.scale)
    return system_means(items).systems
