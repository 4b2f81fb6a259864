"""What a metric is: a named number per item, with its direction, needs and cost in words.

A metric never judges an item it cannot read: such an item is `Unscored` with its reason and NaN in the array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from core.errors import JudgeError
from core.judging.judge_protocol import OnProgress
from core.records import FloatArray, GoldenSet, Item, Unscored, content_digest
from core.texts import is_blank

Need = Literal["source", "references", "context", "model"]
Field = Literal["source", "references", "context"]
Against = Literal["source", "references"]
VERSION = 1
"""To be raised when a metric's numbers change, so that kept ones are not taken for new ones."""

NO_TEXT = "The target holds no text."
FIELDS: tuple[Field, ...] = ("source", "references", "context")


@dataclass(frozen=True, eq=False)
class MetricScores:
    """One number per item: `values` (n_items,) float64, NaN exactly where `unscored` has the item; never ±inf.

    `note` tells a person what else to know (inputs cut to a model's length, say); empty when there is nothing.
    """

    values: FloatArray
    unscored: tuple[Unscored, ...] = ()
    note: str = ""


Scorer = Callable[[Sequence[Item], OnProgress], MetricScores]


@dataclass(frozen=True, slots=True)
class Metric:
    """One way to put a number on an item.

    `measures` is one plain sentence.  `needs` are the parts of an item it reads next to the target, and "model" when it
    loads one that is not part of the installation.  `cost` is in words.
    `scorer` computes; `problem` says in words why it cannot run here at all ("" when it can), without heavy imports.
    `settings` tells apart what the name and the sentence do not (numbers handed in).
    """

    name: str
    measures: str
    needs: frozenset[Need]
    cost: str
    scorer: Scorer = field(repr=False, compare=False)
    higher_is_better: bool = True
    problem: Callable[[], str] = field(default=lambda: "", repr=False, compare=False)
    settings: str = ""

    @property
    def identity(self) -> str:
        """Content hash of what decides its numbers next to the items: the key under which they can be kept.

        A folder given as MODEL counts by its path, an id by its name: weights that change under it are not seen.
        """
        return content_digest("assistant", [VERSION, self.name, self.measures, self.settings])

    def missing(self, golden: GoldenSet | Sequence[Item]) -> str:
        """Why it cannot run on these items, in words; "" if it can (on at least one of them).

        Cheap: looks at the items and at what is installed; whether a model can be loaded shows only in `score`.
        """
        items = golden.items if isinstance(golden, GoldenSet) else golden
        if not items:
            return "there are no items"
        for name in FIELDS:
            if name in self.needs and not any(texts_of(item, name) for item in items):
                return f"no item of this golden set has {name if name == 'references' else f'a {name}'}"
        return self.problem()

    def score(self, items: Sequence[Item], on_progress: OnProgress = lambda done, of: None) -> MetricScores:
        """A number for each of `items`, in their order, and a reason for each that is missing.

        `on_progress` is called as (items done, items asked for) and may raise to stop.  JudgeError when a model or
        data it needs cannot be loaded, when the model does not fit its use, or numbers are not one per item.
        """
        scores = self.scorer(items, on_progress)
        if scores.values.shape != (len(items),):
            raise JudgeError(f"{self.name} returned numbers of shape {scores.values.shape} for {len(items)} items.")
        known = {unscored.item_id for unscored in scores.unscored}
        blank = np.array([is_blank(item.target) for item in items], dtype=np.bool_)
        finite = np.isfinite(scores.values) & ~blank
        added = tuple(
            Unscored(items[k].item_id, "missing input", NO_TEXT)
            if blank[k]
            else Unscored(items[k].item_id, "no verdict", "No finite number came out.")
            for k in np.flatnonzero(~finite).tolist()
            if items[k].item_id not in known
        )
        return replace(scores, values=np.where(finite, scores.values, np.nan), unscored=(*scores.unscored, *added))


# ── what scorers are built from ──────────────────────────────────────────────────────────────────────────────


def texts_of(item: Item, name: Field) -> tuple[str, ...]:
    """The texts of that field which hold anything but white space."""
    given = item.references if name == "references" else (item.source if name == "source" else item.context,)
    return tuple(text for text in given if not is_blank(text))


def lacking(items: Sequence[Item], needs: Iterable[Need]) -> dict[int, str]:
    """By position, what an item lacks of the target and `needs`, as a sentence."""
    wanted = [name for name in FIELDS if name in needs]
    reasons = {}
    for k, item in enumerate(items):
        if is_blank(item.target):
            reasons[k] = NO_TEXT
        elif absent := next((name for name in wanted if not texts_of(item, name)), ""):
            reasons[k] = f"The item has no {absent}."
    return reasons


def scores_of(items: Sequence[Item], values: FloatArray, reasons: Mapping[int, str], note: str = "") -> MetricScores:
    """`values` (n_items,) as scores; `reasons` say, by position, what an item without a number lacks."""
    unscored = tuple(Unscored(items[k].item_id, "missing input", reasons[k]) for k in sorted(reasons))
    return MetricScores(values, unscored, note)


def item_by_item(needs: frozenset[Need], prepare: Callable[[], Callable[[Item], float | str]]) -> Scorer:
    """A scorer that takes one item after the other.

    `prepare` makes, once for each call of `score`, the function from an item to its number, or to the sentence that
    says why it has none; what that function remembers is forgotten afterwards.
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        measure, reasons = prepare(), lacking(items, needs)
        values = np.full(len(items), np.nan)
        for k, item in enumerate(items):
            if k not in reasons:
                number = measure(item)
                if isinstance(number, str):
                    reasons[k] = number
                else:
                    values[k] = number
            if (k + 1) % 25 == 0 or k + 1 == len(items):
                on_progress(k + 1, len(items))
        return scores_of(items, values, reasons)

    return scorer


def text_by_text(
    items: Sequence[Item],
    needs: Iterable[Need],
    texts: Callable[[Item], Sequence[str]],
    rate: Callable[[list[tuple[str, str]]], FloatArray],
) -> MetricScores:
    """The best number of each item over the texts next to its target.

    `rate` gives (n_pairs,) numbers for all pairs of a text and a target at once.
    """
    reasons = lacking(items, needs)
    owners: list[int] = []
    pairs: list[tuple[str, str]] = []
    for k, item in enumerate(items):
        if k not in reasons:
            own = texts(item)
            owners += [k] * len(own)
            pairs += [(text, item.target) for text in own]
    values = np.full(len(items), np.nan)
    np.fmax.at(values, owners, rate(pairs))
    return scores_of(items, values, reasons)


def scaled(on_progress: OnProgress, n_items: int) -> OnProgress:
    """Turns inputs done (of any number) into items done (of `n_items`)."""
    return lambda done, of: on_progress(done * n_items // max(of, 1), n_items)
