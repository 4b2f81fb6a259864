"""What a project wrote for the levels of a scale: shown by its calibrations, and by the versions made from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import yaml

from core import projects
from core.project_records import Actor
from core.projects.calibration import CalibrationRequest, VersionRequest, calibration_asked
from core.projects.method_runs import AblationRequest
from core.records import Anchor, GoldenSet
from core.settings import Settings
from core.store.store import Store
from tests.core.projects.conftest import ASPECT, QUICK

LEVELS = (Anchor(1, "Misses the point."), Anchor(5, "Says all that matters."))


def test_levels_of_the_start_count_for_the_run_its_versions_and_its_files(
    store: Store, settings: Settings, project: str, few: GoldenSet, drive: Callable[..., str]
) -> None:
    store = store.acting(Actor("Ann", "reviewer"))
    golden_id = projects.add_golden(store, project, few)
    where = (project, golden_id, ASPECT)
    projects.set_anchors(store, *where, {1: LEVELS[0].text, 5: LEVELS[1].text, 9: "Not on the scale."})
    request = CalibrationRequest(*where, "scripted", replace(QUICK, examples=3))
    plain = replace(request, settings=replace(QUICK, levels=False))
    estimates = [projects.estimate(store, settings, each) for each in (request, plain)]
    tokens = [estimate.prompt_tokens or 0 for estimate in estimates]
    assert tokens[0] > tokens[1] > 0

    run_id = projects.start_run(store, settings, request)
    projects.set_anchors(store, *where, {1: "Changed later."})
    assert drive(store, settings, run_id) == "done"
    result = projects.load_calibration(store, run_id)
    assert result.task.levels == LEVELS
    examples = result.judge_state["sampling"]["examples"]
    calibrated_on = {few.items[position].source_id for position in result.split.calibration}
    assert len(examples) == 6
    assert {each["item"]["source_id"] for each in examples} <= calibrated_on

    card = yaml.safe_load(projects.judge_file(store, run_id))
    assert [level["text"] for level in card["task"]["levels"]] == [level.text for level in LEVELS]
    assert card["settings"]["examples"] == 3

    chosen = {each.criteria_id for each in result.chosen}
    rest = (each.criteria for each in result.candidates if each.criteria.text)
    second = next(each.criteria_id for each in rest if each.criteria_id not in chosen)
    version = projects.make_version(store, settings, VersionRequest(project, ASPECT, (second,)))
    assert drive(store, settings, version) == "done"
    measured = projects.load_calibration(store, version)
    assert measured.task.levels == LEVELS
    assert measured.judge_state["sampling"]["examples"] == examples
    assert calibration_asked(store, version).levels[:2] == LEVELS

    ablation_id = projects.start_run(store, settings, AblationRequest(*where, run_id))
    assert drive(store, settings, ablation_id) == "done"
    rows = {row.key for row in projects.run_view(store, ablation_id).outcome.rows}  # type: ignore[union-attr]
    assert {"without levels", "without examples", "name alone"} <= rows
