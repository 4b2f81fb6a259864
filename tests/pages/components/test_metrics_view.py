"""Baseline metrics on screen, against a real store: what can be chosen, the run, what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core import projects
from core.projects.metrics import MetricsRequest
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.settings import Settings
from core.store.store import Store

HOSTILE = "<img src=x>**b**"


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    st.cache_resource.clear()
    opened = projects.open_store(settings)
    project = projects.create_project(opened, "p")
    items = tuple(Item(f"i{k}", f"red {'blue ' * k}end", f"s{k // 2}", source="red blue green") for k in range(4))
    labels = AspectLabels("wit", Scale(1, 5), (1.0, 2.0, 3.0, 4.0))
    metrics = {"ter": (1.0, 2.0, 3.0, 4.0), HOSTILE: (1.0, 1.0, 1.0, 1.0)}
    golden = GoldenSet("g", "source_target", items, {"wit": labels}, metrics=metrics)
    projects.add_golden(opened, project.project_id, golden)
    yield opened
    opened.close()


def a_page(home: str) -> None:
    """A screen that holds the component alone."""
    from pathlib import Path

    from core import projects
    from core.settings import Settings
    from pages.components import metrics_view
    from pages.components.page import Opened
    from pages.components.screens import draw_notice

    settings = Settings(home=Path(home), worker="external", worker_id="w")
    store = projects.open_store(settings)
    (project,) = projects.list_projects(store)
    (golden,) = projects.list_goldens(store, project.project_id)
    draw_notice()
    metrics_view.draw(Opened(settings, store, project), golden, "wit")


@pytest.fixture
def screen(store: Store, settings: Settings) -> AppTest:
    opened = AppTest.from_function(a_page, default_timeout=20, args=(str(settings.home),)).run()
    assert not opened.exception
    return opened


def told(screen: AppTest) -> str:
    kinds = ("error", "warning", "caption", "success", "markdown")
    return " ".join(str(element.value) for kind in kinds for element in screen.get(kind)).replace("\\", "")


def box(screen: AppTest, name: str):  # type: ignore[no-untyped-def]
    return next(one for one in screen.checkbox if one.label.replace("\\", "").split(" (")[0] == name)


def button(screen: AppTest, label: str):  # type: ignore[no-untyped-def]
    return next(one for one in screen.button if one.label.startswith(label))


def test_what_is_missing_is_greyed_with_its_reason(screen: AppTest) -> None:
    assert not box(screen, "overlap").disabled
    assert "Share of the target's words found in the source." in told(screen)
    assert box(screen, "rouge1").disabled
    assert "Not possible: no item of this golden set has references." in told(screen)
    assert not box(screen, "metric_ter").disabled
    assert button(screen, "Compute").disabled, "nothing is chosen yet"


def test_a_choice_is_computed_and_told(
    screen: AppTest, store: Store, settings: Settings, drive: Callable[..., str]
) -> None:
    box(screen, "overlap").check().run()
    box(screen, "metric_ter").check().run()
    box(screen, f"metric_{HOSTILE}").check().run()
    assert button(screen, "Compute").label == "Compute 3 metrics"
    button(screen, "Compute").click().run()
    assert not screen.exception
    (run,) = projects.list_runs(store)
    assert (run.kind, run.status) == ("metrics", "queued")
    request = projects.run_view(store, run.run_id).request
    assert isinstance(request, MetricsRequest)
    assert (request.names, request.every_aspect) == (("overlap", "metric_ter", f"metric_{HOSTILE}"), True)
    assert button(screen, "Cancel")
    assert button(screen, "Compute").disabled, "the choice is empty again"
    drive(store, settings, run.run_id)
    screen.run()
    assert not screen.exception
    assert "Among the judges now on wit: overlap, metric_ter." in told(screen)
    assert f"metric_{HOSTILE} was left out: it gave the same number, 1, to all 4 items it scored." in told(screen)
    assert box(screen, "overlap").label == "overlap \\(among the judges\\)"
    assert len(projects.list_judges(store, run.project_id)) == 2


def test_another_session_sees_a_running_one_but_no_old_result(
    screen: AppTest, store: Store, settings: Settings, drive: Callable[..., str]
) -> None:
    box(screen, "overlap").check().run()
    button(screen, "Compute").click().run()
    other = AppTest.from_function(a_page, default_timeout=20, args=(str(settings.home),)).run()
    assert button(other, "Cancel")
    drive(store, settings, projects.list_runs(store)[0].run_id)
    other = AppTest.from_function(a_page, default_timeout=20, args=(str(settings.home),)).run()
    assert not other.exception
    assert "Among the judges now" not in told(other)


def test_a_cancelled_run_is_told(screen: AppTest, store: Store) -> None:
    box(screen, "overlap").check().run()
    button(screen, "Compute").click().run()
    button(screen, "Cancel").click().run()
    assert not screen.exception
    screen.run()
    assert projects.list_runs(store)[0].status == "cancelled"
    assert "The metrics were not computed" in told(screen)


@pytest.mark.parametrize(
    ("typed", "says"), [("magic", "No assistant is called 'magic'"), ("nli:a, nli:a", "named twice")]
)
def test_a_wrong_name_is_told_at_once(screen: AppTest, typed: str, says: str) -> None:
    screen.text_input[0].set_value(typed).run()
    assert says in told(screen)
    assert button(screen, "Compute").disabled


def test_hostile_column_names_are_text(screen: AppTest) -> None:
    raw = " ".join(one.label for one in screen.checkbox)
    assert r"\<img src\=x\>\*\*b\*\*" in raw
