"""The section of Compare on how good the systems are, against a real store."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from streamlit.testing.v1 import AppTest

from core import projects
from core.data.reshape import PREFERENCES
from core.records import AspectLabels, GoldenSet, Item, JudgeScores
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Place, golden_of
from tests.pages.screen import choose, grids, open_screen, texts

SCREEN = "6_compare"
SOURCES, LABELLED = 60, 30


def place_of(store: Store, settings: Settings, *, gap: float, labelled: int = LABELLED) -> Place:
    """60 sources by 2 systems, the labels of the first `labelled` known; the second system is `gap` better."""
    generator = np.random.default_rng(4)
    labels = np.clip(np.rint(2.5 + gap * (np.arange(2 * SOURCES) % 2) + generator.normal(0, 0.9, 2 * SOURCES)), 1, 5)
    golden = golden_of(SOURCES, 2, name="answers", labels=labels, aspects=("quality",))
    known = tuple(float(label) if k < 2 * labelled else None for k, label in enumerate(labels))
    aspect = golden.aspects["quality"]
    bare = replace(golden, aspects={"quality": AspectLabels("quality", aspect.scale, known)})
    place = Place(store, settings, bare)
    values = np.clip(labels + generator.normal(0, 0.8, labels.size), 1, 5)
    judge = JudgeScores("judge", "imported", "quality", values)
    projects.add_judge(store, place.project_id, place.golden_id, judge)
    return place


def opened(place: Place) -> AppTest:
    screen = open_screen(SCREEN, **place.ids)
    return choose(screen, "Section", "systems")


def test_it_says_first_which_system_is_better_with_interval(store: Store, settings: Settings) -> None:
    screen = opened(place_of(store, settings, gap=1.5))
    assert "is better than" in texts(screen)
    table = grids(screen)[0]
    assert list(table["verdicts"]) == [SOURCES, SOURCES]
    table = grids(opened(place_of(store, settings, gap=1.5, labelled=SOURCES)))[0]
    assert list(table) == ["system", "corrected", "judge alone", "labels"], "each judged item has a label"


def test_without_enough_labels_it_says_how_many_are_needed(store: Store, settings: Settings) -> None:
    assert "each system needs at least 10 labels" in texts(opened(place_of(store, settings, gap=1.5, labelled=6)))


def test_on_pairs_it_says_who_wins_most_with_interval(store: Store, settings: Settings) -> None:
    rng = np.random.default_rng(0)
    chosen = rng.choice([1.0, 2.0, 3.0, 3.0], size=60)
    items = tuple(Item(f"p{k}", f"First {k}", f"s{k}", "old vs new", "", f"Second {k}") for k in range(60))
    golden = GoldenSet("pairs", "pair", items, {"preference": AspectLabels("preference", PREFERENCES, tuple(chosen))})
    place = Place(store, settings, golden)
    judge = JudgeScores("judge", "imported", "preference", np.clip(chosen + rng.normal(0, 0.8, 60), 1, 3))
    projects.add_judge(store, place.project_id, place.golden_id, judge)
    screen = opened(place)
    assert "Raters prefer new most often:" in texts(screen)
    assert "Share of pairs in which judge and raters prefer the same text:" in texts(screen)


def test_pairs_without_systems_tell_how_often_the_judge_agrees_and_what_is_missing(
    store: Store, settings: Settings
) -> None:
    chosen = np.resize([1.0, 2.0, 3.0, 3.0], 40)
    items = tuple(Item(f"p{k}", f"First {k}", f"s{k}", "", "", f"Second {k}") for k in range(40))
    labels = AspectLabels("preference", PREFERENCES, tuple(chosen))
    place = Place(store, settings, GoldenSet("pairs", "pair", items, {"preference": labels}))
    projects.add_judge(store, place.project_id, place.golden_id, JudgeScores("judge", "imported", "preference", chosen))
    said = texts(opened(place))
    assert "no pair names both of its systems (columns model_a and model_b)" in said
    assert "Share of pairs in which judge and raters prefer the same text: 1.000" in said
