"""Criteria, their edits and alignments; judges, their scores and replies."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from core.errors import ConflictError, NotFoundError
from core.records import Criteria, GoldenSet, JudgeScores, Provenance, Unscored
from core.store.store import Store

PARENT = Criteria("reward \x00 order", "coherence", Provenance("draft", 0, item_ids=("a", "b"), size=2, note="n"))


def _edit(text: str, author: str) -> Criteria:
    return Criteria(text, "coherence", Provenance("edit", parents=(PARENT.criteria_id,), author=author))


@pytest.fixture
def shelf(store: Store, project: str) -> Store:
    store.criteria.add(project, "golden:x", [PARENT])
    return store


def test_a_conflict_carries_both_texts_and_stores_nothing(shelf: Store, project: str) -> None:
    parent = PARENT.criteria_id
    first = shelf.criteria.save_edit(project, parent, _edit("Ann's", "Ann"), parent)
    with pytest.raises(ConflictError, match="Ann saved another edit") as caught:
        shelf.criteria.save_edit(project, parent, _edit("Ben's", "Ben"), parent)
    assert caught.value.theirs == "Ann's"
    assert shelf.criteria.get(project, parent).edits == (first,)
    with pytest.raises(NotFoundError):
        shelf.criteria.get(project, _edit("Ben's", "Ben").criteria_id)
    second = shelf.criteria.save_edit(project, parent, _edit("Ben's", "Ben"), first)
    assert shelf.criteria.get(project, parent).edits == (first, second)


def test_of_two_that_save_at_once_one_wins(shelf: Store, project: str) -> None:
    def save(text: str) -> str:
        try:
            return shelf.criteria.save_edit(project, PARENT.criteria_id, _edit(text, text), PARENT.criteria_id)
        except ConflictError:
            return "conflict"

    texts = [f"edit {k}" for k in range(6)]
    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(save, texts))
    assert outcomes.count("conflict") == 5
    assert len(shelf.criteria.get(project, PARENT.criteria_id).edits) == 1


# ── judges ───────────────────────────────────────────────────────────────────────────────────────────────────

VALUES = np.array([0.1 + 0.2, np.nan, 1e-300, -5.0])
JUDGE = JudgeScores(
    "gpt \x00 <b>4</b>",
    "imported",
    "coherence",
    VALUES,
    (Unscored("b", "refused", "no", ("I cannot \x00 judge",)),),
    seen=(0, 2),
    on_scale=False,
    higher_is_better=False,
    note="from a file",
    calls_per_item=2.5,
)


@pytest.fixture
def golden_id(store: Store, project: str, golden: GoldenSet) -> str:
    return store.goldens.add(project, golden)


def test_a_judge_comes_back_as_it_went_in(store: Store, project: str, golden_id: str) -> None:
    judge_id = store.judges.add(project, golden_id, JUDGE)
    row = store.judges.get(project, judge_id)
    assert np.array_equal(row.judge.values, VALUES, equal_nan=True)
    assert replace(row.judge, values=VALUES) == JUDGE
    assert (row.golden_id, row.judge_id) == (golden_id, judge_id)
    assert row.judge.n_scored == 3
    assert row.judge.upward[3] == 5.0
