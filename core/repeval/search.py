"""Run RepEval on states already read: settings, search for the best cells, and result.

A cell is one layer at one token.  Each cell is fitted on training items and ranked on validation items; the best cells
are averaged and evaluated on test items.  Ridge ranks cells by folds of sources instead, over all items that it may
learn from.  Cells go through the projection in batches as large as memory allows.
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
"""Cells that ridge averages."""
PAIRS: dict[Method, int] = {"ridge": 20, "paper-pca": 20, "paper-svm": 100}
VALIDATION_SHARE = 0.2
FOLDS = 10
FEW_LABELS = 50  # on the validation side; under that the choice of a cell is mostly luck
BATCH_BYTES = 256 << 20
SAFE_DIGITS = 9  # of a score, above what sums in double precision differ in


@dataclass(frozen=True, slots=True)
class RepEvalSettings:
    """Which model reads which texts, and how to project, search and report.

    `reading` None reads what `usual_texts` names.  `level` None is the aspect's usual level.  `method` "ridge" averages
    the z-scores of the 20 best cells; "paper-pca" and "paper-svm" are those of RepEval and use one cell.  `n_pairs`
    None is 20 pairs, or 100 for paper-svm, whose pairs may share texts.  Test items are of `test_share` of the sources.
    Of the other sources, the methods of the paper choose their cell on 20 % of all and learn from the rest.
    `random_vectors` 0 leaves the random baseline out.
    """

    method: Method = "ridge"
    model: ModelSpec = field(default_factory=ModelSpec)
    reading: Extraction | None = None
    n_pairs: int | None = setting(None, "Pairs of a good and a bad text.", low=2)
    statistic: Statistic = "spearman"
    level: Level | None = None
    test_share: float = setting(0.4, low=0.05, high=0.7)
    seed: int = 0
    random_vectors: int = setting(2_000, "Random directions next to the chosen cell's.", low=0)

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def uses_pairs(self) -> bool:
        """Whether the method learns from pairs and chooses one cell on validation items."""
        return self.method != "ridge"

    def read(self, aspect: str) -> Extraction:
        """Return what is read: `reading`, else what the model usually reads."""
        return self.reading or Extraction(criterion=aspect, texts=usual_texts(self.model.name))

    def on(self, golden: GoldenSet, aspect: str) -> RepEvalSettings:
        """Return these settings with the level at which `aspect` is measured."""
        return self if self.level else replace(self, level=LabelledItems.of(golden, aspect).usual_level)

    @property
    def measure(self) -> Measure:
        """Statistic and level, for settings `on` a golden set."""
        assert self.level is not None
        return Measure(self.statistic, self.level)


@dataclass(frozen=True, slots=True)
class RepEvalSplit:
    """Positions (in `GoldenSet.items`) to train on, to choose cells on and to test on; no source is in two of them.

    For ridge the first two are the same items: each is scored by a fit without its source.
    """

    train: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RepEvalCell:
    """One layer at one token, with its k (PCA only) and its alignment on validation and test (None = undefined)."""

    layer: int
    token: str
    k: int | None
    validation: float | None
    test: float | None

    def as_json(self) -> dict[str, Any]:
        """Return its fields; the token is a number if it counts from the end."""
        return asdict(self) | {"token": token_json(self.token)}


@dataclass(frozen=True)
class RandomBaseline:
    """Test alignments `values` (n,) of random directions in the chosen cell; NaN = undefined.

    `projection` is the chosen cell's own.
    """

    projection: float | None
    values: FloatArray

    @property
    def percentile(self) -> float | None:
        """The share of random directions below the projection (0 to 100), ties counted half; None when undefined."""
        defined = self.values[~np.isnan(self.values)]
        if self.projection is None or not defined.size:
            return None
        below, level = (defined < self.projection).mean(), (defined == self.projection).mean()
        return float(100.0 * (below + 0.5 * level))

    def as_json(self) -> dict[str, Any]:
        """Return the percentile, the projection and the number of directions."""
        return {"percentile": self.percentile, "projection": self.projection, "n": int(self.values.size)}


def _without_kernel(stored: Any) -> Any:
    """Drop the scorer of a support vector machine, which earlier versions stored."""
    return None if isinstance(stored, dict) and "support" in stored["cells"][0] else stored


@dataclass(frozen=True)
class RepEvalResult:
    """A RepEval score for every item, how it was chosen, and how well it agrees with the raters.

    `scores` (n_items,) are in the order of the golden set, higher is better, in no particular unit.  Those of items
    that it learnt from are by fits without their source for ridge, and optimistic for other methods.  `chosen` is the
    cell with the best validation alignment, `members` the cells whose z-scores are averaged.  `validation` and `test`
    are alignments of `scores`; the choice makes the first optimistic.  `cells` (n_layers, n_tokens) holds every cell's
    validation alignment, NaN = undefined.  `scorer` rates other items; paper-svm and old stored
    results have none.
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
        """Validation minus test alignment; None when one is undefined."""
        if self.validation.value is None or self.test.value is None:
            return None
        return self.validation.value - self.test.value

    def as_json(self) -> dict[str, Any]:
        """Return what `repeval --json` prints; no NaN, null is undefined."""
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
    """Return the alignment of `scores` (n_all_items,) on `items`, with its interval."""
    own = scores[items.positions]
    return align(own, items, settings.measure, seed=[settings.seed, 3])


def token_json(name: str) -> int | str:
    """Return -1 for "-1"; names of pooled tokens stay text."""
    return int(name) if name.startswith("-") else name


