"""A recording beside a golden set: what matched, what was read, what has to be decided."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.data.reply_files import load_recording
from core.data.reshape import PREFERENCES
from core.data.verdict_imports import ImportChoices, ImportPreview, match
from core.errors import UsageError
from core.judging.parse import read_rating
from core.records import AspectLabels, GoldenSet, Item, Scale

IDS = ("a", "b", "c", "d")
GOLDEN = GoldenSet(
    "four",
    "single",
    tuple(Item(name, f"Text {name}.") for name in IDS),
    {
        "coherence": AspectLabels("coherence", Scale(1, 5, 1.0), (1.0, 2.0, 3.0, 4.0)),
        "fluency": AspectLabels("fluency", Scale(1, 5), (1.0, 2.0, None, 4.0)),
    },
)
NAN = np.nan


def preview(rows: list[Any] | str, choices: ImportChoices | None = None, aspect: str = "coherence") -> ImportPreview:
    data = rows if isinstance(rows, str) else "".join(json.dumps(row) + "\n" for row in rows)
    name = "judge.csv" if isinstance(rows, str) else "judge.jsonl"
    return match(load_recording(data.encode(), name), GOLDEN, aspect, choices, read_reply=read_rating)


def scores(**by_item: Any) -> list[Any]:
    return [{"item_id": name, "score": value} for name, value in by_item.items()]


def words(result: ImportPreview, severity: str) -> str:
    return " ".join(finding.message for finding in result.findings if finding.severity == severity)


def test_replies_are_matched_read_and_counted() -> None:
    """By hand: a (2 + 3) / 2; b holds no number; c is out of range; d has no row; x is unknown."""
    result = preview(
        [
            {"item_id": "a", "responses": ["Score: 2", "Score: 3", "?"]},
            {"item_id": "x", "responses": ["Score: 2"]},
            {"item_id": "b", "responses": ["Nothing to say."]},
            {"item_id": "c", "responses": ["Score: 9"]},
        ]
    )
    np.testing.assert_array_equal(result.judge.values, [2.5, NAN, NAN, NAN])
    assert (result.use, result.n_rows, result.n_matched, result.n_scored, result.n) == ("replies", 4, 3, 1, 5)
    assert "1 item id of the file is not in the golden set" in words(result, "warning")
    assert "1 of the 4 items of the golden set have no row and stay unscored: d" in words(result, "warning")
    assert result.unread == {"no verdict": 2, "out of range": 1}
    assert result.examples["no verdict"] == [("a", 1, "?"), ("b", 3, "Nothing to say.")]
    assert [(verdict.item_id, verdict.reason) for verdict in result.judge.unscored] == [
        ("b", "no verdict"),
        ("c", "out of range"),
    ]
    assert not result.problems
    judge, replies = result.as_judge(" GPT "), result.replies
    assert (judge.name, judge.kind, judge.on_scale, judge.aspect) == ("GPT", "imported", True, "coherence")
    assert judge.calls_per_item == pytest.approx(5 / 3)
    assert replies == {
        "a": ("Score: 2", "Score: 3", "?"),
        "b": ("Nothing to say.",),
        "c": ("Score: 9",),
    }


def test_scores_as_they_come() -> None:
    result = preview("id,rating,explanation\nb,2,Dull.\na,4,\nc,,\nd,high,\n")
    np.testing.assert_array_equal(result.judge.values, [4, 2, NAN, NAN])
    assert (result.use, result.unread) == ("scores", {"no verdict": 2})
    assert [(verdict.item_id, verdict.detail) for verdict in result.judge.unscored] == [
        ("c", "The score is empty."),
        ("d", "'high' is no number."),
    ]
    judge, replies = result.as_judge("j"), result.replies
    assert judge.calls_per_item is None
    assert replies == {"b": ("Dull.",)}
    notes = [(finding.column, finding.message) for finding in result.findings if finding.severity == "note"]
    assert ("id", "is taken for the item_id") in notes
    assert ("rating", "is taken for the score") in notes


def test_scores_on_another_scale_are_counted_and_asked_about_never_clipped() -> None:
    rows = scores(a=0, b=25, c=100, d=3)
    result = preview(rows)
    np.testing.assert_array_equal(result.judge.values, [NAN, NAN, NAN, 3])
    assert result.unread == {"out of range": 3}
    assert "run from 0 to 100, lie outside 1-5" in words(result, "warning")
    own = preview(rows, ImportChoices(own_scale=True))
    np.testing.assert_array_equal(own.judge.values, [0, 25, 100, 3])
    assert not own.judge.on_scale
    assert not own.unread
    assert "scale of their own" in own.judge.note


def test_a_choice_between_two_texts_is_a_preference() -> None:
    """By hand: A is 1, a tie 2, B 3; "maybe" is none."""
    data = "item_id,score\na,A\nb,tie\nc,model_b\nd,maybe\n"
    labels = AspectLabels("coherence", PREFERENCES, (1.0, 2.0, 3.0, 3.0))
    pairs = replace(GOLDEN, kind="pair", aspects={"coherence": labels})
    result = match(load_recording(data.encode(), "judge.csv"), pairs, "coherence", read_reply=read_rating)
    np.testing.assert_array_equal(result.judge.values, [1, 2, 3, NAN])
    single = replace(pairs, kind="single")
    none = match(load_recording(data.encode(), "judge.csv"), single, "coherence", read_reply=read_rating)
    assert np.isnan(none.judge.values).all()


def test_several_rows_are_samples_only_where_a_column_says_so() -> None:
    """By hand: a is the mean of 2 and 4; 5 for b."""
    rows = [
        {"item_id": "a", "seed": 1, "reply": "Score: 2"},
        {"item_id": "b", "seed": 1, "reply": "Score: 5"},
        {"item_id": "a", "seed": 2, "reply": "Score: 4"},
    ]
    result = preview(rows)
    np.testing.assert_array_equal(result.judge.values, [3, 5, NAN, NAN])
    assert result.replies["a"] == ("Score: 2", "Score: 4")
    assert not result.problems
    doubled = preview(rows, ImportChoices(columns={"sample": None}))
    assert "'a' in rows 1 and 3" in doubled.problems[0]
    with pytest.raises(UsageError, match="rows 1 and 3"):
        doubled.as_judge("j")
    same_seed = preview([*rows, {"item_id": "a", "seed": 2, "reply": "Score: 1"}])
    assert "'a' in rows 3 and 4" in same_seed.problems[0]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (scores(x=1, y=2), "The file has x, y; the golden set has a, b, c"),
        (scores(a=None, b="?"), "No item got a score"),
        ([{"item_id": "a", "foo": 1}], "No column holds replies"),
        ("item_id,x\na,1\n", "No column holds replies"),
        ([{"item_id": "a", "dimension": "wit", "score": 4}], "rows about wit, and none about coherence"),
    ],
)
def test_what_cannot_be_used_is_a_problem_in_words(rows: Any, words: str) -> None:
    assert words in preview(rows).problems[0]


def test_the_score_of_each_order_is_kept() -> None:
    row = {"item_id": "a", "score": 25.0, "score_a_first": 0.0, "score_b_first": 50.0}
    own = preview([row], ImportChoices(own_scale=True))
    assert (own.judge.values[0], own.judge.turned[0]) == (25.0, 50.0)
