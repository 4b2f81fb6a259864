"""Fit directions in a model's hidden states along which text quality increases (RepEval), and store them in files.

A *cell* is a layer and a token whose hidden states are read. The estimators work like scikit-learn's, but fit many
cells at once. `fit(states, training)` learns, `score(states)` scores, and attributes with a trailing underscore hold
the result. States are (n_cells, n_items, dim) float32. Scores are (n_cells, n_variants, n_items) float64; higher is
better. `PaperPCA` has one variant per number of components; other methods have one variant.

PCA and SVM learn only from pairs of a text with a high label and a text with a low label. If a cell has nothing to
learn from, all its scores are 0, so its alignment is undefined.

A `RepEvalScorer` holds fitted cells, the name of the model and the template of its input. Files of scorers may come
from anybody, so they are validated.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np
from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import PlainSerializer, PlainValidator, TypeAdapter, ValidationError

from core.errors import AspectError, ConcordError, JudgeError
from core.records import FloatArray, IntArray, Item
from core.repeval.model import EMBEDDED, ModelSpec, describe
from core.repeval.states import Extraction, HalfArray, OnProgress, StateReader, template_text

COMPONENTS = 8
QUANTILE = 0.3
"""Share of the training labels from which good texts (at the top) and bad texts (at the bottom) are taken."""
LONGEST_TEXT = 20_000
TOGETHER = 512
"""Number of items whose states are in memory at once."""
DAMAGED = "the RepEval score in the file is damaged"
_COMMIT = re.compile("[0-9a-f]{40}")
STRICT = {"extra": "forbid", "allow_inf_nan": False}
"""Options of pydantic for reading files."""
PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
CellStates = NDArray[np.float32]
SMALLEST_SHARE = 1e-10  # components with a smaller share of the variance are rounding errors


def choose_pairs(
    labels: FloatArray, positions: IntArray, texts: Sequence[str], n: int, *, reuse: bool = False, generator: Generator
) -> tuple[IntArray, IntArray]:
    """Choose up to `n` pairs of a good text and a bad text.

    Good texts come from the top `QUANTILE` of the labels, bad texts from the bottom `QUANTILE`. Items with equal texts
    count as one item.

    Args:
        labels: Labels (n_items,) of the whole golden set, NaN = unlabelled.
        positions: Items to choose from.
        texts: Texts (n_items,) of the whole golden set.
        reuse: Allow a text in several pairs. Every pair is still used only once.

    Returns:
        Positions of the good texts and of the bad texts, in the order of the pairs.

    Raises:
        AspectError: All labels are equal, or fewer than 2 pairs are possible.
    """
    shuffled = generator.permutation(positions[~np.isnan(labels[positions])])
    one_each = {texts[position]: position for position in shuffled.tolist()}  # a random one of equal texts
    usable = np.array(sorted(one_each.values()), dtype=np.intp)
    values = labels[usable]
    if not usable.size or values.min() == values.max():
        raise AspectError(
            f"The {usable.size} training labels are all the same, so there are no good and bad texts to pair. Label "
            "items of different quality, or choose another aspect."
        )
    bad_to, good_from = np.quantile(values, [QUANTILE, 1.0 - QUANTILE])
    if good_from == bad_to:  # ties: the larger group keeps the label that both groups share
        below, above = values[values < bad_to], values[values > good_from]
        if below.size >= above.size:
            bad_to = below.max()
        else:
            good_from = above.min()
    good, bad = usable[values >= good_from], usable[values <= bad_to]
    if reuse:  # distinct pairs, with all texts used about equally often
        most = good.size * bad.size
        code = generator.choice(most, size=min(n, most), replace=False)
        good, bad = good[code // bad.size], bad[code % bad.size]
    else:
        count = min(n, good.size, bad.size)
        good, bad = generator.permutation(good)[:count], generator.permutation(bad)[:count]
    if len(good) < 2:
        raise AspectError(
            f"From {usable.size} training labels, Concord can't form 2 pairs of a good text (label {good_from:g} or "
            f"higher) and a bad text (label {bad_to:g} or lower). Label more items."
        )
    return good, bad


# ── projections ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Training:
    """The training data of a projection. Items are row numbers of the hidden states.

    Attributes:
        items: Labelled items (n,).
        labels: Labels (n,) of `items`.
        good: The better item (m,) of each pair.
        bad: The worse item (m,) of each pair.
        folds: Fold number (n,) of each of the `items`, from 0. Only `Ridge` requires folds.
    """

    items: IntArray
    labels: FloatArray
    good: IntArray
    bad: IntArray
    folds: IntArray | None = None


class PaperPCA:
    """PCA of the differences good − bad of the pairs, centred as in scikit-learn (RepEval, equations 3 and 4).

    Variant k scores a text with the first k components: score_k(x) = Σ_{i ≤ k} sign_i · w_i · (x · v_i), where v_i is
    component i and w_i its explained-variance ratio. The sign makes the good text score higher in most training pairs;
    the sum of the differences decides a tie. There are at most `components` variants, and fewer variants than pairs.

    `directions_` (n_cells, n_variants, dim) holds sign_i · w_i · v_i.
    """

    def __init__(self, components: int = COMPONENTS) -> None:
        self.components = components

    def fit(self, states: CellStates, training: Training) -> Self:
        gaps = states[:, training.good].astype(np.float64) - states[:, training.bad]
        centred = gaps - gaps.mean(axis=1, keepdims=True)
        _, values, directions = np.linalg.svd(centred, full_matrices=False)
        k, variance = min(self.components, gaps.shape[1] - 1), np.square(values)
        ratios = variance / np.maximum(variance.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        ratios, directions = np.where(ratios > SMALLEST_SHARE, ratios, 0.0)[:, :k], directions[:, :k]
        projected = _project(directions, gaps)
        votes = np.sign(projected).sum(axis=-1)
        signs = np.where(np.where(votes == 0, projected.sum(axis=-1), votes) < 0, -1.0, 1.0)
        self.directions_ = directions * (signs * ratios)[..., None]
        return self

    def score(self, states: CellStates) -> FloatArray:
        return np.cumsum(_project(self.directions_, states), axis=1)

    def portable(self, cell: int, variant: int, layer: int, token: str) -> ScorerCell:
        direction = self.directions_[cell, : variant + 1].sum(axis=0).astype(np.float32)
        return ScorerCell(layer, token, 0.0, 1.0, direction.astype(np.float64))


class PaperSVM:
    """SVM with an RBF kernel, trained on the texts of the pairs; the score is P(good) (RepEval, equation 5).

    The paper states neither gamma nor C, so gamma is "scale" (scikit-learn) and C is 1. The probability is Platt's
    sigmoid of cross-validated decision values. A fitted SVM cannot be saved to a file, so it scores only the items of
    its run.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, states: CellStates, training: Training) -> Self:
        good, bad = np.unique(training.good), np.unique(training.bad)
        rows, classes = np.concatenate([good, bad]), np.repeat([1, 0], [len(good), len(bad)])
        self.models_ = [self._fit_one(cell[rows], classes) for cell in states]
        return self

    def score(self, states: CellStates) -> FloatArray:
        rows = [
            np.zeros(len(cell)) if model is None else model.predict_proba(cell)[:, 1]
            for model, cell in zip(self.models_, states, strict=True)
        ]
        return np.array(rows, dtype=np.float64).reshape(len(states), 1, -1)

    def _fit_one(self, states: CellStates, classes: IntArray) -> Any:
        """Fit the classifier of one cell; None if the states don't vary."""
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.model_selection import StratifiedKFold
        from sklearn.svm import SVC

        if float(np.ptp(states, axis=0).max()) == 0.0:
            return None
        folds = StratifiedKFold(min(5, int(np.bincount(classes).min())), shuffle=True, random_state=self.seed)
        machine = SVC(kernel="rbf", gamma="scale", C=1.0)
        return CalibratedClassifierCV(machine, method="sigmoid", cv=folds, ensemble=False).fit(states, classes)


