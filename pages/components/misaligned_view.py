"""Misaligned items on screen: quarters and list kept in step, the open item, and its triage."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.items import ItemScore
from core.records import Scale
from core.report.figures.misaligned import Middle, Spot, misaligned_figure
from core.review.triage import TRIAGE_VERDICTS, Triage, TriageVerdict
from pages.components import charts, misaligned_filters, misaligned_item, people, state, tables
from pages.components.misaligned_filters import FilteredItems
from pages.components.misaligned_selection import Selection
from pages.components.screens import plain

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


MOST_LISTED, MOST_POINTS = 500, 2_000


def draw(selection: Selection) -> None:
    """The items by size of the gap beside the one that is open."""
    filtered = misaligned_filters.choose(
        selection.scored, selection.triage, selection.changes, selection.criteria.aspect
    )
    wanted = state.url_id("item")
    by_id = {item.item_id: item for item in selection.scored}
    if wanted and wanted not in by_id:
        st.warning(
            "The linked item is no calibration item that this run scored: it is held out, unlabelled or unknown.",
            icon=":material/link_off:",
        )
    opened = wanted if wanted in by_id else next((item.item_id for item in filtered.items), None)
    if opened is not None and opened != wanted and (not wanted or wanted in by_id):
        state.put_in_url(item=opened)
    left, right = st.columns(2, gap="medium")
    with left:
        _draw_quarters(selection, filtered, opened)
        _draw_list(selection, filtered, opened)
    with right:
        if opened is None:
            st.info("No item passes these filters. Loosen one.", icon=":material/filter_alt_off:")
            return
        _draw_triage(selection, filtered, by_id[opened])
        misaligned_item.draw(selection.page, selection.run, selection.criteria.criteria_id, by_id[opened])


def _draw_quarters(selection: Selection, filtered: FilteredItems, opened: str | None) -> None:
    known = [item for item in selection.scored if item.score is not None]
    if not known:
        return
    shown = tuple(item for item in filtered.items if item.score is not None)[:MOST_POINTS]
    triaged = tuple(item.item_id in selection.triage for item in shown)
    key = (selection.run.run_id, selection.criteria.criteria_id, tuple(item.item_id for item in shown), triaged, opened)
    scale = projects.get_golden(selection.page.store, selection.run.golden_id).aspect(selection.run.aspect)
    assert scale is not None  # the run scored this aspect
    ids = [item.item_id for item in shown]
    st.plotly_chart(
        _figure(key, known, shown, scale.scale),
        key=state.widget("misaligned_quarters"),
        config=charts.CONFIG,
        theme=None,
        on_select=lambda: _pick_point(ids),
        selection_mode="points",
        alt="Judge against people, a point an item; the list below holds the same items",
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def _figure(
    key: tuple[str, str, tuple[str, ...], tuple[bool, ...], str | None],
    _known: Sequence[ItemScore],
    _shown: Sequence[ItemScore],
    _scale: Scale,
) -> Figure:
    labels = np.array([item.label for item in _known])
    scores = np.array([np.nan if item.score is None else item.score for item in _known])
    spots = [
        Spot(
            item.item_id,
            item.label,
            float("nan") if item.score is None else item.score,
            tables.gap_words(item),
            triaged,
        )
        for item, triaged in zip(_shown, key[3], strict=True)
    ]
    return misaligned_figure(spots, Middle.of(labels, scores, tables.ALIGNED_GAP), _scale, opened=key[4] or "")


def _pick_point(ids: Sequence[str]) -> None:
    chosen = st.session_state[state.widget("misaligned_quarters")]["selection"]["points"]
    place = int(chosen[0]["customdata"][0]) if chosen else -1
    if 0 <= place < len(ids):
        state.put_in_url(item=ids[place])


def _pick_row() -> None:
    item_id = state.picked_row(state.MISALIGNED, state.MISALIGNED_IDS)
    if item_id is not None:
        state.put_in_url(item=item_id)


def _draw_list(selection: Selection, filtered: FilteredItems, opened: str | None) -> None:
    shown = filtered.items[:MOST_LISTED]
    ids = [item.item_id for item in shown]
    state.hold_row(state.MISALIGNED, state.MISALIGNED_IDS, ids, opened)
    number = st.column_config.NumberColumn(format="%.2f", width=62)
    st.dataframe(
        _frame(shown, filtered, selection.triage),
        key=state.MISALIGNED,
        on_select=_pick_row,
        selection_mode="single-row",
        hide_index=True,
        selection_default={"selection": {"rows": [ids.index(opened)] if opened in ids else []}},
        column_config={
            "item": st.column_config.TextColumn(width=118),
            "gap": st.column_config.NumberColumn(format=filtered.gap_format, width=58, help=filtered.gap_help),
            "the judge is": st.column_config.TextColumn(width=86),
            "triage": st.column_config.TextColumn(width=132),
            "people": number,
            "judge": number,
        },
        height=tables.height_for(len(ids), 9),
        placeholder=tables.DASH,
        alt="Calibration items, largest gap first",
    )
    more = f" The first {MOST_LISTED} are listed." if len(filtered.items) > MOST_LISTED else ""
    st.caption(f"{tables.count_words(len(filtered.items), 'item')}, {filtered.order_words}.{more}")


def _frame(shown: Sequence[ItemScore], filtered: FilteredItems, triage: Mapping[str, Triage]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "item": [item.item_id for item in shown],
            "gap": pd.Series([filtered.gap_of(item) for item in shown], dtype="float64"),
            "the judge is": [tables.gap_words(item) for item in shown],
            "triage": [_triage_words(triage.get(item.item_id)) for item in shown],
            "people": [item.label for item in shown],
            "judge": pd.Series([item.score for item in shown], dtype="float64"),
        }
    )


def _triage_words(triage: Triage | None) -> str:
    return "" if triage is None else f"{triage.verdict}, picked" if triage.picked else triage.verdict


@dataclass(frozen=True, slots=True)
class _Sheet:
    """The form of one item: `key` begins the keys of its widgets; of presses with one `form` the first counts.

    `seen` is the number of the triage that it shows, 0 for none.
    """

    selection: Selection
    item_id: str
    key: str
    form: str
    seen: int


def _draw_triage(selection: Selection, filtered: FilteredItems, item: ItemScore) -> None:
    """Three buttons, a note and the pick; a press saves and opens the next item."""
    known = selection.triage.get(item.item_id)
    key = state.widget(f"triage_{selection.run.golden_id[:12]}_{selection.run.aspect}_{item.item_id}")
    form = st.session_state.setdefault(f"{key}_form", uuid.uuid4().hex)
    sheet = _Sheet(selection, item.item_id, key, form, 0 if known is None else known.number)
    with st.container(border=True):
        misaligned_item.draw_heading(item)
        with st.container(horizontal=True, vertical_alignment="center"):
            for place, verdict in enumerate(TRIAGE_VERDICTS, 1):
                st.button(
                    verdict.capitalize(),
                    key=f"{key}_{place}",
                    shortcut=str(place),
                    type="primary" if known is not None and known.verdict == verdict else "secondary",
                    on_click=_triage,
                    args=(sheet, filtered, verdict),
                    **people.gate(selection.page, "annotator"),
                )
        st.checkbox(
            "Pick for the next round",
            value=known is not None and known.picked,
            key=f"{key}_pick",
            on_change=_pick_known,
            args=(sheet,),
            **people.gate(selection.page, "annotator"),
        )
        st.text_input(
            "Note",
            value="" if known is None else known.note,
            key=f"{key}_note",
            max_chars=2_000,
            placeholder="Note (optional)",
            label_visibility="collapsed",
        )
        if known is None:
            st.caption(misaligned_item.VERDICT_WORDS)
        else:
            misaligned_item.draw_known(selection.page, known)


def _triage(sheet: _Sheet, filtered: FilteredItems, verdict: TriageVerdict) -> None:
    if _save(sheet, verdict):
        state.put_in_url(item=filtered.after(sheet.item_id, sheet.selection.triage))


def _pick_known(sheet: _Sheet) -> None:
    """A pick of an item that was triaged is kept at once; on a fresh item it waits for the verdict."""
    known = sheet.selection.triage.get(sheet.item_id)
    if known is not None:
        _save(sheet, known.verdict)


def _save(sheet: _Sheet, verdict: TriageVerdict) -> bool:
    selection, key = sheet.selection, sheet.key
    try:
        projects.save_triage(
            selection.page.store,
            selection.run.project_id,
            selection.run.golden_id,
            aspect=selection.run.aspect,
            item_id=sheet.item_id,
            subject_id=selection.criteria.criteria_id,
            verdict=verdict,
            note=st.session_state.get(f"{key}_note", ""),
            picked=bool(st.session_state.get(f"{key}_pick")),
            form=f"triage:{sheet.form}",
            seen=sheet.seen,
        )
    except ConcordError as error:
        state.leave_notice(f"Nothing was saved: {error}", good=False)
        return False
    st.session_state.pop(f"{key}_form", None)
    again = "To undo it, open the item and triage it again."
    st.toast(plain(f"{sheet.item_id}: {verdict}. {again}"), icon=":material/check:")
    return True
