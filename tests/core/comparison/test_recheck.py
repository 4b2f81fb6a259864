"""Rechecks of a real offline judge: on its own items, on labels as good, on labels that mean nothing, on few."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import core
from core.comparison.recheck import Recheck, exported_alignment
from core.judge_files import read_card
from core.records import AspectLabels, GoldenSet
from core.store.database import pack, unpack

ASPECT = "relevance"
Newer = Callable[..., GoldenSet]


@pytest.fixture(scope="module")
def golden(repository: Path) -> GoldenSet:
    return core.load_golden(repository / "sample_data" / "summaries.jsonl")


@pytest.fixture(scope="module")
def newer(golden: GoldenSet) -> Newer:
    """`newer(noise)`: the same sources with other targets and labels; with `noise` 1 the labels mean nothing."""

    def make(noise: float = 0.0) -> GoldenSet:
        rng = np.random.default_rng(0)
        items = tuple(
            replace(item, item_id=f"new-{item.item_id}", target=f"{item.target} That was all.") for item in golden.items
        )
        labels = golden.labels(ASPECT)
        mixed = np.where(rng.random(labels.size) < noise, rng.permutation(labels), labels)
        aspect = AspectLabels(ASPECT, golden.aspects[ASPECT].scale, tuple(mixed.tolist()))
        return GoldenSet("newer", golden.kind, items, {ASPECT: aspect})

    return make


@pytest.fixture(scope="module")
def card(judge_file: Path) -> dict[str, Any]:
    return read_card(judge_file)


@pytest.fixture(scope="module")
def scores(judge_file: Path, golden: GoldenSet, newer: Newer) -> dict[str, float]:
    """The judge's scores of its own items and of newer ones."""
    verdicts = core.load_judge(judge_file).score((*golden.items, *newer().items))
    return dict(zip(verdicts.by_id, verdicts.values.tolist(), strict=True))


def test_verdicts_instead_of_the_judge_and_the_json(judge_file: Path, newer: Newer, scores: dict[str, float]) -> None:
    fresh = newer(0.2)
    direct = core.recheck(judge_file, fresh, ASPECT)
    assert core.recheck(judge_file, fresh, ASPECT, verdicts=scores) == direct
    body = json.loads(json.dumps(direct.as_json(), allow_nan=False))
    assert body["now"]["value"] == direct.now.value
    assert " sources, t(" in body["then"]["interval_method"]
    assert body["unread_share"] == 0.0
    assert unpack(Recheck, pack(direct)) == direct


def test_two_systems_may_say_the_same(judge_file: Path, newer: Newer) -> None:
    fresh = newer()
    first, second = fresh.items[0], fresh.items[1]
    assert (first.source, first.system_id != second.system_id) == (second.source, True)
    same = replace(fresh, items=(first, replace(second, target=first.target), *fresh.items[2:]))
    assert core.recheck(judge_file, same, ASPECT).left_out == {}
    twice = replace(second, target=first.target, system_id=first.system_id)
    recheck = core.recheck(judge_file, replace(fresh, items=(first, twice, *fresh.items[2:])), ASPECT)
    assert recheck.left_out == {"repeated": 1}


def test_unscored_items_are_counted(judge_file: Path, newer: Newer) -> None:
    fresh = newer()
    half = dict(zip(fresh.item_ids, np.linspace(1, 5, len(fresh.items)).tolist(), strict=True))
    half |= dict.fromkeys(fresh.item_ids[:36], float("nan"))
    recheck = core.recheck(judge_file, fresh, ASPECT, verdicts=half)
    assert recheck.now.n_unscored == 36
    assert recheck.unread_share == pytest.approx(36 / len(fresh.items))


def test_the_exported_figure_of_a_judge_file_and_of_a_fused_one(card: dict[str, Any]) -> None:
    held_out = exported_alignment(card)
    assert held_out.as_json() == card["alignment"]["held_out"]
    assert exported_alignment({"alignment": held_out.as_json()}) == held_out
