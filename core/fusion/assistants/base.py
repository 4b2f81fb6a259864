"""What an assistant is: a named number per item, with its range, direction, needs and cost in words (004 §3).

An assistant never judges an item it cannot read: such an item is `Unscored` with its reason and NaN in the array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from core.errors import JudgeError
from core.judging.base import OnProgress
from core.records import FloatArray, GoldenSet, Item, Unscored, content_digest

Need = Literal["source", "references", "context", "model"]
Field = Literal["source", "references", "context"]
VERSION = 1
"""To be raised when an assistant's numbers change, so that kept ones are not taken for new ones."""

FIELDS: tuple[Field, ...] = ("source", "references", "context")

_NO_NUMBER = "No finite number came out."
_LACKING = {
    "source": "no item of this golden set has a source",
    "references": "no item of this golden set has references",
    "context": "no item of this golden set has a context",
}


@dataclass(frozen=True, eq=False)
class AssistantScores:
    """One number per item: `values` (n_items,) float64, NaN exactly where `unscored` has the item; never ±inf.

    `note` tells a person what else to know (inputs cut to a model's length, say); empty when there is nothing.
    """

    values: FloatArray
    unscored: tuple[Unscored, ...] = ()
    note: str = ""

    @property
    def n_scored(self) -> int:
        return int(np.isfinite(self.values).sum())


Scorer = Callable[[Sequence[Item], OnProgress], AssistantScores]


@dataclass(frozen=True, slots=True)
class Assistant:
    """One way to put a number on an item.

    `measures` is one plain sentence.  `low` and `high` end the range (None: open).  `needs` are the parts of an item it
    reads beside the target, and "model" when it loads one that is not part of the installation.  `cost` is in words.
    `scorer` computes; `problem` says in words why it cannot run here at all ("" when it can), without heavy imports.
    `settings` tells apart what the name and the sentence do not (numbers handed in, words not stemmed).
    """

    name: str
    measures: str
    low: float | None
    high: float | None
    needs: frozenset[Need]
    cost: str
    scorer: Scorer = field(repr=False, compare=False)
    higher_is_better: bool = True
    problem: Callable[[], str] = field(default=lambda: "", repr=False, compare=False)
    settings: str = ""

    @property
    def identity(self) -> str:
        """Content hash of what decides its numbers beside the items: the key under which they can be kept.

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
                return _LACKING[name]
        return self.problem()

    def score(self, items: Sequence[Item], on_progress: OnProgress | None = None) -> AssistantScores:
        """A number for each of `items`, in their order.

        `on_progress` is called as (items done, items asked for) and may raise to stop.  JudgeError when a model or
        data it needs cannot be loaded, when the model does not fit its use, or numbers are not one per item.
        """
        return _completed(self.name, self.scorer(items, on_progress or _silent), items)

    def oriented(self, values: FloatArray) -> FloatArray:
        """`values` with more meaning better: negated where lower is better."""
        return values if self.higher_is_better else -values

    def flipped(self) -> Assistant:
        """The same assistant read the other way round (lower is better, or no longer so)."""
        return replace(self, higher_is_better=not self.higher_is_better)


def _completed(name: str, scores: AssistantScores, items: Sequence[Item]) -> AssistantScores:
    """The same with a reason for every number that is missing, whoever wrote the scorer."""
    if scores.values.shape != (len(items),):
        raise JudgeError(f"{name} returned numbers of shape {scores.values.shape} for {len(items)} items.")
    known = {unscored.item_id for unscored in scores.unscored}
    holes = [i for i in np.flatnonzero(~np.isfinite(scores.values)).tolist() if items[i].item_id not in known]
    values = np.where(np.isfinite(scores.values), scores.values, np.nan)
    added = tuple(Unscored(items[i].item_id, "no verdict", _NO_NUMBER) for i in holes)
    return replace(scores, values=values, unscored=(*scores.unscored, *added))


def _silent(done: int, asked: int) -> None:
    """Report to nobody."""


# ── what scorers are built from ──────────────────────────────────────────────────────────────────────────────


def texts_of(item: Item, name: Field) -> tuple[str, ...]:
    """The texts of that part which hold anything but white space."""
    given = item.references if name == "references" else (item.source if name == "source" else item.context,)
    return tuple(text for text in given if text.strip())


def lacking(item: Item, needs: Iterable[Need]) -> str:
    """What the item lacks of the target and `needs`, as a sentence; "" when all is there."""
    if not item.target.strip():
        return "The target holds no text."
    for name in FIELDS:
        if name in needs and not texts_of(item, name):
            return f"The item has no {name}."
    return ""


def scores_of(
    items: Sequence[Item], found: Mapping[int, float], reasons: Mapping[int, str], note: str = ""
) -> AssistantScores:
    """Scores by position into `items`; `reasons` tell, by position, what an item without a number lacks."""
    values = np.full(len(items), np.nan)
    values[list(found)] = list(found.values())
    unscored = tuple(Unscored(items[i].item_id, "missing input", reasons[i]) for i in sorted(reasons))
    return AssistantScores(values, unscored, note)


def item_by_item(needs: frozenset[Need], prepare: Callable[[], Callable[[Item], float | str]]) -> Scorer:
    """A scorer that takes one item after the other.

    `prepare` makes, once for each call of `score`, the function from an item to its number, or to the sentence that
    says why it has none; what that function remembers is forgotten afterwards.
    """

    def scorer(items: Sequence[Item], on_progress: OnProgress) -> AssistantScores:
        measure = prepare()
        found: dict[int, float] = {}
        reasons: dict[int, str] = {}
        for position, item in enumerate(items):
            result = lacking(item, needs) or measure(item)
            if isinstance(result, str):
                reasons[position] = result
            else:
                found[position] = result
            if (position + 1) % 25 == 0 or position + 1 == len(items):
                on_progress(position + 1, len(items))
        return scores_of(items, found, reasons)

    return scorer
