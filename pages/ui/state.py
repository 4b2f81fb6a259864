"""Every key of the session state and every id in the URL, in one place.

What matters lies in the store; the session holds only what a person has just picked.  Ids stand in the URL, so that
a link, a reload or another tab shows the same thing.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.errors import ConcordError

SCREEN = "screen"
PROJECT = "project_id"
PROJECT_PICKER = "project_picker"
NEW_PROJECT = "new_project"
VIEW = "golden_view"
UPLOAD = "upload"
UPLOAD_SECTION = "upload"
GOLDEN_PART = "golden_part"
LEADERBOARD = "leaderboard"
GRID_PICKS = "grid_picks"
CANDIDATES = "candidates"
RUNS = "runs_table"
ITEMS = "items_table"
COMPARE_LIST = "compare_list"
EDITING = "texts_edited"
CONFLICT = "edit_conflict"
NOTICE = "notice"
NOTICE_SHOWN = "notice_shown"
N_DONE = "n_done"
LABEL_AUTO = "label_auto"
LABEL_SHOWN = "label_shown"
LABEL_SESSION = "label_session"
LABEL_MARKED = "label_marked"
CRITERIA_VIEW = "criteria_view"
LABEL_VIEW = "label_view"
RATER = "rater"
ASKED = "asked"
ASKING = "asking"
NAME_PROBLEM = "name_problem"
PRESSES = "presses"
PRESSED = "pressed"
RUNS_VIEW = "runs_view"
MISALIGNED = "misaligned_table"
MISALIGNED_VIEW = "misaligned_view"
MISALIGNED_LAST = "misaligned_last"
PROPOSALS = "proposals_table"
LINEAGE = "lineage_table"
IMPORTED = "judges_imported"
METRICS_RUN = "metrics_run"
COOKIE = "cookie"
ARRIVED = "arrived"

URL_IDS = (
    "project golden aspect run criteria rescore edit labelling order item round statistic "
    "level items section tour view filter version task page who what"
).split()
BARE = "bare"
"""`?view=bare`: a screen without menu, for a projector or for people who are to do one thing."""


def url_id(name: str) -> str | None:
    """The id of that name in the URL, or None."""
    return st.query_params.get(name) or None


def is_task() -> bool:
    """Whether somebody followed a link to one task: no menu, no other screens."""
    return st.session_state.get(SCREEN) == "label" and url_id("task") is not None


def put_in_url(**ids: str | None) -> None:
    """Sets (or with None removes) ids in the URL; writes only what changes, for each write is a message."""
    for name, value in ids.items():
        assert name in URL_IDS, name
        if value is None and name in st.query_params:
            del st.query_params[name]
        elif value is not None and st.query_params.get(name) != value:
            st.query_params[name] = value


def when_changed(key: str, act: Callable[..., None], *args: object) -> Callable[[], None]:
    """What a widget's `on_change` calls: `act`, where the value is another than the one it is about to be drawn with.

    A widget that the last run no longer drew counts as changed when a browser that has not heard of that yet sends its
    value once more, with a component that has just been mounted, say: what took the widget away would be undone.
    """
    drawn = st.session_state.get(key)

    def changed() -> None:
        if st.session_state.get(key) != drawn:
            act(*args)

    return changed


def leave_project() -> None:
    """Takes the ids of a project's things out of the URL."""
    put_in_url(**{name: None for name in URL_IDS if name not in ("project", "view")})


def is_bare() -> bool:
    """Whether the screen is drawn without menu."""
    return url_id("view") == BARE or is_task()


def project() -> str | None:
    """The project in the URL, else the one picked last in this session."""
    return url_id("project") or st.session_state.get(PROJECT)


def remember_project(project_id: str) -> None:
    st.session_state[PROJECT] = project_id
    put_in_url(project=project_id)


def leave_notice(text: str, *, good: bool) -> None:
    """Keep a sentence for the next drawing: `good` when something was done, not when it was refused."""
    st.session_state[NOTICE] = text, good
    if good:
        st.session_state[N_DONE] = st.session_state.get(N_DONE, 0) + 1


def attempt(refused: str, act: Callable[..., object], *args: object) -> None:
    """Do `act(*args)` for a button; leave a notice, `refused` with the reason, where that is not possible."""
    try:
        act(*args)
    except ConcordError as error:
        leave_notice(f"{refused}: {error}", good=False)


def closing(name: str) -> str:
    """Key of a popover that closes once something is done, which a good notice says; it stays open after a bad one."""
    return widget(f"{name}_{st.session_state.get(N_DONE, 0)}")


def take_notice() -> tuple[str, bool] | None:
    """The sentence left and whether it is good, once."""
    notice: tuple[str, bool] | None = st.session_state.pop(NOTICE, None)
    st.session_state[NOTICE_SHOWN] = notice
    return notice


def keep_notice() -> None:
    """Before a drawing that nobody asked for: a refusal on screen stays there.  Toasts leave by themselves."""
    if (notice := st.session_state.get(NOTICE_SHOWN)) is not None and not notice[1]:
        st.session_state.setdefault(NOTICE, notice)


def widget(name: str) -> str:
    """Key of a form's widget; one name space, so that no form can take another key's place."""
    return f"form_{name}"
