"""Results of other judges: columns by name, every format, matching with a golden set, replies to ratings."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.data.judge_results import (
    Columns,
    ImportPreview,
    open_results,
    preview,
    propose_columns,
    read_replies_file,
    read_verdicts,
    replies_in,
)
from core.data.reshape import PREFERENCES
from core.errors import GoldenError, UsageError
from core.records import AspectLabels, GoldenSet, Item, Scale, Scored, Task, Unscored
from core.verdicts import verdict_row
from tests.papers.closer_look import read_rating_as_paper

FIVE = Scale(1, 5)
TASK = Task("coherence", "single", FIVE)
NAN = np.nan


def lines(rows: list[Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def write(path: Path, rows: list[Any]) -> Path:
    path.write_bytes(lines(rows))
    return path


# ── columns and formats ──────────────────────────────────────────────────────────────────────────────────────


def columns(row: dict[str, Any]) -> Columns:
    return propose_columns(open_results(lines([row]), "f.jsonl"), "coherence")


ROLES = """
    item_id responses | item_id=item_id replies=responses
    custom_id completion | item_id=custom_id replies=completion
    exampleId Response | item_id=exampleId replies=Response
    id item_id score | item_id=item_id score=score
    id rating explanation | item_id=id score=rating reason=explanation
    id score reply | item_id=id score=score replies=reply
    id score output | item_id=id score=score
    id text output | item_id=id replies=output
    id reply reason | item_id=id replies=reply
    id seed reply | item_id=id sample=seed replies=reply
    id aspect score | item_id=id aspect=aspect score=score
    id score score_coherence | item_id=id score=score_coherence
    id coherence fluency | item_id=id score=coherence
    id coherence_rating judge_score | item_id=id score=coherence_rating
    id fluency | item_id=id
    foo bar |
