"""The Golden set screen: empty, listed, a file brought in, a bad file, a corrected mapping, frozen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.data import read_upload
from core.records import GoldenSet
from core.store.log import Entry
from pages.golden import golden_view
from pages.ui import remembered, state, tables
from tests.pages.making import Place
from tests.pages.screen import (
    button,
    choose,
    enter_name,
    frame_with,
    grids,
    labelled,
    open_screen,
    prepared,
    press,
    run,
    texts,
    upload,
)

SCREEN = "1_golden_set"


def rows(n_sources: int = 20, n_systems: int = 3, **extra: Any) -> list[dict[str, Any]]:
    return [
        {
            "item_id": f"{s}-{m}",
            "source_id": f"doc {s}",
            "system_id": f"system {m}",
            "document": f"The source of {s}.",
            "summary": f"Summary {m} of {s}.",
            "human_clarity": 1 + (s + m) % 5,
            **extra,
        }
        for s in range(n_sources)
        for m in range(n_systems)
    ]


def as_csv(listed: list[dict[str, Any]]) -> bytes:
    lines = [",".join(listed[0]), *(",".join(str(v) for v in row.values()) for row in listed)]
    return "\n".join(lines).encode()


def bring(place: Place, name: str, data: bytes, mime: str = "text/csv") -> AppTest:
    return upload(open_screen(SCREEN, project=place.project_id, section="upload"), name, data, mime)


def plainly(screen: AppTest) -> str:
    """The words without the marks of emphasis."""
    return texts(screen).replace("*", "")


def frozen(place: Place) -> GoldenSet:
    """The golden set that was brought in last."""
    newest = place.store.goldens.all(place.project_id)[0]
    return place.store.goldens.load(newest.golden_id)


def test_sources_and_systems_are_counted_once_and_what_is_left_out_is_said(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 sources of 3 systems, of which 5 fit: a row a source, its name and 1 item of each system."""
    press(bring(place, "fresh.csv", as_csv(rows())), "Freeze this golden set")
    monkeypatch.setattr(golden_view, "MOST_SOURCES", 5)
    screen = prepared(SCREEN, project=place.project_id)
    screen.session_state[state.GOLDEN_PART] = golden_view.GROUPS
    run(screen)
    (shown,) = (frame.value for frame in screen.dataframe)
    assert shown.columns.tolist() == ["source id", "system 0", "system 1", "system 2"]
    assert shown["source id"].tolist() == ["doc 0", "doc 1", "doc 10", "doc 11", "doc 12"]
    assert (shown[["system 0", "system 1", "system 2"]] == 1).all().all()
    assert "The first 5 of 20 sources." in texts(screen)
    monkeypatch.delattr(tables, "groups_frame")  # it is not counted anew
    run(screen)


def test_an_empty_project_has_the_drop_zone_and_three_ways_to_begin(empty: Place) -> None:
    screen = open_screen(SCREEN, project=empty.project_id)
    assert "no golden set yet" in texts(screen)
    assert len(screen.file_uploader) == 1
    assert "The demo is switched off in this installation." in texts(screen)
    assert "python -m core fetch summeval" in texts(screen)
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
    assert "summaries: 144 items from 6 systems over 24 sources." in texts(screen)
    assert "72 labels would choose its criteria" in texts(screen)
    assert screen.query_params["golden"] == place.golden_id
    assert labelled(screen.segmented_control, "Part").value == "Labels"
    assert not grids(screen)  # the items are behind a press
    choose(screen, "Part", "Items")
    assert len(frame_with(screen, "target")) == 100
    choose(screen, "Part", "Sources and systems")
    assert len(frame_with(screen, "source id")) == 24


def test_of_several_sets_it_says_which_is_newer_and_what_it_adds(place: Place) -> None:
    half = replace(
        place.golden,
        name="half",
        items=place.golden.items[:72],
        ratings=(),
        metrics={},
        aspects={a: replace(x, values=x.values[:72]) for a, x in place.golden.aspects.items()},
    )
    half_id = projects.add_golden(place.store, place.project_id, half)
    screen = open_screen(SCREEN, project=place.project_id)
    assert "The newest of 2. It has the same texts: 12 sources known from summaries; 12 sources left out" in texts(
        screen
    )
    choose(screen, "Golden set", place.golden_id)
    assert screen.query_params["golden"] == place.golden_id
    assert "half is newer. It has the same texts" in texts(screen)
    assert half_id != place.golden_id


