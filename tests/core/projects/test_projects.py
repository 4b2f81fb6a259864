"""What screens and the command line call, without a worker."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.errors import ConflictError, CriteriaError, JobError, NotFoundError, UsageError
from core.project_records import CriteriaAlignment
from core.projects.calibration import CalibrationRequest
from core.projects.misaligned_items import crossed_items
from core.records import Alignment, AspectLabels, Criteria, GoldenSet, Item, Scale
from core.settings import Settings
from core.store.store import Store


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
def request_(store: Store, project: str, golden: GoldenSet) -> CalibrationRequest:
    golden_id = projects.add_golden(store, project, golden)
    return CalibrationRequest(project, golden_id, "a", "offline", CalibrationSettings(preset="quick", seed=3))


def test_projects(store: Store) -> None:
    project = projects.create_project(store, "  Our   project ")
    assert project.name == "Our project"
    assert store.projects.all() == [project]
    for name, words in (("", "Enter a name"), (" \n", "Enter a name"), ("x" * 201, "200 characters")):
        with pytest.raises(UsageError, match=words):
            projects.create_project(store, name)


def test_the_sample_project_is_loaded_once(store: Store) -> None:
    project = projects.ensure_sample_project(store)
    assert projects.ensure_sample_project(store) == project
    newest = max(store.goldens.all(project.project_id), key=lambda view: view.created_at)
    assert (project.n_goldens, newest.name) == (5, "summaries")  # what a newcomer sees first is no set of pairs


def test_golden_sets(store: Store, project: str, golden: GoldenSet) -> None:
    golden_id = projects.add_golden(store, project, golden)
    assert store.goldens.load(golden_id) == golden
    (view,) = store.goldens.all(project)
    assert view == store.goldens.get(golden_id)
    assert (view.n_items, view.n_sources, view.n_systems) == (48, 12, 4)
    assert (view.aspect("a").scale, view.aspect("a").n_labelled, view.aspect("b")) == (Scale(1, 5), 48, None)


def test_a_run_is_queued_and_seen(store: Store, settings: Settings, request_: CalibrationRequest) -> None:
    run_id = projects.start_run(store, settings, request_)
    view = projects.run_view(store, run_id)
    assert (view.kind, view.status, view.aspect, view.judge_spec) == ("calibration", "queued", "a", "offline")
    assert view.request == request_
    assert (view.progress, view.seconds_left, view.worker_alive, view.standing, view.calibration) == (None,) * 5
    assert [run.run_id for run in store.runs.all(request_.project_id)] == [run_id]
    assert projects.load_scores(store, run_id).values.shape == (0, 48)
    with pytest.raises(JobError, match="has no calibration result"):
        projects.load_calibration(store, run_id)
    projects.cancel_run(store, run_id)
    assert projects.run_view(store, run_id).resumable
    projects.resume_run(store, settings, run_id)
    assert projects.run_view(store, run_id).status == "queued"
    future = store.runs.add(request_.project_id, request_.golden_id, "dreams", "t", "a", "offline", "{}")
    with pytest.raises(JobError, match=r"doesn't support run .* 'dreams'"):
        projects.run_view(store, future)


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
        projects.start_run(store, settings, replace(request_, **change))
    assert "secret" not in str(caught.value)
    assert store.runs.all() == []


def test_edits_of_criteria(store: Store, settings: Settings, request_: CalibrationRequest) -> None:
    project_id = request_.project_id
    run_id = projects.start_run(store, settings, request_)
    parent = Criteria("Reward order.", "a")
    store.criteria.add(project_id, request_.golden_id, [parent])
    stood = CriteriaAlignment(parent.criteria_id, run_id, "calibration", Alignment("spearman", "sample", 0.5, 24, 6))
    store.criteria.record(project_id, [stood])
    before = store.criteria.get(project_id, parent.criteria_id)
    assert (before.text, before.head, before.runs) == ("Reward order.", parent.criteria_id, (run_id,))
    where = (store, project_id, parent.criteria_id)
    edit_id = projects.save_edit(
        *where, " Reward order and brevity. ", "Ann", note="shorter", expected_head=before.head
    )
    edit = store.criteria.get(project_id, edit_id)
    assert (edit.text, edit.author, edit.note) == ("Reward order and brevity.", "Ann", "shorter")
    assert (edit.parents, edit.provenance.origin) == ((parent.criteria_id,), "edit")
    with pytest.raises(ConflictError):
        projects.save_edit(*where, "Ben's text", "Ben", expected_head=before.head)
    assert store.criteria.get(project_id, parent.criteria_id).edits == (edit_id,)
    assert projects.save_edit(*where, "Reward  order.", "Ben") == parent.criteria_id
    listed = {row.criteria_id: row for row in store.criteria.all(project_id, aspect="a")}
    assert set(listed) == {parent.criteria_id, edit_id}
    assert listed[parent.criteria_id].alignments[0].alignment == stood.alignment
    for text in ("  ", "x" * 20_001):
        with pytest.raises(CriteriaError):
            projects.save_edit(*where, text, "Ann")


def test_items_that_changed_sides() -> None:
    """By hand: labels 1 2 3 4 have z −1.342 −.447 .447 1.342 (sd √1.25).

    Before, 4 2 3 1 has the reversed z at the ends: gaps 2.683, 0, 0, −2.683.  After, 1 2 3 4: all gaps 0.  So the two
    ends are aligned now; swapped the other way they are misaligned.
    """
    labels, reversed_ = np.array([1.0, 2.0, 3.0, 4.0]), np.array([4.0, 2.0, 3.0, 1.0])
    assert crossed_items(np.array([reversed_, labels]), labels, min_gap=1.0) == {0: False, 3: False}
    assert crossed_items(np.array([labels, reversed_]), labels, min_gap=1.0) == {0: True, 3: True}
    assert 0 not in crossed_items(np.array([reversed_, [np.nan, 2.0, 3.0, 4.0]]), labels, min_gap=1.0)
