"""Re-scoring edited criteria beside their parent: same judge, same items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from core.calibration.refine import standardised_gap
from core.kept import CriteriaAlignment
from core.progress import Stage
from core.projects.access import requires
from core.projects.calibration import calibration_asked
from core.projects.runs import RunWork, judge_run, require_judge, start_run
from core.records import Alignment, Criteria, FloatArray, GoldenSet, Interval, Measure, ScoreMatrix, Usage
from core.settings import Settings
from core.store.store import Store

if TYPE_CHECKING:
    from core.calibration.pool import AskedJudge
    from core.calibration.settings import CalibrationSettings
    from core.stats import Difference, LabelledItems

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
    `request.held_out`.  Returns the id of a durable run whose `run_view` has the outcome in `rescore`.  NotFoundError
    for unknown criteria or run; JobError when the run has no judge yet.
    """
    new = store.criteria.get(request.project_id, request.criteria_id)
    store.criteria.get(request.project_id, request.parent_id)
    request = replace(request, run_id=judge_run(store, request.run_id))
    require_judge(store, request.run_id)
    spec = store.runs.get(request.run_id).judge_spec
    return start_run(
        *(store, settings, "rescore", request),
        title=f"{request.aspect} · edit{f' by {new.author}' if new.author else ''} · {spec}",
        judge_spec=spec,
        opens="an edit was scored on them" if request.held_out else "",
    )


def run_rescore(work: RunWork) -> RescoreResult:
    """Score both, compare them on calibration and, where asked for, on held-out; enter both alignments."""
    request, golden = work.request(RescoreRequest), work.golden
    of = calibration_asked(work.store, request.run_id)
    task, split = of.task(golden), of.split(golden)
    new, parent = (
        work.store.criteria.get(request.project_id, one).criteria for one in (request.criteria_id, request.parent_id)
    )
    with work.asking(require_judge(work.store, request.run_id), task) as asked:
        pair = _Pair(asked, of.settings, new, parent, split.calibration)
        expected = 2 * (len(split.calibration) + (len(split.held_out) if request.held_out else 0))
        pair.publish("revisit", "scoring calibration items", 0, expected)
        scored = pair.score(split.calibration)
        held_out = None
        if request.held_out:
            pair.publish("held-out", "scoring held-out items", scored.calls, expected)
            held_out = pair.compare(pair.score(split.held_out), split.held_out)
        found = pair.compare(scored, split.calibration)
        pair.publish("done", "done", expected, expected)
    work.add_alignments(_alignments(work, request, found, held_out))
    labels, (ours, theirs) = golden.labels(task.aspect)[list(split.calibration)], pair.rows(scored)
    changed = changed_items(golden, split.calibration, labels, parent=theirs, new=ours, min_gap=of.settings.min_gap)
    return RescoreResult(
        criteria_id=new.criteria_id,
        parent_id=parent.criteria_id,
        parent=found.b,
        new=found.a,
        difference=PairedDifference.of(found),
        changed=changed[:MOST_CHANGED],
        parent_held_out=None if held_out is None else held_out.b,
        new_held_out=None if held_out is None else held_out.a,
        held_out_difference=None if held_out is None else PairedDifference.of(held_out),
        usage=pair.usage,
    )


def _alignments(
    work: RunWork, request: RescoreRequest, calibration: Difference, held_out: Difference | None
) -> list[CriteriaAlignment]:
    """Of both on each part of the split."""
    found = [
        work.alignment(request.criteria_id, "calibration", calibration.a),
        work.alignment(request.parent_id, "calibration", calibration.b),
    ]
    if held_out is not None:
        found.append(work.alignment(request.criteria_id, "held-out", held_out.a))
        found.append(work.alignment(request.parent_id, "held-out", held_out.b))
    return found


class _Pair:
    """Edited criteria and their parent, scored by one judge on the same items."""

    def __init__(
        self,
        asked: AskedJudge,
        settings: CalibrationSettings,
        new: Criteria,
        parent: Criteria,
        calibration: Sequence[int],
    ) -> None:
        self._asked, self._settings, self._criteria = asked, settings, (new, parent)
        self._level = settings.level or self._split_part(calibration).usual_level
        self.usage = Usage()

    def publish(self, phase: str, message: str, calls: int, expected: int) -> None:
        self._asked.progress.publish(Stage(phase, message, calls, expected, self.usage))

    def score(self, positions: Sequence[int]) -> ScoreMatrix:
        matrix = self._asked.score(self._criteria, positions)
        self.usage = self.usage + matrix.usage
        return matrix

    def rows(self, scored: ScoreMatrix) -> list[FloatArray]:
        """Scores of the new criteria, and of the parent."""
        return [scored.values[scored.criteria_ids.index(one.criteria_id)] for one in self._criteria]

    def compare(self, scored: ScoreMatrix, positions: Sequence[int]) -> Difference:
        from core.stats import paired_difference

        new, parent = self.rows(scored)
        measure, settings = Measure(self._settings.statistic, self._level), self._settings
        part = self._split_part(positions)
        return paired_difference(new, parent, part, measure, resamples=settings.resamples, seed=settings.seed)

    def _split_part(self, positions: Sequence[int]) -> LabelledItems:
        from core.stats import LabelledItems

        return LabelledItems.of(self._asked.golden, self._asked.task.aspect, positions)


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
