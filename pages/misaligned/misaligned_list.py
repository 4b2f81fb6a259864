"""Table of misaligned items; all selected rows can be given the same verdict at once."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from core.projects.labelling import TRIAGE_VERDICTS
from core.wording import counted
from pages.label import label_item
from pages.misaligned import misaligned_filters, misaligned_triage
from pages.misaligned.misaligned_selection import Selection
from pages.ui import people, state, tables

MOST_LISTED, ROWS, MOST_TEXT = 500, 12, 300


def table_key(ids: Sequence[str]) -> str:
    """Return a table key that depends on the rows, so that a selection never applies to other rows."""
    return f"{state.MISALIGNED}_{zlib.crc32(chr(0).join(ids).encode())}"


def draw_list(selection: Selection) -> None:
    """Draw the rows, with buttons that give one verdict to all selected rows, or open a single selected row."""
    listed = misaligned_filters.listed(selection)
    shown, triage = listed[:MOST_LISTED], selection.triage
    ids = [item.item_id for item in shown]
    kept = st.session_state.get(table_key(ids))
    marked = [] if kept is None else [ids[row] for row in sorted(kept["selection"]["rows"])]
    picked = bool(marked) and all(item_id in triage and triage[item_id].picked for item_id in marked)
    form = uuid.uuid4().hex
    presses: list[tuple[str, str, str, dict[str, Any]]] = [
        (verdict.capitalize(), str(place), verdict, {"verdict": verdict})
        for place, verdict in enumerate(TRIAGE_VERDICTS, 1)
    ]
    words = "no longer picked" if picked else "picked for the next round"
    presses.append(("Remove pick" if picked else "Pick", "P", words, {"picked": not picked}))
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.markdown(f"**{len(marked):,} marked**", width="content")
        for label, shortcut, words, said in presses:
            people.button(
                selection.page,
                "annotator",
                label,
                key=state.widget(f"misaligned_all_{shortcut}"),
                shortcut=shortcut,
                on_click=lambda words=words, said=said: misaligned_triage.save(selection, marked, words, form, **said),
                disabled=not marked,
            )
        st.button(
            "Open",
            key=state.widget("misaligned_read"),
            on_click=state.put_in_url,
            kwargs={"item": marked[0] if marked else None, "section": None},
            disabled=len(marked) != 1,
        )
        if not misaligned_triage.draw_last(selection):
            st.caption("To select a row, click its left edge.", width="content")
    golden = label_item.cached_golden(selection.run.golden_id, selection.page.store)
    texts = {item.item_id: tables.one_line(item.target)[:MOST_TEXT] for item in golden.items}
    frame = pd.DataFrame(
        {
            "text": [texts[item_id] for item_id in ids],
            "the judge is": [f"{misaligned_filters.MARKS[item.side]} {tables.gap_words(item)}" for item in shown],
            "gap (SD)": pd.Series([item.gap for item in shown], dtype="float64").abs(),
            "raters": [item.label for item in shown],
            "judge": pd.Series([item.score for item in shown], dtype="float64"),
            "triage": [misaligned_filters.triage_words(triage.get(item_id)) for item_id in ids],
            "note": [triage[item_id].note if item_id in triage else "" for item_id in ids],
            "item": ids,
        }
    )
    number = st.column_config.NumberColumn(format="%.2f", width="small")
    gap_help = "Distance between the standardised score and the standardised label."
    st.dataframe(
        frame,
        key=table_key(ids),
        on_select="rerun",
        selection_mode="multi-row",
        hide_index=True,
        column_config={
            "text": st.column_config.TextColumn(width=420),
            "gap (SD)": st.column_config.NumberColumn(format="%.2f", width="small", help=gap_help),
            "item": None,
            "raters": number,
            "judge": number,
            "triage": st.column_config.TextColumn(width=140),
        },
        height=tables.height_for(ROWS, ROWS),
        placeholder=tables.DASH,
        alt="Calibration items, largest gap first",
    )
    if len(listed) > MOST_LISTED:
        st.caption(f"This list shows the first {MOST_LISTED} of {counted(len(listed), 'item')}.")
