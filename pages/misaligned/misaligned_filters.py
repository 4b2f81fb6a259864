"""Filters of misaligned items, kept in the URL so that a link opens the same list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from urllib.parse import parse_qs, urlencode

import streamlit as st

from core.projects.labelling import TRIAGE_VERDICTS, Triage
from core.projects.misaligned_items import MISALIGNED_FROM, GapSide, ItemScore, ScoredItems
from pages.misaligned.misaligned_selection import NOW_ALIGNED, NOW_MISALIGNED, Selection
from pages.ui import state, tables

MARKS: dict[GapSide, str] = {"too lenient": "▲", "too strict": "▼", "aligned": "●", "unread": "?"}
"""Shapes that distinguish the sides without colour."""
NOT_YET, PICKED = "not yet", "picked"
KNOWN: Mapping[str, Sequence[str]] = {
    "sides": tuple(MARKS),
    "found": (NOT_YET, *TRIAGE_VERDICTS, PICKED),
    "changed": (NOW_ALIGNED, NOW_MISALIGNED),
}
LABELS = {
    "sides": "The judge is",
    "found": "Triage",
    "changed": "Compared with the parent version",
    "systems": "System",
}


@dataclass(frozen=True)
class Filters:
    """The active filters. An empty tuple filters nothing; by default, `sides` selects the misaligned items."""

    sides: tuple[str, ...] = ("too lenient", "too strict")
    found: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()

    @classmethod
    def in_url(cls) -> Filters:
        """Read the filters from the URL, ignoring invalid values."""
        given = parse_qs(state.url_id("filter") or "", keep_blank_values=True)
        chosen = {name: [one for one in values if one in KNOWN.get(name, values)] for name, values in given.items()}
        known = {field.name for field in fields(cls)}
        return cls(**{name: tuple(filter(None, values)) for name, values in chosen.items() if name in known})

    def put_in_url(self) -> None:
        """Put all filters that differ from their defaults into the URL."""
        pairs = [
            (field.name, getattr(self, field.name) or ("",))
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        state.put_in_url(filter=urlencode(pairs, doseq=True) or None)

    def apply(
        self, scored: ScoredItems, triage: Mapping[str, Triage], changes: Mapping[str, str] | None
    ) -> tuple[ItemScore, ...]:
        """Return the items that match all filters, largest gap between score and label first."""

        def passes(item: ItemScore) -> bool:
            known = triage.get(item.item_id)
            found = {NOT_YET} if known is None else {known.verdict or NOT_YET, *([PICKED] if known.picked else [])}
            return (
                (not self.sides or item.side in self.sides)
                and (not self.found or bool(found & set(self.found)))
                and (not self.changed or (changes or {}).get(item.item_id) in self.changed)
                and (not self.systems or item.item.system_id in self.systems)
            )

        return tuple(filter(passes, scored))


def listed(selection: Selection) -> tuple[ItemScore, ...]:
    """Return the items that match the filters in the URL, largest gap between score and label first."""
    return Filters.in_url().apply(selection.scored, selection.triage, selection.changes)


def draw(selection: Selection) -> None:
    """Draw the filters in a popover; each change goes into the URL."""
    filters, scored, changes = Filters.in_url(), selection.scored, selection.changes
    options: dict[str, Mapping[str, str]] = {
        "sides": {
            side: f"{mark} {side} ({scored.counts[side]})" for side, mark in MARKS.items() if scored.counts[side]
        },
        "found": {name: name for name in KNOWN["found"]},
        "systems": {name: name for name in sorted({each.item.system_id for each in scored} - {""})},
    }
    if changes is not None:
        said = list(changes.values())
        options["changed"] = {name: f"{name} ({said.count(name)})" for name in KNOWN["changed"]}

    def put(name: str, key: str) -> None:
        replace(Filters.in_url(), **{name: tuple(st.session_state[key])}).put_in_url()

    usual = filters == Filters()
    icon = ":material/filter_alt:" if usual else ":material/tune:"
    with st.popover("Filter" if usual else "Filter (on)", icon=icon, key=state.widget("misaligned_filter")):
        for name, words in options.items():
            key = state.widget(f"misaligned_{name}")
            st.session_state[key] = [option for option in getattr(filters, name) if option in words]
            look = {"format_func": words.__getitem__, "key": key, "on_change": put, "args": (name, key)}
            if name != "systems":
                st.pills(LABELS[name], list(words), selection_mode="multi", **look)  # type: ignore[call-overload]
            elif words:
                st.multiselect(LABELS[name], list(words), placeholder="all", **look)  # type: ignore[arg-type]
        if not usual:
            st.button("Show all misaligned items", key=state.widget("misaligned_all"), on_click=Filters().put_in_url)
        st.caption(f"Items with a gap below {MISALIGNED_FROM:g} standard deviations count as aligned.")


def triage_words(triage: Triage | None) -> str:
    """Describe the triage of an item in a few words; "" if it has none."""
    if triage is None:
        return ""
    return ", ".join(filter(None, (triage.verdict, PICKED if triage.picked else ""))) or tables.DASH
