"""One RepEval run on states already read: split, fit, search, average, tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.data.split import inner_fold, split_sources
from core.errors import UsageError
from core.records import FloatArray, GoldenSet, IntArray, Split
from core.repeval.baseline import RandomBaseline, random_baseline
from core.repeval.cells import CellAverage, OnProgress, SearchResult, average_cells, search
from core.repeval.pairs import Pairs, choose_pairs
from core.repeval.portable import RepEvalScorer, ScorerCell
from core.repeval.projection import Training
from core.repeval.result import Cell, Parts, RepEvalResult, measure_of, nullable, told
from core.repeval.settings import RepEvalSettings
from core.repeval.states.records import States
from core.stats import LabelledItems, alignment_values

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
    told on the test sources.  `split` tests on its held-out items instead and divides its calibration items into
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
    train, validation, test = (
        LabelledItems.of(golden, aspect, part) for part in (parts.train, parts.validation, parts.test)
    )
    pairs = pairs_for(golden, aspect, parts, chosen)
    training = Training(train.positions, train.labels, pairs.good, pairs.bad)
    found = search(
        states.values,
        chosen.maker(),
        training=training,
        validation=validation,
        measure=measure_of(chosen),
        on_progress=on_progress,
    )
    average = average_cells(found, validation, chosen.cells_averaged)
    members = _members(found, average, states, test, chosen)
    return RepEvalResult(
        aspect=aspect,
        settings=chosen,
        layers=states.layers,
        tokens=states.token_names,
        chosen=members[0],
        members=members,
        validation=told(average.scores, validation, chosen),
        test=told(average.scores, test, chosen),
        cells=found.cells,
        cell_k=_cell_k(found, chosen),
        cell_scores=found.scores,
        scores=average.scores,
        parts=parts,
        random=_random(states, average.members[0], training, test, members[0], settings=chosen),
        n_pairs=pairs.n if chosen.uses_pairs else 0,
        states=states.summary(),
        warnings=_warnings(states, found, pairs, validation, chosen),
    )


def scorer_of(golden: GoldenSet, states: States, result: RepEvalResult) -> RepEvalScorer | None:
    """The score of `result` as it rates other items; None for a method that is not linear in the states (paper-svm).

    `golden` and `states` are those of the run.  The member cells are fitted once more, which gives the same directions;
    they are standardised as the run's average is.
    """
    chosen, parts = result.settings, result.parts
    train = LabelledItems.of(golden, result.aspect, parts.train)
    pairs = pairs_for(golden, result.aspect, parts, chosen)
    training = Training(train.positions, train.labels, pairs.good, pairs.bad)
    places = [(states.layers.index(one.layer), states.token_names.index(one.token)) for one in result.members]
    cells = []
    for (i, j), member in zip(places, result.members, strict=True):
        lines = chosen.maker()().fit(states.values[None, :, i, j].astype(np.float32), training).lines()
        if lines is None:
            return None
        k = (member.k or 1) - 1
        centre, spread = float(lines.offsets[0, k]), 1.0
        if len(places) > 1:
            seen = result.cell_scores[i, j, list(parts.validation)]
            centre, spread = centre + float(seen.mean()), float(seen.std())
        direction = lines.directions[0, k].astype(np.float64)
        cells.append(ScorerCell(member.layer, member.token, direction, centre, spread))
    read = replace(
        states.extraction,
        layers=tuple(dict.fromkeys(one.layer for one in cells)),
        tokens=tuple(dict.fromkeys(one.token for one in cells)),
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


def _members(
    found: SearchResult, average: CellAverage, states: States, test: LabelledItems, settings: RepEvalSettings
) -> tuple[Cell, ...]:
    i, j = average.members[:, 0], average.members[:, 1]
    on_test = alignment_values(found.scores[i, j][:, test.positions], test, measure_of(settings))
    k = _cell_k(found, settings)
    return tuple(
        Cell(
            states.layers[layer],
            states.token_names[token],
            int(k[layer, token]) or None,
            nullable(found.cells[layer, token]),
            nullable(value),
        )
        for layer, token, value in zip(i, j, on_test, strict=True)
    )


def _cell_k(found: SearchResult, settings: RepEvalSettings) -> FloatArray:
    """(n_layers, n_tokens) k of each cell, 0 for methods without components."""
    if settings.method != "paper-pca":
        return np.zeros(found.best_k.shape)
    return found.best_k.astype(np.float64) + 1.0


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
        measure_of(settings),
        projection=chosen.test,
        count=settings.random_vectors,
        generator=np.random.default_rng([settings.seed, 2]),
    )


def _warnings(
    states: States, found: SearchResult, pairs: Pairs, validation: LabelledItems, settings: RepEvalSettings
) -> tuple[str, ...]:
    told_so = list(states.warnings())
    if settings.uses_pairs and pairs.shortage():
        told_so.append(pairs.shortage())
    undefined = int(np.isnan(found.cells).sum())
    if undefined:
        told_so.append(f"{undefined} of {found.cells.size} cells are undefined: nothing varies in them.")
    if validation.labels.size < FEW_LABELS:
        told_so.append(
            f"Layer and token were chosen on {validation.labels.size} labels only; another draw may choose others."
        )
    if settings.method in ("paper-pca", "published", "paper-svm"):
        told_so.append("One cell was chosen among many, so its validation alignment flatters: believe the test one.")
    return tuple(told_so)


def for_speed(settings: RepEvalSettings, seed: int) -> RepEvalSettings:
    """The same run with another seed, without intervals and random vectors: one of many."""
    return replace(settings, seed=seed, resamples=0, random_vectors=0)
