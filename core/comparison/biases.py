"""What a judge leans on besides quality: length, the longer texts on one source, a place, systems of its own family.

Raters may well like longer texts, so only what goes beyond the labels is a bias.  `core.stats.beyond_labels` says how
that is told from noise in the scores and in the labels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from core.comparison.fails import ExaminedItems, pair_lengths, text_lengths
from core.json_form import json_fields
from core.records import Alignment, FloatArray, IntArray, Interval, Level, Measure, Scale, Statistic
from core.stats import claim, spread_over_sources
from core.stats.beyond_labels import LEAST_EXCESS, Beyond, beyond_labels, place_taken
from core.stats.change import stream_mean
from core.stats.claims import HALF_ALPHA, LEAST_SOURCES, TOO_FEW
from core.stats.intervals import CONFIDENCE, ROUNDING, t_quantile, two_sided
from core.stats.items import paired
from core.stats.reweighting import resampled_values
from core.wording import counted

BiasKind = Literal["length", "verbosity", "position", "own family"]

FAMILIES: dict[str, str] = {
    "GPT": r"gpt|openai|davinci|chatgpt|o[134](-|$)",
    "Claude": r"claude|anthropic",
    "Gemini": r"gemini|gemma|palm|bard",
    "Llama": r"llama|vicuna|alpaca",
    "Mistral": r"mi[sx]tral",
    "Qwen": r"qwen|qwq",
    "DeepSeek": r"deepseek",
    "T5": r"t5",
    "BART": r"bart",
}
"""Families of models by what stands in their names, small letters, at the start of a part of the name."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of `n` pairs with its 95 % interval by source; `p` is that of one half."""

    value: float
    interval: Interval | None
    p: float | None
    n: int

    def as_json(self) -> dict[str, Any]:
        return json_fields(self, but=("p",))


@dataclass(frozen=True)
class Bias:
    """A leaning of the judge: `difference` with its 95 % interval; `p` is corrected for all tests of the examination.

    For length, verbosity and own family `judge` and `people` are the correlations of scores and labels with it,
    `expected` the judge's correlation if it followed quality alone (a range where the labels' reliability is not
    known), and the difference is what the judge's exceeds that by; for a family (its `name`) in standard deviations of
    the scores.  For verbosity they are correlations within sources.  `least` is a difference too small to be called a
    bias.  `equal` is the alignment that is left at equal length, `plain` the alignment as it is.

    For the place in a pair the difference is a share: how much more often the judge prefers the second text than
    quality explains.  Of pairs asked both ways round `first` is the share of preferences for the text that stood first,
    a tie being half of one, `flips` that of pairs whose verdict changes with the order; the difference is then that of
    the second place from one half.  `reason` says why there is nothing, or no test.
    """

    kind: BiasKind
    difference: float | None = None
    interval: Interval | None = None
    p: float | None = None
    judge: Alignment | None = None
    people: Alignment | None = None
    expected: tuple[float, float] | None = None
    least: float = 0.0
    plain: Alignment | None = None
    equal: Alignment | None = None
    name: str = ""
    n: int = 0
    reason: str = ""
    first: Share | None = None
    flips: Share | None = None

    @property
    def shown(self) -> bool:
        """Whether it is beyond chance and no trifle; a judge is never said to be against its own family."""
        verdict = claim(self.difference, self.interval, self.p, alpha=HALF_ALPHA)
        if self.interval is None:
            return False
        if verdict == "higher":
            return self.interval.low > self.least
        return verdict == "lower" and self.interval.high < -self.least and self.kind != "own family"

    def as_json(self) -> dict[str, Any]:
        return json_fields(self) | {"shown": self.shown}


def examine_biases(examined: ExaminedItems, statistic: Statistic, model: str) -> tuple[Bias, ...]:
    """The biases, their tests not yet corrected; `model` names the judge's model, as far as it is known."""
    return (
        _length(examined, "length", statistic),
        _length(examined, "verbosity", statistic),
        _position(examined),
        _own_family(examined, model),
    )