"""


@pytest.mark.parametrize("line", ROLES.strip().splitlines())
def test_roles(line: str) -> None:
    names, _, roles = line.partition("|")
    assert columns(dict.fromkeys(names.split(), "x")).roles == dict(pair.split("=") for pair in roles.split())


def test_columns_within_objects_have_dotted_names() -> None:
    found = columns({"meta": {"id": "a"}, "scores": {"fluency": 2, "coherence": 4}, "score": 1})
    assert found.roles == {"item_id": "meta.id", "score": "scores.coherence"}


def test_corrections() -> None:
    found = columns({"id": 1, "key": 2, "score": 3})
    changed = found.with_role("item_id", "key").with_role("score", None)
    assert (changed.roles, changed.found) == ({"item_id": "key"}, {"item_id": "corrected"})
    for role, column in (("item_id", "nowhere"), ("judge", "id")):
        with pytest.raises(UsageError, match="no column 'nowhere'" if role == "item_id" else "isn't a role"):
            found.with_role(role, column)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("f.json", b'{"item_id": "a", "score": 4}'),
        ("f.csv", b"item_id;score\na;4\n"),
        ("replies", gzip.compress(b'{"item_id": "a", "score": 4}\n', mtime=0)),
    ],
)
def test_formats(name: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    assert open_results(data, name).columns == ("item_id", "score")
    assert read_verdicts(path, TASK) == (Scored("a", 4.0),)


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        ("Score: 4", ["Score: 4"]),
        (["Score: 4", None, 3], ["Score: 4", "", "3"]),
        ('["a", "b"]', ["a", "b"]),
        ("[not json", ["[not json"]),
        ([], []),
        (None, [""]),
        (4, ["4"]),
        ([{"role": "assistant", "content": [{"type": "text", "text": "Score"}, {"text": ": 4"}]}], ["Score: 4"]),
        ([{"score": 4}], ['{"score": 4}']),
        (["\ud800"], ["\ufffd"]),
        ([{"content": {"content": "x"}}], ["x"]),
    ],
)
def test_replies_in_a_cell(cell: Any, texts: list[str]) -> None:
    assert list(replies_in(cell)) == texts


# ── verdicts ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_score_of_each_order_comes_back_where_it_is_that_of_the_verdict(tmp_path: Path) -> None:
    task = Task("coherence", "pair", Scale(1, 3))
    rows = [verdict_row(Scored("a", 2.25, turned=3.0)), verdict_row(Scored("b", 1.5, turned=1.5))]
    table = read_verdicts(write(tmp_path / "v.jsonl", [*rows, verdict_row(Unscored("c", "empty"))]), task)
    assert table.of_items(["b", "c", "a"]).turned == pytest.approx([1.5, NAN, 3.0], nan_ok=True)
    changed = read_verdicts(write(tmp_path / "w.jsonl", [{**rows[0], "score": 3.0}]), task)
    assert changed.turned is None
    assert changed.by_id["a"] == Scored("a", 3.0)


def test_of_several_aspects_only_the_rows_of_one_count_in_any_script(tmp_path: Path) -> None:
    """The same item on two aspects, with the same mean of both orders: each keeps its own score the other way round."""
    rows = [
        verdict_row(Scored("p", 3.0, turned=turned)) | {"aspect": aspect}
        for aspect, turned in (("连贯性", 2.0), ("流畅性", 5.0), ("Factual accuracy", 1.0))
    ]
    file = write(tmp_path / "v.jsonl", rows)
    for aspect, turned in (("连贯性", 2.0), ("流畅性", 5.0), ("factual_accuracy", 1.0)):
        assert read_verdicts(file, replace(TASK, aspect=aspect)).turned == pytest.approx([turned])
    with pytest.raises(
        GoldenError, match=r"for the aspect 'fluency'\. The column 'aspect' contains: Factual accuracy, 流"
    ):
        read_verdicts(file, replace(TASK, aspect="fluency"))


def test_replies_are_averaged_over_the_readable_ones(tmp_path: Path) -> None:
    rows = [
        {"item_id": "a", "responses": ["Rating: 2", "Rating: 4", "I cannot say."]},
        {"item_id": "b", "responses": []},
    ]
    first, second = read_verdicts(write(tmp_path / "r.jsonl", rows), TASK)
    assert isinstance(first, Scored)
    assert (first.value, first.n_read, first.n_unread) == (3.0, 2, 1)  # (2 + 4) / 2; the unreadable one is no 0
    assert first.raw == ("Rating: 2", "Rating: 4", "I cannot say.")
    assert second == Unscored("b", "empty")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            [{"item_id": "a", "score": 1}, {"item_id": "a", "score": 2}],
            "row 2: Item 'a' occurs twice",
        ),
        ([{"item_id": "a", "score": "good"}], "row 1: 'good' isn't a number"),
        ([{"score": 1}], "row 1: The file has no column with item ids"),
        ([{"item_id": "a", "score": 1}, {"score": 1}], "row 2, column 'item_id'"),
        ([{"item_id": ["a"], "score": 1}], "row 1, column 'item_id'"),
        ([{"item_id": "a", "score": "1,234"}], "row 1: '1,234' isn't a number"),
        ([{"item_id": "a", "words": 1}], "The file has no column with replies"),
    ],
)
def test_bad_rows_name_their_place(tmp_path: Path, rows: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(GoldenError, match=words):
        read_verdicts(write(tmp_path / "v.jsonl", rows), TASK)


# ── an import next to a golden set ────────────────────────────────────────────────────────────────────────────

IDS = ("a", "b", "c", "d")
GOLDEN = GoldenSet(
    "four",
    "single",
    tuple(Item(name, f"Text {name}.") for name in IDS),
    {"coherence": AspectLabels("coherence", Scale(1, 5, 1.0), (1.0, 2.0, 3.0, 4.0))},
)


def match(rows: list[Any] | str, golden: GoldenSet = GOLDEN, **corrected: str | None) -> ImportPreview:
    data, name = (rows.encode(), "judge.csv") if isinstance(rows, str) else (lines(rows), "judge.jsonl")
    return preview(open_results(data, name), golden, "coherence", corrected)  # type: ignore[arg-type]


def scores(**by_item: Any) -> list[Any]:
    return [{"item_id": name, "score": value} for name, value in by_item.items()]


def words(result: ImportPreview, severity: str) -> str:
    return " ".join(finding.message for finding in result.findings if finding.severity == severity)


def test_replies_are_matched_read_and_counted() -> None:
    """By hand: a (2 + 3) / 2; b holds no number; c is out of range; d has no row; x is unknown."""
    result = match(
        [
            {"item_id": "a", "responses": ["Score: 2", "Score: 3", "?"]},
            {"item_id": "x", "responses": ["Score: 2"]},
            {"item_id": "b", "responses": ["Nothing to say."]},
            {"item_id": "c", "responses": ["Score: 9"]},
        ]
    )
    np.testing.assert_array_equal(result.judge.values, [2.5, NAN, NAN, NAN])
    assert (result.use, result.n_rows, result.n_matched, result.n_scored, result.n) == ("replies", 4, 3, 1, 5)
    assert "1 item id in the file isn't in the golden set" in words(result, "warning")
    assert "1 of the 4 items in the golden set have no row in the file and stay unscored: d" in words(result, "warning")
    assert result.unread == {"no verdict": 2, "out of range": 1}
    assert result.examples["no verdict"] == [("a", 1, "?"), ("b", 3, "Nothing to say.")]
    assert [(one.item_id, one.reason) for one in result.judge.unscored] == [("b", "no verdict"), ("c", "out of range")]
    judge = result.as_judge(" GPT ")
    assert (judge.name, judge.kind, judge.on_scale, judge.aspect) == ("GPT", "imported", True, "coherence")
    assert judge.calls_per_item == pytest.approx(5 / 3)
    assert result.replies == {"a": ("Score: 2", "Score: 3", "?"), "b": ("Nothing to say.",), "c": ("Score: 9",)}


def test_scores_as_they_come() -> None:
    result = match("id,rating,explanation\nb,2,Dull.\na,4,\nc,,\nd,high,\n")
    np.testing.assert_array_equal(result.judge.values, [4, 2, NAN, NAN])
    assert (result.use, result.unread) == ("scores", {"no verdict": 2})
    assert [one.detail for one in result.judge.unscored] == ["", "'high' isn't a number."]
    assert (result.judge.calls_per_item, result.replies) == (None, {"b": ("Dull.",)})


def test_scores_on_another_scale_stay_as_they_are_and_codes_are_unread() -> None:
    own = match(scores(a=0, b=25, c=100, d=50))
    np.testing.assert_array_equal(own.judge.values, [0, 25, 100, 50])
    assert not own.judge.on_scale
    assert "their own scale" in own.judge.note
    assert "The scores range from 0 to 100" in words(own, "warning")
    coded = match(scores(a=1, b=99, c=3, d=5))
    np.testing.assert_array_equal(coded.judge.values, [1, NAN, 3, 5])
    assert coded.unread == {"out of range": 1}
    assert "1 of 4 scores can't be used. The score 99 is outside the scale 1-5." in words(coded, "warning")


def test_a_choice_between_two_texts_is_a_preference() -> None:
    """By hand: A is 1, a tie 2, B 3; "maybe" is none."""
    data = "item_id,score\na,A\nb,tie\nc,model_b\nd,maybe\n"
    labels = AspectLabels("coherence", PREFERENCES, (1.0, 2.0, 3.0, 3.0))
    pairs = replace(GOLDEN, kind="pair", aspects={"coherence": labels})
    np.testing.assert_array_equal(match(data, pairs).judge.values, [1, 2, 3, NAN])
    assert np.isnan(match(data, replace(pairs, kind="single")).judge.values).all()
    with pytest.raises(GoldenError, match=r"scores are 1, 2, so it's unclear.*Write A, B or tie"):
        match(scores(a=1, b=2, c=1, d=2), pairs)


def test_several_rows_are_samples_only_where_a_column_says_so() -> None:
    """By hand: a is the mean of 2 and 4; 5 for b."""
    rows = [
        {"item_id": "a", "seed": 1, "reply": "Score: 2"},
        {"item_id": "b", "seed": 1, "reply": "Score: 5"},
        {"item_id": "a", "seed": 2, "reply": "Score: 4"},
    ]
    result = match(rows)
    np.testing.assert_array_equal(result.judge.values, [3, 5, NAN, NAN])
    assert (result.replies["a"], result.problems) == (("Score: 2", "Score: 4"), ())
    with pytest.raises(GoldenError, match="'a' occurs twice, in rows 1 and 3"):
        match(rows, sample=None)
    with pytest.raises(GoldenError, match="'a' occurs twice, in rows 3 and 4"):
        match([*rows, {"item_id": "a", "seed": 2, "reply": "Score: 1"}])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (scores(x=1, y=2), "The file has x, y; the golden set has a, b, c"),
        (scores(a=None, b="?"), "No item has a score"),
    ],
)
def test_what_cannot_be_used_is_a_problem_in_words(rows: Any, words: str) -> None:
    result = match(rows)
    assert words in result.problems[0]
    with pytest.raises(UsageError, match="Can't add"):
        result.as_judge("j")


# ── replies → ratings ────────────────────────────────────────────────────────────────────────────────────────


def test_counts_and_lines(tmp_path: Path) -> None:
    rows = [
        {"item_id": "a", "responses": ["Score: 4", "Score: 2,5", "7"]},
        {"item_id": "b", "responses": ["", "I am unable to rate this.", None]},
        {"item_id": 3, "responses": ["The text is fine."], "more": 1},
        {"item_id": "d", "responses": [], "more": 2},
    ]
    replies, out = write(tmp_path / "replies.jsonl", rows), tmp_path / "new" / "ratings.jsonl"
    assert read_replies_file(replies, FIVE, out) == {
        "n_items": 4,
        "n_replies": 7,
        "n_read": 2,
        "n_unread": 5,
        "reasons": {"empty": 2, "out of range": 1, "refused": 1, "no verdict": 1},
    }
    assert [json.loads(line) for line in out.read_text("utf-8").splitlines()] == [
        {"item_id": "a", "score": 3.25, "n_read": 2, "n_unread": 1, "unread": ["out of range"]},
        {"item_id": "b", "score": None, "n_read": 0, "n_unread": 3, "unread": ["empty", "refused", "empty"]},
        {"item_id": "3", "score": None, "n_read": 0, "n_unread": 1, "unread": ["no verdict"]},
        {"item_id": "d", "score": None, "n_read": 0, "n_unread": 0, "unread": []},
    ]


def test_the_papers_parser_takes_the_first_digit_after_the_last_label() -> None:
    """By hand: 2.5 → 2; "1-3" dropped, so 1987 → 1; "three" is no digit; the last "Rating:" counts."""
    texts = ["2.5", "On 1-3: in 1987", "three", "Rating: 1\nRATING: 3", "Rating:", " "]
    assert [read_rating_as_paper(text).value for text in texts] == [2.0, 1.0, None, 3.0, None, None]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"item_id": "a", "responses": ["4"]', "row 2: Line 2 isn't valid JSON"),
        ('["4"]', "row 2: Line 2 must be a JSON object"),
        ('{"item_id": " ", "responses": ["4"]}', "item_id"),
        ('{"item_id": true, "responses": ["4"]}', "item_id"),
        ('{"item_id": "first", "responses": ["4"]}', "occurs twice"),
        ('{"item_id": "a", "score": 4}', "list of texts"),
        ("[" * 5_000, "isn't valid JSON"),
    ],
)
def test_an_unusable_line_is_named_and_nothing_is_written(tmp_path: Path, line: str, message: str) -> None:
    path, out = tmp_path / "replies.jsonl", tmp_path / "out.jsonl"
    path.write_text('{"item_id": "first", "responses": ["4"]}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(GoldenError, match=message):
        read_replies_file(path, FIVE, out=out)
    assert not out.exists()
