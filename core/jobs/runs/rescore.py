"""Re-scoring: edited criteria beside their parent, same judge, same items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.calibration.asking import AskedJudge
from core.calibration.board import Side
from core.calibration.refine import standardised_gap
from core.calibration.settings import CalibrationSettings
from core.calibration.start import choose_level
from core.jobs.runs.work import RunWork
from core.progress import Stage
from core.projects.convert import calibration_asked
from core.projects.views import MOST_CHANGED, ChangedItem, DifferenceView, RescoreRequest, RescoreView
from core.public import split_for, task_of
from core.records import Criteria, FloatArray, GoldenSet, Level, ScoreMatrix, Usage
from core.stats import Difference, paired_difference
from core.store.criteria import Stood


def run_rescore(work: RunWork) -> RescoreView:
    """Score both, compare them on calibration and, where asked for, on held-out; enter how both stood."""
    request = work.request(RescoreRequest)
    of = calibration_asked(work.store, request.run_id)
    task = task_of(work.golden, of.aspect, of.definition, of.scale)
    split = split_for(work.golden, task.aspect, of.settings)
    new, parent = (
        work.store.criteria.get(request.project_id, one).criteria for one in (request.criteria_id, request.parent_id)
    )
    with work.asking(work.judge_state(request.run_id), task) as asked:
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
    result = RescoreView(
        criteria_id=new.criteria_id,
        parent_id=parent.criteria_id,
        parent=found.b,
        new=found.a,
        difference=_difference_view(found),
        changed=pair.changed(scored, split.calibration),
        parent_held_out=None if held_out is None else held_out.b,
        new_held_out=None if held_out is None else held_out.a,
        held_out_difference=None if held_out is None else _difference_view(held_out),
        usage=pair.usage,
    )
    work.add_standings(_standings(result))
    return result


def _standings(result: RescoreView) -> list[Stood]:
    """How both stood on each part of the split."""
    stood = [Stood(result.criteria_id, "calibration", "", result.new)]
    stood.append(Stood(result.parent_id, "calibration", "", result.parent))
    if result.new_held_out is not None and result.parent_held_out is not None:
        stood.append(Stood(result.criteria_id, "held-out", "", result.new_held_out))
        stood.append(Stood(result.parent_id, "held-out", "", result.parent_held_out))
    return stood


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
        self._level: Level = settings.level or choose_level(self._split_part(calibration))
        self.usage = Usage()

    def publish(self, phase: str, message: str, calls: int, expected: int) -> None:
        self._asked.progress.publish(Stage(phase, message, calls, expected, self.usage))

    def score(self, positions: Sequence[int]) -> ScoreMatrix:
        matrix = self._asked.score(self._criteria, positions)
        self.usage = self.usage + matrix.usage
        return matrix

    def compare(self, scored: ScoreMatrix, positions: Sequence[int]) -> Difference:
        part = self._split_part(positions)
        new, parent = _rows(scored, *self._criteria)
        return paired_difference(
            new,
            parent,
            part.labels,
            part.sources,
            part.systems,
            statistic=self._settings.statistic,
            level=self._level,
            generator=np.random.default_rng(self._settings.seed),
            resamples=self._settings.resamples,
        )

    def changed(self, scored: ScoreMatrix, positions: Sequence[int]) -> tuple[ChangedItem, ...]:
        new, parent = _rows(scored, *self._criteria)
        labels = self._split_part(positions).labels
        return changed_items(self._asked.golden, positions, labels, parent=parent, new=new, settings=self._settings)

    def _split_part(self, positions: Sequence[int]) -> Side:
        return Side.of(self._asked.golden, self._asked.task.aspect, positions)


def changed_items(
    golden: GoldenSet,
    positions: Sequence[int],
    labels: FloatArray,
    *,
    parent: FloatArray,
    new: FloatArray,
    settings: CalibrationSettings,
) -> tuple[ChangedItem, ...]:
    """Items that crossed |standardised gap| = `settings.min_gap`, at most `MOST_CHANGED`.

    Those whose gap moved most come first.  `labels`, `parent` and `new` are (n,), aligned with `positions`; items that
    either left unscored are no part.
    """
    before, after = standardised_gap(parent, labels), standardised_gap(new, labels)
    was, now = np.abs(before) >= settings.min_gap, np.abs(after) >= settings.min_gap
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
        for k in crossed[np.argsort(-moved, kind="stable")][:MOST_CHANGED]
    )


def _rows(scored: ScoreMatrix, *criteria: Criteria) -> tuple[FloatArray, ...]:
    return tuple(scored.values[scored.criteria_ids.index(one.criteria_id)] for one in criteria)


def _difference_view(found: Difference) -> DifferenceView:
    return DifferenceView(found.value, found.interval, found.p, found.n)
