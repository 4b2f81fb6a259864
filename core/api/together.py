"""What asking several aspects in one call changes: the judges measured so beside each of them asked alone.

On labelled items of a golden set all aspects are asked together, and each judge alone on the items that it was not
calibrated on.  There the alignments are compared, paired on the same items.  The items that a judge was calibrated on
fit its map to the human scale and its intervals anew, on scores asked together, as a calibration fits them on scores
asked alone: so what is fitted and what is reported share no item.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from core.api.loading import load_judges
from core.api.measures import calibration_items
from core.calibration.candidate_pool import ensemble_scores
from core.data.split import task_of
from core.errors import UsageError
from core.export.aspect_judges import AspectJudges, MeasuredTogether
from core.export.calibrated_judge import CalibratedJudge
from core.providers.base import ReplyStore
from core.records import FloatArray, GoldenSet, IntArray, Measure
from core.stats import IsotonicMap, LabelledItems, fit_isotonic, holm, paired_difference
from core.stats.conformal import JudgedItems, VerdictIntervals, criteria_spread, fit_intervals

NO_CALIBRATION = "{golden} has no item that the judge was calibrated on, and the map is fitted on those"


def check_together(
    golden: GoldenSet,
    judge_files: Sequence[Path | str],
    *,
    judge: str | None = None,
    replies: ReplyStore | None = None,
    accept_edited: bool = False,
    bootstrap: int = 1000,
    seed: int = 0,
) -> AspectJudges:
    """The judges of `judge_files` asked together and measured so: `.measured` holds, by aspect, what that changes.

    `golden` has labels on every aspect; statistic and level are those of each file's held-out alignment.  Verdicts of
    what comes back have a map to the human scale and intervals again where there were items to fit them on.  Options
    as `load_judges`; `bootstrap` and `seed` as `core.compare`.  AspectError for an aspect without labels, UsageError
    for one on another scale, or where nothing is left to measure on.
    """
    told: dict[str, Any] = {"judge": judge, "replies": replies, "accept_edited": accept_edited}
    together = load_judges(judge_files, together=True, **told)
    try:
        seen = [calibration_items(golden, (), file) for file in judge_files]
        parts = {each.task.aspect: _parts(golden, each, own) for each, own in zip(together.judges, seen, strict=True)}
        with closing(load_judges(judge_files, **told)) as alone:
            return _measured(golden, together, alone, parts, resamples=bootstrap, seed=seed)
    except BaseException:
        together.close()
        raise


def _parts(golden: GoldenSet, judge: CalibratedJudge, seen: IntArray) -> tuple[IntArray, IntArray]:
    """Positions of the labelled items to fit on, and of those to measure on.  UsageError without any of the latter."""
    aspect, scale = judge.task.aspect, task_of(golden, judge.task.aspect).scale
    if (scale.low, scale.high) != (judge.task.scale.low, judge.task.scale.high):
        raise UsageError(
            f"{golden.name}: labels of {aspect!r} go from {scale}, and its judge was calibrated on {judge.task.scale}."
        )
    labelled = np.flatnonzero(~np.isnan(golden.labels(aspect)))
    fresh = np.setdiff1d(labelled, seen)
    if not fresh.size:
        raise UsageError(
            f"{golden.name}: the judge of {aspect!r} was calibrated on every item that has a label, so nothing is left "
            "to measure it on. Give the whole golden set, or a newer one."
        )
    return np.intersect1d(labelled, seen), fresh


def _measured(
    golden: GoldenSet,
    together: AspectJudges,
    alone: AspectJudges,
    parts: Mapping[str, tuple[IntArray, IntArray]],
    *,
    resamples: int,
    seed: int,
) -> AspectJudges:
    asked = np.unique(np.concatenate([np.concatenate(both) for both in parts.values()]))
    members = together.members([golden.items[int(k)] for k in asked])
    fitted: dict[str, tuple[IsotonicMap | None, VerdictIntervals]] = {}
    found: dict[str, MeasuredTogether] = {}
    for joint, single in zip(together.judges, alone.judges, strict=True):
        aspect = joint.task.aspect
        fit_on, fresh = parts[aspect]
        own = np.full((members[aspect].shape[0], len(golden.items)), np.nan)
        own[:, asked] = members[aspect]
        score_map, intervals, why = _maps(golden, joint, own, fit_on)
        fitted[aspect] = (score_map, intervals)
        scores = single.score([golden.items[int(k)] for k in fresh], of_more=True).values
        items, entry = LabelledItems.of(golden, aspect, fresh), joint.card["alignment"]["held_out"]
        measure = Measure(entry["statistic"], entry["level"])
        joined = ensemble_scores(own)[fresh]
        difference = paired_difference(joined, scores, items, measure, resamples=resamples, seed=seed)
        found[aspect] = MeasuredTogether(golden.name, measure, difference, None, len(parts), fit_on.size, why)
    return together.with_maps(fitted, corrected(found), alone.spent)


def _maps(
    golden: GoldenSet, judge: CalibratedJudge, members: FloatArray, fit_on: IntArray
) -> tuple[IsotonicMap | None, VerdictIntervals, str]:
    """Map and intervals from `members` (n_criteria, n_items) on the items to fit on, and why there is no map."""
    aspect, scale = judge.task.aspect, judge.task.scale
    if not fit_on.size:
        why = NO_CALIBRATION.format(golden=golden.name)
        return None, VerdictIntervals(0, 0, reason=why), why
    own, labels = members[:, fit_on], golden.labels(aspect)[fit_on]
    texts = tuple(golden.items[int(k)] for k in fit_on)
    judged = JudgedItems(texts, ensemble_scores(own), criteria_spread(own), labels, golden.source_codes[fit_on])
    fit = fit_isotonic(judged.scores, labels, scale)
    return fit.map, fit_intervals(judged, scale), "" if fit.map is not None else fit.reason


def corrected(found: Mapping[str, MeasuredTogether]) -> dict[str, MeasuredTogether]:
    """With the p of each aspect corrected for the number of aspects."""
    p = holm([np.nan if each.difference.p is None else each.difference.p for each in found.values()]).tolist()
    return {
        aspect: replace(each, p_corrected=None if np.isnan(value) else value)
        for (aspect, each), value in zip(found.items(), p, strict=True)
    }
