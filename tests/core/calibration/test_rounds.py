"""Drafts: stratified exemplars, seeds.  Rounds that a person asks for: what they see, measure and cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.calibration.calibration_records import CalibrationSettings, RoundSettings
from core.calibration.proposals import (
    RoundResult,
    folds_of,
    refinement_round,
    round_calls,
    stratified_sample,
)
from core.calibration.racing import BoundJudge
from core.data.split import split_sources
from core.errors import UsageError
from core.records import Criteria
from core.stats import LabelledItems
from tests.core.calibration.planted import GOLDEN, TASK, PlantedJudge

CHOSEN = CalibrationSettings(seed=2)
HOW = RoundSettings()
PARENTS = (Criteria("skill=0.50 #p1", "quality"), Criteria("skill=0.30 #p2", "quality"))


SPLIT = split_sources(GOLDEN, aspect="quality", fraction=0.5, seed=2)


def round_of(
    parents: tuple[Criteria, ...] = PARENTS,
    judge: PlantedJudge | None = None,
    settings: RoundSettings = HOW,
    **more: Any,
) -> RoundResult:
    asked = BoundJudge(judge or PlantedJudge(), GOLDEN, TASK)
    return refinement_round(asked, SPLIT, CHOSEN, parents, settings, **more)


def test_a_round_brings_proposals_beside_their_parents() -> None:
    judge = PlantedJudge()
    result = round_of(judge=judge, number=3)
    assert len(result.proposals) == 2 * HOW.per_parent == 12
    assert result.calls == round_calls(len(SPLIT.calibration), 2, HOW) == 14 * len(SPLIT.calibration) + 12
    for proposal in result.proposals:
        assert proposal.parent_id in {parent.criteria_id for parent in PARENTS}
        assert proposal.criteria.provenance.round == 3
        assert proposal.calibration.n == len(SPLIT.calibration)
        assert proposal.calibration.value == pytest.approx(proposal.calibration.a.value - proposal.calibration.b.value)
    gains = [proposal.inner.value for proposal in result.proposals]
    assert gains == sorted(gains, reverse=True)
    # the planted judge gains exactly where the skill in the text rose
    best = result.proposals[0]
    parent = next(parent for parent in PARENTS if parent.criteria_id == best.parent_id)
    assert best.criteria.text.split()[0] > parent.text.split()[0]
    assert best.calibration.value > 0


def test_nothing_held_out_is_looked_at() -> None:
    judge = PlantedJudge()
    round_of(judge=judge)
    held_out = {GOLDEN.items[k].item_id for k in SPLIT.held_out}
    assert not held_out & {item_id for _, item_id in judge.seen}
    assert not held_out & judge.drafted_from


def test_sampled_items_are_outside_the_inner_fold() -> None:
    judge = PlantedJudge()
    result = round_of(judge=judge)
    side = LabelledItems.of(GOLDEN, "quality", SPLIT.calibration)
    inner = {GOLDEN.items[int(side.positions[k])].item_id for k in folds_of(side, CHOSEN.seed)[1]}
    assert not inner & judge.drafted_from
    assert {proposal.inner.n for proposal in result.proposals} == {len(inner)}


def test_picks_are_what_the_refiner_sees_and_their_sources_test_nothing() -> None:
    picks = SPLIT.calibration[:3]
    judge = PlantedJudge()
    result = round_of(PARENTS[:1], judge, picks=picks)
    assert judge.drafted_from == {GOLDEN.items[k].item_id for k in picks}
    sizes = {proposal.criteria.provenance.size for proposal in result.proposals}
    assert sizes == {1, 2, 3}  # a size of 4 shows all three
    no_picks = round_of(PARENTS[:1])
    assert result.proposals[0].inner.n <= no_picks.proposals[0].inner.n


def test_held_out_or_unknown_picks_are_refused() -> None:
    for picks in (SPLIT.held_out[:1], (10_000,)):
        with pytest.raises(UsageError, match="aren't labelled calibration items"):
            round_of(picks=picks)
    with pytest.raises(UsageError, match="for testing a proposal"):
        round_of(picks=SPLIT.calibration)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=60), st.integers(1, 20), st.integers(0, 99))
def test_sample_holds_distinct_items(labels: list[int], size: int, seed: int) -> None:
    picks = stratified_sample(np.array(labels, dtype=float), size, np.random.default_rng(seed))
    assert len(set(picks.tolist())) == len(picks) == min(size, len(labels))


def test_sample_covers_the_label_range() -> None:
    # 95 items labelled 5 and five labelled 1..4: with 20 strata of 5 items the lowest one holds all the rare
    # labels, so every sample has exactly one of them; drawing at random would miss them in 36 % of samples.
    labels = np.array([1.0, 2.0, 3.0, 4.0, 1.0] + [5.0] * 95)
    for seed in range(20):
        picks = stratified_sample(labels, 20, np.random.default_rng(seed))
        assert (labels[picks] < 5).sum() == 1
