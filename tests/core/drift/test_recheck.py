"""Rechecks of a real offline judge: on its own items, on labels as good, on labels that mean nothing, on few."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import core
from core.calibration.records import Calibration
from core.drift.outcome import Recheck
from core.drift.recheck import NO_CRITERIA, Asked, exported_alignment, recheck_scores
from core.errors import GoldenError, JudgeError
from core.export import judge_card
from core.records import GoldenSet
from core.store.codec import pack, unpack

ASPECT = "relevance"
Newer = Callable[..., GoldenSet]


def test_the_very_items_of_its_export_are_no_newer_ones(judge_file: Path, golden: GoldenSet) -> None:
    with pytest.raises(GoldenError, match=r"no newer labels of 'relevance'.* 72 served to choose the judge, 72"):
        core.recheck(judge_file, golden, ASPECT)


def test_labels_that_mean_nothing_are_a_fall(judge_file: Path, newer: Newer, golden: GoldenSet) -> None:
    found = core.recheck(judge_file, newer(1.0), ASPECT, old=golden)
    assert found.decision == "fallen"
    assert found.change.p is not None
    assert found.change.p < 0.05
    assert found.change.interval is not None
    assert found.change.interval.high < 0
    assert found.words.startswith("The alignment has fallen: down by 0.")
    assert found.labels is not None
    assert found.labels.distance == 0  # the same labels in another order


def test_as_good_as_before_with_a_fall_that_these_items_can_tell(judge_file: Path, newer: Newer) -> None:
    wide = core.recheck(judge_file, newer(0.0), ASPECT, asked=Asked(fall=0.9))
    assert wide.decision == "holds"
    assert "a fall of 0.9 or more is ruled out" in wide.words
    tight = core.recheck(judge_file, newer(0.0), ASPECT, asked=Asked(fall=0.001))
    assert tight.decision == "cannot be told"
    assert f"cannot be told with {tight.now.n} items" in tight.words
    assert tight.change.n_needed is None or tight.change.n_needed > tight.now.n


def test_verdicts_instead_of_the_judge_and_the_json(judge_file: Path, newer: Newer, tmp_path: Path) -> None:
    fresh = newer(0.2)
    scored = core.load_judge(judge_file).score(fresh.items)
    direct = core.recheck(judge_file, fresh, ASPECT)
    assert core.recheck(judge_file, fresh, ASPECT, verdicts=scored) == direct
    told = json.loads(json.dumps(direct.as_json(), allow_nan=False))
    assert told["now"]["value"] == direct.now.value
    assert " sources, t(" in told["then"]["interval_method"]
    assert told["unread_share"] == 0.0
    assert unpack(Recheck, pack(direct)) == direct


def test_items_that_the_calibration_knew_are_left_out(judge_file: Path, newer: Newer, golden: GoldenSet) -> None:
    fresh = newer(0.0)
    mixed = replace(
        fresh,
        items=(*golden.items[:40], *fresh.items[40:]),
    )
    found = core.recheck(judge_file, mixed, ASPECT)
    assert sum(found.left_out.values()) == 40
    assert found.now.n <= found.n_labelled == len(fresh.items) - 40
    assert core.recheck(judge_file, mixed, ASPECT, old=golden).now == found.now


def test_what_had_a_label_in_the_older_set_is_no_newer_item(judge_file: Path, newer: Newer) -> None:
    fresh, older = newer(0.0), replace(newer(0.0), name="older")
    labels = replace(older.aspects[ASPECT], values=(3.0,) * 30 + (None,) * (len(older.items) - 30))
    found = core.recheck(judge_file, fresh, ASPECT, old=replace(older, aspects={ASPECT: labels}))
    assert found.left_out == {"old": 30}
    assert found.n_labelled == len(fresh.items) - 30


def test_two_systems_may_say_the_same(judge_file: Path, newer: Newer) -> None:
    fresh = newer(0.0)
    first, second = fresh.items[0], fresh.items[1]
    assert (first.source, first.system_id != second.system_id) == (second.source, True)
    same = replace(fresh, items=(first, replace(second, target=first.target), *fresh.items[2:]))
    assert core.recheck(judge_file, same, ASPECT).left_out == {}
    twice = replace(second, target=first.target, system_id=first.system_id)
    found = core.recheck(judge_file, replace(fresh, items=(first, twice, *fresh.items[2:])), ASPECT)
    assert found.left_out == {"repeated": 1}


def test_calibration_items_are_no_part_of_the_paired_test(
    judge_file: Path, newer: Newer, golden: GoldenSet, calibration: Calibration
) -> None:
    """Before, the scores were turned round on the items that chose the judge: nothing of that is to be seen."""
    fresh = newer(0.0)
    labels = replace(fresh.aspects[ASPECT], values=(*fresh.aspects[ASPECT].values, *golden.aspects[ASPECT].values))
    both = replace(fresh, items=(*fresh.items, *golden.items), aspects={ASPECT: labels})
    now = {one.item_id: one.value for one in core.load_judge(judge_file).score(both.items)}  # type: ignore[union-attr]
    chose = {golden.items[k].item_id for k in calibration.split.calibration}
    before = {name: -value if name in chose else value for name, value in now.items()}
    found = core.recheck(judge_file, both, ASPECT, verdicts=now, before=before)
    assert found.paired is not None
    assert (found.paired.n, found.paired.value) == (len(fresh.items) + len(calibration.split.held_out), 0.0)


def test_paired_with_earlier_verdicts(judge_file: Path, newer: Newer) -> None:
    """Before: the same scores with the first half turned round, so that the judge aligned worse."""
    fresh = newer(0.0)
    now = {one.item_id: one.value for one in core.load_judge(judge_file).score(fresh.items)}  # type: ignore[union-attr]
    before = {name: -value if k < len(now) // 2 else value for k, (name, value) in enumerate(now.items())}
    found = core.recheck(judge_file, fresh, ASPECT, verdicts=now, before=before)
    assert found.paired is not None
    assert found.paired.n == len(fresh.items)
    assert found.paired.value is not None
    assert found.paired.value > 0
    assert found.scores is not None
    assert found.scores.distance > 0.4
    alone = core.recheck(judge_file, fresh, ASPECT, verdicts=now, before={"elsewhere": 1.0, "too": 2.0})
    assert alone.paired is None


def test_against_the_judge_without_criteria(judge_file: Path, newer: Newer, calibration: Calibration) -> None:
    fresh = newer(0.0)
    found = core.recheck(judge_file, fresh, ASPECT, against=NO_CRITERIA)
    assert found.against is not None
    assert found.against_name == "the judge without criteria"
    itself = core.recheck(judge_file, fresh, ASPECT, against=judge_file)
    assert itself.against is not None
    assert itself.against.value == 0.0
    assert itself.against_name == "judge.yaml"


def test_unscored_items_are_counted(calibration: Calibration, newer: Newer) -> None:
    fresh = newer(0.0)
    scores = dict(zip(fresh.item_ids, np.linspace(1, 5, len(fresh.items)).tolist(), strict=True))
    scores |= dict.fromkeys(fresh.item_ids[:36], float("nan"))
    found = recheck_scores(judge_card(calibration), fresh, ASPECT, scores)
    assert found.now.n_unscored == 36
    assert found.unread_share == pytest.approx(36 / len(fresh.items))


def test_constant_scores_cannot_be_told(calibration: Calibration, newer: Newer) -> None:
    fresh = newer(0.0)
    found = recheck_scores(judge_card(calibration), fresh, ASPECT, dict.fromkeys(fresh.item_ids, 3.0))
    assert (found.decision, found.now.value) == ("cannot be told", None)
    assert "cannot be told: now:" in found.words


def test_another_statistic_than_the_file_tells(calibration: Calibration, newer: Newer) -> None:
    fresh = newer(0.0)
    scores = dict(zip(fresh.item_ids, range(len(fresh.items)), strict=True))
    found = recheck_scores(judge_card(calibration), fresh, ASPECT, scores, asked=Asked(statistic="kendall"))
    assert found.now.statistic == "kendall"
    assert found.decision == "cannot be told"
    assert "the judge file tells spearman" in found.words


@pytest.mark.parametrize("body", [{}, {"alignment": None}, {"alignment": {"held_out": {"statistic": "pearson"}}}])
def test_a_file_without_a_figure(body: dict[str, Any]) -> None:
    with pytest.raises(JudgeError, match="no held-out alignment"):
        exported_alignment(body)


def test_a_fused_file_tells_its_figure_at_the_top(calibration: Calibration) -> None:
    held_out = calibration.held_out
    assert exported_alignment({"alignment": held_out.as_json()}) == exported_alignment(judge_card(calibration))


def test_the_card_of_the_file_is_that_of_the_calibration(judge_file: Path, calibration: Calibration) -> None:
    told = exported_alignment(yaml.safe_load(judge_file.read_text("utf-8")))
    assert (told.value, told.n) == (calibration.held_out.value, calibration.held_out.n)
