"""The Fusion screen against a real store: the table, its sections, what is kept, and the empty states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from streamlit.testing.v1 import AppTest

from core import projects
from core.fusion.fusion_settings import FusionRequest, FusionSettings
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Place, golden_of
from tests.pages.screen import HOSTILE, choose, choose_section, frame_with, labelled, open_screen, press, texts

SCREEN = "8_fusion"


@pytest.fixture
def shelf(store: Store, settings: Settings) -> Place:
    labels = np.random.default_rng(3).integers(1, 6, 120)
    text = lambda k: f"Text {k} {HOSTILE}"  # noqa: E731
    return Place(store, settings, golden_of(30, 4, name="summeval sample", labels=labels, text=text))


def add(shelf: Place, name: str, spread: float, **more: Any) -> None:
    shelf.add_judge(name, spread, **{"kind": "metric", "calls_per_item": 0.0, **more})


@pytest.fixture
def full(shelf: Place) -> Place:
    add(shelf, "one", 1.5)
    add(shelf, "two", 1.8)
    add(shelf, f"three {HOSTILE}", 2.0)
    add(shelf, "plain", 2.0, kind="no criteria")
    return shelf


def table(screen: AppTest) -> Any:
    return frame_with(screen, "loss if removed")


def test_one_table_holds_the_fusion_and_its_parts_at_one_measure(full: Place) -> None:
    screen = open_screen(SCREEN, **full.ids)
    choose(choose_section(screen, "Set up"), "Level", "dataset")
    frame = table(choose_section(screen, "Result"))
    assert frame["judge"].iloc[0] == "fusion, ridge"
    assert set(frame["role"]) == {"fusion", "best part", "part"}
    assert "n = 60 items" in texts(screen)
    assert [name for name in frame.columns if "Spearman" in name] == ["Spearman, dataset"]
    listed = {judge.name: judge for judge in full.store.judges.all(full.project_id)}
    parts = [one.judge_id for one in listed.values() if one.judge.kind == "metric"]
    where = (full.store, full.project_id, full.golden_id, "coherence")
    at = list(projects.fuse_judges(*where, judge_ids=parts, settings=FusionSettings()).report)
    result = float(frame.loc[frame["judge"] == "one", "Spearman, dataset"].iloc[0])
    assert result == pytest.approx(spearmanr(listed["one"].judge.values[at], full.labels[at]).statistic)


@pytest.mark.parametrize(("method", "word"), [("ridge", "ridge"), ("average", "average"), ("nnls", "non-negative")])
def test_the_finding_speaks_of_the_chosen_method(full: Place, method: str, word: str) -> None:
    screen = choose_section(open_screen(SCREEN, **full.ids), "Set up")
    labelled(screen.segmented_control, "Weights").set_value(method).run()
    frame = table(choose_section(screen, "Result"))
    value = frame.loc[frame["judge"].str.startswith(f"fusion, {word}"), frame.columns[1]].iloc[0]
    best = frame.loc[frame["role"] == "best part", frame.columns[1]].iloc[0]
    assert screen.header[0].value.replace("\\", "").endswith(f": {value:.2f} and {best:.2f}.")


def test_a_part_is_left_out_and_the_figures_follow(full: Place) -> None:
    screen = choose_section(open_screen(SCREEN, **full.ids), "Set up")
    parts = labelled(screen.multiselect, "Parts of the fusion")
    assert sorted(parts.value) == sorted(["one", "two", f"three {HOSTILE}"])
    parts.set_value(["one", "two"]).run()
    frame = table(choose_section(screen, "Result"))
    assert set(frame.loc[frame["role"] != "fusion", "judge"]) == {"one", "two"}
    labelled(choose_section(screen, "Set up").multiselect, "Parts of the fusion").set_value(["one"]).run()
    assert "Concord can't fuse these judges" in texts(screen)


def test_every_section_draws_and_shows_markup_as_letters(full: Place) -> None:
    screen = open_screen(SCREEN, **full.ids)
    for section in ("Set up", "Result"):
        choose_section(screen, section)
    assert any(HOSTILE in name for name in table(screen)["judge"])
    assert not [block for block in screen.markdown if HOSTILE in block.value]
    assert "whose labels weren't used to fit any part or weight" in texts(screen)


def test_a_fusion_is_kept_as_a_judge(full: Place) -> None:
    screen = open_screen(SCREEN, **full.ids)
    choose(screen, "Name", "Three in one")
    press(screen, "Save")
    assert "Three in one was saved as a judge" in texts(screen).replace("\\", "")
    kept = [judge for judge in full.store.judges.all(full.project_id) if judge.judge.kind == "fused"]
    assert [judge.name for judge in kept] == ["Three in one"]
    parts = labelled(choose_section(screen, "Set up").multiselect, "Parts of the fusion")
    assert "Three in one" in parts.options and "Three in one" not in parts.value  # no part of itself
    choose(screen, "Name", "Another name")
    press(screen, "Save")
    assert "This fusion is already saved as Three in one" in texts(screen).replace("\\", "")


def test_without_judges_it_says_what_to_do(shelf: Place) -> None:
    page_text = texts(open_screen(SCREEN, **shelf.ids))
    assert "no judge yet" in page_text
    assert "Compute metrics" in page_text
    add(shelf, "one", 1.0)
    assert "only one judge" in texts(open_screen(SCREEN, **shelf.ids))


def test_parts_that_saw_nearly_everything_are_refused_in_words(shelf: Place) -> None:
    add(shelf, "one", 1.0)
    add(shelf, "cheat", 0.1, kind="calibrated", seen=tuple(range(110)))
    page_text = texts(open_screen(SCREEN, **shelf.ids))
    assert "Concord can't fuse these judges" in page_text
    assert "a part was calibrated or fitted on" in page_text


def test_the_cost_of_a_fusion_by_a_model_is_shown(full: Place) -> None:
    screen = choose_section(open_screen(SCREEN, **full.ids), "Set up")
    choose(screen, "Model", "scripted")
    assert "122 calls: 120 items, 1 for the criteria, 1 for the plan" in texts(screen)
    choose(screen, "Plan", "Trust one.")
    assert "121 calls" in texts(screen)
    choose(screen, "Criteria", "- It hangs together.")
    assert "120 calls" in texts(screen)


def test_the_parts_say_what_they_are(full: Place) -> None:
    add(full, "hidden", 1.0, kind="repeval")
    frame = frame_with(choose_section(open_screen(SCREEN, **full.ids), "Set up"), "labels seen")
    kinds = dict(zip(frame["judge"], frame["kind"], strict=True))
    assert (kinds["hidden"], kinds["plain"]) == ("hidden states", "baseline")


def test_the_agreement_of_a_fusion_by_a_model_is_shown_below_its_run(full: Place, drive: Callable[..., str]) -> None:
    ids = tuple(
        judge.judge_id
        for judge in full.store.judges.all(full.project_id)
        if judge.judge.kind == "metric" and HOSTILE not in judge.name
    )
    request = FusionRequest(
        *(full.project_id, full.golden_id, "coherence", ids, "scripted"),
        settings=FusionSettings(method="llm", criteria="none"),
    )
    drive(full.store, full.settings, projects.start_run(full.store, full.settings, request))
    said = texts(choose_section(open_screen(SCREEN, **full.ids), "Set up"))
    assert "Agreement with raters:" in said
    assert "n = 120 items" in said
