"""The Golden set screen: empty, listed, a file uploaded, a bad file, a corrected mapping, frozen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.records import GoldenSet
from core.store.log import Entry
from pages.ui import remembered
from tests.pages.making import Place
from tests.pages.screen import (
    HOSTILE,
    button,
    choose,
    enter_name,
    frame_with,
    grids,
    harmless,
    labelled,
    open_screen,
    press,
    texts,
    upload,
)

SCREEN = "1_golden_set"
FREEZE = "Freeze this golden set"
VALUES = Path(__file__).parents[1] / "core" / "data" / "values"


def rows(n_sources: int = 20, renamed: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """Summaries of 3 systems, labelled for clarity; columns under other names where `renamed`."""
    listed = [
        {
            "item_id": f"{s}-{m}",
            "source_id": f"doc {s}",
            "system_id": f"system {m}",
            "document": f"The source of {s}.",
            "summary": f"Summary {m} of {s}.",
            "human_clarity": 1 + (s + m) % 5,
        }
        for s in range(n_sources)
        for m in range(3)
    ]
    return [{(renamed or {}).get(name, name): value for name, value in row.items()} for row in listed]


def bring(place: Place, name: str, data: bytes | str | list[dict[str, Any]]) -> AppTest:
    """The screen with a file dropped: its bytes or text, or rows to be written as CSV."""
    if isinstance(data, list):
        data = "\n".join([",".join(data[0]), *(",".join(str(value) for value in row.values()) for row in data)])
    data = data.encode() if isinstance(data, str) else data
    return upload(open_screen(SCREEN, project=place.project_id, section="upload"), name, data, "text/csv")


def plainly(screen: AppTest) -> str:
    """The words without the marks of emphasis."""
    return texts(screen).replace("*", "")


def value_of(screen: AppTest, label: str) -> Any:
    return labelled([*screen.selectbox, *screen.text_input], label).value


def frozen(place: Place) -> GoldenSet:
    """The golden set that was frozen last."""
    return place.store.goldens.load(place.store.goldens.all(place.project_id)[0].golden_id)


def test_an_empty_project_has_the_drop_zone_and_three_ways_to_begin(empty: Place) -> None:
    screen = open_screen(SCREEN, project=empty.project_id)
    assert "no golden set yet" in texts(screen)
    assert len(screen.file_uploader) == 1
    assert "The demo is disabled in this installation." in texts(screen)
    press(screen, "Add the sample summaries")
    assert "144 items from 6 systems over 24 sources" in texts(screen)
    assert empty.store.events.all(empty.project_id, Entry)[-1].sentence == "added the sample summaries"


def test_the_link_to_the_drop_zone_opens_it_where_there_are_golden_sets(place: Place) -> None:
    screen = open_screen(SCREEN, project=place.project_id, section="upload")
    assert len(screen.file_uploader) == 1
    choose(screen, "View", "Golden sets")
    assert "section" not in screen.query_params
    assert not screen.file_uploader
    choose(screen, "View", "Upload a file")
    assert screen.query_params["section"] == "upload"


def test_the_sample_is_shown_at_first_start_its_finding_first(place: Place) -> None:
    screen = open_screen(SCREEN)
    assert "summaries: 144 items with labels for " in texts(screen)
    assert "144 items from 6 systems over 24 sources" in texts(screen)
    assert "72 labels to calibrate on" in texts(screen)
    assert screen.query_params["golden"] == place.golden_id
    assert not grids(screen)  # the items are behind a press
    choose(screen, "Part", "Items")
    assert len(frame_with(screen, "target")) == 100


def test_a_file_is_mapped_by_alias_checked_and_frozen_after_a_name_is_given(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "name", lambda settings: "")
    screen = bring(place, "mine.csv", rows())
    assert value_of(screen, "Judged text") == "summary"
    assert "guessed from the name: Summary 0 of 0. · Summary 1 of 0. · Summary 2 of 0." in plainly(screen)
    assert "matched by name: 0-0 · 0-1 · 0-2" in plainly(screen)
    assert "60 items from 3 systems over 20 sources" in texts(screen)
    assert "a source and a text about it" in texts(screen)
    press(screen, FREEZE)
    enter_name(screen, "Ada")
    kept = frozen(place)
    assert (kept.name, len(kept.items), list(kept.aspects)) == ("mine", 60, ["clarity"])
    assert screen.query_params["golden"] == kept.digest
    assert "mine is frozen, with 60 items" in texts(screen)
    assert place.store.events.all(place.project_id, Entry)[-1].actor == "Ada"


def test_a_wrong_column_can_be_corrected_and_leaves_its_other_part(place: Place) -> None:
    screen = bring(place, "mine.csv", rows())
    choose(screen, "Judged text", "document")
    assert value_of(screen, "Source") is None
    assert value_of(screen, "Kind of item") == "single"
    choose(screen, "Context", "summary")
    assert value_of(screen, "Kind of item") == "source_context_target"
    assert "chosen by you: The source of 0." in plainly(screen)
    press(screen, FREEZE)
    item = frozen(place).items[0]
    assert (item.target, item.context) == ("The source of 0.", "Summary 0 of 0.")


def test_both_texts_of_a_pair_are_called_what_they_are(place: Place) -> None:
    pairs = [
        {"prompt": f"Asked {k}", "response_a": f"First {k}", "response_b": f"Second {k}", "winner": "ab"[k % 2]}
        for k in range(6)
    ]
    screen = bring(place, "mine.csv", pairs)
    assert value_of(screen, "Kind of item") == "pair"
    names = [box.label for box in screen.selectbox]
    assert names[names.index("Text A") + 1] == "Text B"
    assert not {"Judged text", "Context"} & set(names)
    assert [value_of(screen, name) for name in ("Text A", "Text B")] == ["response_a", "response_b"]
    assert frame_with(screen, "text A")["text B"][0] == "Second 0"
    choose(screen, "Kind of item", "source_context_target")
    assert value_of(screen, "Context") == "response_b"


def test_an_aspect_is_proposed_by_a_plain_name_that_can_be_changed(place: Place) -> None:
    screen = bring(place, "mine.csv", rows(renamed={"human_clarity": "human_coherence_avg"}))
    name = "Name of aspect 1"
    assert value_of(screen, name) == "coherence"
    choose(screen, name, "x" * 300)
    assert "1 to 100 characters; this name has 300" in texts(screen)
    choose(screen, name, "red thread")
    press(screen, FREEZE)
    assert list(frozen(place).aspects) == ["red thread"]


def test_labels_can_be_chosen_where_none_is_recognised(place: Place) -> None:
    screen = bring(place, "mine.csv", rows(renamed={"human_clarity": "n words"}))
    assert "The file has no column with human labels" in texts(screen)
    choose(screen, "Human labels", ["n words"])
    press(screen, FREEZE)
    assert list(frozen(place).aspects) == ["n_words"]


NAMED = "ticket,answer,Anna,Ben,Chris\n" + "".join(
    f"{k},Text {k} is here.,{k % 5 + 1},{k % 4 + 1},{k % 3 + 2}\n" for k in range(10)
)
RATED = "id,text,score_anna,score_ben\n" + "".join(
    f"{k},Text {k} is here.,{k % 5 + 1},{k % 4 + 1}\n" for k in range(10)
)


@pytest.mark.parametrize(
    ("text", "answer", "aspects", "n_ratings"),
    [
        (NAMED, "Raters for one aspect: use their mean", ["overall"], 30),
        (NAMED, "One aspect each", ["anna", "ben", "chris"], 0),
        (RATED, "Raters for one aspect: use their mean", ["overall"], 20),
        (RATED, "One aspect each", ["anna", "ben"], 0),
    ],
)
def test_columns_of_numbers_that_may_be_raters_are_asked_about_above_the_button(
    place: Place, text: str, answer: str, aspects: list[str], n_ratings: int
) -> None:
    screen = bring(place, "named.csv", text)
    assert "Answer 1 question below" in texts(screen)
    assert "--map" not in texts(screen)
    assert button(screen, FREEZE).disabled
    (question,) = [radio for radio in screen.radio if answer in radio.options]
    order = [one.label for one in screen.main if one.type in ("radio", "button")]
    assert order.index(question.label) < order.index(FREEZE)
    press(question.set_value(answer).run(), FREEZE)
    golden = frozen(place)
    assert (list(golden.aspects), len(golden.ratings)) == (aspects, n_ratings)


def test_columns_of_numbers_may_be_no_labels(place: Place) -> None:
    screen = bring(place, "named.csv", NAMED)
    (question,) = [radio for radio in screen.radio if "contain numbers" in radio.label]
    screen = question.set_value("No labels").run()
    assert "The file has no column with human labels. Choose one under “Columns”." in texts(screen)
    assert button(screen, FREEZE).disabled


def test_a_scale_can_be_changed_but_not_below_its_labels(place: Place) -> None:
    screen = bring(place, "mine.csv", rows())
    choose(screen, "Highest label of aspect 1", 3.0)
    assert button(screen, FREEZE).disabled
    choose(screen, "Highest label of aspect 1", 10.0)
    press(screen, FREEZE)
    scale = frozen(place).aspects["clarity"].scale
    assert (scale.low, scale.high, scale.given) == (1, 10, True)


def test_broken_rows_are_listed_and_freezing_is_off(place: Place) -> None:
    listed = rows()
    for row in listed[:33]:
        row["human_clarity"] = "excellent"
    screen = bring(place, "mine.csv", listed)
    assert "**Row 2, column human_clarity:** Expected a number, got 'excellent'" in texts(screen)
    errors = frame_with(screen, "severity").query("severity == 'error'")
    (cause,) = errors["finding"]  # one message per cause
    assert cause.endswith("Also in rows 3, 4, 5, 6, 7, 8, 9, 10 and 24 more.")
    assert button(screen, FREEZE).disabled


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "Concord can't use this file."),
        (b"only\nshort\n", "The file has no column with human labels"),
        (b"target,human_x\n\xff\xfe\x00bad,1\nb,2\n", "1 warning under"),
        (",".join(f"human_a{k}" for k in range(300)).encode() + b",target\n" + b"1," * 300 + b"t\n", "200 aspects"),
    ],
    ids=["empty", "one column", "bad encoding", "300 aspects"],
)
def test_odd_files_are_answered_in_words(place: Place, data: bytes, words: str) -> None:
    assert words in texts(bring(place, "bad.csv", data))


def test_hostile_cells_and_names_stay_plain_text(place: Place) -> None:
    listed = [{**row, "summary": HOSTILE, HOSTILE: 1} for row in rows()]
    harmless(bring(place, "x.csv", listed))


def test_a_file_without_labels_comes_in_for_labelling(place: Place) -> None:
    bare = [{name: value for name, value in row.items() if name != "human_clarity"} for row in rows(2)]
    screen = bring(place, "bare.csv", bare)
    assert button(screen, FREEZE).disabled
    choose(screen, "These items have no labels yet", value=True)
    press(screen, FREEZE)
    assert "Next, have raters label it" in texts(screen)


def test_a_repeated_id_is_asked_about(place: Place) -> None:
    screen = bring(
        place, "twice.csv", "id,text,human_q\n" + "".join(f"{k % 9},Text {k} is here.,{k % 5 + 1}\n" for k in range(10))
    )
    assert "--values" not in texts(screen)
    (question,) = [radio for radio in screen.radio if "have the same id" in radio.label]
    assert question.label.startswith("Rows 2 and 11 ")
    press(question.set_value("Two items: keep both").run(), FREEZE)
    assert frozen(place).item_ids[-1] == "0 (row 11)"


LONG = "id,text,rater,dimension,score\n" + "".join(
    f"{k},Text {k} is here.,{rater},{aspect},{(k + len(rater)) % 4 + 1}\n"
    for k in range(8)
    for rater in ("ann", "ben")
    for aspect in ('"Clarity, overall"', "Tone")
)


def test_aspects_and_scales_of_a_long_file_can_be_changed(place: Place) -> None:
    screen = bring(place, "long.csv", LONG)
    assert value_of(screen, "Name of aspect 1") == "Clarity, overall"
    choose(screen, "Name of aspect 1", "Tone")
    assert "The aspect 'Tone' already exists" in texts(screen)
    choose(screen, "Name of aspect 1", "clarity")
    choose(screen, "Highest label of aspect 1", 5.0)
    press(screen, FREEZE)
    golden = frozen(place)
    assert {name: str(labels.scale) for name, labels in golden.aspects.items()} == {"clarity": "1-5", "Tone": "1-4"}


@pytest.mark.parametrize(("answer", "n_labels"), [("No, leave them out", 10), ("Yes, keep them", 12)])
def test_what_values_mean_is_asked_before_a_file_is_frozen(place: Place, answer: str, n_labels: int) -> None:
    screen = bring(place, "g99.csv", (VALUES / "g99.csv").read_bytes())
    assert button(screen, FREEZE).disabled
    (question,) = [radio for radio in screen.radio if answer in radio.options]
    press(question.set_value(answer).run(), FREEZE)
    (aspect,) = frozen(place).aspects.values()
    assert aspect.n_labelled == n_labels


def test_labels_whose_lowest_is_the_best_can_be_reversed(place: Place) -> None:
    screen = bring(
        place,
        "marks.csv",
        "item_id,target,human_mark\n" + "".join(f"{k},Text {k} is here.,{k % 5 + 1}\n" for k in range(10)),
    )
    choose(screen, "Reverse the scale (the lowest label is the best)", ["human_mark"])
    press(screen, FREEZE)
    assert frozen(place).aspects["mark"].values == (5, 4, 3, 2, 1) * 2
