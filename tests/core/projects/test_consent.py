"""An imported project sends nothing anywhere before a person here allows it: texts, key, files of this machine."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from core import projects
from core.calibration.settings import CalibrationSettings
from core.comparison.styles import StylesRequest
from core.errors import AccessError, ConsentError, JudgeError, UsageError
from core.export.archive.container import Archive, Writer
from core.judging.registry import NAMED
from core.judging.styles import Style
from core.people import Actor
from core.projects.analyses import AblationRequest, RecheckRequest
from core.projects.calibration import CalibrationRequest
from core.projects.consent import gate_of
from core.projects.rescore import RescoreRequest
from core.projects.rounds import RoundRequest
from core.projects.trial import TrialRequest
from core.records import GoldenSet
from core.settings import Settings
from core.store.store import Store

KEY, ASPECT = "sk-of-this-installation", "fluency"
ADA, BO = Actor("Ada", "admin"), Actor("Bo", "reviewer")
REPLY = json.dumps({"choices": [{"message": {"content": "Score: 3"}, "finish_reason": "stop"}], "usage": {}}).encode()
Drive = Callable[..., str]


@dataclass
class Endpoint:
    """A server under a name that is none of this machine's; (Authorization, body) of what it was sent."""

    port: int
    seen: list[tuple[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://models.test:{self.port}/v1"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            there.seen.append((self.headers.get("Authorization", ""), body))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(REPLY)))
            self.end_headers()
            self.wfile.write(REPLY)

        def log_message(self, *args: Any) -> None:
            """Nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    there = Endpoint(server.server_address[1])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    resolve = socket.getaddrinfo
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            socket,
            "getaddrinfo",
            lambda host, *more, **named: resolve(
                "127.0.0.1" if host in ("models.test", b"models.test") else host, *more, **named
            ),
        )
        yield there
    server.shutdown()
    server.server_close()


@dataclass(frozen=True)
class Came:
    """A store with an imported project: its calibration's judge asks the endpoint, though its run says scripted."""

    store: Store
    settings: Settings
    project_id: str
    golden_id: str
    run_id: str
    endpoint: Endpoint
    drive: Drive

    def some_item(self) -> str:
        """An item that its calibration scored."""
        chosen = projects.load_calibration(self.store, self.run_id).chosen[0].criteria_id
        return projects.item_scores(self.store, self.run_id, chosen)[0].item_id

    def newer(self) -> str:
        """Id of a golden set of the same labels on texts that are new to every judge."""
        golden = projects.load_golden_set(self.store, self.golden_id)
        items = tuple(replace(item, target=f"{item.target} Once more.") for item in golden.items)
        return projects.add_golden(self.store, self.project_id, replace(golden, name="newer", items=items))

    def rescore(self) -> RescoreRequest:
        ids = [entry.criteria_id for entry in projects.list_criteria(self.store, self.project_id, ASPECT)]
        return RescoreRequest(self.project_id, self.golden_id, ASPECT, ids[0], ids[1], self.run_id)


def bent(data: bytes, change: Callable[[dict[str, list[Any]]], None]) -> bytes:
    """The file with its rows changed, hashes and counts fitting."""
    with Archive(io.BytesIO(data)) as archive:
        tables = {file.table: [row for _, row in archive.rows(file.table)] for file in archive.manifest.files}
        manifest = archive.manifest
    change(tables)
    out = io.BytesIO()
    with Writer(out) as writer:
        for table, rows in tables.items():
            writer.add(table, rows)
        writer.finish(replace(manifest, files=tuple(writer.files)))
    return out.getvalue()


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory, drive: Drive, golden: GoldenSet) -> bytes:
    """The file of a project with a finished calibration by the scripted judge, and a grid of styles nobody finished."""
    settings = Settings(home=tmp_path_factory.mktemp("there"), worker="external", worker_id="w")
    store = projects.open_store(settings).acting(ADA)
    project_id = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project_id, golden)
    request = CalibrationRequest(project_id, golden_id, ASPECT, "scripted", CalibrationSettings("quick", rounds=0))
    assert drive(store, settings, projects.start_calibration(store, settings, request)) == "done"
    style = StylesRequest(project_id, golden_id, ASPECT, (ASPECT,), "scripted", (Style("rate_explain"),), n_items=5)
    projects.cancel_run(store, projects.start_styles(store, settings, style))
    file = settings.home / "p.zip"
    projects.export_project(store, settings, project_id, file)
    store.close()
    return file.read_bytes()