def _position(examined: ExaminedItems) -> Bias:
    """How much more often the judge prefers the second text of a pair than quality explains."""
    if examined.golden.kind != "pair":
        return Bias("position", reason="there are no pairs")
    scale, labels = examined.golden.aspects[examined.aspect].scale, examined.labelled.labels
    if examined.turned is not None:
        return _by_order(examined.given, examined.turned, examined.labelled.sources, scale)
    sides = [np.sign(np.round(side - (scale.low + scale.high) / 2.0, 9)) for side in (examined.given, labels)]
    found = place_taken(sides[0], sides[1], examined.labelled.sources)
    reason = "" if found.p is not None else TOO_FEW
    return Bias("position", found.value, found.interval, found.p, n=labels.size, reason=reason)


def _by_order(given: FloatArray, turned: FloatArray, sources: IntArray, scale: Scale) -> Bias:
    """Whether the place of a text moves the verdict, of pairs asked both ways round (the verdict is their mean)."""
    both = ~np.isnan(turned)
    if not both.any():
        return Bias("position", reason="no pair was asked both ways round")
    orders = np.stack([2.0 * given[both] - turned[both], turned[both]])
    sides = np.sign(np.round(orders - (scale.low + scale.high) / 2.0, 9))  # −1: A is better, 1: B is
    first = _share(0.5 + (sides[1] - sides[0]) / 4.0, sources[both])
    flips = _share((sides[0] != sides[1]).astype(np.float64), sources[both])
    ends = first.interval and replace(first.interval, low=0.5 - first.interval.high, high=0.5 - first.interval.low)
    reason = "" if first.p is not None else TOO_FEW
    return Bias("position", 0.5 - first.value, ends, first.p, n=first.n, reason=reason, first=first, flips=flips)


def _share(values: FloatArray, sources: IntArray) -> Share:
    """Mean of `values` (n,) from 0 to 1, by source; where all are 0 or all 1 by the number of sources."""
    n_sources, value = int(np.unique(sources).size), float(values.mean())
    if n_sources >= LEAST_SOURCES and value in (0.0, 1.0) and values.min() == values.max():
        reach = 1.0 - ((1.0 - CONFIDENCE) / 2.0) ** (1.0 / n_sources)
        method = f"exact, {n_sources:,} sources that all say the same"
        interval = Interval(max(value - reach, 0.0), min(value + reach, 1.0), CONFIDENCE, method, n_sources)
        return Share(value, interval, 2.0 * 0.5**n_sources, values.size)
    mean = stream_mean(values, sources)
    if mean is None or n_sources < LEAST_SOURCES or mean.error is None or mean.error <= ROUNDING:
        return Share(value, None, None, values.size)
    reach, method = t_quantile(n_sources - 1) * mean.error, f"by source, {n_sources:,} sources, t({n_sources - 1})"
    ends = Interval(max(mean.value - reach, 0.0), min(mean.value + reach, 1.0), CONFIDENCE, method, n_sources)
    return Share(value, ends, two_sided((mean.value - 0.5) / mean.error, n_sources - 1), values.size)


def _length(examined: ExaminedItems, kind: BiasKind, statistic: Statistic) -> Bias:
    lengths, unit = text_lengths(examined.items)
    if examined.golden.kind == "pair":  # a high score prefers the second text: how much longer is it?
        lengths = pair_lengths(examined.items)
    if np.unique(lengths).size < 2:
        return Bias(kind, name=unit, n=lengths.size, reason="all texts are equally long")
    within = kind == "verbosity"
    found = _beyond(examined, lengths, within=within)
    if found is None or np.isnan(found.value):
        several = "no source has several texts of which length, score and label differ"
        reason = found.reason if found is not None else several if within else "all scores or all labels are equal"
        return Bias(kind, name=unit, n=lengths.size, reason=reason)
    equal, plain = (None, None) if within else _at_equal_length(examined, lengths, Measure(statistic, "dataset"))
    return replace(_biased(kind, found, within=within), plain=plain, equal=equal, name=unit)


