"""How good each system is, from a golden set and verdicts on any number of items: `core.estimate_means`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.comparison.judged import NextLabels, judged_items, next_labels
from core.comparison.means_finding import means_finding
from core.data import load_items
from core.data.scale import off_scale
from core.data.split import task_of
from core.data.verdict_files.scored import ScoredRows, read_groups, read_scored
from core.errors import UsageError
from core.records import GoldenSet, Item, Task
from core.stats.label_worth import USUAL_LABELS, LabelPlan, plan_labels
from core.stats.mean_records import SystemMeans
from core.stats.system_means import system_means

if TYPE_CHECKING:
    from core.api.measures import AnyVerdicts, JudgeFiles

OFF_SCALE = "scores off the scale of the labels"

PAIRS = (
    "{name} holds pairs of texts, and the mean of a pair is no system's. Run `preferences GOLDEN VERDICTS --aspect "
    "{aspect}` instead: how strong each system is by how often it is preferred, with interval, for people and judge."
)
"""Why no means are estimated, and what to run."""


@dataclass(frozen=True)
class EstimatedMeans:
    """Corrected `means` of all systems on `aspect`; `plan` says what so many labels would give, `next` which to give.

    `plan` is None where labels are there and nobody asked; `next` where every judged item has a label.  `left_out` maps
    what is not, or not fully, counted → how many.
    """

    aspect: str
    means: SystemMeans
    plan: LabelPlan | None
    next: NextLabels | None
    left_out: Mapping[str, int]
    n_calibration_left_out: int = 0
    n_calibration_kept: int = 0

    @property
    def finding(self) -> str:
        """The result in a sentence."""
        return means_finding(self.means, self.aspect).headline

    def as_json(self) -> dict[str, Any]:
        """The JSON of `estimate-means`."""
        return {
            "aspect": self.aspect,
            "finding": self.finding,
            **self.means.as_json(),
            "next": None if self.next is None else self.next.as_json(),
            "plan": None if self.plan is None else self.plan.as_json(),
            "left_out": dict(self.left_out),
        }


def estimate_means(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    items: GoldenSet | Path | str | None = None,
    judge_file: JudgeFiles = None,
    picked: Collection[str] = (),
    planned: int | None = None,
    seed: int = 0,
    all_items: bool = False,
) -> EstimatedMeans:
    """Bias-corrected mean human score of every system on `aspect`, from few labels and many verdicts.

    `golden` holds the labels; `verdicts` name its items and any number of others, whose system and source stand in
    columns of the verdict file or in `items` (a file or a loaded set of items).  Items
    whose labels chose or fitted the scores are left out: the verdicts mark them, and `judge_file` knows their texts
    (`all_items` keeps them, which is optimistic).  `picked` are ids of items
    whose labels are no random draw (triage): those labels are left out.  `planned` asks what so many labels a system
    would give; it is told anyway while no system has enough.  `seed` draws the items to label next.

    AspectError for an unknown aspect, GoldenError for a file that cannot be read, UsageError for pairs of texts and
    where no verdict can be placed.
    """
    from core.api.measures import calibration_items

    task, picked = task_of(golden, aspect), frozenset(picked)
    if golden.kind == "pair":
        raise UsageError(PAIRS.format(name=golden.name, aspect=aspect))
    rows, n_off = _rows(verdicts, aspect, task)
    behind = calibration_items(golden, rows.calibration_items, judge_file, map_too=False)
    judged = judged_items(
        golden,
        aspect,
        rows,
        places=_places(items),
        seen=() if all_items else behind.tolist(),
        picked=[k for k, item_id in enumerate(golden.item_ids) if item_id in picked],
    )
    if not judged.items.has_score.any():
        raise UsageError(
            f"None of the {len(rows.item_ids):,} verdicts can be used: no score on an item of {golden.name}, nor on "
            "one whose system is known. Name the system of each item in a column system_id, or in a file of items."
        )
    means = system_means(judged.items)
    asked = planned is not None or not means.corrected
    return EstimatedMeans(
        aspect,
        means,
        plan_labels(means, planned or USUAL_LABELS) if asked else None,
        next_labels(judged, means, seed=seed),
        {**judged.left_out, **({OFF_SCALE: n_off} if n_off else {})},
        **{"n_calibration_kept" if all_items else "n_calibration_left_out": int(behind.size)},
    )


def _rows(verdicts: AnyVerdicts, aspect: str, task: Task) -> tuple[ScoredRows, int]:
    """Verdicts in columns, with the systems and sources beside them in a file; and how many are off the scale."""
    file = Path(verdicts) if isinstance(verdicts, (Path, str)) else None
    if file is not None and (rows := read_scored(file, aspect)) is not None:
        off = off_scale(rows.scores, task.scale).mask
        return replace(rows, scores=np.where(off, np.nan, rows.scores)), int(off.sum())
    from core.api.measures import in_records

    read = in_records(verdicts, task)
    ids = [verdict.item_id for verdict in read]
    groups = {} if file is None else read_groups(file)
    named = [groups.get(item_id, ("", "")) for item_id in ids] if groups else []
    n_off = sum(verdict.reason == "out of range" for verdict in read.unscored)
    marked = frozenset(verdict.item_id for verdict in read if verdict.calibration_item)
    systems, sources = [system for system, _ in named], [source for _, source in named]
    return ScoredRows(ids, read.values, systems, sources, marked), n_off


def _places(items: GoldenSet | Path | str | None) -> Mapping[str, Item] | None:
    if items is None:
        return None
    loaded = items if isinstance(items, GoldenSet) else load_items(items)
    return {item.item_id: item for item in loaded.items}
