"""What the report says of the systems: each one's held-out items, corrected means, strengths where texts are pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.comparison.corrected_means import MoreVerdicts, judged_items
from core.comparison.decisions import Preferences, preferred
from core.data.verdict_imports import ScoredRows
from core.records import Alignment, Measure
from core.report.measured import ReportedJudge
from core.stats import LabelledItems, align
from core.stats.system_means import SystemMeans, system_means

_MOST_SYSTEMS, _RESAMPLES = 60, 1_000


@dataclass(frozen=True, slots=True)
class SystemFact:
    """One system's held-out items: alignment within it at dataset level, and the means of people and judge."""

    name: str
    alignment: Alignment
    mean_label: float
    mean_score: float


def by_system(judged: ReportedJudge) -> tuple[SystemFact, ...]:
    """Each named system's held-out items, the system that people like best first.

    Empty with fewer than two systems, and for pairs of texts, each of which is of two.
    """
    golden, at = judged.golden, judged.held_out
    if golden.kind == "pair":
        return ()
    names = np.array([golden.items[k].system_id for k in at])
    known = sorted({str(name) for name in names} - {""})
    if len(known) < 2:
        return ()
    facts = []
    for name in known:
        own = at[names == name]
        measured = align(
            judged.values[own],
            LabelledItems.of(golden, judged.aspect, own),
            Measure(judged.calibration.held_out.statistic, "dataset"),
            resamples=_RESAMPLES,
            seed=judged.calibration.settings.seed,
        )
        facts.append(SystemFact(name, measured, float(judged.labels[own].mean()), float(judged.values[own].mean())))
    return tuple(sorted(facts, key=lambda fact: -fact.mean_label)[:_MOST_SYSTEMS])


def means_by_system(
    judged: ReportedJudge, more: MoreVerdicts | None = None, *, seen: Sequence[int], picked: Sequence[int] = ()
) -> SystemMeans:
    """The corrected mean of every system, of items whose labels the judge was not calibrated with, and of any more.

    `seen` are the positions of those it was calibrated with, `picked` those whose labels are no random draw.  Of pairs
    of texts no system has a mean (`strengths_of`).
    """
    if judged.golden.kind == "pair":
        return SystemMeans(
            (), (), None, None, None, 0, 0, mapped=False, scale=judged.golden.aspects[judged.aspect].scale
        )
    own = ScoredRows(judged.golden.item_ids, judged.values)
    rows = own if more is None else more.beside(own)
    return system_means(judged_items(judged.golden, judged.aspect, rows, seen=seen, picked=picked).items)


def strengths_of(judged: ReportedJudge) -> Preferences | None:
    """How strong each system is by people and by the judge; None where the items are no pairs of texts."""
    if judged.golden.kind != "pair":
        return None
    return preferred(judged.golden, judged.aspect, judged.values, seen=judged.calibration.split.calibration)
