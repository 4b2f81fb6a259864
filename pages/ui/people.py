"""Identify the user: the signed-in account, or the name entered on a local machine.

With an `[auth]` section in Streamlit's secrets, users must sign in, and their role comes from the settings. Without
`[auth]`, users of this machine have all rights, and other machines are rejected. The first change opens a dialog that
asks for a name, and the browser remembers the name.

The role only changes how buttons look. `core.projects` enforces what a role may do.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol, cast

import streamlit as st
from streamlit.errors import StreamlitAuthError, StreamlitMissingAuthlibError, StreamlitPageNotFoundError

from core import projects
from core.errors import ConcordError
from core.project_records import Actor, Role
from core.records import visible_name
from core.settings import Settings
from core.store.store import Store
from pages.ui import remembered, state
from pages.ui.accounts import auth_section, is_loopback
from pages.ui.screens import SCREENS, Screen, draw_notice, go, plain

LONGEST = 60
_LONGEST_CLAIM = 120
_JOINERS = "\u200c\u200d"  # needed by some scripts and emoji
ALLOWED: dict[Role, str] = {
    "viewer": "You can read everything, but you can't change anything.",
    "annotator": "You can read, label, comment and vote, but you can't change anything else.",
}
_log = logging.getLogger("concord")


@dataclass(frozen=True, slots=True)
class Account:
    """The signed-in account, as reported by the sign-in provider."""

    name: str
    email: str


class Acting(Protocol):
    """Interface that screens (`Opened`) and stores share: both know the acting user."""

    @property
    def actor(self) -> Actor: ...


def require_account() -> Account | None:
    """Return the signed-in account, or None if sign-in isn't required. Stop the screen for all other users.

    Call this function before reading from the store.
    """
    section = auth_section()
    if section is None:
        if not st.secrets.load_if_toml_exists() and any(
            Path(file).is_file() for file in st.get_option("secrets.files")
        ):
            _stop("No one can sign in, because Concord can't read secrets.toml. See the server's log.")
        address = st.context.ip_address
        # Without accounts users can't be told apart, so only this machine is allowed.  None is this machine.
        if isinstance(address, str) and not is_loopback(address):
            _stop(
                "Concord has no accounts, so you can use it only on the machine that it runs on. To give a team "
                "access, add an [auth] section to .streamlit/secrets.toml (see “A team” in the README)."
            )
        return None
    if not st.user.get("is_logged_in"):
        _ask_to_sign_in(section)
    account = Account(*(clean_name(str(st.user.get(claim) or ""), _LONGEST_CLAIM) for claim in ("name", "email")))
    refusal = ""
    if not account.email:
        refusal = "Your account has no e-mail address. Concord needs one to find your role."
    elif str(st.user.get("email_verified", True)).lower() == "false":
        refusal = "The e-mail address of your account isn't verified. Verify it with your provider, then sign in again."
    if refusal:
        st.title("Concord", anchor=False)
        st.error(refusal, icon=":material/block:")
        _draw_sign_out()
        st.stop()
    # Providers return users to the root, so send them on, once, to the screen where they signed in.
    wanted = remembered.take_wanted_screen(SCREENS)
    if wanted is not None and st.session_state[state.SCREEN] == next(iter(SCREENS)) and not st.query_params:
        screen, ids = wanted
        try:
            st.switch_page(SCREENS[cast(Screen, screen)].file, query_params=ids)
        except StreamlitPageNotFoundError:  # the screen runs without the router, as in a test
            _log.info("the screen wanted before signing in, %s, is not served here", screen)
    return account


def _ask_to_sign_in(section: Any) -> NoReturn:
    """Draw a button for each provider in `[auth]`."""
    st.title("Concord", anchor=False)
    draw_notice()
    offered: list[str | None] = []  # None: the provider configured in the section itself
    if isinstance(section, Mapping):
        named = [str(name) for name, value in section.items() if isinstance(value, Mapping) and "client_id" in value]
        offered = [None, *named] if "client_id" in section else [*named]
    if not offered:
        _stop("Sign-in is enabled, but the [auth] section of secrets.toml doesn't name a provider.")
    st.text("Sign in to continue.")
    for provider in offered:
        label = f"Sign in with {plain(provider)}" if provider else "Sign in"
        key = state.widget(f"sign_in_{provider}")
        st.button(label, type="primary", icon=":material/login:", key=key, on_click=_log_in, args=(provider,))
    remembered.store_wanted_screen(str(st.session_state[state.SCREEN]), next(iter(SCREENS)))
    st.stop()


def _log_in(provider: str | None) -> None:
    try:
        st.login(provider)
    except (StreamlitAuthError, StreamlitMissingAuthlibError) as error:
        _log.error("signing in with %s: %s", provider or "the only provider", error)
        state.set_notice("Sign-in isn't fully set up. The server's log shows what is missing.", good=False)


def _draw_sign_out() -> None:
    st.button("Sign out", key=state.widget("sign_out"), icon=":material/logout:", on_click=st.logout)


def _stop(why: str) -> NoReturn:
    st.error(why, icon=":material/block:")
    st.stop()


def actor_of(account: Account | None, settings: Settings) -> Actor:
    """Return the acting user. An account's name includes the e-mail address, because display names aren't unique."""
    if account is None:
        return Actor(picked(settings), at_screen=True)
    known = f"{account.name} ({account.email})" if account.name not in ("", account.email) else account.email
    return Actor(known, settings.role_of(account.email), account.email, at_screen=True)


def picked(settings: Settings) -> str:
    """Return the user's name, or "" if none was entered.

    The name comes from this session, or else from the browser. It never comes from a link, because anyone can send a
    link.
    """
    if state.RATER not in st.session_state and (known := clean_name(remembered.name(settings))):
        st.session_state[state.RATER] = known
    return str(st.session_state.get(state.RATER, ""))


def pick(name: str) -> None:
    """Set the user's name in this session and in new tabs; "" removes it."""
    st.session_state[state.RATER] = clean_name(name)
    remembered.keep_name(clean_name(name))


