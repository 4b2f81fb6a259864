"""What a judge leans on beside quality: length, the longer of two texts on one source, systems of its own family.

Each bias is the judge's beside people's, for people may well like longer texts: only what goes beyond them is a bias.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from core.comparison.fails import ExaminedItems, pair_lengths, text_lengths
from core.json_form import json_fields
from core.records import Alignment, FloatArray, IntArray, Interval, Measure, Scale, Statistic
from core.stats import claim, paired_difference, spread_over_sources
from core.stats.claims import LEAST_SOURCES, TOO_FEW, estimate, number, p_figure, range_words, signed, signed_range
from core.stats.confidence_sequence import stream_mean
from core.stats.intervals import CONFIDENCE, ROUNDING, t_quantile, two_sided
from core.stats.items import BoolArray, paired
from core.stats.reweighting import resampled_values
from core.wording import counted

BiasKind = Literal["length", "verbosity", "position", "own family"]

TITLES: dict[BiasKind, str] = {
    "length": "Length",
    "verbosity": "Longer texts on the same source",
    "position": "The second of two texts",
    "own family": "Systems of its own family",
}
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

    @property
    def words(self) -> str:
        return number(self.value) + (f" {range_words(self.interval)}" if self.interval else "")

    def as_json(self) -> dict[str, Any]:
        return json_fields(self, but=("p",))


@dataclass(frozen=True)
class Bias:
    """The judge beside people in one respect: `difference` with its 95 % interval; `p` is corrected for all tests.

    For length and verbosity `judge` and `people` are the correlations with length; `equal` is the alignment that is
    left at equal length, `plain` the alignment as it is.  For a family (its `name`) the difference is in standard
    deviations.  Of pairs asked both ways round `first` is the share of preferences for the text that stood first, a
    tie being half of one, `flips` that of pairs whose verdict changes with the order; the difference is then that of
    the second place from one half, which is people's, for each text stood in both.  `reason` says why there is nothing,
    or no test.
    """

    kind: BiasKind
    difference: float | None = None
    interval: Interval | None = None
    p: float | None = None
    judge: Alignment | None = None
    people: Alignment | None = None
    plain: Alignment | None = None
    equal: Alignment | None = None
    name: str = ""
    n: int = 0
    reason: str = ""
    first: Share | None = None
    flips: Share | None = None

    @property
    def title(self) -> str:
        return TITLES[self.kind] if self.first is None else "The place of a text in its pair"

    @property
    def shown(self) -> bool:
        """Whether it is beyond chance; against its own family a judge is never said to be."""
        verdict = claim(self.difference, self.interval, self.p)
        return verdict == "higher" or (verdict == "lower" and self.kind != "own family")

    @property
    def figures(self) -> str:
        """E.g. ``"0.68 [0.60, 0.75] against people's 0.23 [0.10, 0.35], +0.45 [+0.33, +0.57], p < .001"``."""
        if self.difference is None:
            return self.reason
        if self.first is not None and self.flips is not None:
            fair = f"{self.first.words}, where 0.50 is fair, {p_figure(self.p, self.reason or 'no p')}"
            changes = f"share of verdicts that change with the order {self.flips.words}"
            return f"share for the first place {fair}; {changes}; {counted(self.n, 'pair')}"
        gap = f"{signed(self.difference)} {signed_range(self.interval)}, {p_figure(self.p, self.reason or 'no p')}"
        return gap if self.judge is None else f"{estimate(self.judge)} against people's {estimate(self.people)}, {gap}"

    @property
    def words(self) -> str:
        """What is shown, in a sentence; "" where nothing is."""
        if not self.shown or self.difference is None:
            return ""
        more = "more" if self.difference > 0 else "less"
        match self.kind:
            case "length":
                left = f" At equal length its alignment is {estimate(self.equal)}, as it comes {estimate(self.plain)}."
                return f"It follows length {more} than people do: {self.figures}.{left if self.equal else ''}"
            case "verbosity":
                longer = "longer" if self.difference > 0 else "shorter"
                return f"Among texts on one source it prefers the {longer} beyond what people do: {self.figures}."
            case "position":
                place = "second" if self.difference > 0 else "first"
                if self.first is not None:
                    return f"Asked both ways round, it prefers the text that stands {place}: {self.figures}."
                return f"It prefers the {place} text of a pair more often than people do: share {self.figures}."
            case _:
                return f"It favours texts of {self.name} systems, its own family, beyond people: {self.figures} SD."

    def as_json(self) -> dict[str, Any]:
        return json_fields(self) | {"shown": self.shown, "words": self.words or None}


def examine_biases(examined: ExaminedItems, statistic: Statistic, model: str) -> tuple[Bias, ...]:
    """The biases, their tests not yet corrected; `model` names the judge's model, as far as it is known."""
    return (
        _length(examined, Measure(statistic, "dataset"), "length"),
        _length(examined, Measure(statistic, "sample"), "verbosity"),
        _position(examined),
        _own_family(examined, model),
    )


