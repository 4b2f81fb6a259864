"""Splits: nothing shared between the sides, seeded, honest refusals; known sources keep their side in a newer set."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from core.data import grown_split, inner_fold, split_sources
from core.errors import AspectError, GoldenError
from core.records import AspectLabels, GoldenSet, Item, Scale, Split


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
        ("style", "no aspect 'style'. Its aspects are: x, flat, one, two"),
        ("one", r"needs at least 2 labels .* it has 1"),
        ("flat", "All 40 labels for 'flat' are 3"),
        ("two", "1 calibration label and 1 held-out label."),
    ],
)
def test_aspects_that_cannot_be_used_say_why_and_what_to_do(aspect: str, message: str) -> None:
    with pytest.raises(AspectError, match=message):
        split_sources(golden(), aspect=aspect)


def test_too_few_sources_or_systems_are_refused() -> None:
    with pytest.raises(GoldenError, match=r"the sources labelled on 'x': .* got 1"):
        split_sources(golden(1, 8), aspect="x")
    with pytest.raises(GoldenError, match="needs a system_id"):
        split_sources(golden(20, 1), aspect="x", kind="sources+systems")
    items = tuple(Item(f"i{i}", "t", source_id=f"s{i}", system_id="only") for i in range(8))
    labels = AspectLabels("x", Scale(1, 5), (1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0, 3.0))
    one_system = GoldenSet("made", "single", items, {"x": labels})
    with pytest.raises(GoldenError, match=r"the systems labelled on 'x': .* got 1"):
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
        (("train", "test") * 10, "sources", "source 's0' is in both"),
        (("train",) * 8 + ("test",) * 12, "sources+systems", "system 'm0' is in both"),
        (("left",) * 20, "sources", "0 calibration label"),
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
        with pytest.raises(GoldenError, match="at least 2"):
            inner_fold(positions, array, fraction, seed)
        return
    fit, validation = fold = inner_fold(positions, array, fraction, seed)
    assert sorted(fit + validation) == positions
    assert not {codes[p] for p in fit} & {codes[p] for p in validation}
    assert fit
    assert validation
    assert fold == inner_fold(positions[::-1], array, fraction, seed)


# ── a set that grows ─────────────────────────────────────────────────────────────────────────────────────────


def grown(
    texts: list[str], *, systems: int = 2, prefix: str = "s", labelled: int | None = None, sourced: bool = True
) -> GoldenSet:
    """A source of each text, each with an item of every system; labels 1 to 5 in turn on the first `labelled`."""
    items = tuple(
        Item(f"{prefix}{k}-m{m}", f"about {text} by {m}", f"{prefix}{k}", f"m{m}", source=text if sourced else "")
        for k, text in enumerate(texts)
        for m in range(systems)
    )
    n = len(items) if labelled is None else labelled
    values = tuple(float(k % 5 + 1) if k < n else None for k in range(len(items)))
    return GoldenSet("made", "source_target", items, {"x": AspectLabels("x", Scale(1, 5, 1), values)})


def sides(of: GoldenSet, split: Split) -> tuple[set[str], set[str]]:
    """The texts of the sources on each side."""
    calibration, held_out = ({of.items[k].source for k in part} for part in (split.calibration, split.held_out))
    return calibration, held_out


OLD = [f"old {k}" for k in range(6)]


@given(
    kept=st.lists(st.sampled_from(OLD), unique=True, min_size=2),
    n_new=st.integers(0, 6),
    fraction=st.floats(0.1, 0.9),
    seed=st.integers(0, 2**32),
)
def test_no_known_source_changes_its_side_and_new_ones_come_to_both(
    kept: list[str], n_new: int, fraction: float, seed: int
) -> None:
    old = grown(OLD)
    before = split_sources(old, aspect="x", fraction=fraction, seed=seed)
    fresh = [f"new {k}" for k in range(n_new)]
    grew = grown([*fresh, *kept], prefix="other", systems=3)  # other ids, another order, one more system
    calibrating, held_out = sides(old, before)
    if not {*fresh[1:], *(calibrating & {*kept})} or not {*fresh[1:], *(held_out & {*kept})}:
        reject()  # nothing would be left on one side: refused as any such split
    after = grown_split(before, old, grew, aspect="x", fraction=fraction)
    now_calibrating, now_held_out = sides(grew, after)
    assert now_calibrating & {*OLD} == calibrating & {*kept}
    assert now_held_out & {*OLD} == held_out & {*kept}
    assert sorted(after.calibration + after.held_out) == list(range(len(grew.items)))
    if n_new > 1:
        assert len(now_calibrating & {*fresh}) == min(max(round(fraction * n_new), 1), n_new - 1)
    assert after == grown_split(before, old, grew, aspect="x", fraction=fraction)
    assert (after.kind, after.seed) == ("sources", seed)


def test_known_systems_keep_their_side_too() -> None:
    old = grown(OLD, systems=4)
    before = split_sources(old, aspect="x", kind="sources+systems")
    grew = grown([*OLD, "new 1", "new 2"], systems=6)
    after = grown_split(before, old, grew, aspect="x")

    def names(of: GoldenSet, positions: tuple[int, ...]) -> set[str]:
        return {of.items[k].system_id for k in positions}

    assert names(grew, after.calibration) >= names(old, before.calibration)
    assert names(grew, after.held_out) >= names(old, before.held_out)
    assert not names(grew, after.calibration) & names(grew, after.held_out)
    assert {"m4", "m5"} <= names(grew, after.calibration + after.held_out)
    assert len(after.calibration) + len(after.held_out) + after.dropped == len(grew.items)


def test_a_source_whose_text_is_on_both_sides_is_refused() -> None:
    old = grown(["same", "same", "b", "c"])
    before = Split((0, 1, 4, 5), (2, 3, 6, 7), "sources", 0)  # as the ids say: s0 and s2 calibrate
    kept = grown_split(before, old, grown(["same", "same", "b", "c", "d"]), aspect="x")
    assert set(before.calibration) <= set(kept.calibration)  # under their ids they stay where they were
    assert set(before.held_out) <= set(kept.held_out)
    with pytest.raises(GoldenError, match="'t0' is in both"):
        grown_split(before, old, grown(["same", "b", "c"], prefix="t"), aspect="x")
