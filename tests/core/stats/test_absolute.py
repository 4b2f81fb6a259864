"""core.stats.absolute: errors in points of the scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.errors import UsageError
from core.stats import AbsoluteErrors, absolute_errors

NAN = np.nan


def test_by_hand():
    # gaps +1, -1, +3 on the three items that have both: mean size 5/3, mean 1
    found = absolute_errors([2.0, 1.0, 5.0, NAN, 4.0], [1.0, 2.0, 2.0, 3.0, NAN])
    assert found.mae == pytest.approx(5 / 3)
    assert found.bias == pytest.approx(1.0)
    assert (found.n, found.n_unscored) == (3, 1)


@pytest.mark.parametrize(
    ("scores", "labels", "n_unscored"), [([NAN, NAN], [1.0, 2.0], 2), ([1.0], [NAN], 0), ([], [], 0)]
)
def test_nothing_in_common_is_undefined(scores, labels, n_unscored):
    found = absolute_errors(scores, labels)
    assert found == AbsoluteErrors(None, None, 0, n_unscored)
    assert found.as_json() == {"mae": None, "bias": None, "n": 0, "n_unscored": n_unscored}


def test_infinity_is_refused():
    with pytest.raises(UsageError, match="finite"):
        absolute_errors([np.inf], [1.0])


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 20), st.just(2)), elements=st.floats(-100, 100)))
def test_swapping_flips_the_bias_and_bias_never_exceeds_mae(both):
    there, back = absolute_errors(both[:, 0], both[:, 1]), absolute_errors(both[:, 1], both[:, 0])
    assert (there.mae, there.bias) == pytest.approx((back.mae, -back.bias), abs=1e-9)
    assert abs(there.bias) <= there.mae + 1e-9
