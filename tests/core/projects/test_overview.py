"""Where a project stands: the stages on the way to a current judge, and what waits for whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core import projects
from core.project_records import Actor
from core.projects.calibration import CalibrationRequest
from core.projects.labelling import LabelAspect, LabelPlan
from core.projects.misaligned_items import TriageRequest
from core.projects.overview import Overview
from core.records import GoldenSet, Scale
from core.store.store import Store
from tests.core.projects.conftest import ASPECT, QUICK, World


def test_the_way_from_a_golden_set_to_a_current_judge(world: World, golden: GoldenSet) -> None:
    ann = world.store.acting(Actor("Ann", "reviewer"))
    project_id = projects.create_project(world.store, "q").project_id
    golden_id = projects.add_golden(world.store, project_id, replace(golden, name="bare", aspects={}))
    bare = projects.overview(ann, project_id, golden_id, "")
    assert ([done for done, _ in bare.stages.values()], bare.waiting) == ([True] + [False] * 4, ())
    golden_id = projects.add_golden(world.store, project_id, golden)

    def now(store: Store = ann) -> Overview:
        return projects.overview(store, project_id, golden_id, ASPECT)

    first = now()
    assert [done for done, _ in first.stages.values()] == [True, True, False, False, False]
    assert first.waiting == ()

    aspects = (LabelAspect(ASPECT, Scale(1, 5, 1)),)
    pass_id = projects.start_pass(ann, project_id, golden_id, "pass one", LabelPlan(aspects, n_raters=1), limit=5)
    projects.join_pass(ann, project_id, pass_id)
    assert [(each.task, each.n, each.subject) for each in now().waiting] == [("label", 5, pass_id)]
    assert now(world.store.acting(Actor("Bo"))).waiting == ()  # not Bo's

    request = CalibrationRequest(project_id, golden_id, ASPECT, settings=QUICK)
    run_id = projects.start_run(world.store, world.settings, request)
    assert now().calibrating.run_id == run_id
    world.do(run_id)
    assert now().calibrating is None
    assert [each.task for each in now().waiting] == ["label", "sign off", "triage"]
    assert [done for done, _ in now().stages.values()] == [True, True, True, False, False]

    projects.decide_version(ann, project_id, ASPECT, 1, "current", decided=now().line.decided)
    last = now()
    assert all(done for done, _ in last.stages.values())
    said = TriageRequest(golden_id, ASPECT, "c1", "ambiguous")
    projects.save_triage(ann, project_id, golden.item_ids[0], said)
    assert now().stages["review"] == (False, "1 point open")  # what the link opens, whoever is in the review
    assert now(world.store.acting(Actor("Cy", "annotator"))).waiting == ()  # nothing for those who only label


def test_what_waits_when_labels_and_edits_come(
    world: World, golden: GoldenSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = world.store.acting(Actor("Ann", "reviewer"))
    labels = golden.aspects[ASPECT]
    corrected = replace(labels, values=tuple(reversed(labels.values)))
    grown = projects.add_golden(ann, world.project_id, replace(golden, aspects={ASPECT: corrected}))

    def waiting(on: str) -> set[str]:
        return {each.task for each in projects.overview(ann, world.project_id, on, ASPECT).waiting}

    assert "grow" in waiting(grown)
    run_id = projects.measure_version(ann, world.settings, world.project_id, ASPECT, 1, golden_id=grown)
    assert "grow" not in waiting(grown)  # while it is being measured nobody is asked to
    projects.cancel_run(ann, run_id)
    assert "grow" in waiting(grown)
    line = projects.judge_line(ann, world.project_id, ASPECT)
    versions = replace(line.versions[0], state="current"), replace(line.versions[0], number=2, state="approved")
    monkeypatch.setitem(projects.overview.__globals__, "judge_line", lambda *_: replace(line, versions=versions))
    assert "use" in waiting(grown)
