"""Room and copies from the command line."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from core import projects
from core.projects.upkeep import health
from core.settings import Settings
from core.store.store import Store
from tests.core.cli.conftest import SUMMARIES, Run, Say

REPLY = '{"text": "4", "finish": "stop", "usage": {"prompt_tokens": 900, "completion_tokens": 2}}'


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A project, a reply, and two files of hidden states, one of them a month old."""
    settings = Settings.from_environment()
    with projects.open_store(settings) as store:
        projects.create_project(store, "mine")
        store.replies.put_replies([("k", REPLY)])
    folder = settings.home / "states" / "ab" / "cd"
    folder.mkdir(parents=True)
    for name in ("new", "old"):
        (folder / f"{name}.npy").write_bytes(b"x" * 1_000)
    os.utime(folder / "old.npy", (1_700_000_000, 1_700_000_000))
    return settings.home


def test_what_is_kept_is_listed_with_its_room(run: Run, kept: Path) -> None:
    code, body = run("storage")
    held = {each["what"]: each for each in body["held"]}
    assert code == 0
    assert (held["hidden states"]["n"], held["hidden states"]["n_bytes"]) == (2, 2_000)
    assert held["replies"]["n"] == 1


def test_only_what_is_old_goes_and_only_when_it_is_meant(run: Run, say: Say, kept: Path) -> None:
    code, body = run("prune", "--older-than", "20")
    assert (code, body["gone"], body["n_states"], body["states_bytes"], body["replies"]["n"]) == (0, False, 1, 1_000, 0)
    assert "Nothing went yet" in say("prune", "--older-than", "20")
    run("prune", "--older-than", "20", "--yes")
    assert [path.name for path in kept.rglob("*.npy")] == ["new.npy"]
    _, body = run("prune", "--older-than", "0", "--yes")
    assert body["replies"] | {"n_bytes": 0} == {"n": 1, "n_bytes": 0, "prompt_tokens": 900, "completion_tokens": 2}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((), "Say what may go"), (("--older-than", "-1"), "from 0 on"), (("--project", "none"), "none")],
)
def test_what_cannot_be_pruned_is_said(run: Run, kept: Path, arguments: tuple[str, ...], words: str) -> None:
    code, body = run("prune", *arguments)
    assert code in (1, 2)
    assert words in body["error"]["message"]


def test_a_backup_is_restored_elsewhere_and_never_mixed(
    run: Run, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, body = run("backup", "copy.sqlite")
    assert (code, body["bytes"]) == (0, (tmp_path / "copy.sqlite").stat().st_size)
    code, body = run("restore", "copy.sqlite")
    assert code == 1
    assert "not empty" in body["error"]["message"]
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "elsewhere"))
    assert run("restore", "copy.sqlite") == (0, {"projects": 1, "home": str(tmp_path / "elsewhere")})
    with projects.open_store(Settings.from_environment()) as store:
        assert [project.name for project in projects.list_projects(store)] == ["mine"]
        assert store.replies.get_replies(["k"]) == {"k": REPLY}


def test_health_looks_at_the_disk_where_the_home_will_be(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'c.sqlite'}") as store:
        found = health(store, Settings(home=tmp_path / "not" / "there"))
    assert found.free_bytes == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.05)


def test_health_says_whether_work_gets_done(run: Run, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, body = run("health")
    assert (code, body["n_queued"], body["workers"], body["trouble"]) == (0, 0, [], [])
    from core.data import load_golden

    with projects.open_store(Settings.from_environment()) as store:
        (project,) = projects.list_projects(store)
        golden_id = store.goldens.add(project.project_id, load_golden(Path(SUMMARIES)))
        store.runs.add(project.project_id, golden_id, "calibration", "t", "coherence", "offline", "{}")
    code, body = run("health")
    assert (code, body["trouble"]) == (1, ["1 run queued and no worker is alive"])
    with projects.open_store(Settings.from_environment()) as store:
        store.workers.enter("w", "here", 1)
    assert run("health")[1]["workers"] == ["w"]
