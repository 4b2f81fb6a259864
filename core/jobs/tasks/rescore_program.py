"""Re-scoring as a durable run: edited criteria beside their parent, same judge, same items."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from core.calibration.board import Side
from core.calibration.refine import standardised_gap
from core.calibration.settings import CalibrationSettings
from core.calibration.start import choose_level
from core.calibration.steps import ScoreStep, Standing
from core.errors import JobError
from core.jobs.documents import JUDGE, RESULT
from core.jobs.tasks.convert import calibration_asked, request_of
from core.jobs.tasks.programs import JudgeProgram, JudgeState
from core.jobs.views import MOST_CHANGED, ChangedItem, DifferenceView, RescoreRequest, RescoreView
from core.public import split_for, task_of
from core.records import Criteria, FloatArray, GoldenSet, Level, ScoreMatrix, Usage
from core.settings import Settings
from core.stats import Difference, paired_difference
from core.store.codec import pack, unpack
from core.store.criteria import Stood
from core.store.rows import RunRow
from core.store.store import Store


class RescoreProgram(JudgeProgram):
    def __init__(self, store: Store, settings: Settings, run: RunRow) -> None:
        request = request_of(run)
        assert isinstance(request, RescoreRequest)
        asked = calibration_asked(store, request.run_id)
        golden = store.goldens.load(request.golden_id)
        super().__init__(store, settings, run, golden, task_of(golden, asked.aspect, asked.definition, asked.scale))
        self._request, self._chosen = request, asked.settings
        self._new = store.criteria.get(request.project_id, request.criteria_id).criteria
        self._parent = store.criteria.get(request.project_id, request.parent_id).criteria

    def steps(self) -> Generator[Any, Any, RescoreView]:
        judge = self.store.results.document(self._request.run_id, JUDGE)
        if judge is None:
            raise JobError(f"Run {self._request.run_id} has no judge to score with.")
        self.restore(unpack(JudgeState, judge).state)
        split = split_for(self.golden, self.task.aspect, self._chosen)
        pair = (self._new, self._parent)
        expected = 2 * (len(split.calibration) + (len(split.held_out) if self._request.held_out else 0))
        yield _standing("revisit", "scoring calibration items", 0, expected, Usage())
        scored: ScoreMatrix = yield ScoreStep(pair, split.calibration)
        usage, held_out = scored.usage, None
        if self._request.held_out:
            yield _standing("held-out", "scoring held-out items", scored.calls, expected, usage)
            reported: ScoreMatrix = yield ScoreStep(pair, split.held_out)
            usage = usage + reported.usage
            held_out = self._compare(reported, split.held_out, self._level(split.calibration))
        found = self._compare(scored, split.calibration, self._level(split.calibration))
        yield _standing("done", "done", expected, expected, usage)
        return RescoreView(
            criteria_id=self._new.criteria_id,
            parent_id=self._parent.criteria_id,
            parent=found.b,
            new=found.a,
            difference=_difference_view(found),
            changed=self._changed(scored, split.calibration),
            parent_held_out=None if held_out is None else held_out.b,
            new_held_out=None if held_out is None else held_out.a,
            held_out_difference=None if held_out is None else _difference_view(held_out),
            usage=usage,
        )

    def finish(self, result: RescoreView) -> str:
        """Store the comparison, and how both stood on each side."""
        stood = [Stood(result.criteria_id, "calibration", "", result.new)]
        stood.append(Stood(result.parent_id, "calibration", "", result.parent))
        if result.new_held_out is not None and result.parent_held_out is not None:
            stood.append(Stood(result.criteria_id, "held-out", "", result.new_held_out))
            stood.append(Stood(result.parent_id, "held-out", "", result.parent_held_out))
        self.store.criteria.record(self.run.project_id, self.run.run_id, stood)
        self.store.results.put_document(self.run.run_id, RESULT, pack(result))
        return "done"

    def _level(self, positions: Sequence[int]) -> Level:
        return self._chosen.level or choose_level(Side.of(self.golden, self.task.aspect, positions))

    def _compare(self, scored: ScoreMatrix, positions: Sequence[int], level: Level) -> Difference:
        side = Side.of(self.golden, self.task.aspect, positions)
        new, parent = _rows(scored, self._new, self._parent)
        return paired_difference(
            new,
            parent,
            side.labels,
            side.sources,
            side.systems,
            statistic=self._chosen.statistic,
            level=level,
            generator=np.random.default_rng(self._chosen.seed),
            resamples=self._chosen.resamples,
        )

    def _changed(self, scored: ScoreMatrix, positions: Sequence[int]) -> tuple[ChangedItem, ...]:
        labels = Side.of(self.golden, self.task.aspect, positions).labels
        new, parent = _rows(scored, self._new, self._parent)
        return changed_items(self.golden, positions, labels, parent=parent, new=new, settings=self._chosen)


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


def _standing(phase: Any, message: str, calls: int, expected: int, usage: Usage) -> Standing:
    return Standing(phase, 0, message, calls, expected, (), (), usage)
