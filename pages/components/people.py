"""Who acts: the name picked in the sidebar on one's own machine, or the account that a team's people sign in with.

Where Streamlit's secrets hold an `[auth]` section, nothing is shown before somebody has signed in, and their role comes
from the settings.  Elsewhere whoever sits at the machine may do everything, under the name they give and their browser
remembers; browsers of other machines are turned away.  Without a name nothing is changed.  Names and roles are enforced
in `core.projects`; here they are only said before a button is pressed.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any, NoReturn, Protocol

import streamlit as st
from streamlit.errors import StreamlitAuthError, StreamlitMissingAuthlibError, StreamlitPageNotFoundError

from core import projects
from core.people import Actor, Role
from core.settings import Settings
from core.store.store import Store
from pages.components import remembered, state
from pages.components.accounts import auth_section
from pages.components.screens import SCREENS, draw_notice, plain

LONGEST = 60
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
        for word in " ".join(unicodedata.normalize("NFC", name).split())
        if word in _JOINERS or unicodedata.category(word) not in ("Cc", "Cf", "Cs")
    )
    shown = shown[:longest].strip()
    return shown if any(unicodedata.category(letter)[0] in "LNPS" for letter in shown) else ""


# ── in the sidebar ───────────────────────────────────────────────────────────────────────────────────────────


def draw_who(settings: Settings, store: Store, project_id: str) -> None:
    """Says in the sidebar who acts: a picker with the names used so far, or the account with the way out of it."""
    with st.sidebar:
        if store.actor.subject:
            _draw_account(store.actor)
        else:
            _draw_picker(store, project_id)
        remembered.draw(settings)  # last, so that nothing moves when it leaves again


def _draw_account(actor: Actor) -> None:
    st.caption(f"Signed in as {actor.role}")
    st.text(actor.name)
    st.button("Sign out", key=state.widget("sign_out"), icon=":material/logout:", on_click=st.logout)


def _draw_picker(store: Store, project_id: str) -> None:
    actor = store.actor
    known = {*_names(project_id, store), *([actor.name] if actor.name else ())}
    st.session_state[state.NAME_PICKER] = actor.name or None  # always: the page before may have left a value
    st.selectbox(
        "You are",
        sorted(known, key=str.casefold),
        index=None,
        key=state.NAME_PICKER,
        accept_new_options=True,
        placeholder="Type your name",
        on_change=_take_name,
        help="What you change carries this name, and nothing is changed without one. This browser remembers it.",
    )


@st.cache_data(ttl=60, max_entries=256, show_spinner=False)
def _names(project_id: str, _store: Store) -> list[str]:
    """Kept for a minute: every screen offers them, and telling them apart reads the whole log."""
    return projects.list_people(_store, project_id)


def draw_ask(why: str = "What you change here carries your name.", known: Sequence[str] = ()) -> None:
    """Asks for a name on the screen itself (a phone folds the sidebar away); `known` people are one press away."""
    with st.container():
        with (
            st.form(state.widget("name_form"), border=False),
            st.container(horizontal=True, vertical_alignment="center"),
        ):
            st.markdown(f"**Who are you?** {why}", width="content")
            words = {"placeholder": "Your name", "label_visibility": "collapsed"}
            st.text_input("Your name", key=state.widget("name_typed"), max_chars=LONGEST, width=220, **words)
            st.form_submit_button("That is me", on_click=_take_typed)
        if known:
            with st.container(horizontal=True):
                for place, name in enumerate(known):
                    st.button(plain(name), key=state.widget(f"name_{place}"), on_click=pick, args=(name,))


def _take_typed() -> None:
    pick(st.session_state[state.widget("name_typed")])


def draw_role(actor: Actor) -> None:
    """A line under the title for whoever may not do everything that reviewers do."""
    if actor.role in ALLOWED:
        st.info(f"Your role is {actor.role}. {ALLOWED[actor.role]}", icon=":material/visibility:")


# ── what they may do ─────────────────────────────────────────────────────────────────────────────────────────


def may(page: Acting, role: Role) -> bool:
    """Whether who acts has at least this role."""
    return page.actor.may(role)


def gate(page: Acting, role: Role, *, disabled: bool = False, help: str | None = None) -> dict[str, Any]:  # noqa: A002
    """`disabled` and `help` of what changes something: off, with the reason, without a name or with too low a role."""
    if page.actor.is_unnamed:
        return {"disabled": True, "help": "Say who you are first: what you change carries your name."}
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
    file = next(entry.file for screen, entry in SCREENS.items() if screen == wanted.screen)
    try:
        st.switch_page(file, query_params=wanted.ids)
    except StreamlitPageNotFoundError:  # this screen's file was opened on its own, as a test does
        _log.info("the screen wanted before signing in, %s, is not served here", wanted.screen)


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


def _take_name() -> None:
    pick(st.session_state[state.NAME_PICKER] or "")
