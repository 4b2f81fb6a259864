"""Refinement rounds as runs, their steps done in this process, and what people decide on the proposals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from core import projects
from core.calibration.calibration_settings import CalibrationSettings, RoundSettings
from core.errors import ConflictError, JobError, NotFoundError, UsageError
from core.people import Actor
from core.projects.calibration import CalibrationRequest
from core.projects.edit_scoring import RescoreRequest
from core.projects.rounds import ListedProposal, RoundRequest
from core.records import GoldenSet
from core.settings import Settings
from core.store.store import Store

CHOSEN = CalibrationSettings(preset="quick", rounds=0, resamples=100, seed=3, fit_strengths=False)
SMALL = RoundSettings(sizes=(2,), trials=2)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(home=tmp_path_factory.mktemp("rounds") / "home", worker="external", worker_id="w")


@pytest.fixture(scope="module")
def store(settings: Settings) -> Iterator[Store]:
    opened = projects.open_store(settings)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def calibrated(store: Store, golden: GoldenSet) -> CalibrationRequest:
    """A finished calibration of the sample summaries by the offline judge."""
    project = projects.create_project(store, "p")
    golden_id = projects.add_golden(store, project.project_id, golden)
    return CalibrationRequest(project.project_id, golden_id, "coherence", "offline", CHOSEN)


@pytest.fixture(scope="module")
def run_id(store: Store, settings: Settings, calibrated: CalibrationRequest, drive: Callable[..., str]) -> str:
    run_id = projects.start_calibration(store, settings, calibrated)
    assert drive(store, settings, run_id) == "done"
    return run_id


@pytest.fixture(scope="module")
def request_(store: Store, calibrated: CalibrationRequest, run_id: str, golden: GoldenSet) -> RoundRequest:
    best = projects.load_calibration(store, run_id).chosen
    split = CHOSEN.split_of(golden, calibrated.aspect)
    picks = tuple(golden.items[k].item_id for k in split.calibration[:3])
    parents = tuple(one.criteria_id for one in best[:2])
    return RoundRequest(calibrated.project_id, calibrated.golden_id, calibrated.aspect, run_id, parents, picks, SMALL)


@pytest.fixture(scope="module")
def round_id(store: Store, settings: Settings, request_: RoundRequest, drive: Callable[..., str]) -> str:
    round_id = projects.start_round(store.acting(Actor("Ann", "reviewer")), settings, request_)
    assert drive(store, settings, round_id) == "done"
    return round_id


def test_a_round_ends_in_proposals_that_wait_for_people(store: Store, request_: RoundRequest, round_id: str) -> None:
    proposals = projects.list_proposals(store, round_id)
    assert proposals
    for proposal in proposals:
        assert (proposal.state, proposal.seen, proposal.decision) == ("open", 0, None)
        assert proposal.parent.criteria_id in request_.parent_ids
        assert set(proposal.criteria.provenance.item_ids) <= set(request_.item_ids)
        stood = store.criteria.get(request_.project_id, proposal.criteria.criteria_id).alignments
        assert [(each.run_id, each.side) for each in stood] == [(round_id, "calibration")]
    view = projects.run_view(store, round_id)
    assert (view.kind, "3 picked items" in view.title) == ("round", True)
    scores = projects.item_scores(store, round_id, proposals[0].criteria.criteria_id)
    assert len(scores) == proposals[0].calibration.n


def test_a_proposal_is_accepted_once(store: Store, request_: RoundRequest, round_id: str) -> None:
    proposal = projects.list_proposals(store, round_id)[0]
    name = proposal.criteria.criteria_id
    with pytest.raises(UsageError, match="needs a reason"):
        projects.decide_proposal(store, round_id, name, accepted=True, reason=" ")
    ann, bo = store.acting(Actor("Ann", "reviewer")), store.acting(Actor("Bo", "reviewer"))
    projects.decide_proposal(ann, round_id, name, accepted=True, reason="clearer")
    with pytest.raises(ConflictError, match="Ann decided"):
        projects.decide_proposal(bo, round_id, name, accepted=False, reason="no", seen=-1)
    again = projects.list_proposals(store, round_id)[0]
    assert (again.state, again.decision.reason, again.decision.actor) == ("accepted", "clearer", "Ann")
    projects.decide_proposal(bo, round_id, name, accepted=False, reason="on reflection", seen=again.seen)
    assert projects.list_proposals(store, round_id)[0].state == "rejected"
    with pytest.raises(UsageError, match="did not propose"):
        projects.decide_proposal(bo, round_id, "c-none", accepted=True, reason="r")


def test_an_edit_can_be_accepted_in_its_place(
    store: Store, settings: Settings, request_: RoundRequest, round_id: str
) -> None:
    proposal = projects.list_proposals(store, round_id)[-1]
    name = proposal.criteria.criteria_id
    ann, words = store.acting(Actor("Ann", "reviewer")), proposal.criteria.text
    with pytest.raises(UsageError, match="unchanged"):
        projects.edit_proposal(ann, settings, round_id, name, f" {words} ", note="clearer so")
    with pytest.raises(UsageError, match="needs a reason"):
        projects.edit_proposal(ann, settings, round_id, name, f"{words}\nReward brevity.", note=" ")
    edited = projects.edit_proposal(ann, settings, round_id, name, f"{words}\nReward brevity.", note="clearer so")
    rescored = next(run for run in projects.list_runs(store, request_.project_id) if run.kind == "rescore")
    request = projects.run_view(store, rescored.run_id).request
    assert isinstance(request, RescoreRequest)
    assert (request.criteria_id, request.parent_id, request.run_id) == (edited, name, request_.run_id)
    other = projects.save_edit(store, request_.project_id, request_.parent_ids[0], "Quite another text.", "Ann")
    accept = {"accepted": True, "reason": "clearer so", "seen": proposal.seen}
    with pytest.raises(UsageError, match="not an edit of this proposal"):
        projects.decide_proposal(store, round_id, name, **accept, edited_id=other)
    projects.decide_proposal(store, round_id, name, **accept, edited_id=edited)
    again = next(each for each in projects.list_proposals(store, round_id) if each.criteria.criteria_id == name)
    assert (again.state, again.decision.edited_id) == ("accepted", edited)


def test_the_review_decides_on_proposals_and_sees_what_was_decided_elsewhere(
    store: Store, request_: RoundRequest, round_id: str
) -> None:
    where = (request_.project_id, request_.golden_id, request_.aspect)
    ann, bo = store.acting(Actor("Ann", "reviewer")), store.acting(Actor("Bo", "reviewer"))

    def listed() -> dict[str, ListedProposal]:
        return {each.criteria.criteria_id: each for each in projects.list_proposals(store, round_id)}

    before = listed()
    points = [point for point in projects.open_review(store, *where).points if point.run_id]
    assert {point.subject_id for point in points} == {name for name in before if before[name].state == "open"}
    assert len(points) >= 2, "the round of this module leaves two proposals open"
    assert [point.losing for point in points] == [(before[point.subject_id].inner.value or 0) < 0 for point in points]
    first, second = points[:2]
    assert first.title.startswith("Should ")
    assert "spearman" in first.text
    projects.decide_point(ann, *where, first.key, verdict="accepted", reason="clearer")
    now = listed()[first.subject_id]
    assert (now.state, now.decision.actor, now.decision.reason) == ("accepted", "Ann", "clearer")
    projects.decide_proposal(bo, round_id, second.subject_id, accepted=False, reason="too long")
    with pytest.raises(UsageError, match="not open"):  # Ann's screen showed it open
        projects.decide_point(ann, *where, second.key, verdict="accepted", reason="it is fine")
    assert listed()[second.subject_id].state == "rejected"
    assert not {first.key, second.key} & {point.key for point in projects.open_review(store, *where).points}


def test_the_family_tree_puts_parents_first(store: Store, request_: RoundRequest, round_id: str) -> None:
    tree = projects.family_tree(store, request_.project_id, request_.aspect, request_.golden_id)
    place = {relative.criteria.criteria_id: k for k, relative in enumerate(tree)}
    depth = {relative.criteria.criteria_id: relative.depth for relative in tree}
    for proposal in projects.list_proposals(store, round_id):
        assert place[proposal.parent.criteria_id] < place[proposal.criteria.criteria_id]
        assert depth[proposal.criteria.criteria_id] == depth[proposal.parent.criteria_id] + 1
        parent = next(each for each in tree if each.criteria.criteria_id == proposal.parent.criteria_id)
        assert proposal.criteria.criteria_id in parent.children


def test_rounds_that_cannot_start(
    store: Store, settings: Settings, request_: RoundRequest, round_id: str, golden: GoldenSet
) -> None:
    held_out = projects.load_calibration(store, request_.run_id).split.held_out[0]
    for changes, error, words in (
        ({"parent_ids": ()}, UsageError, "at least one"),
        ({"parent_ids": ("c-none",)}, NotFoundError, "no criteria"),
        ({"item_ids": (golden.items[held_out].item_id,)}, UsageError, "held-out ones stay held out"),
        ({"run_id": round_id}, JobError, "has not come to its judge"),
        ({"aspect": "fluency"}, UsageError, "must be for fluency"),
    ):
        with pytest.raises(error, match=words):
            projects.start_round(store, settings, replace(request_, **changes))
    with pytest.raises(JobError, match="not a refinement round"):
        projects.list_proposals(store, request_.run_id)
