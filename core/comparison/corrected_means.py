"""Estimate the mean of each system from a golden set and verdicts on any number of items."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.comparison.given_verdicts import JudgeFiles, calibration_items
from core.data import load_items
from core.data.golden import repeated_texts
from core.data.judge_results import AnyVerdicts, ScoredRows, in_records, read_groups
from core.data.split import task_of
from core.errors import UsageError
from core.records import GoldenSet, IntArray, Item, Task
from core.stats.system_means import REPEATED, JudgedItems, SystemMeans, system_means

UNNAMED = "the whole set"
"""The one system where none is named."""

NO_SYSTEM = "verdicts on items whose system is not known"
SEEN = "items whose labels the judge was calibrated with"
PICKED = "labels on items that were picked, not drawn at random (their verdicts count)"
UNSCORED = "items without a score"
OFF_SCALE = "scores off the scale of the labels"

PAIRS = (
    "{name} holds pairs of texts, and the mean of a pair is no system's. Run `preferences GOLDEN VERDICTS --aspect "
    "{aspect}` instead: how strong each system is by how often it is preferred, with interval, for people and judge."
)
"""Why no means are estimated, and what to run."""


def judged_items(
    golden: GoldenSet,
    aspect: str,
    rows: ScoredRows,
    *,
    places: Mapping[str, Item] | None = None,
    seen: Collection[int] = (),
    picked: Collection[int] = (),
) -> tuple[JudgedItems, dict[str, int]]:
    """The items of `golden` with their labels on `aspect`, and the scores of `rows` on them and on any others.

    The system and source of an item stand in the golden set, else in the row, else in `places`, by item id; an item
    whose source nobody names is a source of its own.  `seen` are positions in the golden set whose labels chose or
    fitted the judge: left out altogether.  `picked` are positions whose labels are no random draw: those labels are.
    The dictionary says what is not, or not fully, counted → how many.
    """
    row_of = {item_id: row for row, item_id in enumerate(rows.item_ids)}
    labels, left = golden.labels(aspect).copy(), frozenset(seen)
    labels[list(picked)] = np.nan
    found = list[tuple[str, Item | None, int | None, float]]()  # id, item, row, label
    for k, item in enumerate(golden.items):
        row = row_of.pop(item.item_id, None)
        scored = row is not None and not np.isnan(rows.scores[row])
        if k not in left and (scored or not np.isnan(labels[k])):
            found.append((item.item_id, item, row, float(labels[k])))
    found += [(item_id, (places or {}).get(item_id), row, np.nan) for item_id, row in row_of.items()]

    def named(role: str, given: Sequence[str]) -> list[str]:
        """What the item says, else its row in `given`; "" where nobody does."""
        return [
            str(getattr(item, role, "")) or ("" if row is None or not given else given[row])
            for _, item, row, _ in found
        ]

    systems, sources = named("system_id", rows.systems), named("source_id", rows.sources)
    known = [k for k, system in enumerate(systems) if system] or list(range(len(found)))
    unplaced, found = len(found) - len(known), [found[k] for k in known]
    names = {name: code for code, name in enumerate(dict.fromkeys(systems[k] for k in known))}
    scores = np.array([np.nan if row is None else rows.scores[row] for _, _, row, _ in found], dtype=np.float64)
    by_source = [sources[k] or item_id for k, (item_id, *_) in zip(known, found, strict=True)]
    codes, n_repeated = _one_source_a_text(
        np.unique(by_source, return_inverse=True)[1].astype(np.intp), [item for _, item, *_ in found]
    )
    items = JudgedItems(
        np.array([label for *_, label in found], dtype=np.float64),
        scores,
        codes,
        np.array([names[systems[k]] for k in known], dtype=np.intp),
        tuple(name or UNNAMED for name in names),
        golden.aspects[aspect].scale,
    )
    counts = {
        SEEN: len(seen),
        PICKED: len(picked),
        NO_SYSTEM: unplaced,
        UNSCORED: int(np.isnan(scores).sum()),
        REPEATED: n_repeated,
    }
    return items, {why: n for why, n in counts.items() if n}


def _one_source_a_text(sources: IntArray, items: Sequence[Item | None]) -> tuple[IntArray, int]:
    """The codes (n,) with sources that share a text made one, and how many items repeat a text of another source."""
    pairs = np.array([(sources[first], sources[again]) for again, first in repeated_texts(enumerate(items))])
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
    """Corrected `means` of all systems on `aspect`; `left_out` maps what is not, or not fully, counted → how many."""

    aspect: str
    means: SystemMeans
    left_out: Mapping[str, int]
    n_calibration_left_out: int = 0
    n_calibration_kept: int = 0

    def as_json(self) -> dict[str, Any]:
        """The JSON of `estimate-means`."""
        return {"aspect": self.aspect, **self.means.as_json(), "left_out": dict(self.left_out)}


def estimate_means(
    golden: GoldenSet,
    verdicts: AnyVerdicts,
    aspect: str,
    *,
    items: GoldenSet | Path | str | None = None,
    judge_file: JudgeFiles = None,
    picked: Collection[str] = (),
    all_items: bool = False,
) -> EstimatedMeans:
    """Bias-corrected mean human score of every system on `aspect`, from few labels and many verdicts.

    `golden` holds the labels; `verdicts` name its items and any number of others, whose system and source stand in
    columns of the verdict file or in `items` (a file or a loaded set of items).  Items
    whose labels chose or fitted the scores are left out: the verdicts mark them, and `judge_file` knows their texts
    (`all_items` keeps them, which is optimistic).  `picked` are ids of items
    whose labels are no random draw (triage): those labels are left out.

    AspectError for an unknown aspect, GoldenError for a file that cannot be read, UsageError for pairs of texts and
    where no verdict can be placed.
    """
    task, picked = task_of(golden, aspect), frozenset(picked)
    if golden.kind == "pair":
        raise UsageError(PAIRS.format(name=golden.name, aspect=aspect))
    rows, n_off = _rows(verdicts, task)
    behind = calibration_items(golden, rows.calibration_items, judge_file, map_too=False)
    loaded = load_items(items) if isinstance(items, Path | str) else items
    judged, left_out = judged_items(
        golden,
        aspect,
        rows,
        places=None if loaded is None else {item.item_id: item for item in loaded.items},
        seen=() if all_items else behind.tolist(),
        picked=[k for k, item_id in enumerate(golden.item_ids) if item_id in picked],
    )
    if not judged.has_score.any():
        raise UsageError(
            f"None of the {len(rows.item_ids):,} verdicts can be used: no score on an item of {golden.name}, nor on "
            "one whose system is known. Name the system of each item in a column system_id, or in a file of items."
        )
    return EstimatedMeans(
        aspect,
        system_means(judged),
        left_out | ({OFF_SCALE: n_off} if n_off else {}),
        **{"n_calibration_kept" if all_items else "n_calibration_left_out": int(behind.size)},
    )


def _rows(verdicts: AnyVerdicts, task: Task) -> tuple[ScoredRows, int]:
    """Verdicts in columns, with the systems and sources beside them in a file; and how many are off the scale."""
    file = Path(verdicts) if isinstance(verdicts, (Path, str)) else None
    read = in_records(verdicts, task)
    ids = [verdict.item_id for verdict in read]
    groups = {} if file is None else read_groups(file)
    named = [groups.get(item_id, ("", "")) for item_id in ids] if groups else []
    n_off = sum(verdict.reason == "out of range" for verdict in read.unscored)
    marked = frozenset(verdict.item_id for verdict in read if verdict.calibration_item)
    systems, sources = [system for system, _ in named], [source for _, source in named]
    return ScoredRows(ids, read.values, systems, sources, marked), n_off
