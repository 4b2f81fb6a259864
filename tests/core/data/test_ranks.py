"""Ranks within a source become labels of which a higher one is better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.api.measures import align
from core.data import BuiltGolden, build_golden, check_file, load_golden, load_items, propose_mapping
from core.data.tables import Table
from core.errors import AspectError, GoldenError
from core.records import AspectLabels, GoldenSet, Scale
from core.scoring.item_file import validate_items
from core.stats import LabelledItems
from core.store.codec import pack, unpack
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


def test_labels_do_not_depend_on_the_size_of_another_source(built: Build) -> None:
    small, grown = built(ranked((1, 3, 2), (2, 1))), built(ranked((1, 3, 2), (2, 1), (1, 2, 3, 4, 5, 6, 7)))
    assert labels(grown)[:5] == labels(small) == (1, 0, 0.5, 0, 1)
    assert small.golden is not None
    assert grown.golden is not None
    assert small.golden.aspects["rank"].scale == grown.golden.aspects["rank"].scale


def test_texts_may_share_a_place(built: Build) -> None:
    """Half a win for a tie: 2.5 of 4 lies above 1.5 of 3 others."""
    assert labels(built(ranked((1, 2.5, 2.5, 4), (1, 1, 3, 4)))) == (1, 0.5, 0.5, 0, 1, 1, 1 / 3, 0)


def test_ranks_of_several_people_are_turned_each(built: Build) -> None:
    """Of three texts ranks 1, 2, 3 are 1, .5, 0; the label is the mean of both people."""
    made = built(ranked(("[1, 2]", "[2, 1]", "[3, 3]"), ("[1, 1]", "[3, 2]", "[2, 3]"), column="ann_rank"))
    assert labels(made) == (0.75, 0.75, 0, 1, 0.25, 0.25)
    assert made.golden is not None
    assert [rating.value for rating in made.golden.ratings][:4] == [1, 0.5, 0.5, 1]


def test_a_text_alone_in_its_source_gets_no_label(built: Build) -> None:
    made = built(ranked((1, 2, 3), (1,), (2, 1)))
    assert labels(made) == (1, 0.5, 0, None, 0, 1)
    (finding,) = [finding for finding in made.findings if "alone in its source" in finding.message]
    assert (finding.severity, finding.row) == ("warning", 4)


@pytest.mark.parametrize("sources", [((1, 2, 3), (2, 1)), ((1, 2), (2, 1), (1, "", 2))])
def test_ranks_are_measured_within_sources(built: Build, sources: Sequence[Sequence[Any]]) -> None:
    """At sample level even where each source has two: then it tells how often the better one has the higher score."""
    made = built(ranked(*sources))
    assert made.golden is not None
    assert LabelledItems.of(made.golden, "rank").usual_level == "sample"
    assert LabelledItems.of(made.golden, "rank", [0, 1]).take(np.array([0, 1])).usual_level == "sample"
    told = " ".join(finding.message for finding in made.findings)
    assert "at sample level" in told
    assert "use dataset level" not in told
    scored = Verdicts.of_scores({item_id: float(k) for k, item_id in enumerate(made.golden.item_ids)})
    assert align(made.golden, scored, "rank").level == "sample"


def test_two_ranked_texts_a_source_give_how_often_the_better_one_is_scored_higher(built: Build) -> None:
    """The better text has the higher score in 3 of 4 sources: (3 − 1) / 4."""
    made = built(ranked((1, 2), (2, 1), (1, 2), (2, 1)))
    assert made.golden is not None
    scores = [0.9, 0.1, 0.2, 0.3, 0.5, 0.4, 0.8, 0.7]
    scored = Verdicts.of_scores(dict(zip(made.golden.item_ids, scores, strict=True)))
    assert align(made.golden, scored, "rank").value == pytest.approx(0.5)


def test_ranks_are_part_of_a_golden_sets_identity_and_are_kept(built: Build) -> None:
    made = built(ranked((1, 2, 3), (2, 1)))
    assert made.golden is not None
    plain = replace(made.golden.aspects["rank"], ranks=False)
    assert replace(made.golden, aspects={"rank": plain}).digest != made.golden.digest
    for kept in (plain, made.golden.aspects["rank"]):
        body = pack(kept)
        assert unpack(AspectLabels, body) == kept
        assert ('"ranks"' in body.body) == kept.ranks


def test_an_aspect_is_ranks_when_a_person_says_so_and_not_when_they_deny_it() -> None:
    rows = ranked((1, 2, 3), (3, 1, 2), column="human_place")
    table = Table("t.csv", tuple(rows[0]), tuple(rows))
    mapping = propose_mapping(table.columns, table.rows)
    said = build_golden(table, replace(mapping, ranks=("place",)))
    assert labels(said, "place") == (1, 0.5, 0, 0, 1, 0.5)
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
    assert labels(built(ranked((1.3, 1.7, 3), (1, 2, 3)))) == pytest.approx((0.85, 0.65, 0, 1, 0.5, 0))
    ((_, message),) = errors(built(ranked(("[1.3]", "[2]", "[3]"), ("[1]", "[2]", "[3]"), column="ann_rank")))
    assert "1.3 is no rank: a whole number was expected, or a half" in message


def test_ranks_without_sources_are_refused_with_the_way_out(built: Build) -> None:
    ((_, message),) = errors(built(ranked(*[(1,)] * 6)))
    assert "compare the texts of one source" in message
    assert "Say which column names the source" in message


# ── one row a source ──────────────────────────────────────────────────────────────────────────────────────────


def wide(place: Path, text: str) -> Path:
    file = place / "wide.csv"
    file.write_text(text)
    return file


LETTERS = """id,prompt,target_a,system_a,rank_a,target_b,system_b,rank_b,target_c,system_c,rank_c
q1,Why?,As.,m1,2,Bs.,m2,1,Cs.,m3,3
q2,How?,Ds.,m1,1,Es.,m3,2,,,
"""


def rows_of(golden: GoldenSet) -> list[tuple[str, str, str, str, str]]:
    return [(item.item_id, item.source_id, item.system_id, item.source, item.target) for item in golden.items]


def test_a_row_a_source_is_read_as_a_row_a_text(tmp_path: Path) -> None:
    made = load_golden(wide(tmp_path, LETTERS))
    assert made.kind == "source_target"
    assert rows_of(made) == [
        ("q1-a", "q1", "m1", "Why?", "As."),
        ("q1-b", "q1", "m2", "Why?", "Bs."),
        ("q1-c", "q1", "m3", "Why?", "Cs."),
        ("q2-a", "q2", "m1", "How?", "Ds."),
        ("q2-b", "q2", "m3", "How?", "Es."),
    ]
    assert made.labels("rank").tolist() == [0.5, 1, 0, 1, 0]
    assert made.aspects["rank"].ranks


def test_numbers_stand_for_letters_and_rows_without_ids_are_sources_of_their_own(tmp_path: Path) -> None:
    made = load_golden(wide(tmp_path, "text1,rank1,text2,rank2\nAs.,1,Bs.,2\nCs.,2,Ds.,1\n"))
    assert rows_of(made) == [
        ("row-1-1", "row-1", "", "", "As."),
        ("row-1-2", "row-1", "", "", "Bs."),
        ("row-2-1", "row-2", "", "", "Cs."),
        ("row-2-2", "row-2", "", "", "Ds."),
    ]
    assert made.labels("rank").tolist() == [1, 0, 0, 1]


def test_several_people_rank_the_same_source_in_rows_of_their_own(tmp_path: Path) -> None:
    """q1: ann 1, 2, 3 and bob 2, 1, 3 of three texts are 1, .5, 0 and .5, 1, 0."""
    text = "source_id,annotator_id,text_a,text_b,text_c,rank_a,rank_b,rank_c\n"
    text += "q1,ann,As.,Bs.,Cs.,1,2,3\nq1,bob,As.,Bs.,Cs.,2,1,3\nq2,ann,Ds.,Es.,Fs.,3,2,1\n"
    made = load_golden(wide(tmp_path, text))
    assert made.item_ids == ("q1-a", "q1-b", "q1-c", "q2-a", "q2-b", "q2-c")
    assert made.labels("rank").tolist() == [0.75, 0.75, 0, 0, 0.5, 1]
    assert {rating.rater_id for rating in made.ratings} == {"ann", "bob"}


def test_ranks_of_several_aspects_stand_side_by_side(tmp_path: Path) -> None:
    text = "id,answer_1,answer_2,rank_style_1,rank_style_2,human_depth_rank_1,human_depth_rank_2\nx,As.,Bs.,1,2,2,1\n"
    made = load_golden(wide(tmp_path, text + "y,Cs.,Ds.,2,1,2,1\n"))
    assert {name: made.labels(name).tolist() for name in made.aspects} == {
        "rank_style": [1, 0, 0, 1],
        "depth_rank": [0, 1, 0, 1],
    }


def test_what_is_wrong_in_a_wide_file_is_told_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match=r"row 3.*4 is no rank: the source has 2 texts"):
        load_golden(wide(tmp_path, LETTERS.replace("Ds.,m1,1", "Ds.,m1,4")))
    with pytest.raises(GoldenError, match="row 3"):
        load_golden(wide(tmp_path, LETTERS.replace("q2,", "q1,")))


def test_pairs_with_a_preference_stay_pairs(tmp_path: Path) -> None:
    made = load_golden(wide(tmp_path, "text_a,text_b,winner,rank_of_annotator\nAs.,Bs.,A,1\nCs.,Ds.,B,2\n"))
    assert made.kind == "pair"


def test_a_wide_file_is_scored_text_by_text(tmp_path: Path) -> None:
    file = wide(tmp_path, LETTERS)
    assert load_items(file).item_ids == ("q1-a", "q1-b", "q1-c", "q2-a", "q2-b")
    seen = validate_items(file)
    assert [item.item_id for batch in seen.batches(2) for item in batch] == ["q1-a", "q1-b", "q1-c", "q2-a", "q2-b"]


# ── as a person names them ───────────────────────────────────────────────────────────────────────────────────


def test_ranks_are_named_by_column_or_aspect_whatever_they_are_called(tmp_path: Path) -> None:
    text = "source_id,target,place,human_worth\ns1,As.,1,2\ns1,Bs.,2,1\ns1,Cs.,3,3\ns2,Ds.,2,1\ns2,Es.,1,2\n"
    file = wide(tmp_path, text)
    made = load_golden(file, ranks=["place", "human_worth"])
    assert made.labels("place").tolist() == [1, 0.5, 0, 0, 1]
    assert made.labels("worth").tolist() == [0.5, 1, 0, 1, 0]
    assert load_golden(file, ranks=["worth"]).aspects.keys() == {"worth"}
    assert not load_golden(file).aspects["worth"].ranks
    report = check_file(file, ranks=["worth"])
    assert report["aspects"]["worth"]["ranks"]
    assert report["aspects"]["worth"]["scale"] == [0, 1]


def test_wide_columns_and_aspects_of_long_files_are_named_too(tmp_path: Path) -> None:
    made = load_golden(wide(tmp_path, LETTERS.replace("rank_", "place_")), ranks=["place"])
    assert made.labels("place").tolist() == [0.5, 1, 0, 1, 0]
    text = "item_id,source_id,target,aspect,value\n1,s,As.,flow,1\n2,s,Bs.,flow,2\n3,s,Cs.,flow,3\n1,s,As.,wit,5\n"
    long = load_golden(wide(tmp_path, text + "2,s,Bs.,wit,4\n3,s,Cs.,wit,1\n"), ranks=["flow"])
    assert long.labels("flow").tolist() == [1, 0.5, 0]
    assert long.labels("wit").tolist() == [5, 4, 1]


def test_ranks_that_are_in_no_column_are_refused_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(AspectError, match=r"no ranks 'plaice'.*rank"):
        load_golden(wide(tmp_path, LETTERS), ranks=["plaice", "rank"])


def test_nothing_is_ranks_where_a_person_says_so(tmp_path: Path) -> None:
    text = "source_id,target,human_rank\ns1,As.,1\ns1,Bs.,2\ns1,Cs.,3\ns2,Ds.,5\ns2,Es.,4\n"
    made = load_golden(wide(tmp_path, text), ranks=[])
    assert made.labels("rank").tolist() == [1, 2, 3, 5, 4]
    assert not made.aspects["rank"].ranks