class Ridge:
    """Ridge regression of all training labels on standardised hidden states. It uses no pairs.

    The score is the predicted label minus the mean training label. Each cell uses the penalty with the lowest
    cross-validated squared error. scikit-learn's alpha is penalty × dim, so a penalty means the same for models of any
    width.

    Attributes:
        out_of_fold_: Scores (n_cells, n) of the training items, each from a model that was fitted without the
            item's fold. Only the standardisation uses all training items.
    """

    def __init__(self, penalties: tuple[float, ...] = PENALTIES) -> None:
        self.penalties = penalties

    def fit(self, states: CellStates, training: Training) -> Self:
        known = states[:, training.items]
        self.means_ = known.mean(axis=1, keepdims=True)
        deviations = known.std(axis=1, keepdims=True)
        smallest = deviations.max(axis=-1, keepdims=True) * 1e-6
        varies = deviations > smallest
        scales = np.where(varies, 1.0 / np.where(varies, deviations, 1.0), 0.0).astype(np.float32)
        standard = (known - self.means_) * scales
        assert training.folds is not None
        members = [np.flatnonzero(training.folds == fold) for fold in range(int(training.folds.max()) + 1)]
        fits = [ridge(cell, training.labels, self.penalties, members) for cell in standard]
        weights, self.penalties_, self.out_of_fold_ = (np.array(each) for each in zip(*fits, strict=True))
        self.directions_ = weights.astype(np.float32)[:, None, :] * scales
        return self

    def score(self, states: CellStates) -> FloatArray:
        return _project(self.directions_, states - self.means_)

    def portable(self, cell: int, variant: int, layer: int, token: str) -> ScorerCell:
        direction, mean = self.directions_[cell, 0].astype(np.float64), self.means_[cell, 0]
        return ScorerCell(layer, token, float((direction * mean).sum()), 1.0, direction)