def _position(examined: ExaminedItems) -> Bias:
    """How much more often the judge gives the second text of a pair the preference than people do (1: always)."""
    if examined.golden.kind != "pair":
        return Bias("position", reason="there are no pairs")
    scale, labels = examined.golden.aspects[examined.aspect].scale, examined.labelled.labels
    if examined.turned is not None:
        return _by_order(examined.given, examined.turned, examined.labelled.sources, scale)
    sides = [
        (np.sign(np.round(side - (scale.low + scale.high) / 2.0, 9)) + 1.0) / 2.0 for side in (examined.given, labels)
    ]
    return _mean_gap(sides[0] - sides[1], examined.labelled.sources)


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
    gap = _mean_gap(values - 0.5, sources)
    ends = gap.interval
    if ends is not None:
        ends = replace(ends, low=max(ends.low + 0.5, 0.0), high=min(ends.high + 0.5, 1.0))
    return Share(value, ends, gap.p, values.size)


def _mean_gap(gaps: FloatArray, sources: IntArray) -> Bias:
    """Mean of `gaps` of pairs, by source."""
    mean = stream_mean(gaps, sources)
    if mean is None:
        return Bias("position", reason="there are no pairs")
    n = mean.n_sources
    if n < LEAST_SOURCES or mean.error is None or mean.error <= ROUNDING:
        return Bias("position", mean.value, n=gaps.size, reason=TOO_FEW)
    reach = t_quantile(n - 1) * mean.error
    interval = Interval(mean.value - reach, mean.value + reach, CONFIDENCE, f"by source, {n:,} sources, t({n - 1})", n)
    return Bias("position", mean.value, interval, two_sided(mean.value / mean.error, n - 1), n=gaps.size)


def _length(examined: ExaminedItems, measure: Measure, kind: BiasKind) -> Bias:
    lengths, unit = text_lengths(examined.items)
    if examined.golden.kind == "pair":  # a high score prefers the second text: how much longer is it?
        lengths = pair_lengths(examined.items)
    items = examined.labelled
    gap = paired_difference(examined.scores, items.labels, items.labelled(lengths), measure)
    if gap.value is None:
        alike = "all texts are equally long" if np.unique(lengths).size < 2 else gap.reason
        several = "no source has several texts of which length, score and label differ"
        return Bias(kind, name=unit, n=gap.n, reason=several if kind == "verbosity" else alike)
    equal, plain = (None, None) if kind == "verbosity" else _at_equal_length(examined, lengths, measure)
    return Bias(kind, gap.value, gap.interval, gap.p, gap.a, gap.b, plain, equal, unit, gap.n, gap.p_reason)


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
        why = f"{counted(n_own, 'text')} of its family ({family}) beside {kept.size - n_own:,} of others: too few"
        return Bias("own family", name=family, reason=why)
    labels, sides = examined.labelled.labels[kept], (examined.scores[kept], examined.labelled.labels[kept])
    if any(side.min() == side.max() for side in sides):
        return Bias("own family", name=family, n=labels.size, reason="all scores or all labels are equal")
    scores, labels = ((side - side.mean()) / side.std() for side in sides)
    return _favoured(scores - labels, own[kept], examined.labelled.sources[kept], family)


def _favoured(gaps: FloatArray, own: BoolArray, sources: IntArray, family: str) -> Bias:
    """Mean of `gaps` (judge above people, in standard deviations) of `own` minus others, by source."""
    weights = np.where(own, 1.0 / own.sum(), -1.0 / (~own).sum())
    means = np.where(own, gaps[own].mean(), gaps[~own].mean())
    value = float(weights @ gaps)
    _, of_item = np.unique(sources, return_inverse=True)
    by_source = np.bincount(of_item, weights=weights * (gaps - means))
    n_sources = by_source.size
    behind = min(np.unique(of_item[own]).size, np.unique(of_item[~own]).size)
    error = float(np.sqrt((by_source**2).sum() * n_sources / max(n_sources - 1, 1)))
    if behind < LEAST_SOURCES or error <= ROUNDING:
        return Bias("own family", value, name=family, n=gaps.size, reason=TOO_FEW)
    reach = t_quantile(behind - 1) * error
    method = f"by source, {n_sources:,} sources, t({behind - 1})"
    interval = Interval(value - reach, value + reach, CONFIDENCE, method, n_sources)
    p = two_sided(value / error, behind - 1)
    return Bias("own family", value, interval, p, name=family, n=gaps.size)
