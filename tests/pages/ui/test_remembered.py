"""What the browser keeps and sends: names and addresses as anybody could have written them, and when we write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from core.settings import Settings
from pages.ui import people, remembered, state
from pages.ui.screens import SCREENS
from tests.pages.making import Place
from tests.pages.screen import prepared, press

HOME = Settings(home=Path("here"))
NOBODY = True  # sessions here begin without a name
NAME = remembered._name_cookie(HOME)
EMAIL = "ann@example.org"


def a_screen() -> None:
    """Who acts, what a press picks, and what is left to be written."""
    from pathlib import Path

    import streamlit as st

    from core.settings import Settings
    from pages.ui import people, remembered, state

    settings = Settings(home=Path("here"))
    st.session_state["actor"] = people.actor_of(None, settings).name
    st.button("pick Bo", on_click=people.pick, args=("Bo",))
    st.button("nobody", on_click=people.pick, args=("",))
    st.button("nothing")
    st.session_state["wanted"] = remembered.take_wanted_screen(st.session_state.get("screens", ()))
    st.session_state[state.SCREEN] = "runs"
    if st.session_state.get("asks"):
        remembered.store_wanted_screen("runs", "golden_set")
    remembered.draw(settings)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The cookies that the browser sent; a test fills them."""
    cookies: dict[str, Any] = {}
    monkeypatch.setattr(ContextProxy, "cookies", property(lambda self: cookies))
    return cookies


def opened(**kept: Any) -> AppTest:
    screen = AppTest.from_function(a_screen, default_timeout=60)
    for key, value in kept.items():
        screen.session_state[key] = value
    return screen.run()


def written(screen: AppTest) -> list[dict[str, Any]]:
    """What this drawing has the browser keep."""
    return [json.loads(element.proto.json) for element in screen.get("bidi_component")]


# ── the name ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("Ada", "Ada"),
        (quote("Zoë 👩\u200d🚀; x=1"), "Zoë 👩\u200d🚀; x=1"),
        (quote("<img src=x onerror=alert(1)> **b**"), "<img src=x onerror=alert(1)> **b**"),
        (quote("Ann\u202e\r\nSet-Cookie: a\x00"), "Ann Set-Cookie: a"),
        ("%ff%fe", ""),  # not UTF-8
        (quote("é" * 300), "é" * people.LONGEST),
        ("x" * 2_001, ""),
        (7, ""),
    ],
)
def test_a_name_is_read_as_anybody_could_have_written_it(sent: dict[str, Any], raw: Any, name: str) -> None:
    sent[NAME] = raw
    screen = opened()
    assert screen.session_state["actor"] == name
    assert not written(screen), "reading writes nothing"


def test_every_installation_has_a_cookie_of_its_own(sent: dict[str, Any]) -> None:
    sent[remembered._name_cookie(Settings(home=Path("there")))] = "Ada"
    assert not opened().session_state["actor"]
    assert "here" not in NAME


def test_the_session_goes_before_the_cookie_and_a_link_says_nothing(sent: dict[str, Any]) -> None:
    sent[NAME] = "Ada"
    screen = AppTest.from_function(a_screen, default_timeout=60)
    screen.query_params["rater"] = "Lin"
    screen.run()
    assert screen.session_state["actor"] == "Ada"
    assert not written(screen)
    assert press(screen, "pick Bo").session_state["actor"] == "Bo"
    sent[NAME] = "Cy"  # another tab; this session connects again
    assert press(screen, "nothing").session_state["actor"] == "Bo"
    assert not press(screen, "nobody").session_state["actor"]
    assert not press(screen, "nothing").session_state["actor"], "who has left stays away"


