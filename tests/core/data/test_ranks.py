"""Ranks within a source become labels of which a higher one is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from core.comparison.measures import align
from core.data import BuiltGolden, check_file, load_golden
from core.records import Scale
from core.stats import LabelledItems
from core.verdicts import Verdicts

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


def test_a_label_is_the_share_of_the_other_texts_that_one_was_ranked_above(built: Build) -> None:
    """Of four: ranks 1, 3, 2, 4 lie above 3, 1, 2, 0 of 3 others.  Of three with one unranked: above 2 and 1 of 2."""
    made = built(ranked((1, 3, 2, 4), (2, 1), (1, "", 2)))
    assert labels(made) == (1, 1 / 3, 2 / 3, 0, 0, 1, 1, None, 0.5)
    assert made.golden is not None
    assert made.golden.aspects["rank"].scale == Scale(0, 1, None, given=True)
    assert made.golden.aspects["rank"].ranks
    assert any("share of the other texts" in finding.message for finding in made.findings)


def test_ranks_are_measured_within_sources(built: Build) -> None:
    """At sample level even where each source has two: then it tells how often the better one has the higher score."""
    golden = built(ranked((1, 2), (2, 1), (1, "", 2))).golden
    assert golden is not None
    assert LabelledItems.of(golden, "rank").usual_level == "sample"
    scored = Verdicts.of_scores({item_id: float(k) for k, item_id in enumerate(golden.item_ids)})
    assert align(golden, scored, "rank").level == "sample"


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


# ── as a person names them ───────────────────────────────────────────────────────────────────────────────────


def test_ranks_are_named_by_column_or_aspect_whatever_they_are_called(tmp_path: Path) -> None:
    text = "source_id,target,place,human_worth\ns1,As.,1,2\ns1,Bs.,2,1\ns1,Cs.,3,3\ns2,Ds.,2,1\ns2,Es.,1,2\n"
    file = tmp_path / "wide.csv"
    file.write_text(text)
    made = load_golden(file, ranks=["place", "human_worth"])
    assert made.labels("place").tolist() == [1, 0.5, 0, 0, 1]
    assert made.labels("worth").tolist() == [0.5, 1, 0, 1, 0]
    assert load_golden(file, ranks=["worth"]).aspects.keys() == {"worth"}
    assert not load_golden(file).aspects["worth"].ranks
    report = check_file(file, ranks=["worth"])
    assert report["aspects"]["worth"]["ranks"]
    assert report["aspects"]["worth"]["scale"] == [0, 1]