def test_a_file_is_mapped_by_alias_checked_and_frozen(place: Place) -> None:
    screen = bring(place, "mine.csv", as_csv(rows()))
    assert labelled(screen.selectbox, "Judged text").value == "summary"
    assert "by another usual name: :small[Summary 0 of 0. · Summary 1 of 0. · Summary 2 of 0.]" in plainly(screen)
    assert "by its name: :small[0-0 · 0-1 · 0-2]" in plainly(screen)
    assert "60 items from 3 systems over 20 sources" in texts(screen)
    assert "a source and a text about it" in texts(screen)
    press(screen, "Freeze this golden set")
    kept = frozen(place)
    assert (kept.name, len(kept.items), list(kept.aspects)) == ("mine", 60, ["clarity"])
    assert screen.query_params["golden"] == kept.digest
    assert "mine is frozen: 60 items" in texts(screen)


def test_a_wrong_column_can_be_corrected(place: Place) -> None:
    listed = rows(text_b="Another text.")
    screen = bring(place, "mine.csv", as_csv(listed))
    choose(screen, "Judged text", "text_b")
    assert "chosen here: :small[Another text.]" in plainly(screen)
    press(screen, "Freeze this golden set")
    assert frozen(place).items[0].target == "Another text."


def test_both_texts_of_a_pair_are_called_what_they_are(place: Place) -> None:
    pairs = [
        {"prompt": f"Asked {k}", "response_a": f"First {k}", "response_b": f"Second {k}", "winner": "ab"[k % 2]}
        for k in range(6)
    ]
    screen = bring(place, "mine.csv", as_csv(pairs))
    assert labelled(screen.selectbox, "What an item is").value == "pair"
    names = [box.label for box in screen.selectbox]
    assert names[names.index("Text A") + 1] == "Text B"
    assert not {"Judged text", "Context"} & set(names)
    assert [labelled(screen.selectbox, name).value for name in ("Text A", "Text B")] == ["response_a", "response_b"]
    (first,) = [frame for frame in grids(screen) if "text A" in frame]
    assert first["text B"][0] == "Second 0"
    choose(screen, "What an item is", "source_context_target")
    assert labelled(screen.selectbox, "Context").value == "response_b"
    choose(screen, "What an item is", "pair")
    assert labelled(screen.selectbox, "Text B").value == "response_b"


def test_a_column_chosen_for_another_part_leaves_its_own_and_the_kind_follows(place: Place) -> None:
    screen = bring(place, "mine.csv", as_csv(rows()))
    choose(screen, "Judged text", "document")
    assert labelled(screen.selectbox, "Source").value is None
    assert labelled(screen.selectbox, "What an item is").value == "single"
    choose(screen, "Context", "summary")
    assert labelled(screen.selectbox, "What an item is").value == "source_context_target"


def test_columns_whose_names_tell_nothing_are_guessed_and_each_guess_is_shown(place: Place) -> None:
    names = {"summary": "Kurz", "human_clarity": "stars_avg"}
    listed = [{names.get(k, k): v for k, v in row.items()} for row in rows()]
    listed = [{**row, "Kurz": f"{row['Kurz']} It goes on a little."} for row in listed]
    screen = bring(place, "mine.csv", as_csv(listed))
    assert plainly(screen).count("guessed from its content") == 2  # target and one aspect
    assert screen.multiselect[0].value == ["stars_avg"]
    press(screen, "Freeze this golden set")
    assert list(frozen(place).aspects) == ["stars"]
    assert frozen(place).columns["target"] == "Kurz"


