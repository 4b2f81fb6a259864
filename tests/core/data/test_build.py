"""From tables to golden sets: items, labels, ratings, metrics, in wide and long layout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core.data import BuiltGolden, propose_mapping
from core.data.columns import Values
from core.records import AspectLabels, Item, Rating, Scale

Build = Callable[..., BuiltGolden]


def errors(built: BuiltGolden) -> list[tuple[int | None, str | None, str]]:
    return [(f.row, f.column, f.message) for f in built.findings if f.severity == "error"]


def messages(built: BuiltGolden, severity: str) -> str:
    return "\n".join(f.message for f in built.findings if f.severity == severity)


def test_a_wide_file_becomes_items_labels_ratings_and_metrics(built: Build, summaries: list[dict[str, Any]]) -> None:
    golden = built(summaries).golden
    assert (golden.name, golden.kind, len(golden.items)) == ("set", "source_target", 6)
    assert golden.items[1] == Item("a-1", "Summary a1.", "a", "m1", "Document a.", "", ("Reference a.",))
    # means of (1,1) (3,4) (5,5) (2,1) (4,4) (5,4)
    assert golden.aspects == {"coherence": AspectLabels("coherence", Scale(1, 5, 1), (1, 3.5, 5, 1.5, 4, 4.5))}
    assert golden.ratings[2:4] == (Rating("a-1", "ann", "coherence", 3), Rating("a-1", "bob", "coherence", 4))
    assert golden.metrics == {"length": (10, 11, 12, 10, 11, 12)}
    assert golden.given_split == ()
    for row in summaries:
        del row["human_coherence"]
    assert built(summaries).golden.aspects == golden.aspects, "without labels they are the means of the ratings"


def test_panels_are_raters_of_the_aspect_and_the_human_column_stays_gold(built: Build) -> None:
    rows = [
        {"item_id": i, "target": "t", "human_x": 2, "ann_expert_x": [1, 3], "ann_turker_x": [5, None, 4]} for i in "ab"
    ]
    golden = built(rows).golden
    assert set(golden.aspects) == {"x"}
    assert [(r.rater_id, r.value) for r in golden.ratings if r.item_id == "a"] == [
        ("expert1", 1),
        ("expert2", 3),
        ("turker1", 5),
        ("turker3", 4),
    ]
    assert golden.aspects["x"].values == (2, 2)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("four", "expected a number, got 'four'"),
        (float("nan"), "nan isn't a label"),
        (10**400, "larger than 1e100"),
        ("=AVERAGE(A1:A3)", "doesn't evaluate formulas"),
        ("[1, 2]", "name it ann_coherence"),
        ("x" * 100_000, "expected a number"),
    ],
)
def test_bad_labels_are_errors_with_row_and_column(
    built: Build, summaries: list[dict[str, Any]], cell: Any, words: str
) -> None:
    summaries[3]["human_coherence"] = cell
    result = built(summaries)
    ((row, column, message),) = errors(result)
    assert (result.golden, row, column) == (None, 4, "human_coherence")
    assert words.lower() in message.lower()
    assert len(message) < 250
    assert result.draft.aspects["coherence"].values[3] is None


# ── ids and groups ───────────────────────────────────────────────────────────────────────────────────────────


def test_ids_that_come_twice_or_are_missing(built: Build, summaries: list[dict[str, Any]]) -> None:
    summaries[2]["item_id"] = None
    result = built(summaries)
    assert result.golden.item_ids[2] == "row-3"
    (note,) = [f for f in result.findings if "id is missing" in f.message]
    assert (note.severity, note.row, note.column) == ("note", 3, "item_id")
    summaries[0]["item_id"] = "row-3"
    assert "Rows 1 and 3 have the same id, 'row-3'" in errors(built(summaries))[0][2], "a made id may be taken"
    summaries[0]["item_id"], summaries[4]["item_id"] = "a-0", summaries[1]["item_id"]
    ((row, column, message),) = errors(built(summaries))
    assert (row, column) == (5, "item_id")
    assert "Rows 2 and 5 have the same id, 'a-1'." in message
    summaries[5]["item_id"] = "a-1"
    ((_, _, message),) = errors(built(summaries))
    assert message.endswith("Also in row 6.")
    mapping = propose_mapping(tuple(summaries[0]), summaries)
    numbered = built(summaries, mapping=replace(mapping, values=Values.of("ids=number"))).golden
    assert numbered.item_ids[1::3] == ("a-1", "a-1 (row 5)")
    assert numbered.item_ids[5] == "a-1 (row 6)"
    first = built(summaries, mapping=replace(mapping, values=Values.of("ids=first"))).golden
    assert first.item_ids == ("a-0", "a-1", "row-3", summaries[3]["item_id"])
    assert first.aspects["coherence"].values == numbered.aspects["coherence"].values[:4]
    for row in summaries:
        del row["item_id"]
    result = built(summaries)
    assert result.golden.item_ids == tuple(f"row-{n}" for n in range(1, 7))
    assert messages(result, "note").count("no item_id column") == 1


def test_groups_without_source_ids_are_equal_sources_or_single_items(
    built: Build, summaries: list[dict[str, Any]]
) -> None:
    summaries[5]["source_id"] = " "
    result = built(summaries)
    assert result.golden.items[5].source_id == "b-2"
    assert [f.row for f in result.findings if "source_id is missing" in f.message] == [6]
    for row in summaries:
        del row["source_id"]
    result = built(summaries)
    assert [i.source_id for i in result.golden.items] == ["a-0"] * 3 + ["b-0"] * 3
    assert "form one group (2 groups in total)" in messages(result, "note")
    result = built([{"item_id": f"i{n}", "text": f"t{n}", "human_x": n % 5 + 1} for n in range(10)])
    assert (result.golden.kind, result.golden.n_sources) == ("single", 10)
    assert "each item forms its own group" in messages(result, "note")


# ── long files ───────────────────────────────────────────────────────────────────────────────────────────────


def long_rows() -> list[dict[str, Any]]:
    """Two items, two raters, two aspects; texts stand in the first row of an item only."""
    given = {("i1", "p"): (1, 5), ("i1", "q"): (2, 5), ("i2", "p"): (4, 3), ("i2", "q"): (5, 4)}
    rows: list[dict[str, Any]] = []
    for (item, rater), values in given.items():
        for aspect, value in zip(("clarity", "style"), values, strict=True):
            first = not any(row["item_id"] == item for row in rows)
            text = f"Text {item}" if first else ""
            rows.append({"item_id": item, "text": text, "rater": rater, "aspect": aspect, "rating": value})
    return rows


def test_long_rows_join_to_items_with_ratings_and_mean_labels(built: Build) -> None:
    golden = built(long_rows()).golden
    assert [(i.item_id, i.target) for i in golden.items] == [("i1", "Text i1"), ("i2", "Text i2")]
    assert {a: labels.values for a, labels in golden.aspects.items()} == {"clarity": (1.5, 4.5), "style": (5, 3.5)}
    assert golden.ratings[:2] == (Rating("i1", "p", "clarity", 1), Rating("i1", "q", "clarity", 2))
    assert len(golden.ratings) == 8


@pytest.mark.parametrize(
    ("number", "changes", "place", "words"),
    [
        (4, {"text": "another text"}, (4, "text"), "Rows 1 and 4 of item"),
        (3, {"rater": "p"}, (3, "rating"), "'p' already rated clarity for this item in row 1"),
        (6, {"item_id": ""}, (6, "item_id"), "The item id is missing."),
        (6, {"aspect": None}, (6, "aspect"), "The aspect is missing."),
    ],
)
def test_long_files_refuse_contradictions(
    built: Build, number: int, changes: dict[str, Any], place: tuple[int, str], words: str
) -> None:
    rows = long_rows()
    rows[number - 1] |= changes
    assert errors(built(rows))[0][:2] == place
    assert words in errors(built(rows))[0][2]


# ── mapping, scales, errors as a whole ───────────────────────────────────────────────────────────────────────


def test_given_scales_are_kept_and_enforced_on_labels_and_ratings(
    built: Build, summaries: list[dict[str, Any]]
) -> None:
    wide = Scale(0, 10, 1, given=True)
    golden = built(summaries, scales={"coherence": wide}).golden
    assert golden.aspects["coherence"].scale == wide
    result = built(summaries, scales={"coherence": Scale(2, 5, given=True)})
    assert [(row, column) for row, column, _ in errors(result)] == [
        (1, "human_coherence"),  # 1
        (1, "ann_coherence"),  # 1 and 1
    ]
    assert [message[-14:] for _, _, message in errors(result)] == ["Also in row 4."] * 2  # 1.5; 2 and 1
    assert "1 is outside the scale 2-5" in errors(result)[0][2]
