"""Rounds, proposals and lineage on screen, against a real store whose work is done in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.calibration.calibration_records import RoundSettings
from core.project_records import Actor
from core.projects.criteria import PairedDifference, RoundRequest
from core.projects.misaligned_items import TriageRequest
from core.projects.review import ListedProposal
from core.records import Criteria, Interval
from core.stats import TOO_FEW
from pages.ui import tables
from tests.pages.screen import frame_with, open_screen, press, texts

Open = Callable[..., AppTest]
SCREEN, ASPECT = "5_misaligned", "coherence"


@pytest.fixture(scope="module")
def best(real: Any) -> Criteria:
    return projects.load_calibration(real.store, real.run_id).chosen[0]


@pytest.fixture(scope="module")
def picks(real: Any, best: Criteria) -> tuple[str, ...]:
    """Three misaligned items of different sources, triaged and picked by Ann."""
    chosen: dict[str, str] = {}
    for score in projects.item_scores(real.store, real.run_id, best.criteria_id):
        if len(chosen) < 3 and score.item.source_id not in chosen:
            chosen[score.item.source_id] = score.item_id
    store = real.store.acting(Actor("Ann"))
    for item_id in chosen.values():
        said = TriageRequest(real.golden_id, ASPECT, best.criteria_id, "judge wrong", picked=True)
        projects.save_triage(store, real.project_id, item_id, said)
    return tuple(chosen.values())


@pytest.fixture(scope="module")
def round_id(real: Any, best: Criteria, picks: tuple[str, ...]) -> str:
    where = (real.project_id, real.golden_id, ASPECT, real.run_id)
    request = RoundRequest(*where, (best.criteria_id,), picks, RoundSettings(sizes=(1, 2), trials=2))
    run_id = projects.start_run(real.store, real.settings, request)
    real.drive(run_id)
    return run_id


@pytest.fixture
def opened(real: Any) -> Open:
    return lambda **ids: open_screen(SCREEN, project=real.project_id, **ids)


@pytest.fixture
def start(opened: Open, best: Criteria) -> Callable[[], AppTest]:
    """The form that starts a round."""

    def made() -> AppTest:
        screen = opened(criteria=best.criteria_id)
        screen.segmented_control(key="misaligned_view").set_value("Rounds").run()
        return screen

    return made


def proposals(real: Any, round_id: str) -> list[ListedProposal]:
    return projects.list_proposals(real.store, round_id)


# ── starting ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_round_asks_for_what_was_chosen(
    real: Any, start: Callable[[], AppTest], best: Criteria, picks: tuple[str, ...]
) -> None:
    screen = start()
    n = len(projects.load_calibration(real.store, real.run_id).split.calibration)
    assert f"Only {n} calibration labels; we recommend 100." in texts(screen)
    assert len(frame_with(screen, "found")) == len(picks)
    screen.pills(key="form_round_sizes").set_value([2]).run()
    screen.number_input(key="form_round_trials").set_value(3).run()
    assert "This round makes at most 3 proposals." in texts(screen), "the offline judge makes no calls"
    press(screen, "Start the round")
    run = projects.run_view(real.store, screen.query_params["round"])
    request = run.request
    assert isinstance(request, RoundRequest)
    assert (request.parent_ids, request.item_ids, request.run_id) == ((best.criteria_id,), picks, real.run_id)
    assert request.settings.sizes == (2,)
    assert run.status == "queued"
    assert "waiting for a worker" in texts(screen)
    projects.cancel_run(real.store, run.run_id)


# ── proposals ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_proposals_stand_beside_their_parents(real: Any, opened: Open, round_id: str, picks: tuple[str, ...]) -> None:
    screen = opened(round=round_id)
    listed = proposals(real, round_id)
    shown = frame_with(screen, "change")
    assert list(shown["change"]) == [proposal.inner.value for proposal in listed]
    assert list(shown["n"]) == [proposal.inner.n for proposal in listed]
    for place, one in enumerate(listed):
        ids = (one.criteria.criteria_id, one.parent.criteria_id)
        # of all calibration items, as under the table and on the Items view: one name, one count
        changed = list(projects.item_changes(real.store, round_id, *ids).values())
        assert shown["fixed"].iloc[place] == changed.count(False)
        assert shown["broken"].iloc[place] == changed.count(True)
    page_text = texts(screen)
    first = listed[0]
    fixed, broken = shown["fixed"].iloc[0], shown["broken"].iloc[0]
    assert f"calibration items: {fixed} fixed, {broken} broken." in page_text
    added = set(first.criteria.text.split()) - set(first.parent.text.split())
    assert all(word in page_text for word in added)


@pytest.mark.parametrize(
    ("value", "half_width", "p", "words"),
    [
        (0.046, 0.25, 0.819, "no significant difference"),
        (0.046, 0.25, None, "no p (there are fewer than 8 sources; label items from more sources)"),
        (0.2, 0.1, 0.001, "significantly higher on both"),
    ],
)
def test_a_proposal_is_called_higher_by_its_tests_alone(
    real: Any,
    opened: Open,
    round_id: str,
    monkeypatch: pytest.MonkeyPatch,
    value: float,
    half_width: float,
    p: float | None,
    words: str,
) -> None:
    tested = PairedDifference(value, Interval(value - half_width, value + half_width), p, 24, TOO_FEW)
    shown = [replace(proposals(real, round_id)[0], inner=tested, calibration=tested)]
    monkeypatch.setattr(projects, "list_proposals", lambda *_: shown)
    page_text = texts(opened(round=round_id))
    assert words in page_text


def test_a_decision_is_shown_and_made_in_the_review(real: Any, opened: Open, round_id: str) -> None:
    screen = opened(round=round_id)
    first = proposals(real, round_id)[0].criteria.criteria_id
    assert "open" in list(frame_with(screen, "change")["decision"])
    where = (real.project_id, real.golden_id, ASPECT)
    point = next(each for each in projects.open_review(real.store, *where).points if each.subject_id == first)
    bo = real.store.acting(Actor("Bo"))
    projects.decide_point(bo, *where, point.key, verdict="rejected", reason="too narrow")
    assert "rejected by Bo" in list(frame_with(opened(round=round_id), "change")["decision"])


def test_its_items_can_be_read_from_here(opened: Open, round_id: str) -> None:
    screen = press(opened(round=round_id), "See which items are still misaligned")
    assert screen.query_params["run"] == round_id
    assert "round" not in screen.query_params, "a link copied now opens the items"
    assert "Reasons for the score" in texts(screen)
    assert any(one.label == "Compared with the parent version" for one in screen.pills)
    assert "section" not in screen.query_params


# ── versions ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_all_versions_are_listed_best_first(real: Any, round_id: str, best: Criteria) -> None:
    screen = open_screen("4_criteria", project=real.project_id, criteria=best.criteria_id, section="versions")
    family = real.store.criteria.all(real.project_id, ASPECT, real.golden_id)
    shown = frame_with(screen, "created from")
    assert f"{shown['criteria'][0]}” has the highest agreement" in texts(screen).replace("\\", "")
    assert shown["agreement"][0] == shown["agreement"].max()
    assert any("version" in judge for judge in shown["judge"] if judge)
    assert len(shown) == sum(tables.group_of(entry) != tables.UNMEASURED for entry in family)
