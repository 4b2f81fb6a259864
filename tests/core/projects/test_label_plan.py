"""Who rates which items of a labelling pass, and how far judges and raters disagree on them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import UsageError
from core.projects.label_passes import disagreement
from core.projects.labelling import LabelAspect, LabelPlan
from core.records import FloatArray, JudgeScores, Scale

COHERENCE = LabelAspect("coherence", Scale(1, 5, 1.0))


def a_judge(values: list[float], *, up: bool = True) -> JudgeScores:
    return JudgeScores("j", "imported", "a", np.array(values), higher_is_better=up)


@given(
    n_items=st.integers(1, 60),
    n_raters=st.integers(1, 7),
    shared=st.integers(0, 70),
    data=st.data(),
)
def test_every_item_reaches_as_many_raters_as_planned(
    n_items: int, n_raters: int, shared: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(1, n_raters))
    plan = LabelPlan((COHERENCE,), tuple(range(100, 100 + n_items)), n_raters, shared, overlap)
    work = [plan.assigned(seat) for seat in range(n_raters)]
    count = Counter(position for one in work for position in one)
    assert [count[p] for p in plan.positions] == [n_raters if k < shared else overlap for k in range(n_items)]
    assert max(map(len, work)) - min(map(len, work)) <= 1  # nobody has more than one item more than another
    assert all(list(one) == sorted(one) for one in work)  # in the order of the plan
    assert plan.assigned(n_raters) == plan.assigned(0)  # who joins late sits beside an earlier rater


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"aspects": ()}, "at least one aspect"),
        ({"aspects": (COHERENCE, COHERENCE)}, "a name of its own"),
        ({"aspects": (LabelAspect(" ", Scale(1, 5)),)}, "a name of its own"),
        ({"aspects": (LabelAspect("a", Scale(5, 5)),)}, "lower to a higher"),
        ({"n_raters": 0}, "1 to 100 raters"),
        ({"overlap": 4}, "1 to 3 raters"),
        ({"shared": -1}, "0 or more to all"),
    ],
)
def test_plans_that_make_no_sense(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        LabelPlan(**{"aspects": (COHERENCE,), "positions": (0, 1), **changes})  # type: ignore[arg-type]


def test_judges_disagree_by_their_standardised_scores() -> None:
    # Standardised, the first two judges are the same line; the third turns item 3 round: they part there alone.
    judges = [a_judge([1, 2, 3, 4]), a_judge([-10, -20, -30, -40], up=False)]
    assert disagreement(4, judges) == pytest.approx([0, 0, 0, 0])
    judges.append(a_judge([1, 2, 3, -4]))
    assert np.argmax(disagreement(4, judges)) == 3


def test_raters_disagree_by_their_own_labels() -> None:
    ratings: FloatArray = np.array([[1, 2, np.nan, 5], [1, 4, 3, 5.0]])
    spread = disagreement(4, [], ratings)
    # all known values: 1 2 5 1 4 3 5, mean 3, population variance (4+1+4+4+1+0+4)/7 = 18/7; item 1 parts by 2 → sd 1
    assert spread == pytest.approx([0, 1 / np.sqrt(18 / 7), 0, 0])


def test_a_constant_judge_or_one_judge_tells_nothing() -> None:
    assert disagreement(2, [a_judge([3, 3]), a_judge([3, 3])]) == pytest.approx([0, 0])
    with pytest.raises(UsageError, match="at least two judges"):
        disagreement(2, [a_judge([1, 2])])
