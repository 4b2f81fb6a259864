"""The plan for a budget: never dearer than it, held-out items first, and every cut said; a run never takes more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.calibration.calibration_records import CalibrationSettings
from core.calibration.loop import calibrate
from core.calibration.racing import WorkPlan, plan_work
from core.data import split_sources
from core.stats import LabelledItems
from tests.core.calibration.planted import GOLDEN, TASK, PlantedJudge


def a_side(n_sources: int, each: int) -> LabelledItems:
    n = n_sources * each
    return LabelledItems(
        np.arange(n), np.arange(n) % 5.0, np.repeat(np.arange(n_sources), each), np.zeros(n, dtype=np.intp)
    )


SETTINGS = st.builds(
    CalibrationSettings,
    preset=st.sampled_from(["quick", "summarisation"]),
    revisit=st.sampled_from(["racing", "full"]),
    rounds=st.integers(0, 4),
    keep=st.integers(1, 8),
    ensemble=st.integers(1, 6),
    budget=st.integers(1, 30_000),
)


@given(SETTINGS, st.integers(2, 60), st.integers(1, 8), st.integers(2, 200))
def test_a_plan_keeps_to_its_budget_and_says_what_it_cuts(
    settings: CalibrationSettings, n_sources: int, each: int, n_held_out: int
) -> None:
    side = a_side(n_sources, each)
    plan, whole = (plan_work(one, side, n_held_out) for one in (settings, replace(settings, budget=None)))
    assert settings.budget is not None
    assert plan.calls <= settings.budget
    if settings.budget >= whole.calls:
        assert plan == whole
        return
    assert (" drafts" in plan.cut) == (plan.drafts < whole.drafts)
    assert ("refin" in plan.cut) == ((plan.rounds, plan.refined) != (whole.rounds, whole.refined))
    assert ("held-out items" in plan.cut) == (plan.reserve < (plan.ensemble + 1) * n_held_out)
    assert plan.cut
    if plan.rounds:  # parents and refinements are compared on all calibration items
        assert plan.share == 1.0
        assert plan.refined >= min(settings.keep, settings.plan.n_drafts)


def test_calls_by_hand() -> None:
    """Full, quick, 24 items, 10 held out, ensemble 3, keep 4: 40 for held-out; 12 + 13 × 24 = 324; 16 + 16 × 24 = 400.

    700 calls: 90 % is 11 drafts, 11 + 12 × 24 = 299, and 15 refinements, 15 + 15 × 24 = 375: 714, too dear; 80 % is 10
    drafts, 10 + 11 × 24 = 274, and 13 refinements, 13 + 13 × 24 = 325: with 40 it is 639.
    """
    side, quick = a_side(24, 1), CalibrationSettings(preset="quick", revisit="full")
    assert plan_work(quick, side, 10) == WorkPlan(12, 1.0, 1, 16, 3, 40, 764)
    words = "The budget of 700 calls covers 10 of 12 drafts; 13 of 16 refinements a round."
    assert plan_work(replace(quick, budget=700), side, 10) == WorkPlan(10, 1.0, 1, 13, 3, 40, 639, cut=words)


@pytest.mark.parametrize("budget", [1, 40, 290, 500, 900, 1700, 2400, 3300])
@pytest.mark.parametrize("revisit", ["racing", "full"])
def test_a_run_does_what_was_planned(budget: int, revisit: Any) -> None:
    settings = CalibrationSettings(preset="quick", revisit=revisit, budget=budget, rounds=2)
    split = split_sources(GOLDEN, aspect="quality", fraction=0.5, seed=0)
    judge = PlantedJudge()
    result = calibrate(GOLDEN, TASK, judge, settings, split=split)
    side = LabelledItems.of(GOLDEN, "quality", split.calibration)
    plan = plan_work(settings, side, len(split.held_out))
    work = result.work
    assert work.calls_used == result.calls <= plan.calls <= budget
    assert sum(criteria * items for criteria, items in judge.scored) <= result.calls
    assert result.chosen  # the best found until then, or the judge without criteria
    assert (work.drafts_made, work.rounds_done) == (plan.drafts, plan.rounds)
    assert work.refined_made == plan.rounds * plan.refined
    assert len(result.chosen) <= plan.ensemble
    if budget >= 2 * len(split.held_out) + 49:
        assert work.held_out_scored == len(split.held_out)
    assert plan.cut in (*work.left_out, "")
    assert plan.cut in result.stopped_early
    assert bool(plan.cut) == bool(work.left_out)
