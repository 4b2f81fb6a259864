"""Verdict files in, replies files → ratings files: faulty rows name their place, unscored is never 0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.data.reply_files import read_scored
from core.errors import GoldenError
from core.judge_files import read_verdicts, verdict_row
from core.judge_files.verdict_files import read_replies_file
from core.judging.parse import read_rating_as_paper
from core.records import Scale, Scored, Unscored

FIVE = Scale(1, 5)
BATCH: list[dict[str, Any]] = [
    {"custom_id": item_id, "response": {"body": {"choices": [{"message": {"content": text}} for text in texts]}}}
    for item_id, texts in (("a", ("Score: 2", "Score: 4")), ("7", ("Score: 1",)))
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_the_score_of_each_order_comes_back_where_it_is_that_of_the_verdict(tmp_path: Path) -> None:
    rows = [verdict_row(Scored("a", 2.25, turned=3.0)), verdict_row(Scored("b", 1.5, turned=1.5))]
    table = read_verdicts(write(tmp_path / "v.jsonl", [*rows, verdict_row(Unscored("c", "empty"))]))
    assert table.of_items(["b", "c", "a"]).turned == pytest.approx([1.5, float("nan"), 3.0], nan_ok=True)
    changed = read_verdicts(write(tmp_path / "w.jsonl", [{**rows[0], "score": 3.0}]))
    assert changed.turned is None
    assert changed.by_id["a"] == Scored("a", 3.0)


def test_of_several_aspects_only_the_rows_of_one_count_in_any_script(tmp_path: Path) -> None:
    """The same item on two aspects, with the same mean of both orders: each keeps its own score the other way round."""
    rows = [
        verdict_row(Scored("p", 3.0, turned=turned)) | {"aspect": aspect}
        for aspect, turned in (("连贯性", 2.0), ("流畅性", 5.0), ("Factual accuracy", 1.0))
    ]
    file = write(tmp_path / "v.jsonl", rows)
    assert read_verdicts(file, aspect="连贯性").turned == pytest.approx([2.0])
    assert read_verdicts(file, aspect="流畅性").turned == pytest.approx([5.0])
    assert read_verdicts(file, aspect="factual_accuracy").turned == pytest.approx([1.0])
    plain = read_scored(write(tmp_path / "plain.jsonl", [row | {"score": k} for k, row in enumerate(rows)]), "流畅性")
    assert plain is not None
    assert plain.scores.tolist() == [1.0]
    with pytest.raises(GoldenError, match="no row is about 'fluency': the column 'aspect' names Factual accuracy, 流"):
        read_verdicts(file, aspect="fluency")


def test_replies_are_averaged_over_the_readable_ones(tmp_path: Path) -> None:
    rows = [
        {"item_id": "a", "responses": ["Rating: 2", "Rating: 4", "I cannot say."]},
        {"item_id": "b", "responses": []},
    ]
    table = read_verdicts(write(tmp_path / "r.jsonl", rows), FIVE, "coherence")
    first, second = table
    assert isinstance(first, Scored)
    assert (first.value, first.n_read, first.n_unread) == (3.0, 2, 1)  # (2 + 4) / 2; the unreadable one is no 0
    assert first.raw == ("Rating: 2", "Rating: 4", "I cannot say.")
    assert second == Unscored("b", "empty")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"item_id": "a", "score": 1}, {"item_id": "a", "score": 2}], "row 2: item 'a' appears twice"),
        ([{"item_id": "a", "score": "good"}], "row 1: 'good' is no number"),
        ([{"score": 1}], "row 1: there is no item_id"),
        ([{"item_id": "a", "score": 1}, {"score": 1}], "row 2, column 'item_id'"),
        ([{"item_id": "a", "score": "1,234"}], "row 1: 1,234 can mean 1.234 or 1234: write it with a decimal point"),
        ([{"item_id": "a", "words": 1}], "row 1: no column is named 'score' or 'responses'"),
        ([{"item_id": "a", "responses": {"x": 1}}], "row 1: no column is named 'score' or 'responses'"),
    ],
)
def test_bad_rows_name_their_place(tmp_path: Path, rows: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(GoldenError, match=words):
        read_verdicts(write(tmp_path / "v.jsonl", rows), FIVE)


# ── replies → ratings ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def replies(tmp_path: Path) -> Path:
    rows = [
        {"item_id": "a", "responses": ["Score: 4", "Score: 2,5", "7"]},
        {"item_id": "b", "responses": ["", "I am unable to rate this.", None]},
        {"item_id": 3, "responses": ["The text is fine."], "more": 1},
        {"item_id": "d", "responses": [], "more": 2},
    ]
    return write(tmp_path / "replies.jsonl", rows)


def test_counts_and_lines(replies: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "ratings.jsonl"
    assert read_replies_file(replies, FIVE, out) == {
        "n_items": 4,
        "n_replies": 7,
        "n_read": 2,
        "n_unread": 5,
        "reasons": {"empty": 2, "out of range": 1, "refused": 1, "no verdict": 1},
        "n_contradicting": 0,
    }
    assert [json.loads(line) for line in out.read_text("utf-8").splitlines()] == [
        {"item_id": "a", "score": 3.25, "n_read": 2, "n_unread": 1, "unread": ["out of range"]},
        {"item_id": "b", "score": None, "n_read": 0, "n_unread": 3, "unread": ["empty", "refused", "empty"]},
        {"item_id": "3", "score": None, "n_read": 0, "n_unread": 1, "unread": ["no verdict"]},
        {"item_id": "d", "score": None, "n_read": 0, "n_unread": 0, "unread": []},
    ]


@pytest.mark.parametrize(
    ("reply", "otherwise"),
    [
        ("Rating: 4. It is clear. I would rate it 2.", True),
        ("Score: 4\nIt has 2 typos and 3 facts.", False),
        ("Score: 4\nSo the score is 4.", False),
        ("Score: 4\nOverall: Score: 9", False),
    ],
)
def test_a_reply_whose_last_sentence_states_another_rating_is_counted(
    tmp_path: Path, reply: str, otherwise: bool
) -> None:
    path = write(tmp_path / "replies.jsonl", [{"item_id": "a", "responses": [reply]}])
    assert read_replies_file(path, FIVE)["n_contradicting"] == otherwise


def test_the_papers_parser_takes_the_first_digit_after_the_last_label() -> None:
    """By hand: 2.5 → 2; "1-3" dropped, so 1987 → 1; "three" is no digit; the last "Rating:" counts."""
    texts = ["2.5", "On 1-3: in 1987", "three", "Rating: 1\nRATING: 3", "Rating:", " "]
    assert [read_rating_as_paper(text).value for text in texts] == [2.0, 1.0, None, 3.0, None, None]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"item_id": "a", "responses": ["4"]', "row 2: Line 2 is not JSON"),
        ('["4"]', "row 2: Line 2 must be a JSON object"),
        ('{"responses": ["4"]}', "item_id"),
        ('{"item_id": " ", "responses": ["4"]}', "item_id"),
        ('{"item_id": true, "responses": ["4"]}', "item_id"),
        ('{"item_id": "first", "responses": ["4"]}', "appears twice"),
        ('{"item_id": "a", "score": 4}', "list of texts"),
        ("[" * 5_000, "not JSON"),
    ],
)
def test_an_unusable_line_is_named_and_nothing_is_written(tmp_path: Path, line: str, message: str) -> None:
    path, out = tmp_path / "replies.jsonl", tmp_path / "out.jsonl"
    path.write_text('{"item_id": "first", "responses": ["4"]}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(GoldenError, match=message):
        read_replies_file(path, FIVE, out=out)
    assert not out.exists()
