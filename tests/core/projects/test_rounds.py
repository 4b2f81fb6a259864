"""Refinement rounds as runs, their steps done in this process, and what people decide on the proposals."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest

from core import projects
from core.calibration.calibration_records import RoundSettings
from core.errors import ConflictError, JobError, NotFoundError, UsageError
from core.project_records import Actor
from core.projects.criteria import RoundRequest
from core.projects.review import ListedProposal
from core.records import GoldenSet
from tests.core.projects.conftest import World

SMALL = RoundSettings(sizes=(2,), trials=2)
ANN, BO = Actor("Ann", "reviewer"), Actor("Bo", "reviewer")


@pytest.fixture(scope="module")
def round_(
    calibrated: World, tmp_path_factory: pytest.TempPathFactory, golden: GoldenSet
) -> Iterator[tuple[World, str]]:
    """A world, and a round in it that Ann started, done."""
    home = tmp_path_factory.mktemp("rounds")
    shutil.copytree(calibrated.settings.home, home, dirs_exist_ok=True)
    settings = replace(calibrated.settings, home=home)
    with projects.open_store(settings) as store:
        world = replace(calibrated, store=store, settings=settings)
        found = projects.load_calibration(store, world.run_id)
        drafts = [one.criteria.criteria_id for one in found.candidates if one.alignment and one.criteria.text]
        picks = tuple(golden.items[k].item_id for k in found.split.calibration[:3])
        request = RoundRequest(*world.where, world.run_id, tuple(drafts[:2]), picks, SMALL)
        round_id = projects.start_run(store.acting(ANN), settings, request)
        world.do(round_id)
        yield world, round_id


@pytest.fixture
def world(round_: tuple[World, str]) -> World:
    return round_[0]


@pytest.fixture
def round_id(round_: tuple[World, str]) -> str:
    return round_[1]


@pytest.fixture
def request_(world: World, round_id: str) -> RoundRequest:
    return projects.run_view(world.store, round_id).request


def listed(world: World, round_id: str) -> dict[str, ListedProposal]:
    return {each.criteria.criteria_id: each for each in projects.list_proposals(world.store, round_id)}


def test_a_round_ends_in_proposals_that_wait_for_people(world: World, request_: RoundRequest, round_id: str) -> None:
    proposals = projects.list_proposals(world.store, round_id)
    assert len(proposals) >= 4, "the test below decides on two"
    for proposal in proposals:
        name, parent = proposal.criteria.criteria_id, proposal.parent.criteria_id
        assert (proposal.state, proposal.decision) == ("open", None)
        assert parent in request_.parent_ids
        assert set(proposal.criteria.provenance.item_ids) <= set(request_.item_ids)
        stood = world.store.criteria.get(world.project_id, name).alignments
        assert [(each.run_id, each.side) for each in stood] == [(round_id, "calibration")]
    scores = projects.item_scores(world.store, round_id, proposals[0].criteria.criteria_id)
    assert len(scores) == proposals[0].calibration.n


def test_the_review_decides_on_proposals(world: World, round_id: str) -> None:
    ann, before = world.store.acting(ANN), listed(world, round_id)
    points = [point for point in projects.open_review(ann, *world.where).points if point.run_id]
    assert {point.subject_id for point in points} == {name for name in before if before[name].state == "open"}
    first, second = points[:2]
    projects.decide_point(ann, *world.where, first.key, verdict="accepted", reason="clearer")
    now = listed(world, round_id)[first.subject_id]
    assert (now.state, now.decision.actor, now.decision.reason) == ("accepted", "Ann", "clearer")
    projects.decide_point(ann, *world.where, second.key, verdict="rejected", reason="too long")
    with pytest.raises(ConflictError, match="Ann decided on this point"):  # Bo's screen showed it open
        projects.decide_point(world.store.acting(BO), *world.where, second.key, verdict="accepted", reason="it is fine")
    assert listed(world, round_id)[second.subject_id].state == "rejected"
    assert not {first.key, second.key} & {point.key for point in projects.open_review(ann, *world.where).points}


def test_rounds_that_cannot_start(world: World, request_: RoundRequest, round_id: str, golden: GoldenSet) -> None:
    held_out = projects.load_calibration(world.store, world.run_id).split.held_out[0]
    for changes, error, words in (
        ({"parent_ids": ()}, UsageError, "at least one"),
        ({"parent_ids": ("c-none",)}, NotFoundError, "not found"),
        ({"item_ids": (golden.items[held_out].item_id,)}, UsageError, "must not learn from held-out items"),
        ({"run_id": round_id}, JobError, "has no judge yet"),
    ):
        with pytest.raises(error, match=words):
            projects.start_run(world.store, world.settings, replace(request_, **changes))
    with pytest.raises(JobError, match="isn't a refinement round"):
        projects.list_proposals(world.store, world.run_id)
