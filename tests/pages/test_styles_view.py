"""The grid of styles on screen, on a real store: the empty state, the estimate, the start, progress and result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.comparison.style_grid import StylesSettings, StylesView, Unfinished, styles
from core.data import load_golden
from core.judging.scoring_styles import Style
from core.projects.method_runs import StylesRequest
from core.settings import Settings
from core.store.store import Store
from pages.compare import styles_view
from tests.pages.making import Place
from tests.pages.screen import ROOT, draw, grids, has_button, texts

SEVERAL = Style("score_only", samples=3, temperature=1.0)


class Grids(Place):
    """A place for grids of styles, and the component drawn on it."""

    def request(self, *asked: Style, **choices: Any) -> StylesRequest:
        chosen = StylesSettings(asked, n_items=24, **choices)
        return StylesRequest(self.project_id, self.golden_id, "coherence", "scripted", chosen)

    def result(self, request: StylesRequest) -> StylesView:
        return styles(self.golden, "coherence", "scripted", request.settings).view

    def show(self, aspect: str = "coherence") -> AppTest:
        return draw(self.settings, "compare.styles_view", aspect, golden=self.golden.name)

    def started(self, page: AppTest) -> StylesRequest:
        """What is asked for once the button is pressed."""
        page.button(key="form_styles_start").click().run()
        request = self.request_of(self.newest("styles"))
        assert isinstance(request, StylesRequest)
        return request


@pytest.fixture
def place(store: Store, settings: Settings) -> Grids:
    return Grids(store, settings, load_golden(ROOT / "sample_data" / "summaries.jsonl"))


def test_without_an_endpoint_it_says_what_to_do(place: Grids) -> None:
    page = place.show()
    assert "No key is set in the environment" in texts(page)
    assert "Enter the name of the model" in texts(page)
    assert not any("Scripted" in option for option in page.radio[0].options)
    assert not has_button(page, "Try these styles")


def test_a_configured_endpoint_needs_only_the_model(place: Grids) -> None:
    place.settings = replace(place.settings, openai_base_url="http://127.0.0.1:9/v1")
    page = place.show()
    page = page.text_input(key="form_styles_model").input("m").run()
    frame = grids(page)[0]
    assert frame["calls"].tolist() == [54, 54]  # 9 whole sources of 6 items reach 50


@pytest.mark.usefixtures("as_demo")
def test_the_estimate_follows_the_form_and_the_grid_starts(place: Grids) -> None:
    page = place.show()
    page.radio(key="form_styles_judge").set_value("scripted").run()
    page.radio(key="form_styles_extent").set_value("all")
    page.number_input(key="form_styles_samples").set_value(2)
    page.number_input(key="form_styles_temperature").set_value(1.0)
    page.multiselect(key="form_styles_forms").set_value(["analyze_rate", "stars"])
    page.checkbox(key="form_styles_steps").check()
    page.selectbox(key="form_styles_statistic").set_value("kendall")
    page.selectbox(key="form_styles_level").set_value("dataset")
    page.run()
    frame = grids(page)[0]
    assert frame["calls"].tolist() == [288, 288]
    assert any(line.value.startswith("577 calls") for line in page.text)  # the steps are a call
    request = place.started(page)
    chosen = request.settings
    assert [style.form for style in chosen.styles] == ["analyze_rate", "stars"]
    assert (chosen.auto_steps, chosen.n_items, request.judge_spec) == (True, None, "scripted")
    assert (chosen.statistic, chosen.level) == ("kendall", "dataset")
    assert "Each style appears here when it is finished" in texts(
        page
    )  # it is followed now, and no second one is offered
    assert not has_button(page, "Try these styles")


@pytest.mark.usefixtures("as_demo")
def test_a_grid_without_a_form_is_explained(place: Grids) -> None:
    page = place.show()
    page.radio(key="form_styles_judge").set_value("scripted")
    page.multiselect(key="form_styles_forms").set_value([]).run()
    assert "Choose at least one output form" in texts(page)


def test_the_result_shows_a_table_and_what_was_not_run(place: Grids) -> None:
    request = place.request(SEVERAL, Style("score_only", weighted=True), auto_steps=True)
    result = place.result(request)
    left = Unfinished("stars", "no evaluation steps came back")
    place.add_run("done", request, outcome=replace(result, unfinished=(left,)))
    page = place.show()
    frame = grids(page)[0]
    measure = "Spearman rho, sample level"
    assert frame["style"].tolist() == [cell.name for cell in result.cells]
    np.testing.assert_allclose(frame[measure], [cell.alignment.value for cell in result.cells])
    assert frame["unread replies"].tolist() == ["0 of 72", "0 of 24"]
    assert frame["items"].tolist() == [cell.alignment.n for cell in result.cells]
    page_text = texts(page)
    assert measure in page_text
    assert "95 % intervals by jackknife of the mean over 4 sources" in page_text
    assert "stars: no evaluation steps" in page_text.replace("\\", "")
    assert "stand" in page_text
    best = max(result.cells, key=lambda cell: cell.alignment.value or 0.0)
    headline = f"“{best.name}” has the highest agreement: " + f"{best.alignment.value:.2f}.".replace("-", "−")
    assert page.subheader[0].value.replace("\\", "").startswith(headline)
    assert "Try more styles" in [part.label for part in page.expander]


def test_an_undefined_alignment_is_no_zero(place: Grids) -> None:
    result = place.result(place.request(SEVERAL))
    undefined = replace(result.cells[0].alignment, value=None, interval=None, reason="all scores are equal")
    cell = replace(result.cells[0], alignment=undefined)
    frame = styles_view.cells_frame([cell], "m")
    assert np.isnan(frame["m"][0])
    assert frame["95 % interval"][0] == "—"
    assert frame["why undefined"][0] == "all scores are equal"
    assert "why undefined" not in styles_view.cells_frame(result.cells, "m")
