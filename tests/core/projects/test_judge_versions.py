"""Versions of a judge: proposed by a calibration, made by people, measured beside the one in use, signed off."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from core import projects
from core.calibration.calibration_settings import CalibrationSettings
from core.comparison.given_verdicts import calibration_items
from core.comparison.sureness import expected_errors
from core.data.split import text_digest
from core.errors import AccessError, ConflictError, CriteriaError, JobError, NotFoundError, UsageError
from core.people import Actor
from core.projects.calibration import CalibrationRequest, sides_of
from core.projects.judge_line import HeldOutSeen, JudgeLine
from core.projects.judge_versions import VersionOptions
from core.projects.labelling import LabelAspect, PassRequest
from core.records import AspectLabels, GoldenSet
from core.settings import Settings
from core.store.store import Store

ASPECT = "relevance"
Drive = Callable[..., str]


@dataclass
class World:
    """A project with a finished calibration; `edited` are criteria that a person made of its best."""

    store: Store
    settings: Settings
    project_id: str
    golden_id: str
    run_id: str
    edited: str
    drive: Drive

    @property
    def line(self) -> JudgeLine:
        return projects.judge_line(self.store, self.project_id, ASPECT)

    def make(self, criteria_id: str, *, seen: int | None = None, **more: Any) -> str:
        """Make a version and measure it; returns the run."""
        made = projects.make_version(
            *(self.store, self.settings, self.project_id, ASPECT, [criteria_id]),
            options=VersionOptions("edit", **more),
            seen=seen,
        )
        assert self.drive(self.store, self.settings, made) == "done"
        return made

    def decide(self, number: int, state: str, reason: str = "") -> None:
        where = (self.store, self.project_id, ASPECT, number)
        projects.decide_version(*where, state, reason=reason, decided=self.line.decided)  # type: ignore[arg-type]

    def edit(self, text: str) -> str:
        return projects.save_edit(self.store, self.project_id, self.edited, text, "Ann")


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory, drive: Drive, golden: GoldenSet) -> World:
    """The world that each test has a copy of."""
    settings = Settings(home=tmp_path_factory.mktemp("calibrated"), worker="external", worker_id="w")
    store = projects.open_store(settings)
    project_id = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project_id, golden)
    chosen = CalibrationSettings(preset="quick", rounds=0, resamples=100, ensemble=1)
    request = CalibrationRequest(project_id, golden_id, ASPECT, settings=chosen)
    run_id = projects.start_calibration(store, settings, request)
    assert drive(store, settings, run_id) == "done"
    best = projects.load_calibration(store, run_id).chosen[0]
    edited = projects.save_edit(
        store, project_id, best.criteria_id, f"{best.text}\n- It repeats nothing.", "Ann", note="repetition"
    )
    store.close()
    return World(store, settings, project_id, golden_id, run_id, edited, drive)


@pytest.fixture
def world(calibrated: World, tmp_path: Path) -> Iterator[World]:
    shutil.copytree(calibrated.settings.home, tmp_path, dirs_exist_ok=True)
    settings = replace(calibrated.settings, home=tmp_path)
    with projects.open_store(settings) as store:
        yield replace(calibrated, store=store, settings=settings)


def test_a_finished_calibration_proposes_a_version(world: World) -> None:
    (first,) = world.line.versions
    calibration = projects.load_calibration(world.store, world.run_id)
    assert (first.number, first.state, first.made.origin, first.made.parent) == (1, "proposed", "calibration", 0)
    assert first.criteria_ids == tuple(each.criteria_id for each in calibration.chosen)
    assert first.newest is not None
    assert (first.newest.held_out, first.newest.looks, first.newest.beside) == (calibration.held_out, 1, 0)


def test_an_edit_becomes_the_judge_and_its_file(world: World) -> None:
    """The whole way: edit, make it the judge, approve, use, export; the file holds the text and who approved it."""
    run_id = world.make(world.edited)
    second = world.line.get(2)
    assert (second.state, second.made.parent, second.made.origin) == ("proposed", 1, "edit")
    assert second.newest is not None
    assert second.newest.beside == 1
    assert second.newest.gain is not None
    assert second.newest.held_out_gain is not None
    store = world.store.acting(Actor("Ben", "reviewer"))
    projects.use_version(store, world.project_id, ASPECT, 2, reason="it counts repetition", decided=world.line.decided)
    assert world.line.current == world.line.get(2) == world.line.default

    where = (world.store, world.project_id, world.golden_id, ASPECT)
    assert [run.run_id for run in projects.judge_runs(*where)] == [run_id, world.run_id]
    adapters = projects.judge_adapters(*where)
    assert adapters is not None
    card = yaml.safe_load(adapters.judge_file)
    assert [each["id"] for each in card["criteria"]] == [world.edited]
    assert card["criteria"][0]["text"].endswith("- It repeats nothing.")
    assert card["approved"] is True
    assert [(each["state"], each["by"]) for each in card["approvals"]] == [("approved", "Ben")]
    assert (card["judge_version"]["number"], card["judge_version"]["state"]) == (2, "current")
    assert [each["state"] for each in card["judge_version"]["approvals"]] == ["approved", "current"]
    assert card["approvals"][0]["evidence"]["side"] == "held-out"
    assert projects.report(*where).run.run_id == run_id


def test_a_version_measured_equals_the_calibration_that_chose_the_same(world: World) -> None:
    """Measured again, the criteria of the calibration stand where it put them: one way of measuring."""
    calibration = projects.load_calibration(world.store, world.run_id)
    run_id = projects.measure_version(world.store, world.settings, world.project_id, ASPECT, 1)
    assert world.drive(world.store, world.settings, run_id) == "done"
    again = projects.load_calibration(world.store, run_id)
    for side in ("calibration", "held_out"):
        assert getattr(again, side).value == pytest.approx(getattr(calibration, side).value, abs=1e-12)
    assert again.no_criteria.held_out.value == pytest.approx(calibration.no_criteria.held_out.value, abs=1e-12)
    assert again.isotonic == calibration.isotonic


def test_without_held_out_nothing_is_said_of_it(world: World) -> None:
    run_id = world.make(world.edited, held_out=False)
    measured = world.line.get(2).newest
    assert measured is not None
    assert (measured.held_out, measured.held_out_gain, measured.looks) == (None, None, 0)
    assert projects.load_calibration(world.store, run_id).held_out.value is None
    assert len(projects.list_held_out_accesses(world.store, world.project_id, world.golden_id, ASPECT)) == 1
    world.decide(2, "approved")
    approval = world.line.get(2).approval
    assert approval is not None
    assert approval.evidence is not None
    assert approval.evidence.side == "calibration"
    with pytest.raises(JobError, match="not measured on held-out"):
        projects.report(world.store, world.project_id, world.golden_id, ASPECT, run_id)


def test_the_second_comparison_on_held_out_items_carries_no_p(world: World) -> None:
    """A choice may rest on the first; from then on the test would be one of many."""
    world.make(world.edited)
    world.make(world.edit("Rate how relevant it is.\n- It repeats nothing."))
    first, second = world.line.get(2).newest, world.line.get(3).newest
    assert first is not None
    assert second is not None
    assert first.held_out_gain is not None
    assert second.held_out_gain is not None
    assert first.held_out_gain.p is not None
    assert (second.held_out_gain.p, second.held_out_gain.p_reason) == (None, HeldOutSeen(2, 1).p_reason)
    assert (first.looks, second.looks) == (2, 3)


def test_two_people_make_the_next_version_at_once(world: World) -> None:
    seen = world.line.seen
    world.make(world.edited, seen=seen)
    other = world.edit("Something else entirely.")
    with pytest.raises(ConflictError):
        world.make(other, seen=seen)
    assert len(world.line.versions) == 2


def test_two_people_decide_at_once(world: World) -> None:
    decided = world.line.decided
    projects.decide_version(world.store, world.project_id, ASPECT, 1, "approved", decided=decided)
    with pytest.raises(ConflictError):
        projects.decide_version(world.store, world.project_id, ASPECT, 1, "current", decided=decided)


def test_an_approval_is_withdrawn_and_one_goes_back(world: World) -> None:
    world.make(world.edited)
    for number in (1, 2):
        world.decide(number, "approved")
        world.decide(number, "current")
    assert [version.state for version in world.line.versions] == ["approved", "current"]
    world.decide(1, "current")  # back to the first
    assert [version.state for version in world.line.versions] == ["current", "approved"]
    with pytest.raises(UsageError, match="reason"):
        world.decide(1, "proposed")
    world.decide(1, "proposed", "it forgives repetition")
    assert world.line.current is None
    assert world.line.default == world.line.get(2)
    world.decide(2, "retired", "superseded")
    assert world.line.default == world.line.get(1)
    with pytest.raises(UsageError, match="can become proposed, not approved"):
        world.decide(2, "approved")


def test_a_version_that_was_not_measured_cannot_be_approved(world: World) -> None:
    projects.make_version(
        world.store, world.settings, world.project_id, ASPECT, [world.edited], options=VersionOptions("edit")
    )
    assert world.line.get(2).state == "draft"
    with pytest.raises(UsageError):
        world.decide(2, "approved")


def test_what_cannot_be_made_the_judge(world: World) -> None:
    def make(*criteria: str, aspect: str = ASPECT) -> None:
        projects.make_version(
            world.store, world.settings, world.project_id, aspect, criteria, options=VersionOptions("edit")
        )

    best = world.line.get(1).criteria_ids[0]
    with pytest.raises(UsageError, match="version 1 already"):
        make(best)
    with pytest.raises(NotFoundError):
        make("c000000000000")
    with pytest.raises(UsageError, match="1 to 25"):
        make()
    with pytest.raises(CriteriaError, match="for relevance, not for fluency"):
        make(best, aspect="fluency")
    annotator = world.store.acting(Actor("Ann", "annotator"))
    with pytest.raises(AccessError):
        projects.make_version(
            annotator, world.settings, world.project_id, ASPECT, [world.edited], options=VersionOptions("edit")
        )
    assert len(world.line.versions) == 1


def test_the_estimate_counts_what_is_asked_at_most(world: World) -> None:
    where = (world.store, world.settings, world.project_id, ASPECT, [world.edited])
    both, alone = (
        projects.estimate_version(*where, options=VersionOptions(held_out=held_out)) for held_out in (True, False)
    )
    crossing = 1 + 10 + both.n_calibration  # for a judge that fits strengths: to all labels, then over ten folds
    assert both.calls == 2 * (both.n_calibration + both.n_held_out) + crossing
    assert (alone.calls, alone.n_held_out) == (2 * both.n_calibration + crossing, 0)


def test_the_line_goes_on_when_labels_grow(world: World, golden: GoldenSet, tmp_path: Path) -> None:
    """Known sources keep their side, new ones come to both; the version in use is measured on the newer set."""
    extra = tuple(
        replace(item, item_id=f"n-{item.item_id}", source_id=f"n-{item.source_id}", source=f"{item.source} More.")
        for item in golden.items
    )
    labels = golden.labels(ASPECT).tolist()
    aspects = {ASPECT: AspectLabels(ASPECT, golden.aspects[ASPECT].scale, tuple(labels + labels))}
    grown = GoldenSet("grown", golden.kind, (*golden.items, *extra), aspects)
    golden_id = projects.add_golden(world.store, world.project_id, grown)
    run_id = projects.measure_version(world.store, world.settings, world.project_id, ASPECT, 1, golden_id=golden_id)
    assert world.drive(world.store, world.settings, run_id) == "done"
    before, after = sides_of(world.store, world.run_id, golden), sides_of(world.store, run_id, grown)
    n = len(golden.items)
    assert {k for k in after.calibration if k < n} == set(before.calibration)
    assert {k for k in after.held_out if k < n} == set(before.held_out)
    assert any(k >= n for k in after.calibration)
    assert any(k >= n for k in after.held_out)
    assert world.line.get(1).on(golden_id) is not None
    assert world.line.get(1).on(world.golden_id) is not None
    shown = projects.judges_shown(world.store, world.project_id, golden_id, ASPECT)
    kinds = {entry.judge_id: entry.judge.kind for entry in shown.entries}
    assert (kinds[shown.own], kinds[shown.baseline], len(kinds)) == ("calibrated", "no criteria", 2)
    (judge,) = (entry.judge for entry in shown.entries if entry.judge_id == shown.own)
    seen = projects.seen_labels(world.store, world.project_id, golden_id, judge)
    assert set(judge.seen) == set(after.calibration)
    assert set(seen) == set(before.calibration)  # version 1 was there before the new labels came
    file = tmp_path / "judge.yaml"
    file.write_text(projects.judge_file(world.store, run_id), "utf-8")
    texts = {text_digest(grown.items[k]) for k in seen}
    assert {text_digest(grown.items[k]) for k in calibration_items(grown, (), file, map_too=False)} == texts
    assert {k for k in calibration_items(grown, (), file) if k >= n} == {
        k for k in after.calibration if k >= n
    }  # the map's
    second = world.make(world.edited, golden_id=golden_id)  # each leaves one; that of the version shown is compared
    projects.use_version(world.store, world.project_id, ASPECT, 2, decided=world.line.decided)
    shown = projects.judges_shown(world.store, world.project_id, golden_id, ASPECT)
    assert [entry.judge.run_id for entry in shown.entries] == [second, second]
    assert {entry.judge.run_id for entry in shown.aside} == {run_id}
    (judge,) = (entry.judge for entry in shown.entries if entry.judge_id == shown.own)
    assert projects.seen_labels(world.store, world.project_id, golden_id, judge) == judge.seen  # made after they came
    at_home = projects.judges_shown(world.store, world.project_id, world.golden_id, ASPECT)
    assert [entry.judge.kind for entry in at_home.entries].count("no criteria") == 1
    chosen = CalibrationSettings(preset="quick", rounds=0, resamples=0, ensemble=1)
    request = CalibrationRequest(world.project_id, golden_id, ASPECT, settings=chosen)
    again = projects.start_calibration(world.store, world.settings, request)
    assert sides_of(world.store, again, grown) == after


def test_an_edit_takes_the_place_of_its_parent_in_an_ensemble(world: World) -> None:
    calibration, where = projects.load_calibration(world.store, world.run_id), (world.store, world.project_id, ASPECT)
    parent = calibration.chosen[0].criteria_id
    texts = [candidate.criteria for candidate in calibration.candidates if candidate.criteria.text]
    beside = next(criteria.criteria_id for criteria in texts if criteria.criteria_id != parent)
    assert projects.in_place_of_parent(*where, world.edited) == ()  # the judge follows one set of criteria
    run_id = projects.make_version(
        world.store, world.settings, *where[1:], [parent, beside], options=VersionOptions("criteria")
    )
    assert world.drive(world.store, world.settings, run_id) == "done"
    projects.use_version(*where, 2, decided=world.line.decided)
    assert projects.in_place_of_parent(*where, world.edited) == (world.edited, beside)
    again = world.edit("Shorter.")  # an edit of the edit
    assert projects.in_place_of_parent(*where, again) == (again, beside)
    merged = projects.merge_criteria(world.store, world.project_id, parent, beside)
    assert projects.in_place_of_parent(*where, merged) == (merged,)
    assert projects.in_place_of_parent(*where, beside) == ()


def test_imported_approvals_are_shown_and_count_for_nobody(world: World, tmp_path: Path) -> None:
    world.make(world.edited)
    projects.use_version(world.store, world.project_id, ASPECT, 2, decided=world.line.decided)
    path = tmp_path / "p.zip"
    projects.export_project(world.store, world.settings, world.project_id, path)
    arrived = projects.import_project(world.store, world.settings, path)
    line = projects.judge_line(world.store, arrived.project_id, ASPECT)
    assert [version.state for version in line.versions] == ["proposed", "proposed"]
    assert line.current is None
    second = line.get(2)
    assert second.imported_approval is not None
    assert second.newest is not None
    card = yaml.safe_load(projects.judge_file(world.store, second.newest.run_id))
    assert card["approved"] is False
    assert any("it was where it came from" in warning for warning in card["warnings"])
    projects.use_version(world.store, arrived.project_id, ASPECT, 2, decided=line.decided)
    assert projects.judge_line(world.store, arrived.project_id, ASPECT).current is not None


def test_the_version_in_use_stands_for_all_versions(world: World) -> None:
    """Compare and Label show it beside the judge without criteria; the version before it stands aside."""
    first = projects.judges_shown(world.store, world.project_id, world.golden_id, ASPECT)
    assert [entry.name for entry in first.entries if entry.judge_id == first.own] == ["Version 1 (waits for sign-off)"]
    assert (first.aside, first.seen.p_reason) == ((), "")
    world.make(world.edited)
    projects.use_version(world.store, world.project_id, ASPECT, 2, decided=world.line.decided)
    shown = projects.judges_shown(world.store, world.project_id, world.golden_id, ASPECT)
    names = {entry.judge_id: entry.name for entry in shown.entries}
    assert shown.version == world.line.current
    assert names[shown.own] == "Version 2 (current)"
    assert names[shown.baseline].endswith("· no criteria")
    assert len(names) == 2
    assert [entry.name for entry in shown.aside] == ["Version 1 (waits for sign-off)"]
    assert (shown.seen.looks, shown.seen.p_reason) == (2, "")  # its own comparison was the first
    projects.rename_judge(world.store, world.project_id, shown.own, "House judge")
    world.make(world.edit("Rate how relevant it is."))
    again = projects.judges_shown(world.store, world.project_id, world.golden_id, ASPECT)
    assert [entry.name for entry in again.entries if entry.judge_id == again.own] == [
        "House judge, version 2 (current)"
    ]
    assert (again.seen.looks, again.seen.p_reason) == (3, "")  # what was compared later takes nothing from it


def test_labelling_the_least_sure_first_asks_the_version_in_use(world: World) -> None:
    shown = projects.judges_shown(world.store, world.project_id, world.golden_id, ASPECT)
    golden = world.store.goldens.load(world.golden_id)
    aspect = LabelAspect(ASPECT, golden.aspects[ASPECT].scale)
    pass_id = projects.start_pass(
        world.store, PassRequest(world.project_id, world.golden_id, "unsure", (aspect,), order="unsure", limit=5)
    )
    judge = next(entry.judge for entry in shown.entries if entry.judge_id == shown.own)
    errors = expected_errors(golden, ASPECT, judge)
    first = projects.get_pass(world.store, world.project_id, pass_id).plan.positions
    open_ = np.isnan(golden.labels(ASPECT))
    pool = np.flatnonzero(open_) if open_.any() else np.arange(len(golden.items))
    assert errors[first[0]] == np.nanmax(errors[pool])


def test_an_approval_withdrawn_while_a_run_measures_the_version(world: World) -> None:
    """The run ends and is entered; the version stays as people put it meanwhile."""
    world.decide(1, "approved")
    run_id = projects.measure_version(world.store, world.settings, world.project_id, ASPECT, 1)
    world.decide(1, "proposed", "the labels were wrong")
    assert world.drive(world.store, world.settings, run_id) == "done"
    first = world.line.get(1)
    assert (first.state, first.in_force, first.approval) == ("proposed", False, None)
    assert first.newest is not None
    assert first.newest.run_id == run_id
    card = yaml.safe_load(projects.judge_file(world.store, run_id))
    assert (card["approved"], card["judge_version"]["state"]) == (False, "proposed")


def test_whoever_sees_a_judge_or_a_version_finds_what_its_run_left(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run of the aspect may look at any moment, and compares its judge with the one that it sees."""
    named: list[str] = []

    def watched(add: Callable[..., object]) -> Callable[..., object]:
        def added(part: object, *args: object, **more: object) -> object:
            for run_id in (run_id for entry in args if (run_id := getattr(entry, "run_id", ""))):
                projects.load_calibration(world.store, run_id)
                named.append(run_id)
            return add(part, *args, **more)

        return added

    for part in (world.store.judges, world.store.events):
        monkeypatch.setattr(type(part), "add", watched(type(part).add))
    chosen = CalibrationSettings(preset="quick", rounds=0, resamples=100, ensemble=1, seed=1)
    request = CalibrationRequest(world.project_id, world.golden_id, ASPECT, settings=chosen)
    calibration = projects.start_calibration(world.store, world.settings, request)
    assert world.drive(world.store, world.settings, calibration) == "done"
    version = world.make(world.edited)
    assert set(named) == {calibration, version}
