"""Who acts: the account that somebody signed in with, or on one's own machine the name that they gave.

If Streamlit's secrets have an `[auth]` section, nothing is shown before somebody has signed in, and their role comes
from the settings.  Otherwise whoever sits at the machine may do everything, and browsers of other machines are turned
away.  The first change asks for a name in a dialog, then does what was pressed; the browser remembers the name.
`core.projects` enforces names and roles; here they only decide how a button looks.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any, NoReturn, Protocol, cast

import streamlit as st
from streamlit.errors import StreamlitAuthError, StreamlitMissingAuthlibError, StreamlitPageNotFoundError

from core import projects
from core.errors import ConcordError
from core.people import Actor, Role
from core.settings import Settings
from core.store.store import Store
from core.texts import visible_name
from pages.ui import remembered, state
from pages.ui.accounts import auth_section
from pages.ui.screens import SCREENS, Screen, draw_notice, go, plain

LONGEST = 60
MOST_KNOWN = 6
"""Names of others that the dialog offers."""
_LONGEST_CLAIM = 120
_DEFAULT = "default"
_JOINERS = "\u200c\u200d"  # part of how some scripts and emoji are written
ALLOWED: dict[Role, str] = {
    "viewer": "You can read everything here. Buttons that change something are off.",
    "annotator": "You can read, label, comment and vote. Buttons that change anything else are off.",
}
_log = logging.getLogger("concord")


@dataclass(frozen=True, slots=True)
class Account:
    """What the provider says of who signed in."""

    name: str
    email: str


class Acting(Protocol):
    """A screen (`Opened`) or a store: what knows who acts."""

    @property
    def actor(self) -> Actor: ...


# ── who it is ────────────────────────────────────────────────────────────────────────────────────────────────


def let_in() -> Account | None:
    """The account of who signed in, None where nobody has to; stops the screen for everybody else.

    Call it before anything is read from the store.
    """
    offered = _providers()
    if offered is None:
        _keep_to_this_machine()
        return None
    if not st.user.get("is_logged_in"):
        _ask_to_sign_in(offered)
    account = Account(*(tidy(str(st.user.get(claim) or ""), _LONGEST_CLAIM) for claim in ("name", "email")))
    if not account.email:
        _refuse("Your account came without an e-mail address, and what people may do here goes by that.")
    if str(st.user.get("email_verified", True)).lower() == "false":
        _refuse("The e-mail address of this account has not been verified. Verify it there, then sign in again.")
    _go_where_they_wanted()
    return account


def actor_of(account: Account | None, settings: Settings) -> Actor:
    """Who acts.  The address is part of an account's name, for anybody can choose to be called like somebody else."""
    if account is None:
        return Actor(picked(settings), at_screen=True)
    known = f"{account.name} ({account.email})" if account.name not in ("", account.email) else account.email
    return Actor(known, settings.role_of(account.email), account.email, at_screen=True)


def picked(settings: Settings) -> str:
    """The name picked in this session, "" for none.

    A session begins with the name that this browser remembers.  No link says who its reader is: anybody can send one.
    """
    if state.RATER not in st.session_state and (known := tidy(remembered.name(settings))):
        st.session_state[state.RATER] = known
    return str(st.session_state.get(state.RATER, ""))


def pick(name: str) -> None:
    """From now on this person acts, here and in tabs yet to be opened; with "" nobody is named."""
    st.session_state[state.RATER] = tidy(name)
    remembered.keep_name(tidy(name))


def tidy(name: str, longest: int = LONGEST) -> str:
    """A name on one line, without characters that cannot be seen or that turn the line around; "" for nothing left."""
    shown = "".join(
        word
        for word in " ".join(unicodedata.normalize("NFC", visible_name(name)).split())
        if word in _JOINERS or unicodedata.category(word) not in ("Cc", "Cf", "Cs")
    )
    shown = shown[:longest].strip()
    return shown if any(unicodedata.category(letter)[0] in "LNPS" for letter in shown) else ""


