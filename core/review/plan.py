"""Who rates which items: a pass over a golden set, with overlap first high, then lower.

The first `shared` items go to every rater, so that their agreement shows early; each further item goes to `overlap`
of them, in turns.  The plan is fixed when the pass begins: what a person has to do never moves under their hands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from core.errors import UsageError
from core.records import FloatArray, GoldenSet, IntArray, JudgeScores, Scale

Order = Literal["random", "file", "disagreement", "unsure", "widest"]
ORDERS: tuple[Order, ...] = ("random", "file", "disagreement", "unsure", "widest")
PICKING: tuple[Order, ...] = ("disagreement", "unsure")
"""Orders in which the first items are no random draw of their system's: labels of them say nothing of its mean."""
MOST_RATERS = 100
MOST_KEYS = 11
"""A scale of up to this many steps is labelled with single keys."""


@dataclass(frozen=True, slots=True)
class LabelAspect:
    """What to rate: an aspect, its scale, and a sentence on what it means."""

    aspect: str
    scale: Scale
    definition: str = ""

    def takes(self, value: float) -> bool:
        """Whether a rater may give `value`: within the scale, and on one of its steps where it has steps."""
        step = self.scale.step
        if not self.scale.holds(value):
            return False
        return not step or abs((value - self.scale.low) / step - round((value - self.scale.low) / step)) < 1e-9

    def choices(self) -> tuple[float, ...]:
        """The labels to choose from, lowest first; empty for a continuous scale (a number is typed)."""
        step = self.scale.step
        if step is None or step <= 0:
            return ()
        count = round((self.scale.high - self.scale.low) / step) + 1
        return tuple(self.scale.low + k * step for k in range(count)) if count <= MOST_KEYS else ()


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """A labelling pass: `positions` (into the golden set) in the order of rating, for `n_raters` people.

    `blind`: raters see neither judges nor each other's labels.  `order` is how the positions came about.
    """

    aspects: tuple[LabelAspect, ...]
    positions: tuple[int, ...]
    n_raters: int = 3
    shared: int = 20
    overlap: int = 1
    blind: bool = True
    instructions: str = ""
    order: Order = "random"

    def __post_init__(self) -> None:
        if not self.aspects:
            raise UsageError("A labelling pass needs at least one aspect to rate.")
        if len({aspect.aspect for aspect in self.aspects}) < len(self.aspects):
            raise UsageError("An aspect is named twice.")
        if any(not aspect.aspect.strip() for aspect in self.aspects):
            raise UsageError("An aspect needs a name.")
        if any(not aspect.scale.low < aspect.scale.high for aspect in self.aspects):
            raise UsageError("A scale runs from a lower to a higher number.")
        if not self.positions:
            raise UsageError("A labelling pass needs at least one item.")
        if not 1 <= self.n_raters <= MOST_RATERS:
            raise UsageError(f"A pass is for 1 to {MOST_RATERS} raters, not {self.n_raters}.")
        if not 1 <= self.overlap <= self.n_raters:
            raise UsageError(f"Each item goes to 1 to {self.n_raters} raters, not {self.overlap}.")
        if self.shared < 0:
            raise UsageError(f"The number of items for everybody cannot be {self.shared}.")

    @property
    def n_ratings(self) -> int:
        """Ratings in all when everybody planned for is done; one on several aspects counts once."""
        shared = min(self.shared, len(self.positions))
        return shared * self.n_raters + (len(self.positions) - shared) * self.overlap

    def assigned(self, rater: int) -> tuple[int, ...]:
        """Positions that a rater (0, 1, … in the order of joining) rates, in order.

        Who joins beyond `n_raters` gets the items of an earlier rater and adds overlap.
        """
        rater %= self.n_raters
        head = self.positions[: self.shared]
        tail = (
            position
            for k, position in enumerate(self.positions[self.shared :])
            if (rater - k * self.overlap) % self.n_raters < self.overlap
        )
        return (*head, *tail)


def item_order(
    golden: GoldenSet,
    order: Order,
    *,
    seed: int = 0,
    limit: int | None = None,
    judges: Sequence[JudgeScores] = (),
    ratings: FloatArray | None = None,
    expected: tuple[FloatArray, FloatArray] | None = None,
    needed: Sequence[str] | None = None,
) -> tuple[int, ...]:
    """Positions of the items to rate, first things first, at most `limit`.

    "disagreement" puts those first on which `judges` (of any scales) or raters (`ratings`, (n_raters, n_items), NaN =
    not rated) disagree most, ties at random.  UsageError for it without at least two judges or two raters.  "unsure"
    takes the items without a label first, and of these first where a judge is expected to err most: `expected` are
    (n_items,) the errors, NaN = not known, and the labels.  UsageError for it without them.  "widest" takes the items
    in the order of `needed`, their ids (`core.comparison.judged.by_need`), then all others.  UsageError without any.
    """
    if order not in ORDERS:
        raise UsageError(f"The order is one of {', '.join(ORDERS)}, not {order!r}.")
    n = len(golden.items)
    generator = np.random.default_rng(seed)
    positions: IntArray = np.arange(n) if order == "file" else generator.permutation(n)
    if order == "disagreement":
        spread = disagreement(n, judges, ratings)
        positions = positions[np.argsort(-spread[positions], kind="stable")]
    if order == "unsure":
        if expected is None or np.isnan(expected[0]).all():
            raise UsageError(
                "To label the least sure first there must be a judge that scored these items, and enough labels to "
                "tell how far it errs. Calibrate a judge first, or choose the random order."
            )
        errors, labels = expected
        surest_last = np.where(np.isnan(errors), -np.inf, errors)[positions]
        positions = positions[np.lexsort((-surest_last, ~np.isnan(labels[positions])))]
    if order == "widest":
        if not needed:
            raise UsageError(
                "To label first of the system whose mean is known least there must be a judge that scored items "
                "without a label, and the items must say which system wrote them. Choose the random order."
            )
        place = {item_id: k for k, item_id in enumerate(needed)}
        own = np.array([place.get(item_id, len(place)) for item_id in golden.item_ids])
        positions = positions[np.argsort(own[positions], kind="stable")]
    return tuple(int(position) for position in positions[:limit])


def disagreement(n_items: int, judges: Sequence[JudgeScores], ratings: FloatArray | None = None) -> FloatArray:
    """(n_items,) how far judges and raters disagree on each item, in standard deviations; 0 where only one has spoken.

    Judges are compared by standardised scores, raters by their own; the larger of the two spreads counts.
    """
    scores = [_standardised(judge.upward[None, :]) for judge in judges if judge.values.size == n_items]
    groups = [np.ma.vstack(scores)] if len(scores) > 1 else []
    if ratings is not None and ratings.shape[0] > 1:
        groups.append(_standardised(ratings))
    if not groups:
        raise UsageError(
            "To label first where judges and raters disagree, there must be at least two judges, or labels of two "
            "raters. Calibrate or import judges first, or choose the random order."
        )
    spread: FloatArray = np.max([group.std(axis=0).filled(0.0) for group in groups], axis=0)
    return spread


def _standardised(values: FloatArray) -> np.ma.MaskedArray[Any, Any]:
    """By the mean and standard deviation of all known values, unknown ones masked; zeros where they do not vary."""
    known = np.ma.masked_invalid(values)
    standardised: np.ma.MaskedArray[Any, Any] = (known - known.mean()) / (known.std() or 1.0)
    return standardised
