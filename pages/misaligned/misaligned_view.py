"""One misaligned item at a time: the verdict buttons, always in view, over the text, its source and the judge's words.

All of it is one fragment, so a key draws the next item and nothing else of the page.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.misaligned_items import TRIAGE_VERDICTS, ItemScore, Triage, TriageRequest, TriageVerdict
from core.wording import counted
from pages.misaligned import misaligned_filters, misaligned_item
from pages.misaligned.misaligned_filters import FilteredItems
from pages.misaligned.misaligned_selection import Selection, finding
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
    "judge wrong": "The criteria should lead the judge closer to the raters.",
    "label wrong": "Raters should decide the label again.",
    "ambiguous": "The criteria need a rule for items like this one.",
}
SHEET = """
| key | does |
| --- | --- |
| **1** | judge wrong: the criteria should lead it closer to the raters |
| **2** | label wrong: raters should decide it again |
| **3** | ambiguous: the criteria need a rule for such items |
| **P** | pick the item for the next round, or drop it |
| **→** or **J** | next item |
| **←** or **K** | previous item |
| **N** | write a note; **Enter** keeps it, **Esc** leaves it |
| **U** | undo what was said last |
| **?** | this sheet |

A verdict opens the next item without one.
"""


@dataclass(frozen=True, slots=True)
class Last:
    """What was done last in this session: a line that says so, and the entries that Undo takes back."""

    about: tuple[str, str, str]
    said: str
    numbers: Mapping[str, int]
    good: bool = True


@dataclass(frozen=True, slots=True)
class _Desk:
    """The item on the screen, among which others, and what was found on it when it was drawn."""

    selection: Selection
    filtered: FilteredItems
    item: ItemScore
    form: str

    @property
    def known(self) -> Triage | None:
        return self.selection.triage.get(self.item.item_id)

    def key(self, name: str) -> str:
        """Of a widget: of this item alone, so that a press in haste never counts for the item that comes."""
        _, golden_id, aspect = self.selection.about
        return state.widget(f"misaligned_{name}_{golden_id[:12]}_{aspect}_{self.item.item_id}")


@st.fragment
def draw(selection: Selection, sentence: DeltaGenerator) -> None:
    """The item in the link, else the first that waits for a verdict; the finding goes into `sentence`."""
    people.draw_waiting()
    selection = selection.afresh()
    sentence.markdown(finding(selection))
    filtered = misaligned_filters.chosen(selection)
    item = _opened(selection, filtered)
    if item is None:
        st.info("No item passes these filters. Loosen one under Filter.", icon=":material/filter_alt_off:")
        return
    desk = _Desk(selection, filtered, item, uuid.uuid4().hex)
    with st.container(key=state.widget("misaligned_bar"), gap="xsmall"):
        _draw_heading(desk)
        _draw_buttons(desk)
    misaligned_item.draw(selection.page, selection.run, selection.criteria.criteria_id, item, lambda: _draw_note(desk))
    _KEYS(key=state.widget("misaligned_focus"), data={"turn": desk.form})
    ahead = {filtered.after(item.item_id, selection.triage), filtered.neighbour(item.item_id, 1) or item.item_id}
    misaligned_item.fetch_ahead(selection.page, selection.run, selection.criteria.criteria_id, ahead)


def _opened(selection: Selection, filtered: FilteredItems) -> ItemScore | None:
    wanted = state.url_id("item")
    by_id = selection.scored.by_id
    if wanted and wanted not in by_id:
        st.warning(
            "The linked item is no calibration item that this run scored: it is held out, unlabelled or unknown.",
            icon=":material/link_off:",
        )
    if wanted in by_id:
        return by_id[wanted]
    first = filtered.first_waiting(selection.triage) or next((item.item_id for item in filtered.items), None)
    if first is None:
        return None
    if not wanted:
        state.put_in_url(item=first)
    return by_id[first]


# ── the bar ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_heading(desk: _Desk) -> None:
    """On which side the judge errs, both numbers, who has said what of it; then what was done last, with its undo."""
    place, n, known = desk.filtered.place(desk.item.item_id), len(desk.filtered.items), desk.known
    about = "not in this list" if place is None else f"{place + 1} of {n:,}"
    if known is not None:
        what = ", ".join(words for words in (known.verdict, "picked" if known.picked else "") if words) or "noted"
        about += plain(f" · {known.actor or 'Somebody'}: {what}, {tables.ago(known.at)}")
    with st.container(
        key=state.widget("misaligned_heading"), horizontal=True, vertical_alignment="center", gap="small"
    ):
        st.markdown(misaligned_item.heading(desk.item), width="content")
        st.caption(about, width="content")
        _draw_last(desk)


def _draw_last(desk: _Desk) -> None:
    """What was done last, with its undo; or why the buttons are off."""
    last, gate = st.session_state.get(state.MISALIGNED_LAST), people.gate(desk.selection.page, "annotator")
    if gate["disabled"]:
        st.markdown(f":orange[{plain(str(gate['help']))}]", width="content")
    elif isinstance(last, Last) and last.about == desk.selection.about:
        st.markdown(f":{'gray' if last.good else 'orange'}[{plain(last.said)}]", width="content")
        if last.numbers:
            st.button("Undo", key=desk.key("undo"), shortcut="U", on_click=_undo, args=(desk, last))


def _draw_buttons(desk: _Desk) -> None:
    known = desk.known
    picked = known is not None and known.picked
    presses = state.widget("misaligned_presses")
    with st.container(key=presses, horizontal=True, gap="small", vertical_alignment="center"):
        for place, verdict in enumerate(TRIAGE_VERDICTS, 1):
            main = known is not None and known.verdict == verdict
            people.button(
                desk.selection.page,
                "annotator",
                verdict.capitalize(),
                help=MEANINGS[verdict],
                key=desk.key(f"verdict{place}"),
                type="primary" if main else "secondary",
                shortcut=str(place),
                on_click=_judge,
                args=(desk, verdict),
            )
        people.button(
            desk.selection.page,
            "annotator",
            "Picked" if picked else "Pick",
            help="The next round of refining learns from it.",
            key=desk.key("pick"),
            icon=":material/bookmark_added:" if picked else ":material/bookmark_add:",
            shortcut="P",
            on_click=_pick,
            args=(desk, not picked),
        )
        for label, name, key, step in (("Previous", "previous", "Left", -1), ("Next", "next", "Right", 1)):
            to = desk.filtered.neighbour(desk.item.item_id, step)
            off = to in (None, desk.item.item_id)
            st.button(label, key=desk.key(name), shortcut=key, on_click=_go, args=(desk, to), disabled=off)
        with st.popover("Keys **?**", key=state.widget("misaligned_keys")):
            st.markdown(SHEET)


def _draw_note(desk: _Desk) -> None:
    """A note on the item, and where a wrong label goes."""
    known, gate = desk.known, people.gate(desk.selection.page, "annotator")
    note = known.note if known is not None else ""
    key = f"{desk.key('note')}_{zlib.crc32(note.encode())}"
    st.text_input(
        "Note",
        value=note,
        key=key,
        max_chars=2_000,
        placeholder="Note (N), if you like; Enter keeps it",
        label_visibility="collapsed",
        disabled=gate["disabled"],
        on_change=people.once_named(desk.selection.page, lambda: _note(desk, key)),
    )
    if known is not None and known.verdict == "label wrong":
        misaligned_item.link_to_decide(desk.selection.page, known)


# ── what a press does ────────────────────────────────────────────────────────────────────────────────────────────


def _judge(desk: _Desk, verdict: TriageVerdict) -> None:
    """Keeps the verdict and opens the next item without one."""
    if _save(desk, verdict, verdict=verdict):
        state.put_in_url(item=desk.filtered.after(desk.item.item_id, desk.selection.triage))


def _pick(desk: _Desk, picked: bool) -> None:
    _save(desk, "picked for the next round" if picked else "no longer picked", picked=picked)


def _note(desk: _Desk, key: str) -> None:
    _save(desk, "note kept", note=str(st.session_state[key]))


def _go(desk: _Desk, item_id: str) -> None:
    state.put_in_url(item=item_id)


def _save(desk: _Desk, words: str, **said: Any) -> bool:
    """Keeps what was said of the item, the rest as it stands by now; says so in the bar."""
    about = desk.selection.about
    number = 0 if desk.known is None else desk.known.number
    mine = st.session_state.get(state.MISALIGNED_LAST)
    if isinstance(mine, Last) and mine.about == about:  # a note and a button pressed in one breath
        number = max(number, mine.numbers.get(desk.item.item_id, 0))
    try:
        number = projects.save_triage(
            desk.selection.page.store,
            about[0],
            desk.item.item_id,
            TriageRequest(about[1], about[2], desk.selection.criteria.criteria_id, **said),
            form=f"triage:{desk.form}:{words}",
            seen=number,
        )
    except ConcordError as error:
        remember(desk.selection, f"Nothing was saved: {error}", {}, good=False)
        return False
    remember(desk.selection, f"{desk.item.item_id}: {words}.", {desk.item.item_id: number})
    return True


def remember(selection: Selection, said: str, numbers: Mapping[str, int], *, good: bool = True) -> None:
    """What the bar says was done last."""
    st.session_state[state.MISALIGNED_LAST] = Last(selection.about, said, numbers, good)


def _undo(desk: _Desk, last: Last) -> None:
    undo(desk.selection, last)
    if len(last.numbers) == 1:
        state.put_in_url(item=next(iter(last.numbers)))


def undo(selection: Selection, last: Last) -> None:
    """Takes back what was done last, item by item; what somebody else has changed since stays."""
    project_id, golden_id, aspect = last.about
    kept = []
    for item_id, number in last.numbers.items():
        try:
            projects.undo_triage(
                selection.page.store, project_id, golden_id, aspect=aspect, item_id=item_id, number=number
            )
        except ConcordError as error:
            kept.append(f"{item_id}: {error}")
    n = len(last.numbers) - len(kept)
    said = f"Taken back: {last.said}" if len(last.numbers) == 1 else f"Taken back on {counted(n, 'item')}."
    remember(selection, " ".join(["Not taken back:", *kept]) if kept else said, {}, good=not kept)
