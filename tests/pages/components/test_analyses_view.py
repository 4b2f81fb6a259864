"""Ablations and analyses on screen, against a real store: nothing there yet, estimate, waiting, table, case study."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core import projects
from core.calibration.settings import CalibrationSettings
from core.data import load_golden
from core.demo.build import do_here
from core.projects.calibration import CalibrationRequest
from core.records import AspectLabels, GoldenSet
from core.settings import Settings
from core.store.store import Store

HOSTILE = "<b>wit</b> [x](http://evil.example) $y$"


@dataclass(frozen=True)
class Template:
    home: Path
    run_id: str


def kept_in(home: Path) -> Settings:
    return Settings(home=home, worker="external", worker_id="w")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Template:
    """A home with an offline calibration of coherence on 16 sources; another aspect, with a hostile name, has none."""
    whole = load_golden(repository / "sample_data" / "summaries.jsonl")
    n = int(np.flatnonzero(whole.source_codes < 16)[-1]) + 1
    labels = replace(whole.aspects["coherence"], values=whole.aspects["coherence"].values[:n])
    other = AspectLabels(HOSTILE, labels.scale, labels.values)
    golden = GoldenSet("some", whole.kind, whole.items[:n], {"coherence": labels, HOSTILE: other})
    home = tmp_path_factory.mktemp("template") / "home"
    settings = kept_in(home)
    store = projects.open_store(settings)
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, golden)
    asked = CalibrationRequest(
        project, golden_id, "coherence", "offline", CalibrationSettings(preset="quick", resamples=50)
    )
    run_id = projects.start_calibration(store, settings, asked)
    do_here(store, settings, run_id)
    store.close()
    return Template(home, run_id)


@pytest.fixture
def settings(tmp_path: Path, template: Template) -> Settings:
    shutil.copytree(template.home, tmp_path / "home")
    return kept_in(tmp_path / "home")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    st.cache_resource.clear()
    opened = projects.open_store(settings)
    yield opened
    opened.close()
    st.cache_resource.clear()


@pytest.fixture
def show(store: Store, settings: Settings) -> Callable[..., AppTest]:
    def shown(aspect: str = "coherence") -> AppTest:
        screen = AppTest.from_function(a_page, default_timeout=30, args=(str(settings.home), aspect)).run()
        assert not screen.exception, screen.exception
        return screen

    return shown


def a_page(home: str, aspect: str) -> None:
    """A screen that holds the component alone."""
    from pathlib import Path

    from core import projects
    from core.settings import Settings
    from pages.components import analyses_view
    from pages.components.page import Opened
    from pages.components.screens import draw_notice

    settings = Settings(home=Path(home), worker="external", worker_id="w")
    store = projects.open_store(settings)
    (project,) = projects.list_projects(store)
    (golden,) = projects.list_goldens(store, project.project_id)
    draw_notice()
    analyses_view.draw(Opened(settings, store, project), golden, aspect)


def written(screen: AppTest) -> str:
    kinds = ("error", "warning", "info", "caption", "markdown", "text", "subheader")
    return "\n".join(str(element.value) for kind in kinds for element in screen.get(kind))


def told(screen: AppTest) -> str:
    """What a person reads: without the marks that keep text from being markup."""
    return written(screen).replace("\\", "")


def button(screen: AppTest, label: str) -> Any:
    return next((one for one in screen.button if one.label == label), None)


def test_without_a_calibration_it_says_what_to_do(show: Callable[..., AppTest]) -> None:
    screen = show(HOSTILE)
    assert "Run a calibration" in told(screen)
    assert "<b>" not in written(screen)
    assert "[x](" not in written(screen)
    assert button(screen, "Run the ablations") is None


def test_before_the_start_it_shows_the_estimate_and_what_is_opened(
    show: Callable[..., AppTest], store: Store, settings: Settings
) -> None:
    screen = show()
    metrics = {one.label: one.value for one in screen.metric}
    assert metrics["Held-out items"] == "48"
    assert int(metrics["Calls, at most about"].replace(",", "")) >= 0
    assert "This opens the held-out items" in told(screen)
    assert "no language model" in told(screen)
    assert not screen.checkbox  # an offline judge has no evaluation steps to switch
    assert button(screen, "Run the ablations") is not None


def test_the_button_starts_a_run_that_is_then_waited_for(
    show: Callable[..., AppTest], store: Store, template: Template
) -> None:
    screen = show()
    button(screen, "Run the ablations").click().run()
    assert not screen.exception
    (run,) = [run for run in projects.list_runs(store) if run.kind == "ablation"]
    assert run.status == "queued"
    assert projects.run_view(store, run.run_id).request.run_id == template.run_id  # type: ignore[attr-defined]
    assert "Waiting for a worker" in told(screen)
    assert button(screen, "Run the ablations") is None


def test_the_table_stands_beside_its_figure_and_says_what_was_opened(
    show: Callable[..., AppTest], store: Store, settings: Settings
) -> None:
    screen = show()
    button(screen, "Run the ablations").click().run()
    (run,) = [run for run in projects.list_runs(store) if run.kind == "ablation"]
    do_here(store, settings, run.run_id)
    screen = show()
    found: Any = projects.run_view(store, run.run_id).outcome
    table = next(frame.value for frame in screen.dataframe if "variant" in frame.value.columns)
    assert list(table["variant"])[1:] == [row.key for row in found.rows[1:]]
    assert table["variant"][0].startswith("final judge")
    assert table["minus final"].isna()[0]
    assert list(table["minus final"])[1:] == pytest.approx([row.difference for row in found.rows[1:]])
    assert table["95 % interval" if "95 % interval" in table else "interval"][0] == "—"
    words = told(screen)
    assert found.opening.split(".")[0] in words
    assert "opened 2 times so far" in words
    assert "1 × an ablation measured variants on them" in words
    assert "p is corrected (Holm) over the" in words
    assert "left out: with evaluation steps" in words.lower()
    assert len(screen.get("plotly_chart")) == 4
    assert button(screen, "Run the ablations") is None


def test_complete_candidates_and_all_on_their_first_items_are_never_mixed(show: Callable[..., AppTest]) -> None:
    screen = show()
    choice = screen.radio[0]
    complete, common = choice.options
    assert "complete: scored on all 48 items" in complete
    assert "scored by all" in common
    before = told(screen)
    choice.set_value("common").run()
    assert not screen.exception
    after = told(screen)
    assert before != after
    assert "(permutation), 12 drafts" in after  # the quick preset drafts 12, all scored on the first items
    assert "All" in after
    assert "holistic" in after


def test_the_case_study_tells_r_rho_and_tau_before_and_after(
    show: Callable[..., AppTest], store: Store, template: Template
) -> None:
    screen = show()
    case = projects.case_study(store, template.run_id)
    assert case is not None
    table = next(frame.value for frame in screen.dataframe if "before" in frame.value.columns)
    assert list(table["statistic"]) == ["Pearson r", "Spearman rho", "Kendall tau-b"]
    assert list(table["after − before"]) == pytest.approx(
        [case.differences[name].value for name in ("pearson", "spearman", "kendall")]
    )
    listed = projects.list_refinements(store, template.run_id)
    picker = screen.selectbox[1]
    assert len(picker.options) == len(listed)
    gain = listed[0].inner_gain
    assert gain is not None
    assert f"inner fold {gain:+.3f}" in picker.options[0]
    added = ":green-background[" in written(screen)
    removed = ":red-background[" in written(screen)
    assert added or removed
    assert "the difference flatters" in told(screen)
