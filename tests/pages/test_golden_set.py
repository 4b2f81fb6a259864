"""The Golden set screen: empty, listed, a file brought in, a bad file, a corrected mapping, frozen."""

from __future__ import annotations

import gzip
import json
from typing import Any

from streamlit.testing.v1 import AppTest

from core import projects
from core.records import GoldenSet
from tests.pages.making import Place
from tests.pages.screen import button, choose, frame_with, labelled, open_screen, press, texts, upload

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
    screen = open_screen(SCREEN, project=place.project_id)
    return upload(choose(screen, "View", "Bring in a file"), name, data, mime)


def frozen(place: Place) -> GoldenSet:
    """The golden set that was brought in last."""
    newest = projects.list_goldens(place.store, place.project_id)[0]
    return projects.load_golden_set(place.store, newest.golden_id)


def test_an_empty_project_says_what_to_do_next(empty: Place) -> None:
    assert "no golden set yet" in texts(open_screen(SCREEN, project=empty.project_id))


def test_the_sample_is_listed_and_shown_at_first_start(place: Place) -> None:
    screen = open_screen(SCREEN)
    listed = screen.dataframe[0].value
    assert (listed["name"][0], listed["items"][0], listed["sources"][0], listed["systems"][0]) == (
        "summaries",
        144,
        24,
        6,
    )
    assert "summaries: 144 items, 24 sources, 6 systems" in texts(screen)
    assert len(frame_with(screen, "target")) == 100
    assert screen.query_params["golden"] == place.golden_id
    assert len(screen.get("image")) == 1


def test_a_file_is_mapped_by_alias_checked_and_frozen(place: Place) -> None:
    screen = bring(place, "mine.csv", as_csv(rows()))
    mapping = frame_with(screen, "role").set_index("role")
    assert mapping.loc["target", "column"] == "summary"
    assert mapping.loc["target", "found by"] == "alias"
    assert mapping.loc["item_id", "found by"] == "own name"
    assert "60 items, 20 sources, 3 systems" in texts(screen)
    press(screen, "Freeze this golden set")
    kept = frozen(place)
    assert (kept.name, len(kept.items), list(kept.aspects)) == ("mine", 60, ["clarity"])
    assert screen.query_params["golden"] == kept.digest
    assert "mine is frozen: 60 items" in texts(screen)


def test_a_gzipped_jsonl_is_read(place: Place) -> None:
    data = gzip.compress("\n".join(json.dumps(row) for row in rows()).encode(), mtime=0)
    screen = bring(place, "mine.jsonl.gz", data, "application/gzip")
    assert "60 items" in texts(screen)


def test_a_wrong_column_can_be_corrected(place: Place) -> None:
    listed = rows(text_b="Another text.")
    screen = bring(place, "mine.csv", as_csv(listed))
    assert labelled(screen.selectbox, "target").value == "summary"
    choose(screen, "target", "text_b")
    assert frame_with(screen, "role").set_index("role").loc["target", "found by"] == "corrected"
    press(screen, "Freeze this golden set")
    assert frozen(place).items[0].target == "Another text."


def test_label_columns_can_be_chosen_where_none_is_recognised(place: Place) -> None:
    listed = [{("stars given" if k == "human_clarity" else k): v for k, v in row.items()} for row in rows()]
    screen = bring(place, "mine.csv", as_csv(listed))
    assert "No column of human labels" in texts(screen)
    screen.multiselect[0].set_value(["stars given"]).run()
    press(screen, "Freeze this golden set")
    assert list(frozen(place).aspects) == ["stars_given"]


def test_a_confirmed_scale_is_kept(place: Place) -> None:
    screen = bring(place, "mine.csv", as_csv(rows()))
    next(n for n in screen.number_input if n.key.endswith("clarity_high")).set_value(10.0).run()
    press(screen, "Freeze this golden set")
    scale = frozen(place).aspects["clarity"].scale
    assert (scale.low, scale.high, scale.given) == (1, 10, True)


def test_an_out_of_scale_label_is_found_and_freezing_forbidden(place: Place) -> None:
    listed = rows()
    listed[6]["human_clarity"] = "excellent"
    screen = bring(place, "mine.csv", as_csv(listed))
    findings = frame_with(screen, "severity")
    error = findings[findings["severity"] == "error"].iloc[0]
    assert (error["row"], error["column"]) == (7, "human_clarity")
    assert button(screen, "Freeze this golden set").disabled
    assert "Errors forbid its use" in texts(screen)


def test_a_broken_file_is_told_in_words(place: Place) -> None:
    screen = bring(place, "mine.parquet", b"not a parquet file", "application/octet-stream")
    assert "This file cannot be used." in texts(screen)


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
    assert "Have people label it next" in texts(screen)


def test_a_comma_that_can_mean_two_things_is_asked_about(place: Place) -> None:
    data = b"item_id;target;human_wit\n" + b"".join(b"i%d;t%d;1,%03d\n" % (k, k, 200 + k) for k in range(9))
    screen = bring(place, "commas.csv", data)
    assert "can mean 1.234 or 1234" in texts(screen)
    assert button(screen, "Freeze").disabled
    choose(screen, "The comma stands", "decimal")
    assert not button(screen, "Freeze").disabled