def test_an_aspect_is_proposed_by_a_plain_name_that_can_be_changed(place: Place) -> None:
    listed = [{("human_coherence_avg" if k == "human_clarity" else k): v for k, v in row.items()} for row in rows()]
    screen = bring(place, "mine.csv", as_csv(listed))
    name = "Name of aspect 1"
    assert labelled(screen.text_input, name).value == "coherence"
    choose(screen, name, "x" * 300)
    assert "at most" in texts(screen) or "1 to 100 characters; this one has 300" in texts(screen)
    choose(screen, name, "red thread")
    press(screen, "Freeze this golden set")
    assert list(frozen(place).aspects) == ["red thread"]


def test_labels_can_be_chosen_where_none_is_recognised(place: Place) -> None:
    listed = [{("n words" if k == "human_clarity" else k): v for k, v in row.items()} for row in rows()]
    screen = bring(place, "mine.csv", as_csv(listed))
    assert "No column of human labels" in texts(screen)
    screen.multiselect[0].set_value(["n words"]).run()
    press(screen, "Freeze this golden set")
    assert list(frozen(place).aspects) == ["n_words"]


def test_a_confirmed_scale_is_kept(place: Place) -> None:
    screen = bring(place, "mine.csv", as_csv(rows()))
    labelled(screen.number_input, "Highest label of aspect 1").set_value(10.0).run()
    press(screen, "Freeze this golden set")
    scale = frozen(place).aspects["clarity"].scale
    assert (scale.low, scale.high, scale.given) == (1, 10, True)


@pytest.mark.parametrize(("said", "labels"), [(None, (1.0, 0.5, 0.0)), ([], (1, 2, 3))])
def test_ranks_are_turned_round_unless_a_person_says_that_they_are_ratings(
    place: Place, said: list[str] | None, labels: tuple[float, ...]
) -> None:
    listed = [{**row, "human_ranking": 1 + k % 3} for k, row in enumerate(rows())]
    screen = bring(place, "ranked.csv", as_csv(listed))
    (box,) = [box for box in screen.multiselect if box.label.startswith("Ranks")]
    assert box.value == ["human_ranking"]
    if said is not None:
        box.set_value(said).run()
    press(screen, "Freeze")
    assert frozen(place).aspects["ranking"].values[:3] == labels


def test_labels_beyond_a_narrower_scale_are_drawn_and_told(place: Place) -> None:
    screen = bring(place, "mine.csv", as_csv([{**row, "human_clarity": 1 + k % 5} for k, row in enumerate(rows())]))
    labelled(screen.number_input, "Highest label of aspect 1").set_value(3.0).run()
    assert button(screen, "Freeze this golden set").disabled
    assert "24 of 60 rows are broken" in texts(screen)


def test_an_out_of_scale_label_is_found_and_freezing_forbidden(place: Place) -> None:
    listed = rows()
    listed[6]["human_clarity"] = "excellent"
    screen = bring(place, "mine.csv", as_csv(listed))
    findings = frame_with(screen, "severity")
    error = findings[findings["severity"] == "error"].iloc[0]
    assert (error["row"], error["column"]) == (8, "human_clarity")
    assert button(screen, "Freeze this golden set").disabled
    assert "This cannot be used yet. A number was expected, 'excellent' came" in texts(screen)


def test_the_broken_rows_as_a_file_run_no_formula() -> None:
    table = read_upload(b'target,human_x\n"=cmd()",bad\nb,2\n', "x.csv")
    csv = projects.rows_csv(table, {2: "A number was expected"})
    assert csv == "row,what is wrong,target,human_x\n2,A number was expected,'=cmd(),bad\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "This file cannot be used."),
        (b"only\nshort\n", "No column of human labels was found"),
        (b"target,human_x\n\xff\xfe\x00bad,1\nb,2\n", "3 warnings under"),
        (",".join(f"human_a{k}" for k in range(300)).encode() + b",target\n" + b"1," * 300 + b"t\n", "200 aspects"),
    ],
    ids=["empty", "one column", "bad encoding", "300 aspects"],
)
def test_odd_files_are_answered_in_words(place: Place, data: bytes, words: str) -> None:
    assert words in texts(bring(place, "bad.csv", data))


