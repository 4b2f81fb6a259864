"""Combine several judges and metrics (the *parts*) of a golden set into one judge, without calls.

A part has seen a source if it was calibrated or fitted on labels of the source. Weights are fitted on some of the
sources that no part has seen, and measured on the others. Parts made for a fusion can also learn from the sources
on which weights are fitted, if their scores are cross-fitted (`cross_fitted`).

Scores of parts have the shape (n_parts, n_items), and higher is better. A missing score is NaN and counts as the part's
mean. If no part has a score for an item, its fused score is NaN.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from core.data.split import TO_STACK, inner_fold, too_few_to_stack
from core.errors import AspectError, UsageError
from core.fusion.fusion_settings import FusionMethod, FusionSettings
from core.records import Alignment, FloatArray, GoldenSet, IntArray, JudgeScores, Level, Split, Unscored
from core.stats import LEAST_SOURCES, Difference, LabelledItems, align_each, holm, paired_difference
from core.wording import number

PENALTIES = np.logspace(-1, 3, 13)
"""Ridge penalties tried, in units of one standardised item."""
PENALTY_FOLDS = 5
MIN_ITEMS = 20
"""Fewest labelled items to fit on, and to report on."""
MIN_SOURCES = 4
MIN_SYSTEMS = 3
"""A coefficient over two systems can only be 1 or -1."""
PART_FOLDS = 3
FitAndScore = Callable[[Split], FloatArray]
"""Fits on the calibration part of a split and returns scores (n_items,) over the whole golden set."""


# ── estimators ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Estimator:
    """Fitted weights of a fusion. Standardised scores are multiplied by `weights`, and `intercept` is added.

    Attributes:
        method: "average" is the mean of the available standardised scores, without labels. "ridge" and "nnls" learn an
            intercept and weights from labels. The weights of "nnls" are not negative.
        mean: Mean score of each part, used to standardise.
        spread: Standard deviation of each part's scores, used to standardise.
        penalty: The ridge penalty with the smallest squared error in cross-validation by source. Not used for scoring.
    """

    method: FusionMethod
    mean: list[FiniteFloat]
    spread: list[Annotated[FiniteFloat, Field(gt=0)]]
    weights: list[FiniteFloat]
    intercept: FiniteFloat = 0.0
    penalty: float = 0.0

    def score(self, scores: FloatArray) -> FloatArray:
        """Fuse `scores` (n_parts, n_items). Return fused scores (n_items,), NaN for an item that no part scored."""
        z, count = _standardised(scores, np.array(self.mean), np.array(self.spread)), (~np.isnan(scores)).sum(axis=0)
        if self.method == "average":
            joined = z.sum(axis=0) / np.maximum(count, 1)
        else:  # not a matrix product, whose last digits can differ between equal items
            joined = (np.array(self.weights)[:, None] * z).sum(axis=0)
        return np.where(count > 0, self.intercept + joined, np.nan)

    def state(self) -> dict[str, Any]:
        """Return the weights as JSON, for `restore_estimator`."""
        state = asdict(self)
        return state if self.method != "average" else {name: state[name] for name in ("method", "mean", "spread")}


def fit_estimator(method: FusionMethod, scores: FloatArray, labels: FloatArray, sources: IntArray) -> Estimator:
    """Fit weights that predict `labels` (n_items,) from `scores` (n_parts, n_items).

    `sources` (n_items,) has the source of each item as an integer, for cross-validation.
    """
    known = ~np.isnan(scores)
    count = np.maximum(known.sum(axis=1), 1)
    mean = np.where(known, scores, 0.0).sum(axis=1) / count
    spread = np.sqrt(np.where(known, (scores - mean[:, None]) ** 2, 0.0).sum(axis=1) / count)
    spread = np.where(spread > 0, spread, 1.0)
    if method == "average":
        return Estimator(method, mean.tolist(), spread.tolist(), [1.0 / len(scores)] * len(scores))
    z, intercept, penalty = _standardised(scores, mean, spread), float(labels.mean()), 0.0
    if method == "nnls":
        from scipy.optimize import nnls

        weights = nnls(z.T, labels - intercept)[0]
    else:
        penalty = _best_penalty(z, labels - intercept, sources)
        weights = _ridge(z, labels - intercept, np.array([penalty]))[0]
    return Estimator(method, mean.tolist(), spread.tolist(), weights.tolist(), intercept, penalty)


def restore_estimator(state: Mapping[str, Any]) -> Estimator:
    """Restore an estimator from its stored `state`. Raises UsageError if the state is damaged."""
    known = {name: value for name, value in state.items() if value is not None}
    if known.get("method") == "average" and isinstance(known.get("mean"), list):
        known["weights"] = [1.0 / max(len(known["mean"]), 1)] * len(known["mean"])
    try:
        estimator = TypeAdapter(Estimator).validate_json(json.dumps(known), strict=True)
    except ValidationError as error:
        raise UsageError(f"The stored fusion is damaged: {error}. Save the fusion again.") from error
    if not len(estimator.mean) == len(estimator.spread) == len(estimator.weights):
        raise UsageError(
            "The stored fusion is damaged: the numbers of means, spreads and weights differ. Save the fusion again."
        )
    return estimator


def _standardised(scores: FloatArray, mean: FloatArray, spread: FloatArray) -> FloatArray:
    """Return standardised scores (n_parts, n_items), 0 for missing ones."""
    return np.nan_to_num((scores - mean[:, None]) / spread[:, None], nan=0.0)


def _ridge(z: FloatArray, y: FloatArray, penalties: FloatArray) -> FloatArray:
    """Return weights (n_penalties, n_parts) for all penalties from one eigendecomposition."""
    values, vectors = np.linalg.eigh(z @ z.T)
    turned = vectors.T @ (z @ y)
    weights: FloatArray = (turned / (np.maximum(values, 0.0) + penalties[:, None])) @ vectors.T
    return weights


def _best_penalty(z: FloatArray, y: FloatArray, sources: IntArray) -> float:
    """Return the penalty with the smallest cross-validated squared error; the middle one with fewer than 2 sources."""
    names, codes = np.unique(sources, return_inverse=True)
    if names.size < 2:
        return float(PENALTIES[len(PENALTIES) // 2])
    fold = np.random.default_rng(0).permutation(names.size)[codes] % min(PENALTY_FOLDS, names.size)
    errors = np.zeros(len(PENALTIES))
    for k in range(fold.max() + 1):
        out = fold == k
        errors += ((_ridge(z[:, ~out], y[~out], PENALTIES) @ z[:, out] - y[out]) ** 2).sum(axis=1)
    return float(PENALTIES[np.argmin(errors)])


# ── split ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class FusionSplit:
    """Positions of the items to fit on (n_fit,) and to report on (n_report,), from different sources.

    `notes` say how many items were left out, and why.
    """

    fit: IntArray
    report: IntArray
    notes: tuple[str, ...] = ()


def unseen_split(
    golden: GoldenSet, aspect: str, parts: Sequence[JudgeScores], *, fit_share: float = 0.5, seed: int = 0
) -> FusionSplit:
    """Split the labelled items by source, leaving out sources that a part has seen.

    Raises AspectError if too few items remain.
    """
    labelled, stale = ~np.isnan(golden.labels(aspect)), seen_sources(golden, parts)
    fresh, notes = np.flatnonzero(labelled & ~stale), tuple[str, ...]()
    if stale.any():
        notes = (
            f"{int((labelled & stale).sum())} labelled items were left out because a part was calibrated or fitted on "
            f"their sources; {fresh.size} items remain.",
        )
    n_sources = np.unique(golden.source_codes[fresh]).size
    if n_sources < MIN_SOURCES or fresh.size < 2 * MIN_ITEMS:
        raise AspectError(
            f"without the sources that a part was calibrated or fitted on, only {fresh.size} labelled items from "
            f"{n_sources} sources remain. A fusion needs at least {2 * MIN_ITEMS} items from {MIN_SOURCES} "
            "sources. Leave out a part that was calibrated on many of the items, or label more items.",
            file=golden.name,
        )
    fit, test = inner_fold(fresh.tolist(), golden.source_codes, fit_share, seed)
    return FusionSplit(np.array(fit, dtype=np.intp), np.array(test, dtype=np.intp), notes)


def require_systems(golden: GoldenSet, level: Level, report: IntArray) -> None:
    """Raise AspectError if `level` is "system" and the report items have fewer than `MIN_SYSTEMS` systems."""
    n_systems = np.unique(golden.system_codes[report]).size
    if level == "system" and n_systems < MIN_SYSTEMS:
        raise AspectError(
            f"system level requires at least {MIN_SYSTEMS} systems (system_id) among the held-out items, but there "
            f"are only {n_systems}. With fewer systems, a coefficient can only be undefined, 1 or −1. Use the "
            "dataset or sample level.",
            file=golden.name,
        )


def seen_sources(golden: GoldenSet, parts: Sequence[JudgeScores]) -> NDArray[np.bool_]:
    """Return a mask (n_items,) of the items whose source has a label that any of `parts` has seen."""
    seen = sorted({k for part in parts for k in part.seen})
    return np.isin(golden.source_codes, golden.source_codes[seen]) if seen else np.zeros(len(golden.items), dtype=bool)


def cross_fitted(golden: GoldenSet, split: Split, fit_and_score: FitAndScore) -> FloatArray:
    """Return scores (n_items,), each from a fit that has not seen labels of the item's source.

    A fit to all calibration items scores the other items. Each of `PART_FOLDS` folds of the calibration sources is
    scored by a fit to the other folds. Raises UsageError if there are fewer calibration sources than folds.
    """
    calibration = np.array(split.calibration, dtype=np.intp)
    codes = golden.source_codes[calibration]
    sources = np.unique(codes)
    if sources.size < PART_FOLDS:
        raise UsageError(
            f"To learn from labels, a part of a fusion needs at least {PART_FOLDS} calibration sources, but there are "
            f"only {sources.size}. Label items from more sources."
        )
    scores = np.array(fit_and_score(split), dtype=np.float64)
    fold = np.random.default_rng([split.seed, 4]).permutation(sources.size) % PART_FOLDS
    for k in range(PART_FOLDS):
        left_out = np.isin(codes, sources[fold == k])
        kept, out = (tuple(calibration[side].tolist()) for side in (~left_out, left_out))
        inner = Split(kept, out, split.kind, split.seed)
        scores[calibration[left_out]] = fit_and_score(inner)[calibration[left_out]]
    return scores


# ── the fusion ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Fusion:
    """A fused judge and its parts. All alignments and differences are measured on the `report` items.

    Attributes:
        left_out: Name of each unused part → reason.
        weights: Name → weight, in points of the label per standard deviation of the part. For the average, 1 / number
            of parts.
        without: Name of each part → alignment of the fusion without the part, and difference: full fusion minus fusion
            without the part. P-values are Holm-corrected.
        against_best: Difference: fusion minus best part.
        best_part: The part with the highest alignment on the `fit` items.
        fit: Positions of the items that weights were fitted on.
        state: Data for scoring new items.
    """

    method: FusionMethod
    judge: JudgeScores
    fused: Alignment
    parts: Mapping[str, Alignment]
    left_out: Mapping[str, str]
    weights: Mapping[str, float]
    without: Mapping[str, tuple[Alignment, Difference]]
    against_best: Difference
    best_part: str
    fit: tuple[int, ...]
    report: tuple[int, ...]
    state: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the JSON that the command `fuse` prints about this fusion."""
        return {
            "method": self.method,
            "fused": self.fused.as_json(),
            "parts": {name: alignment.as_json() for name, alignment in self.parts.items()},
            "left_out": dict(self.left_out),
            "weights": dict(self.weights),
            "without": {
                name: alignment.as_json() | {"fused_minus_this": lost.as_json()}
                for name, (alignment, lost) in self.without.items()
            },
            "best_part": self.best_part,
            "against_best": self.against_best.as_json(),
            "n_fit": len(self.fit),
            "n_report": len(self.report),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Agreement:
    """Measures the agreement of scores with the raters on one aspect."""

    golden: GoldenSet
    aspect: str
    settings: FusionSettings

    @cached_property
    def items(self) -> LabelledItems:
        return LabelledItems.of(self.golden, self.aspect)

    def align(self, matrix: FloatArray, at: IntArray, *, stream: int = 1) -> list[Alignment]:
        """Return the alignment of each row of `matrix` (n_judges, n_items) at the positions `at`."""
        how, items = self.settings, self.items.take(at)
        return align_each(matrix[:, at], items, how.measure, seed=[how.seed, stream])

    def difference(self, a: FloatArray, b: FloatArray, at: IntArray) -> Difference:
        """Return the alignment of scores `a` (n_items,) minus that of `b`, on the items in `at` with both scores."""
        how, items = self.settings, self.items.take(at)
        return paired_difference(a[at], b[at], items, how.measure, seed=[how.seed, 2])


def fuse(
    golden: GoldenSet,
    aspect: str,
    parts: Sequence[JudgeScores],
    settings: FusionSettings,
    split: FusionSplit | None = None,
) -> Fusion:
    """Fuse several judges of a golden set into one judge of an aspect, without calls.

    With too few labels to learn weights, the parts are averaged, and `notes` says so. Parts that are constant or have
    no scores are left out. An average also leaves out parts that don't agree significantly with the labels. With fewer
    than 50 labels, or fewer than `LEAST_SOURCES` sources, an average leaves out only parts that significantly
    contradict the labels.

    Args:
        parts: Scores of the judges, with different names. Their scales may differ.
        split: Items to fit on and items to report on. Scores on the items to fit on must be cross-fitted
            (`cross_fitted`).

    Raises:
        UsageError: Fewer than two parts are usable.
        AspectError: Too few items are unseen by all parts.
    """
    names = [part.name for part in parts]
    split = split or unseen_split(golden, aspect, parts, fit_share=settings.fit_share, seed=settings.seed)
    fit, report, notes = split.fit, split.report, list(split.notes)
    assert settings.method != "llm"
    method: FusionMethod = settings.method
    if method != "average" and (few := too_few_to_stack(fit.size)):
        notes.append(f"{few}. Concord averaged the parts instead of using {method}.")
        method = "average"
    require_systems(golden, settings.measure.level, report)
    if method == "average" and settings.level == "system":
        n_systems = np.unique(golden.system_codes[fit]).size
        notes.append(
            f"Parts were chosen by agreement on single items, because {n_systems} systems are too few to "
            "choose at system level."
        )
    agreement, matrix = Agreement(golden, aspect, settings), np.array([part.upward for part in parts])
    on_fit, left_out = _choose_parts(agreement, names, matrix, fit, averaged=method == "average")
    usable = [k for k, name in enumerate(names) if name not in left_out]
    used, joined = matrix[usable], [parts[k] for k in usable]

    def fitted(rows: FloatArray) -> Estimator:
        return fit_estimator(method, rows[:, fit], agreement.items.labels[fit], golden.source_codes[fit])

    estimator = fitted(used)
    values = estimator.score(used)
    alone, lost = [], []
    for k in range(len(usable)) if len(usable) > 2 else ():
        rest = np.delete(used, k, axis=0)
        scores = fitted(rest).score(rest)
        alone.append(agreement.align(scores[None, :], report)[0])
        lost.append(agreement.difference(values, scores, report))
    fused, *of_parts = agreement.align(np.vstack([values, matrix]), report)
    best = max(usable, key=lambda k: float(-np.inf if (value := on_fit[k].value) is None else value))
    used_names = [part.name for part in joined]
    costs = [part.calls_per_item for part in joined]
    judge = JudgeScores(
        name=f"fusion ({method}) of {len(joined)}",
        kind="fused",
        aspect=aspect,
        values=values,
        unscored=tuple(
            Unscored(golden.item_ids[k], "missing input", "None of the fusion's parts has a score.")
            for k in np.flatnonzero(np.isnan(values))
        ),
        seen=tuple(sorted({*fit.tolist()}.union(*(part.seen for part in joined)))),
        on_scale=method != "average",
        note=f"{', '.join(used_names)}, combined by {method} and fitted on {fit.size} items.",
        calls_per_item=None if None in costs else float(sum(cost or 0.0 for cost in costs)),
    )
    return Fusion(
        method=method,
        judge=judge,
        fused=fused,
        parts=dict(zip(names, of_parts, strict=True)),
        left_out=left_out,
        weights=dict(zip(used_names, estimator.weights, strict=True)),
        without=dict(zip(used_names, zip(alone, holm_corrected(lost), strict=True), strict=False)),
        against_best=agreement.difference(values, matrix[best], report),
        best_part=names[best],
        fit=tuple(fit.tolist()),
        report=tuple(report.tolist()),
        state=estimator.state() | {"parts": used_names},
        notes=tuple(notes),
    )


def _choose_parts(
    agreement: Agreement, names: Sequence[str], matrix: FloatArray, fit: IntArray, *, averaged: bool
) -> tuple[list[Alignment], dict[str, str]]:
    """Return each part's alignment on the fit items, and the reasons of the parts left out, by name.

    `matrix` is (n_parts, n_items). Fitted weights can use parts that disagree with the raters; the average can't.
    UsageError if fewer than two parts are usable.
    """
    golden, settings = agreement.golden, agreement.settings
    # a dozen systems are too few to test parts against chance
    level = "dataset" if settings.level == "system" else settings.level
    gate = replace(settings, level=level)
    on_fit = replace(agreement, settings=gate).align(matrix, fit)
    few = fit.size < TO_STACK or np.unique(golden.source_codes[fit]).size < LEAST_SOURCES
    left_out = {}
    for name, row, alignment in zip(names, matrix[:, fit], on_fit, strict=True):
        scores, interval = row[~np.isnan(row)], alignment.interval
        where = f"on the {alignment.n} items used for fitting ({number(alignment.value)})"
        if not scores.size:
            left_out[name] = "it has no scores for the items used for fitting"
        elif scores.min() == scores.max():
            left_out[name] = "all its scores are equal on the items used for fitting"
        elif averaged and few and interval is not None and interval.high < 0:
            left_out[name] = f"it disagrees with raters beyond chance {where}"
        elif averaged and not few and not beats_chance(alignment):
            left_out[name] = f"it doesn't agree with raters beyond chance {where}"
    if (n_usable := len(names) - len(left_out)) < 2:
        why = [f"{name}: {reason}." for name, reason in left_out.items()]
        raise UsageError(" ".join([f"A fusion needs at least two usable parts. This one has only {n_usable}.", *why]))
    return on_fit, left_out


def beats_chance(alignment: Alignment) -> bool:
    """Return whether the whole interval is above 0."""
    return alignment.value is not None and alignment.interval is not None and alignment.interval.low > 0


def holm_corrected(differences: Sequence[Difference]) -> list[Difference]:
    """Return the differences with Holm-corrected p values. A difference without p stays as it is."""
    corrected = holm([np.nan if test.p is None else test.p for test in differences])
    return [replace(test, p=None if np.isnan(p) else float(p)) for test, p in zip(differences, corrected, strict=True)]
