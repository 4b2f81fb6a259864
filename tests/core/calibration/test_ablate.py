"""The ablation table on a planted judge: which variants there are, what they cost, and what each row says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from core.calibration.ablate import Ablation, AblationRow, estimate_ablation
from core.calibration.ablate import ablate as ablate_asked
from core.calibration.calibration_records import Calibration, CalibrationSettings
from core.calibration.racing import BoundJudge
from core.records import GoldenSet, ScoreMatrix
from tests.core.calibration.planted import GOLDEN, TASK, PlantedJudge, run_whole

SETTINGS = CalibrationSettings(preset="quick", rounds=1)


def rows_of(ablated: Ablation) -> dict[str, AblationRow]:
    return {row.key: row for row in ablated.rows}


def by_source(values: Any, golden: GoldenSet, positions: Any) -> float:
    """Sample-level Spearman rho by scipy: one coefficient a source, averaged; constant sources left out."""
    at = np.array(positions)
    labels, sources = golden.labels("quality"), golden.source_codes
    groups = [at[sources[at] == source] for source in np.unique(sources[at])]
    return float(np.mean([stats.spearmanr(values[g], labels[g]).statistic for g in groups if len(set(labels[g])) > 1]))


def ablate(judge: PlantedJudge, calibration: Calibration, scores: ScoreMatrix) -> Ablation:
    return ablate_asked(BoundJudge(judge, GOLDEN, TASK), calibration, scores)


@pytest.fixture(scope="module")
def refined() -> tuple[Calibration, ScoreMatrix]:
    """A calibration with a refinement in its final judge, and what it scored."""
    return run_whole(GOLDEN, PlantedJudge(), SETTINGS)


@pytest.fixture(scope="module")
def ablated(refined: tuple[Calibration, ScoreMatrix]) -> Ablation:
    return ablate(PlantedJudge(), *refined)


# ── the rows ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_refinement_takes_the_best_drafts_of_calibration(
    refined: tuple[Calibration, ScoreMatrix], ablated: Ablation
) -> None:
    result, scores = refined
    assert any(criteria.provenance.origin == "refine" for criteria in result.chosen)
    row = rows_of(ablated)["without refinement"]
    on = list(result.split.calibration)
    ranked = sorted(
        (
            (by_source(values, GOLDEN, on), name)
            for name, values in zip(scores.criteria_ids, scores.values, strict=True)
            if name in {c.criteria.criteria_id for c in result.candidates if c.criteria.provenance.origin == "draft"}
            and np.isfinite(values[on]).all()
        ),
        reverse=True,
    )
    assert row.criteria_ids == tuple(name for _, name in ranked[: len(result.chosen)])
    drafts = {c.criteria.criteria_id: c.criteria for c in result.candidates}
    members = [drafts[name] for name in row.criteria_ids]
    mean = PlantedJudge().score(TASK, GOLDEN.items, members).values.mean(axis=0)
    assert row.calibration.value == pytest.approx(by_source(mean, GOLDEN, on))
    assert row.held_out.value == pytest.approx(by_source(mean, GOLDEN, result.split.held_out))


def test_differences_are_variant_minus_final_on_held_out(
    refined: tuple[Calibration, ScoreMatrix], ablated: Ablation
) -> None:
    result, _ = refined
    rows = rows_of(ablated)
    final = rows["final"].held_out.value
    assert final is not None
    for row in ablated.rows[1:]:
        assert row.held_out.value is not None
        assert row.difference == pytest.approx(row.held_out.value - final)
        assert row.interval is not None
        assert row.interval.low <= row.interval.high
        assert row.n == len(result.split.held_out)
        assert "sources" in row.interval.method
    bare = rows["without criteria"]
    assert bare.interval is not None
    assert bare.interval.high < 0  # planted: without criteria the skill is .2
    ordered = sorted(ablated.rows[1:], key=lambda row: row.p or 0.0)
    expected, worst = [], 0.0
    for left, row in zip((3, 2, 1), ordered, strict=True):  # Holm by hand: times 3, 2, 1, never below the one before
        assert row.p is not None
        worst = max(worst, min(1.0, left * row.p))
        expected.append(worst)
    assert [row.p_holm for row in ordered] == pytest.approx(expected)


def test_only_what_nobody_scored_is_asked_for() -> None:
    """The judge of these tests fails when an item comes twice with the same criteria."""
    judge = PlantedJudge()
    result, scores = run_whole(GOLDEN, judge, SETTINGS)
    ablated = ablate(judge, result, scores)
    chosen = {criteria.criteria_id for criteria in result.chosen}
    new = [name for name in rows_of(ablated)["without refinement"].criteria_ids if name not in chosen]
    assert ablated.calls == len(new) * len(result.split.held_out)
    assert ablated.usage.requests == ablated.calls
    assert estimate_ablation(judge, GOLDEN, result, scores).calls == ablated.calls


def test_unread_items_are_counted_in_every_row() -> None:
    lost = {"i0-0", "i7-3", "i21-2", "i33-5"}

    def unread(item_id: str) -> bool:
        return item_id in lost

    result, scores = run_whole(GOLDEN, PlantedJudge(unread), SETTINGS)
    ablated = ablate(PlantedJudge(unread), result, scores)
    for row in ablated.rows:
        assert row.calibration.n_unscored + row.held_out.n_unscored == len(lost)
        assert {one.item_id for one in ablated.scores.unscored[row.key]} == lost
        assert {one.reason for one in ablated.scores.unscored[row.key]} == {"no verdict"}
    assert ablated.rows[1].n == len(result.split.held_out) - ablated.rows[1].held_out.n_unscored
