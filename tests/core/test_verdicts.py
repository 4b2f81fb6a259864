"""Verdicts: a score for each item or the reason why there is none; what could not be read is never a number."""

from __future__ import annotations

import math
import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.records import Scored, Unscored
from core.verdicts import Reading, Verdicts, mean_verdict

SCORES = st.dictionaries(st.text(min_size=1, max_size=4), st.floats(-5, 5) | st.just(math.nan), max_size=8)


@given(SCORES)
def test_bare_numbers_come_back(scores: dict[str, float]) -> None:
    verdicts = Verdicts.of_scores(scores)
    np.testing.assert_array_equal(verdicts.values, list(scores.values()))
    np.testing.assert_array_equal(verdicts.aligned(list(scores)), verdicts.values)
    assert [verdict.item_id for verdict in verdicts] == list(scores) == list(verdicts.by_id)
    assert len(verdicts.unscored) == sum(map(math.isnan, scores.values()))


def test_another_order_and_other_items() -> None:
    verdicts = Verdicts([Scored("a", 2.0, "why"), Unscored("b", "refused", "in words", ("No.",))])
    np.testing.assert_array_equal(verdicts.aligned(["c", "b", "a", "a"]), [np.nan, np.nan, 2.0, 2.0])
    assert verdicts.unscored == (Unscored("b", "refused", "in words", ("No.",)),)
    assert verdicts.by_id["a"] == verdicts[0] == Scored("a", 2.0, "why")
    assert pickle.loads(pickle.dumps(verdicts)) == verdicts  # processes hand them on
    assert (len(Verdicts()), Verdicts().values.shape) == (0, (0,))


def test_the_mean_of_what_was_read() -> None:
    """By hand: (2 + 5) / 2 = 3.5 of two of the three replies."""
    readings = [Reading(2.0), Reading(None, "refused"), Reading(5.0)]
    assert mean_verdict("a", readings, explanation="why", raw=("2", "no", "5")) == Scored(
        "a", 3.5, "why", ("2", "no", "5"), n_read=2, n_unread=1
    )
