"""A kept project in a notebook: what it adds, starts and waits for is what the screens show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import core
from core import projects
from core.errors import JobError, NotFoundError
from core.settings import Settings
from core.store.store import Store

SUMMARIES = Path(__file__).parents[2] / "sample_data" / "summaries.jsonl"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[core.Project]:
    monkeypatch.setenv("CONCORD_WORKER", "external")
    opened = core.open_project("Notes", tmp_path / "home", create=True)
    yield opened
    opened.store.close()


def test_a_project_is_found_again_by_name_and_by_id(project: core.Project, tmp_path: Path) -> None:
    for name in ("Notes", project.project_id):
        assert core.open_project(name, tmp_path / "home").project_id == project.project_id
    assert core.open_project("Notes", tmp_path / "home", create=True).project_id == project.project_id
    with pytest.raises(NotFoundError, match="No project here is called 'Other'"):
        core.open_project("Other", tmp_path / "home")
    projects.create_project(project.store, "Notes")
    with pytest.raises(core.UsageError, match="2 projects are called 'Notes'"):
        core.open_project("Notes", tmp_path / "home", create=True)


def test_a_calibration_is_started_waited_for_and_looked_at(
    project: core.Project, tmp_path: Path, work_off: Callable[[Store, Settings], None]
) -> None:
    """The run of a project gives what `core.calibrate` gives, and everything that hangs on it is at hand."""
    project.add(SUMMARIES)
    run_id = project.start_calibration("summaries", "relevance", preset="quick", seed=3)
    with pytest.raises(JobError, match=r"is still queued after 0 s: waiting for a worker"):
        project.wait(run_id, seconds=0)
    work_off(project.store, project.settings)
    result = project.wait(run_id)
    inline = core.calibrate(core.load_golden(SUMMARIES), "relevance", preset="quick", seed=3)
    assert (result.held_out, result.chosen, result.candidates) == (inline.held_out, inline.chosen, inline.candidates)
    assert project.report("summaries", "relevance").held_out == result.held_out
    exported = project.export(tmp_path / "notes.zip")
    assert (tmp_path / "notes.zip").stat().st_size == exported.size
