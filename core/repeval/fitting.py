"""RepEval on states already read: split, fit, search, average, evaluate; once, and over seeds and numbers of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from core.data.split import inner_fold, split_sources
from core.errors import UsageError
from core.records import FloatArray, GoldenSet, IntArray, Measure, Split
from core.repeval.cell_search import RandomBaseline, SearchResult, average_cells, random_baseline, search
from core.repeval.pairs import Pairs, choose_pairs
from core.repeval.portable import RepEvalScorer, ScorerCell
from core.repeval.projection import Training
from core.repeval.records import (
    Cell,
    PairPoint,
    Parts,
    RepEvalResult,
    RepEvalSettings,
    Spread,
    Stability,
    evaluate,
    nullable,
)
from core.repeval.states.extraction import OnProgress
from core.repeval.states.records import States
from core.stats import LabelledItems, alignment_values

PAIR_COUNTS = (2, 5, 10, 20, 50, 100)
FEW_LABELS = 50  # on the validation side; under that the choice of a cell is mostly luck


def run(
    golden: GoldenSet,
    aspect: str,
    states: States,
    settings: RepEvalSettings | None = None,
    *,
    split: Split | None = None,
    on_progress: OnProgress | None = None,
) -> RepEvalResult:
    """RepEval of `golden` on one aspect (003; METHODS §5).

    Projections are fitted on the training sources, layer, token and k chosen on the validation sources, the outcome
    evaluated on the test sources.  `split` tests on its held-out items instead and divides its calibration items into
    training and validation, so that RepEval stands beside judges on the same held-out items.  Equal arguments give
    equal results.  AspectError when the labels cannot rank anything, GoldenError for too few sources.
    `on_progress(done, total)` counts cells.
    """
    chosen = settings or RepEvalSettings()
    if len(states.values) != len(golden.items):
        raise UsageError(
            f"The states are those of {len(states.values)} items, but {golden.name} has {len(golden.items)}: read the "
            "states of this golden set."
        )
    parts = split_three(golden, aspect, chosen, split)
    validation, test = (LabelledItems.of(golden, aspect, part) for part in (parts.validation, parts.test))
    pairs = pairs_for(golden, aspect, parts, chosen)
    training = _training(golden, aspect, parts, pairs)
    searched = search(
        states.values,
        chosen.projection,
        training=training,
        validation=validation,
        measure=chosen.measure,
        on_progress=on_progress,
    )
    best, scores = average_cells(searched, validation, chosen.cells_averaged)
    k = (searched.best_k + 1 if chosen.method == "paper-pca" else np.zeros_like(searched.best_k)).astype(np.float64)
    members = _members(searched, best, k, states, test, measure=chosen.measure)
    return RepEvalResult(
        aspect=aspect,
        settings=chosen,
        layers=states.layers,
        tokens=states.token_names,
        chosen=members[0],
        members=members,
        validation=evaluate(scores, validation, chosen),
        test=evaluate(scores, test, chosen),
        cells=searched.cells,
        cell_k=k,
        cell_scores=searched.scores,
        scores=scores,
        parts=parts,
        random=_random(states, best[0], training, test, members[0], settings=chosen),
        n_pairs=pairs.n if chosen.uses_pairs else 0,
        states=states.summary(),
        warnings=_warnings(states, searched.cells, pairs, validation, chosen),
    )


def scorer_of(golden: GoldenSet, states: States, result: RepEvalResult) -> RepEvalScorer | None:
    """The score of `result` as it rates other items; None for a method that is not linear in the states (paper-svm).

    `golden` and `states` are those of the run.  The member cells are fitted once more, which gives the same directions;
    they are standardised as the run's average is.
    """
    chosen, parts = result.settings, result.parts
    training = _training(golden, result.aspect, parts, pairs_for(golden, result.aspect, parts, chosen))
    places = [(states.layers.index(cell.layer), states.token_names.index(cell.token)) for cell in result.members]
    cells = []
    for (i, j), member in zip(places, result.members, strict=True):
        lines = chosen.projection().fit(states.values[None, :, i, j].astype(np.float32), training).lines()
        if lines is None:
            return None
        k = (member.k or 1) - 1
        centre, spread = float(lines.offsets[0, k]), 1.0
        if len(places) > 1:
            on_validation = result.cell_scores[i, j, list(parts.validation)]
            centre, spread = centre + float(on_validation.mean()), float(on_validation.std())
        direction = lines.directions[0, k].astype(np.float64)
        cells.append(ScorerCell(member.layer, member.token, direction, centre, spread))
    read = replace(
        states.extraction,
        layers=tuple(dict.fromkeys(cell.layer for cell in cells)),
        tokens=tuple(dict.fromkeys(cell.token for cell in cells)),
    )
    return RepEvalScorer(states.model, states.revision, states.fingerprint, states.precision, read, tuple(cells))


def split_three(golden: GoldenSet, aspect: str, settings: RepEvalSettings, split: Split | None = None) -> Parts:
    """Training, validation and test positions of the items labelled on `aspect`; no source is in two parts."""
    fitted = settings.train_share + settings.validation_share
    whole = split or split_sources(golden, aspect=aspect, fraction=fitted, seed=settings.seed)
    fold = inner_fold(whole.calibration, golden.source_codes, settings.train_share / fitted, settings.seed)
    return Parts(fold.fit, fold.validation, whole.held_out)


def pairs_for(golden: GoldenSet, aspect: str, parts: Parts, settings: RepEvalSettings) -> Pairs:
    """The good and bad training texts; positions are those of the golden set."""
    return choose_pairs(
        golden.labels(aspect),
        np.asarray(parts.train, dtype=np.intp),
        [item.target for item in golden.items],
        golden.source_codes,
        rule=settings.pair_rule,
        generator=np.random.default_rng([settings.seed, 1]),
    )


def _training(golden: GoldenSet, aspect: str, parts: Parts, pairs: Pairs) -> Training:
    train = LabelledItems.of(golden, aspect, parts.train)
    return Training(train.positions, train.labels, pairs.good, pairs.bad)


def _members(
    searched: SearchResult, best: IntArray, k: FloatArray, states: States, test: LabelledItems, *, measure: Measure
) -> tuple[Cell, ...]:
    """The cells at `best` (m, 2), with their alignment on `test`."""
    i, j = best[:, 0], best[:, 1]
    on_test = alignment_values(searched.scores[i, j][:, test.positions], test, measure)
    return tuple(
        Cell(
            states.layers[layer],
            states.token_names[token],
            int(k[layer, token]) or None,
            nullable(searched.cells[layer, token]),
            nullable(value),
        )
        for layer, token, value in zip(i, j, on_test, strict=True)
    )


def _random(
    states: States,
    place: IntArray,
    training: Training,
    test: LabelledItems,
    chosen: Cell,
    *,
    settings: RepEvalSettings,
) -> RandomBaseline | None:
    """Random vectors in the chosen cell, which lies at `place` (layer and token index)."""
    if not settings.random_vectors:
        return None
    cell = states.values[:, place[0], place[1]].astype(np.float32)
    return random_baseline(
        cell,
        training,
        test,
        settings.measure,
        projection=chosen.test,
        count=settings.random_vectors,
        generator=np.random.default_rng([settings.seed, 2]),
    )


def _warnings(
    states: States, cells: FloatArray, pairs: Pairs, validation: LabelledItems, settings: RepEvalSettings
) -> tuple[str, ...]:
    warnings = list(states.warnings())
    if settings.uses_pairs and pairs.shortage():
        warnings.append(pairs.shortage())
    undefined = int(np.isnan(cells).sum())
    if undefined:
        warnings.append(f"{undefined} of {cells.size} cells are undefined: nothing varies in them.")
    if validation.labels.size < FEW_LABELS:
        warnings.append(
            f"Layer and token were chosen on {validation.labels.size} labels only; another draw may choose others."
        )
    if settings.method in ("paper-pca", "published", "paper-svm"):
        warnings.append("One cell was chosen among many, so its validation alignment flatters: believe the test one.")
    return tuple(warnings)


# ── over several seeds ───────────────────────────────────────────────────────────────────────────────────────


def stability(
    golden: GoldenSet,
    aspect: str,
    states: States,
    settings: RepEvalSettings,
    seeds: Sequence[int] = range(5),
    *,
    on_progress: OnProgress | None = None,
) -> Stability:
    """`run` once for every seed; `on_progress(done, total)` counts seeds."""
    if not seeds:
        raise UsageError("At least one seed is needed.")
    results = _run_all(golden, aspect, states, [replace(settings, seed=seed) for seed in seeds], on_progress)
    wins = np.zeros(results[0].cells.shape)
    used = wins.copy()
    for result in results:
        for place, cell in enumerate(result.members):
            at = result.layers.index(cell.layer), result.tokens.index(cell.token)
            used[at] += 1
            wins[at] += place == 0
    return Stability(
        seeds=tuple(seeds),
        layers=states.layers,
        tokens=states.token_names,
        chosen=tuple(result.chosen for result in results),
        wins=wins,
        used=used,
        validation=Spread.of([result.validation.value for result in results]),
        test=Spread.of([result.test.value for result in results]),
        optimism=Spread.of([result.optimism for result in results]),
    )


def curve_over_pairs(
    golden: GoldenSet,
    aspect: str,
    states: States,
    settings: RepEvalSettings,
    counts: Sequence[int] = PAIR_COUNTS,
    *,
    seeds: Sequence[int] = range(5),
    on_progress: OnProgress | None = None,
) -> tuple[PairPoint, ...]:
    """Test alignment by number of pairs, over `seeds`; UsageError for a method that uses none."""
    if not settings.uses_pairs:
        raise UsageError(f"{settings.method} learns from all training labels, not from pairs; choose another method.")
    rules = [replace(settings.pair_rule, n=count) for count in counts]
    each = [replace(settings, pairs=rule, seed=seed) for rule in rules for seed in seeds]
    results = _run_all(golden, aspect, states, each, on_progress)
    points = []
    for i, count in enumerate(counts):
        own = results[i * len(seeds) : (i + 1) * len(seeds)]
        pairs = float(np.mean([result.n_pairs for result in own]))
        points.append(PairPoint(count, pairs, Spread.of([result.test.value for result in own])))
    return tuple(points)


def _run_all(
    golden: GoldenSet, aspect: str, states: States, each: Sequence[RepEvalSettings], on_progress: OnProgress | None
) -> list[RepEvalResult]:
    """A run for each of the settings, without intervals and random vectors."""
    results = []
    for done, settings in enumerate(each, start=1):
        results.append(run(golden, aspect, states, replace(settings, resamples=0, random_vectors=0)))
        if on_progress is not None:
            on_progress(done, len(each))
    return results
