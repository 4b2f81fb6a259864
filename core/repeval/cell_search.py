"""RepEval on states already read: split, fit and rank every cell on validation, average the best, evaluate on test.

Ridge ranks cells by folds of sources instead, over all items that it may learn from, and is then fitted on them all.

A cell is one layer at one token.  Cells go through the projection in batches as large as memory allows; the alignments
of all cells and all k come out of one batched correlation.  Test items are scored in the search but not looked at, but
for one question: is the direction of the chosen cell better than random unit vectors?
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from core.data.split import inner_fold, split_sources
from core.errors import AspectError, GoldenError, JudgeError, UsageError
from core.records import FloatArray, GoldenSet, IntArray, Measure, Split
from core.repeval.extraction import OnProgress
from core.repeval.projection import (
    PaperPCA,
    PaperSVM,
    Projection,
    RepEvalScorer,
    Ridge,
    ScorerCell,
    Training,
    choose_pairs,
    majority_signs,
)
from core.repeval.repeval_records import (
    RandomBaseline,
    RepEvalCell,
    RepEvalResult,
    RepEvalSettings,
    RepEvalSplit,
    evaluate,
    nullable,
)
from core.repeval.states import HalfArray, States, finite_cells, varying_cells
from core.stats import LabelledItems, alignment_values
from core.texts import is_blank

FOLDS = 10
FEW_LABELS = 50  # on the validation side; under that the choice of a cell is mostly luck
BATCH_BYTES = 256 << 20
SAFE_DIGITS = 9  # of a score, above what sums in double precision differ in


def run(
    golden: GoldenSet,
    aspect: str,
    states: States,
    settings: RepEvalSettings | None = None,
    *,
    split: Split | None = None,
    on_progress: OnProgress | None = None,
) -> RepEvalResult:
    """Run RepEval on `golden` for one aspect (METHODS §5).

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
        random=random_baseline(cell, training, test, chosen, projection=members[0].test),
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
            return PaperPCA(settings.components)
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
        rule=settings.pair_rule,
        generator=np.random.default_rng([settings.seed, 1]),
    )
    train = LabelledItems.of(golden, aspect, parts.train)
    folds = None if settings.uses_pairs else source_folds(train.sources, settings.seed)
    return Training(train.positions, train.labels, good, bad, folds)


def shortage_of_pairs(training: Training, settings: RepEvalSettings) -> str:
    """Return in words that there are fewer pairs than asked for, "" where there are enough or none are used."""
    asked = settings.pair_rule.n
    if not settings.uses_pairs or training.good.size >= asked:
        return ""
    return f"{asked} pairs were asked for, the training labels gave {training.good.size}."


def source_folds(sources: IntArray, seed: int) -> IntArray:
    """Return (n,) a fold from 0 for each of the `sources` (n,) of items, of about as many sources each.

    GoldenError for a single source: nothing can be left out of it.
    """
    codes, own = np.unique(sources, return_inverse=True)
    if codes.size < 2:
        raise GoldenError("Cross-validation by source needs at least 2 sources with labels to learn from; 1 is there.")
    folds = np.random.default_rng([seed, 7]).permutation(codes.size) % min(FOLDS, codes.size)
    return np.asarray(folds[own], dtype=np.intp)


def random_baseline(
    states: NDArray[np.float32],
    training: Training,
    test: LabelledItems,
    settings: RepEvalSettings,
    *,
    projection: float | None,
) -> RandomBaseline | None:
    """Evaluate random unit vectors on `states` (n_items, dim) of one cell; None where they are left out.

    The pairs of `training` turn the vectors for the second distribution; `projection` is what the fitted direction
    reaches on the same `test` items.
    """
    if not settings.random_vectors:
        return None
    generator = np.random.default_rng([settings.seed, 2])
    vectors = generator.standard_normal((settings.random_vectors, states.shape[1])).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rated = _without_rounding(vectors.astype(np.float64) @ states[test.positions].T.astype(np.float64))
    values = alignment_values(rated, test, settings.measure)
    flipped = values * majority_signs(vectors @ (states[training.good] - states[training.bad]).T)
    return RandomBaseline(projection, values, flipped)


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
            f"Every cell of {n_layers} layers x {n_tokens} tokens holds states that are not finite numbers: the model "
            "overflows in this number format, or its weights are damaged. Read it in float32, or use another model."
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
