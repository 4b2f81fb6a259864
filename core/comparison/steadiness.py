"""Measure how much a judge's scores change when it scores again, and the gain from more samples."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from core.calibration.racing import ensemble_scores
from core.data.split import calibration_digests, text_digest
from core.errors import JudgeError, UsageError
from core.judge_files import CalibratedJudge
from core.judge_files.loaded import LoadedJudge, load_judge
from core.judging.llm_judge import LLMJudge
from core.progress import SILENT, Progress, Stage
from core.providers.budget import BudgetSpentError
from core.providers.completions import ReplyStore
from core.records import (
    FloatArray,
    GoldenSet,
    Interval,
    Item,
    JsonRecord,
    Usage,
    check_settings,
    json_fields,
    setting,
)
from core.stats import Difference
from core.stats.intervals import CONFIDENCE, intraclass_correlation

SAME = 1e-9
"""Largest gap between equal scores: means of the same ratings, added in another order."""
SAMPLES = (2, 3, 5, 10)
"""Numbers of samples for which the alignment is forecast."""
TOO_FEW, ALL_SAME = "fewer than two items were scored at least twice", "all scores are equal"


@dataclass(frozen=True, slots=True)
class RepeatSettings:
    """Settings of `repeat`: the number of calibration items, and how often each is scored."""

    items: int = setting(30, "Number of calibration items to score.", low=2, high=10_000)
    times: int = setting(3, "Number of times to score each item.", low=2, high=50)
    seed: int = setting(0, "Seed for choosing the items.", low=0)
    budget_usd: float | None = setting(None, "Maximum cost in dollars.", low=0)

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True, slots=True)
class Forecast(JsonRecord):
    """Reliability of the mean of several samples, and its expected held-out alignment; None if undefined."""

    samples: int
    reliability: float | None
    alignment: float | None


@dataclass(frozen=True)
class Steadiness:
    """How much a judge's scores change when it scores the same items repeatedly.

    A score is the mean over the judge's criteria and samples.

    Attributes:
        judge: The SPEC of the judge.
        temperature: Temperature of the judge; None is the model's default.
        times: How often each item was scored.
        n_items: Number of items with at least two scores. All figures are based on these items.
        n_unread: Number of requested scores that could not be read.
        changed_share: Share of the items whose score changed, 0 to 1.
        mean_change: Mean absolute change between two scores of an item, in points of the scale.
        reliability: ICC(1) of one score, at most 1; None if undefined.
        interval: 95 % interval of the reliability.
        reason: Why `reliability` is None.
        alignment: The held-out alignment in the judge file, with one score per item; None if unknown.
        forecasts: Forecasts for the mean of more samples.
    """

    aspect: str
    judge: str
    temperature: float | None
    times: int
    n_items: int
    n_unread: int
    changed_share: float | None
    mean_change: float | None
    reliability: float | None
    interval: Interval | None
    reason: str
    alignment: float | None
    forecasts: tuple[Forecast, ...]
    usage: Usage = field(default_factory=Usage)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON that the command `repeat` prints."""
        return json_fields(self, but=("usage",)) | {"usage": asdict(self.usage)}


def repeat(
    judge: str | Path | LoadedJudge,
    golden: GoldenSet,
    settings: RepeatSettings | None = None,
    *,
    replies: ReplyStore | None = None,
    progress: Progress = SILENT,
) -> Steadiness:
    """Score again some of the items in `golden` that `judge` was calibrated on.

    Args:
        judge: A judge file or a loaded judge.
        golden: The golden set of the calibration.
        settings: How many items are scored, and how often.
        replies: A cache for this repetition alone, because the usual cache would return the earlier replies.

    Raises:
        UsageError: The judge is not a language model, or fewer than 2 of its calibration items are in `golden`.
        JudgeError, ProviderError: The judge failed.
    """
    if isinstance(judge, str | Path):
        with closing(load_judge(judge, replies=replies)) as loaded:
            return repeat(loaded, golden, settings, progress=progress)
    how = settings or RepeatSettings()
    return steadiness(judge, items_to_repeat(judge, golden, how), how, progress=progress)


def items_to_repeat(judge: LoadedJudge, golden: GoldenSet, settings: RepeatSettings) -> list[Item]:
    """Sample calibration items of `judge` from `golden`. Raises the same errors as `repeat`."""
    _asked(judge)
    known = calibration_digests(judge.card)
    places = [k for k, item in enumerate(golden.items) if text_digest(item) in known]
    if len(places) < 2:
        raise UsageError(
            f"{golden.name} contains only {len(places)} of the items that the judge was calibrated on, but at least 2 "
            "are needed. Use the golden set from its calibration."
        )
    chosen = np.random.default_rng([settings.seed, 37]).permutation(len(places))[: settings.items]
    return [golden.items[places[k]] for k in np.sort(chosen)]


