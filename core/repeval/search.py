"""Run RepEval on states already read: settings, search for the best cells, and result.

The states are split; each cell is fitted and ranked on validation, the best are averaged and evaluated on test.  Ridge
ranks cells by folds of sources instead, over all items that it may learn from, and is then fitted on them all.

A cell is one layer at one token.  Cells go through the projection in batches as large as memory allows; the alignments
of all cells and all k come out of one batched correlation.  Test items are scored in the search but not looked at, but
for one question: is the direction of the chosen cell better than random unit vectors?

A result is frozen, JSON-able and enough to draw every cell without the states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

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
from core.repeval.states import (
    Extraction,
    HalfArray,
    OnProgress,
    States,
    finite_cells,
    usual_texts,
    varying_cells,
)
from core.stats import LabelledItems, align, alignment_values

Method = Literal["ridge", "paper-pca", "paper-svm"]
METHODS: tuple[Method, ...] = get_args(Method)
AVERAGED = 20
"""Cells that ridge averages."""
PAIRS: dict[Method, int] = {"ridge": 20, "paper-pca": 20, "paper-svm": 100}
"""Pairs that are chosen by default; those of ridge turn no direction."""

FOLDS = 10
FEW_LABELS = 50  # on the validation side; under that the choice of a cell is mostly luck
BATCH_BYTES = 256 << 20
SAFE_DIGITS = 9  # of a score, above what sums in double precision differ in


@dataclass(frozen=True, slots=True)
class RepEvalSettings:
    """Which model reads which texts, and how to project, search and report.

    `reading` None reads what `usual_texts` names.  `level` None is the aspect's usual one: sample level where groups
    allow it, else dataset.  `method` "ridge" averages the z-scores of the best `average` cells (None = 20; 1 = the best
    cell alone); "paper-pca" and "paper-svm" are those of RepEval and use one cell.  Ridge learns from training and
    validation items together: cells are chosen by cross-validation over their sources, then fitted on all of them.
    `n_pairs` None is 20 pairs, for paper-svm 100; those of paper-svm may share texts.  Fitted on `train_share` of the
    sources, chosen on `validation_share`, evaluated on the rest.  `random_vectors` 0 leaves the random baseline out.
    """

    method: Method = "ridge"
    model: ModelSpec = field(default_factory=ModelSpec)
    reading: Extraction | None = None
    average: int | None = setting(None, "Cells that ridge averages.", low=1)
    n_pairs: int | None = setting(None, "Pairs of a good and a bad text.", low=2)
    statistic: Statistic = "spearman"
    level: Level | None = None
    train_share: float = 0.4
    validation_share: float = 0.2
    seed: int = 0
    random_vectors: int = setting(2_000, "Random directions next to the chosen cell's.", low=0)

    def __post_init__(self) -> None:
        check_settings(self)
        if self.average not in (None, 1) and self.method != "ridge":
            raise UsageError(f"{self.method} uses one cell; averaging is for ridge.")
        if min(self.train_share, self.validation_share, 1.0 - self.train_share - self.validation_share) <= 1e-9:
            raise UsageError("The shares for training and validation must be above 0 and leave something to test on.")

    @property
    def cells_averaged(self) -> int:
        """How many of the best cells make the score."""
        return self.average or (AVERAGED if self.method == "ridge" else 1)

    @property
    def pairs_asked(self) -> int:
        """How many pairs are chosen, where there are as many."""
        return self.n_pairs or PAIRS[self.method]

    @property
    def uses_pairs(self) -> bool:
        """Whether the method learns from pairs and chooses one cell on validation items.

        Ridge learns from all training labels; its cells are chosen by folds of sources, and then fitted on all of them.
        """
        return self.method != "ridge"

    def read(self, aspect: str) -> Extraction:
        """Return what is read: `reading`, else what the model usually reads."""
        return self.reading or Extraction(criterion=aspect, texts=usual_texts(self.model.name))

    def on(self, golden: GoldenSet, aspect: str) -> RepEvalSettings:
        """Return these settings with the level at which `aspect` is measured."""
        return self if self.level else replace(self, level=LabelledItems.of(golden, aspect).usual_level)

    @property
    def measure(self) -> Measure:
        """Statistic and level; only settings `on` a golden set have it."""
        assert self.level is not None
        return Measure(self.statistic, self.level)


@dataclass(frozen=True, slots=True)
class RepEvalSplit:
    """Positions (in `GoldenSet.items`) to train on, to choose on and to evaluate on; no source is in two of them.

    For a method that cross-validates the first two are the same items: each is scored by a fit without its source.
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
        """Return its fields; the token is a number where it counts from the end."""
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
        """Return the percentile and what it is made of, without the single values."""
        return {"percentile": self.percentile, "projection": self.projection, "n": int(self.values.size)}


