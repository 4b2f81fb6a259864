"""Versions of a judge: proposed by a calibration, made by people, measured beside the one in use, signed off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from core import projects
from core.comparison.given_verdicts import calibration_items
from core.data.split import text_digest
from core.errors import ConflictError, CriteriaError, JobError, NotFoundError, UsageError
from core.project_records import Actor
from core.projects.calibration import CalibrationRequest, VersionRequest, split_of_run
from core.projects.judge_line import JudgeLine, VersionState
from core.records import AspectLabels, GoldenSet
from core.store.store import Store
from tests.core.projects.conftest import ASPECT, QUICK, World


@dataclass(frozen=True)
class Versions(World):
    """`edited` are criteria that a person made of the best ones."""

    edited: str = ""

    @property
    def aspect(self) -> tuple[Store, str, str]:
        return self.store, self.project_id, ASPECT

    @property
    def line(self) -> JudgeLine:
        return projects.judge_line(*self.aspect)

    def make(self, criteria_id: str, **more: Any) -> str:
        """Make a version and measure it; returns the run."""
        run_id = self.start(criteria_id, **more)
        self.do(run_id)
        return run_id

    def start(self, *criteria_ids: str, aspect: str = ASPECT, **more: Any) -> str:
        request = VersionRequest(self.project_id, aspect, criteria_ids, **more)
        return projects.make_version(self.store, self.settings, request, origin="edit")

    def decide(self, number: int, state: VersionState, reason: str = "") -> None:
        projects.decide_version(*self.aspect, number, state, reason=reason, decided=self.line.decided)

    def edit(self, text: str) -> str:
        return projects.save_edit(self.store, self.project_id, self.edited, text, "Ann")

    def shown(self, golden_id: str = "") -> Any:
        return projects.judges_shown(self.store, self.project_id, golden_id or self.golden_id, ASPECT)


@pytest.fixture
def versions(world: World) -> Versions:
    best = projects.load_calibration(world.store, world.run_id).chosen[0]
    text = f"{best.text}\n- It repeats nothing."
    edited = projects.save_edit(world.store, world.project_id, best.criteria_id, text, "Ann", note="repetition")
    return Versions(**vars(world), edited=edited)


def test_an_edit_becomes_the_judge_and_its_file(versions: Versions) -> None:
    """The whole way: calibrated, edited, made the judge, used, exported; the file holds the text and who approved."""
    calibration = projects.load_calibration(versions.store, versions.run_id)
    (first,) = versions.line.versions
    assert (first.number, first.state, first.made.origin, first.made.parent) == (1, "proposed", "calibration", 0)
    assert first.criteria_ids == tuple(each.criteria_id for each in calibration.chosen)
    assert (first.newest.held_out, first.newest.looks, first.newest.beside) == (calibration.held_out, 1, 0)
    run_id = versions.make(versions.edited)
    second = versions.line.get(2)
    assert (second.state, second.made.parent, second.made.origin) == ("proposed", 1, "edit")
    assert second.newest.beside == 1 and second.newest.gain is not None
    store = versions.store.acting(Actor("Ben", "reviewer"))
    projects.decide_version(
        store, versions.project_id, ASPECT, 2, "current", reason="it counts", decided=versions.line.decided
    )
    assert versions.line.current == versions.line.get(2) == versions.line.default
    where = (versions.store, *versions.where)
    assert [run.run_id for run in projects.judge_runs(*where)] == [run_id, versions.run_id]
    card = yaml.safe_load(projects.judge_file(versions.store, run_id))
    assert [each["id"] for each in card["criteria"]] == [versions.edited]
    assert card["criteria"][0]["text"].endswith("- It repeats nothing.")
    assert card["approved"] is True
    assert [(each["state"], each["by"]) for each in card["approvals"]] == [("approved", "Ben")]
    assert (card["judge_version"]["number"], card["judge_version"]["state"]) == (2, "current")
    assert card["approvals"][0]["evidence"]["side"] == "held-out"
    assert projects.report(*where).run.run_id == run_id


def test_a_version_measured_equals_the_calibration_that_chose_the_same(versions: Versions) -> None:
    """An approval that is withdrawn while the run measures stays withdrawn."""
    calibration = projects.load_calibration(versions.store, versions.run_id)
    versions.decide(1, "approved")
    run_id = projects.measure_version(versions.store, versions.settings, versions.project_id, ASPECT, 1)
    versions.decide(1, "proposed", "the labels were wrong")
    versions.do(run_id)
    again = projects.load_calibration(versions.store, run_id)
    for side in ("calibration", "held_out"):
        assert getattr(again, side).value == pytest.approx(getattr(calibration, side).value, abs=1e-12)
    assert again.no_criteria.held_out.value == pytest.approx(calibration.no_criteria.held_out.value, abs=1e-12)
    assert again.isotonic == calibration.isotonic
    first = versions.line.get(1)
    assert (first.state, first.approval, first.newest.run_id) == ("proposed", None, run_id)
    card = yaml.safe_load(projects.judge_file(versions.store, run_id))
    assert (card["approved"], card["judge_version"]["state"]) == (False, "proposed")


def test_without_held_out_nothing_is_said_of_it(versions: Versions) -> None:
    run_id = versions.make(versions.edited, held_out=False)
    measured = versions.line.get(2).newest
    assert (measured.held_out, measured.held_out_gain, measured.looks) == (None, None, 0)
    assert projects.load_calibration(versions.store, run_id).held_out.value is None
    assert len(projects.list_held_out_accesses(versions.store, *versions.where)) == 1
    versions.decide(2, "approved")
    second = versions.line.get(2)
    assert second.evidence_of(second.approval).evidence[0] == "calibration"
    with pytest.raises(JobError, match="hasn't been measured on held-out"):
        projects.report(versions.store, *versions.where, run_id)


def test_the_current_version_stands_for_all_and_later_comparisons_carry_no_p(versions: Versions) -> None:
    """The first comparison on held-out items may be a test; from then on it would be one of many."""
    first = versions.shown()
    assert (first.aside, first.no_p) == ((), {first.own: ""})
    versions.make(versions.edited)
    projects.decide_version(*versions.aspect, 2, "current", decided=versions.line.decided)
    shown = versions.shown()
    kinds = {entry.judge_id: entry.judge.kind for entry in shown.entries}
    assert shown.version == versions.line.current
    assert (kinds[shown.own], kinds[shown.baseline], len(kinds)) == ("calibrated", "no criteria", 2)
    assert [entry.judge.run_id for entry in shown.aside] == [versions.run_id]
    assert shown.no_p == {shown.own: ""}  # its own comparison was the first
    versions.make(versions.edit("Rate how relevant it is."))
    again = versions.shown()
    assert again.no_p.pop(again.own) == ""  # what was compared later takes nothing from it
    assert ["once" in reason for reason in again.no_p.values()] == [True]  # the newer version is shown, without a p
    second, third = (versions.line.get(number).newest.held_out_gain for number in (2, 3))
    assert second.p is not None
    assert third.p is None and "already compared on these items once" in third.p_reason


def test_two_people_at_once(versions: Versions) -> None:
    decided = versions.line.decided
    projects.decide_version(*versions.aspect, 1, "approved", decided=decided)
    with pytest.raises(ConflictError):
        projects.decide_version(*versions.aspect, 1, "current", decided=decided)


def test_an_approval_is_withdrawn_and_one_goes_back(versions: Versions) -> None:
    run_id = versions.start(versions.edited)
    with pytest.raises(UsageError):  # not measured
        versions.decide(2, "approved")
    versions.do(run_id)
    for number in (1, 2):
        versions.decide(number, "approved")
        versions.decide(number, "current")
    assert [version.state for version in versions.line.versions] == ["approved", "current"]
    versions.decide(1, "current")  # back to the first
    assert [version.state for version in versions.line.versions] == ["current", "approved"]
    with pytest.raises(UsageError, match="reason"):
        versions.decide(1, "proposed")
    versions.decide(1, "proposed", "it forgives repetition")
    assert (versions.line.current, versions.line.default) == (None, versions.line.get(2))
    versions.decide(2, "retired", "superseded")
    assert versions.line.default == versions.line.get(1)
    with pytest.raises(UsageError, match="can change its state to proposed, but not to approved"):
        versions.decide(2, "approved")


def test_what_cannot_be_made_the_judge(versions: Versions) -> None:
    best = versions.line.get(1).criteria_ids[0]
    for criteria, aspect, error, words in (
        ((best,), ASPECT, UsageError, "already has these criteria"),
        (("c000000000000",), ASPECT, NotFoundError, "c000000000000"),
        ((), ASPECT, UsageError, "1 to 25"),
        ((best,), "fluency", CriteriaError, "for relevance, not for fluency"),
    ):
        with pytest.raises(error, match=words):
            versions.start(*criteria, aspect=aspect)
    assert len(versions.line.versions) == 1


def test_the_line_goes_on_when_labels_grow(versions: Versions, golden: GoldenSet, tmp_path: Path) -> None:
    """Known sources keep their side, new ones come to both; the current version is measured on the newer set."""
    extra = tuple(
        replace(item, item_id=f"n-{item.item_id}", source_id=f"n-{item.source_id}", source=f"{item.source} More.")
        for item in golden.items
    )
    labels = golden.labels(ASPECT).tolist()
    aspects = {ASPECT: AspectLabels(ASPECT, golden.aspects[ASPECT].scale, tuple(labels + labels))}
    grown = GoldenSet("grown", golden.kind, (*golden.items, *extra), aspects)
    store, project_id, n = versions.store, versions.project_id, len(golden.items)
    golden_id = projects.add_golden(store, project_id, grown)
    run_id = projects.measure_version(store, versions.settings, project_id, ASPECT, 1, golden_id=golden_id)
    versions.do(run_id)
    before, after = split_of_run(store, versions.run_id, golden), split_of_run(store, run_id, grown)
    for old, now in ((before.calibration, after.calibration), (before.held_out, after.held_out)):
        assert {k for k in now if k < n} == set(old)
        assert any(k >= n for k in now)
    assert versions.line.get(1).on(golden_id) and versions.line.get(1).on(versions.golden_id)
    shown = versions.shown(golden_id)
    (judge,) = (entry.judge for entry in shown.entries if entry.judge_id == shown.own)
    seen = projects.seen_labels(store, project_id, golden_id, judge)
    assert set(judge.seen) == set(after.calibration)
    assert set(seen) == set(before.calibration)  # version 1 was there before the new labels came
    file = tmp_path / "judge.yaml"
    file.write_text(projects.judge_file(store, run_id), "utf-8")
    texts = {text_digest(grown.items[k]) for k in seen}
    assert {text_digest(grown.items[k]) for k in calibration_items(grown, (), file, map_too=False)} == texts
    of_map = {k for k in calibration_items(grown, (), file) if k >= n}
    assert of_map == {k for k in after.calibration if k >= n}
    second = versions.make(versions.edited, golden_id=golden_id)
    projects.decide_version(*versions.aspect, 2, "current", decided=versions.line.decided)
    shown = versions.shown(golden_id)
    assert [entry.judge.run_id for entry in shown.entries] == [second, second]
    (judge,) = (entry.judge for entry in shown.entries if entry.judge_id == shown.own)
    assert projects.seen_labels(store, project_id, golden_id, judge) == judge.seen  # made after they came
    again = projects.start_run(store, versions.settings, CalibrationRequest(project_id, golden_id, ASPECT))
    assert split_of_run(store, again, grown) == after


def test_whoever_sees_a_judge_or_a_version_finds_what_its_run_left(
    versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run of the aspect may look at any moment, and compares its judge with the one that it sees."""
    named: list[str] = []

    def watched(add: Callable[..., object]) -> Callable[..., object]:
        def added(part: object, *args: object, **more: object) -> object:
            for run_id in (run_id for entry in args if (run_id := getattr(entry, "run_id", ""))):
                projects.load_calibration(versions.store, run_id)
                named.append(run_id)
            return add(part, *args, **more)

        return added

    for part in (versions.store.judges, versions.store.events):
        monkeypatch.setattr(type(part), "add", watched(type(part).add))
    request = CalibrationRequest(*versions.where, settings=replace(QUICK, seed=1))
    calibration = projects.start_run(versions.store, versions.settings, request)
    versions.do(calibration)
    version = versions.make(versions.edited)
    assert set(named) == {calibration, version}


def test_an_edit_takes_the_place_of_its_parent_in_an_ensemble(versions: Versions) -> None:
    calibration, where = projects.load_calibration(versions.store, versions.run_id), versions.aspect
    parent = calibration.chosen[0].criteria_id
    texts = [candidate.criteria for candidate in calibration.candidates if candidate.criteria.text]
    beside = next(criteria.criteria_id for criteria in texts if criteria.criteria_id != parent)
    assert projects.in_place_of_parent(*where, versions.edited) == ()  # the judge follows one set of criteria
    versions.do(versions.start(parent, beside))
    projects.decide_version(*where, 2, "current", decided=versions.line.decided)
    assert projects.in_place_of_parent(*where, versions.edited) == (versions.edited, beside)
    again = versions.edit("Shorter.")  # an edit of the edit
    assert projects.in_place_of_parent(*where, again) == (again, beside)
