"""The judge out of a file: what it needs of items, order, one and many."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core import load_items
from core.errors import GoldenError
from core.judge_files.loaded import CalibratedJudge
from core.judging.offline.judge import OfflineJudge
from core.records import Scored, Unscored

Card = dict[str, Any]
ITEMS = load_items(Path(__file__).parents[3] / "sample_data" / "summaries.jsonl").items[:8]


@pytest.fixture
def judge(offline_card: Card) -> CalibratedJudge:
    return CalibratedJudge.of(offline_card, OfflineJudge.from_state(offline_card["judge"]))


def test_one_item_gets_what_it_gets_among_others(judge: CalibratedJudge) -> None:
    together = judge.score(ITEMS)
    assert tuple(judge.score([item])[0] for item in ITEMS) == together
    assert judge.score([]) == ()


def test_reasons_come_with_the_same_scores(judge: CalibratedJudge) -> None:
    verdicts = judge.score(ITEMS[:2], explain=True)
    for plain, one in zip(judge.score(ITEMS[:2]), verdicts, strict=True):
        assert isinstance(one, Scored)
        assert one.explanation.startswith("The best of the 3 averaged sets of criteria: ")
        assert isinstance(plain, Scored)
        assert one.value == plain.value


def test_a_column_that_was_left_out_is_told(judge: CalibratedJudge) -> None:
    bare = [replace(item, source=" ") for item in ITEMS]
    with pytest.raises(GoldenError) as told:
        judge.score(bare)
    assert told.value.column == "source"
    assert "the items have no source. Add a 'source' column" in str(told.value)


def test_single_items_without_it_are_unscored_and_stay_in_place(judge: CalibratedJudge) -> None:
    items = [replace(item, source="") if k in (1, 6) else item for k, item in enumerate(ITEMS)]
    items[3] = replace(items[3], target="")
    verdicts = judge.score(items, explain=True)
    assert [verdict.item_id for verdict in verdicts] == [item.item_id for item in items]
    assert [k for k, verdict in enumerate(verdicts) if isinstance(verdict, Unscored)] == [1, 3, 6]
    lacking = verdicts[1]
    assert isinstance(lacking, Unscored)
    assert (lacking.reason, "no source" in lacking.detail) == ("missing input", True)
    whole = judge.score([ITEMS[0]])[0]
    assert isinstance(whole, Scored)
    assert isinstance(verdicts[0], Scored)
    assert verdicts[0].value == whole.value
