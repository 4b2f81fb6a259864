"""Criteria become the judge: from an edit, an accepted proposal; who was second, and who may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.project_records import Actor
from core.store.store import Store
from pages.ui import state
from tests.pages.screen import make_judge, prepared, press, run

Open = Callable[..., AppTest]
ASPECT = "coherence"


@pytest.fixture
def edit(store: Store, reviewed: Any) -> str:
    ann = store.acting(Actor("Ann"))
    text = store.criteria.get(reviewed.project_id, reviewed.best).text
    return projects.save_edit(ann, reviewed.project_id, reviewed.best, f"{text}\n- It repeats nothing.", "Ann")


def proposals(store: Store, reviewed: Any) -> list[str]:
    return [entry.criteria.criteria_id for entry in projects.list_proposals(store, reviewed.round_id)]


def test_an_accepted_proposal_is_made_the_judge(store: Store, reviewed: Any) -> None:
    ann, accepted = store.acting(Actor("Ann")), proposals(store, reviewed)[0]
    where = (reviewed.project_id, reviewed.golden_id, ASPECT)
    point = next(each for each in projects.open_review(ann, *where).points if each.subject_id == accepted)
    projects.decide_point(ann, *where, point.key, verdict="accepted", reason="good")
    screen = prepared("5_misaligned", project=reviewed.project_id, round=reviewed.round_id)
    screen.session_state[state.RATER] = "Ann"
    run(screen)
    made = make_judge(screen, store, reviewed.project_id, accepted)
    assert (made.made.origin, accepted in made.criteria_ids) == ("proposal", True)


def test_an_edit_of_one_of_several_takes_its_place_unless_it_is_to_be_alone(
    store: Store, reviewed: Any, edit: str, open_criteria: Open
) -> None:
    first = projects.judge_line(store, reviewed.project_id, ASPECT).get(1).criteria_ids
    screen = open_criteria("Ann", criteria=edit)
    screen.session_state[f"form_make_{edit}"] = True
    run(screen)
    (way,) = [radio for radio in screen.radio if radio.label == "Use these criteria"]
    assert way.options == ["in place of their previous text, with 2 other sets of criteria", "alone"]
    assert way.value == tuple(edit if known == reviewed.best else known for known in first)
    way.set_value((edit,)).run()
    press(screen, "Measure it")
    assert projects.judge_line(store, reviewed.project_id, ASPECT).get(2).criteria_ids == (edit,)