Projection = PaperPCA | PaperSVM | Ridge


def ridge(
    states: NDArray[np.float32], labels: FloatArray, penalties: Sequence[float], folds: Sequence[IntArray]
) -> tuple[FloatArray, float, FloatArray]:
    """Fit a ridge regression with an intercept, and choose the penalty by cross-validation.

    With K = states · statesᵀ / dim, the matrix H = K (K + penalty)⁻¹ + 1/n maps labels to fitted values ŷ. Leaving out
    fold F gives exactly the errors (1 − H_FF)⁻¹ (y − ŷ)_F, without a second fit.

    Args:
        states: Centred states (n, dim).
        labels: Labels (n,).
        penalties: Penalties to choose from.
        folds: Rows of each fold.

    Returns:
        Weights (dim,), the chosen penalty, and out-of-fold predictions (n,) minus the mean label of the other folds.
    """
    n, dim = states.shape
    double = states.astype(np.float64)
    values, left = np.linalg.eigh((double @ double.T if n <= dim else double.T @ double) / dim)
    real = values > max(values[-1], 0.0) * 1e-9  # the others are rounding errors
    values, left = values[real], left[:, real]
    if n > dim:
        left = double @ left / np.sqrt(values * dim)
    centred = labels - labels.mean()
    moments = left.T @ centred
    best, least = (np.zeros(dim), penalties[0], np.zeros(n)), np.inf
    for penalty in penalties if values.size else ():
        shrunk = values / (values + penalty)
        residuals = centred - left @ (shrunk * moments)
        errors = np.empty(n)
        for rows in folds:
            free = np.eye(rows.size) - (left[rows] * shrunk) @ left[rows].T - 1.0 / n
            errors[rows] = np.linalg.solve(free, residuals[rows])
        error = float(np.square(errors).mean())
        if error < least:
            weights = double.T @ (left @ (moments / (values + penalty))) / dim
            best, least = (weights, penalty, labels - errors), error
    for rows in folds if values.size else ():
        best[2][rows] -= (labels.sum() - labels[rows].sum()) / (n - rows.size)
    return best


