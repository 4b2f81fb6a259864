"""The bar that criteria have to clear: a plain regression on the same labels, beside each judge, and what follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from core.json_form import json_fields
from core.records import Alignment, FloatArray, Measure
from core.stats.alignment import RESAMPLES, Difference, Seed, holm, measured
from core.stats.claims import (
    HALF_ALPHA,
    MARGIN,
    alone_words,
    claim,
    estimate,
    p_figure,
    p_short_of,
    signed,
    signed_range,
)
from core.stats.items import LabelledItems, paired
from core.wording import counted

Standing = Literal["better", "worse", "as well", "open", "untested", "undefined"]
"""Of a judge beside the regression; "as well": it is not better, the regression agrees as well."""


@dataclass(frozen=True)
class Bar:
    """The `alignment` of a regression that learnt from about `n_labels` labels of other sources.

    `minus` holds each judge minus the regression, on the items that both scored, p corrected after Holm over them.
    """

    alignment: Alignment
    n_labels: int
    minus: tuple[Difference, ...]

    @property
    def name(self) -> str:
        return f"plain regression on {counted(self.n_labels, 'label')}"

    def standing(self, judge: int) -> Standing:
        """Where judge number `judge` stands beside the regression, no stronger than the figures allow.

        Who is better has to agree beyond chance at all, by more than `MARGIN`; as well is an interval of the difference
        that ends below `MARGIN`, beside a regression that agrees beyond chance.
        """
        gap = self.minus[judge]
        shown = claim(gap.value, gap.interval, gap.p)
        if shown in ("undefined", "untested"):
            return shown
        if gap.p is not None and gap.p > HALF_ALPHA:
            shown = "open"
        if shown == "higher" and _beyond_chance(gap.a):
            return "better"
        if not _beyond_chance(self.alignment):
            return "open"
        if shown == "lower":
            return "worse"
        return "as well" if gap.interval is not None and gap.interval.high < MARGIN else "open"

    def words(self, judge: int, *, criteria: bool = False) -> str:
        """Whether judge number `judge` clears the bar, in a sentence; "" where one of the two is undefined.

        Of a judge known to score by `criteria` it says what they buy when it does not.
        """
        gap = self.minus[judge]
        buys = ", so the criteria buy readability, not agreement" if criteria else ""
        p = _p_words(gap)
        figures = f"{estimate(self.alignment)}, difference {signed(gap.value)} {signed_range(gap.interval)}, {p}"
        return {
            "better": f"It agrees better than a {self.name} does: {figures}.",
            "worse": f"A {self.name} agrees better{buys}: {figures}.",
            "as well": f"A {self.name} agrees as well: {figures}.",
            "open": f"That it agrees better than a {self.name} is not shown: {figures}{_what_else_it_takes(gap)}.",
            "untested": f"A {self.name} stands at {figures}.",
            "undefined": "",
        }[self.standing(judge)]

    def without_p(self, judge: int, reason: str) -> Bar:
        """The same, judge number `judge` without a p, for `reason`."""
        minus = [replace(gap, p=None, p_reason=reason) if k == judge else gap for k, gap in enumerate(self.minus)]
        return replace(self, minus=tuple(minus))

    def as_json(self) -> dict[str, Any]:
        words = [self.words(k) or None for k in range(len(self.minus))]
        return {"name": self.name} | json_fields(self) | {"words": words}


def bar_beside(
    predicted: FloatArray,
    n_labels: int,
    scores: FloatArray,
    items: LabelledItems,
    measure: Measure,
    *,
    resamples: int = RESAMPLES,
    seed: Seed = 0,
) -> Bar:
    """`scores` (n_judges, n_items) beside what a regression `predicted` (n_items,) for each item, NaN for none."""
    known = items.labelled(np.where(np.isnan(predicted), np.nan, items.labels))
    both = measured(paired(np.vstack([predicted, scores]), known), measure, resamples, seed)
    minus = [both.difference(k + 1, 0) for k in range(len(scores))]
    corrected = holm([np.nan if gap.p is None else gap.p for gap in minus]).tolist()
    settled = [gap if gap.p is None else replace(gap, p=p) for gap, p in zip(minus, corrected, strict=True)]
    return Bar(both.alignments[0], n_labels, tuple(settled))


def _p_words(gap: Difference) -> str:
    """The p; with what it takes where the difference looks shown and is not."""
    if gap.p is None:
        return f"no p, for {gap.p_reason}"
    short = gap.p > HALF_ALPHA and claim(gap.value, gap.interval, gap.p) in ("higher", "lower")
    return p_short_of(gap.p, HALF_ALPHA) if short else p_figure(gap.p) + alone_words(gap.interval, gap.p)


def _what_else_it_takes(gap: Difference) -> str:
    """Why a difference beyond chance does not show that the judge agrees better; "" where it is none."""
    shown = claim(gap.value, gap.interval, gap.p) == "higher"
    if not shown or gap.p is None or gap.p > HALF_ALPHA:
        return ""
    return f"; its own agreement, {estimate(gap.a)}, would have to exceed {MARGIN:g} beyond chance"


def _beyond_chance(alignment: Alignment) -> bool:
    return alignment.interval is not None and alignment.interval.low > MARGIN
