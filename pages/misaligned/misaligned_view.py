"""Draw one misaligned item at a time: verdict buttons above the text, its source and the judge's reasons.

The view is a fragment, so a key press redraws only the item.
"""

from __future__ import annotations

import uuid
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from core.projects.labelling import TRIAGE_VERDICTS, TriageVerdict
from core.projects.misaligned_items import ItemScore
from pages.misaligned import misaligned_filters, misaligned_item, misaligned_triage
from pages.misaligned.misaligned_selection import Selection, draw_finding
from pages.ui import people, state, tables
from pages.ui.screens import plain

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


_FILE = Path(__file__).with_name("misaligned_keys.js")
_KEYS = st.components.v2.component(
    "concord_misaligned_keys",
    js=_FILE.read_text("utf-8"),
    css=_FILE.with_suffix(".css").read_text("utf-8"),
    isolate_styles=False,
)
MEANINGS: dict[TriageVerdict, str] = {
    "judge wrong": "The raters are right. Improve the criteria.",
    "label wrong": "The raters should label this text again.",
    "ambiguous": "The judge or the raters could be right. The criteria need a rule for items like this one.",
}
SHEET = """
| Key | Action |
| --- | --- |
| **1** **2** **3** | mark *judge wrong*, *label wrong*, *ambiguous*; open the next item that has no verdict |
| **P** | pick the item for the next round, or remove the pick |
| **→** or **J** | next item |
| **←** or **K** | previous item |
| **N** | write a note, then press **Enter** to save it or **Esc** to leave the field |
| **U** | undo the last verdict, pick or note |
"""


@st.fragment
def draw(selection: Selection, sentence: DeltaGenerator) -> None:
    """Draw the item named in the URL, else the first item without a verdict.

    The finding is drawn in the placeholder `sentence`.
    """
    people.rerun_with_dialog()
    selection = selection.afresh()
    draw_finding(selection, sentence)
    listed = misaligned_filters.listed(selection)
    item = _opened(selection, listed)
    if item is None:
        st.info("No items match these filters. To change the filters, open Filter.", icon=":material/filter_alt_off:")
        return
    page, form = selection.page, uuid.uuid4().hex
    known, ids = selection.triage.get(item.item_id), [each.item_id for each in listed]
    place = ids.index(item.item_id) if item.item_id in ids else None
    later = ids if place is None else [*ids[place + 1 :], *ids[:place]]
    next_waiting = next((each for each in later if _waits(selection, each)), item.item_id)

    def key(name: str) -> str:
        """Return a widget key unique to this item, so that a late key press never counts for the next item."""
        _, golden_id, aspect = selection.about
        return state.widget(f"misaligned_{name}_{golden_id[:12]}_{aspect}_{item.item_id}")

    def judge(verdict: TriageVerdict) -> None:
        if misaligned_triage.save(selection, [item.item_id], verdict, form + verdict, verdict=verdict):
            state.put_in_url(item=next_waiting)

    def pick(picked: bool) -> None:
        words = "picked for the next round" if picked else "no longer picked"
        misaligned_triage.save(selection, [item.item_id], words, form + words, picked=picked)

    def note() -> None:
        misaligned_triage.save(selection, [item.item_id], "note saved", f"{form}note", note=st.session_state[note_key])

    with st.container(key=state.widget("misaligned_bar"), gap="xsmall"):
        _draw_heading(selection, item, "not in this list" if place is None else f"{place + 1} of {len(ids):,}")
        with st.container(
            key=state.widget("misaligned_presses"), horizontal=True, gap="small", vertical_alignment="center"
        ):
            for number, verdict in enumerate(TRIAGE_VERDICTS, 1):
                people.button(
                    page,
                    "annotator",
                    verdict.capitalize(),
                    help=MEANINGS[verdict],
                    key=key(f"verdict{number}"),
                    type="primary" if known is not None and known.verdict == verdict else "secondary",
                    shortcut=str(number),
                    on_click=judge,
                    args=(verdict,),
                )
            picked = known is not None and known.picked
            people.button(
                page,
                "annotator",
                "Picked" if picked else "Pick",
                help="Use this item in the next refinement round.",
                key=key("pick"),
                icon=":material/bookmark_added:" if picked else ":material/bookmark_add:",
                shortcut="P",
                on_click=pick,
                args=(not picked,),
            )
            ahead = {next_waiting}
            for label, shortcut, step in (("Previous", "Left", -1), ("Next", "Right", 1)):
                at = 0 if place is None else place + step
                to = ids[at] if 0 <= at < len(ids) else item.item_id
                st.button(
                    label,
                    key=key(label.lower()),
                    shortcut=shortcut,
                    on_click=state.put_in_url,
                    kwargs={"item": to},
                    disabled=to == item.item_id,
                )
                ahead.add(to)
            with st.popover("Keys **?**", key=state.widget("misaligned_keys")):
                st.markdown(SHEET)
    written = known.note if known is not None else ""
    note_key = f"{key('note')}_{zlib.crc32(written.encode())}"

    def draw_note() -> None:
        st.text_input(
            "Note",
            value=written,
            key=note_key,
            max_chars=2_000,
            placeholder="Optional note (N); press Enter to save",
            label_visibility="collapsed",
            disabled=people.gate(page, "annotator")["disabled"],
            on_change=people.once_named(page, note),
        )
        if known is not None and known.verdict == "label wrong":
            misaligned_item.link_to_decide(page, known)

    misaligned_item.draw(page, selection.run, selection.criteria.criteria_id, item, draw_note)
    _KEYS(key=state.widget("misaligned_focus"), data={"turn": form})
    misaligned_item.fetch_ahead(page, selection.run, selection.criteria.criteria_id, ahead)


def _draw_heading(selection: Selection, item: ItemScore, place: str) -> None:
    """Draw the item's figures and position, its triage, the last action, and why buttons are disabled."""
    known, gate = selection.triage.get(item.item_id), people.gate(selection.page, "annotator")
    key = state.widget("misaligned_heading")
    with st.container(key=key, horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(misaligned_item.heading(item), width="content")
        if known is not None:
            said = f"{known.actor or 'Someone'}: {misaligned_filters.triage_words(known)}, {tables.when(known.at)}"
            place += f" · {plain(said)}"
        st.caption(place, width="content")
        if gate["disabled"]:
            st.markdown(f":orange[{plain(str(gate['help']))}]", width="content")
        else:
            misaligned_triage.draw_last(selection)


def _waits(selection: Selection, item_id: str) -> bool:
    known = selection.triage.get(item_id)
    return known is None or not known.verdict


def _opened(selection: Selection, listed: tuple[ItemScore, ...]) -> ItemScore | None:
    wanted = state.url_id("item")
    if wanted and (item := selection.scored.by_id.get(wanted)) is not None:
        return item
    if wanted:
        st.warning(
            "The item in your link isn't a calibration item in this run. It is held out, unlabelled or unknown.",
            icon=":material/link_off:",
        )
    first = next((item for item in listed if _waits(selection, item.item_id)), next(iter(listed), None))
    if first is not None and not wanted:
        state.put_in_url(item=first.item_id)
    return first
