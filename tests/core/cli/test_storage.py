"""Room on the disk from the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from core import projects
from core.settings import Settings
from tests.core.cli.conftest import Run, Say

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


def test_only_what_is_old_is_deleted_and_only_when_it_is_meant(run: Run, say: Say, kept: Path) -> None:
    code, body = run("storage", "--older-than", "20")
    old = body["old"]
    assert (code, old["deleted"], old["n_states"], old["states_bytes"], old["replies"]["n"]) == (0, False, 1, 1_000, 0)
    assert "Nothing was deleted" in say("storage", "--older-than", "20")
    run("storage", "--older-than", "20", "--delete")
    assert [path.name for path in kept.rglob("*.npy")] == ["new.npy"]
    _, body = run("storage", "--older-than", "0", "--delete")
    replies = body["old"]["replies"]
    assert replies["n"] == 1
    assert {each["what"]: each["n"] for each in body["held"]}["replies"] == 0


def test_a_copy_made_as_the_readme_says_opens_elsewhere(kept: Path, tmp_path: Path) -> None:
    """`sqlite3 FILE ".backup COPY"` is Python's `Connection.backup`."""
    copying = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).backup(sqlite3.connect(sys.argv[2]))"
    home = tmp_path / "elsewhere"
    home.mkdir()
    with projects.open_store(Settings.from_environment()):  # while it is in use
        subprocess.run(
            [sys.executable, "-c", copying, str(kept / "concord.sqlite"), str(home / "concord.sqlite")], check=True
        )
    with projects.open_store(Settings.from_environment({"CONCORD_HOME": str(home)})) as store:
        assert [project.name for project in store.projects.all()] == ["mine"]
        assert store.replies.get_replies(["k"]) == {"k": REPLY}