def hostile(taken: bytes, spec: str) -> bytes:
    def change(tables: dict[str, list[Any]]) -> None:
        for row in tables["run_documents"]:
            if row["name"] == "judge":
                row["body"] = (
                    json.dumps(row["body"]).replace('"scripted"', json.dumps(spec)).replace("openai", "\\u006fpenai")
                )
            if row["name"] == "result":
                row["body"]["judge_state"]["spec"] = spec
        for row in tables["runs"]:
            if row["kind"] == "styles":
                row["request"]["judge_spec"] = spec

    return bent(taken, change)


@pytest.fixture
def came(taken: bytes, endpoint: Endpoint, tmp_path: Path, drive: Drive) -> Iterator[Came]:
    settings = Settings(home=tmp_path / "home", worker="external", worker_id="w", openai_api_key=KEY)
    store = projects.open_store(settings).acting(ADA)
    data = hostile(taken, f"openai:m@{endpoint.url}")
    imported = projects.import_project(store, settings, io.BytesIO(data))
    assert [(one.endpoint, one.models) for one in imported.endpoints] == [(endpoint.url, ("m",))]
    run = next(entry for entry in projects.list_runs(store, imported.project_id) if entry.kind == "calibration")
    endpoint.seen.clear()
    yield Came(store, settings, imported.project_id, run.golden_id, run.run_id, endpoint, drive)
    store.close()


def test_the_preview_names_what_would_be_asked(taken: bytes, settings: Settings, store: Store) -> None:
    preview = projects.preview_project(
        store, settings, io.BytesIO(hostile(taken, "openai:m@https://api.openai.com/@http://evil.test/v1"))
    )
    assert "http://evil.test" in str(preview.endpoints), "a spec that cannot be read is shown as it stands"
    preview = projects.preview_project(store, settings, io.BytesIO(hostile(taken, "openai:m@http://evil.test/v1")))
    assert [(one.endpoint, one.models) for one in preview.endpoints] == [("http://evil.test/v1", ("m",))]
    preview = projects.preview_project(store, settings, io.BytesIO(hostile(taken, "recorded:/etc/passwd")))
    assert preview.files == ("/etc/passwd",)


def test_nothing_is_sent_before_somebody_allows_it(came: Came) -> None:
    where = (came.project_id, came.golden_id, ASPECT)
    styles = next(run for run in projects.list_runs(came.store, came.project_id) if run.kind == "styles")
    starts: dict[str, Callable[[], Any]] = {
        "resume": lambda: projects.resume_run(came.store, came.settings, styles.run_id),
        "rescore": lambda: projects.start_rescore(came.store, came.settings, came.rescore()),
        "trial": lambda: projects.start_trial(
            came.store,
            came.settings,
            TrialRequest(*where, came.run_id, came.some_item(), "Any text."),
        ),
        "round": lambda: projects.start_round(
            came.store, came.settings, RoundRequest(*where, came.run_id, (came.rescore().parent_id,))
        ),
        "ablation": lambda: projects.start_ablation(came.store, came.settings, AblationRequest(*where, came.run_id)),
        "recheck": lambda: projects.start_recheck(
            came.store, came.settings, RecheckRequest(came.project_id, came.newer(), ASPECT, came.run_id)
        ),
    }
    for name, start in starts.items():
        with pytest.raises(ConsentError, match="Nothing was sent") as told:
            start()
        assert came.endpoint.url in str(told.value), name
    assert came.endpoint.seen == []
    assert [one.allowed for one in projects.endpoints_of_run(came.store, came.settings, styles.run_id)] == [False]


def test_a_worker_that_takes_such_a_run_up_sends_nothing(came: Came) -> None:
    """Whatever put the run in the queue: the gate stands where the provider is made."""
    for run in projects.list_runs(came.store, came.project_id):
        if run.kind == "styles":
            came.store.runs.requeue(run.run_id)
            with pytest.raises(ConsentError):
                came.drive(came.store, came.settings, run.run_id)
    assert came.endpoint.seen == []


