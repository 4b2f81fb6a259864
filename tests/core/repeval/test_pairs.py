"""Pairs: who is good, who is bad, and that no text comes twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import AspectError, UsageError
from core.repeval.pairs import PairRule, Pairs, choose_pairs, thresholds


def chosen(
    labels: list[float], rule: PairRule, texts: list[str] | None = None, sources: list[int] | None = None
) -> Pairs:
    n = len(labels)
    return choose_pairs(
        np.array(labels),
        np.arange(n),
        texts or [f"t{k}" for k in range(n)],
        np.array(sources or [0] * n),
        rule=rule,
        generator=np.random.default_rng(0),
    )


def test_thresholds_decide_who_is_good_and_bad() -> None:
    labels = [1.0, 1, 2, 2, 3, 3, 3]
    pairs = chosen(labels, PairRule(n=20, good=3, bad=1))
    assert set(pairs.good.tolist()) <= {4, 5, 6}
    assert set(pairs.bad.tolist()) == {0, 1}
    assert pairs.n == 2
    assert pairs.shortage() == "20 pairs were asked for, the training labels gave 2."


def test_quantiles_take_the_best_and_worst_share() -> None:
    pairs = chosen([float(k) for k in range(101)], PairRule(n=20, quantile=0.2))  # 20th and 80th percentile of 0..100
    assert (pairs.good_from, pairs.bad_to) == (80.0, 20.0)
    assert pairs.n == 20
    assert pairs.shortage() == ""
    assert pairs.good.min() >= 80
    assert pairs.bad.max() <= 20


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([1, 5, 5, 5, 5, 5, 5, 5, 5, 5], (5, 1)),  # nine of ten are 5: bad is what lies below
        ([0, 0, 0, 0, 0, 0, 0, 0, 0, 1], (1, 0)),  # nine of ten are 0: good is what lies above
        ([0, 0, 0, 1, 1, 1], (1, 0)),
    ],
)
def test_ties_on_both_quantiles_still_leave_two_sides(labels: list[float], expected: tuple[float, float]) -> None:
    assert thresholds(np.array(labels, dtype=float), PairRule()) == expected


@given(st.lists(st.integers(1, 4), min_size=6, max_size=40), st.booleans(), st.integers(0, 5))
def test_no_text_twice_and_good_above_bad(labels: list[int], within: bool, repeated: int) -> None:
    texts = [f"t{k % (len(labels) - repeated)}" for k in range(len(labels))]
    sources = [k // 4 for k in range(len(labels))]
    try:
        pairs = chosen([float(x) for x in labels], PairRule(n=10, within_source=within), texts, sources)
    except AspectError:
        return
    used = [texts[k] for k in (*pairs.good.tolist(), *pairs.bad.tolist())]
    assert len(set(used)) == len(used)
    assert all(labels[g] > labels[b] for g, b in zip(pairs.good, pairs.bad, strict=True))
    if within:
        assert all(sources[g] == sources[b] for g, b in zip(pairs.good, pairs.bad, strict=True))


def test_pairs_within_a_source_take_the_widest_gaps() -> None:
    # source 0 gives (5, 1) and (3, 2), source 1 gives (4, 1.5) and none of its equal ones
    pairs = chosen([1, 5, 2, 3, 4, 1.5, 2, 2], PairRule(n=2, within_source=True), sources=[0, 0, 0, 0, 1, 1, 1, 1])
    assert list(zip(pairs.good.tolist(), pairs.bad.tolist(), strict=True)) == [(1, 0), (4, 5)]


def test_reused_texts_make_distinct_pairs() -> None:
    pairs = chosen([0.0] * 5 + [1.0] * 4, PairRule(n=100, reuse=True))
    found = set(zip(pairs.good.tolist(), pairs.bad.tolist(), strict=True))
    assert len(found) == pairs.n == 20  # 4 x 5 and no more
    assert "gave 20" in pairs.shortage()


def test_one_label_only_is_told() -> None:
    with pytest.raises(AspectError, match="all equal 2"):
        chosen([2.0] * 10, PairRule())
    with pytest.raises(AspectError, match=r"Only 1 pair"):
        chosen([1.0, 1.0, 1.0, 3.0], PairRule(good=3, bad=1))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"n": 1}, "At least 2"),
        ({"quantile": 0.6}, "between"),
        ({"good": 1.0}, "both"),
        ({"good": 1, "bad": 2}, "above"),
    ],
)
def test_wrong_rules_are_refused(wrong: dict[str, float], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        PairRule(**wrong)  # type: ignore[arg-type]
