"""Misaligned items in a table, in which several rows get one verdict."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.misaligned_items import TRIAGE_VERDICTS, ItemScore, Triage, TriageRequest
from core.wording import counted
from pages.misaligned import misaligned_filters, misaligned_view
from pages.misaligned.misaligned_selection import ITEMS, Selection
from pages.ui import people, state, tables
from pages.ui.screens import plain

if TYPE_CHECKING:
    pass

MOST_LISTED, MOST_POINTS, ROWS, PLOT_HEIGHT = 500, 2_000, 12, 470


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────


def draw_list(selection: Selection) -> None:
    """The rows; those that are marked get one verdict, or are opened."""
    filtered = misaligned_filters.chosen(selection)
    shown = filtered.items[:MOST_LISTED]
    ids = [item.item_id for item in shown]
    marked = _marked(ids)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        _draw_presses(selection, marked)
    last = st.session_state.get(state.MISALIGNED_LAST)
    if isinstance(last, misaligned_view.Last) and last.about == selection.about:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f":{'gray' if last.good else 'orange'}[{plain(last.said)}]", width="content")
            if last.numbers:
                key = state.widget("misaligned_undo_list")
                st.button("Undo", key=key, shortcut="U", on_click=misaligned_view.undo, args=(selection, last))
    else:
        st.caption("Mark rows at their left edge, then press a verdict: it holds for all of them.")
    number = st.column_config.NumberColumn(format="%.2f", width="small")
    st.dataframe(
        _frame(shown, selection.triage),
        key=table_key(ids),
        on_select="rerun",
        selection_mode="multi-row",
        hide_index=True,
        column_config={
            "gap": st.column_config.NumberColumn(
                format="%+.2f", width="small", help="in standard deviations of each side; above 0: too lenient"
            ),
            "raters": number,
            "judge": number,
        },
        height=tables.height_for(ROWS, ROWS),
        placeholder=tables.DASH,
        alt="Calibration items, largest gap first",
    )
    if len(filtered.items) > MOST_LISTED:
        st.caption(f"The first {MOST_LISTED} of {len(filtered.items):,} are listed.")


def table_key(ids: Sequence[str]) -> str:
    """Another table where other rows stand in it: what was marked is no place in them."""
    return f"{state.MISALIGNED}_{zlib.crc32(chr(0).join(ids).encode())}"


def _marked(ids: Sequence[str]) -> list[str]:
    kept = st.session_state.get(table_key(ids))
    return [] if kept is None else [ids[row] for row in sorted(kept["selection"]["rows"])]


def _draw_presses(selection: Selection, marked: Sequence[str]) -> None:
    """The verdicts for the rows marked, and the way to read one of them."""
    seen = {item_id: _number(selection.triage.get(item_id)) for item_id in marked}
    picked = bool(marked) and all(
        item_id in selection.triage and selection.triage[item_id].picked for item_id in marked
    )
    form = uuid.uuid4().hex
    presses: list[tuple[str, str, str, dict[str, Any]]] = [
        (verdict.capitalize(), str(place), verdict, {"verdict": verdict})
        for place, verdict in enumerate(TRIAGE_VERDICTS, 1)
    ]
    words = "no longer picked" if picked else "picked for the next round"
    presses.append(("Drop the pick" if picked else "Pick", "P", words, {"picked": not picked}))
    st.markdown(f"**{len(marked):,} marked**", width="content")
    for label, shortcut, words, said in presses:
        people.button(
            selection.page,
            "annotator",
            label,
            key=state.widget(f"misaligned_all_{shortcut}"),
            shortcut=shortcut,
            on_click=_triage,
            args=(selection, seen, words, said, form),
            disabled=not marked,
        )
    first = marked[0] if marked else ""
    key = state.widget("misaligned_read")
    st.button("Read it", key=key, on_click=open_item, args=(first,), disabled=len(marked) != 1)


def _number(triage: Triage | None) -> int:
    return 0 if triage is None else triage.number


def _triage(selection: Selection, seen: Mapping[str, int], words: str, said: Mapping[str, Any], form: str) -> None:
    project_id, golden_id, aspect = selection.about
    try:
        result = projects.triage_items(
            selection.page.store,
            project_id,
            seen,
            TriageRequest(golden_id, aspect, selection.criteria.criteria_id, **said),
            form=f"triage:{form}",
        )
    except ConcordError as error:
        misaligned_view.remember(selection, f"Nothing was saved: {error}", {}, good=False)
        return
    refused = " ".join(f"{item_id} was left alone: {why}" for item_id, why in result.refused.items())
    done = f"{counted(len(result.numbers), 'item')}: {words}."
    misaligned_view.remember(selection, f"{done} {refused}".strip(), result.numbers, good=not refused)


def open_item(item_id: str) -> None:
    st.session_state[state.MISALIGNED_VIEW] = ITEMS
    state.put_in_url(item=item_id)


def _frame(shown: Sequence[ItemScore], triage: Mapping[str, Triage]) -> pd.DataFrame:
    marks = misaligned_filters.MARKS
    return pd.DataFrame(
        {
            "item": [item.item_id for item in shown],
            "the judge is": [f"{marks[item.side]} {tables.gap_words(item)}" for item in shown],
            "gap": pd.Series([item.gap for item in shown], dtype="float64"),
            "raters": [item.label for item in shown],
            "judge": pd.Series([item.score for item in shown], dtype="float64"),
            "triage": [misaligned_filters.triage_words(triage.get(item.item_id)) for item in shown],
            "note": ["" if item.item_id not in triage else triage[item.item_id].note for item in shown],
        }
    )
