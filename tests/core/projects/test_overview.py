"""Where a project stands: the stages on the way to a judge in use, and what waits for whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from core import projects
from core.calibration.calibration_settings import CalibrationSettings
from core.people import Actor
from core.projects.calibration import CalibrationRequest
from core.projects.judge_versions import VersionOptions
from core.projects.labelling import LabelAspect, PassRequest
from core.projects.overview import Overview, people_beside
from core.records import GoldenSet, Scale
from core.settings import Settings

ASPECT = "relevance"


def test_the_way_from_a_golden_set_to_a_judge_in_use(
    tmp_path: Path, drive: Callable[..., str], golden: GoldenSet
) -> None:
    settings = Settings(home=tmp_path, worker="external", worker_id="w")
    store = projects.open_store(settings)
    ann = store.acting(Actor("Ann", "reviewer"))
    project_id = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project_id, golden)

    def now() -> Overview:
        return projects.overview(ann, project_id, golden_id, ASPECT)

    first = now()
    assert [stage.done for stage in first.stages] == [True, True, False, False, False, False]
    assert first.reached is not None
    assert first.reached.name == "calibration"
    assert first.waiting == ()

    aspects = (LabelAspect(ASPECT, Scale(1, 5, 1)),)
    pass_id = projects.start_pass(ann, PassRequest(project_id, golden_id, "pass one", aspects, n_raters=1, limit=5))
    projects.join_pass(ann, project_id, pass_id)
    assert [(each.task, each.n, each.subject) for each in now().waiting] == [("label", 5, pass_id)]
    assert projects.overview(store.acting(Actor("Bo")), project_id, golden_id, ASPECT).waiting == ()  # not Bo's

    chosen = CalibrationSettings(preset="quick", rounds=0, resamples=0)
    run_id = projects.start_calibration(
        store, settings, CalibrationRequest(project_id, golden_id, ASPECT, settings=chosen)
    )
    assert drive(store, settings, run_id) == "done"
    assert [each.task for each in now().waiting] == ["label", "sign off", "triage"]
    assert [stage.done for stage in now().stages] == [True, True, True, False, False, False]

    projects.use_version(ann, project_id, ASPECT, 1, decided=now().line.decided)
    last = now()
    assert all(stage.done for stage in last.stages)
    assert last.reached is None
    assert [stage.figure for stage in last.stages][-2:] == ["version 1", "not rechecked"]
    beside = people_beside(store, last.line.get(1))  # on the held-out items, as the judge's own figure is
    assert last.line.get(1).newest is not None
    assert beside is None or beside.n <= last.line.get(1).newest.evidence.alignment.n  # type: ignore[union-attr]
    annotator = projects.overview(store.acting(Actor("Cy", "annotator")), project_id, golden_id, ASPECT)
    assert annotator.waiting == ()  # nothing that somebody who only labels could do
    store.close()


def test_a_golden_set_without_labels_and_a_comment_that_waits(
    tmp_path: Path, drive: Callable[..., str], golden: GoldenSet
) -> None:
    settings = Settings(home=tmp_path, worker="external", worker_id="w")
    store = projects.open_store(settings)
    ann = store.acting(Actor("Ann", "reviewer"))
    project_id = projects.create_project(store, "p").project_id
    bare = projects.add_golden(store, project_id, replace(golden, name="bare", aspects={}))
    first = projects.overview(ann, project_id, bare, "")
    assert [stage.done for stage in first.stages] == [True, False, False, False, False, False]
    assert first.waiting == ()

    golden_id = projects.add_golden(store, project_id, golden)
    chosen = CalibrationSettings(preset="quick", rounds=0, resamples=0)
    request = CalibrationRequest(project_id, golden_id, ASPECT, settings=chosen)
    run_id = projects.start_calibration(store, settings, request)
    going = projects.overview(ann, project_id, golden_id, ASPECT)
    assert going.calibrating is not None
    assert going.calibrating.run_id == run_id
    assert drive(store, settings, run_id) == "done"
    now = projects.overview(ann, project_id, golden_id, ASPECT)
    assert now.calibrating is None
    (criteria_id, *_) = now.line.versions[0].criteria_ids
    projects.add_comment(ann, project_id, criteria_id, "Too long.", line=1)
    waiting = {each.task: each for each in projects.overview(ann, project_id, golden_id, ASPECT).waiting}
    assert (waiting["comment"].words, waiting["comment"].subject) == (
        "1 comment on criteria, not settled yet",
        criteria_id,
    )

    labels = golden.aspects[ASPECT]
    corrected = replace(labels, values=tuple(reversed(labels.values)))
    grown = projects.add_golden(store, project_id, replace(golden, aspects={ASPECT: corrected}))

    def asked_for(on: str) -> list[str]:
        waiting = projects.overview(ann, project_id, on, ASPECT).waiting
        return [each.task for each in waiting if each.task in ("measure", "grow")]

    assert asked_for(grown) == ["grow"]
    run_id = projects.measure_version(ann, settings, project_id, ASPECT, 1, golden_id=grown)
    assert asked_for(grown) == []  # while it is being measured nobody is asked to
    projects.cancel_run(ann, run_id)
    assert asked_for(grown) == ["grow"]

    edited = projects.save_edit(ann, project_id, criteria_id, "Judge by the length of the text.", "Ann")
    run_id = projects.make_version(
        ann, settings, project_id, ASPECT, [edited], options=VersionOptions("edit", golden_id=golden_id)
    )
    assert asked_for(golden_id) == []
    words = {stage.name: stage.figure for stage in projects.overview(ann, project_id, golden_id, ASPECT).stages}
    assert words["calibration"] == "2 versions, version 2 being measured"
    projects.cancel_run(ann, run_id)
    assert asked_for(golden_id) == ["measure"]
    store.close()
