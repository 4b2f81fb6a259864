"""The ablation table on a planted judge: which variants there are, what they cost, and what each row says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from core.calibration.ablate import Ablation, AblationRow, ablate, known_scores, plan_of
from core.calibration.calibration_result import Calibration
from core.calibration.calibration_settings import CalibrationSettings
from core.judging.llm_judge import LLMJudge
from core.judging.scoring_styles import Style
from core.providers.scripted import ScriptedProvider
from core.records import GoldenSet, Item, ScoreMatrix
from tests.core.calibration.planted import GOLDEN, TASK, PlantedJudge, run_whole

SETTINGS = CalibrationSettings(preset="quick", rounds=1, resamples=60)


def rows_of(ablated: Ablation) -> dict[str, AblationRow]:
    return {row.key: row for row in ablated.rows}


def by_source(values: Any, golden: GoldenSet, positions: Any) -> float:
    """Sample-level Spearman rho by scipy: one coefficient a source, averaged; constant sources left out."""
    at = np.array(positions)
    labels, sources = golden.labels("quality"), golden.source_codes
    groups = [at[sources[at] == source] for source in np.unique(sources[at])]
    return float(np.mean([stats.spearmanr(values[g], labels[g]).statistic for g in groups if len(set(labels[g])) > 1]))


def scripted(**how: Any) -> LLMJudge:
    return LLMJudge(ScriptedProvider(), "scripted", spec="scripted", sampling=Style(**how))


def in_words(item: Item, k: int) -> Item:
    """An item with words for a target, which the scripted model can read."""
    words = ["alpha beta gamma.", "beta delta and more.", "one two three four.", "short.", "a b c d e f g."]
    return replace(item, target=f"{words[k % 5]} {item.item_id}")


WORDED = replace(GOLDEN, items=tuple(in_words(item, k) for k, item in enumerate(GOLDEN.items)))


@pytest.fixture(scope="module")
def refined() -> tuple[Calibration, ScoreMatrix]:
    """A calibration with a refinement in its final judge, and what it scored."""
    return run_whole(GOLDEN, PlantedJudge(), SETTINGS)


@pytest.fixture(scope="module")
def ablated(refined: tuple[Calibration, ScoreMatrix]) -> Ablation:
    return ablate(refined[0], GOLDEN, PlantedJudge(), scores=refined[1])


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
    ablated = ablate(result, GOLDEN, judge, scores=scores)
    chosen = {criteria.criteria_id for criteria in result.chosen}
    new = [name for name in rows_of(ablated)["without refinement"].criteria_ids if name not in chosen]
    assert ablated.calls == len(new) * len(result.split.held_out)
    assert ablated.usage.requests == ablated.calls
    assert plan_of(result, GOLDEN, PlantedJudge()).calls(known_scores(GOLDEN, result, scores)) == ablated.calls


def test_unread_items_are_counted_in_every_row() -> None:
    lost = {"i0-0", "i7-3", "i21-2", "i33-5"}

    def unread(item_id: str) -> bool:
        return item_id in lost

    result, scores = run_whole(GOLDEN, PlantedJudge(unread), SETTINGS)
    ablated = ablate(result, GOLDEN, PlantedJudge(unread), scores=scores)
    for row in ablated.rows:
        assert row.calibration.n_unscored + row.held_out.n_unscored == len(lost)
        assert {one.item_id for one in ablated.scores.unscored[row.key]} == lost
        assert {one.reason for one in ablated.scores.unscored[row.key]} == {"no verdict"}
    assert ablated.rows[1].n == len(result.split.held_out) - ablated.rows[1].held_out.n_unscored


# ── evaluation steps ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_model_writes_steps_and_scores_with_them() -> None:
    result, scores = run_whole(WORDED, scripted(), SETTINGS)
    ablated = ablate(result, WORDED, scripted(), scores=scores)
    row = rows_of(ablated)["with evaluation steps"]
    assert row.criteria_ids == tuple(criteria.criteria_id for criteria in result.chosen)
    assert row.first_look
    assert set(ablated.steps) == set(row.criteria_ids)
    judge, task, members = scripted(), result.task, []
    for one in result.chosen:
        assert ablated.steps[one.criteria_id] == judge.write_steps(task, one.text).text
        members.append(
            scripted(steps=ablated.steps[one.criteria_id]).score(task, WORDED.items, [one]).values[0],
        )
    at = list(result.split.held_out)
    own = ablated.scores.values[ablated.scores.criteria_ids.index(row.key)]
    np.testing.assert_allclose(own[at], np.mean(members, axis=0)[at], equal_nan=True)
    assert plan_of(result, WORDED, scripted()).calls(known_scores(WORDED, result, scores)) == ablated.calls