def _project(directions: FloatArray | CellStates, states: FloatArray | CellStates) -> FloatArray:
    """Return inner products (n_cells, k, n_items) in double precision.

    The states of a cell may differ only slightly, such as the embeddings of a last token. In single precision, rounding
    would then decide the order of nearly equal scores. Cells are processed one by one, so that the copy stays in the
    processor's cache.
    """
    products = np.empty((len(states), directions.shape[1], states.shape[1]))
    for cell, product in enumerate(products):
        np.matmul(directions[cell].astype(np.float64), states[cell].T.astype(np.float64), out=product)
    return products


# ── cells in files ───────────────────────────────────────────────────────────────────────────────────────────────


def _decoded(text: Any) -> FloatArray:
    if not isinstance(text, str):
        raise ValueError("must be float32 numbers encoded as base64")
    numbers = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float64)
    if not numbers.size or not np.isfinite(numbers).all():
        raise ValueError("must be one or more finite numbers")
    return numbers


def _encoded(numbers: FloatArray) -> str:
    return base64.b64encode(numbers.astype("<f4").tobytes()).decode("ascii")


Coded = Annotated[FloatArray, PlainValidator(_decoded), PlainSerializer(_encoded)]
"""An array that is stored in files as base64 of little-endian float32."""
Layer = Annotated[int, Ge(0), Le(100_000)]
Token = Annotated[str, MinLen(1), MaxLen(20)]


@dataclass(frozen=True)
class ScorerCell:
    """Fitted direction for one layer and token. A state's score is (state · `direction` − `centre`) / `spread`."""

    __pydantic_config__ = STRICT

    layer: Layer
    token: Token
    centre: float
    spread: Annotated[float, Gt(0)]
    direction: Coded

    @property
    def dim(self) -> int:
        return int(self.direction.size)

    def score(self, states: FloatArray) -> FloatArray:
        """Return the scores (n,) of `states` (n, dim)."""
        # a matrix product may give equal states different scores
        return np.asarray(((states * self.direction).sum(axis=1) - self.centre) / self.spread)


