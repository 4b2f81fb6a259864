"""Column roles: own names before aliases, nothing in silence, corrections by a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data import propose_mapping, read_table
from core.data.cells import folded
from core.data.columns import ALIASES, PLAIN_ROLES, RatingColumn
from core.errors import UsageError

FILES = Path(__file__).parent / "values"


def test_own_names_win_over_aliases_and_the_alias_column_stays_unused() -> None:
    columns = ["doc_id", "item_id", "source_id", "source", "document", "target", "summary", "human_fluency"]
    mapping = propose_mapping(columns, [dict.fromkeys(columns, "1")])
    assert mapping.roles == {c: c for c in ("item_id", "source_id", "source", "target", "human_fluency")}
    assert mapping.unused == ("doc_id", "document", "summary")
    assert mapping.aliased == ()
    assert mapping.layout == "wide"


def test_aliases_are_mapped_and_listed_as_aliases() -> None:
    columns = ["id", "doc_id", "model", "article", "response", "reference", "human_x"]
    mapping = propose_mapping(columns, [dict.fromkeys(columns, "1")])
    assert mapping.roles == {
        "item_id": "id",
        "source_id": "doc_id",
        "system_id": "model",
        "source": "article",
        "target": "response",
        "references": "reference",
        "human_x": "human_x",
    }
    assert set(mapping.aliased) == {"item_id", "source_id", "system_id", "source", "target"}
    assert {role for role, how in mapping.found.items() if how == "exact"} == {"references", "human_x"}


@pytest.mark.parametrize("written", ["Item ID", "itemId", "ITEM-ID", " item id "])
def test_spelling_of_a_name_is_folded_and_counts_as_an_alias(written: str) -> None:
    mapping = propose_mapping([written, "target", "human_x"], [])
    assert mapping.roles["item_id"] == written
    assert "item_id" in mapping.aliased


@pytest.mark.parametrize(("role", "alias"), [(r, a) for r, names in ALIASES.items() for a in names])
def test_every_alias_is_a_folded_name_and_is_found(role: str, alias: str) -> None:
    assert folded(alias) == alias
    others = ["target", "item_id", "source"]
    if role in ("aspect", "value"):
        others.append("value" if role == "aspect" else "aspect")
    columns = [*(c for c in others if c != role), alias]
    assert propose_mapping(columns, [dict.fromkeys(columns, "1")]).roles[role] == alias


def test_two_columns_for_one_role_take_the_better_alias() -> None:
    mapping = propose_mapping(["text", "summary", "label"], [{"label": 1}])
    assert mapping.roles == {"target": "summary", "human_overall": "label"}
    assert mapping.unused == ("text",)


def test_rating_columns_find_aspect_panel_and_raters() -> None:
    columns = ["target", "human_coherence", "ann_expert_coherence", "ann_turker_coherence", "ann_coherence"]
    columns += ["annotators", "ann_style", "annotators_style"]
    rows = [{"ann_expert_coherence": [1], "ann_turker_coherence": [2], "ann_coherence": [3], "ann_style": [4]}]
    mapping = propose_mapping(columns, rows)
    assert mapping.rating_columns == (
        RatingColumn("ann_coherence", "coherence", "", "annotators"),
        RatingColumn("ann_expert_coherence", "coherence", "expert", None),
        RatingColumn("ann_turker_coherence", "coherence", "turker", None),
        RatingColumn("ann_style", "style", "", "annotators_style"),
    )
    assert mapping.aspects == ("coherence", "style")
    (alone,) = propose_mapping(["target", "ann_expert_coherence"], [{"ann_expert_coherence": [1, 2]}]).rating_columns
    assert alone == RatingColumn("ann_expert_coherence", "expert_coherence"), "no aspect is the rest of its name"


@pytest.mark.parametrize("cell", [[[1, 0], [1, 1]], "[[1, 0], [1, 1]]", ["yes"], {"a": 1}, "good"])
@pytest.mark.parametrize("column", ["ann_votes", "annotators"])
def test_ann_columns_without_ratings_and_raters_without_them_are_unused_and_noted(column: str, cell: object) -> None:
    mapping = propose_mapping(["target", "human_x", column], [{column: None}, {column: cell}])
    assert mapping.unused == (column,)
    (note,) = mapping.notes
    assert column in note


@pytest.mark.parametrize(
    ("columns", "roles"),
    [
        (["id", "text", "aspect", "rating", "rater"], {"aspect": "aspect", "value": "rating", "annotator_id": "rater"}),
        (["id", "text", "dimension", "human_score"], {"aspect": "dimension", "value": "human_score"}),
        (["id", "text", "worker_id", "human_x"], {"annotator_id": "worker_id", "human_x": "human_x"}),
        (["id", "text", "annotator", "score"], {"annotator_id": "annotator", "human_overall": "score"}),
    ],
)
def test_long_layouts(columns: list[str], roles: dict[str, str]) -> None:
    mapping = propose_mapping(columns, [dict.fromkeys(columns, "1")])
    assert mapping.layout == "long"
    assert mapping.roles == {"item_id": "id", "target": "text", **roles}


def test_gold_columns_keep_a_file_wide_though_it_has_an_aspect_and_a_score_column() -> None:
    mapping = propose_mapping(["target", "aspect", "score", "human_x"], [])
    assert mapping.layout == "wide"
    assert mapping.unused == ("aspect", "score")


def test_bare_aspect_names_are_labels_only_when_numeric_and_nothing_better_stands_there() -> None:
    rows = [{"text": "t", "coherence": "4", "fluency": "fine"}]
    assert propose_mapping(["text", "coherence", "fluency"], rows).gold_columns == {"coherence": "coherence"}
    with_gold = propose_mapping(["text", "coherence", "human_x"], rows)
    assert with_gold.gold_columns == {"x": "human_x"}


def test_a_rated_conversation_without_response_is_the_target() -> None:
    mapping = propose_mapping(
        ["id", "messages", "score"], [{"messages": [{"role": "user", "content": "hi"}], "score": 1}]
    )
    assert mapping.roles["target"] == "messages"
    assert "source" not in mapping.roles
    assert mapping.kind == "conversation"
    assert "target" not in propose_mapping(["source", "human_x"], []).roles, "a source by its own name stays one"


def test_with_role_moves_a_column_and_marks_it_as_corrected() -> None:
    mapping = propose_mapping(["text", "summary", "human_x"], [])
    corrected = mapping.with_role("target", "text")
    assert corrected.roles == {"human_x": "human_x", "target": "text"}
    assert {role for role, how in corrected.found.items() if how == "corrected"} == {"target"}
    assert corrected.aliased == ()
    assert corrected.unused == ("summary",)
    moved = corrected.with_role("source", "text")
    assert "target" not in moved.roles
    assert {role for role, how in moved.found.items() if how == "corrected"} == {"source"}
    assert mapping.roles["target"] == "summary", "the proposal itself is unchanged"


def test_with_role_takes_a_role_away_and_refuses_unknown_names() -> None:
    mapping = propose_mapping(["target", "human_x", "human_y"], []).with_role("human_y", None)
    assert (mapping.aspects, mapping.unused) == (("x",), ("human_y",))
    with pytest.raises(UsageError, match="no column 'nowhere'"):
        mapping.with_role("target", "nowhere")
    for name in ("tone", "human_", "ann_", "metric_", "annotators_", ""):  # prefixes alone are no roles
        with pytest.raises(UsageError, match=f"'{name}' is no role"):
            mapping.with_role(name, "target")


@given(
    st.lists(st.sampled_from([*PLAIN_ROLES, "doc_id", "text", "ann_x", "human_x", "id", "junk", "Score"]), unique=True)
)
def test_every_column_plays_one_role_or_is_unused(columns: list[str]) -> None:
    mapping = propose_mapping(columns, [dict.fromkeys(columns, "1")])
    assert sorted([*mapping.roles.values(), *mapping.unused]) == sorted(columns)
    assert sorted(mapping.found) == sorted(mapping.roles)
    assert set(mapping.found.values()) <= {"exact", "alias"}
    assert mapping.as_json()["roles"] == dict(mapping.roles)


@pytest.mark.parametrize(
    ("name", "left"), [("clf2.csv", "prediction"), ("outlen.csv", "output"), ("prod.jsonl", "answer")]
)
def test_numbers_and_flags_are_not_the_text_beside_a_column_of_texts(name: str, left: str) -> None:
    table = read_table(FILES / name)
    mapping = propose_mapping(table.columns, table.rows)
    assert mapping.roles["target"] == "text"
    assert any(repr(left) in note and "is not read as target" in note for note in mapping.notes)


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ({"target": [0, 1, 1, 0]}, "sentence"),
        ({"output": [True, False, True, True]}, "essay"),
        ({"response": ["yes", "no", "no", "yes"]}, "tweet"),
        ({"answer": ["A", "B", "C", "A"]}, "body"),
        ({"prediction": ["0.31", "0.9", "0.2", "0.55"]}, "text"),
        ({"output": ["out_001", "out_002", "out_003", "out_004"]}, "text"),
        ({"prediction": ["positive", "negative", "positive", "negative"], "output": [1, 2, 3, 4]}, "review"),
        ({"output": [3, 4, 5, 6]}, "文章"),
    ],
)
def test_the_column_of_texts_is_the_target_whatever_it_is_called(cells: dict[str, list[Any]], text: str) -> None:
    texts = [
        "The storm closed the harbour.",
        "A bakery moved to town.",
        "Rain fell all day long.",
        "Prices rose again.",
    ]
    texts = ["今天天气很好", "明天下雨", "他去了公园", "价格上涨"] if text == "文章" else texts
    rows = [{"id": k, **{name: given[k] for name, given in cells.items()}, text: texts[k]} for k in range(4)]
    assert propose_mapping(list(rows[0]), rows).roles["target"] == text


def test_numbers_are_the_text_where_there_is_no_other() -> None:
    rows = [{"id": k, "question": f"What is {k} and {k}?", "answer": str(2 * k), "human_q": 1} for k in range(4)]
    mapping = propose_mapping(list(rows[0]), rows)
    assert (mapping.roles["target"], mapping.roles["source"]) == ("answer", "question")
    assert any("holds numbers or codes" in note for note in mapping.notes)


def test_texts_keep_their_usual_names_as_tie_break() -> None:
    rows = [{"id": k, "text": f"A source about {k}.", "output": f"A text about {k}."} for k in range(4)]
    assert propose_mapping(list(rows[0]), rows).roles["target"] == "output"
