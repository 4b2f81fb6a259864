"""What an import may do: its golden sets, labels and criteria are used; its runs, and whatever they name, never are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.errors import JobError
from core.project_records import Actor
from core.projects.calibration import CalibrationRequest, VersionRequest
from core.projects.criteria import RescoreRequest, RoundRequest
from core.projects.method_runs import AblationRequest, ControlsRequest, RecheckRequest, RepeatRequest, SwitchRequest
from core.records import GoldenSet
from core.settings import Settings
from core.store.store import Store
from tests.outside.strangers import Endpoint, bend, listening

ASPECT = "fluency"
ADA = Actor("Ada", "admin")
Drive = Callable[..., str]


@dataclass(frozen=True)
class Came:
    """A store with an imported project, whose calibration says that `endpoint` judged; `golden` is its golden set."""

    store: Store
    settings: Settings
    project_id: str
    golden_id: str
    run_id: str
    endpoint: Endpoint

    @property
    def where(self) -> tuple[str, str, str]:
        return self.project_id, self.golden_id, ASPECT

    def criteria(self) -> list[str]:
        return [entry.criteria_id for entry in self.store.criteria.all(self.project_id, ASPECT) if entry.text]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, drive: Drive, golden: GoldenSet) -> Path:
    """The file of a project with a calibration by the scripted judge."""
    settings = Settings(home=tmp_path_factory.mktemp("there"), worker="external", worker_id="w")
    with projects.open_store(settings) as opened:
        store = opened.acting(ADA)
        project_id = projects.create_project(store, "p").project_id
        golden_id = projects.add_golden(store, project_id, golden)
        request = CalibrationRequest(project_id, golden_id, ASPECT, "scripted", CalibrationSettings("quick", rounds=0))
        assert drive(store, settings, projects.start_run(store, settings, request)) == "done"
        projects.export_project(store, settings, project_id, settings.home / "p.zip")
    return settings.home / "p.zip"


@pytest.fixture(params=["openai:m@{}", "recorded:/etc/passwd", "hf:org/model"])
def came(exported: Path, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Came]:
    """The import of that file by others, who put another judge into it and date its run into the future."""
    with listening() as endpoint:
        spec = request.param.format(f"http://127.0.0.1:{endpoint.port}/v1")

        def change(tables: dict[str, list[Any]]) -> None:
            for row in tables["run_documents"]:
                row["body"] = json.loads(json.dumps(row["body"]).replace('"scripted"', json.dumps(spec)))
            for row in tables["runs"]:
                row["created_at"] += 1e9
                row["request"]["judge_spec"] = row["judge_spec"] = spec

        settings = Settings(home=tmp_path / "home", worker="external", worker_id="w", openai_api_key="sk-key")
        with projects.open_store(settings) as opened:
            store = opened.acting(ADA)
            file = bend(exported, tmp_path / "theirs.zip", change)
            project_id = projects.import_project(store, settings, file).project_id
            (run,) = store.runs.all(project_id)
            yield Came(store, settings, project_id, run.golden_id, run.run_id, endpoint)
            assert endpoint.seen == []


def test_no_run_asks_the_judge_of_an_import(came: Came, drive: Drive) -> None:
    store, settings = came.store, came.settings
    parent, new = came.criteria()[:2]
    golden = store.goldens.load(came.golden_id)
    newer = projects.add_golden(store, came.project_id, replace(golden, name="newer", items=tuple(
        replace(item, target=f"{item.target} Again.") for item in golden.items
    )))  # fmt: skip
    starts: dict[str, Callable[[], Any]] = {
        "resume": lambda: projects.resume_run(store, settings, came.run_id),
        "rescore": lambda: projects.start_run(store, settings, RescoreRequest(*came.where, new, parent, came.run_id)),
        "round": lambda: projects.start_run(store, settings, RoundRequest(*came.where, came.run_id, (parent,))),
        "ablation": lambda: projects.start_run(store, settings, AblationRequest(*came.where, came.run_id)),
        "repeat": lambda: projects.start_run(store, settings, RepeatRequest(*came.where, came.run_id)),
        "controls": lambda: projects.start_run(store, settings, ControlsRequest(*came.where, came.run_id)),
        "switch": lambda: projects.start_run(store, settings, SwitchRequest(*came.where, came.run_id, ("offline",))),
        "recheck": lambda: projects.start_run(
            store, settings, RecheckRequest(came.project_id, newer, ASPECT, came.run_id)
        ),
        "version": lambda: projects.make_version(
            store, settings, VersionRequest(came.project_id, ASPECT, (parent,), run_id=came.run_id)
        ),
        "ablation estimate": lambda: projects.estimate_ablation(
            store, settings, AblationRequest(*came.where, came.run_id)
        ),
        "version estimate": lambda: projects.estimate_version(
            store, settings, VersionRequest(came.project_id, ASPECT, (parent,), run_id=came.run_id)
        ),
    }
    for name, start in starts.items():
        with pytest.raises(JobError, match="was imported and is read-only"):
            start()
            pytest.fail(name)


def test_looking_at_an_item_asks_nobody(came: Came) -> None:
    criteria_id = projects.load_calibration(came.store, came.run_id).chosen[0].criteria_id
    item_id = projects.item_scores(came.store, came.run_id, criteria_id)[0].item_id
    said, _ = projects.explain_item(came.store, came.settings, came.run_id, criteria_id, item_id)
    assert "viewing results sends no requests" in said or "didn't read the file" in said


def test_golden_set_labels_and_criteria_are_used_with_a_judge_chosen_here(came: Came, drive: Drive) -> None:
    store, settings = came.store, came.settings
    request = CalibrationRequest(*came.where, "scripted", CalibrationSettings("quick", rounds=0))
    own = projects.start_run(store, settings, request)
    assert drive(store, settings, own) == "done"
    edited = projects.save_edit(store, came.project_id, came.criteria()[0], "Reward plain words.")
    version = projects.make_version(store, settings, VersionRequest(came.project_id, ASPECT, (edited,)))
    assert drive(store, settings, version) == "done"
    (made,) = [
        each for each in projects.judge_line(store, came.project_id, ASPECT).versions if each.criteria_ids == (edited,)
    ]
    assert made.made.base_run == own
