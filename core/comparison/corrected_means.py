"""Estimate the mean of each system from a golden set and verdicts on any number of items."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from core.comparison.given_verdicts import JudgeFiles, calibration_items
from core.data.golden import repeated_texts
from core.data.judge_results import AnyVerdicts, ScoredRows, as_verdicts, read_groups
from core.data.split import task_of
from core.errors import UsageError
from core.records import GoldenSet, IntArray, Item
from core.stats.system_means import REPEATED, JudgedItems, SystemMeans, system_means

UNNAMED = "the whole set"
"""Name of the only system if none is named."""

NO_SYSTEM = "verdicts on items with an unknown system"
SEEN = "items that the judge was calibrated on"
UNSCORED = "items without a score"
OFF_SCALE = "scores off the scale of the labels"

PAIRS = (
    "{name} contains pairs of texts, so there are no means per system. Run `preferences GOLDEN VERDICTS --aspect "
    "{aspect}` to rank systems by how often raters prefer them."
)


def judged_items(
    golden: GoldenSet, aspect: str, rows: ScoredRows, *, seen: Collection[int] = ()
) -> tuple[JudgedItems, dict[str, int]]:
    """Join the labels of `golden` on `aspect` with the scores in `rows`.

    Args:
        rows: Scores of items, which need not be in `golden`. The rows also provide the systems and sources that
            `golden` lacks. An item without a source is its own source.
        seen: Positions of items to leave out, because their labels were used to choose or fit the judge.

    Returns:
        The joined items.
        The number of items left out or only partly used, by reason.
    """
    row_of = {item_id: row for row, item_id in enumerate(rows.item_ids)}
    labels, left = golden.labels(aspect), frozenset(seen)
    found = list[tuple[Item, float, float]]()  # item, score, label

    def placed(item: Item, row: int | None, label: float) -> None:
        score = np.nan if row is None else rows.scores[row]
        system = item.system_id or ("" if row is None or not rows.systems else rows.systems[row])
        source = item.source_id or ("" if row is None or not rows.sources else rows.sources[row])
        found.append((replace(item, system_id=system, source_id=source or item.item_id), score, label))

    for k, item in enumerate(golden.items):
        row = row_of.pop(item.item_id, None)
        scored = row is not None and not np.isnan(rows.scores[row])
        if k not in left and (scored or not np.isnan(labels[k])):
            placed(item, row, float(labels[k]))
    for item_id, row in row_of.items():
        placed(Item(item_id, ""), row, np.nan)
    known = [each for each in found if each[0].system_id] or found
    items = [item for item, _, _ in known]
    scores = np.array([score for _, score, _ in known], dtype=np.float64)
    names = {name: code for code, name in enumerate(dict.fromkeys(item.system_id for item in items))}
    sources, n_repeated = _one_source_per_text(np.unique([i.source_id for i in items], return_inverse=True)[1], items)
    judged = JudgedItems(
        np.array([label for *_, label in known], dtype=np.float64),
        scores,
        sources,
        np.array([names[item.system_id] for item in items], dtype=np.intp),
        tuple(name or UNNAMED for name in names),
        golden.aspects[aspect].scale,
    )
    counts = {
        SEEN: len(seen),
        NO_SYSTEM: len(found) - len(known),
        UNSCORED: int(np.isnan(scores).sum()),
        REPEATED: n_repeated,
    }
    return judged, {why: n for why, n in counts.items() if n}


def _one_source_per_text(sources: IntArray, items: Sequence[Item]) -> tuple[IntArray, int]:
    """Join `sources` (n,) that share a text, and count the items with the same text as another source."""
    with_text = ((k, item) for k, item in enumerate(items) if item.target)
    pairs = np.array([(sources[first], sources[again]) for again, first in repeated_texts(with_text)])
    apart = pairs[:, 0] != pairs[:, 1] if pairs.size else np.zeros(0, dtype=np.bool_)
    if not apart.any():
        return sources, 0
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = int(sources.max()) + 1
    _, joined = connected_components(coo_matrix((np.ones(len(pairs)), tuple(pairs.T)), (n, n)), directed=False)
    return np.asarray(joined[sources], dtype=np.intp), int(apart.sum())


@dataclass(frozen=True)
class EstimatedMeans:
    """Corrected `means` of all systems on `aspect`.

    `left_out` counts the items that are left out or only partly used, by reason.
    """

    aspect: str
    means: SystemMeans
    left_out: Mapping[str, int]
    n_calibration_left_out: int = 0
    n_calibration_kept: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the JSON output of the `estimate-means` command."""
        kept = {"n_calibration_kept": self.n_calibration_kept} if self.n_calibration_kept else {}
        return {"aspect": self.aspect, **self.means.as_json(), "left_out": dict(self.left_out)} | kept


def estimate_means(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    judge_file: JudgeFiles = None,
    all_items: bool = False,
) -> EstimatedMeans:
    """Estimate the bias-corrected mean human score of each system, from few labels and many verdicts.

    Args:
        golden: Items with labels.
        verdicts: Verdicts on items of the golden set and any others. If this is a file, its columns
            name the system and source of each item.
        aspect: The aspect of the labels.
        judge_file: The judge's file. Its calibration items are left out, like those marked in `verdicts`.
        all_items: Keep the judge's calibration items. The estimate is then optimistic.

    Raises:
        AspectError: The golden set has no such aspect.
        GoldenError: A file cannot be read.
        UsageError: The items are pairs of texts, or no verdict can be used.
    """
    task = task_of(golden, aspect)
    if golden.kind == "pair":
        raise UsageError(PAIRS.format(name=golden.name, aspect=aspect))
    read = as_verdicts(verdicts, task)
    groups = read_groups(Path(verdicts)) if isinstance(verdicts, Path | str) else {}
    named = [groups.get(verdict.item_id, ("", "")) for verdict in read]
    marked = frozenset(verdict.item_id for verdict in read if verdict.calibration_item)
    ids, systems, sources = [one.item_id for one in read], [system for system, _ in named], [of for _, of in named]
    behind = calibration_items(golden, marked, judge_file, map_too=False)
    rows = ScoredRows(ids, read.values, systems, sources)
    judged, left_out = judged_items(golden, aspect, rows, seen=() if all_items else behind.tolist())
    if not judged.has_score.any():
        raise UsageError(
            f"None of the {len(ids):,} verdicts can be used. Each verdict needs a score, and either an item in "
            f"{golden.name} or a system in the system_id column."
        )
    n_off = sum(verdict.reason == "out of range" for verdict in read.unscored)
    return EstimatedMeans(
        aspect,
        system_means(judged),
        left_out | ({OFF_SCALE: n_off} if n_off else {}),
        **{"n_calibration_kept" if all_items else "n_calibration_left_out": int(behind.size)},
    )
