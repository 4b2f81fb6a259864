"""What screens and the command line call, without a worker."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from core import projects
from core.calibration.calibration_settings import CalibrationSettings
from core.errors import ConflictError, CriteriaError, JobError, NotFoundError, UsageError
from core.project_records import CriteriaAlignment, ProjectSummary
from core.projects.calibration import CalibrationRequest
from core.projects.edit_scoring import changed_items
from core.records import Alignment, AspectLabels, Criteria, GoldenSet, Item, Scale
from core.settings import Settings
from core.store.store import Store


@pytest.fixture
def project(store: Store) -> ProjectSummary:
    return projects.create_project(store, "  Our   project ")


@pytest.fixture
def golden() -> GoldenSet:
    """12 sources with 4 items each; labels 1, 2, 3, 4 within each source."""
    items = tuple(
        Item(f"i{k}", f"text number {k} is here.", f"s{k // 4}", f"m{k % 4}", "a source text") for k in range(48)
    )
    return GoldenSet(
        "small", "source_target", items, {"a": AspectLabels("a", Scale(1, 5), tuple(k % 4 + 1.0 for k in range(48)))}
    )


@pytest.fixture
def request_(store: Store, project: ProjectSummary, golden: GoldenSet) -> CalibrationRequest:
    golden_id = projects.add_golden(store, project.project_id, golden)
    return CalibrationRequest(
        project.project_id, golden_id, "a", "offline", CalibrationSettings(preset="quick", seed=3)
    )


def test_one_store_per_process(settings: Settings, store: Store) -> None:
    assert projects.open_store(settings) is store
    assert projects.open_store(replace(settings, database_url=f"sqlite:///{settings.home / 'concord.sqlite'}")) is store


def test_projects(store: Store, project: ProjectSummary) -> None:
    assert project.name == "Our project"
    assert datetime.now(UTC) - project.created_at < timedelta(minutes=1)
    assert store.projects.all() == [project]
    for name, words in (("", "Enter a name"), (" \n", "Enter a name"), ("x" * 201, "200 characters")):
        with pytest.raises(UsageError, match=words):
            projects.create_project(store, name)
    with pytest.raises(NotFoundError, match="CONCORD_HOME"):
        store.projects.get("p-none")


def test_a_run_of_a_kind_from_the_future(store: Store, request_: CalibrationRequest) -> None:
    run_id = store.runs.add(request_.project_id, request_.golden_id, "dreams", "t", "a", "offline", "{}")
    with pytest.raises(JobError, match="'dreams', which this version"):
        projects.run_view(store, run_id)


def test_the_sample_project_is_loaded_once(store: Store) -> None:
    project = projects.ensure_sample_project(store)
    assert project.name == "Sample project"
    assert project.n_goldens == 5
    assert projects.ensure_sample_project(store) == project
    kinds = {view.kind for view in store.goldens.all(project.project_id)}
    assert kinds == {"source_target", "source_context_target", "data_text", "pair"}
    newest = max(store.goldens.all(project.project_id), key=lambda view: view.created_at)
    assert newest.name == "summaries"  # what a newcomer sees first is no set of pairs


def test_golden_sets(store: Store, project: ProjectSummary, golden: GoldenSet) -> None:
    golden_id = projects.add_golden(store, project.project_id, golden)
    assert store.goldens.load(golden_id) == golden
    (view,) = store.goldens.all(project.project_id)
    assert view == store.goldens.get(golden_id)
    assert (view.n_items, view.n_sources, view.n_systems) == (48, 12, 4)
    aspect = view.aspect("a")
    assert aspect is not None
    assert (aspect.scale, aspect.n_labelled) == (Scale(1, 5), 48)
    assert view.aspect("b") is None
    page = projects.golden_page(store, golden_id, 46, 10)
    assert ([row.item.item_id for row in page.rows], page.offset, page.total) == (["i46", "i47"], 46, 48)
    assert page.rows[0].labels == {"a": 3.0}
    for offset, limit in ((-1, 5), (0, 0), (0, 2001)):
        with pytest.raises(UsageError):
            projects.golden_page(store, golden_id, offset, limit)
    with pytest.raises(NotFoundError):
        projects.add_golden(store, "p-none", golden)


def test_a_run_is_queued_and_seen(store: Store, settings: Settings, request_: CalibrationRequest) -> None:
    run_id = projects.start_calibration(store, settings, request_)
    view = projects.run_view(store, run_id)
    assert (view.kind, view.status, view.aspect, view.judge_spec) == ("calibration", "queued", "a", "offline")
    assert view.request == request_
    assert (view.progress, view.seconds_left, view.worker_alive, view.standing, view.calibration) == (None,) * 5
    assert not view.finished
    assert view.version == store.runs.version(run_id)
    assert [run.run_id for run in projects.list_runs(store, request_.project_id)] == [run_id]
    assert projects.list_runs(store, "p-other") == []
    assert not store.workers.alive()
    assert projects.load_scores(store, run_id).values.shape == (0, 48)
    with pytest.raises(JobError, match="has no calibration result"):
        projects.load_calibration(store, run_id)
    projects.cancel_run(store, run_id)
    assert projects.run_view(store, run_id).resumable
    projects.resume_run(store, settings, run_id)
    assert projects.run_view(store, run_id).status == "queued"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"project_id": "p-none"}, NotFoundError),
        ({"golden_id": "golden:none"}, NotFoundError),
        ({"aspect": "none"}, NotFoundError),
        ({"judge_spec": "openai:m@http://user:secret@host/v1"}, UsageError),
    ],
)
def test_what_cannot_be_started(
    store: Store, settings: Settings, request_: CalibrationRequest, change: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        projects.start_calibration(store, settings, replace(request_, **change))
    assert "secret" not in str(caught.value)
    assert projects.list_runs(store) == []


def test_edits_of_criteria(store: Store, settings: Settings, request_: CalibrationRequest) -> None:
    project_id = request_.project_id
    run_id = projects.start_calibration(store, settings, request_)
    parent = Criteria("Reward order.", "a")
    store.criteria.add(project_id, request_.golden_id, [parent])
    alignment = Alignment("spearman", "sample", 0.5, 24, 6)
    store.criteria.record(
        project_id, [CriteriaAlignment(parent.criteria_id, run_id, "calibration", alignment, "chosen")]
    )
    before = store.criteria.get(project_id, parent.criteria_id)
    assert (before.text, before.head, before.runs) == ("Reward order.", parent.criteria_id, (run_id,))
    edit_id = projects.save_edit(
        store,
        project_id,
        parent.criteria_id,
        " Reward order and brevity. ",
        "Ann",
        note="shorter",
        expected_head=before.head,
    )
    edit = store.criteria.get(project_id, edit_id)
    assert (edit.text, edit.author, edit.note, edit.parents) == (
        "Reward order and brevity.",
        "Ann",
        "shorter",
        (parent.criteria_id,),
    )
    assert edit.provenance.origin == "edit"
    with pytest.raises(ConflictError):
        projects.save_edit(store, project_id, parent.criteria_id, "Ben's text", "Ben", expected_head=before.head)
    assert store.criteria.get(project_id, parent.criteria_id).edits == (edit_id,)
    assert projects.save_edit(store, project_id, parent.criteria_id, "Reward  order.", "Ben") == parent.criteria_id
    listed = {row.criteria_id: row for row in store.criteria.all(project_id, aspect="a")}
    assert set(listed) == {parent.criteria_id, edit_id}
    assert listed[parent.criteria_id].alignments[0].alignment == alignment
    assert [row.criteria_id for row in store.criteria.all(project_id, run_id=run_id)] == [parent.criteria_id]
    for text in ("  ", "x" * 20_001):
        with pytest.raises(CriteriaError):
            projects.save_edit(store, project_id, parent.criteria_id, text, "Ann")


def test_items_that_changed_sides(golden: GoldenSet) -> None:
    """By hand: labels 1 2 3 4 have z −1.342 −.447 .447 1.342 (sd √1.25).

    Parent 4 2 3 1 has the reversed z at the ends: gaps 2.683, 0, 0, −2.683.  New 1 2 3 4: all gaps 0.  So the two
    ends are mended; swapped the other way they are broken.
    """
    labels, parent = np.array([1.0, 2.0, 3.0, 4.0]), np.array([4.0, 2.0, 3.0, 1.0])
    changed = changed_items(
        golden, [8, 9, 10, 11], labels, parent=parent, new=labels, min_gap=CalibrationSettings().min_gap
    )
    assert [(change.item_id, change.now) for change in changed] == [("i8", "mended"), ("i11", "mended")]
    assert changed[0].parent_gap == pytest.approx(3 / 1.25**0.5)
    assert changed[0].new_gap == 0.0
    back = changed_items(
        golden, [8, 9, 10, 11], labels, parent=labels, new=parent, min_gap=CalibrationSettings().min_gap
    )
    assert [change.now for change in back] == ["broken", "broken"]
    unread = np.array([np.nan, 2.0, 3.0, 4.0])
    ids = {
        change.item_id
        for change in changed_items(
            golden, [8, 9, 10, 11], labels, parent=parent, new=unread, min_gap=CalibrationSettings().min_gap
        )
    }
    assert "i8" not in ids


def test_without_a_database_url_the_store_lies_in_the_home(tmp_path: Path) -> None:
    with projects.open_store(Settings(home=tmp_path)):
        assert (tmp_path / "concord.sqlite").is_file()


def test_the_web_process_stays_light(repository: Path) -> None:
    """Opening the store, a queued run and a look at it load none of the heavy libraries, nor the job engine."""
    code = """
import sys, tempfile, pathlib
from core import projects
from core.settings import Settings
store = projects.open_store(Settings(home=pathlib.Path(tempfile.mkdtemp()), worker="external"))
projects.create_project(store, "p"), projects.list_runs(store), store.workers.alive()
heavy = {"torch", "transformers", "streamlit", "sklearn", "scipy", "pandas", "openai"}
print(sorted(heavy & {name.split(".")[0] for name in sys.modules}))
"""
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.strip() == "[]"
