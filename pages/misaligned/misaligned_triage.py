"""Save, report and undo the triage of one or several misaligned items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.labelling import Triage
from core.projects.misaligned_items import TriageRequest
from core.wording import counted
from pages.misaligned.misaligned_selection import Selection
from pages.ui import state
from pages.ui.screens import plain


@dataclass(frozen=True, slots=True)
class Last:
    """The last triage of this session, with what Undo needs: log entry numbers and the previous triage."""

    about: tuple[str, str, str]
    said: str
    numbers: Mapping[str, int]
    before: Mapping[str, Triage]
    good: bool = True


def save(selection: Selection, item_ids: Sequence[str], words: str, form: str, **said: Any) -> bool:
    """Save a verdict, note or pick for the items, and keep the rest of their triage; return whether all were saved.

    `form` identifies the click, so that a click sent twice counts once.
    """
    project_id, golden_id, aspect = selection.about
    before = projects.list_triage(selection.page.store, *selection.about)
    seen = {item_id: known.number if (known := selection.triage.get(item_id)) else 0 for item_id in item_ids}
    last = st.session_state.get(state.MISALIGNED_LAST)
    if isinstance(last, Last) and last.about == selection.about:  # a note and a button in quick succession
        seen = {item_id: max(number, last.numbers.get(item_id, 0)) for item_id, number in seen.items()}
    request = TriageRequest(golden_id, aspect, selection.criteria.criteria_id, **said)
    try:
        numbers, left_alone = projects.triage_items(
            selection.page.store, project_id, seen, request, form=f"triage:{form}"
        )
    except ConcordError as error:
        _remember(selection, f"Nothing was saved: {error}", good=False)
        return False
    if item_ids == [state.url_id("item")]:
        done, refused = (
            f"{item_ids[0]}: {words}.",
            "".join(f"Nothing was saved: {why}" for why in left_alone.values()),
        )
    else:
        done = f"{counted(len(numbers), 'item')}: {words}."
        refused = " ".join(f"{item_id} wasn't changed: {why}" for item_id, why in left_alone.items())
    said = f"{done} {refused}".strip() if numbers else refused
    _remember(selection, said, numbers, before, good=not refused)
    return not refused


def _remember(
    selection: Selection,
    said: str,
    numbers: Mapping[str, int] = MappingProxyType({}),
    before: Mapping[str, Triage] = MappingProxyType({}),
    *,
    good: bool,
) -> None:
    st.session_state[state.MISALIGNED_LAST] = Last(selection.about, said, numbers, before, good)


def draw_last(selection: Selection) -> bool:
    """Draw the last triage with an Undo button; return False if there is none."""
    last = st.session_state.get(state.MISALIGNED_LAST)
    if not isinstance(last, Last) or last.about != selection.about:
        return False

    def undo() -> None:
        project_id, golden_id, aspect = last.about
        kept = []
        for item_id, number in last.numbers.items():
            old = last.before.get(item_id) or Triage(golden_id, aspect, "", "")
            request = TriageRequest(golden_id, aspect, old.subject_id, old.verdict, old.note, old.picked)
            try:
                projects.save_triage(selection.page.store, project_id, item_id, request, seen=number)
            except ConcordError as error:  # another user has changed it since
                kept.append(f"{item_id}: {error}")
        n = len(last.numbers) - len(kept)
        said = f"Undone: {last.said}" if len(last.numbers) == 1 else f"Undone for {counted(n, 'item')}."
        _remember(selection, " ".join(["Not undone:", *kept]) if kept else said, good=not kept)
        if len(last.numbers) == 1:
            state.put_in_url(item=next(iter(last.numbers)))

    if last.numbers:
        st.button("Undo", key=state.widget("misaligned_undo"), shortcut="U", on_click=undo)
    st.markdown(f":{'gray' if last.good else 'orange'}[{plain(last.said)}]", width="content")
    return True
