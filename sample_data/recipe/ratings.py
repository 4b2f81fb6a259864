"""From known damage to the ratings of three simulated annotators.

Every number is a share of the scale's range, so that 1-5, 1-3, 0-1 and 1-6 are treated alike.  The quality that all
annotators look at is the product of what each damage leaves; each annotator then has a leniency, a noise and a chance
of noticing damage that is hard to see.  Nobody was asked: these are not people, and the README says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, prod
from random import Random
from statistics import fmean

UNDAMAGED = 0.94  # even a good text is not always given the top of the scale
HALO = 0.10  # share of the overall impression in the rating of a single aspect
TASTE = 0.06  # standard deviation of what annotators agree on but the damage does not explain
YES_NO_NOISE = (
    2.5  # on a yes-no scale the same noise is a larger share of the range: a definition read otherwise flips it
)


@dataclass(frozen=True, slots=True)
class Damage:
    """What one operation takes away: `cuts` maps an aspect to a share in 0..1.  `hidden` damage can be overlooked."""

    name: str
    cuts: Mapping[str, float]
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A finished target text and everything that was done to it."""

    text: str
    damages: tuple[Damage, ...]


@dataclass(frozen=True, slots=True)
class RatingScale:
    """Whole numbers from `low` to `high`, both included."""

    low: int
    high: int

    @property
    def noise_factor(self) -> float:
        return YES_NO_NOISE if self.high - self.low == 1 else 1.0


@dataclass(frozen=True, slots=True)
class Annotator:
    """A simulated rater: mean shift, standard deviation of the noise, chance of noticing hidden damage."""

    leniency: float
    noise: float
    attention: float


ANNOTATORS = (Annotator(0.04, 0.10, 0.90), Annotator(-0.06, 0.14, 0.80), Annotator(0.01, 0.12, 0.70))


def rate(written: Written, scales: Mapping[str, RatingScale], rng: Random) -> dict[str, list[int]]:
    """Three whole ratings per aspect, in the order of `ANNOTATORS`."""
    taste = {aspect: rng.gauss(0.0, TASTE) for aspect in scales}
    ratings: dict[str, list[int]] = {aspect: [] for aspect in scales}
    for annotator in ANNOTATORS:
        noticed = [d for d in written.damages if not d.hidden or rng.random() < annotator.attention]
        quality = {aspect: _quality(noticed, aspect) for aspect in scales}
        overall = fmean(quality.values())
        for aspect, scale in scales.items():
            seen = (1 - HALO) * quality[aspect] + HALO * overall
            seen += taste[aspect] + annotator.leniency + rng.gauss(0.0, annotator.noise * scale.noise_factor)
            ratings[aspect].append(_on_scale(seen, scale))
    return ratings


def label_columns(ratings: Mapping[str, Sequence[int]]) -> dict[str, object]:
    """The `human_*` means, then the `ann_*` lists, in the order of the aspects."""
    means: dict[str, object] = {f"human_{aspect}": fmean(values) for aspect, values in ratings.items()}
    return means | {f"ann_{aspect}": list(values) for aspect, values in ratings.items()}


def _quality(damages: Sequence[Damage], aspect: str) -> float:
    return UNDAMAGED * prod(1 - damage.cuts.get(aspect, 0.0) for damage in damages)


def _on_scale(share: float, scale: RatingScale) -> int:
    value = floor(scale.low + share * (scale.high - scale.low) + 0.5)
    return min(max(value, scale.low), scale.high)
