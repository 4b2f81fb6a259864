"""Item by item: gaps on calibration items only, and the judge's words from what is stored."""

from __future__ import annotations

import numpy as np
import pytest

from core import projects
from core.errors import JobError, NotFoundError
from core.records import GoldenSet, ScoreMatrix, Unscored
from tests.core.projects.conftest import ASPECT, World


def test_largest_gaps_first_and_unread_last(world: World, golden: GoldenSet) -> None:
    calibration = projects.load_calibration(world.store, world.run_id)
    positions, (criteria,) = list(calibration.split.calibration), calibration.chosen
    stored = projects.load_scores(world.store, world.run_id)
    values = stored.values[stored.criteria_ids.index(criteria.criteria_id)][positions]
    values[5] = np.nan  # another set of criteria with the same scores, one of them unread
    unread = (Unscored(golden.items[positions[5]].item_id, "no verdict", "nothing like a rating"),)
    ids = tuple(golden.items[p].item_id for p in positions)
    matrix = ScoreMatrix(("c1",), ids, values[np.newaxis], {"c1": unread})
    world.store.results.add_scores(world.run_id, tuple(positions), matrix)
    rows = projects.item_scores(world.store, world.run_id, "c1")
    assert {row.item_id for row in rows} == set(ids)  # no held-out item
    assert (rows[-1].score, rows[-1].reason) == (None, "no verdict")
    # The gap by hand: z of the score minus z of the label, over the items with a score.
    labels, kept = golden.labels(ASPECT)[positions], ~np.isnan(values)
    z = [(x[kept] - x[kept].mean()) / x[kept].std() for x in (values, labels)]
    by_hand = dict(zip(np.array(ids)[kept].tolist(), z[0] - z[1], strict=True))
    assert {row.item_id: row.gap for row in rows[:-1]} == pytest.approx(by_hand, abs=1e-12)
    sizes = [abs(row.gap) for row in rows[:-1]]
    assert sizes == sorted(sizes, reverse=True)
    with pytest.raises(NotFoundError, match="no scores of criteria"):
        projects.item_scores(world.store, world.run_id, "c000000000000")


def test_the_offline_judge_names_the_clauses_and_opens_no_held_out_item(world: World, golden: GoldenSet) -> None:
    calibration = projects.load_calibration(world.store, world.run_id)
    (criteria,) = calibration.chosen
    arguments = (world.store, world.settings, world.run_id, criteria.criteria_id)
    row = projects.item_scores(world.store, world.run_id, criteria.criteria_id)[0]
    assert projects.explain_item(*arguments, row.item_id)[0]
    with pytest.raises(JobError, match="did not score item"):
        projects.explain_item(*arguments, golden.items[calibration.split.held_out[0]].item_id)
