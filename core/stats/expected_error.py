"""How far a verdict will lie from the people's label, expected from what is known when the verdict is given.

The root of the error is a ridge regression on a few features, its penalty chosen between sources; a score near the end
of the scale, a text of few words, criteria that disagree say how far off a verdict may be.  The expected error is kept
between `LEAST` and `MOST` times the mean, so that no verdict gets an interval of no width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from core.errors import JudgeError
from core.records import FloatArray, IntArray, Item, Scale

FEATURES = ("score", "inside", "spread", "words", "source_words", "new_words")
"""Of a verdict: where the calibrated score lies on the scale (0 to 1); how far from its ends (0 at an end, 1 in the
middle); standard deviation over the averaged criteria, in widths of the scale; logarithm of the words of the text and
of its source and context; share of the text's words that source and context do not have."""

PENALTIES = (3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4)
"""Strengths of the ridge; the last one leaves next to nothing but the mean."""

LEAST, MOST = 0.25, 4.0
FOLDS = 5
EVEN = 1e-9
"""A feature that spreads less than this is the same everywhere."""


def short(number: float) -> float:
    """Six digits, which is more than is known, so that a file can be read."""
    return float(f"{number:.6g}")


def source_folds(sources: IntArray, n_folds: int = FOLDS, seed: int = 0) -> IntArray:
    """(n,) a fold for each item: sources shuffled and dealt out, at most as many folds as sources."""
    names, of_item = np.unique(sources, return_inverse=True)
    dealt = np.random.default_rng(seed).permutation(np.arange(names.size) % max(1, min(n_folds, names.size)))
    return np.asarray(dealt[of_item], dtype=np.intp)


def known_features(items: Sequence[Item], calibrated: FloatArray, spread: FloatArray, scale: Scale) -> FloatArray:
    """(n_items, n_features) of `FEATURES`; NaN in `calibrated` (n_items,) makes its row NaN, in `spread` counts as 0.

    `spread` is the standard deviation of the averaged criteria's scores, in points.
    """
    width = scale.high - scale.low
    place = (calibrated - scale.low) / width
    texts = np.array([_of_text(item) for item in items], dtype=np.float64).reshape(len(items), 3)
    by_score = (place, 4.0 * place * (1.0 - place), np.nan_to_num(spread) / width)
    return np.column_stack([*by_score, texts])


def _of_text(item: Item) -> tuple[float, float, float]:
    said = item.target.lower().split()
    n_given, known = _given(item.source, item.context)
    new = (len(said) - sum(map(known.__contains__, said))) / max(1, len(said))
    return float(np.log1p(len(said))), float(np.log1p(n_given)), new


@lru_cache(maxsize=256)
def _given(source: str, context: str) -> tuple[int, frozenset[str]]:
    """How many words an item was made from, and which: items of one source follow each other."""
    words = f"{source} {context}".lower().split()
    return len(words), frozenset(words)


@dataclass(frozen=True, slots=True)
class Weighed:
    """A feature of the regression: it counts `weight` for each `width` that it lies above `centre`."""

    centre: float
    width: float
    weight: float


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """Expected error = `factor` · (`base` + Σ weight · (feature − centre) / width)², from `least` to `most` points."""

    base: float
    factor: float
    least: float
    most: float
    features: Mapping[str, Weighed]

    def of(self, features: FloatArray) -> FloatArray:
        """(n,) from (n, n_features) of `FEATURES`; NaN where one is missing."""
        weighed = [self.features[name] for name in FEATURES]
        centre, width, weight = (
            np.array([getattr(each, part) for each in weighed]) for part in ("centre", "width", "weight")
        )
        root = np.maximum(self.base + ((features - centre) / width) @ weight, 0.0)
        return np.asarray(np.clip(self.factor * root**2, self.least, self.most), dtype=np.float64)

    def as_json(self) -> dict[str, Any]:
        """Numbers by name, each feature as [centre, width, weight]."""
        each = {name: [short(own.centre), short(own.width), short(own.weight)] for name, own in self.features.items()}
        ends = {name: short(getattr(self, name)) for name in ("base", "factor", "least", "most")}
        return ends | {"features": each}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> ExpectedError:
        """What `as_json` wrote.  JudgeError for another set of features, or where a part is no number."""
        try:
            features = {str(name): Weighed(*map(float, own)) for name, own in body["features"].items()}
            base, factor, least, most = (float(body[name]) for name in ("base", "factor", "least", "most"))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise JudgeError(f"The model of the error is damaged ({error}). Calibrate again.") from error
        widths = [own.width for own in features.values()]
        if sorted(features) != sorted(FEATURES) or not 0 < least <= most or min(widths) <= 0:
            raise JudgeError(
                f"The model of the error needs the features {', '.join(FEATURES)}, widths above 0 and "
                f"0 < least <= most; got {', '.join(features)[:200]} and {least:g}, {most:g}. Calibrate again."
            )
        return cls(base, factor, least, most, features)


def fit_expected_error(features: FloatArray, errors: FloatArray, sources: IntArray) -> ExpectedError:
    """From (n, n_features) `features`, (n,) absolute `errors` in points, and (n,) codes of `sources`."""
    centre, width = features.mean(axis=0), features.std(axis=0)
    width = np.where(width > EVEN, width, 1.0)
    x, roots = (features - centre) / width, np.sqrt(errors)
    folds = source_folds(sources, seed=1)
    loss = np.zeros(len(PENALTIES))
    for fold in range(int(folds.max()) + 1 if folds.max() else 0):  # a single source tells no penalty from another
        out = folds == fold
        bases, weights = _ridge(x[~out], roots[~out])
        loss += ((bases + x[out] @ weights - roots[out, None]) ** 2).sum(axis=0)
    best = len(PENALTIES) - 1 - int(np.argmin(loss[::-1]))
    bases, weights = _ridge(x, roots)
    squares = np.maximum(bases[best] + x @ weights[:, best], 0.0) ** 2
    mean = max(float(errors.mean()), EVEN)
    named = zip(FEATURES, centre.tolist(), width.tolist(), weights[:, best].tolist(), strict=True)
    each = {name: Weighed(*numbers) for name, *numbers in named}
    factor = mean / max(float(squares.mean()), EVEN**2)
    return ExpectedError(float(bases[best]), factor, LEAST * mean, MOST * mean, each)


def crossed_errors(features: FloatArray, errors: FloatArray, sources: IntArray) -> FloatArray:
    """(n,) the error expected of each item by a model that was fitted without its source's fold."""
    folds = source_folds(sources, 2 * FOLDS, seed=2)
    expected = np.empty_like(errors)
    for fold in range(int(folds.max()) + 1):
        out = folds == fold
        expected[out] = fit_expected_error(features[~out], errors[~out], sources[~out]).of(features[out])
    return expected


def _ridge(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Intercepts (n_penalties,) and weights (n_features, n_penalties) of `y` (n,) on `x` (n, n_features)."""
    middle = x.mean(axis=0)
    values, turn = np.linalg.eigh((x - middle).T @ (x - middle))
    along = turn.T @ ((x - middle).T @ (y - y.mean()))
    weights = turn @ (along[:, None] / (np.maximum(values, 0.0)[:, None] + np.array(PENALTIES)))
    return np.asarray(y.mean() - middle @ weights), weights
