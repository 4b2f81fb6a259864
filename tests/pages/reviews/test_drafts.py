"""Texts that were typed and not saved: opened again, dropped, saved, and told to others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.project_records import Actor
from core.store.store import Store
from pages.ui import state
from tests.pages.screen import press, texts

Open = Callable[..., AppTest]


@pytest.fixture
def subject(reviewed: Any) -> str:
    return f"criteria:{reviewed.best}"


def area(screen: AppTest) -> Any:
    return next(one for one in screen.text_area if one.label == "Criteria")


def sends(screen: AppTest, n: int, text: object) -> AppTest:
    """What the browser does when typing rests: the component of the text area takes the text as its state."""
    screen.session_state[f"form_draft_{area(screen).key}"] = {"draft": {"n": n, "text": text}}
    screen.run()
    return screen


def test_each_pause_is_kept_once(store: Store, reviewed: Any, subject: str, open_criteria: Open) -> None:
    def draft() -> Any:
        return projects.get_draft(store.acting(Actor("Ann")), reviewed.project_id, subject)

    screen = sends(open_criteria("Ann", criteria=reviewed.best, edit="1"), 7, "First burst.")
    first = draft()
    assert (first.text, first.base) == ("First burst.", reviewed.best)
    screen.run()  # drawn anew for another reason: what was kept is not kept again
    assert draft() == first
    second = (sends(screen, 8, "First burst. Second."), draft())[1]
    assert second.text == "First burst. Second."
    for n, strange in enumerate(({"n": 9}, None, 5), 9):
        sends(screen, n, strange)
        assert draft() == second
    text = store.criteria.get(reviewed.project_id, reviewed.best).text
    sends(screen, 20, f"{text}\n")  # all of it undone
    assert draft() is None


def test_a_draft_from_before_somebody_elses_version_meets_the_conflict(
    store: Store, reviewed: Any, subject: str, open_criteria: Open
) -> None:
    ann = store.acting(Actor("Ann"))
    projects.save_draft(ann, reviewed.project_id, subject, "What Ann wants.", base=reviewed.best)
    projects.save_edit(store.acting(Actor("Bo")), reviewed.project_id, reviewed.best, "What Bo wants.")
    screen = open_criteria("Ann", criteria=reviewed.best, edit="1")
    assert "Someone else has saved a new version since you opened this one" in texts(screen)
    press(screen, "Save and re-score")
    assert "Bo saved another edit" in texts(screen)
    kept = projects.get_draft(ann, reviewed.project_id, subject)
    assert kept is not None
    assert kept.text == "What Ann wants."
    press(screen, "Save my version separately")
    assert projects.get_draft(ann, reviewed.project_id, subject) is None
    newest = store.criteria.get(reviewed.project_id, reviewed.best).head
    assert store.criteria.get(reviewed.project_id, newest).text == "What Ann wants."


def test_a_text_typed_before_a_name_was_picked_stays_on_screen_and_is_kept_with_the_name(
    store: Store, reviewed: Any, subject: str, open_criteria: Open
) -> None:
    """A browser leaves what was typed in a text area of the same key, and sends it once somebody is named."""
    screen = open_criteria("", criteria=reviewed.best, edit="1")
    before = area(screen).key
    screen.session_state[state.RATER] = "Ann"
    screen.run()
    assert area(screen).key == before
    assert store.drafts.get(reviewed.project_id, subject, "Ann") is None
    sends(screen, 2, "Typed by nobody yet. Now by Ann.")
    draft = store.drafts.get(reviewed.project_id, subject, "Ann")
    assert draft is not None and draft.text == "Typed by nobody yet. Now by Ann."
    screen.session_state[state.RATER] = "Bo"  # somebody else sits down: the text of Ann is not theirs
    screen.run()
    assert area(screen).value == store.criteria.get(reviewed.project_id, reviewed.best).text


def test_a_store_that_fails_is_told_and_asked_again(
    store: Store, reviewed: Any, subject: str, open_criteria: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.errors import StoreFullError

    def full(*_: object, **__: object) -> None:
        raise StoreFullError("The disk is full.")

    screen = open_criteria("Ann", criteria=reviewed.best, edit="1")
    with monkeypatch.context() as patch:
        patch.setattr(projects, "save_draft", full)
        sends(screen, 1, "Not yet.")
    assert projects.get_draft(store.acting(Actor("Ann")), reviewed.project_id, subject) is None
    screen.run()  # the same message once more
    kept = projects.get_draft(store.acting(Actor("Ann")), reviewed.project_id, subject)
    assert kept is not None
    assert kept.text == "Not yet."