def test_a_pick_is_written_for_some_seconds_and_not_at_every_rerun(
    sent: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(remembered.time, "monotonic", lambda: clock[0])
    screen = opened()
    assert not written(screen)
    (cookie,) = written(press(screen, "pick Bo"))
    assert cookie == {"name": NAME, "value": "Bo", "seconds": 400 * 86_400, "leaving": False}
    clock[0] += 1
    assert written(press(screen, "nothing")) == [cookie], "a rerun at once must not take it away unread"
    clock[0] += 10
    assert not written(press(screen, "nothing"))
    (cookie,) = written(press(screen, "nobody"))
    assert (cookie["name"], cookie["value"]) == (NAME, "")


def test_what_writes_is_no_markup_and_asks_nobody() -> None:
    script = Path(remembered.__file__).with_name("remember.js").read_text("utf-8")
    for word in ("innerHTML", "outerHTML", "eval", "Function(", "fetch", "import", "http:", "//cdn", "setStateValue"):
        assert word not in script, word
    assert "encodeURIComponent(value)" in script
    assert "SameSite=Strict" in script


# ── the address wanted before signing in ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("address", "screen", "ids"),
    [
        ("criteria?project=p1&criteria=c%20%26%3D", "criteria", {"project": "p1", "criteria": "c &="}),
        ("runs", "runs", {}),
        ("runs?project=p1&project=p2", "runs", {"project": "p2"}),
        ("runs?rater=Eve&next=http://evil.example&embed=true&project=p1", "runs", {"project": "p1"}),
        (f"runs?project={'x' * 201}&run=r", "runs", {"run": "r"}),
        ("https://evil.example/runs", None, {}),
        ("//evil.example?project=p1", None, {}),
        ("javascript:alert(1)", None, {}),
        ("../runs", None, {}),
        ("pages/10_runs.py", None, {}),
        ("RUNS", None, {}),
        ("runs?" + "&".join(f"a{k}=1" for k in range(99)), None, {}),
        ("runs?project=%ff", None, {}),
        ("runs?project=a%00b", None, {}),
        ("runs?project=" + "x" * 2_000, None, {}),
        ("", None, {}),
    ],
)
def test_only_screens_and_ids_of_ours_are_gone_to(
    sent: dict[str, Any], address: str, screen: str | None, ids: dict[str, str]
) -> None:
    sent[remembered._WANTED] = quote(address, safe="")
    test = opened(screens=tuple(SCREENS))
    wanted = test.session_state["wanted"]
    assert wanted == (None if screen is None else (screen, ids))
    again = press(test, "nothing")
    assert again.session_state["wanted"] is None, "once"


@pytest.mark.parametrize(
    ("query", "address"),
    [
        ({}, "runs"),
        ({"project": "p 1", "run": "r&x", "rater": "Eve", "next": "//evil.example"}, "runs?project=p+1&run=r%26x"),
        ({"project": "x" * 201}, "runs"),
        ({"project": "é" * 200}, ""),  # 1,213 characters, but 2,017 as they are sent
        (dict.fromkeys(state.URL_IDS, "é" * 200), ""),
    ],
)
def test_the_page_that_asks_to_sign_in_keeps_its_address(
    sent: dict[str, Any], query: dict[str, str], address: str
) -> None:
    screen = AppTest.from_function(a_screen, default_timeout=60)
    screen.session_state["asks"] = True
    for name, value in query.items():
        screen.query_params[name] = value
    (cookie,) = written(screen.run())
    assert cookie == {"name": remembered._WANTED, "value": address, "seconds": 600, "leaving": True}


def test_what_is_kept_is_what_is_read(sent: dict[str, Any]) -> None:
    ids = {"project": "p 1", "aspect": "Kürze & <b>", "criteria": "a=b?c"}
    screen = AppTest.from_function(a_screen, default_timeout=60)
    screen.session_state["asks"] = True
    for name, value in ids.items():
        screen.query_params[name] = value
    (cookie,) = written(screen.run())
    sent[cookie["name"]] = quote(cookie["value"], safe="!'()*")  # as encodeURIComponent does
    back = opened(screens=tuple(SCREENS))
    assert back.session_state["wanted"] == ("runs", ids)
    assert [taken["value"] for taken in written(back)] == [""]  # the browser forgets it


@pytest.mark.parametrize(
    ("file", "query", "title"),
    [("app", {}, "Runs"), ("app", {"section": "log"}, "Overview"), ("3_calibrate", {}, "Calibrate")],
)
def test_only_the_bare_root_leads_on(
    place: Place, empty: Place, sent: dict[str, Any], file: str, query: dict[str, str], title: str
) -> None:
    """Whoever has opened another address since stays there."""
    sent[remembered._WANTED] = quote(f"runs?project={empty.project_id}", safe="")
    screen = prepared(file, **query)
    screen.secrets["auth"] = {"client_id": "id"}
    screen.user = {"is_logged_in": True, "name": "Ann", "email": EMAIL}
    screen.run()
    assert [one.value for one in screen.title] == [title]
    if title == "Runs":
        assert screen.query_params["project"] == empty.project_id