@dataclass(frozen=True)
class RepEvalScorer:
    """A fitted RepEval score: the mean of the scores of its `cells` (layer and token) on the hidden states of a model.

    Attributes:
        model: Name of the model.
        fingerprint: Identifies the weights of the model.
        precision: Dtype in which the states were read.
        extraction: How the states are read: texts, template, layers and tokens.
        cells: A fitted direction for each layer and token.
    """

    __pydantic_config__ = STRICT

    model: Annotated[str, MinLen(1), MaxLen(500)]
    revision: Annotated[str, MaxLen(200)]
    fingerprint: Annotated[str, MinLen(1), MaxLen(200)]
    precision: Literal["float32", "bfloat16", "float16"]
    extraction: Extraction
    cells: Annotated[tuple[ScorerCell, ...], MinLen(1), MaxLen(64)]

    def __post_init__(self) -> None:
        if len({(cell.layer, cell.token) for cell in self.cells}) < len(self.cells):
            raise ValueError("two cells have the same layer and token")
        if len({cell.dim for cell in self.cells}) > 1:
            raise ValueError("the direction vectors of its cells have different dimensions")

    @property
    def embedded(self) -> bool:
        """Whether the model is part of the installation."""
        return self.model == EMBEDDED

    @property
    def dim(self) -> int:
        """Dimension of the hidden states that this scorer reads."""
        return self.cells[0].dim

    def as_json(self) -> dict[str, Any]:
        """Return the scorer as JSON types. Directions are base64 of little-endian float32."""
        extraction = self.extraction
        return {
            "model": self.model,
            "revision": self.revision,
            "fingerprint": self.fingerprint,
            "precision": self.precision,
            "texts": extraction.texts,
            "template": template_text(extraction.template),
            "criterion": extraction.criterion,
            "max_tokens": extraction.max_tokens,
            "dim": self.dim,
            "cells": TypeAdapter(tuple[ScorerCell, ...]).dump_python(self.cells, mode="json"),
        }

    @classmethod
    def from_json(cls, body: Any) -> RepEvalScorer:
        """Create a scorer from the output of `as_json`, without loading a model.

        Raises JudgeError if `body` is invalid.
        """
        try:
            kept = dict(body)
            dim, cells = kept.pop("dim"), kept["cells"]
            how = {name: kept.pop(name) for name in ("texts", "template", "criterion", "max_tokens")}
            for name, axis in (("layers", "layer"), ("tokens", "token")):
                how[name] = list(dict.fromkeys(cell[axis] for cell in cells))
            if max(len(how["template"]), len(how["criterion"])) > LONGEST_TEXT or how["max_tokens"] > 1_000_000:
                raise ValueError("its template, criterion or max_tokens is too large")
            template_text(how["template"])
            scorer = TypeAdapter(cls).validate_json(json.dumps(kept | {"extraction": how}), strict=True)
            if type(dim) is not int or scorer.dim != dim:
                raise ValueError(f"its direction vectors have {scorer.dim} dimensions, not {str(dim)[:20]}")
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in fault["loc"])
            raise JudgeError(f"{DAMAGED}: {place}: {fault['msg'].removeprefix('Value error, ')}") from error
        except (ConcordError, KeyError, TypeError, ValueError) as error:
            raise JudgeError(f"{DAMAGED}: {error}") from error
        return scorer

    def score(self, states: HalfArray, layers: Sequence[int], tokens: Sequence[str]) -> FloatArray:
        """Return the scores (n_items,) of `states` (n_items, n_layers, n_tokens, dim); higher is better.

        A score that is not finite becomes NaN. Raises JudgeError if states and directions have different dimensions.
        """
        if states.shape[-1] != self.dim:
            raise JudgeError(
                f"{DAMAGED}: its direction vectors have {self.dim} dimensions, but the hidden states of {self.model} "
                f"have {states.shape[-1]}."
            )
        total = np.zeros(len(states))
        for cell in self.cells:
            own = states[:, layers.index(cell.layer), tokens.index(cell.token)].astype(np.float64)
            total += cell.score(own)
        return np.where(np.isfinite(total), total / len(self.cells), np.nan)


class ScorerWithModel:
    """A scorer with its model, which is loaded with the first item and stays in memory.

    `ray` is the address of the Ray cluster that reads the hidden states; "" reads them on this machine.
    """

    def __init__(self, scorer: RepEvalScorer, ray: str = "") -> None:
        commit = scorer.fingerprint if _COMMIT.fullmatch(scorer.fingerprint) else scorer.revision
        self._spec = ModelSpec(scorer.model, commit or None, precision=scorer.precision)
        self._scorer, self._reader = scorer, StateReader(self._spec, ray)

    def score(self, items: Sequence[Item], on_progress: OnProgress = lambda _done, _of: None) -> FloatArray:
        """Return the scores (n_items,) of `items`, NaN for an item whose hidden states are not finite.

        `on_progress(done, total)` receives numbers of items. Raises ModelNotFoundError if the model is missing. Raises
        JudgeError if the model differs from the model that the score was fitted with.
        """
        scorer, scores = self._scorer, np.empty(len(items))
        here = describe(self._spec).fingerprint
        if here != scorer.fingerprint:
            raise JudgeError(
                f"The model {scorer.model} isn't the version that this score was fitted on (fitted: "
                f"{scorer.fingerprint[:12]}; now: {here[:12]}), so its hidden states differ. Use the same version "
                "of the model, or fit RepEval again."
            )
        for start in range(0, len(items), TOGETHER):
            chunk = items[start : start + TOGETHER]
            states = self._reader.read(chunk, scorer.extraction)
            scores[start : start + len(chunk)] = scorer.score(states.values, states.layers, states.token_names)
            on_progress(start + len(chunk), len(items))
        return scores
