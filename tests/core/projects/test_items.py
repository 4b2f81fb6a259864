"""Item by item: gaps on calibration items only, and the judge's words from what is stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from core import projects
from core.calibration.calibration_settings import CalibrationSettings
from core.data.split import task_of
from core.errors import JobError, NotFoundError
from core.judging.judge_protocol import judge_state
from core.judging.judge_specs import make_judge
from core.projects.calibration import CalibrationRequest
from core.projects.run_work import JudgeState
from core.records import Criteria, GoldenSet, ScoreMatrix, Unscored
from core.settings import Settings
from core.store.codec import pack
from core.store.results import JUDGE
from core.store.store import Store


@dataclass
class Scored:
    """A run of the offline judge whose scores were stored as a worker stores them; one item is unread."""

    store: Store
    settings: Settings
    golden: GoldenSet
    run_id: str
    criteria: Criteria
    positions: tuple[int, ...]
    values: tuple[float, ...]


@pytest.fixture
def scored(store: Store, settings: Settings, golden: GoldenSet) -> Scored:
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, golden)
    request = CalibrationRequest(project, golden_id, "relevance", "offline", CalibrationSettings())
    run_id = projects.start_calibration(store, settings, request)
    task, split = task_of(golden, "relevance"), request.settings.split_of(golden, "relevance")
    items = [golden.items[p] for p in split.calibration]
    judge = make_judge("offline", settings).prepare(task, items)
    criteria = Criteria("Reward texts that cover the main points of the source.", "relevance")
    values = judge.score(task, items, [criteria]).values[0]
    values[5] = np.nan
    unread = (Unscored(items[5].item_id, "no verdict", "nothing like a rating"),)
    store.results.put_document(run_id, JUDGE, pack(JudgeState(judge_state(judge))))
    store.criteria.add(project, golden_id, [criteria])
    rows = tuple(values.tolist())
    name = criteria.criteria_id
    matrix = ScoreMatrix((name,), tuple(item.item_id for item in items), values[np.newaxis], {name: unread})
    store.results.add_scores(run_id, split.calibration, matrix)
    return Scored(store, settings, golden, run_id, criteria, split.calibration, rows)


def test_largest_gaps_first_and_unread_last(scored: Scored) -> None:
    rows = projects.item_scores(scored.store, scored.run_id, scored.criteria.criteria_id)
    assert {row.item_id for row in rows} == {scored.golden.items[p].item_id for p in scored.positions}
    assert rows[-1].score is None
    assert rows[-1].reason == "no verdict"
    sizes = [abs(row.gap) for row in rows[:-1] if row.gap is not None]
    assert sizes == sorted(sizes, reverse=True)
    # The gap by hand: z of the score minus z of the label, over the items with a score.
    labels = scored.golden.labels("relevance")[list(scored.positions)]
    values = np.array(scored.values)
    kept = ~np.isnan(values)
    z = [(x[kept] - x[kept].mean()) / x[kept].std() for x in (values, labels)]
    by_hand = dict(zip(np.flatnonzero(kept).tolist(), (z[0] - z[1]).tolist(), strict=True))
    place = {scored.golden.items[p].item_id: k for k, p in enumerate(scored.positions)}
    assert rows[0].gap == pytest.approx(by_hand[place[rows[0].item_id]], abs=1e-12)


def test_the_offline_judge_names_the_clauses(scored: Scored) -> None:
    rows = projects.item_scores(scored.store, scored.run_id, scored.criteria.criteria_id)
    arguments = (scored.store, scored.settings, scored.run_id, scored.criteria.criteria_id)
    view = projects.explain_item(*arguments, rows[0].item_id)
    assert view.item.item_id == rows[0].item_id
    assert view.score == rows[0]
    assert "cover the main points of the source" in view.explanation


def test_held_out_items_are_not_opened(scored: Scored) -> None:
    outside = next(item.item_id for p, item in enumerate(scored.golden.items) if p not in scored.positions)
    arguments = (scored.store, scored.settings, scored.run_id, scored.criteria.criteria_id)
    with pytest.raises(JobError, match="did not score item"):
        projects.explain_item(*arguments, outside)


def test_unknown_criteria(scored: Scored) -> None:
    with pytest.raises(NotFoundError, match="no scores of criteria"):
        projects.item_scores(scored.store, scored.run_id, "c000000000000")
