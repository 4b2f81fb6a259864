"""The adapters on screen, on a real store: the empty state, each tool with what is lost, text and download."""

from __future__ import annotations

from core import projects
from core.export.adapters import NAMES
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Calibrated
from tests.pages.screen import HOSTILE_ASPECT, as_sent, choose, draw, labelled

CALIBRATED = True  # every test begins in a copy of that home


def test_without_a_calibration_it_says_what_to_do(store: Store, settings: Settings) -> None:
    page = draw(settings, "adapters_view", HOSTILE_ASPECT)
    assert "Calibrate a judge; its files for other tools are here then." in as_sent(page)
    assert not page.code


def test_each_tool_with_what_it_keeps_and_what_is_lost(
    store: Store, settings: Settings, calibrated: Calibrated
) -> None:
    run = store.runs.get(calibrated.run_id)
    where = (run.project_id, run.golden_id)
    page = draw(settings, "adapters_view", "coherence")
    assert len(labelled(page.segmented_control, "Tool").options) == len(NAMES)
    adapters = projects.judge_adapters(store, *where, "coherence")
    assert adapters is not None
    assert adapters.run.run_id == run.run_id
    for name, words in (("deepeval", "mean over its"), ("promptfoo", "no language model"), ("python", "judge\\.yaml")):
        page = choose(page, "Tool", name)
        assert words in as_sent(page)
        [shown] = page.code
        assert _settled(shown.value) == _settled({adapter.name: adapter for adapter in adapters.adapters}[name].text)
    assert projects.judge_adapters(store, *where, HOSTILE_ASPECT, run.run_id) is None


def _settled(text: str) -> list[str]:
    """The lines of a file without those that tell when its judge file was written."""
    return [line for line in text.rstrip("\n").split("\n") if "written 20" not in line and "sha256:" not in line]
