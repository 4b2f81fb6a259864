"""Scored, or left out in words; kept in a folder or a store: computed once for the same texts, words and weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import JudgeError
from core.judging.judge_protocol import OnProgress
from core.metrics import Metric, MetricScores, kept, make_metric, score_or_reason
from core.metrics.base import BLOCK, Blocks
from core.records import Item, Unscored
from core.store.store import Store
from tests.core.metrics.conftest import ITEMS as FOUR

NAN = float("nan")


def made(name: str, compute: Callable[[Sequence[Item]], object]) -> Metric:
    def scorer(items: Sequence[Item], on_progress: OnProgress) -> MetricScores:
        numbers = np.array(compute(items), dtype=float)
        on_progress(len(items), len(items))
        return MetricScores(numbers)

    return Metric(name, "A number for tests.", frozenset(), "none", scorer)


def crash(items: Sequence[Item]) -> object:
    raise KeyError("no\nsuch <b>thing</b>")


def refuse(items: Sequence[Item]) -> object:
    raise JudgeError("The model x could not be read.")


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (made("crashes", crash), "it failed: KeyError: 'no\\nsuch <b>thing</b>'"),
        (made("refuses", refuse), "The model x could not be read."),
        (
            made("all NaN", lambda items: [NAN] * 4),
            "it didn't score any of the 4 items (first problem: The metric didn't return a finite number.)",
        ),
        (made("constant", lambda items: [0.5] * 4), "it gave the same score, 0.5, to all 4 items that it scored"),
        (
            made("one only", lambda items: [NAN, 2.0, NAN, NAN]),
            "it scored only 1 of the 4 items; at least 2 are required",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Metric) else "",
)
def test_what_cannot_serve_is_left_out_in_words(metric, reason):
    assert score_or_reason(metric, FOUR) == reason


# ── kept ─────────────────────────────────────────────────────────────────────────────────────────────────────

ITEMS = tuple(Item(f"i{k}", f"red {k}", "s", source="red green" if k else "") for k in range(BLOCK + 50))


class Counted:
    """A metric that counts the items it was asked for."""

    def __init__(self, name: str = "overlap", **changes: Any) -> None:
        self.asked: list[int] = []
        inner = make_metric(name)

        def scorer(items: Sequence[Item], on_progress: Any) -> MetricScores:
            self.asked.append(len(items))
            return inner.scorer(items, on_progress)

        self.metric = replace(inner, scorer=scorer, **changes)


@pytest.fixture
def blocks(tmp_path: Path) -> Iterator[Blocks]:
    with Store(f"sqlite:///{tmp_path / 'concord.sqlite'}") as store:
        yield store.blocks


class Memory(dict[str, str]):
    """Blocks in memory."""

    put = dict.__setitem__


def test_the_second_time_nothing_is_computed_and_all_is_equal(blocks):
    counted = Counted()
    seen: list[tuple[int, int]] = []
    first = kept(counted.metric, blocks).score(ITEMS, lambda done, asked: seen.append((done, asked)))
    assert counted.asked == [BLOCK, 50]
    assert seen == sorted(seen)
    assert seen[-1] == (len(ITEMS), len(ITEMS))
    plain = make_metric("overlap").score(ITEMS)
    np.testing.assert_array_equal(first.values, plain.values)
    assert first.unscored == plain.unscored == (Unscored("i0", "missing input", "The item has no source."),)
    second = kept(counted.metric, blocks).score(ITEMS)
    assert counted.asked == [BLOCK, 50]
    np.testing.assert_array_equal(second.values, first.values)
    assert second.unscored == first.unscored
    assert kept(counted.metric, blocks).score(()).values.shape == (0,)


def test_a_damaged_block_is_computed_again():
    counted, memory = Counted(), Memory()
    first = kept(counted.metric, memory).score(ITEMS[:3])
    (key,) = memory
    for damage in ("", "[]", '{"values": [1.0], "unscored": [], "note": ""}', '{"values": ["x", 1, 2]}'):
        memory[key] = damage
        np.testing.assert_array_equal(kept(counted.metric, memory).score(ITEMS[:3]).values, first.values)
    assert counted.asked == [3] * 5


def test_what_fails_is_not_kept():
    def broken(items: Sequence[Item], on_progress: Any) -> MetricScores:
        raise RuntimeError("no")

    memory = Memory()
    with pytest.raises(RuntimeError):
        kept(replace(make_metric("overlap"), scorer=broken), memory).score(ITEMS[:3])
    assert not memory


@pytest.mark.slow
def test_new_weights_in_the_same_folder_are_other_weights(nli_model, tmp_path):
    import shutil

    folder = tmp_path / "model"
    shutil.copytree(nli_model, folder)
    counted, memory = Counted(f"nli:{folder}"), Memory()
    for _ in range(2):
        kept(counted.metric, memory).score(ITEMS[1:3])
    assert counted.asked == [2]
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\x00\x00\x80\x3f")
    kept(counted.metric, memory).score(ITEMS[1:3])
    assert counted.asked == [2, 2]
