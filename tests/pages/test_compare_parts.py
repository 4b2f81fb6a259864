"""Ablations and analyses on screen, against a real store: nothing there yet, estimate, waiting, table, plots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.demo.build import do_here
from core.settings import Settings
from core.store.store import Store
from tests.pages.screen import HOSTILE_ASPECT, as_sent, draw, frame_with, has_button, press, texts

CALIBRATED = True  # every test begins in a copy of that home


@pytest.fixture
def show(store: Store, settings: Settings) -> Callable[..., AppTest]:
    return lambda aspect="coherence": draw(settings, "compare.parts", aspect)


def test_without_a_calibration_it_says_what_to_do(show: Callable[..., AppTest]) -> None:
    screen = show(HOSTILE_ASPECT)
    assert "Run a calibration" in texts(screen)
    assert "<b>" not in as_sent(screen)
    assert "[x](" not in as_sent(screen)
    assert not has_button(screen, "Run the ablations")


def test_before_the_start_it_shows_the_estimate_and_what_is_opened(
    show: Callable[..., AppTest], store: Store, settings: Settings
) -> None:
    screen = show()
    metrics = {metric.label: metric.value for metric in screen.metric}
    assert metrics["Held-out items"] == "48"
    assert int(metrics["Calls, at most about"].replace(",", "")) >= 0
    assert "This opens the held-out items" in texts(screen)
    assert not screen.checkbox  # an offline judge has no evaluation steps to switch
    assert has_button(screen, "Run the ablations")


def test_the_button_starts_a_run_whose_table_stands_beside_its_figure_and_says_what_was_opened(
    show: Callable[..., AppTest], store: Store, settings: Settings, calibrated: Any
) -> None:
    screen = show()
    press(screen, "Run the ablations")
    (run,) = [run for run in projects.list_runs(store) if run.kind == "ablation"]
    assert run.status == "queued"
    assert projects.run_view(store, run.run_id).request.run_id == calibrated.run_id  # type: ignore[attr-defined]
    assert has_button(screen, "Cancel")
    assert not has_button(screen, "Run the ablations")
    do_here(store, settings, run.run_id)
    screen = show()
    found: Any = projects.run_view(store, run.run_id).outcome
    table = frame_with(screen, "variant")
    assert list(table["variant"])[1:] == [row.key for row in found.rows[1:]]
    assert table["variant"][0].startswith("final judge")
    assert table["minus final"].isna()[0]
    assert list(table["minus final"])[1:] == pytest.approx([row.difference for row in found.rows[1:]])
    assert table["95 % interval"][0] == "—"
    words = texts(screen)
    assert found.opening.split(".")[0] in words
    assert "opened 2 times so far" in words
    assert "1 × an ablation measured variants on them" in words
    assert "p is corrected (Holm) over the" in words
    (finding,) = [part.value for part in screen.subheader]
    differ = {row.key for row in found.rows[1:] if row.p_holm is not None and row.p_holm <= 0.05}
    assert {row.key for row in found.rows[1:] if row.key in finding} == differ
    assert len(screen.get("image")) == 2 + 2  # wide and narrow, with those of the candidates
    assert not has_button(screen, "Run the ablations")


def test_candidates_are_plotted_on_the_items_that_all_of_them_were_scored_on(show: Callable[..., AppTest]) -> None:
    screen = show()
    assert len(screen.get("image")) == 2
    assert "candidates, compared on the 48 calibration items" in texts(screen)
