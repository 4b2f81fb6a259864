"""Replies and scores of judges run elsewhere: scored by item id, never drafted from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core.errors import JudgeError
from core.judging.judge_specs import RecordedJudge
from core.records import Criteria, Item, Scale, Scored, Task, Unscored

TASK = Task("coherence", "single", Scale(1, 5))
CRITERIA = [Criteria("one", "coherence"), Criteria("two", "coherence")]
ITEMS = [Item(name, "Text.") for name in ("a", "b", "c", "d")]
REPLIES = (
    '{"item_id": "a", "responses": ["Score: 2", "Score: 5", "?"]}\n'
    '{"item_id": "b", "responses": ["no number here"]}\n'
    '{"item_id": "c", "responses": ["Score: 9"]}\n'
)


def _judge(tmp_path: Path, text: str, name: str = "replies.jsonl") -> RecordedJudge:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return RecordedJudge.from_file(path)


def test_replies_are_read_averaged_and_counted(tmp_path: Path) -> None:
    judge = _judge(tmp_path, REPLIES)
    matrix = judge.score(TASK, ITEMS, CRITERIA)
    np.testing.assert_array_equal(matrix.values, [[3.5, np.nan, np.nan, np.nan]] * 2)
    reasons = [verdict.reason for verdict in matrix.unscored[CRITERIA[1].criteria_id]]
    assert reasons == ["no verdict", "out of range", "missing input"]
    assert matrix.calls == 8
    verdicts = judge.score(TASK, ITEMS, [CRITERIA[0]], explain=True).explained
    assert isinstance(verdicts[0], Scored)
    assert (verdicts[0].n_read, verdicts[0].n_unread) == (2, 1)
    assert isinstance(verdicts[3], Unscored)


def test_it_cannot_write_criteria(tmp_path: Path) -> None:
    judge = _judge(tmp_path, REPLIES)
    with pytest.raises(JudgeError, match="can't write criteria"):
        judge.draft(TASK, [])
    with pytest.raises(JudgeError, match="can't write criteria"):
        judge.draft(TASK, [])
    assert judge.estimate(TASK, ITEMS, 50).cost == 0.0
