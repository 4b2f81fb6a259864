"""A planted judge and golden set: criteria say how good they are, so the right outcome is known beforehand."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.calibration.calibration_records import Calibration, CalibrationSettings
from core.calibration.loop import calibrate
from core.calibration.racing import Recorder
from core.data import split_sources
from core.judging.judge_protocol import DraftBatch, DraftRequest, Judge, OnProgress
from core.records import (
    AspectLabels,
    Criteria,
    FloatArray,
    GoldenSet,
    Item,
    Scale,
    ScoreMatrix,
    Task,
    Unscored,
    Usage,
)
from core.verdicts import Scores


def _noise(*parts: object) -> float:
    """A number in (-1, 1) that depends on nothing but `parts`."""
    digest = hashlib.sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**63 - 1


class PlantedJudge(Judge):
    """Criteria "skill=0.80 #n" score an item as skill · truth + (1 − skill) · noise; without text skill is 0.2.

    Item targets hold the truth as text.  Refinements gain or lose skill by the request's seed.
    """

    spec, is_llm, notice = "planted", False, "a judge made for tests"

    def __init__(self, unread: Callable[[str], bool] = lambda _: False) -> None:
        self.unread = unread
        self.scored: list[tuple[int, int]] = []
        self.seen: set[tuple[str, str]] = set()
        self.drafted_from: set[str] = set()

    def score(
        self,
        task: Task,
        items: Sequence[Item],
        criteria: Sequence[Criteria],
        *,
        explain: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Scores:
        self.scored.append((len(criteria), len(items)))
        pairs = {(one.criteria_id, item.item_id) for one in criteria for item in items}
        assert not pairs & self.seen, "an item was scored twice with the same criteria"
        self.seen |= pairs
        values: FloatArray = np.array([[self._value(one, item) for item in items] for one in criteria])
        missing = {
            one.criteria_id: tuple(Unscored(item.item_id, "no verdict") for item in items if self.unread(item.item_id))
            for one in criteria
        }
        return Scores(
            tuple(one.criteria_id for one in criteria),
            tuple(item.item_id for item in items),
            values,
            {key: rows for key, rows in missing.items() if rows},
            values.size,
            Usage(requests=values.size),
        )

    def _value(self, criteria: Criteria, item: Item) -> float:
        if self.unread(item.item_id):
            return float("nan")
        match = re.search(r"skill=([\d.]+)", criteria.text)
        skill = float(match[1]) if match else 0.2
        return 3 + skill * float(item.target) + (1 - skill) * 3 * _noise(criteria.text, item.item_id)

    def draft(self, task: Task, requests: Sequence[DraftRequest]) -> DraftBatch:
        drafts = []
        for request in requests:
            self.drafted_from |= {exemplar.item.item_id for exemplar in request.exemplars}
            if request.criteria is None:
                text = f"skill={0.1 + 0.6 * abs(_noise('draft', request.seed)):.2f} #{request.seed}"
            else:
                match = re.search(r"skill=([\d.]+)", request.criteria.text)
                assert match is not None
                skill = min(0.95, max(0.05, float(match[1]) + 0.25 * _noise("refine", request.seed)))
                text = f"skill={skill:.2f} #r{request.seed}"
            drafts.append(Criteria(text, task.aspect, request.provenance))
        return DraftBatch(tuple(drafts), Usage(requests=len(requests)))


def planted_golden(n_sources: int = 40, n_systems: int = 6, seed: int = 0) -> GoldenSet:
    """Truth is uniform in (-1, 1); labels are the truth on 1-5, rounded to half points."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(-1, 1, size=(n_sources, n_systems))
    items = tuple(
        Item(f"i{s}-{m}", repr(float(truth[s, m])), f"s{s}", f"m{m}")
        for s in range(n_sources)
        for m in range(n_systems)
    )
    labels = tuple(float(np.round(2 * (3 + 2 * t)) / 2) for t in truth.ravel())
    scale = Scale(1, 5, 0.5)
    return GoldenSet("planted", "single", items, {"quality": AspectLabels("quality", scale, labels)})


def run_whole(golden: GoldenSet, judge: Judge, settings: CalibrationSettings) -> tuple[Calibration, ScoreMatrix]:
    """A calibration with every score that it made, as a run stores them: (n_criteria, n_items), NaN elsewhere."""
    task = Task("quality", "single", golden.aspects["quality"].scale)
    split = split_sources(golden, aspect="quality", fraction=0.5, seed=settings.seed)
    noted = _Noting(golden)
    result = calibrate(golden, task, judge, settings, split=split, recorder=noted)
    return result, ScoreMatrix(tuple(noted.rows), golden.item_ids, np.stack(list(noted.rows.values())))


@dataclass
class _Noting(Recorder):
    golden: GoldenSet
    rows: dict[str, FloatArray] = field(default_factory=dict)

    def add_scores(self, positions: Sequence[int], scores: ScoreMatrix) -> None:
        for name, values in zip(scores.criteria_ids, scores.values, strict=True):
            self.rows.setdefault(name, np.full(len(self.golden.items), np.nan))[list(positions)] = values


GOLDEN = planted_golden()
TASK = Task("quality", "single", GOLDEN.aspects["quality"].scale)
