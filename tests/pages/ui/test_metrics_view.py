"""Baseline metrics on screen, against a real store: what can be chosen, the run, what came of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.projects.project_judges import MetricsRequest
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Place, golden_of
from tests.pages.screen import button, draw, press, texts

HOSTILE = "<img src=x>**b**"


@pytest.fixture
def store(store: Store, settings: Settings) -> Store:
    metrics = {"ter": (1.0, 2.0, 3.0, 4.0), HOSTILE: (1.0, 1.0, 1.0, 1.0)}
    golden = golden_of(2, 2, labels=(1, 2, 3, 4), aspects=("wit",), text=lambda k: f"source {k}", metrics=metrics)
    Place(store, settings, golden)
    return store


@pytest.fixture
def screen(store: Store, settings: Settings) -> AppTest:
    return draw(settings, "metrics_view", "wit")


def box(screen: AppTest, name: str):  # type: ignore[no-untyped-def]
    return next(one for one in screen.checkbox if one.label.replace("\\", "").split(" (")[0] == name)


def test_what_can_be_computed_is_offered_and_the_rest_named_with_its_reason(screen: AppTest) -> None:
    offered = [one.label.replace("\\", "") for one in screen.checkbox]
    assert {"overlap", "metric_ter"} <= set(offered)
    assert r"\<img src\=x\>\*\*b\*\*" in " ".join(one.label for one in screen.checkbox)
    assert "Share of the target's words found in the source." in texts(screen)
    assert "rouge1" not in offered
    (said,) = [line.value for line in screen.caption if "no item of this golden set has references" in line.value]
    assert "rouge1" in said
    assert "overlap," not in said
    assert button(screen, "Compute").disabled, "nothing is chosen yet"


def test_what_it_takes_stands_beside_the_button(screen: AppTest) -> None:
    box(screen, "overlap").check().run()
    assert "4 items for each metric, no judge calls. Free; about a second for 1,000 items with one reference each." in [
        line.value for line in screen.text
    ]
    screen.text_input[0].set_value("nli:a").run()
    assert any("Your own model" in line.value for line in screen.text)


def test_a_choice_is_computed_and_texts(
    screen: AppTest, store: Store, settings: Settings, drive: Callable[..., str]
) -> None:
    box(screen, "overlap").check().run()
    box(screen, "metric_ter").check().run()
    box(screen, f"metric_{HOSTILE}").check().run()
    assert button(screen, "Compute").label == "Compute 3 metrics"
    press(screen, "Compute")
    (run,) = store.runs.all()
    assert (run.kind, run.status) == ("metrics", "queued")
    request = projects.run_view(store, run.run_id).request
    assert isinstance(request, MetricsRequest)
    assert request.names == ("overlap", "metric_ter", f"metric_{HOSTILE}")
    assert button(screen, "Cancel")
    assert button(screen, "Compute").disabled, "the choice is empty again"
    drive(store, settings, run.run_id)
    screen.run()
    assert "Added as judges for wit: overlap, metric_ter." in texts(screen)
    assert f"metric_{HOSTILE} was left out: it gave the same score, 1, to all 4 items that it scored." in texts(screen)
    assert box(screen, "overlap").label == "overlap \\(already added\\)"
    assert len(store.judges.all(run.project_id)) == 2


def test_another_session_sees_a_running_one_but_no_old_result(
    screen: AppTest, store: Store, settings: Settings, drive: Callable[..., str]
) -> None:
    box(screen, "overlap").check().run()
    press(screen, "Compute")
    assert button(draw(settings, "metrics_view", "wit"), "Cancel")
    drive(store, settings, store.runs.all()[0].run_id)
    assert "Added as judges" not in texts(draw(settings, "metrics_view", "wit"))


@pytest.mark.parametrize(("typed", "says"), [("magic", "Metric 'magic' not found"), ("nli:a, nli:a", "listed twice")])
def test_a_wrong_name_is_told_at_once(screen: AppTest, typed: str, says: str) -> None:
    screen.text_input[0].set_value(typed).run()
    assert says in texts(screen)
    assert button(screen, "Compute").disabled
