"""The Fusion screen against a real store: the table, its sections, what is kept, and the empty states."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from streamlit.testing.v1 import AppTest

from core import projects
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Scale
from core.store.store import Store
from tests.pages.screen import HOSTILE, choose_section, frame_with, open_screen, press, texts

SCREEN = "8_fusion"
N_SOURCES, N_SYSTEMS = 30, 4


class Shelf:
    """A project in a real store, with a golden set and the judges that a test puts on its shelf."""

    def __init__(self, store: Store) -> None:
        self.rng = np.random.default_rng(3)
        self.store = store
        self.project = projects.create_project(store, "bench").project_id
        self.labels = self.rng.integers(1, 6, N_SOURCES * N_SYSTEMS).astype(float)
        items = tuple(
            Item(f"i{k}", f"Text {k} {HOSTILE}", f"doc{k // N_SYSTEMS}", f"sys{k % N_SYSTEMS}")
            for k in range(self.labels.size)
        )
        labels = {"coherence": AspectLabels("coherence", Scale(1, 5, 1.0), tuple(self.labels))}
        self.golden = GoldenSet("summeval sample", "single", items, labels)
        self.golden_id = projects.add_golden(store, self.project, self.golden)

    def add(self, name: str, spread: float, **more: Any) -> str:
        values = self.labels + self.rng.normal(0, spread, self.labels.size)
        judge = JudgeScores(name, more.pop("kind", "metric"), "coherence", values, calls_per_item=0.0)
        return projects.add_judge(self.store, self.project, self.golden_id, replace(judge, **more))

    @property
    def ids(self) -> dict[str, str]:
        return {"project": self.project, "golden": self.golden_id, "aspect": "coherence"}


@pytest.fixture
def shelf(store: Store) -> Shelf:
    return Shelf(store)


@pytest.fixture
def full(shelf: Shelf) -> Shelf:
    shelf.add("one", 1.5)
    shelf.add("two", 1.8)
    shelf.add(f"three {HOSTILE}", 2.0)
    shelf.add("plain", 2.0, kind="no criteria")
    return shelf


def table(screen: AppTest) -> Any:
    return frame_with(screen, "beside the best part")


def test_one_table_holds_fusions_parts_and_the_plain_judge_at_one_measure(full: Shelf) -> None:
    screen = open_screen(SCREEN, **full.ids)
    next(one for one in screen.segmented_control if one.label == "Level").set_value("dataset").run()
    assert not screen.exception
    frame = table(screen)
    assert list(frame["judge"])[:3] == ["fusion, average", "fusion, ridge", "fusion, non-negative weights"]
    assert set(frame["role"]) == {"fusion", "part", "plain judge"}
    assert len(set(frame["n"])) == 1
    assert [name for name in frame.columns if "Spearman" in name] == ["Spearman, dataset"]
    listed = {one.name: one for one in projects.list_judges(full.store, full.project)}
    from core.fusion.stack import StackSettings

    parts = [one.judge_id for one in listed.values() if one.judge.kind == "metric"]
    found = projects.fuse_judges(full.store, full.project, full.golden_id, "coherence", judge_ids=parts,
                              settings=StackSettings(method="ridge"))  # fmt: skip
    at = list(found.report)
    for name in ("one", "plain"):
        told = float(frame.loc[frame["judge"] == name, "Spearman, dataset"].iloc[0])
        assert told == pytest.approx(spearmanr(listed[name].judge.values[at], full.labels[at]).statistic)


def test_every_section_draws_and_shows_markup_as_letters(full: Shelf) -> None:
    screen = open_screen(SCREEN, **full.ids)
    for section in ("How alike the parts are", "Where they contradict", "Let a model fuse", "The paper's numbers"):
        choose_section(screen, section)
    choose_section(screen, "Where they contradict")
    assert any(HOSTILE in one.value for one in screen.text)
    assert not [one for one in screen.markdown if HOSTILE in one.value]
    assert "whose labels none of the parts" in texts(screen)


def test_the_papers_levels_stand_in_tables_of_their_own(full: Shelf) -> None:
    screen = choose_section(open_screen(SCREEN, **full.ids), "The paper's numbers")
    printed = [one.value for one in screen.dataframe if "judge in the paper" in one.value.columns]
    assert len(printed) == 2
    assert all("level" not in frame.columns for frame in printed)
    said = texts(screen)
    assert "System level" in said
    assert "Sample level" in said
    system = next(frame for frame in printed if (frame["judge in the paper"].str.startswith("Fusion-Eval")).any())
    assert not system["judge in the paper"].str.startswith("G-Eval").any()


def test_a_fusion_is_kept_as_a_judge(full: Shelf) -> None:
    screen = open_screen(SCREEN, **full.ids)
    next(one for one in screen.text_input if one.label == "Name").set_value("Three in one").run()
    press(screen, "Keep")
    assert "Three in one is among the judges now" in texts(screen).replace("\\", "")
    kept = [one for one in projects.list_judges(full.store, full.project) if one.judge.kind == "fused"]
    assert [one.name for one in kept] == ["Three in one"]
    shelf_table = frame_with(screen, "labels seen")
    assert not shelf_table.loc[shelf_table["judge"] == "Three in one", "part"].iloc[0]  # no part of itself


def test_without_judges_it_says_what_to_do(shelf: Shelf) -> None:
    said = texts(open_screen(SCREEN, **shelf.ids))
    assert "no judge yet" in said
    assert "Compute metrics" in said
    shelf.add("one", 1.0)
    assert "one judge only" in texts(open_screen(SCREEN, **shelf.ids))


def test_parts_that_saw_nearly_everything_are_refused_in_words(shelf: Shelf) -> None:
    shelf.add("one", 1.0)
    shelf.add("cheat", 0.1, kind="calibrated", seen=tuple(range(110)))
    said = texts(open_screen(SCREEN, **shelf.ids))
    assert "These judges cannot be fused" in said
    assert "no part has seen" in said


def test_a_plan_is_proposed_and_its_cost_shown(full: Shelf) -> None:
    screen = choose_section(open_screen(SCREEN, **full.ids), "Let a model fuse")
    next(one for one in screen.button if one.label.startswith("Propose")).click().run()
    assert not screen.exception
    plan = next(one for one in screen.text_area if one.label == "Plan").value
    assert plan.startswith("coherence: ")
    next(one for one in screen.text_input if one.label == "Model").set_value("scripted").run()
    assert "120 calls" in texts(screen)
    next(one for one in screen.text_area if one.label == "Plan").set_value("coherence: bleurt").run()
    assert "no such assistant" in texts(screen)


def test_every_labelled_aspect_is_rated_in_the_same_call(full: Shelf) -> None:
    aspects = full.golden.aspects["coherence"]
    labels = {name: replace(aspects, aspect=name) for name in ("coherence", "fluency", "relevance")}
    golden = replace(full.golden, name="three aspects", aspects=labels)
    golden_id = projects.add_golden(full.store, full.project, golden)
    for name in ("one", "two"):
        values = full.labels + full.rng.normal(0, 2.0, full.labels.size)
        for aspect in labels:
            projects.add_judge(full.store, full.project, golden_id, JudgeScores(name, "metric", aspect, values))
    ids = full.ids | {"golden": golden_id}
    screen = choose_section(open_screen(SCREEN, **ids), "Let a model fuse")
    offered = next(one for one in screen.multiselect if one.label.startswith("Rated in each call"))
    assert (offered.options, offered.value) == (["fluency", "relevance"], ["fluency", "relevance"])
    offered.set_value(["relevance"]).run()
    next(one for one in screen.button if one.label.startswith("Propose")).click().run()
    assert not screen.exception
    plan = next(one for one in screen.text_area if one.label == "Plan").value
    assert [line.split(":")[0] for line in plan.splitlines() if line.startswith(tuple(labels))] == [
        "coherence",
        "relevance",
    ]
    next(one for one in screen.text_input if one.label == "Model").set_value("scripted").run()
    assert "120 calls" in texts(screen)  # no more than for one aspect
    press(screen, "Keep this version")
    kept = projects.list_plans(full.store, full.project, golden_id)
    assert [one.aspects for one in kept] == [("coherence", "relevance")]
    offered = next(one for one in screen.multiselect if one.label.startswith("Rated in each call"))
    offered.set_value(["fluency"]).run()
    assert next(one for one in screen.text_area if one.label == "Plan").value == ""  # another plan's aspects


def test_the_parts_say_what_they_need(full: Shelf) -> None:
    full.add("overlap", 1.0)
    full.add("hidden", 1.0, kind="repeval")
    frame = next(one.value for one in open_screen(SCREEN, **full.ids).dataframe if "labels seen" in one.value.columns)
    needs = dict(zip(frame["judge"], frame["needs"], strict=True))
    assert needs["overlap"] == "source"
    assert needs["hidden"] == "its encoder"
    assert needs["one"] == "—"  # a metric by a name that nothing is computed by
    assert needs["plain"] == "its judge"
