"""Criteria as reviewed documents on screen: comments, versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.project_records import Actor
from core.store.store import Store
from tests.pages.screen import (
    HOSTILE,
    frame_with,
    harmless,
    open_screen,
    texts,
)

Open = Callable[..., AppTest]


def test_the_button_for_the_judge_file_shows_whether_it_is_approved(
    store: Store, reviewed: Any, open_criteria: Open
) -> None:
    def label() -> str:
        screen = open_screen("3_calibrate", project=reviewed.project_id, run=reviewed.run_id)
        return next(widget.label for widget in screen.download_button if "judge.yaml" in widget.label)

    assert label() == "Download judge.yaml (not approved)"
    ann, line = store.acting(Actor("Ann")), projects.judge_line(store, reviewed.project_id, "coherence")
    projects.decide_version(
        ann, reviewed.project_id, "coherence", 1, "current", reason="it holds", decided=line.decided
    )
    assert label() == "Download judge.yaml"


def test_a_refined_version_shows_the_items_it_was_made_from(store: Store, reviewed: Any, open_criteria: Open) -> None:
    proposal = projects.list_proposals(store, reviewed.round_id)[0]
    screen = open_criteria("Ann", run=reviewed.run_id, criteria=proposal.criteria.criteria_id)
    screen.session_state["form_criteria_origin"] = True
    screen.run()
    assert "Misaligned items used for refining" in texts(screen)
    shown = frame_with(screen, "under the parent")
    assert shown["item"].tolist() == list(proposal.criteria.provenance.item_ids)
    scores = {
        each.item_id: each.score for each in projects.item_scores(store, reviewed.round_id, proposal.parent.criteria_id)
    }
    assert shown["under the parent"].tolist() == pytest.approx([scores[name] for name in shown["item"]])


def to_versions(screen: AppTest) -> AppTest:
    screen.segmented_control(key="criteria_view").set_value("Versions").run()
    return screen


def test_any_two_versions_word_by_word(store: Store, reviewed: Any, open_criteria: Open) -> None:
    ann = store.acting(Actor("Ann"))
    one = projects.save_edit(ann, reviewed.project_id, reviewed.best, f"- Be clear.\n- {HOSTILE}", "Ann")
    two = projects.save_edit(ann, reviewed.project_id, reviewed.best, "- Be clear.\n- Be brief.", HOSTILE)
    screen = to_versions(open_criteria("Ann", run=reviewed.run_id, criteria=two))
    screen.selectbox(key="form_versions_from").set_value(one).run()
    screen.selectbox(key="form_versions_to").set_value(two).run()
    said = "\n".join(element.value for element in screen.markdown)
    assert ":green-background[**Be brief" in said
    harmless(screen)
