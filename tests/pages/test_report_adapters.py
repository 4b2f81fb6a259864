"""The adapters on screen, on a real store: each tool with what is lost, text and download."""

from __future__ import annotations

from core import projects
from core.judge_files.adapters import NAMES
from core.store.store import Store
from tests.pages.making import Calibrated
from tests.pages.screen import as_sent, choose, labelled, open_screen

CALIBRATED = True  # every test begins in a copy of that home


def test_each_tool_with_what_is_lost(store: Store, calibrated: Calibrated) -> None:
    run = store.runs.get(calibrated.run_id)
    page = open_screen("9_report", project=run.project_id, section="export")
    assert len(labelled(page.segmented_control, "Tool").options) == len(NAMES)
    adapters = {adapter.name: adapter.text for adapter in projects.judge_adapters(store, run.run_id)}
    for name, words in (
        ("mlflow", "no language model"),
        ("promptfoo", "no language model"),
        ("openai", "isn't a language model"),
    ):
        page = choose(page, "Tool", name)
        assert words in as_sent(page)
        shown = page.code[-1]
        assert _settled(shown.value) == _settled(adapters[name])


def _settled(text: str) -> list[str]:
    """The lines of a file without those that tell when its judge file was written."""
    return [line for line in text.rstrip("\n").split("\n") if "created 20" not in line and "sha256:" not in line]
