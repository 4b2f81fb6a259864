"""A budget is a cap: it is never exceeded, held-out items come first, and every cut is reported."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from core.calibration.calibration_records import CalibrationSettings
from core.calibration.loop import calibrate, most_calls
from core.data import split_sources
from core.stats import LabelledItems
from tests.core.calibration.planted import GOLDEN, TASK, PlantedJudge

SPLIT = split_sources(GOLDEN, aspect="quality", fraction=0.5, seed=0)
SIDE = LabelledItems.of(GOLDEN, "quality", SPLIT.calibration)


def test_by_default_few_labels_are_not_refined_on() -> None:
    assert [CalibrationSettings().with_rounds(n).rounds for n in (99, 100)] == [0, 1]


def test_calls_by_hand() -> None:
    """Full, quick, 120 items, 10 held out: 12 + 13 × 120 = 1572; a round 16 + 16 × 120 = 1936; held out 4 × 10."""
    full = CalibrationSettings(preset="quick", revisit="full", rounds=1)
    assert most_calls(full, SIDE, 10, fitting=0) == 1572 + 1936 + 40


@pytest.mark.parametrize("budget", [1, 40, 290, 500, 900, 1700, 2400, 3300, 9000])
@pytest.mark.parametrize("revisit", ["racing", "full"])
@pytest.mark.parametrize("ensemble", [1, 3])
def test_a_run_keeps_to_its_budget_and_reports_what_it_cuts(budget: int, revisit: Any, ensemble: int) -> None:
    settings = CalibrationSettings(preset="quick", revisit=revisit, budget=budget, rounds=2, ensemble=ensemble)
    judge = PlantedJudge()
    result = calibrate(GOLDEN, TASK, judge, settings, split=SPLIT)
    work, most = result.work, most_calls(settings, SIDE, len(SPLIT.held_out), 0)
    assert work.calls_used == result.calls <= work.calls_planned == min(budget, most)
    assert sum(criteria * items for criteria, items in judge.scored) <= result.calls
    assert result.chosen  # the best found until then, or the judge without criteria
    whole = (work.drafts_made, work.rounds_done, work.held_out_scored) == (12, 2, len(SPLIT.held_out))
    assert whole or result.stopped_early
    assert bool(result.stopped_early) == bool(work.left_out)
    assert (" of 12 drafts" in result.stopped_early) or work.drafts_made == 12
    assert ("held-out items" in result.stopped_early) == (work.held_out_scored < len(SPLIT.held_out))
    if budget >= 500:
        assert work.held_out_scored == len(SPLIT.held_out)
    if budget >= most:
        assert not result.stopped_early


def test_more_budget_never_gives_less_of_the_search() -> None:
    done = []
    for budget in (300, 600, 1200, 2400, 4800):
        settings = CalibrationSettings(preset="quick", budget=budget, rounds=2)
        work = calibrate(GOLDEN, TASK, PlantedJudge(), settings, split=SPLIT).work
        done.append((work.drafts_ranked, work.refined_made, work.held_out_scored))
    assert all(later >= earlier for one in zip(*done, strict=True) for earlier, later in itertools.pairwise(one))
