"""RepEval: find the layers and tokens of a model whose hidden states agree best with raters.

A *cell* is one layer at one token. For each cell, a projection of the hidden states is fitted to labels of training
items. Cells are ranked by their agreement with raters on validation items. The method "ridge" instead ranks by
cross-validation over the sources of the training items. The best cells are averaged and evaluated on test items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from core.data.split import inner_fold, split_sources
from core.errors import AspectError, GoldenError, JudgeError, UsageError
from core.records import (
    Alignment,
    FloatArray,
    GoldenSet,
    IntArray,
    Level,
    Measure,
    Split,
    Statistic,
    check_settings,
    is_blank,
    setting,
)
from core.repeval.model import ModelSpec
from core.repeval.projection import (
    PaperPCA,
    PaperSVM,
    Projection,
    RepEvalScorer,
    Ridge,
    ScorerCell,
    Training,
    choose_pairs,
)
from core.repeval.states import Extraction, OnProgress, States, finite_cells, usual_texts, varying_cells
from core.stats import LabelledItems, align, alignment_values

Method = Literal["ridge", "paper-pca", "paper-svm"]
METHODS: tuple[Method, ...] = get_args(Method)
AVERAGED = 20
"""Number of cells that ridge averages."""
PAIRS: dict[Method, int] = {"ridge": 20, "paper-pca": 20, "paper-svm": 100}
VALIDATION_SHARE = 0.2
FOLDS = 10
FEW_LABELS = 50  # validation labels below which the choice of a cell is mostly luck
BATCH_BYTES = 256 << 20
SAFE_DIGITS = 9  # digits of a score that don't depend on the order of summation in double precision


@dataclass(frozen=True, slots=True)
class RepEvalSettings:
    """Settings of RepEval.

    Attributes:
        method: "ridge" averages the z-scores of the 20 best cells (a layer at a token). The other methods are those of
            the RepEval paper, and use one cell.
        reading: Which layers, tokens and texts are read; None means the default extraction (see `read`).
        n_pairs: Number of training pairs of the paper's methods; None means 20, or 100 for paper-svm, whose pairs may
            share texts.
        level: None means the default level of the aspect.
        test_share: Share of the sources whose items are test items. The paper's methods choose their cell on 20 % of
            all sources, and train on the rest.
        random_vectors: Number of random directions to compare with; 0 means none.
    """

    method: Method = "ridge"
    model: ModelSpec = field(default_factory=ModelSpec)
    reading: Extraction | None = None
    n_pairs: int | None = setting(None, "Number of training pairs, each with a good and a bad text.", low=2)
    statistic: Statistic = "spearman"
    level: Level | None = None
    test_share: float = setting(0.4, low=0.05, high=0.7)
    seed: int = 0
    random_vectors: int = setting(
        2_000, "Number of random directions to compare with the chosen cell's direction.", low=0
    )

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def uses_pairs(self) -> bool:
        """Whether the method trains on pairs of items and uses one cell, chosen on validation items."""
        return self.method != "ridge"

    def read(self, aspect: str) -> Extraction:
        """Return `reading`. If it is None, return the default extraction for `aspect`."""
        return self.reading or Extraction(criterion=aspect, texts=usual_texts(self.model.name))

    def on(self, golden: GoldenSet, aspect: str) -> RepEvalSettings:
        """Return these settings; a level of None becomes the default level of `aspect`."""
        return self if self.level else replace(self, level=LabelledItems.of(golden, aspect).usual_level)

    @property
    def measure(self) -> Measure:
        """The statistic and level. The level must not be None (`on` fills it in)."""
        assert self.level is not None
        return Measure(self.statistic, self.level)


@dataclass(frozen=True, slots=True)
class RepEvalSplit:
    """Positions in `GoldenSet.items` of training, validation and test items. Test items have their own sources.

    With the method "ridge", training and validation items are the same, because each item is scored by a model that
    was fitted without the item's source.
    """

    train: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RepEvalCell:
    """A layer and token, with its alignment on validation and test items (None = undefined).

    `k` is the number of principal components; None for methods other than PCA.
    """

    layer: int
    token: str
    k: int | None
    validation: float | None
    test: float | None

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON types. A token that counts from the end becomes a negative number."""
        return asdict(self) | {"token": token_json(self.token)}