@dataclass(frozen=True)
class RepEvalResult:
    """A RepEval score for every item, how it was chosen, and what it is worth.

    `scores` (n_items,) in the order of the golden set, higher is better, in no particular unit; those of items that it
    learnt from are of fits without their source where the method cross-validates, and optimistic elsewhere.  `chosen`
    is the cell with the best validation alignment, `members` the cells whose z-scores make up `scores` (the chosen one
    alone when one cell is used).  `validation` and `test` are alignments of `scores`; choosing makes the first
    optimistic.  `cells` (n_layers, n_tokens) holds every cell's validation alignment at its best k, `cell_k` (n_layers,
    n_tokens) that k (0 = the method has none), `cell_scores` (n_layers, n_tokens, n_items) its scores; NaN = undefined.
    `scorer` rates other items where it was asked for.
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
    cell_k: FloatArray
    cell_scores: FloatArray
    scores: FloatArray
    parts: RepEvalSplit
    random: RandomBaseline | None
    n_pairs: int
    states: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    scorer: RepEvalScorer | None = None

    @property
    def method(self) -> str:
        return self.settings.method

    @property
    def model(self) -> str:
        return str(self.states.get("model", ""))

    @property
    def by_folds(self) -> bool:
        """Whether cells were chosen by cross-validation over all items that it learnt from."""
        return self.parts.train == self.parts.validation

    @property
    def optimism(self) -> float | None:
        """Validation less test alignment: the optimism of choosing, within chance; None when one is undefined."""
        if self.validation.value is None or self.test.value is None:
            return None
        return self.validation.value - self.test.value

    def as_json(self) -> dict[str, Any]:
        """Return what `repeval --json` prints; no NaN, null is undefined."""
        return {
            "aspect": self.aspect,
            "method": self.method,
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


def cell_detail(
    result: RepEvalResult, golden: GoldenSet, layer: int, token: str
) -> tuple[Alignment, Alignment, FloatArray]:
    """Return validation and test alignment of `layer` at `token`, with intervals, and its scores (n_items,).

    A cell looked at because its test alignment is high is no longer evaluated on test: the chosen one is.
    UsageError for a cell that was not read.
    """
    if layer not in result.layers or token not in result.tokens:
        raise UsageError(
            f"Layer {layer} at token {token} was not read; layers are {result.layers[0]} to {result.layers[-1]}, "
            f"tokens {', '.join(result.tokens)}."
        )
    scores = result.cell_scores[result.layers.index(layer), result.tokens.index(token)]
    validation, test = (
        evaluate(scores, LabelledItems.of(golden, result.aspect, part), result.settings)
        for part in (result.parts.validation, result.parts.test)
    )
    return validation, test, scores


def evaluate(scores: FloatArray, items: LabelledItems, settings: RepEvalSettings) -> Alignment:
    """Return the alignment of `scores` (n_all_items,) on `items`, with its interval."""
    own = scores[items.positions]
    return align(own, items, settings.measure, seed=[settings.seed, 3])


def token_json(name: str) -> int | str:
    """-1 for "-1"; names of pooled tokens stay text."""
    return int(name) if name.startswith("-") else name


def nullable(value: float) -> float | None:
    """None for NaN."""
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
    """Run RepEval on `golden` for one aspect.

    Projections are fitted on the training sources, layer, token and k chosen on the validation sources (for a method
    that cross-validates by folds of both), the outcome evaluated on the test sources.  Equal arguments give equal
    results.

    Args:
        golden: The golden set.
        aspect: The aspect of its labels.
        states: The states of its items.
        settings: Method, measure and seed; without a level, the aspect's usual one.
        split: Test on its held-out items and divide its calibration items into training and validation, so that
            RepEval is measured on the same held-out items as judges.
        on_progress: Called with (done, total) cells.

    Raises:
        AspectError: The labels cannot rank anything.
        GoldenError: Too few sources.
    """
    chosen = (settings or RepEvalSettings()).on(golden, aspect)
    if len(states.values) != len(golden.items):
        raise UsageError(
            f"The states are those of {len(states.values)} items, but {golden.name} has {len(golden.items)}: read the "
            "states of this golden set."
        )
    parts = split_three(golden, aspect, chosen, split)
    validation, test = (LabelledItems.of(golden, aspect, part) for part in (parts.validation, parts.test))
    training = training_of(golden, aspect, parts, chosen)
    values, best_k, cell_scores = search(
        states.values,
        lambda: projection_of(chosen),
        training=training,
        validation=validation,
        measure=chosen.measure,
        on_progress=on_progress,
    )
    cells = np.take_along_axis(values, best_k[..., None], axis=2)[..., 0]
    best, scores = average_cells(cells, cell_scores, validation, chosen.cells_averaged)
    scores[blank_items(golden)] = np.nan
    k = (best_k + 1 if chosen.method == "paper-pca" else np.zeros_like(best_k)).astype(np.float64)
    layers, tokens = best[:, 0], best[:, 1]
    on_test = alignment_values(cell_scores[layers, tokens][:, test.positions], test, chosen.measure)
    members = tuple(
        RepEvalCell(
            states.layers[i],
            states.token_names[j],
            int(k[i, j]) or None,
            nullable(cells[i, j]),
            nullable(value),
        )
        for i, j, value in zip(layers, tokens, on_test, strict=True)
    )
    warnings = list(states.warnings())
    if shortage := shortage_of_pairs(training, chosen):
        warnings.append(shortage)
    if undefined := int(np.isnan(cells).sum()):
        warnings.append(f"{undefined} of {cells.size} cells are undefined: nothing varies in them.")
    if validation.labels.size < FEW_LABELS:
        warnings.append(
            f"Layer and token were chosen on {validation.labels.size} labels only; another draw may choose others."
        )
    if chosen.uses_pairs:
        warnings.append(
            "One cell was chosen among many, so its validation alignment is optimistic. Report the test alignment."
        )
    cell = states.values[:, layers[0], tokens[0]].astype(np.float32)
    return RepEvalResult(
        aspect=aspect,
        settings=chosen,
        layers=states.layers,
        tokens=states.token_names,
        chosen=members[0],
        members=members,
        validation=evaluate(scores, validation, chosen),
        test=evaluate(scores, test, chosen),
        cells=cells,
        cell_k=k,
        cell_scores=cell_scores,
        scores=scores,
        parts=parts,
        random=random_baseline(cell, test, chosen, members[0].test),
        n_pairs=training.good.size if chosen.uses_pairs else 0,
        states=states.summary(),
        warnings=tuple(warnings),
    )


def scorer_of(golden: GoldenSet, states: States, result: RepEvalResult) -> RepEvalScorer:
    """Return the score of `result` as it rates other items; `golden` and `states` are those of the run.

    The member cells are fitted once more, which gives the same directions; they are standardised as the run's average
    is.
    """
    how, parts, cells = result.settings, result.parts, []
    training = training_of(golden, result.aspect, parts, how)
    for member in result.members:
        i, j = states.layers.index(member.layer), states.token_names.index(member.token)
        fitted = projection_of(how).fit(states.values[None, :, i, j].astype(np.float32), training)
        cell = fitted.portable(member.layer, member.token, (member.k or 1) - 1)
        if len(result.members) > 1 and isinstance(cell, ScorerCell):
            scores = result.cell_scores[i, j, list(parts.validation)]
            cell = replace(cell, centre=cell.centre + float(scores.mean()), spread=float(scores.std()))
        cells.append(cell)
    read = replace(
        states.extraction,
        layers=tuple(dict.fromkeys(cell.layer for cell in cells)),
        tokens=tuple(dict.fromkeys(cell.token for cell in cells)),
    )
    precision = cast(Any, states.precision)
    return RepEvalScorer(states.model, states.revision, states.fingerprint, precision, read, tuple(cells))


def projection_of(settings: RepEvalSettings) -> Projection:
    """Return a fresh projection of the method."""
    match settings.method:
        case "ridge":
            return Ridge()
        case "paper-pca":
            return PaperPCA()
        case "paper-svm":
            return PaperSVM(seed=settings.seed)


def split_three(golden: GoldenSet, aspect: str, settings: RepEvalSettings, split: Split | None = None) -> RepEvalSplit:
    """Return training, validation and test positions of the labelled items; no source of test is in another part.

    UsageError for pairs of texts.
    """
    one_text_each(golden)
    fitted = settings.train_share + settings.validation_share
    whole = split or split_sources(golden, aspect=aspect, fraction=fitted, seed=settings.seed)
    blank = set(blank_items(golden))
    calibration = tuple(k for k in whole.calibration if k not in blank)  # a label on no text teaches nothing
    if not settings.uses_pairs:
        return RepEvalSplit(calibration, calibration, whole.held_out)
    train, validation = inner_fold(calibration, golden.source_codes, settings.train_share / fitted, settings.seed)
    return RepEvalSplit(train, validation, whole.held_out)


def blank_items(golden: GoldenSet) -> list[int]:
    """Return positions of the items without a text, which get no score."""
    return [k for k, item in enumerate(golden.items) if is_blank(item.target)]


def one_text_each(golden: GoldenSet) -> None:
    """UsageError for pairs of texts."""
    if golden.kind == "pair":
        raise UsageError(
            f"RepEval reads one text at a time, and the items of {golden.name} are pairs of texts. Give a golden set "
            "of single texts."
        )


def training_of(golden: GoldenSet, aspect: str, parts: RepEvalSplit, settings: RepEvalSettings) -> Training:
    """Return what a projection learns from; positions are those of the golden set.

    AspectError for labels that make no pairs, GoldenError where folds need more sources.
    """
    good, bad = choose_pairs(
        golden.labels(aspect),
        np.asarray(parts.train, dtype=np.intp),
        [item.target for item in golden.items],
        settings.pairs_asked,
        reuse=settings.method == "paper-svm",
        generator=np.random.default_rng([settings.seed, 1]),
    )
    train = LabelledItems.of(golden, aspect, parts.train)
    folds = None if settings.uses_pairs else source_folds(train.sources, settings.seed)
    return Training(train.positions, train.labels, good, bad, folds)


def shortage_of_pairs(training: Training, settings: RepEvalSettings) -> str:
    """Return in words that there are fewer pairs than asked for, "" where there are enough or none are used."""
    if not settings.uses_pairs or training.good.size >= settings.pairs_asked:
        return ""
    return f"{settings.pairs_asked} pairs were asked for, the training labels gave {training.good.size}."


def source_folds(sources: IntArray, seed: int) -> IntArray:
    """Return (n,) a fold from 0 for each of the `sources` (n,) of items, of about as many sources each.

    GoldenError for a single source: nothing can be left out of it.
    """
    codes, own = np.unique(sources, return_inverse=True)
    if codes.size < 2:
        raise GoldenError("Cross-validation by source needs at least 2 sources with labels to learn from; there is 1.")
    folds = np.random.default_rng([seed, 7]).permutation(codes.size) % min(FOLDS, codes.size)
    return np.asarray(folds[own], dtype=np.intp)


def random_baseline(
    states: NDArray[np.float32], test: LabelledItems, settings: RepEvalSettings, projection: float | None
) -> RandomBaseline | None:
    """Evaluate random unit vectors on `states` (n_items, dim) of one cell; None where they are left out.

    `projection` is what the fitted direction reaches on the same `test` items.
    """
    if not settings.random_vectors:
        return None
    generator = np.random.default_rng([settings.seed, 2])
    vectors = generator.standard_normal((settings.random_vectors, states.shape[1])).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rated = _without_rounding(vectors.astype(np.float64) @ states[test.positions].T.astype(np.float64))
    return RandomBaseline(projection, alignment_values(rated, test, settings.measure))


# ── the search ───────────────────────────────────────────────────────────────────────────────────────────────


def search(
    values: HalfArray,
    make: Callable[[], Projection],
    *,
    training: Training,
    validation: LabelledItems,
    measure: Measure,
    on_progress: OnProgress | None = None,
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Fit a projection from `make` in every cell of `values` (n_items, n_layers, n_tokens, dim), score all items.

    Returns validation alignments (n_layers, n_tokens, n_variants), which variant is best (n_layers, n_tokens), and the
    scores of all items under it (n_layers, n_tokens, n_items); NaN = undefined.

    The rows of `training` are those of `values`.  A cell is undefined when a state in it is not a finite number, when
    all its states are equal, or when its scores or the labels on validation are constant.  AspectError when no cell is
    defined, JudgeError when no cell has finite states.  `on_progress(done, total)` counts cells.
    """
    import scipy.linalg  # noqa: F401  (brings a BLAS of its own, which must be there to be limited)
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    n_items, n_layers, n_tokens, dim = values.shape
    finite = finite_cells(values)
    layers, tokens = np.nonzero(finite & varying_cells(values))
    total, step = len(layers), max(1, BATCH_BYTES // max(1, 4 * n_items * dim))
    alignments: FloatArray | None = None
    best_k = np.zeros((n_layers, n_tokens), dtype=np.intp)
    scores = np.full((n_layers, n_tokens, n_items), np.nan)
    for start in range(0, total, step):
        at = (layers[start : start + step], tokens[start : start + step])
        states = values[:, at[0], at[1]].astype(np.float32).transpose(1, 0, 2)
        # thousands of small products: threads inside each one wait for each other longer than they work
        with threadpool_limits(limits=1, user_api="blas"):
            fitted = make().fit(states, training)
            rated = fitted.score(states)
        if training.folds is not None and isinstance(fitted, Ridge):
            rated[:, 0, training.items] = fitted.out_of_fold_
        rated = _without_rounding(rated)
        cells, n_k = np.arange(len(at[0])), rated.shape[1]
        if alignments is None:
            alignments = np.full((n_layers, n_tokens, n_k), np.nan)
        on_validation = rated[:, :, validation.positions].reshape(-1, validation.positions.size)
        aligned = alignment_values(on_validation, validation, measure).reshape(-1, n_k)
        best = np.argmax(np.nan_to_num(aligned, nan=-np.inf), axis=1)
        alignments[at], best_k[at] = aligned, best
        scores[at] = np.where(np.isnan(aligned[cells, best])[:, None], np.nan, rated[cells, best])
        if on_progress is not None:
            on_progress(min(start + step, total), total)
    if not finite.any():
        raise JudgeError(
            f"Every cell of {n_layers} layers x {n_tokens} tokens holds states that are not finite. Either the "
            "model overflows in this number format, or its weights are damaged. Read it in float32, or use "
            f"another model."
        )
    if alignments is None or np.isnan(alignments).all():
        raise AspectError(
            f"No cell of {n_layers} layers x {n_tokens} tokens has an alignment on the {validation.labels.size} "
            "validation items: their labels, or all states, are constant. Label more items on which raters differ."
        )
    return alignments, best_k, scores


def _without_rounding(rated: FloatArray) -> FloatArray:
    """Return (…, n_items) scores, with equal scores where the states are equal: their sums differ in the last digits.

    Otherwise many items with one state (the embedding of a last token, say) are ranked as the processor adds up.
    """
    scale = np.abs(rated).max(axis=-1, keepdims=True)
    unit = 10.0 ** np.ceil(np.log10(np.where(scale > 0, scale, 1.0)) - SAFE_DIGITS)
    return np.asarray(np.rint(rated / unit) * unit, dtype=np.float64)


def average_cells(
    cells: FloatArray, cell_scores: FloatArray, validation: LabelledItems, count: int
) -> tuple[IntArray, FloatArray]:
    """Return the `count` best cells, (m, 2) layer and token indices, and the mean (n_items,) of their z-scores.

    `cells` (n_layers, n_tokens) are validation alignments.  Best first, ties in order; z by mean and deviation over the
    validation items.  With one cell the scores are that cell's own.
    """
    flat = cells.ravel()
    order = np.argsort(-np.nan_to_num(flat, nan=-np.inf), kind="stable")[: int((~np.isnan(flat)).sum())]
    members = np.stack(np.unravel_index(order[:count], cells.shape), axis=1)
    scores = cell_scores[members[:, 0], members[:, 1]]
    if len(scores) == 1:
        return members, scores[0]
    on_validation = scores[:, validation.positions]
    centre, spread = on_validation.mean(axis=1, keepdims=True), on_validation.std(axis=1, keepdims=True)
    return members, ((scores - centre) / spread).mean(axis=0)