# ── asking for it ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Asked:
    """A press that waits for a name: what it does, and through which store.

    `press` is the button's key or label: a screen that reads the button's value finds it pressed in the next run.
    `project`: a new project is wanted, so its name is asked for as well.
    """

    store: Store
    press: str = ""
    act: Callable[[], object] | None = None
    project: bool = False


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
    """A button that changes something: off with the reason where the role is too low.

    Without a name a press asks for one in a dialog, and is carried out as soon as it is given.
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
    """`button` for a form."""
    return button(page, role, label, draw=st.form_submit_button, **look)


def once_named(page: Acting, act: Callable[[], object]) -> Callable[[], object]:
    """An `on_change` that does `act`, after asking for a name where there is none."""
    return act if not page.actor.is_unnamed else partial(_wait, Asked(_store_of(page), act=act))


def ask(page: Acting, *, press: str = "", act: Callable[[], object] | None = None, project: bool = False) -> NoReturn:
    """Open the dialog in the next drawing of the whole screen, which begins now."""
    _wait(Asked(_store_of(page), press, act, project))
    st.rerun()


def draw_dialog(project_id: str) -> None:
    """The dialog while something waits for a name.  Every screen calls it once."""
    st.session_state[state.PRESSED] = st.session_state.pop(state.PRESSES, None)  # of this one run
    asked: Asked | None = st.session_state.get(state.ASKED)
    st.session_state[state.ASKING] = asked
    if asked is None:
        return
    title = "New project" if asked.project else "Your name"
    st.dialog(title, on_dismiss=_stop_asking)(_draw_asking)(project_id, asked)


def draw_waiting() -> None:
    """In a fragment: draw the whole screen with the dialog where a widget of it has just asked for a name."""
    if st.session_state.get(state.ASKED) is not st.session_state.get(state.ASKING):
        st.rerun()


def _draw_asking(project_id: str, asked: Asked) -> None:
    if st.session_state.get(state.ASKED) is not asked:  # answered
        if asked.project:
            go("golden_set", section=state.UPLOAD_SECTION)
        st.rerun()
    actor = asked.store.actor
    needs_name = not asked.project or actor.is_unnamed
    if needs_name:
        st.caption("Changes carry your name. This browser remembers it.")
    with st.form(state.widget("name_form"), border=False):
        if needs_name:
            st.text_input("Your name", value=actor.name, key=state.widget("name_typed"), max_chars=LONGEST)
        if asked.project:
            st.text_input("Name of the project", key=state.NEW_PROJECT, max_chars=80)
        if problem := st.session_state.pop(state.NAME_PROBLEM, ""):
            st.warning(plain(problem), icon=":material/edit:")
        label = "Create project" if asked.project else "Continue"
        st.form_submit_button(label, type="primary", on_click=_answer, args=(asked, needs_name))
    known = [name for name in _names(project_id, asked.store) if name != actor.name][:MOST_KNOWN]
    if known and not asked.project:
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.caption("Or continue as", width="content")
            for place, name in enumerate(known):
                st.button(plain(name), key=state.widget(f"name_{place}"), on_click=_answer_as, args=(asked, name))


def _answer(asked: Asked, needs_name: bool) -> None:
    name = tidy(str(st.session_state[state.widget("name_typed")])) if needs_name else asked.store.actor.name
    if not name:
        st.session_state[state.NAME_PROBLEM] = "Enter your name."
        return
    if needs_name and name != asked.store.actor.name:
        pick(name)
        asked.store.actor = replace(asked.store.actor, name=name)  # what was pressed acts through this store
    if asked.project:
        try:
            created = projects.create_project(asked.store, str(st.session_state[state.NEW_PROJECT]))
        except ConcordError as error:
            st.session_state[state.NAME_PROBLEM] = str(error)
            return
        state.leave_project()
        state.remember_project(created.project_id)
        state.leave_notice(f"Project “{created.name}” created.", good=True)
    _stop_asking()
    if asked.act is not None:
        asked.act()
    elif asked.press:
        st.session_state[state.PRESSES] = asked.press


def _answer_as(asked: Asked, name: str) -> None:
    st.session_state[state.widget("name_typed")] = name
    _answer(asked, needs_name=True)


def _wait(asked: Asked) -> None:
    st.session_state[state.ASKED] = asked


def _stop_asking() -> None:
    st.session_state.pop(state.ASKED, None)
    st.session_state.pop(state.NAME_PROBLEM, None)


def _store_of(page: Acting) -> Store:
    return page if isinstance(page, Store) else page.store


@st.cache_data(ttl=60, max_entries=256, show_spinner=False)
def _names(project_id: str, _store: Store) -> list[str]:
    """Kept for a minute: telling the names apart reads the whole log."""
    return [person.name for person in projects.list_participants(_store, project_id) if person.name]


# ── who it is, on screen ─────────────────────────────────────────────────────────────────────────────────────


def draw_who(store: Store) -> None:
    """Says who acts, with the way to change that: another name, or out of the account."""
    actor = store.actor
    if actor.subject:
        st.caption(f"Signed in as {actor.role}")
        st.text(actor.name)
        st.button("Sign out", key=state.widget("sign_out"), icon=":material/logout:", on_click=st.logout)
        return
    label = plain(actor.name) if actor.name else "Enter your name"
    if st.button(label, key=state.widget("who"), icon=":material/person:", type="tertiary", help="Change your name"):
        ask(store)


def draw_role(actor: Actor) -> None:
    """A line under the title for whoever may not do everything that reviewers do."""
    if actor.role in ALLOWED:
        st.info(f"Your role is {actor.role}. {ALLOWED[actor.role]}", icon=":material/visibility:")


# ── what they may do ─────────────────────────────────────────────────────────────────────────────────────────


def may(page: Acting, role: Role) -> bool:
    """Whether who acts has at least this role."""
    return page.actor.may(role)


def gate(page: Acting, role: Role, *, disabled: bool = False, help: str | None = None) -> dict[str, Any]:  # noqa: A002
    """`disabled` and `help` of a widget: off, with the reason, where the role is too low."""
    if may(page, role):
        return {"disabled": disabled, "help": help}
    return {"disabled": True, "help": f"This needs the role {role}; yours is {page.actor.role}."}


# ── signing in ───────────────────────────────────────────────────────────────────────────────────────────────


def _providers() -> tuple[str, ...] | None:
    """The names of the providers in `[auth]`, None without that section."""
    if not st.secrets.load_if_toml_exists():
        if any(Path(file).is_file() for file in st.get_option("secrets.files")):
            _stop("The file secrets.toml cannot be read, so that nobody can sign in. See the server's log.")
        return None
    section = auth_section()
    if section is None:
        return None
    if not hasattr(section, "items"):
        return ()
    named = tuple(str(name) for name, value in section.items() if hasattr(value, "items") and "client_id" in value)
    return (_DEFAULT, *named) if "client_id" in section else named


def _ask_to_sign_in(offered: Sequence[str]) -> NoReturn:
    st.title("Concord", anchor=False)
    draw_notice()
    if not offered:
        _stop("Signing in is switched on, but the section [auth] of secrets.toml names no provider.")
    st.text("Sign in to go on.")
    for provider in offered:
        label = "Sign in" if provider == _DEFAULT else f"Sign in with {plain(provider)}"
        key = state.widget(f"sign_in_{provider}")
        st.button(label, type="primary", icon=":material/login:", key=key, on_click=_log_in, args=(provider,))
    remembered.draw_wanted(str(st.session_state[state.SCREEN]), next(iter(SCREENS)))
    st.stop()


def _go_where_they_wanted() -> None:
    """Providers send everybody back to the root: from there on to the screen that signing in interrupted, once."""
    wanted = remembered.take_wanted(SCREENS)
    at_the_root = st.session_state[state.SCREEN] == next(iter(SCREENS)) and not st.query_params
    if wanted is None or not at_the_root:
        return
    screen, ids = wanted
    try:
        st.switch_page(SCREENS[cast(Screen, screen)].file, query_params=ids)
    except StreamlitPageNotFoundError:  # this screen's file was opened on its own, as a test does
        _log.info("the screen wanted before signing in, %s, is not served here", screen)


def _log_in(provider: str) -> None:
    try:
        st.login(None if provider == _DEFAULT else provider)
    except (StreamlitAuthError, StreamlitMissingAuthlibError) as error:
        _log.error("signing in with %s: %s", provider, error)
        state.leave_notice("Signing in is not set up completely. The server's log says what is missing.", good=False)


def _refuse(why: str) -> NoReturn:
    st.title("Concord", anchor=False)
    st.error(why, icon=":material/block:")
    st.button("Sign out", key=state.widget("sign_out"), icon=":material/logout:", on_click=st.logout)
    st.stop()


def _keep_to_this_machine() -> None:
    """Without accounts there is nothing to tell people apart by, so nobody but this machine gets in."""
    address = st.context.ip_address
    if not isinstance(address, str):  # None: this very machine
        return
    try:
        known = ip_address(address)
    except ValueError:
        known = None
    if isinstance(known, IPv6Address) and known.ipv4_mapped:
        known = known.ipv4_mapped
    if known is None or not known.is_loopback:
        _stop(
            "Concord knows no accounts as it is set up, so it opens on its own machine only. To let a team in, add a "
            "section [auth] to .streamlit/secrets.toml; the README says how under A team."
        )


def _stop(why: str) -> NoReturn:
    st.error(why, icon=":material/block:")
    st.stop()
