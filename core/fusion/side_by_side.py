"""Every way to fuse the same parts, on the same items, beside the parts and other judges: one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.data.labels_needed import too_few_to_stack
from core.errors import UsageError
from core.fusion.estimators import METHODS, FusionMethod
from core.fusion.stack import Fusion, StackSettings, fuse, unseen_sides
from core.records import Alignment, GoldenSet, JudgeScores
from core.stats import align_with_intervals, holm

SEEN = "its calibration saw labels of the items told on"
SHARE_SCORED = 0.9
"""A judge beside the fusions that scored fewer of the items would stand on other items than they do."""


@dataclass(frozen=True)
class FusionTable:
    """Fusions of the same parts by method, the reason where a method gave none, and other judges on the same items.

    The tests of the fusions against the best part share one Holm correction.  `beside` are judges that took no part,
    measured on the report items; `not_beside` says of the others why they have no honest number there.
    """

    fusions: Mapping[FusionMethod, Fusion]
    failed: Mapping[FusionMethod, str]
    beside: Mapping[str, Alignment]
    not_beside: Mapping[str, str]


def fuse_all(
    golden: GoldenSet,
    aspect: str,
    parts: Sequence[JudgeScores],
    settings: StackSettings,
    beside: Sequence[JudgeScores] = (),
) -> FusionTable:
    """Fuse `parts` by every method on the same two sides.

    UsageError when no method can use two parts, AspectError when too few items are unseen; see `fuse`.
    """
    sides = unseen_sides(golden, aspect, parts, settings)
    found: dict[FusionMethod, Fusion] = {}
    failed: dict[FusionMethod, str] = {}
    for method in METHODS:
        if method != "average" and (why := too_few_to_stack(sides.fit.size)):
            failed[method] = f"{why}."
            continue
        try:
            found[method] = fuse(golden, aspect, parts, replace(settings, method=method), sides)
        except UsageError as error:
            failed[method] = str(error)
    if not found:
        raise UsageError(next(iter(failed.values())))
    told, refused = _beside(golden, aspect, beside, next(iter(found.values())).report, settings)
    return FusionTable(_corrected(found), failed, told, refused)


def _corrected(found: Mapping[FusionMethod, Fusion]) -> dict[FusionMethod, Fusion]:
    tests = [one.against_best for one in found.values()]
    corrected = holm([np.nan if test is None or test.p is None else test.p for test in tests])
    return {
        method: one
        if one.against_best is None
        else replace(one, against_best=replace(one.against_best, p=None if np.isnan(p) else float(p)))
        for (method, one), p in zip(found.items(), corrected, strict=True)
    }


def _beside(
    golden: GoldenSet, aspect: str, judges: Sequence[JudgeScores], report: Sequence[int], settings: StackSettings
) -> tuple[dict[str, Alignment], dict[str, str]]:
    at = np.asarray(report, dtype=np.intp)
    refused = {}
    for one in judges:
        if set(one.seen).intersection(report):
            refused[one.name] = SEEN
        elif (n := int((~np.isnan(one.values[at])).sum())) < SHARE_SCORED * at.size:
            refused[one.name] = f"it scored only {n} of these {at.size} items"
    clean = [one for one in judges if one.name not in refused]
    if not clean:
        return {}, refused
    told = align_with_intervals(
        np.array([one.upward for one in clean])[:, at],
        golden.labels(aspect)[at],
        golden.source_codes[at],
        golden.system_codes[at],
        statistic=settings.statistic,
        level=settings.level,
        generator=np.random.default_rng([settings.seed, 1]),
        resamples=settings.resamples,
    )
    return {one.name: alignment for one, alignment in zip(clean, told, strict=True)}, refused
