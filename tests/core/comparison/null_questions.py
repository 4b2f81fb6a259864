"""Simulated data in which there is nothing to find, or something planted: one question each, asked of the product.

Each question draws one golden set and says whether anything was claimed of it.  Quality is normal, with a part that the
texts of one source share.  Raters and judges see it with noise of their own; labels are steps from 1 to 5 unless said
otherwise.  Without a planted effect a judge follows quality and nothing else, so every claim is false.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from core.comparison import compare_table
from core.comparison.examination import Bias, Examination, examine_judge
from core.records import AspectLabels, FloatArray, GoldenSet, Item, JudgeScores, Measure, Rating, Scale
from core.stats import LabelledItems, RaterTable, annotator_test

ASPECT = "quality"
FAMILY = ("gpt-4o", "claude-3", "llama-2", "t5", "human", "mistral", "gemini", "qwen")
Generator = np.random.Generator


def quality_of(rng: Generator, n_sources: int, n_each: int) -> FloatArray:
    """(n_sources * n_each,) of mean 0 and variance 1, a seventh of it shared by a source."""
    shared = np.repeat(rng.normal(0, 0.4, n_sources), n_each)
    return np.asarray((rng.normal(0, 1, n_sources * n_each) + shared) / np.sqrt(1.16), dtype=np.float64)


def steps(values: FloatArray, middle: float = 3.0) -> FloatArray:
    return np.asarray(np.clip(np.round(middle + values), 1, 5), dtype=np.float64)


def golden_of(
    ratings: FloatArray, n_each: int, lengths: FloatArray | None = None, systems: tuple[str, ...] = ()
) -> GoldenSet:
    """Items labelled with the means of `ratings` (n_raters, n); single ratings are kept where there are several."""
    n = ratings.shape[1]
    sizes = np.full(n, 5) if lengths is None else lengths
    items = tuple(
        Item(f"i{k}", "word " * int(sizes[k]), f"d{k // n_each}", systems[k % n_each] if systems else "")
        for k in range(n)
    )
    labels = AspectLabels(ASPECT, Scale(1, 5, 1.0), tuple(ratings.mean(axis=0).tolist()))
    given = tuple(
        Rating(items[k].item_id, f"r{row + 1}", ASPECT, float(value))
        for row, own in enumerate(ratings if len(ratings) > 1 else ())
        for k, value in enumerate(own)
    )
    return GoldenSet("simulated", "single", items, {ASPECT: labels}, given)


def judge_of(scores: FloatArray, name: str = "j") -> JudgeScores:
    return JudgeScores(name, "imported", ASPECT, scores)


def examined_length(
    rng: Generator,
    *,
    n_sources: int = 200,
    n_each: int = 6,
    noise: tuple[float, float] = (1.0, 0.3),
    n_raters: int = 3,
    planted: float = 0.0,
) -> Examination:
    """Better texts are longer (correlation 0.5); `noise` is that of one rater and of the judge."""
    quality = quality_of(rng, n_sources, n_each)
    length = 0.5 * quality + np.sqrt(0.75) * rng.normal(0, 1, quality.size)
    ratings = steps(quality + noise[0] * rng.normal(0, 1, (n_raters, quality.size)))
    scores = quality + planted * length + noise[1] * rng.normal(0, 1, quality.size)
    lengths = np.maximum(np.round(np.exp(3.0 + 0.5 * length)), 1)
    return examine_judge(golden_of(ratings, n_each, lengths), ASPECT, judge_of(np.clip(3 + scores, 1, 5)))


def bias_of(examination: Examination, kind: str) -> Bias:
    return next(own for own in examination.biases if own.kind == kind)


def follows_length(rng: Generator, **how: Any) -> bool:
    """Is a judge said to favour, or to penalize, long texts?"""
    examination = examined_length(rng, **how)
    return bias_of(examination, "length").shown


def has_weak_part(
    rng: Generator,
    *,
    n_sources: int = 200,
    n_each: int = 8,
    middle: float = 3.0,
    step: float = 0.5,
    n_raters: int = 1,
    planted: float = 1.0,
) -> bool:
    """Is a judge said to err more somewhere?  `planted` multiplies its noise where quality is above the middle."""
    quality = quality_of(rng, n_sources, n_each)
    ratings = steps(quality + 0.7 * rng.normal(0, 1, (n_raters, quality.size)), middle)
    noise = 0.7 * np.where(quality > 0.5, planted, 1.0)
    scores = np.clip(np.round((middle + quality + noise * rng.normal(0, 1, quality.size)) / step) * step, 1, 5)
    golden = golden_of(ratings, n_each, systems=FAMILY[:n_each])
    return bool(examine_judge(golden, ASPECT, judge_of(scores)).worst)


def favours_its_family(
    rng: Generator, *, n_sources: int = 100, noise: tuple[float, float] = (1.0, 0.3), planted: float = 0.0
) -> bool:
    """Is a judge said to favour its own family?  The family's texts are better by a standard deviation."""
    quality = quality_of(rng, n_sources, 6)
    own = np.tile(np.arange(6), n_sources) == 0
    quality = quality + own
    ratings = steps(quality + noise[0] * rng.normal(0, 1, (3, quality.size)))
    scores = np.clip(3 + quality + planted * own + noise[1] * rng.normal(0, 1, quality.size), 1, 5)
    golden = golden_of(ratings, 6, systems=FAMILY[:6])
    return bias_of(examine_judge(golden, ASPECT, judge_of(scores), model="openai:gpt-4o"), "own family").shown


