"""Ranks within a source become labels of which a higher one is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from core.data import BuiltGolden, build_golden, propose_mapping
from core.data.tables import Table
from core.records import Scale

Build = Callable[..., BuiltGolden]


def ranked(*sources: Sequence[Any], column: str = "human_rank") -> list[dict[str, Any]]:
    """One row a text; `sources` hold the cells of their texts."""
    return [
        {"item_id": f"{s}-{k}", "source_id": f"s{s}", "source": f"d{s}", "target": f"t{k}", column: cell}
        for s, cells in enumerate(sources)
        for k, cell in enumerate(cells)
    ]


def labels(built: BuiltGolden, aspect: str = "rank") -> tuple[float | None, ...]:
    assert built.golden is not None, built.findings
    return built.golden.aspects[aspect].values


def errors(built: BuiltGolden) -> list[tuple[int | None, str]]:
    assert built.golden is None
    return [(finding.row, finding.message) for finding in built.findings if finding.severity == "error"]


def test_the_best_of_every_source_gets_the_highest_label(built: Build) -> None:
    made = built(ranked((1, 3, 2, 4), (2, 1), (1, "", 2)))
    assert labels(made) == (4, 2, 3, 1, 3, 4, 4, None, 3)
    assert made.golden is not None
    assert made.golden.aspects["rank"].scale == Scale(1, 4, 1.0, given=True)
    assert any("4 + 1 − rank" in finding.message for finding in made.findings)


def test_texts_may_share_a_place(built: Build) -> None:
    made = built(ranked((1, 2.5, 2.5, 4), (1, 1, 3, 4)))
    assert labels(made) == (4, 2.5, 2.5, 1, 4, 4, 2, 1)
    assert made.golden is not None
    assert made.golden.aspects["rank"].scale.step == 0.5


def test_ranks_of_several_people_are_turned_each(built: Build) -> None:
    made = built(ranked(("[1, 2]", "[2, 1]", "[3, 3]"), ("[1, 1]", "[3, 2]", "[2, 3]"), column="ann_rank"))
    assert labels(made) == (2.5, 2.5, 1, 3, 1.5, 1.5)
    assert made.golden is not None
    assert [rating.value for rating in made.golden.ratings][:4] == [3, 2, 2, 3]


def test_sample_level_is_advised_where_it_can_be_had(built: Build) -> None:
    """Two ranked texts a source are too few for it, and the check of the groups says so."""

    def told(*sources: Sequence[Any]) -> str:
        return " ".join(finding.message for finding in built(ranked(*sources)).findings)

    assert "choose sample level" in told((1, 2, 3), (2, 1))
    few = told((1, 2), (2, 1), (1, "", 2))
    assert "choose sample level" not in few
    assert "no source has three that were ranked" in few
    assert "use dataset level" in few


def test_an_aspect_is_ranks_when_a_person_says_so_and_not_when_they_deny_it() -> None:
    rows = ranked((1, 2, 3), (3, 1, 2), column="human_place")
    table = Table("t.csv", tuple(rows[0]), tuple(rows))
    mapping = propose_mapping(table.columns, table.rows)
    said = build_golden(table, replace(mapping, ranks=("place",)))
    assert labels(said, "place") == (3, 2, 1, 1, 3, 2)
    assert labels(build_golden(table, mapping), "place") == (1, 2, 3, 3, 1, 2)
    rows = ranked((1, 2, 3), (3, 1, 2))
    table = Table("t.csv", tuple(rows[0]), tuple(rows))
    mapping = propose_mapping(table.columns, table.rows)
    assert labels(build_golden(table, replace(mapping, ranks=()))) == (1, 2, 3, 3, 1, 2)


@pytest.mark.parametrize(
    ("cells", "row", "words"),
    [
        ((1, 2, 0), 3, "0 is no rank: the source has 3 texts, so 1 to 3 was expected."),
        ((1, 2, 4), 3, "4 is no rank: the source has 3 texts"),
        ((1, "second", 3), 2, "second"),
    ],
)
def test_what_is_no_rank_is_told_with_its_row(built: Build, cells: tuple[Any, ...], row: int, words: str) -> None:
    ((told, message),) = errors(built(ranked(cells, (1, 2, 3))))
    assert told == row
    assert words in message


def test_one_persons_rank_is_whole_or_a_half_and_a_mean_of_several_is_not(built: Build) -> None:
    assert labels(built(ranked((1.3, 1.7, 3), (1, 2, 3)))) == pytest.approx((2.7, 2.3, 1, 3, 2, 1))
    ((_, message),) = errors(built(ranked(("[1.3]", "[2]", "[3]"), ("[1]", "[2]", "[3]"), column="ann_rank")))
    assert "1.3 is no rank: a whole number was expected, or a half" in message


def test_ranks_without_sources_are_refused_with_the_way_out(built: Build) -> None:
    ((_, message),) = errors(built(ranked(*[(1,)] * 6)))
    assert "compare the texts of one source" in message
    assert "Say which column names the source" in message
