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
from core.comparison.recheck import Recheck, RecheckSettings, exported_alignment
from core.data.split import KnownTexts, text_digest
from core.errors import JudgeError
from core.judge_files import read_card
from core.records import AspectLabels, GoldenSet
from core.store.codec import pack, unpack

ASPECT = "relevance"
BARE = RecheckSettings(no_criteria=True)
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


def test_what_had_a_label_in_the_older_set_is_no_newer_item(judge_file: Path, newer: Newer) -> None:
    fresh, older = newer(), replace(newer(), name="older")
    labels = replace(older.aspects[ASPECT], values=(3.0,) * 30 + (None,) * (len(older.items) - 30))
    recheck = core.recheck(judge_file, fresh, ASPECT, old=replace(older, aspects={ASPECT: labels}))
    assert recheck.left_out == {"old": 30}
    assert recheck.n_labelled == len(fresh.items) - 30


def test_two_systems_may_say_the_same(judge_file: Path, newer: Newer) -> None:
    fresh = newer()
    first, second = fresh.items[0], fresh.items[1]
    assert (first.source, first.system_id != second.system_id) == (second.source, True)
    same = replace(fresh, items=(first, replace(second, target=first.target), *fresh.items[2:]))
    assert core.recheck(judge_file, same, ASPECT).left_out == {}
    twice = replace(second, target=first.target, system_id=first.system_id)
    recheck = core.recheck(judge_file, replace(fresh, items=(first, twice, *fresh.items[2:])), ASPECT)
    assert recheck.left_out == {"repeated": 1}


def test_calibration_items_are_no_part_of_the_paired_test(
    judge_file: Path, card: dict[str, Any], newer: Newer, golden: GoldenSet, scores: dict[str, float]
) -> None:
    """Before, the scores were turned round on the items that chose the judge: nothing of that is to be seen."""
    fresh, texts = newer(), KnownTexts.from_json(card["texts"])
    labels = replace(fresh.aspects[ASPECT], values=(*fresh.aspects[ASPECT].values, *golden.aspects[ASPECT].values))
    both = replace(fresh, items=(*fresh.items, *golden.items), aspects={ASPECT: labels})
    chose = {item.item_id for item in golden.items if text_digest(item) in texts.calibration}
    before = {name: -value if name in chose else value for name, value in scores.items()}
    recheck = core.recheck(judge_file, both, ASPECT, verdicts=scores, before=before)
    assert recheck.paired is not None
    assert (recheck.paired.n, recheck.paired.value) == (len(fresh.items) + len(golden.items) - len(chose), 0.0)


def test_paired_with_earlier_verdicts(judge_file: Path, newer: Newer, scores: dict[str, float]) -> None:
    """Before: the same scores with the first half turned round, so that the judge aligned worse."""
    fresh = newer()
    now = {item_id: scores[item_id] for item_id in fresh.item_ids}
    before = {name: -value if k < len(now) // 2 else value for k, (name, value) in enumerate(now.items())}
    recheck = core.recheck(judge_file, fresh, ASPECT, verdicts=now, before=before)
    assert recheck.paired is not None
    assert recheck.paired.n == len(fresh.items)
    assert recheck.paired.value is not None
    assert recheck.paired.value > 0
    assert recheck.scores is not None
    assert recheck.scores.distance > 0.4
    alone = core.recheck(judge_file, fresh, ASPECT, verdicts=now, before={"elsewhere": 1.0, "too": 2.0})
    assert alone.paired is None


def test_against_the_judge_without_criteria(judge_file: Path, newer: Newer) -> None:
    bare = core.recheck(judge_file, newer(), ASPECT, settings=BARE)
    assert bare.against is not None
    assert bare.against_name == "the judge without criteria"


def test_unscored_items_are_counted(judge_file: Path, newer: Newer) -> None:
    fresh = newer()
    half = dict(zip(fresh.item_ids, np.linspace(1, 5, len(fresh.items)).tolist(), strict=True))
    half |= dict.fromkeys(fresh.item_ids[:36], float("nan"))
    recheck = core.recheck(judge_file, fresh, ASPECT, verdicts=half)
    assert recheck.now.n_unscored == 36
    assert recheck.unread_share == pytest.approx(36 / len(fresh.items))


@pytest.mark.parametrize("body", [{}, {"alignment": None}, {"alignment": {"held_out": {"statistic": "pearson"}}}])
def test_a_file_without_a_figure(body: dict[str, Any]) -> None:
    with pytest.raises(JudgeError, match="no held-out alignment"):
        exported_alignment(body)


def test_the_exported_figure_of_a_judge_file_and_of_a_fused_one(card: dict[str, Any]) -> None:
    held_out = exported_alignment(card)
    assert held_out.as_json() == card["alignment"]["held_out"]
    assert exported_alignment({"alignment": held_out.as_json()}) == held_out
