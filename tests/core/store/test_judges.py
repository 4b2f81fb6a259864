from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.errors import NotFoundError, StoreError
from core.records import GoldenSet, JudgeScores, Unscored
from core.store.judges import judge_id_of
from core.store.store import Store

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


def test_the_same_judge_twice_is_one_whatever_its_name(store: Store, project: str, golden_id: str) -> None:
    first = store.judges.add(project, golden_id, JUDGE, {"a": ["3"]})
    assert store.judges.add(project, golden_id, replace(JUDGE, name="again")) == first
    (row,) = store.judges.all(project)
    assert row.judge.name == JUDGE.name
    assert store.judges.replies(project, first) == {"a": ("3",)}


@pytest.mark.parametrize(
    "other",
    [
        replace(JUDGE, values=np.array([0.0, np.nan, 1e-300, -5.0])),
        replace(JUDGE, aspect="é"),
        replace(JUDGE, kind="style"),
        replace(JUDGE, seen=()),
        replace(JUDGE, run_id="r2"),
    ],
)
def test_what_differs_is_another_judge(other: JudgeScores) -> None:
    assert judge_id_of("g", other) != judge_id_of("g", JUDGE)


def test_listing_by_golden_set_and_aspect(store: Store, project: str, golden_id: str) -> None:
    one = store.judges.add(project, golden_id, JUDGE)
    two = store.judges.add(project, golden_id, replace(JUDGE, aspect="é"))
    assert [row.judge_id for row in store.judges.all(project)] == [one, two]
    assert [row.judge_id for row in store.judges.all(project, golden_id, "é")] == [two]
    assert store.judges.all(project, "golden:other") == []
    assert store.judges.all("other") == []


def test_judges_entered_one_right_after_another_are_listed_in_that_order(
    store: Store, project: str, golden_id: str
) -> None:
    entered = [store.judges.add(project, golden_id, replace(JUDGE, seen=(n,))) for n in range(40)]
    assert [entry.judge_id for entry in store.judges.all(project)] == entered


def test_replies_survive_and_are_only_read_on_demand(store: Store, project: str, golden_id: str) -> None:
    replies = {"a": ("Score: 5\x00", "🙂"), "ä": ("",)}
    judge_id = store.judges.add(project, golden_id, JUDGE, replies)
    assert store.judges.replies(project, judge_id) == replies
    silent = store.judges.add(project, golden_id, replace(JUDGE, aspect="é"))
    assert store.judges.replies(project, silent) == {}


def test_rename_and_remove(store: Store, project: str, golden_id: str) -> None:
    judge_id = store.judges.add(project, golden_id, JUDGE)
    store.judges.rename(project, judge_id, "new")
    assert store.judges.get(project, judge_id).judge.name == "new"
    store.judges.remove(project, judge_id)
    store.judges.remove(project, judge_id)
    with pytest.raises(NotFoundError, match="may have been removed"):
        store.judges.get(project, judge_id)
    with pytest.raises(NotFoundError):
        store.judges.rename(project, judge_id, "newer")
    with pytest.raises(NotFoundError):
        store.judges.replies(project, judge_id)


def test_scores_of_another_length_are_refused(store: Store, project: str, golden_id: str) -> None:
    with pytest.raises(StoreError, match="5 scores and its golden set 4 items"):
        store.judges.add(project, golden_id, replace(JUDGE, values=np.zeros(5)))
