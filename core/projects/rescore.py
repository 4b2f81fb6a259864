"""Re-scoring edited criteria beside their parent: same judge, same items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from core.calibration.proposals import standardised_gap
from core.progress import Stage
from core.project_records import Side
from core.projects.calibration import calibration_asked, sides_of
from core.projects.roles import requires
from core.projects.runs import EDIT_SCORED, RunWork, judge_run, require_judge, start_run
from core.records import Alignment, FloatArray, GoldenSet, Interval, Measure, Usage
from core.settings import Settings
from core.store.store import Store
from core.wording import judge_words

if TYPE_CHECKING:
    from core.stats import Difference


MOST_CHANGED = 200
"""Items that crossed the line and are kept of a re-scoring."""


@dataclass(frozen=True, slots=True)
class RescoreRequest:
    """Score edited criteria beside their parent, with the judge of `run_id` on that run's calibration items."""

    project_id: str
    golden_id: str
    aspect: str
    criteria_id: str
    parent_id: str
    run_id: str
    held_out: bool = False


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Alignment of the new criteria minus the parent's on the same items, paired over sources.

    `p` is two-sided; None (like `value`) where a side is undefined.
    """

    value: float | None
    interval: Interval | None
    p: float | None
    n: int

    @classmethod
    def of(cls, difference: Difference) -> PairedDifference:
        return cls(difference.value, difference.interval, difference.p, difference.n)


@dataclass(frozen=True, slots=True)
class ChangedItem:
    """An item that crossed the line: `now` "mended" was misaligned under the parent, "broken" is misaligned now.

    Scores and label on the task's scale; gaps are standardised score minus standardised label.
    """

    item_id: str
    label: float
    parent_score: float
    new_score: float
    parent_gap: float
    new_gap: float
    now: Literal["mended", "broken"]


@dataclass(frozen=True, slots=True)
class RescoreResult:
    """What a re-scoring found.  `changed` is sorted by how far the gap moved, furthest first, at most `MOST_CHANGED`.

    The held-out alignments are None unless they were asked for.
    """

    criteria_id: str
    parent_id: str
    parent: Alignment
    new: Alignment
    difference: PairedDifference
    changed: tuple[ChangedItem, ...]
    parent_held_out: Alignment | None = None
    new_held_out: Alignment | None = None
    held_out_difference: PairedDifference | None = None
    usage: Usage = field(default_factory=Usage)


@requires("reviewer", "re-scored an edit")
def start_rescore(store: Store, settings: Settings, request: RescoreRequest) -> str:
    """Score the edited criteria and their parent with the judge of `request.run_id`, on that run's calibration items.

    A re-scoring or a round has the judge of the calibration it began from.  Held-out items are left alone unless
    `request.held_out`.  NotFoundError for unknown criteria or run; JobError when the run has no judge yet.
    """
    new = store.criteria.get(request.project_id, request.criteria_id)
    store.criteria.get(request.project_id, request.parent_id)
    request = replace(request, run_id=judge_run(store, request.run_id))
    require_judge(store, request.run_id)
    spec = store.runs.get(request.run_id).judge_spec
    return start_run(
        *(store, settings, "rescore", request),
        title=f"{request.aspect} · edit{f' by {new.author}' if new.author else ''} · {judge_words(spec)}",
        judge_spec=spec,
        opens=EDIT_SCORED if request.held_out else "",
    )


def run_rescore(work: RunWork) -> RescoreResult:
    """Score both, compare them on calibration and, where asked for, on held-out; enter their alignments."""
    from core.stats import LabelledItems, paired_difference

    request, golden = work.request(RescoreRequest), work.golden
    of = calibration_asked(work.store, request.run_id)
    task, split, chosen = of.task(golden), sides_of(work.store, request.run_id, golden), of.settings
    pair = [
        work.store.criteria.get(request.project_id, criteria_id).criteria
        for criteria_id in (request.criteria_id, request.parent_id)
    ]
    labels = LabelledItems.of(golden, task.aspect, split.calibration)
    measure = Measure(chosen.statistic, chosen.level or labels.usual_level)
    sides: dict[Side, Sequence[int]] = {"calibration": split.calibration}
    if request.held_out:
        sides["held-out"] = split.held_out
    expected = 2 * sum(map(len, sides.values()))
    calls, usage = 0, Usage()
    changed: tuple[ChangedItem, ...] = ()
    differences: dict[Side, Difference] = {}
    with work.asking(require_judge(work.store, request.run_id), task) as judge:
        for side, positions in sides.items():
            phase = "revisit" if side == "calibration" else side
            work.progress.publish(Stage(phase, f"scoring {side} items", calls, expected, usage))
            scored = judge.score(pair, positions)
            calls, usage = calls + scored.calls, usage + scored.usage
            new, parent = (scored.values[scored.criteria_ids.index(criteria.criteria_id)] for criteria in pair)
            items = LabelledItems.of(golden, task.aspect, positions)
            differences[side] = paired_difference(
                new, parent, items, measure, resamples=chosen.resamples, seed=chosen.seed
            )
            if side == "calibration":
                changed = changed_items(golden, positions, items.labels, parent=parent, new=new, min_gap=chosen.min_gap)
        work.progress.publish(Stage("done", "done", expected, expected, usage))
    work.add_alignments(
        [
            work.alignment(criteria_id, side, alignment)
            for side, difference in differences.items()
            for criteria_id, alignment in ((request.criteria_id, difference.a), (request.parent_id, difference.b))
        ]
    )
    on_calibration, held_out = differences["calibration"], differences.get("held-out")
    return RescoreResult(
        criteria_id=request.criteria_id,
        parent_id=request.parent_id,
        parent=on_calibration.b,
        new=on_calibration.a,
        difference=PairedDifference.of(on_calibration),
        changed=changed[:MOST_CHANGED],
        parent_held_out=None if held_out is None else held_out.b,
        new_held_out=None if held_out is None else held_out.a,
        held_out_difference=None if held_out is None else PairedDifference.of(held_out),
        usage=usage,
    )


def changed_items(
    golden: GoldenSet,
    positions: Sequence[int],
    labels: FloatArray,
    *,
    parent: FloatArray,
    new: FloatArray,
    min_gap: float,
) -> tuple[ChangedItem, ...]:
    """Items that crossed |standardised gap| = `min_gap`; those whose gap moved most come first.

    `labels`, `parent` and `new` are (n,), of the items at `positions`; items that either left unscored are no part.
    """
    before, after = standardised_gap(parent, labels), standardised_gap(new, labels)
    was, now = np.abs(before) >= min_gap, np.abs(after) >= min_gap
    crossed = np.flatnonzero((was != now) & ~np.isnan(before) & ~np.isnan(after))
    moved = np.abs(np.abs(before[crossed]) - np.abs(after[crossed]))
    return tuple(
        ChangedItem(
            item_id=golden.items[positions[k]].item_id,
            label=float(labels[k]),
            parent_score=float(parent[k]),
            new_score=float(new[k]),
            parent_gap=float(before[k]),
            new_gap=float(after[k]),
            now="broken" if now[k] else "mended",
        )
        for k in crossed[np.argsort(-moved, kind="stable")]
    )