def clean_name(name: str, longest: int = LONGEST) -> str:
    """Return the name on one line, without invisible or direction-changing characters; "" if nothing is left."""
    shown = "".join(
        word
        for word in " ".join(unicodedata.normalize("NFC", visible_name(name)).split())
        if word in _JOINERS or unicodedata.category(word) not in ("Cc", "Cf", "Cs")
    )
    shown = shown[:longest].strip()
    return shown if any(unicodedata.category(letter)[0] in "LNPS" for letter in shown) else ""


# ── ask for the name ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Asked:
    """A pressed button whose action waits until the user has entered a name.

    Attributes:
        store: The store that the action uses.
        press: Key or label of the button, which counts as pressed in the next run of the screen.
        act: The action; None if the screen only checks whether the button was pressed.
        project: Whether the dialog asks for the name of a new project.
        needs_name: Whether the dialog asks for the user's name.
    """

    store: Store
    press: str = ""
    act: Callable[[], object] | None = None
    project: bool = False
    needs_name: bool = True


def button(
    page: Acting,
    role: Role,
    label: str,
    *,
    key: str | None = None,
    on_click: Callable[..., object] | None = None,
    args: Sequence[Any] = (),
    disabled: bool = False,
    help: str | None = None,  # noqa: A002
    **look: Any,
) -> bool:
    """Draw a button that changes something. If the user's role is too low, the button is disabled and shows the reason.

    If the user has no name yet, the button first opens a dialog that asks for one.
    """
    draw = look.pop("draw", st.button)
    look |= {"key": key, **gate(page, role, disabled=disabled, help=help)}
    if role == "viewer" or not page.actor.is_unnamed:
        pressed = draw(label, on_click=on_click, args=args, **look)
        if st.session_state.get(state.PRESSED) == (key or label):
            del st.session_state[state.PRESSED]
            return True
        return pressed
    if draw(label, **look):
        act = None if on_click is None else partial(on_click, *args)
        ask(page, press=key or label, act=act)
    return False


def submit(page: Acting, role: Role, label: str, **look: Any) -> bool:
    """Draw the submit button of a form, with the same rules as `button`."""
    return button(page, role, label, draw=st.form_submit_button, **look)


def once_named(page: Acting, act: Callable[[], object]) -> Callable[[], object]:
    """Return an `on_change` callback that calls `act`. If the user has no name yet, it asks for one first."""
    asked = Asked(page if isinstance(page, Store) else page.store, act=act)
    return partial(st.session_state.update, {state.ASKED: asked}) if page.actor.is_unnamed else act


