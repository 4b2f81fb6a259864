"""Who acts: a name picked on one's own machine, an account where people sign in, what each role sees, and the log."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.errors import StreamlitAuthError
from streamlit.runtime.context import ContextProxy
from streamlit.runtime.secrets import Secrets
from streamlit.testing.v1 import AppTest

from core import projects
from core.errors import AccessError
from core.project_records import Actor
from core.projects.labelling import Adjudicated
from core.settings import Settings
from core.store.log import Action, Entry
from core.store.store import Store
from pages.runs import log_view
from pages.ui import people, state
from tests.pages.making import Place, golden_of
from tests.pages.screen import ROOT, button, call_me, enter_name, grids, prepared, press, run, texts, who, write

NOBODY = True  # sessions here begin without a name
SCREENS = sorted(path.stem for path in (ROOT / "pages").glob("[0-9]*.py"))
SECRET = "the merger that nobody may hear of"
AUTH = {
    "redirect_uri": "http://localhost:8501/oauth2callback",
    "cookie_secret": "a long random text",
    "client_id": "id",
    "client_secret": "secret",
    "server_metadata_url": "https://accounts.example.org/.well-known/openid-configuration",
}
ROLES = {"rev@example.org": "reviewer", "ann@example.org": "annotator", "boss@example.org": "admin"}


@pytest.fixture
def settings(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """With roles beside the home; `account` names their file, since without accounts nothing starts with roles."""
    (tmp_path / "roles.json").write_text(json.dumps(ROLES))
    monkeypatch.setenv("CONCORD_ROLES", "")
    return settings


@pytest.fixture
def project(store: Store, settings: Settings) -> str:
    """A project with a golden set that can be calibrated on."""
    return Place(store, settings, golden_of(30, 4), SECRET).project_id


def sign_in_screen(name: str, auth: Any, **ids: str) -> AppTest:
    """A screen where people sign in, and nobody has."""
    screen = prepared(name, **ids)
    screen.secrets["auth"] = auth
    screen.user = {"is_logged_in": False}
    return run(screen)


def account(name: str, claims: dict[str, Any], **ids: str) -> AppTest:
    """A screen where people sign in, and somebody has."""
    os.environ["CONCORD_ROLES"] = str(Path(os.environ["CONCORD_HOME"]).with_name("roles.json"))
    screen = prepared(name, **ids)
    screen.secrets["auth"] = AUTH
    screen.user = {"is_logged_in": True, **claims}
    return run(screen)


def signed_in(name: str, who: str, **ids: str) -> AppTest:
    return account(name, {"name": who.capitalize(), "email": f"{who}@example.org", "email_verified": True}, **ids)


def everything(screen: AppTest) -> str:
    """All that was sent to the browser, every element as its message says it."""
    return repr(screen.main) + repr(screen.sidebar) + repr(screen.get("page_config"))


# ── on one's own machine ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", SCREENS)
def test_no_screen_asks_for_a_name_by_itself_and_no_link_gives_one(store: Store, project: str, name: str) -> None:
    whose = ("rater", "name", "who", "actor", "user", "voter", "annotator", state.RATER, "form_name_typed")
    screen = run(prepared(name, project=project, **dict.fromkeys(whose, "Ann")))
    assert state.RATER not in screen.session_state
    assert not who(screen)
    assert not [widget for widget in screen.button if widget.label in ("Sign in", "Sign out")]
    assert "role" not in texts(screen)
    assert "Your name" not in [field.label for field in screen.text_input]
    call_me(screen, "Ada")
    assert who(screen) == screen.session_state[state.RATER] == "Ada"


def test_the_first_change_asks_for_a_name_and_is_then_carried_out(store: Store, project: str) -> None:
    screen = run(prepared("3_calibrate", project=project, section="new"))
    press(screen, "Start the calibration")
    assert not store.runs.all(project)
    enter_name(screen, " \u200b ")
    assert "Enter your name." in texts(screen)
    enter_name(screen, "Ada")
    assert store.events.all(project, Entry)[-1].actor == "Ada"
    assert len(store.runs.all(project)) == 1
    run(screen)
    assert len(store.runs.all(project)) == 1  # once


def test_a_new_project_is_named_by_the_person(store: Store, project: str) -> None:
    screen = run(prepared("10_runs", project=project))
    press(screen, "New project")
    write(screen, "Your name", "Ada")
    press(screen, "Create project")
    assert "Enter a name for the project" in texts(screen)
    write(screen, "Name of the project", "Press texts")
    press(screen, "Create project")
    assert "Press texts" in [summary.name for summary in store.projects.all()]
    assert screen.session_state[state.PROJECT] != project
    press(screen, "New project")
    assert [field.label for field in screen.text_input if "ame" in field.label] == ["Name of the project"]


def test_what_needs_more_than_reading_needs_a_name_at_a_screen(store: Store, project: str) -> None:
    nobody, golden = store.acting(Actor(at_screen=True)), store.goldens.all(project)[0].golden_id
    for change in (
        lambda: projects.save_edit(nobody, project, "c", "text"),
        lambda: projects.cast_vote(nobody, project, golden, "coherence", "edit:c", choice="for"),
        lambda: projects.create_project(nobody, "mine"),
    ):
        with pytest.raises(AccessError, match="Enter your name first"):
            change()
    projects.create_project(store, "mine")  # the command line is whoever sits at the machine


def test_a_picked_name_survives_other_screens(store: Store, project: str) -> None:
    app = call_me(run(prepared("app", project=project)), "Ada")
    for file in ("10_runs", "3_calibrate", "1_golden_set"):
        app.switch_page(f"pages/{file}.py").run()
        assert who(app) == "Ada"
    assert not who(run(prepared("10_runs", project=project)))  # another session is nobody yet
    call_me(app, "Bo")  # somebody else sits down
    assert app.session_state[state.RATER] == "Bo"


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("  Ann \n\t Lee ", "Ann Lee"),
        ("Ann\u202enimda", "Annnimda"),  # a mark that turns the line around
        ("\u200b\u200d\ufeff", ""),  # nothing to see
        ("Zoe\u0308", "Zo\u00eb"),  # one spelling for what looks the same
        ("👩\u200d🚀 Ada", "👩\u200d🚀 Ada"),
        ("x" * 500, "x" * people.LONGEST),
    ],
)
def test_names_are_kept_as_text_on_one_line(store: Store, project: str, typed: str, kept: str) -> None:
    assert people.clean_name(typed) == kept
    screen = call_me(run(prepared("10_runs", project=project)), typed)
    assert who(screen) == kept
    assert typed not in "".join(str(block.value) for block in screen.markdown)


@pytest.mark.parametrize(
    ("address", "inside"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("192.0.2.7", False),
        ("::ffff:192.0.2.7", False),
        ("2001:db8::7", False),
        ("somewhere", False),
    ],
)
def test_without_accounts_only_this_machine_gets_in(
    store: Store, project: str, address: str, inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ContextProxy, "ip_address", property(lambda self: address))
    screen = run(prepared("10_runs", project=project))
    assert (SECRET in everything(screen)) is inside
    assert ("only on the machine that it runs on" in texts(screen)) is not inside


@pytest.mark.parametrize("name", SCREENS)
def test_roles_without_accounts_open_no_screen(
    store: Store, project: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONCORD_ROLES", str(tmp_path / "roles.json"))
    screen = run(prepared(name, project=project))
    assert "no readable [auth] section" in texts(screen)
    assert SECRET not in everything(screen)
    assert not screen.button


# ── signing in ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["app", *SCREENS])
def test_nothing_is_shown_before_somebody_signed_in(
    store: Store, project: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects, "open_store", lambda settings: pytest.fail("the store was opened"))
    screen = sign_in_screen(name, AUTH, project=project, rater="Ann")
    assert [widget.label for widget in screen.button] == ["Sign in"]
    assert not screen.selectbox
    assert not screen.sidebar.children
    assert SECRET not in everything(screen)


def test_every_provider_has_a_button_and_is_asked(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []
    monkeypatch.setattr(st, "login", asked.append)
    client = {name: AUTH[name] for name in ("client_id", "client_secret", "server_metadata_url")}
    screen = sign_in_screen("10_runs", {**AUTH, "okta": client, "client_kwargs": {"prompt": "login"}})
    assert [widget.label for widget in screen.button] == ["Sign in", "Sign in with okta"]
    for place in (0, 1):
        screen.button[place].click().run()
    assert asked == [None, "okta"]


def test_signing_in_that_is_set_up_badly_is_told_without_details(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(provider: str | None) -> None:
        raise StreamlitAuthError("missing client_secret")

    monkeypatch.setattr(st, "login", refuses)
    screen = press(sign_in_screen("10_runs", AUTH), "Sign in")
    assert "Sign-in isn't fully set up" in texts(screen)
    assert "client_secret" not in texts(screen)


@pytest.mark.parametrize("section", [{}, "yes", {"redirect_uri": "x"}])
def test_a_section_without_a_provider_lets_nobody_in(store: Store, project: str, section: Any) -> None:
    screen = sign_in_screen("10_runs", section, project=project)
    assert "doesn't name a provider" in texts(screen)
    assert SECRET not in everything(screen)


def test_a_file_of_secrets_that_cannot_be_read_lets_nobody_in(
    store: Store, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "secrets.toml"
    broken.write_text("[auth\nclient_id = ")
    found = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: [str(broken)] if name == "secrets.files" else found(name))
    monkeypatch.setattr(Secrets, "load_if_toml_exists", lambda self: False)
    screen = run(prepared("10_runs", project=project))
    assert "Concord can't read secrets.toml" in texts(screen)
    assert SECRET not in everything(screen)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"name": "Vi", "email": "boss@example.org", "email_verified": False}, "isn't verified"),
        ({"name": "Vi", "email": "boss@example.org", "email_verified": "False"}, "isn't verified"),
        ({"name": "Vi", "email": None}, "no e-mail address"),
    ],
)
def test_an_account_that_cannot_be_told_apart_is_refused(
    store: Store, project: str, claims: dict[str, Any], why: str
) -> None:
    screen = account("10_runs", claims, project=project)
    assert why in texts(screen)
    assert [widget.label for widget in screen.button] == ["Sign out"]
    assert SECRET not in everything(screen)


def test_who_signed_in_is_named_with_the_address_whatever_the_url_says(store: Store, project: str) -> None:
    screen = signed_in("3_calibrate", "rev", project=project, rater="Somebody else")
    assert "Rev (rev@example.org)" in [text.value for text in screen.sidebar.text]
    assert "form_who" not in [widget.key for widget in screen.button]
    press(screen, "Start the calibration")
    last = store.events.all(project, Entry)[-1]
    assert (last.actor, last.role) == ("Rev (rev@example.org)", "reviewer")


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"email": "rev@example.org"}, "rev@example.org"),
        ({"name": "rev@example.org", "email": "rev@example.org"}, "rev@example.org"),
        ({"name": "Boss\u202e <b>", "email": " REV@Example.org "}, "Boss <b> (REV@Example.org)"),
    ],
)
def test_the_name_of_an_account(claims: dict[str, str], name: str) -> None:
    result = people.Account(*(people.clean_name(claims.get(claim, "")) for claim in ("name", "email")))
    actor = people.actor_of(result, Settings(roles={"rev@example.org": "reviewer"}))
    assert (actor.name, actor.role) == (name, "reviewer")
    assert actor.subject.lower() == "rev@example.org"


def test_who_signs_out_sees_nothing_more(store: Store, project: str) -> None:
    screen = signed_in("10_runs", "rev", project=project)
    assert SECRET in everything(screen)
    press(screen, "Sign out")
    assert [widget.label for widget in screen.button] == ["Sign in"]
    assert SECRET not in everything(screen)


# ── what roles see ───────────────────────────────────────────────────────────────────────────────────────────

STARTS = {"3_calibrate": "Start the calibration", "2_label": "Begin labelling"}


@pytest.mark.parametrize("who", ["vi", "ann"])
@pytest.mark.parametrize(("name", "label"), STARTS.items())
def test_a_start_is_off_with_the_reason_where_the_role_is_too_low(
    store: Store, project: str, name: str, label: str, who: str
) -> None:
    screen = signed_in(name, who, project=project)
    role = {"vi": "viewer", "ann": "annotator"}[who]
    assert f"Your role is {role}" in texts(screen)
    assert button(screen, label).disabled
    assert button(screen, label).help == f"This requires the reviewer role. Your role is {role}."
    assert button(screen, "New project").disabled


@pytest.mark.parametrize(("name", "label"), STARTS.items())
def test_a_start_that_is_forced_is_refused_in_words(
    store: Store, project: str, name: str, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "gate", lambda *of, **given: {})  # a browser that shows what was off
    before = len(store.events.all(project, Entry))
    screen = press(signed_in(name, "vi", project=project), label)
    assert "The action requires the role reviewer, but the current role is viewer" in texts(screen)
    assert len(store.events.all(project, Entry)) == before
    assert not store.runs.all(project)


@pytest.mark.parametrize("name", SCREENS)
def test_every_screen_opens_for_a_viewer(store: Store, project: str, name: str) -> None:
    assert "You can read everything" in texts(signed_in(name, "vi", project=project))


# ── the log ──────────────────────────────────────────────────────────────────────────────────────────────────


def open_log(screen: AppTest) -> AppTest:
    screen.segmented_control(key=state.RUNS_VIEW).set_value("Log")
    return run(screen)


def log_of(screen: AppTest) -> list[tuple[str, str, str]]:
    frame = grids(screen)[0]
    return list(zip(frame["who"], frame["role"], frame["what"], strict=True))


def test_the_log_shows_who_did_what_newest_first(store: Store, project: str) -> None:
    store.events.add(project, Adjudicated("i1", "a", 2.0, "why\nso?", subject="p1"), Actor("<b>Ann</b>", "annotator"))
    screen = open_log(run(prepared("10_runs", project=project)))
    assert log_of(screen) == [
        ("<b>Ann</b>", "annotator", "decided on a label (a)"),
        ("—", "admin", "added a golden set"),
        ("—", "admin", "made the project"),
    ]
    assert grids(screen)[0]["said"][0] == "why so?"
    for strange in ("99", "0x"):
        run(prepared("10_runs", project=project, section="log", page=strange))


def test_a_long_log_comes_in_pages(store: Store, project: str) -> None:
    for k in range(log_view.ROWS):
        store.events.add(project, Action(f"said {k}", subject="c"), Actor("Ann"))
    screen = run(prepared("10_runs", project=project, section="log", page="2"))
    assert f"{log_view.ROWS + 2} actions" in texts(screen)  # two from making the project
    assert [what for _, _, what in log_of(screen)] == ["added a golden set", "made the project"]


@pytest.mark.parametrize(("who", "allowed"), [("vi", False), ("rev", False), ("boss", True)])
def test_the_whole_log_is_for_admins(store: Store, project: str, who: str, allowed: bool) -> None:
    screen = open_log(signed_in("10_runs", who, project=project))
    (offered,) = screen.get("download_button")
    assert offered.proto.disabled is not allowed