def nullable(value: float) -> float | None:
    """Return None for NaN."""
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
    """Run RepEval on `golden` for one aspect.  Equal arguments give equal results.

    Args:
        golden: The golden set.
        aspect: The aspect of its labels.
        states: The states of its items.
        settings: Method, measure and seed; without a level, the aspect's usual one.
        split: Test on its held-out items and learn from its calibration items, so that RepEval is measured on the same
            items as judges.
        on_progress: Called with (done, total) cells.

    Raises:
        AspectError: The labels cannot rank anything.
        GoldenError: Too few sources.
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
        warnings.append(f"{undefined} of {cells.size} cells are undefined: nothing varies in them.")
    if validation.labels.size < FEW_LABELS:
        warnings.append(
            f"Layer and token were chosen on {validation.labels.size} labels only; another draw may choose others."
        )
    if how.uses_pairs:
        warnings.append(
            "One cell was chosen among many, so its validation alignment is optimistic. Report the test alignment."
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
    """Return training, validation and test positions of the labelled items; no source of test is in another part.

    UsageError for pairs of texts.
    """
    if golden.kind == "pair":
        raise UsageError(f"RepEval reads one text at a time, and the items of {golden.name} are pairs of texts.")
    fitted = 1.0 - settings.test_share
    whole = split or split_sources(golden, aspect=aspect, fraction=fitted, seed=settings.seed)
    blank = set(blank_items(golden))
    calibration = tuple(k for k in whole.calibration if k not in blank)  # a label on no text teaches nothing
    if not settings.uses_pairs:
        return RepEvalSplit(calibration, calibration, whole.held_out)
    share = (fitted - VALIDATION_SHARE) / fitted
    train, validation = inner_fold(calibration, golden.source_codes, share, settings.seed)
    return RepEvalSplit(train, validation, whole.held_out)


def blank_items(golden: GoldenSet) -> list[int]:
    """Return the positions of items without a text, which get no score."""
    return [k for k, item in enumerate(golden.items) if is_blank(item.target)]


def training_of(golden: GoldenSet, aspect: str, parts: RepEvalSplit, settings: RepEvalSettings) -> Training:
    """Return the training data of a projection; positions are those of the golden set.

    AspectError for labels that make no pairs, GoldenError if folds need more sources.
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
    """Assign the `sources` (n,) of items to folds of about as many sources each; returns (n,) numbers from 0.

    GoldenError for a single source: nothing can be left out of it.
    """
    codes, own = np.unique(sources, return_inverse=True)
    if codes.size < 2:
        raise GoldenError("Cross-validation by source needs at least 2 sources with labels to learn from; there is 1.")
    folds = np.random.default_rng([seed, 7]).permutation(codes.size) % min(FOLDS, codes.size)
    return np.asarray(folds[own], dtype=np.intp)


def random_baseline(
    states: NDArray[np.float16], test: LabelledItems, settings: RepEvalSettings, projection: float | None
) -> RandomBaseline | None:
    """Evaluate random unit vectors on `states` (n_items, dim) of one cell; None if there are to be none.

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
    """The result of a search over all cells; NaN = undefined.

    `values` (n_layers, n_tokens, n_variants) are validation alignments, `best_k` (n_layers, n_tokens) the best variant.
    `scores` (n_layers, n_tokens, n_items) are those of all items under it, and `fits` has by indices what was learnt,
    in linear cells.
    """

    values: FloatArray
    best_k: IntArray
    scores: FloatArray
    fits: Mapping[tuple[int, int], ScorerCell]

    @property
    def cells(self) -> FloatArray:
        """(n_layers, n_tokens) validation alignments of the best variants."""
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
    """Fit a projection from `make` in every cell of `states`, and score all items.

    A cell is undefined when a state in it is not a finite number, when all its states are equal, or when its scores or
    the labels on validation are constant.  AspectError when no cell is defined, JudgeError when no cell has finite
    states.  `on_progress(done, total)` counts cells.
    """
    import scipy.linalg  # noqa: F401  (has a BLAS of its own, which must be loaded to be limited)
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    values = states.values
    n_items, n_layers, n_tokens, dim = values.shape
    finite = finite_cells(values)
    if not finite.any():
        raise JudgeError(
            f"Every cell of {n_layers} layers x {n_tokens} tokens holds states that are not finite. Use another model, "
            "or one whose weights are intact."
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
        # thousands of small products: threads inside each one wait for each other longer than they work
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
            f"No cell of {n_layers} layers x {n_tokens} tokens has an alignment on the {validation.labels.size} "
            "validation items: their labels, or all states, are constant. Label more items on which raters differ."
        )
    return Searched(alignments, best_k, scores, fits)


def _without_rounding(rated: FloatArray) -> FloatArray:
    """Round scores (…, n_items) so that equal states have equal scores: their sums differ in the last digits.

    Otherwise the rank of items with the same state (such as the embedding of a last token) depends on the processor.
    """
    scale = np.abs(rated).max(axis=-1, keepdims=True)
    unit = 10.0 ** np.ceil(np.log10(np.where(scale > 0, scale, 1.0)) - SAFE_DIGITS)
    return np.asarray(np.rint(rated / unit) * unit, dtype=np.float64)


def average_cells(
    found: Searched, validation: LabelledItems, count: int
) -> tuple[IntArray, tuple[ScorerCell, ...], FloatArray]:
    """Return the `count` best cells and the mean (n_items,) of their z-scores.

    The cells come as (m, 2) layer and token indices and as parts of a scorer, best first, ties in order.  z is by mean
    and deviation over the validation items.  With one cell the scores are that cell's own.
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