def ask(page: Acting, *, press: str = "", act: Callable[[], object] | None = None, project: bool = False) -> NoReturn:
    """Rerun the screen with a dialog that asks for the user's name or for the name of a new project."""
    store = page if isinstance(page, Store) else page.store
    # Decided once: a field that disappears after Enter would move the focus to the button that closes the dialog.
    needs_name = not project or page.actor.is_unnamed
    st.session_state[state.ASKED] = Asked(store, press, act, project, needs_name)
    st.rerun()


def draw_dialog() -> None:
    """Draw the dialog that asks for a name, if a pressed button needs one. Every screen calls this function once."""
    st.session_state[state.PRESSED] = st.session_state.pop(state.PRESSES, None)  # for this run only
    asked: Asked | None = st.session_state.get(state.ASKED)
    st.session_state[state.ASKING] = asked
    if asked is not None:
        title = "New project" if asked.project else "Your name"
        st.dialog(title, on_dismiss=_stop_asking)(_draw_asking)(asked)


def rerun_with_dialog() -> None:
    """Rerun the whole screen to open the dialog, if a button in a fragment has just asked for the user's name."""
    if st.session_state.get(state.ASKED) is not st.session_state.get(state.ASKING):
        st.rerun()


def _draw_asking(asked: Asked) -> None:
    if st.session_state.get(state.ASKED) is not asked:  # answered
        if asked.project:
            go("golden_set", section=state.UPLOAD_SECTION)
        st.rerun()
    if asked.needs_name:
        st.caption("Your changes are saved under this name. This browser remembers the name.")
    with st.form(state.widget("name_form"), border=False):
        if asked.needs_name:
            st.text_input("Your name", value=asked.store.actor.name, key=state.widget("name_typed"), max_chars=LONGEST)
        if asked.project:
            st.text_input("Name of the project", key=state.NEW_PROJECT, max_chars=80)
        if problem := st.session_state.pop(state.NAME_PROBLEM, ""):
            st.warning(plain(problem), icon=":material/edit:")
        label = "Create project" if asked.project else "Continue"
        st.form_submit_button(label, type="primary", on_click=_answer, args=(asked,))


def _answer(asked: Asked) -> None:
    if asked.needs_name:
        name = clean_name(str(st.session_state[state.widget("name_typed")]))
        if not name:
            st.session_state[state.NAME_PROBLEM] = "Enter your name."
            return
        pick(name)
        asked.store.actor = replace(asked.store.actor, name=name)  # the pressed action uses this store
    if asked.project:
        try:
            created = projects.create_project(asked.store, str(st.session_state[state.NEW_PROJECT]))
        except ConcordError as error:
            st.session_state[state.NAME_PROBLEM] = str(error)
            return
        state.leave_project()
        state.remember_project(created.project_id)
        state.set_notice(f"Project “{created.name}” created.", good=True)
    _stop_asking()
    if asked.act is not None:
        asked.act()
    elif asked.press:
        st.session_state[state.PRESSES] = asked.press


def _stop_asking() -> None:
    st.session_state.pop(state.ASKED, None)
    st.session_state.pop(state.NAME_PROBLEM, None)


# ── show the user ────────────────────────────────────────────────────────────────────────────────────────────


def draw_who(store: Store) -> None:
    """Draw the user's name, with a button to change it or to sign out."""
    actor = store.actor
    if actor.subject:
        st.caption(f"Signed in as {actor.role}")
        st.text(actor.name)
        _draw_sign_out()
        return
    label = plain(actor.name) if actor.name else "Enter your name"
    if st.button(label, key=state.widget("who"), icon=":material/person:", type="tertiary", help="Change your name"):
        ask(store)


def draw_role(actor: Actor) -> None:
    """Draw a sentence that explains the user's role, if the role is below reviewer."""
    if actor.role in ALLOWED:
        st.info(f"Your role is {actor.role}. {ALLOWED[actor.role]}", icon=":material/visibility:")


# ── permissions ──────────────────────────────────────────────────────────────────────────────────────────────


def may(page: Acting, role: Role) -> bool:
    return page.actor.may(role)


def gate(page: Acting, role: Role, *, disabled: bool = False, help: str | None = None) -> dict[str, Any]:  # noqa: A002
    """Return the widget arguments `disabled` and `help`. If the user's role is too low, `help` says so."""
    if may(page, role):
        return {"disabled": disabled, "help": help}
    return {"disabled": True, "help": f"This requires the {role} role. Your role is {page.actor.role}."}
