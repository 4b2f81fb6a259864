"""Other models as a kept run: the figures of the version, paid replies after a failure, and a model as a version."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core import projects
from core.errors import AuthError, UsageError
from core.projects.calibration import CalibrationRequest, VersionRequest
from core.projects.method_runs import SwitchRequest
from core.records import GoldenSet
from core.settings import Settings
from core.store.store import Store
from tests.core.projects.conftest import ASPECT, QUICK, World
from tests.fake_openai import RunningServer

Drive = Callable[..., str]
Where = tuple[str, str, str]


def calibrated(store: Store, settings: Settings, drive: Drive, where: Where, spec: str) -> str:
    run_id = projects.start_run(store, settings, CalibrationRequest(*where, spec, QUICK))
    assert drive(store, settings, run_id) == "done"
    return run_id


def test_a_model_becomes_a_version_with_the_figures_it_was_tried_with(world: World) -> None:
    store, settings = world.store, world.settings
    request = SwitchRequest(*world.where, world.run_id, ("scripted", "scripted:7"))
    own, scripted, _ = world.do(projects.start_run(store, settings, request))
    result = projects.load_calibration(store, world.run_id)
    assert own.held_out.value == pytest.approx(result.held_out.value), "the figure of the version itself"
    assert own.held_out.n == result.held_out.n
    assert scripted.difference.value is not None and scripted.p_holm is not None
    assert (own.cost, scripted.cost) == (0.0, 0.0)
    looks = projects.list_held_out_accesses(store, *world.where)
    assert [look.why for look in looks][-1] == "other models were tried on them"

    first = projects.judge_line(store, world.project_id, ASPECT).versions[0]
    asked = VersionRequest(world.project_id, ASPECT, first.criteria_ids, judge_spec="scripted")
    made = world.do(projects.make_version(store, settings, asked, origin="switch"))
    assert made.judge_state["spec"] == "scripted"
    assert made.held_out.value == pytest.approx(scripted.held_out.value)
    version = projects.judge_line(store, world.project_id, ASPECT).versions[-1]
    assert (version.made.parent, version.made.judge_spec, version.made.base_run) == (1, "scripted", world.run_id)
    gain = version.measured[0].held_out_gain
    assert gain is not None and gain.value == pytest.approx(scripted.difference.value)
    assert gain.p is None, "the models were compared on these items before"
    with pytest.raises(UsageError, match="already has these criteria"):
        projects.make_version(store, settings, asked)

    for number, spec in ((2, "scripted"), (1, "offline")):  # measured again, each keeps its model
        again = projects.measure_version(store, settings, world.project_id, ASPECT, number)
        assert world.do(again).judge_state["spec"] == spec
    shown = projects.judges_shown(store, *world.where)
    assert shown.version is not None and shown.version.number == 2
    names = {entry.judge_id: entry.judge.name for entry in (*shown.entries, *shown.aside)}
    assert names[shown.baseline] == "scripted · baseline", "the same model without criteria"


def test_an_edit_of_a_version_with_another_model_keeps_that_model(world: World) -> None:
    store, settings = world.store, world.settings
    first = projects.judge_line(store, world.project_id, ASPECT).versions[0]
    asked = VersionRequest(world.project_id, ASPECT, first.criteria_ids, judge_spec="scripted")
    world.do(projects.make_version(store, settings, asked, origin="switch"))
    line = projects.judge_line(store, world.project_id, ASPECT)
    projects.decide_version(store, world.project_id, ASPECT, 2, "current", decided=line.decided)
    edit = projects.save_edit(store, world.project_id, first.criteria_ids[0], "Reward plain words.")
    asked = VersionRequest(world.project_id, ASPECT, (edit,))
    assert world.do(projects.make_version(store, settings, asked)).judge_state["spec"] == "scripted"
    back = VersionRequest(world.project_id, ASPECT, (edit,), judge_spec="offline")  # and may go back
    assert world.do(projects.make_version(store, settings, back)).judge_state["spec"] == "offline"
    assert projects.judge_line(store, world.project_id, ASPECT).versions[-1].made.judge_spec == ""


def test_a_later_trial_carries_no_p(world: World) -> None:
    request = SwitchRequest(*world.where, world.run_id, ("scripted",))
    before = world.do(projects.start_run(world.store, world.settings, request))[1]
    after = world.do(projects.start_run(world.store, world.settings, request))[1]
    assert (before.p_holm is None, after.p_holm) == (False, None)
    assert "already compared on these items once" in after.difference.p_reason


def test_a_failed_trial_resumes_with_the_replies_that_were_paid(
    store: Store, settings: Settings, project: str, few: GoldenSet, server: RunningServer, drive: Drive
) -> None:
    where = (project, projects.add_golden(store, project, few), ASPECT)
    made = calibrated(store, settings, drive, where, "scripted")
    request = SwitchRequest(*where, made, (f"openai:fake-judge@{server.base_url}",))
    estimate = projects.estimate_switch(store, settings, request)
    assert (estimate.calls, estimate.cost) == (120, None)
    server.fake.fault, server.fake.fault_after = "401", 20
    run_id = projects.start_run(store, settings, request)
    with pytest.raises(AuthError):
        drive(store, settings, run_id)
    store.runs.finish(run_id, 1, "failed")
    server.fake.fault = ""
    projects.resume_run(store, settings, run_id)
    assert drive(store, settings, run_id) == "done"
    assert server.fake.answered == 60, "no item is paid for twice"
    found = projects.models_tried(store, made)
    assert found is not None and found[1].cost is None and found[1].unread_share == 0.0


def test_a_model_that_reads_nothing_is_undefined_and_the_others_are_shown(
    store: Store, settings: Settings, project: str, few: GoldenSet, server: RunningServer, drive: Drive
) -> None:
    where = (project, projects.add_golden(store, project, few), ASPECT)
    made = calibrated(store, settings, drive, where, "scripted")
    server.fake.fault = "no-number"
    request = SwitchRequest(*where, made, (f"openai:fake-judge@{server.base_url}", "scripted:7"))
    assert drive(store, settings, projects.start_run(store, settings, request)) == "done"
    found = projects.models_tried(store, made)
    assert found is not None
    _, mute, other = found
    assert (mute.unread_share, mute.held_out.value, mute.calibration.value, mute.cost) == (1.0, None, None, None)
    assert mute.difference is not None and mute.difference.value is None and mute.p_holm is None
    assert other.held_out.value is not None


def test_what_is_refused(world: World) -> None:
    for judges, why in (
        ((), "1 to 5"),
        (("offline",), "own model"),
        (tuple(f"scripted:{k}" for k in range(6)), "1 to 5"),
        (("openai:m@http://ann:secret@127.0.0.1/v1",), "password"),
    ):
        with pytest.raises(UsageError, match=why):
            projects.start_run(world.store, world.settings, SwitchRequest(*world.where, world.run_id, judges))