def steadiness(
    judge: LoadedJudge, items: Sequence[Item], settings: RepeatSettings, *, progress: Progress = SILENT
) -> Steadiness:
    """Score `items` `settings.times` times with `judge`, each time with fresh replies, and compare the scores.

    - Reliability of one score: ICC(1) (Shrout and Fleiss 1979).
    - Reliability of the mean of k scores: k·ICC / (1 + (k − 1)·ICC) (Spearman 1910, Brown 1910).
    - Expected alignment of the mean of k scores: alignment · sqrt(reliability of k scores / reliability of one),
      because correlations grow with the square root of the reliability (Spearman 1904).

    Raises:
        UsageError: The judge is not a language model, or a budget is set and the price of the model is unknown.
        JudgeError: The judge has no criteria (a fused judge or RepEval).
        BudgetSpentError: The budget is too small to score each item twice.
    """
    calibrated, model = _asked(judge)
    model = model if settings.budget_usd is None else model.within(settings.budget_usd)
    usable, _ = calibrated.divided(items)
    each = len(usable) * len(calibrated.criteria)
    progress.publish(Stage("repeat", "asking again", 0, each * settings.times))
    scores, usage = np.empty((settings.times, len(usable))), Usage()
    for time in range(settings.times):
        again = model.asked_again(time)  # new sample numbers, so no cached replies
        try:
            matrix = again.score(calibrated.task, usable, calibrated.criteria, on_progress=progress.advance)
        except BudgetSpentError as error:
            if time < 2:
                raise
            scores, usage = scores[:time], usage + error.usage
            break
        scores[time], usage = ensemble_scores(matrix.values), usage + matrix.usage
        done = f"finished round {time + 1} of {settings.times}"
        progress.publish(Stage("repeat", done, each * (time + 1), each * settings.times, usage))

    n_unread = int(np.isnan(scores).sum())
    scores = scores[:, (~np.isnan(scores)).sum(axis=0) >= 2]
    known, n = ~np.isnan(scores), scores.shape[1]
    gaps = np.array([np.abs(scores[i] - scores[j]) for i, j in combinations(range(len(scores)), 2)])
    icc = intraclass_correlation(scores[known], np.nonzero(known)[1])
    alignment = ((calibrated.card.get("alignment") or {}).get("held_out") or {}).get("value")
    return Steadiness(
        aspect=calibrated.task.aspect,
        judge=calibrated.spec,
        temperature=model.sampling.temperature,
        times=len(scores),
        n_items=n,
        n_unread=n_unread,
        changed_share=float((np.nanmax(gaps, axis=0) > SAME).mean()) if n else None,
        mean_change=float(np.nanmean(gaps, axis=0).mean()) if n else None,
        reliability=None if np.isnan(icc) else icc,
        interval=None if np.isnan(icc) else reliability_interval(scores),
        reason="" if not np.isnan(icc) else TOO_FEW if n < 2 else ALL_SAME,
        alignment=alignment,
        forecasts=tuple(_forecast(k, icc, alignment) for k in SAMPLES),
        usage=usage,
    )


def _forecast(samples: int, icc: float, alignment: float | None) -> Forecast:
    if not icc > 0.0:
        return Forecast(samples, None, None)
    reliability = samples * icc / (1.0 + (samples - 1) * icc)
    expected = None if alignment is None else alignment * float(np.sqrt(reliability / icc))
    return Forecast(samples, reliability, expected)


def reliability_interval(scores: FloatArray) -> Interval | None:
    """Compute the 95 % interval of the ICC(1) of `scores` (times, n_items).

    Returns None if a score is missing or no score changed. With F = MSB/MSW (mean squares between and within
    items), k times and n items, the interval is (McGraw and Wong 1996, table 7):

    (F/F₁ − 1)/(F/F₁ + k − 1) to (F·F₂ − 1)/(F·F₂ + k − 1)

    F₁ is the upper quantile of F with n − 1 and n(k − 1) degrees of freedom, and F₂ with n(k − 1) and n − 1.
    """
    from scipy.special import fdtri

    k, n = scores.shape
    within = ((scores - scores.mean(axis=0)) ** 2).sum() / (n * (k - 1))
    if np.isnan(within) or within <= SAME**2:
        return None
    between = k * scores.mean(axis=0).var(ddof=1)
    ratio, upper = between / within, 1.0 - (1.0 - CONFIDENCE) / 2.0
    low = ratio / fdtri(n - 1, n * (k - 1), upper)
    high = ratio * fdtri(n * (k - 1), n - 1, upper)
    return Interval(float((low - 1) / (low + k - 1)), float((high - 1) / (high + k - 1)), CONFIDENCE, "F")


def gain_noise(found: Steadiness, gain: Difference) -> float | None:
    """Estimate how much `gain`, the difference of two judges' alignments, would vary if both judges scored again.

    Returns 1.96 standard deviations of the difference; None if unknown. To first order, the alignment r of a judge on n
    items has the standard deviation sqrt((1 − reliability)·(1 − r²)/n). Errors are assumed to be independent, and both
    judges to have the reliability in `found`.
    """
    if found.reliability is None or gain.a.value is None or gain.b.value is None or not gain.n:
        return None
    spread = 2.0 - gain.a.value**2 - gain.b.value**2
    return float(1.96 * np.sqrt(max(0.0, 1.0 - max(0.0, found.reliability)) * spread / gain.n))


def is_within_noise(found: Steadiness, gain: Difference) -> bool:
    """Return whether `gain` is inconclusive, that is, smaller than the noise of scoring again (`gain_noise`)."""
    noise = gain_noise(found, gain)
    return noise is not None and gain.value is not None and abs(gain.value) < noise


def _asked(judge: LoadedJudge) -> tuple[CalibratedJudge, LLMJudge]:
    """Return the judge and its language model.

    UsageError if it is not a language model, JudgeError if it has no criteria.
    """
    if not isinstance(judge, CalibratedJudge):
        raise JudgeError("Only a judge with criteria (judge.yaml) can rate items again, not a fused judge or RepEval.")
    if not isinstance(judge.judge, LLMJudge):
        raise UsageError(f"The judge {judge.spec} gives an item the same score every time. Choose a language model.")
    return judge, judge.judge
