"""The whole loop on a planted judge: what it chooses, what it never looks at, what a budget does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.calibration import loop
from core.calibration.calibration_records import Calibration, CalibrationSettings, LeaderboardSnapshot
from core.data import split_sources
from core.errors import AspectError
from core.progress import SILENT, Shown
from core.records import AspectLabels, Criteria, GoldenSet, Item, Scale
from tests.core.calibration.planted import GOLDEN, TASK, PlantedJudge, planted_golden

QUICK = CalibrationSettings(preset="quick", rounds=1)


def calibrate(
    judge: PlantedJudge,
    settings: CalibrationSettings,
    *,
    golden: GoldenSet = GOLDEN,
    seen: list[LeaderboardSnapshot] | None = None,
) -> Calibration:
    split = split_sources(golden, aspect="quality", fraction=0.5, seed=settings.seed)
    progress = SILENT if seen is None else Shown(seen.append)
    return loop.calibrate(golden, TASK, judge, settings, progress, split=split)


def skill(text: str) -> float:
    return float(text.split("=")[1].split(maxsplit=1)[0])


def test_it_finds_the_skilful_criteria() -> None:
    result = calibrate(PlantedJudge(), CalibrationSettings(rounds=0, revisit="full"))
    drafted = sorted((skill(c.criteria.text) for c in result.candidates if c.criteria.text), reverse=True)
    assert skill(result.chosen[0].text) >= drafted[4]  # among the best five of sixty by construction
    assert result.held_out.value is not None
    assert result.no_criteria.held_out.value is not None
    assert result.held_out.value > result.no_criteria.held_out.value
    assert result.calibration.interval is not None
    assert result.optimism == result.calibration.value - result.held_out.value


def test_held_out_chooses_nothing() -> None:
    judge = PlantedJudge()
    result = calibrate(judge, QUICK)
    held_out = {GOLDEN.items[p].item_id for p in result.split.held_out}
    assert not judge.drafted_from & held_out
    asked = {criteria_id for criteria_id, item_id in judge.seen if item_id in held_out}
    baseline = [c.criteria.criteria_id for c in result.candidates if c.status == "baseline"]
    assert asked == {*(criteria.criteria_id for criteria in result.chosen), *baseline}
    sources = GOLDEN.source_codes
    assert not set(sources[list(result.split.calibration)]) & set(sources[list(result.split.held_out)])


def test_same_seed_same_result() -> None:
    first, second = (calibrate(PlantedJudge(), QUICK) for _ in range(2))
    assert [criteria.text for criteria in first.chosen] == [criteria.text for criteria in second.chosen]
    assert first.held_out == second.held_out
    np.testing.assert_array_equal(first.scores.values, second.scores.values)


def test_without_the_gate_the_best_of_the_whole_pool_wins() -> None:
    """001's argmax: no refinement is turned away, and the choice is the largest alignment on all calibration items."""
    settings = replace(QUICK, refine_gate=False, ensemble=1, revisit="full")
    result = calibrate(PlantedJudge(), settings)
    refined = [c for c in result.candidates if c.criteria.provenance.origin == "refine"]
    assert refined
    assert "rejected" not in {c.status for c in refined}
    gated = calibrate(PlantedJudge(), replace(settings, refine_gate=True))
    assert "rejected" in {c.status for c in gated.candidates}, "the gate has something to turn away here"
    complete = [c for c in result.candidates if c.criteria.text and c.calls == len(result.split.calibration)]
    best = max(complete, key=lambda c: c.alignment.value)  # type: ignore[union-attr,arg-type,return-value]
    assert result.chosen == (best.criteria,)


def test_ensemble_is_the_mean_of_its_members() -> None:
    judge = PlantedJudge()
    result = calibrate(judge, QUICK)
    assert len(result.chosen) == 3
    items = {item.item_id: item for item in GOLDEN.items}
    for i in (0, 7, -1):
        item = items[result.scores.item_ids[i]]
        by_hand = sum(judge._value(criteria, item) for criteria in result.chosen) / 3
        assert result.scores.values[0, i] == pytest.approx(by_hand, abs=1e-12)


def test_unread_replies_are_counted_never_scored() -> None:
    result = calibrate(PlantedJudge(lambda item_id: item_id.endswith("-0")), QUICK)
    unread = sum(item_id.endswith("-0") for item_id in result.scores.item_ids)
    assert len(result.scores.unscored["final"]) == unread == 40
    assert np.isnan(result.scores.values[0]).sum() == unread
    assert {one.reason for one in result.scores.unscored["final"]} == {"no verdict"}  # on both sides of the split
    assert result.problems["unread: no verdict"] >= unread
    assert any(f"{unread} of 240 items couldn't be scored (no verdict)" in warning for warning in result.warnings)
    assert result.held_out.n_unscored == sum(GOLDEN.items[p].item_id.endswith("-0") for p in result.split.held_out)


def test_constant_calibration_labels_are_refused_with_the_way_out() -> None:
    split = split_sources(GOLDEN, aspect="quality", fraction=0.5, seed=0)
    labels = list(GOLDEN.aspects["quality"].values)
    for position in split.calibration:
        labels[position] = 3.0
    scale = Scale(1, 5)
    flat = GoldenSet("flat", "single", GOLDEN.items, {"quality": AspectLabels("quality", scale, tuple(labels))})
    with pytest.raises(AspectError, match=r"all 120 calibration labels .* are 3"):
        calibrate(PlantedJudge(), QUICK, golden=flat)


def test_few_labels_are_refused() -> None:
    with pytest.raises(AspectError, match="at least 8 labels"):
        calibrate(PlantedJudge(), QUICK, golden=planted_golden(n_sources=2, n_systems=3))


def test_the_gain_is_measured_on_the_items_that_both_scored() -> None:
    """Two alignments on different items make no difference: the two judges here miss a fifth each, not the same."""

    class Gappy(PlantedJudge):
        def _value(self, criteria: Criteria, item: Item) -> float:
            missed = ("-0",) if criteria.text else ("-1",)
            return float("nan") if item.item_id.endswith(missed) else float(super()._value(criteria, item))

    result = calibrate(Gappy(), QUICK)
    n = len(result.split.held_out)
    assert (result.held_out.n, result.no_criteria.held_out.n) == (n * 5 // 6, n * 5 // 6)
    gain = result.gain
    assert gain.n == n * 4 // 6
    assert gain.value != result.held_out.value - result.no_criteria.held_out.value
    assert (gain.a.n, gain.b.n) == (gain.n, gain.n)
    ours = dict(zip(result.scores.item_ids, result.scores.values[0], strict=True))
    assert sum(not np.isnan(ours[GOLDEN.items[p].item_id]) for p in result.split.held_out) == n * 5 // 6