def best_is_above_a_rater(rng: Generator, *, n_judges: int = 10, n_sources: int = 40, planted: float = 1.0) -> bool:
    """Is the best of several judges said to agree better than a rater?  Each is one more rater like the three;
    `planted` divides the noise of the first."""
    quality = quality_of(rng, n_sources, 6)
    ratings = steps(quality + 0.8 * rng.normal(0, 1, (3, quality.size)))
    noise = np.where(np.arange(n_judges) == 0, 0.8 / planted, 0.8)[:, None]
    scores = steps(quality + noise * rng.normal(0, 1, (n_judges, quality.size)))
    judges = [judge_of(own, f"judge {k + 1}") for k, own in enumerate(scores)]
    board = compare_table(golden_of(ratings, 6), ASPECT, judges, Measure("spearman", "dataset"))
    return board.rows[0].people is not None and board.rows[0].people.standing == "above"


def _duel(rng: Generator, n_sources: int, n_each: int, shift: float) -> tuple[RaterTable, FloatArray, LabelledItems]:
    """Three raters and a judge; the first rater and the judge err by source too, the judge by `shift`."""
    n, source = n_sources * n_each, np.repeat(np.arange(n_sources), n_each)
    quality = rng.normal(0, 1, n)
    own, judges = (scale * rng.normal(0, 1, n_sources)[source] for scale in (0.6, shift))
    rater = steps(quality + own + 0.5 * rng.normal(0, 1, n))
    others = steps(quality + 0.7 * rng.normal(0, 1, (2, n)))
    judge = steps(quality + judges + 0.5 * rng.normal(0, 1, n))
    table = RaterTable(("r1", "r2", "r3"), np.vstack([rater, others]))
    return table, judge, LabelledItems.from_arrays(quality, source)


@cache
def _at_the_margin() -> float:
    """The judge's error by source at which it is worse than the first rater by exactly what the test allows (0.15)."""
    low, high = 0.6, 2.0
    for _ in range(12):
        middle = (low + high) / 2.0
        rater = annotator_test(*_duel(np.random.default_rng(0), 20_000, 4, middle)).by_rater[0]
        low, high = (middle, high) if (rater.difference or 0.0) < 0.15 else (low, middle)
    return (low + high) / 2.0


def may_replace_a_rater(rng: Generator, *, planted: float | None = None) -> bool:
    """Is a judge that is worse than a rater by just the margin said to be within it, at 5 %?  On 40 sources of 6."""
    shift = _at_the_margin() if planted is None else planted
    p = annotator_test(*_duel(rng, 40, 6, shift)).by_rater[0].p
    return p is not None and p <= 0.05
