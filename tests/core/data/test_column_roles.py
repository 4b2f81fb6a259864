"""Column roles: own names before aliases; nothing in silence; corrections by a person."""

from __future__ import annotations

from typing import Any

import pytest

from core.data import propose_mapping
from core.data.cells import folded
from core.data.columns import ALIASES, plain_name
from core.errors import UsageError


def test_own_names_win_over_aliases_and_the_alias_column_stays_unused() -> None:
    columns = ["doc_id", "item_id", "source_id", "source", "document", "target", "summary", "human_fluency"]
    mapping = propose_mapping(columns, [dict.fromkeys(columns, "A text of words.")])
    assert mapping.roles == {c: c for c in ("item_id", "source_id", "source", "target", "human_fluency")}
    assert mapping.unused == ("doc_id", "document", "summary")
    assert mapping.found_by("alias") == ()
    assert mapping.layout == "wide"


@pytest.mark.parametrize(("role", "alias"), [(r, a) for r, names in ALIASES.items() for a in names])
def test_every_alias_is_a_folded_name_and_is_found(role: str, alias: str) -> None:
    assert folded(alias) == alias
    others = ["target", "item_id", "source"]
    if role in ("aspect", "value"):
        others.append("value" if role == "aspect" else "aspect")
    columns = [*(c for c in others if c != role), alias]
    assert propose_mapping(columns, [dict.fromkeys(columns, "A text of words.")]).roles[role] == alias


def test_rating_columns_find_aspect_panel_and_raters() -> None:
    columns = ["target", "human_coherence", "ann_expert_coherence", "ann_turker_coherence", "ann_coherence"]
    columns += ["annotators", "ann_style", "annotators_style"]
    rows = [{"ann_expert_coherence": [1], "ann_turker_coherence": [2], "ann_coherence": [3], "ann_style": [4]}]
    mapping = propose_mapping(columns, rows)
    assert mapping.rating_columns == [
        ("ann_coherence", "coherence", "", "annotators"),
        ("ann_expert_coherence", "coherence", "expert", None),
        ("ann_turker_coherence", "coherence", "turker", None),
        ("ann_style", "style", "", "annotators_style"),
    ]
    assert mapping.aspects == ("coherence", "style")
    (alone,) = propose_mapping(["target", "ann_expert_coherence"], [{"ann_expert_coherence": [1, 2]}]).rating_columns
    assert alone == ("ann_expert_coherence", "expert_coherence", "", None), "no aspect is the rest of its name"


@pytest.mark.parametrize("cell", [[[1, 0], [1, 1]], "[[1, 0], [1, 1]]", ["yes"], {"a": 1}, "good"])
@pytest.mark.parametrize("column", ["ann_votes", "annotators"])
def test_ann_columns_without_ratings_and_raters_without_them_are_unused_and_noted(column: str, cell: object) -> None:
    mapping = propose_mapping(["target", "human_x", column], [{column: None}, {column: cell}])
    assert mapping.unused == (column,)
    assert [column in note for note in mapping.notes] == [True] * (column == "ann_votes")


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
    mapping = propose_mapping(columns, [dict.fromkeys(columns, "A text of words.")])
    assert mapping.layout == "long"
    assert mapping.roles == {"item_id": "id", "target": "text", **roles}


@pytest.mark.parametrize(
    ("cells", "text"),
    [
        ({"target": [0, 1, 1, 0]}, "sentence"),
        ({"output": [True, False, True, True]}, "essay"),
        ({"response": ["yes", "no", "no", "yes"]}, "translation"),
        ({"prediction": ["0.31", "0.9", "0.2", "0.55"]}, "text"),
        ({"prediction": ["positive", "negative", "positive", "negative"], "output": [1, 2, 3, 4]}, "review"),
    ],
)
def test_the_column_of_texts_is_the_target_whatever_it_is_called(cells: dict[str, list[Any]], text: str) -> None:
    texts = [
        "The storm closed the harbour.",
        "A bakery moved to town.",
        "Rain fell all day long.",
        "Prices rose again.",
    ]
    rows = [{"id": k, **{name: given[k] for name, given in cells.items()}, text: texts[k]} for k in range(4)]
    assert propose_mapping(list(rows[0]), rows).roles["target"] == text


@pytest.mark.parametrize(
    ("column", "name"),
    [
        ("coherence_avg", "coherence"),
        ("avgCoherence", "coherence"),
        ("Coherence (1-5)", "coherence"),
        ("human_fluency_mean_score", "fluency"),
        ("Kohärenz", "kohärenz"),
        ("score", "score"),
        ("!!", "!!"),
    ],
)
def test_plain_names_of_aspects(column: str, name: str) -> None:
    assert plain_name(column) == name


def test_aspects_are_renamed_with_their_ratings_and_raters() -> None:
    columns = ["target", "human_wit_avg", "ann_wit_avg", "annotators_wit_avg", "human_tone"]
    rows = [dict(zip(columns, ("t", 2.5, [2, 3], ["a", "b"], 1), strict=True))]
    mapping = propose_mapping(columns, rows).with_plain_names()
    assert mapping.aspects == ("wit", "tone")
    assert mapping.rating_columns[0][-1] == "annotators_wit_avg"
    assert mapping.renamed("wit", " Dry  wit ").aspects == ("Dry wit", "tone")
    for name, message in (("tone", "already"), ("  ", "this name is empty"), ("x" * 300, "this name has 300")):
        with pytest.raises(UsageError, match=message):
            mapping.renamed("wit", name)