def test_a_file_is_read_before_anybody_gives_a_name(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "name", lambda settings: "")
    screen = bring(place, "mine.csv", as_csv(rows()))
    press(screen, "Freeze this golden set")
    enter_name(screen, "Ada")
    assert place.store.events.all(place.project_id, Entry)[-1].actor == "Ada"
    assert "mine" in [golden.name for golden in place.store.goldens.all(place.project_id)]


def test_hostile_cells_and_names_stay_plain_text(place: Place) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    listed = rows(n_sources=20)
    listed[0]["summary"] = hostile
    listed = [{**row, f"{hostile}[a](http://evil.example)": 1} for row in listed]
    screen = bring(place, "x.csv", as_csv(listed))
    for element in [*screen.markdown, *screen.caption, *screen.warning, *screen.info, *screen.error, *screen.success]:
        assert hostile not in element.value
        assert "](http" not in element.value


def test_a_file_without_labels_comes_in_for_labelling(place: Place) -> None:
    bare = [{name: value for name, value in row.items() if name != "human_clarity"} for row in rows(2)]
    screen = bring(place, "bare.csv", as_csv(bare))
    assert button(screen, "Freeze").disabled
    next(box for box in screen.checkbox if "no labels yet" in box.label).check().run()
    press(screen, "Freeze")
    assert "Have raters label it next" in texts(screen)


def test_a_comma_that_can_mean_two_things_is_asked_about(place: Place) -> None:
    data = b"item_id;target;human_wit\n" + b"".join(b"i%d;t%d;1,%03d\n" % (k, k, 200 + k) for k in range(9))
    screen = bring(place, "commas.csv", data)
    assert "can mean 1.234 or 1234" in texts(screen)
    assert button(screen, "Freeze").disabled
    choose(screen, "The comma stands", "decimal")
    assert not button(screen, "Freeze").disabled


VALUES = Path(__file__).parents[1] / "core" / "data" / "values"


@pytest.mark.parametrize(
    ("name", "answer", "labels"),
    [
        ("g99.csv", "No label: leave it out", 10),
        ("g99.csv", "It is right: keep it", 12),
        ("pairs.csv", "1 for the first text, 2 for the second", 4),
        ("best.csv", "1 is the best: turn the labels round", 10),
    ],
)
def test_what_values_mean_is_asked_before_a_file_is_kept(place: Place, name: str, answer: str, labels: int) -> None:
    made = {
        "pairs.csv": "text_a,text_b,winner\n" + "".join(f"First {k},Second {k},{k % 2 + 1}\n" for k in range(4)),
        "best.csv": "item_id,target,q (1 = best)\n"
        + "".join(f"{k},Text {k} is here.,{k % 5 + 1}\n" for k in range(10)),
    }
    data = made[name].encode() if name in made else (VALUES / name).read_bytes()
    screen = bring(place, name, data)
    assert button(screen, "Freeze").disabled
    (question,) = [radio for radio in screen.radio if answer in radio.options]
    question.set_value(answer)
    run(screen)
    assert not button(screen, "Freeze").disabled
    press(screen, "Freeze")
    golden = place.store.goldens.load(place.store.goldens.all(place.project_id)[0].golden_id)
    (aspect,) = golden.aspects.values()
    assert aspect.n_labelled == labels
    if name == "best.csv":
        assert list(aspect.values[:5]) == [5, 4, 3, 2, 1]
    if name == "pairs.csv":
        assert list(aspect.values) == [1, 3, 1, 3]


def test_labels_whose_lowest_is_the_best_can_be_turned_round(place: Place) -> None:
    text = "item_id,target,human_mark\n" + "".join(f"{k},Text {k} is here.,{k % 5 + 1}\n" for k in range(10))
    screen = bring(place, "marks.csv", text.encode())
    assert not button(screen, "Freeze").disabled
    choose(screen, "Lowest label is the best", ["human_mark"])
    press(screen, "Freeze")
    golden = place.store.goldens.load(place.store.goldens.all(place.project_id)[0].golden_id)
    assert list(golden.aspects["mark"].values[:5]) == [5, 4, 3, 2, 1]
