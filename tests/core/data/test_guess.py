"""Columns guessed from what they hold: texts, ids, systems, labels; nothing from columns that say what they are."""

from __future__ import annotations

from typing import Any

import pytest

from core.data import Mapping, propose_mapping
from core.data.columns import plain_name
from core.data.proposal import guess_mapping
from core.errors import UsageError

Rows = list[dict[str, Any]]


def guessed(rows: Rows) -> Mapping:
    return guess_mapping(propose_mapping(list(rows[0]), rows), rows)


def german(n_sources: int = 6, n_systems: int = 4) -> Rows:
    """Column names that no alias knows."""
    return [
        {
            "Zeile": f"Z{s}{m}",
            "Artikel": f"artikel {s}",
            "Programm": f"Programm {m}",
            "Langtext": f"Der ganze Artikel Nummer {s}, und er ist lang genug, um ein Text zu sein.",
            "Kurzfassung": f"Was Programm {m} über Artikel {s} zu sagen hatte.",
            "Klarheit_avg": 1 + (s + m) % 5 + (1 / 3 if m % 2 else 0),
            "rouge": 0.1234 + s * 0.0171 + m * 0.00931,
            "n_words": 7 + m,
            "Gebiet": f"Gebiet {s % 2}",
        }
        for s in range(n_sources)
        for m in range(n_systems)
    ]


def test_names_that_tell_nothing_are_read_by_what_they_hold() -> None:
    mapping = guessed(german())
    assert mapping.roles == {
        "item_id": "Zeile",
        "source": "Langtext",
        "target": "Kurzfassung",
        "human_klarheit": "Klarheit_avg",
    }
    assert set(mapping.found.values()) == {"content"}
    assert mapping.unused == ("Artikel", "Programm", "rouge", "n_words", "Gebiet")  # no metric or count is a label
    assert mapping.kind == "source_target"
    assert mapping.as_json()["guessed"] == list(mapping.found_by("content"))


@pytest.mark.parametrize("rows", [[{"x": "only"}], [{"x": None}], [{"x": 1}, {"x": 2}], [{"x": [[]]}, {"x": {}}]])
def test_odd_files_are_no_error(rows: Rows) -> None:
    assert "target" not in guessed(rows).roles


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
    for name, message in (("tone", "already"), ("  ", "none came"), ("x" * 300, "this one has 300")):
        with pytest.raises(UsageError, match=message):
            mapping.renamed("wit", name)
