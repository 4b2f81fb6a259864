"""A golden set that grows: known sources keep their side of the split, by their texts; what it adds, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from core.data import grown_split, split_sources
from core.errors import GoldenError
from core.records import AspectLabels, GoldenSet, Item, Scale, Split


def golden(
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
    old = golden(OLD)
    before = split_sources(old, aspect="x", fraction=fraction, seed=seed)
    fresh = [f"new {k}" for k in range(n_new)]
    grew = golden([*fresh, *kept], prefix="other", systems=3)  # other ids, another order, one more system
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
    old = golden(OLD, systems=4)
    before = split_sources(old, aspect="x", kind="sources+systems")
    grew = golden([*OLD, "new 1", "new 2"], systems=6)
    after = grown_split(before, old, grew, aspect="x")

    def names(of: GoldenSet, positions: tuple[int, ...]) -> set[str]:
        return {of.items[k].system_id for k in positions}

    assert names(grew, after.calibration) >= names(old, before.calibration)
    assert names(grew, after.held_out) >= names(old, before.held_out)
    assert not names(grew, after.calibration) & names(grew, after.held_out)
    assert {"m4", "m5"} <= names(grew, after.calibration + after.held_out)
    assert len(after.calibration) + len(after.held_out) + after.dropped == len(grew.items)


@pytest.mark.parametrize("form", ["twice", "merged"])
def test_a_source_whose_text_is_on_both_sides_is_refused(form: Literal["twice", "merged"]) -> None:
    old = golden(["same", "same", "b", "c"])
    before = Split((0, 1, 4, 5), (2, 3, 6, 7), "sources", 0)  # as the ids say: s0 and s2 calibrate
    kept = grown_split(before, old, golden(["same", "same", "b", "c", "d"]), aspect="x")
    assert set(before.calibration) <= set(kept.calibration)  # under their ids they stay where they were
    assert set(before.held_out) <= set(kept.held_out)
    grew = golden(["same", "b", "c"], prefix="t")
    if form == "merged":  # b calibrates, c is held out, and one source now holds both
        grew = golden(["b", "c", "d"], prefix="t")
        items = tuple(replace(item, source_id="t0") if item.source == "c" else item for item in grew.items)
        grew = replace(grew, items=items)
    with pytest.raises(GoldenError, match="'t0' was on both sides"):
        grown_split(before, old, grew, aspect="x")