def _beyond(
    examined: ExaminedItems, x: FloatArray, *, within: bool = False, n_behind: int | None = None
) -> Beyond | None:
    """What scores share with `x` (n,) beyond the labels or the ratings behind them; NaN for items left out."""
    kept = np.flatnonzero(~np.isnan(x))
    items = examined.labelled
    ratings = None if examined.ratings is None else examined.ratings.at(kept).values
    sides = (examined.scores[kept], x[kept], items.labels[kept], items.sources[kept])
    return beyond_labels(*sides, ratings=ratings, within=within, n_behind=n_behind)


def _biased(kind: BiasKind, found: Beyond, *, within: bool = False, unit: float = 1.0) -> Bias:
    """The bias that was `found`, its difference in `unit`s of a correlation."""
    level: Level = "sample" if within else "dataset"
    sides = ((found.judge, found.judge_interval), (found.labels, found.labels_interval))
    judge, people = (Alignment("spearman", level, value, found.n, interval=ends) for value, ends in sides)
    ends = found.interval
    if ends is not None:
        ends = replace(ends, low=ends.low / unit, high=ends.high / unit)
    return Bias(
        kind,
        found.value / unit,
        ends,
        found.p,
        judge,
        people,
        found.expected,
        LEAST_EXCESS / unit,
        n=found.n,
        reason=found.reason,
    )


def _at_equal_length(
    examined: ExaminedItems, lengths: FloatArray, measure: Measure
) -> tuple[Alignment | None, Alignment | None]:
    """The partial correlation of scores and labels given lengths, and the plain one, both with intervals."""
    items = examined.labelled
    by_length = paired(np.stack([examined.scores, items.labels]), items.labelled(lengths))
    by_label = paired(examined.scores, items)

    def values_of(counts: FloatArray) -> FloatArray:
        judge, people = resampled_values(by_length, counts, measure).T
        both = resampled_values(by_label, counts, measure)[:, 0]
        rest = np.sqrt(np.maximum((1.0 - judge**2) * (1.0 - people**2), 0.0))
        partial = np.where(rest > ROUNDING, both - judge * people, np.nan) / np.where(rest > ROUNDING, rest, 1.0)
        return np.column_stack([np.clip(partial, -1.0, 1.0), both])

    n_sources = by_label.items.n_sources
    if n_sources < 2:
        return None, None
    values = values_of(np.ones((1, n_sources)))[0]
    behind = np.full(2, n_sources)
    spread = spread_over_sources(values_of, values, behind, n_sources, np.random.default_rng(0))
    equal, plain = (
        None
        if np.isnan(value)
        else Alignment(measure.statistic, "dataset", float(value), items.n, interval=spread.interval(k))
        for k, value in enumerate(values)
    )
    return equal, plain


def family_of(name: str) -> str:
    """The family that a model's or a system's name tells; "" for none."""
    parts = re.split(r"[^a-z0-9.-]+|(?<=[a-z])-(?=[a-z])", name.lower())
    return next((family for family, known in FAMILIES.items() if any(re.match(known, part) for part in parts)), "")


def _own_family(examined: ExaminedItems, model: str) -> Bias:
    family = family_of(model)
    if examined.golden.kind == "pair":
        return Bias("own family", reason="a pair is of two systems")
    if not family:
        return Bias("own family", reason="the family of the judge's model is not known")
    systems = [item.system_id for item in examined.items]
    own = np.array([family_of(system) == family for system in systems], dtype=np.bool_)
    named = np.array([bool(system) for system in systems], dtype=np.bool_)
    kept, n_own = np.flatnonzero(named), int(own.sum())
    if n_own < 2 or kept.size - n_own < 2:
        why = f"{counted(n_own, 'text')} of its family ({family}) and {kept.size - n_own:,} of others: too few"
        return Bias("own family", name=family, reason=why)
    sources = examined.labelled.sources
    behind = min(np.unique(sources[own]).size, np.unique(sources[named & ~own]).size)
    found = _beyond(examined, np.where(named, own, np.nan), n_behind=behind)
    if found is None or np.isnan(found.value):
        reason = "all scores or all labels are equal" if found is None else found.reason
        return Bias("own family", name=family, n=kept.size, reason=reason)
    share = n_own / kept.size
    return replace(_biased("own family", found, unit=float(np.sqrt(share * (1.0 - share)))), name=family)
