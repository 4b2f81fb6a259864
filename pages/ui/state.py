"""Keys of Streamlit's session state, and ids in the URL.

Ids of what is shown are in the URL, so a link, a reload or another tab shows the same thing. The session state holds
only recent choices. Lasting data is in the store.
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
ALONG = "candidates_along"
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
LABEL_TURN = "label_turn"
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
    "level items section tour view filter version task page who what judge"
).split()
BARE = "bare"
"""`?view=bare`: a screen without the menu, for a projector or for users who have a single task."""


def url_id(name: str) -> str | None:
    """Return the id called `name` in the URL; None if it is absent."""
    return st.query_params.get(name) or None


def is_task() -> bool:
    """Return whether the app was opened by a link to a single task, which hides the menu and all other screens."""
    return st.session_state.get(SCREEN) == "label" and url_id("task") is not None


def put_in_url(**ids: str | None) -> None:
    """Set ids in the URL; None removes an id."""
    for name, value in ids.items():
        assert name in URL_IDS, name
        if value is None and name in st.query_params:
            del st.query_params[name]
        elif value is not None and st.query_params.get(name) != value:  # every write sends a message
            st.query_params[name] = value


def when_changed(key: str, act: Callable[..., None], *args: object) -> Callable[[], None]:
    """Return an `on_change` callback that calls `act` only if the widget's value really changed.

    A browser can send a widget's old value again after the app has removed the widget.
    """
    drawn = st.session_state.get(key)

    def changed() -> None:
        if st.session_state.get(key) != drawn:
            act(*args)

    return changed


def leave_project() -> None:
    """Remove all ids that belong to the project from the URL."""
    put_in_url(**{name: None for name in URL_IDS if name not in ("project", "view")})


def is_bare() -> bool:
    """Return whether the screen is drawn without the menu."""
    return url_id("view") == BARE or is_task()


def project() -> str | None:
    """Return the project in the URL, else the project last opened in this session."""
    return url_id("project") or st.session_state.get(PROJECT)


def remember_project(project_id: str) -> None:
    st.session_state[PROJECT] = project_id
    put_in_url(project=project_id)


def set_notice(text: str, *, good: bool) -> None:
    """Store a message for the next rerun; `good` is False if the action failed."""
    st.session_state[NOTICE] = text, good
    if good:
        st.session_state[N_DONE] = st.session_state.get(N_DONE, 0) + 1


def attempt(refused: str, act: Callable[..., object], *args: object) -> None:
    """Call `act(*args)`, the action of a button. If it fails, store `refused` and the reason as a notice."""
    try:
        act(*args)
    except ConcordError as error:
        set_notice(f"{refused}: {error}", good=False)


def closing(name: str) -> str:
    """Return the key of a popover that closes after success and stays open after a failure."""
    return widget(f"{name}_{st.session_state.get(N_DONE, 0)}")


def take_notice() -> tuple[str, bool] | None:
    """Remove and return (stored message, whether it reports success), or None if there is no message."""
    notice: tuple[str, bool] | None = st.session_state.pop(NOTICE, None)
    st.session_state[NOTICE_SHOWN] = notice
    return notice


def keep_notice() -> None:
    """Keep a notice of an error for the next rerun, so that an automatic redraw does not remove it."""
    if (notice := st.session_state.get(NOTICE_SHOWN)) is not None and not notice[1]:
        st.session_state.setdefault(NOTICE, notice)


def widget(name: str) -> str:
    """Return a widget key that never clashes with the keys of other modules."""
    return f"form_{name}"
