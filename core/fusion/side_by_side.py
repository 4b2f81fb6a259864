"""Every way to fuse the same parts, on the same items, beside the parts and other judges: one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.data.labels_needed import too_few_to_stack
from core.errors import UsageError
from core.fusion.estimators import METHODS, FusionMethod
from core.fusion.stack import Agreement, Fusion, StackSettings, fuse, holm_corrected, unseen_split
from core.records import Alignment, GoldenSet, IntArray, JudgeScores

SEEN = "its calibration saw labels of the items reported on"
SHARE_SCORED = 0.9
"""A judge beside the fusions that scored fewer of the items would be measured on other items than they are."""


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
    """Fuse `parts` by every method, fitted and reported on the same items.

    UsageError when no method can use two parts, AspectError when too few items are unseen; see `fuse`.
    """
    split = unseen_split(golden, aspect, parts, settings)
    fusions: dict[FusionMethod, Fusion] = {}
    failed: dict[FusionMethod, str] = {}
    for method in METHODS:
        if method != "average" and (why := too_few_to_stack(split.fit.size)):
            failed[method] = f"{why}."
            continue
        try:
            fusions[method] = fuse(golden, aspect, parts, replace(settings, method=method), split)
        except UsageError as error:
            failed[method] = str(error)
    if not fusions:
        raise UsageError(next(iter(failed.values())))
    tests = holm_corrected([fusion.against_best for fusion in fusions.values()])
    corrected = {m: replace(f, against_best=test) for (m, f), test in zip(fusions.items(), tests, strict=True)}
    return FusionTable(corrected, failed, *_beside(Agreement(golden, aspect, settings), beside, split.report))


def _beside(
    agreement: Agreement, judges: Sequence[JudgeScores], report: IntArray
) -> tuple[dict[str, Alignment], dict[str, str]]:
    """Alignments of the judges on the report items by name, and why others have none."""
    refused = {}
    for judge in judges:
        if set(judge.seen).intersection(report.tolist()):
            refused[judge.name] = SEEN
        elif (n := int((~np.isnan(judge.values[report])).sum())) < SHARE_SCORED * report.size:
            refused[judge.name] = f"it scored only {n} of these {report.size} items"
    clean = [judge for judge in judges if judge.name not in refused]
    if not clean:
        return {}, refused
    alignments = agreement.align(np.array([judge.upward for judge in clean]), report)
    return {judge.name: alignment for judge, alignment in zip(clean, alignments, strict=True)}, refused