def test_a_look_at_an_item_sends_nothing(came: Came) -> None:
    criteria_id = projects.load_calibration(came.store, came.run_id).chosen[0].criteria_id
    item_id = projects.item_scores(came.store, came.run_id, criteria_id)[0].item_id
    projects.allow_endpoint(came.store, came.settings, came.project_id, came.endpoint.url, with_key=True)
    view = projects.explain_item(came.store, came.settings, came.run_id, criteria_id, item_id)
    assert "looking at it sends nothing" in view.explanation
    projects.estimate_ablation(
        came.store, came.settings, AblationRequest(came.project_id, came.golden_id, ASPECT, came.run_id)
    )
    assert came.endpoint.seen == []


@pytest.mark.parametrize("with_key", [False, True])
def test_what_a_person_allows_is_sent_and_no_more(came: Came, with_key: bool) -> None:
    projects.allow_endpoint(came.store.acting(BO), came.settings, came.project_id, came.endpoint.url, with_key=with_key)
    run_id = projects.start_rescore(came.store, came.settings, came.rescore())
    assert came.drive(came.store, came.settings, run_id) == "done"
    assert {key for key, _ in came.endpoint.seen} == {f"Bearer {KEY if with_key else 'none'}"}
    (said,) = projects.endpoints_of_project(came.store, came.settings, came.project_id)
    assert (said.endpoint, said.allowed, said.with_key, said.by) == (came.endpoint.url, True, with_key, "Bo")
    last = [event for event in projects.list_events(came.store, came.project_id) if "allowed" in event.sentence][-1]
    assert (last.actor, came.endpoint.url in last.sentence) == ("Bo", True)
    other = came.store.runs.get(came.run_id)
    with pytest.raises(ConsentError):
        gate_of(came.store, other).key_goes(came.endpoint.url.replace("models", "other"), came.settings)


def test_the_word_stays_here_and_no_file_brings_one(came: Came) -> None:
    projects.allow_endpoint(came.store, came.settings, came.project_id, came.endpoint.url, with_key=True)
    file = came.settings.home / "again.zip"
    projects.export_project(came.store, came.settings, came.project_id, file)
    copy = projects.import_project(came.store, came.settings, file).project_id
    assert [one.allowed for one in projects.endpoints_of_project(came.store, came.settings, copy)] == [False]
    with pytest.raises(AccessError):
        projects.allow_endpoint(came.store.acting(Actor("Cy", "annotator")), came.settings, copy, came.endpoint.url)


def test_whoever_types_a_judge_into_the_form_has_named_it(came: Came) -> None:
    request = CalibrationRequest(came.project_id, came.golden_id, ASPECT, "openai:other@http://typed.test/v1")
    projects.start_calibration(came.store.acting(BO), came.settings, request)
    said = {one.endpoint: one for one in projects.endpoints_of_project(came.store, came.settings, came.project_id)}
    assert (said["http://typed.test/v1"].by, said["http://typed.test/v1"].with_key) == ("Bo", True)
    assert not said[came.endpoint.url].allowed


def test_projects_that_were_made_here_and_the_demo_are_not_asked(came: Came) -> None:
    own = projects.create_project(came.store, "own").project_id
    with pytest.raises(UsageError, match="was made here"):
        projects.allow_endpoint(came.store, came.settings, own, came.endpoint.url)
    demo = projects.ensure_demo(came.store, came.settings)
    assert not demo.imported
    row = came.store.runs.all(demo.project_id)[0]
    assert gate_of(came.store, row) is NAMED


@pytest.mark.parametrize("spec", ["recorded:/etc/passwd", "recorded:sample_data/../README.md"])
def test_an_imported_run_reads_no_file_of_this_machine(
    taken: bytes, settings: Settings, store: Store, drive: Drive, spec: str
) -> None:
    imported = projects.import_project(store.acting(ADA), settings, io.BytesIO(hostile(taken, spec)))
    for run in projects.list_runs(store, imported.project_id):
        if run.kind == "styles":
            projects.resume_run(store, settings, run.run_id)
            with pytest.raises(JudgeError, match="it is not read"):
                drive(store, settings, run.run_id)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "plain", worker="external", worker_id="w")
