"""Verdict files in: rows that cannot be read name their place, unscored is never 0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import GoldenError
from core.export import read_verdicts, verdict_row
from core.records import Scale, Scored, Unscored


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_scores_and_unscored(tmp_path: Path) -> None:
    rows = [verdict_row(Scored("a", 3.25)), verdict_row(Unscored("b", "refused", raw=("no",)))]
    table = read_verdicts(write(tmp_path / "v.jsonl", rows))
    assert [v.item_id for v in table] == ["a", "b"]
    assert table.by_id["a"] == Scored("a", 3.25)
    assert len(table.unscored) == 1
    assert [str(v) for v in table.aligned(["b", "a", "none"])] == ["nan", "3.25", "nan"]


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("item_id,score,note\na,2.5,x\nb,,y\n", encoding="utf-8")
    table = read_verdicts(path)
    assert table.by_id["a"] == Scored("a", 2.5)
    assert len(table.unscored) == 1


def test_replies_are_averaged_over_the_readable_ones(tmp_path: Path) -> None:
    rows = [
        {"item_id": "a", "responses": ["Rating: 2", "Rating: 4", "I cannot say."]},
        {"item_id": "b", "responses": []},
    ]
    table = read_verdicts(write(tmp_path / "r.jsonl", rows), Scale(1, 5), "coherence")
    first, second = table
    assert isinstance(first, Scored)
    assert (first.value, first.n_read, first.n_unread) == (3.0, 2, 1)  # (2 + 4) / 2; the unreadable one is no 0
    assert first.raw == ("Rating: 2", "Rating: 4", "I cannot say.")
    assert second == Unscored("b", "empty")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.jsonl", '{"item_id": "a", "responses": [null, "Score: 4", {"content": "Score: 2"}]}\n'),
        ("r.csv", 'item_id,responses\na,"[null, ""Score: 4"", {""content"": ""Score: 2""}]"\n'),
    ],
)
def test_a_null_reply_is_an_empty_one_in_every_format(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (verdict,) = read_verdicts(tmp_path / name, Scale(1, 5))
    assert verdict == Scored("a", 3.0, raw=("", "Score: 4", "Score: 2"), n_read=2, n_unread=1)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"item_id": "a", "score": 1}, {"item_id": "a", "score": 2}], "row 2: item 'a' stands twice"),
        ([{"item_id": "a", "score": "good"}], "row 1: 'good' is no number"),
        ([{"score": 1}], "row 1, column 'item_id'"),
        ([{"item_id": "a", "rating": 1}], "neither a 'score' nor 'responses'"),
        ([{"item_id": "a", "responses": {"x": 1}}], "must be a list"),
    ],
)
def test_bad_rows_name_their_place(tmp_path: Path, rows: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(GoldenError, match=words):
        read_verdicts(write(tmp_path / "v.jsonl", rows), Scale(1, 5))
