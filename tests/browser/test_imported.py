"""A project from a stranger, opened in a real browser: its runs are read-only, its golden set and criteria are used."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.__main__ import main
from tests.outside.strangers import KEY, Tables, bend, listening

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]


def test_an_imported_run_is_read_only(
    page: Page,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    serve: Callable[[Path], AbstractContextManager[str]],
    settle: Callable[..., None],
    known_as: Callable[..., None],
) -> None:
    """The re-scoring stopped half-way, and its calibration's judge names an endpoint: nothing is sent there."""
    runs: dict[str, str] = {}

    def spoil(tables: Tables) -> None:
        for run in tables["runs"]:
            if run["kind"] == "rescore":
                runs.update(rescore=run["run_id"], calibration=run["request"]["run_id"])
                run |= {"status": "cancelled", "message": "was stopped"}
        for document in tables["run_documents"]:
            if (document["run_id"], document["name"]) == (runs["calibration"], "judge"):
                document["body"] = {"state": {"spec": f"openai:m@http://127.0.0.1:{endpoint.port}/v1", "model": "m"}}

    with listening() as endpoint:
        file = bend(ROOT / "sample_data" / "demo_project.zip", tmp_path / "theirs.zip", spoil)
        monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert main(["import-project", str(file), "--name", "Theirs", "--json"]) == 0
        project = json.loads(capsys.readouterr().out)["project"]
        page.set_viewport_size({"width": 1440, "height": 1000})
        with serve(tmp_path / "home") as url:
            known_as(url)
            for run_id in runs.values():
                page.goto(f"{url}/runs?project={project}&run={run_id}")
                settle("This run was imported and is read-only.")
                expect(page.get_by_role("button", name="Resume")).to_have_count(0)
            page.goto(f"{url}/criteria?project={project}")
            settle("Make this the judge")
            page.goto(f"{url}/calibrate?project={project}&run={runs['calibration']}")
            settle("held-out")
        assert endpoint.seen == []
