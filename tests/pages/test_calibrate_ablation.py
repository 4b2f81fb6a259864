"""The ablation of a calibration on screen: estimate, start, table, figure."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.projects.start_and_resume import execute_here
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Calibrated
from tests.pages.screen import choose_section, frame_with, has_button, metrics, open_screen, press, texts

CALIBRATED = True  # every test begins in a copy of that home


def figures(calibrated: Calibrated) -> AppTest:
    return choose_section(open_screen("3_calibrate", run=calibrated.run_id), "All figures")


def test_a_press_starts_an_ablation_whose_table_says_what_was_opened(
    store: Store, settings: Settings, calibrated: Calibrated
) -> None:
    screen = figures(calibrated)
    assert metrics(screen)["Held-out items"] == "48"
    assert "This uses the held-out items" in texts(screen)
    press(screen, "Run the ablations")
    (run,) = [run for run in store.runs.all() if run.kind == "ablation"]
    assert projects.run_view(store, run.run_id).request.run_id == calibrated.run_id  # type: ignore[attr-defined]
    assert has_button(screen, "Cancel")
    assert not has_button(screen, "Run the ablations")
    execute_here(store, settings, run.run_id)
    screen = figures(calibrated)
    found: Any = projects.run_view(store, run.run_id).outcome
    table = frame_with(screen, "variant")
    assert list(table["variant"])[1:] == [row.key for row in found.rows[1:]]
    assert list(table["minus final"])[1:] == pytest.approx([row.difference for row in found.rows[1:]])
    assert (table["minus final"].isna()[0], table["95 % interval"][0]) == (True, "—")
    assert found.opening in texts(screen)
    (finding,) = [part.value for part in screen.subheader]
    differ = {row.key for row in found.rows[1:] if row.p_holm is not None and row.p_holm <= 0.05}
    assert {row.key for row in found.rows[1:] if row.key in finding} == differ
    assert not has_button(screen, "Run the ablations")
