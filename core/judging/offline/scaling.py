"""Making features comparable without labels: each is centred, divided by its spread and bent at the ends.

Learnt by `fit` on calibration items (any items: labels are never seen), shipped as `NEUTRAL` for a judge that was not
prepared.  Scaling one item never depends on the others in its batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from core.errors import JudgeError
from core.judging.offline.concepts import CONCEPTS, KEYS
from core.judging.offline.features import FEATURES, INDEX, USUAL, feature_matrix, features_of
from core.records import FloatArray, Item, ItemKind

DECIMALS = 6
"""Decimals kept of what is learnt: states stay short and come back exactly."""

LEAST = 8
"""Items that must show a feature before its scaling is learnt."""

MIN_WIDTH = 0.05
"""Least spread of a concept: keeps one that hardly varies on calibration items from exploding elsewhere."""

BEND = 3.0
"""Standardised values beyond about this many spreads are bent towards it (tanh): no single freak decides."""


@dataclass(frozen=True)
class Scaling:
    """`centre` and `spread` (n_features,) of the features; `middle` and `width` (n_concepts,) of the concepts.

    `n_items` says on how many items it was learnt (0: shipped values).
    """

    centre: FloatArray
    spread: FloatArray
    middle: FloatArray
    width: FloatArray
    n_items: int = 0

    def concepts(self, features: FloatArray) -> FloatArray:
        """(n, n_features) → (n, n_concepts) with about unit spread; 0 where none of a concept's features is there."""
        standardised = np.nan_to_num(BEND * np.tanh((features - self.centre) / self.spread / BEND))
        raw = product(standardised, mixing())
        size = product(np.isfinite(features).astype(np.float64), np.abs(mixing()))
        value = (raw / np.maximum(size, 1.0) - self.middle) / self.width
        return np.where(size > 0, value, 0.0)

    def as_state(self) -> dict[str, Any]:
        """JSON-able: feature and concept names with their two numbers each."""
        features, concepts = np.stack([self.centre, self.spread], 1), np.stack([self.middle, self.width], 1)
        return {
            "n_items": self.n_items,
            "features": dict(zip(FEATURES, features.tolist(), strict=True)),
            "concepts": dict(zip(KEYS, concepts.tolist(), strict=True)),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Scaling:
        """JudgeError when names are missing; unknown ones (of another version) are refused too."""
        try:
            features, concepts = dict(state["features"]), dict(state["concepts"])
            if set(features) != set(FEATURES) or set(concepts) != set(KEYS):
                raise JudgeError(
                    "The offline judge's state was written by another version: its features differ. Calibrate again."
                )
            f = np.array([features[name] for name in FEATURES], dtype=np.float64)
            c = np.array([concepts[key] for key in KEYS], dtype=np.float64)
            n_items = int(state["n_items"])
        except (KeyError, TypeError, ValueError) as error:
            raise JudgeError(f"The offline judge's state cannot be read ({error}).") from error
        if f.shape != (len(FEATURES), 2) or c.shape != (len(KEYS), 2) or not np.isfinite([*f, *c]).all():
            raise JudgeError("The offline judge's state must hold two finite numbers for every feature and concept.")
        return cls(f[:, 0], f[:, 1], c[:, 0], c[:, 1], n_items)


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """The matrix product (n, k) × (k, m), every element summed in the order of k.

    A library product sums in an order that depends on the shapes: an item's last bits would depend on its batch.
    `left` must be finite: where `right` is 0 nothing is added.
    """
    total = np.zeros((left.shape[0], right.shape[1]))
    for column, row in zip(left.T, right, strict=True):
        there = np.flatnonzero(row)
        if there.size * 4 > row.size:
            total += column[:, None] * row
        else:  # most features belong to one or two of the concepts
            for k in there:
                total[:, k] += column * row[k]
    return total


@lru_cache(maxsize=1)
def mixing() -> FloatArray:
    """(n_features, n_concepts) of +1, −1 and 0: which features make up which concept."""
    signs = np.zeros((len(FEATURES), len(KEYS)))
    for column, concept in enumerate(CONCEPTS):
        for name, sign in concept.features.items():
            signs[INDEX[name], column] = sign
    return signs


@lru_cache(maxsize=8)
def applicable(kind: ItemKind) -> FloatArray:
    """(n_concepts,) 1 where items of this kind have at least one of the concept's features, else 0."""
    return np.array([float(not features_of(kind).isdisjoint(concept.features)) for concept in CONCEPTS])


def fit(items: Sequence[Item], kind: ItemKind) -> Scaling:
    """Scaling from items without labels; shipped values where fewer than `LEAST` items show a feature."""
    features = feature_matrix(items, kind)
    centre, spread = NEUTRAL.centre.copy(), NEUTRAL.spread.copy()
    for column in range(features.shape[1]):
        values = features[np.isfinite(features[:, column]), column]
        if len(values) >= LEAST:
            centre[column] = values.mean().round(DECIMALS)
            deviation = float(values.std().round(DECIMALS))
            spread[column] = deviation if deviation > 0 else max(NEUTRAL.spread[column], 1e-3)
    written = features[np.isfinite(features).any(axis=1)]
    if len(written) < LEAST:
        return Scaling(centre, spread, NEUTRAL.middle, NEUTRAL.width, len(items))
    values = Scaling(centre, spread, np.zeros(len(KEYS)), np.ones(len(KEYS))).concepts(written)
    middle, width = values.mean(axis=0).round(DECIMALS), np.maximum(values.std(axis=0), MIN_WIDTH).round(DECIMALS)
    return Scaling(centre, spread, middle, width, len(items))


_MEANS, _SPREADS = np.array([*USUAL.values()]).T
NEUTRAL = Scaling(_MEANS, _SPREADS, middle=np.zeros(len(KEYS)), width=np.full(len(KEYS), 0.7))