@dataclass(frozen=True)
class RandomBaseline:
    """Test alignments `values` (n,) of random directions in the chosen cell, NaN = undefined.

    `projection` is the test alignment of the chosen cell itself; None if undefined.
    """

    projection: float | None
    values: FloatArray

    @property
    def percentile(self) -> float | None:
        """The percentage of random directions below `projection`, 0 to 100; None if undefined. A tie counts half."""
        defined = self.values[~np.isnan(self.values)]
        if self.projection is None or not defined.size:
            return None
        below, level = (defined < self.projection).mean(), (defined == self.projection).mean()
        return float(100.0 * (below + 0.5 * level))

    def as_json(self) -> dict[str, Any]:
        return {"percentile": self.percentile, "projection": self.projection, "n": int(self.values.size)}


def _without_kernel(stored: Any) -> Any:
    """Remove the scorer of an SVM, which earlier versions stored."""
    return None if isinstance(stored, dict) and "support" in stored["cells"][0] else stored


@dataclass(frozen=True)
class RepEvalResult:
    """The result of RepEval: scores of all items, the chosen cells, and alignments with the raters.

    A cell is a layer at a token.

    Attributes:
        chosen: The cell with the best validation alignment.
        members: The cells whose z-scores are averaged.
        validation: Alignment of `scores` on the validation items. Optimistic, because the same items decide which cells
            are chosen.
        test: Alignment of `scores` on the test items.
        cells: Validation alignment of each cell (n_layers, n_tokens), NaN = undefined.
        scores: Scores (n_items,), in the order of the golden set. Higher is better; the unit has no meaning. With
            "ridge", each training item is scored by a model that was fitted without the item's source. With other
            methods, scores of training items are optimistic.
        n_pairs: Number of training pairs; 0 for "ridge".
        states: Properties of the hidden states, such as the model.
        scorer: Scores other items; None for paper-svm and for some results of earlier versions.
    """

    aspect: str
    settings: RepEvalSettings
    layers: tuple[int, ...]
    tokens: tuple[str, ...]
    chosen: RepEvalCell
    members: tuple[RepEvalCell, ...]
    validation: Alignment
    test: Alignment
    cells: FloatArray
    scores: FloatArray
    parts: RepEvalSplit
    random: RandomBaseline | None
    n_pairs: int
    states: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    scorer: Annotated[RepEvalScorer | None, BeforeValidator(_without_kernel)] = None

    @property
    def model(self) -> str:
        return str(self.states.get("model", ""))

    @property
    def optimism(self) -> float | None:
        """Validation alignment minus test alignment; None if either is undefined."""
        if self.validation.value is None or self.test.value is None:
            return None
        return self.validation.value - self.test.value

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of `repeval --json`. Undefined values are null, never NaN."""
        return {
            "aspect": self.aspect,
            "method": self.settings.method,
            "layer": self.chosen.layer,
            "token": token_json(self.chosen.token),
            "k": self.chosen.k,
            "validation": self.validation.as_json(),
            "test": self.test.as_json(),
            "optimism": self.optimism,
            "random": {"percentile": None} if self.random is None else self.random.as_json(),
            "cells": [[nullable(value) for value in row] for row in self.cells.tolist()],
            "layers": list(self.layers),
            "tokens": [token_json(name) for name in self.tokens],
            "chosen": self.chosen.as_json(),
            "averaged": [cell.as_json() for cell in self.members],
            "n_pairs": self.n_pairs,
            "n_train": len(self.parts.train),
            "n_validation": len(self.parts.validation),
            "n_test": len(self.parts.test),
            "seed": self.settings.seed,
            "states": dict(self.states),
            "warnings": list(self.warnings),
        }


def evaluate(scores: FloatArray, items: LabelledItems, settings: RepEvalSettings) -> Alignment:
    """Return the alignment of `scores` (n_all_items,) with the labels of `items`, with an interval."""
    own = scores[items.positions]
    return align(own, items, settings.measure, seed=[settings.seed, 3])


def token_json(name: str) -> int | str:
    """Return the name of a token as a number if it is a position from the end ("-1"), otherwise unchanged."""
    return int(name) if name.startswith("-") else name


def nullable(value: float) -> float | None:
    """Return `value`, or None for NaN."""
    return None if np.isnan(value) else float(value)


# ── a run ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def run(
    golden: GoldenSet,
    aspect: str,
    states: States,
    settings: RepEvalSettings | None = None,
    *,
    split: Split | None = None,
    on_progress: OnProgress | None = None,
) -> RepEvalResult:
    """Run RepEval on the hidden states of a golden set for one aspect. The result is deterministic.

    Args:
        settings: Level None means the default level of the aspect.
        split: Train on its calibration items and test on its held-out items. Pass the split of other judges to test
            RepEval on the same items. None splits by source at random.
        on_progress: Called with (done, total) cells.

    Raises:
        AspectError: The aspect does not have at least two different labels.
        GoldenError: There are too few sources.
        UsageError: The items are pairs of texts.
    """
    how = (settings or RepEvalSettings()).on(golden, aspect)
    parts = split_three(golden, aspect, how, split)
    validation, test = (LabelledItems.of(golden, aspect, part) for part in (parts.validation, parts.test))
    training = training_of(golden, aspect, parts, how)
    make: dict[str, Callable[[], Projection]] = {
        "ridge": Ridge,
        "paper-pca": PaperPCA,
        "paper-svm": lambda: PaperSVM(seed=how.seed),
    }
    found = search(
        states,
        make[how.method],
        training=training,
        validation=validation,
        measure=how.measure,
        on_progress=on_progress,
    )
    best, fits, scores = average_cells(found, validation, 1 if how.uses_pairs else AVERAGED)
    scores[blank_items(golden)] = np.nan
    on_test = alignment_values(found.scores[best[:, 0], best[:, 1]][:, test.positions], test, how.measure)
    cells = found.cells
    members = tuple(
        RepEvalCell(
            states.layers[i],
            states.token_names[j],
            int(found.best_k[i, j]) + 1 if how.method == "paper-pca" else None,
            float(cells[i, j]),
            nullable(value),
        )
        for (i, j), value in zip(best.tolist(), on_test, strict=True)
    )
    warnings = list(states.warnings())
    if undefined := int(np.isnan(cells).sum()):
        warnings.append(
            f"The agreement is undefined for {undefined} of {cells.size} cells, because "
            "their values are all the same or not finite."
        )
    if validation.labels.size < FEW_LABELS:
        warnings.append(
            f"The layer and token were chosen on only {validation.labels.size} labels. With different "
            "labels, the choice might be different."
        )
    if how.uses_pairs:
        warnings.append(
            "The validation agreement is optimistic, because it was used to choose the best of many cells. Report "
            "the test agreement."
        )
    scorer = None
    if fits:
        read = replace(
            states.extraction,
            layers=tuple(dict.fromkeys(cell.layer for cell in fits)),
            tokens=tuple(dict.fromkeys(cell.token for cell in fits)),
        )
        precision = cast(Any, states.precision)
        scorer = RepEvalScorer(states.model, states.revision, states.fingerprint, precision, read, fits)
    return RepEvalResult(
        aspect=aspect,
        settings=how,
        layers=states.layers,
        tokens=states.token_names,
        chosen=members[0],
        members=members,
        validation=evaluate(scores, validation, how),
        test=evaluate(scores, test, how),
        cells=cells,
        scores=scores,
        parts=parts,
        random=random_baseline(states.values[:, best[0, 0], best[0, 1]], test, how, members[0].test),
        n_pairs=training.good.size if how.uses_pairs else 0,
        states=states.summary(),
        warnings=tuple(warnings),
        scorer=scorer,
    )


def split_three(golden: GoldenSet, aspect: str, settings: RepEvalSettings, split: Split | None = None) -> RepEvalSplit:
    """Split the labelled items into training, validation and test items. Test items come from sources of their own.

    Raises UsageError for pairs of texts.
    """
    if golden.kind == "pair":
        raise UsageError(
            f"RepEval reads single texts, but the items in {golden.name} are pairs of texts. Choose another golden set."
        )
    fitted = 1.0 - settings.test_share
    whole = split or split_sources(golden, aspect=aspect, fraction=fitted, seed=settings.seed)
    blank = set(blank_items(golden))
    calibration = tuple(k for k in whole.calibration if k not in blank)  # a label without a text can't train
    if not settings.uses_pairs:
        return RepEvalSplit(calibration, calibration, whole.held_out)
    share = (fitted - VALIDATION_SHARE) / fitted
    train, validation = inner_fold(calibration, golden.source_codes, share, settings.seed)
    return RepEvalSplit(train, validation, whole.held_out)


def blank_items(golden: GoldenSet) -> list[int]:
    """Return the positions of items without a text. These items are never scored."""
    return [k for k, item in enumerate(golden.items) if is_blank(item.target)]


def training_of(golden: GoldenSet, aspect: str, parts: RepEvalSplit, settings: RepEvalSettings) -> Training:
    """Return the training data of a projection, with positions in the golden set.

    Raises:
        AspectError: No pairs can be formed from the labels.
        GoldenError: There are too few sources for cross-validation.
    """
    good, bad = choose_pairs(
        golden.labels(aspect),
        np.asarray(parts.train, dtype=np.intp),
        [item.target for item in golden.items],
        settings.n_pairs or PAIRS[settings.method],
        reuse=settings.method == "paper-svm",
        generator=np.random.default_rng([settings.seed, 1]),
    )
    train = LabelledItems.of(golden, aspect, parts.train)
    folds = None if settings.uses_pairs else source_folds(train.sources, settings.seed)
    return Training(train.positions, train.labels, good, bad, folds)


def source_folds(sources: IntArray, seed: int) -> IntArray:
    """Assign items to folds by source. Return the fold of each item (n,), counted from 0.

    Raises GoldenError if there is only one source.
    """
    codes, own = np.unique(sources, return_inverse=True)
    if codes.size < 2:
        raise GoldenError(
            "Cross-validation by source requires at least 2 training sources with labels. Only 1 source has labels."
        )
    folds = np.random.default_rng([seed, 7]).permutation(codes.size) % min(FOLDS, codes.size)
    return np.asarray(folds[own], dtype=np.intp)


def random_baseline(
    states: NDArray[np.float16], test: LabelledItems, settings: RepEvalSettings, projection: float | None
) -> RandomBaseline | None:
    """Evaluate random directions on the `states` (n_items, dim) of a cell. Return None if `random_vectors` is 0.

    `projection` is the alignment of the fitted direction on the same `test` items.
    """
    if not settings.random_vectors:
        return None
    generator = np.random.default_rng([settings.seed, 2])
    vectors = generator.standard_normal((settings.random_vectors, states.shape[1])).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rated = _without_rounding(vectors.astype(np.float64) @ states[test.positions].T.astype(np.float64))
    return RandomBaseline(projection, alignment_values(rated, test, settings.measure))


# ── the search ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Searched:
    """The result of a search over all cells (a layer at a token), NaN = undefined.

    A variant of a cell is a number of principal components; methods other than paper-pca have one variant.

    Attributes:
        values: Validation alignments (n_layers, n_tokens, n_variants).
        best_k: Index of the best variant of each cell (n_layers, n_tokens).
        scores: Scores of all items with the best variant (n_layers, n_tokens, n_items).
        fits: Maps (layer index, token index) to the fitted cell; empty for paper-svm.
    """

    values: FloatArray
    best_k: IntArray
    scores: FloatArray
    fits: Mapping[tuple[int, int], ScorerCell]

    @property
    def cells(self) -> FloatArray:
        """The validation alignment of each cell (n_layers, n_tokens), with its best variant."""
        return np.asarray(np.take_along_axis(self.values, self.best_k[..., None], axis=2)[..., 0])


def search(
    states: States,
    make: Callable[[], Projection],
    *,
    training: Training,
    validation: LabelledItems,
    measure: Measure,
    on_progress: OnProgress | None = None,
) -> Searched:
    """Fit a projection in each cell (a layer at a token) of `states`, and score all items.

    The alignment of a cell is undefined in three cases: a state is not finite, all states are equal, or all its scores
    or labels on the validation items are equal.

    Args:
        make: Creates an unfitted projection.
        training: Items, labels and pairs to fit on.
        validation: Items to rank the cells on.
        on_progress: Called with (done, total) cells.

    Raises:
        AspectError: The alignments of all cells are undefined.
        JudgeError: Every cell has a state that is not finite.
    """
    import scipy.linalg  # noqa: F401  (has its own BLAS, which must be loaded before it can be limited)
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    values = states.values
    n_items, n_layers, n_tokens, dim = values.shape
    finite = finite_cells(values)
    if not finite.any():
        raise JudgeError(
            f"Every cell ({n_layers} layers x {n_tokens} tokens) contains hidden states that are not finite. Check "
            "that the model's weights are intact, or use another model."
        )
    layers, tokens = np.nonzero(finite & varying_cells(values))
    total, step = len(layers), max(1, BATCH_BYTES // max(1, 4 * n_items * dim))
    alignments = np.full((n_layers, n_tokens, 1), np.nan)
    best_k = np.zeros((n_layers, n_tokens), dtype=np.intp)
    scores = np.full((n_layers, n_tokens, n_items), np.nan)
    fits: dict[tuple[int, int], ScorerCell] = {}
    for start in range(0, total, step):
        at = (layers[start : start + step], tokens[start : start + step])
        batch = values[:, at[0], at[1]].astype(np.float32).transpose(1, 0, 2)
        # thousands of small products: with several threads each, they would mostly wait for each other
        with threadpool_limits(limits=1, user_api="blas"):
            fitted = make().fit(batch, training)
            rated = fitted.score(batch)
        if isinstance(fitted, Ridge):
            rated[:, 0, training.items] = fitted.out_of_fold_
        rated = _without_rounding(rated)
        cells, n_k = np.arange(len(at[0])), rated.shape[1]
        if not start:
            alignments = np.full((n_layers, n_tokens, n_k), np.nan)
        on_validation = rated[:, :, validation.positions].reshape(-1, validation.positions.size)
        aligned = alignment_values(on_validation, validation, measure).reshape(-1, n_k)
        best = np.argmax(np.nan_to_num(aligned, nan=-np.inf), axis=1)
        alignments[at], best_k[at] = aligned, best
        defined = ~np.isnan(aligned[cells, best])
        scores[at] = np.where(defined[:, None], rated[cells, best], np.nan)
        if not isinstance(fitted, PaperSVM):
            for cell in cells[defined].tolist():
                i, j = int(at[0][cell]), int(at[1][cell])
                fits[i, j] = fitted.portable(cell, int(best[cell]), states.layers[i], states.token_names[j])
        if on_progress is not None:
            on_progress(min(start + step, total), total)
    if np.isnan(scores).all():
        raise AspectError(
            f"On the {validation.labels.size} validation items, all labels or all hidden states are the same, so the "
            f"alignment is undefined in every cell ({n_layers} layers x {n_tokens} tokens). Label items that differ in "
            "quality."
        )
    return Searched(alignments, best_k, scores, fits)


def _without_rounding(rated: FloatArray) -> FloatArray:
    """Round scores (…, n_items), so that equal states have equal scores on any processor.

    Without rounding, the last digits would decide the ranks of items with the same state, such as the embedding of a
    last token.
    """
    scale = np.abs(rated).max(axis=-1, keepdims=True)
    unit = 10.0 ** np.ceil(np.log10(np.where(scale > 0, scale, 1.0)) - SAFE_DIGITS)
    return np.asarray(np.rint(rated / unit) * unit, dtype=np.float64)


def average_cells(
    found: Searched, validation: LabelledItems, count: int
) -> tuple[IntArray, tuple[ScorerCell, ...], FloatArray]:
    """Return the `count` best cells (a layer at a token), best first, and their mean score for each item.

    The scores of each cell are standardised on the validation items before they are averaged. The scores of a single
    cell are not standardised.

    Returns:
        The best cells as (layer index, token index), one row per cell.
        The fitted cells, to score other items.
        The mean scores (n_items,).
    """
    n_defined = int((~np.isnan(found.cells)).sum())
    order = np.argsort(-np.nan_to_num(found.cells.ravel(), nan=-np.inf), kind="stable")[: min(count, n_defined)]
    members = np.stack(np.unravel_index(order, found.best_k.shape), axis=1)
    fits = [found.fits[i, j] for i, j in members.tolist() if found.fits]
    scores = found.scores[members[:, 0], members[:, 1]]
    if len(scores) == 1:
        return members, tuple(fits), scores[0]
    on_validation = scores[:, validation.positions]
    centre, spread = on_validation.mean(axis=1, keepdims=True), on_validation.std(axis=1, keepdims=True)
    standard = tuple(
        replace(cell, centre=cell.centre + float(mean), spread=float(deviation))
        for cell, mean, deviation in zip(fits, centre[:, 0], spread[:, 0], strict=True)
    )
    return members, standard, ((scores - centre) / spread).mean(axis=0)
