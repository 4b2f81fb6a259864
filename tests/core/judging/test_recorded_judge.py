"""Replies and scores of judges run elsewhere: scored by item id, never drafted from."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from core.errors import JudgeError, UsageError
from core.judging.recorded import RecordedJudge
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


def test_scores_come_from_jsonl_gz_and_csv(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "v.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write('{"item_id": "a", "score": 4}\n{"item_id": "b", "score": null}\n{"item_id": "c", "score": 7}\n')
    packed = RecordedJudge.from_file(tmp_path / "v.jsonl.gz").score(TASK, ITEMS, CRITERIA[:1])
    table = _judge(tmp_path, "item_id,score,note\na,4,x\nb,,y\nc,7,z\n", "v.csv").score(TASK, ITEMS, CRITERIA[:1])
    for matrix in (packed, table):
        np.testing.assert_array_equal(matrix.values, [[4, np.nan, np.nan, np.nan]])
        reasons = [verdict.reason for verdict in matrix.unscored[CRITERIA[0].criteria_id]]
        assert reasons == ["no verdict", "out of range", "missing input"]


def test_alias_columns_and_numbered_samples_are_read_too(tmp_path: Path) -> None:
    """By hand: a has the samples 2 and 3, mean 2.5; b has one."""
    table = _judge(tmp_path, "id,seed,reply\na,1,Score: 2\na,2,Score: 3\nb,1,Score: 4\n", "long.csv")
    np.testing.assert_array_equal(table.score(TASK, ITEMS, CRITERIA[:1]).values, [[2.5, 4, np.nan, np.nan]])
    assert table.notice.endswith("Columns were taken: id as item_id, reply as responses, seed as sample.")
    with pytest.raises(UsageError, match="row 3: item 'a' stands twice"):
        _judge(tmp_path, "id,seed,reply\na,1,Score: 2\na,1,Score: 3\n", "doubled.csv")


def test_a_failed_request_of_a_batch_is_a_provider_error(tmp_path: Path) -> None:
    text = '{"custom_id": "a", "response": {"status_code": 500, "body": {"error": {"message": "overloaded"}}}}\n'
    (verdict, *_) = _judge(tmp_path, text).score(TASK, ITEMS, [CRITERIA[0]], explain=True).explained
    assert isinstance(verdict, Unscored)
    assert (verdict.reason, verdict.raw) == ("provider error", ("overloaded",))


def test_it_cannot_write_criteria(tmp_path: Path) -> None:
    judge = _judge(tmp_path, REPLIES)
    with pytest.raises(JudgeError, match="cannot draft"):
        judge.draft(TASK, [])
    with pytest.raises(JudgeError, match="cannot refine"):
        judge.refine(TASK, [])
    assert judge.estimate(TASK, ITEMS, 50).cost == 0.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "The file is empty"),
        ('{"responses": ["x"]}\n', "row 1: there is no item_id"),
        ('{"item_id": "a", "score": 1}\n{"item_id": "a", "score": 1}\n', "row 2: item 'a' stands twice"),
        ('{"item_id": "a"}\n', "row 1: expected responses"),
        ('{"item_id": "a", "responses": []}\n', "row 1: expected responses"),
        ('{"item_id": "a", "score": "high"}\n', "row 1: the score must be a number"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        _judge(tmp_path, text)
