"""Splits: nothing shared between the sides, seeded, honest refusals."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data import inner_fold, split_sources
from core.errors import AspectError, GoldenError
from core.records import AspectLabels, GoldenSet, Item, Scale


def golden(
    n_sources: int = 10,
    n_systems: int = 4,
    *,
    missing: int = 0,
    given_split: tuple[str, ...] = (),
    value: float | None = None,
) -> GoldenSet:
    """n_sources × n_systems items; the first `missing` sources have no labels on "x"; "flat" is 3 everywhere."""
    items = tuple(
        Item(f"s{s}-m{m}", "text", source_id=f"s{s}", system_id=f"m{m}" if n_systems > 1 else "")
        for s in range(n_sources)
        for m in range(n_systems)
    )
    values = tuple(None if i // n_systems < missing else float(i % 5 + 1) for i in range(len(items)))
    aspects = {
        "x": AspectLabels("x", Scale(1, 5, 1), values),
        "flat": AspectLabels("flat", Scale(1, 5, 1), tuple(3.0 for _ in items)),
        "one": AspectLabels("one", Scale(1, 5, 1), (2.0, *([None] * (len(items) - 1)))),
        "two": AspectLabels("two", Scale(1, 5, 1), (2.0, *([None] * (len(items) - 2)), 3.0)),
    }
    return GoldenSet("made", "source_target", items, aspects, given_split=given_split)


def sources(of: GoldenSet, positions: tuple[int, ...]) -> set[str]:
    return {of.items[p].source_id for p in positions}


def systems(of: GoldenSet, positions: tuple[int, ...]) -> set[str]:
    return {of.items[p].system_id for p in positions}


@given(st.integers(2, 12), st.integers(2, 5), st.floats(0.05, 0.95), st.integers(0, 2**32))
def test_by_source_everything_labelled_is_on_exactly_one_side(n: int, m: int, fraction: float, seed: int) -> None:
    of = golden(n, m)
    split = split_sources(of, aspect="x", fraction=fraction, seed=seed)
    assert sorted(split.calibration + split.held_out) == list(range(n * m))
    assert not sources(of, split.calibration) & sources(of, split.held_out)
    # round(fraction · n) sources calibrate, but at least one on each side
    assert len(sources(of, split.calibration)) == min(max(round(fraction * n), 1), n - 1)
    assert split == split_sources(of, aspect="x", fraction=fraction, seed=seed)


@given(st.integers(4, 12), st.integers(4, 6), st.integers(0, 1000))
def test_by_source_and_system_neither_is_shared(n: int, m: int, seed: int) -> None:
    of = golden(n, m)
    split = split_sources(of, aspect="x", seed=seed, kind="sources+systems")
    assert not sources(of, split.calibration) & sources(of, split.held_out)
    assert not systems(of, split.calibration) & systems(of, split.held_out)
    assert len(systems(of, split.held_out)) == m - round(m / 2)
    assert len(split.calibration) + len(split.held_out) + split.dropped == n * m


def test_unlabelled_items_and_their_sources_take_no_part() -> None:
    of = golden(10, 4, missing=4)
    split = split_sources(of, aspect="x")
    assert sources(of, split.calibration + split.held_out) == {f"s{s}" for s in range(4, 10)}
    assert len(sources(of, split.calibration)) == 3
    assert list(split.calibration) == sorted(split.calibration)
    assert split_sources(of, aspect="x", seed=1) != split


@pytest.mark.parametrize(
    ("aspect", "message"),
    [
        ("style", "no aspect 'style'; it has x, flat, one, two"),
        ("one", r"has 1 label\(s\); at least 2"),
        ("flat", "All 40 labels of 'flat' are 3"),
        ("two", r"would have 1 label\(s\) to calibrate on and 1 held out"),
    ],
)
def test_aspects_that_cannot_be_used_say_why_and_what_to_do(aspect: str, message: str) -> None:
    with pytest.raises(AspectError, match=message):
        split_sources(golden(), aspect=aspect)


def test_too_few_sources_or_systems_are_refused() -> None:
    with pytest.raises(GoldenError, match="the sources labelled on 'x', 1 came"):
        split_sources(golden(1, 8), aspect="x")
    with pytest.raises(GoldenError, match="needs a system_id"):
        split_sources(golden(20, 1), aspect="x", kind="sources+systems")
    items = tuple(Item(f"i{i}", "t", source_id=f"s{i}", system_id="only") for i in range(8))
    labels = AspectLabels("x", Scale(1, 5), (1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0, 3.0))
    one_system = GoldenSet("made", "single", items, {"x": labels})
    with pytest.raises(GoldenError, match="the systems labelled on 'x', 1 came"):
        split_sources(one_system, aspect="x", kind="sources+systems")


def test_the_split_column_is_followed_when_asked_for() -> None:
    sides = tuple(["train"] * 4 + ["dev"] * 4 + ["Test"] * 8 + ["unused"] * 4)
    of = golden(5, 4, given_split=sides)
    split = split_sources(of, aspect="x", given=True)
    assert split.calibration == tuple(range(8))
    assert split.held_out == tuple(range(8, 16))
    assert split.dropped == 4


@pytest.mark.parametrize(
    ("sides", "kind", "message"),
    [
        ((), "sources", "no split column"),
        (("train", "test") * 10, "sources", "source 's0' is on both sides"),
        (("train",) * 8 + ("test",) * 12, "sources+systems", "system 'm0' is on both sides"),
        (("left",) * 20, "sources", "0 label"),
    ],
)
def test_unusable_split_columns_are_refused(
    sides: tuple[str, ...], kind: Literal["sources", "sources+systems"], message: str
) -> None:
    with pytest.raises(GoldenError, match=message):
        split_sources(golden(5, 4, given_split=sides), aspect="x", given=True, kind=kind)


@given(st.lists(st.integers(0, 9), min_size=4, max_size=60), st.floats(0.1, 0.9), st.integers(0, 99))
def test_inner_folds_share_no_source_and_lose_nothing(codes: list[int], fraction: float, seed: int) -> None:
    array = np.array(codes, dtype=np.intp)
    positions = list(range(1, len(codes)))
    if len(set(codes[1:])) < 2:
        with pytest.raises(GoldenError, match="At least 2"):
            inner_fold(positions, array, fraction, seed)
        return
    fit, validation = fold = inner_fold(positions, array, fraction, seed)
    assert sorted(fit + validation) == positions
    assert not {codes[p] for p in fit} & {codes[p] for p in validation}
    assert fit
    assert validation
    assert fold == inner_fold(positions[::-1], array, fraction, seed)
