"""A model in the worker, from the form to verdicts: its judge file scores as the calibration did."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import Page

from core import projects
from core.__main__ import main
from core.data import load_golden
from core.settings import Settings
from tests.core.local_models import save_model

pytestmark = [pytest.mark.browser, pytest.mark.slow]
Settle = Callable[..., None]


def short_items(folder: Path) -> Path:
    """Items that a tiny model with letters for tokens can read."""
    rows = [
        {
            "item_id": f"i{k}",
            "source_id": f"s{k // 2}",
            "target": f"Text {k} " * (1 + k % 5),
            "human_quality": 1 + k % 5,
        }
        for k in range(24)
    ]
    file = folder / "short.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


def a_project(home: Path, items: Path) -> tuple[str, str]:
    """A home with a project that holds the items: the ids of project and golden set."""
    store = projects.open_store(Settings(home=home, worker="external", worker_id="w"))
    project_id = projects.create_project(store, "any model").project_id
    golden_id = projects.add_golden(store, project_id, load_golden(items))
    store.close()
    return project_id, golden_id


def calibrated(page: Page, settle: Settle, judge: Path) -> None:
    """Starts what the form holds, waits for the result, and downloads the judge."""
    page.get_by_role("button", name="Start the calibration").click()
    settle("Download judge.yaml")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download judge.yaml").click()
    download.value.save_as(judge)
    assert not page.get_by_test_id("stException").count()


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[float]]:
    """What `score` says of each item; in a home of its own, so that nothing is answered from the cache."""

    def of_items(items: Path, judge: Path, out: Path, home: Path, *more: str) -> list[float]:
        monkeypatch.setenv("CONCORD_HOME", str(home))
        assert main(["score", str(items), "--judge-file", str(judge), "--out", str(out), *more]) == 0
        return [json.loads(line)["score"] for line in out.read_text("utf-8").splitlines()]

    return of_items


def test_a_model_in_the_worker_scores_as_on_the_command_line(
    page: Page,
    serve: Callable[[Path], AbstractContextManager[str]],
    known_as: Settle,
    settle: Settle,
    enter: Settle,
    scored: Callable[..., list[float]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = save_model(tmp_path / "model", words=True)
    monkeypatch.setenv("CONCORD_LOCAL_MODELS", str(folder))
    home, items, judge = tmp_path / "home", short_items(tmp_path), tmp_path / "judge.yaml"
    project, golden_id = a_project(home, items)
    with serve(home) as url:
        known_as(url)
        page.goto(f"{url}/calibrate?project={project}&golden={golden_id}&aspect=quality&section=new")
        settle("Before you start")
        page.get_by_text("LLM from this installation's list, loaded by the worker").click()
        settle("Model loaded by the worker")
        page.get_by_text("Advanced: search").click()
        enter(page.get_by_role("spinbutton", name="Budget in calls"), "200")
        calibrated(page, settle, judge)
    store = projects.open_store(Settings(home=home, worker="external", worker_id="w"))
    shelf = projects.judges_shown(store, project, golden_id, "quality")
    (own,) = [entry.judge for entry in shelf.entries if entry.judge.kind == "calibrated"]
    by_command = scored(items, judge, tmp_path / "v.jsonl", tmp_path / "other", "--judge", f"hf:{folder}")
    assert by_command == pytest.approx(own.values.tolist(), abs=1e-5)  # batches differ, and with them the last digits
