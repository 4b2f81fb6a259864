"""Labelled texts that never change, scored again at every look: has the judge itself moved?

Their labels and texts stand still, so whatever moves in their scores is the judge's own: another model behind the same
name, another server, another temperature.  Every look but the first is compared with the first, item by item, at a
level that shrinks with the number of looks, so that all looks together raise a false alarm with `alpha` at most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.json_form import json_fields
from core.records import Interval
from core.stats.claims import LEAST_SOURCES, TOO_FEW
from core.stats.confidence_sequence import share_of_level, stream_mean
from core.stats.intervals import ROUNDING


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
    looks: Sequence[Mapping[str, float]],
    labels: Mapping[str, float],
    sources: Mapping[str, str],
    alpha: float,
    *,
    width: float = math.inf,
) -> AnchorLook | None:
    """What the last of `looks` (anchor → score, those that were read) says beside the first; None without a look.

    `labels` and `sources` are those of the anchors, `width` is that of the scale, beyond which no change can go.
    """
    if not looks:
        return None
    first, now, n = looks[0], looks[-1], len(looks)
    both = [anchor for anchor in first if anchor in now]
    n_lost = len([anchor for anchor in first if anchor not in now])
    gap, before = (_gap(look, labels, both) for look in (now, first))
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
    half = _quantile(1.0 - level / 2.0, mean.n_sources - 1) * mean.error
    method = f"t({mean.n_sources - 1}) over sources, look {n - 1} after the first"
    interval = Interval(mean.value - half, mean.value + half, 1.0 - level, method, mean.n_sources).within(-width, width)
    return AnchorLook(n, len(both), n_lost, mean.value, interval, gap, before)


def _gap(look: Mapping[str, float], labels: Mapping[str, float], anchors: Sequence[str]) -> float | None:
    gaps = [look[anchor] - labels[anchor] for anchor in anchors if anchor in labels]
    return float(np.mean(gaps)) if gaps else None


def _quantile(p: float, freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, p))
