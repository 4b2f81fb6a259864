"""Drafts: stratified exemplars, seeds, deduplication."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.calibration.proposals import distinct, draft_requests, stratified_sample
from core.calibration.settings import PRESETS, CalibrationSettings
from core.judging.base import DraftBatch, Drafted
from core.records import Criteria, Usage
from tests.core.calibration.planted import GOLDEN


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


def test_requests_follow_the_preset() -> None:
    settings = CalibrationSettings(seed=3)
    positions = np.arange(100)
    requests = draft_requests(GOLDEN, GOLDEN.labels("quality")[:100], positions, settings)
    assert len(requests) == PRESETS["summarisation"].n_drafts == 60  # 5 sizes x 4 trials x 3 samples (001, Table 9)
    assert len({r.seed for r in requests}) == 60
    assert {len(r.exemplars) for r in requests} == {4, 6, 8, 10, 12}
    assert {len(r.exemplars) for r in requests[:15]} == {4, 6, 8, 10, 12}  # a cut list still has every size
    first, second = requests[0], requests[1]
    assert first.provenance.item_ids == second.provenance.item_ids  # samples of one trial share their exemplars
    assert first.provenance.item_ids == tuple(e.item.item_id for e in first.exemplars)


def test_requests_depend_on_the_seed_alone() -> None:
    labels, positions = GOLDEN.labels("quality"), np.arange(len(GOLDEN.items))
    once, again, other = (
        draft_requests(GOLDEN, labels, positions, CalibrationSettings(seed=seed)) for seed in (1, 1, 2)
    )
    assert once == again
    assert once != other


def test_distinct_drops_and_counts() -> None:
    texts = ["a rule", "a  rule", "another", None, "known"]
    drafted = tuple(Drafted(None if t is None else Criteria(t, "q"), "empty reply" if t is None else "") for t in texts)
    result = distinct(DraftBatch(drafted, 5, Usage()), known=[Criteria("known", "q").criteria_id])
    assert [one.text for one in result.criteria] == ["a rule", "another"]
    assert result.problems == {"the same text as another draft": 2, "empty reply": 1}
