"""Which misaligned items are listed: filters that stand in the link, so that it opens the same list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain, islice
from urllib.parse import parse_qs, urlencode

import streamlit as st

from core.projects.misaligned_items import MISALIGNED_FROM, TRIAGE_VERDICTS, GapSide, ItemScore, ScoredItems, Triage
from pages.misaligned.misaligned_selection import NOW_ALIGNED, NOW_MISALIGNED, Selection
from pages.ui import state, tables

SIDES: tuple[GapSide, ...] = ("too lenient", "too strict", "aligned", "unread")
MARKS: dict[GapSide, str] = {"too lenient": "▲", "too strict": "▼", "aligned": "●", "unread": "?"}
"""Shapes that tell the sides apart without colour."""
MISALIGNED = SIDES[:2]
NOT_YET, PICKED = "not yet", "picked"
FOUND = (NOT_YET, *TRIAGE_VERDICTS, PICKED)
KNOWN: Mapping[str, Sequence[str]] = {"sides": SIDES, "changed": (NOW_ALIGNED, NOW_MISALIGNED), "found": FOUND}


@dataclass(frozen=True)
class FilteredItems:
    """The items that pass the filters, largest gap first."""

    items: tuple[ItemScore, ...]

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {item.item_id: place for place, item in enumerate(self.items)}

    def place(self, item_id: str) -> int | None:
        """The place from 0; None for an item that is not listed."""
        return self._places.get(item_id)

    def neighbour(self, item_id: str, step: int) -> str | None:
        """The listed item `step` places on; None beyond an end.  From an unlisted item, the first."""
        place = self.place(item_id)
        at = 0 if place is None else place + step
        return self.items[at].item_id if 0 <= at < len(self.items) else None

    def first_waiting(self, triage: Mapping[str, Triage], start: int = 0, *, but: str = "") -> str | None:
        """The next listed item without a verdict from place `start` on, then from the top."""
        ids = (item.item_id for item in chain(islice(self.items, start, None), islice(self.items, start)))
        return next((k for k in ids if k != but and (k not in triage or not triage[k].verdict)), None)

    def after(self, item_id: str, triage: Mapping[str, Triage]) -> str:
        """The next listed item without a verdict, then from the top; the same item if none is left."""
        place = self.place(item_id)
        return self.first_waiting(triage, 0 if place is None else place + 1, but=item_id) or item_id


@dataclass(frozen=True)
class Filters:
    """What is listed.  An empty tuple lets everything pass; `sides` begin with the misaligned ones."""

    sides: tuple[str, ...] = MISALIGNED
    changed: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> Filters:
        """Read filters from a link; leave out what makes no sense."""
        said = parse_qs(text, keep_blank_values=True)
        given = {
            field.name: tuple(one for one in said[field.name] if one and one in KNOWN.get(field.name, (one,)))
            for field in fields(cls)
            if field.name in said
        }
        return cls(**given)

    def write(self) -> str:
        """The form in a link; empty where nothing was changed."""
        usual = Filters()
        pairs = [
            (field.name, name)
            for field in fields(self)
            if getattr(self, field.name) != getattr(usual, field.name)
            for name in getattr(self, field.name) or ("",)
        ]
        return urlencode(pairs)

    def apply(
        self, scored: ScoredItems, triage: Mapping[str, Triage], changes: Mapping[str, str] | None
    ) -> FilteredItems:
        def passes(item: ItemScore) -> bool:
            known = triage.get(item.item_id)
            found = {NOT_YET} if known is None else {known.verdict or NOT_YET, *([PICKED] if known.picked else [])}
            return (
                (not self.sides or item.side in self.sides)
                and (not self.changed or (changes or {}).get(item.item_id) in self.changed)
                and (not self.found or bool(found & set(self.found)))
                and (not self.systems or item.system_id in self.systems)
            )

        return FilteredItems(scored.misaligned if self == Filters() else tuple(filter(passes, scored)))


def chosen(selection: Selection) -> FilteredItems:
    """The items that pass the filters in the link."""
    return Filters.read(state.url_id("filter") or "").apply(selection.scored, selection.triage, selection.changes)


def draw(selection: Selection) -> None:
    """Draw the filters behind a button; each change goes into the link."""
    filters, scored, changes = Filters.read(state.url_id("filter") or ""), selection.scored, selection.changes
    counts = scored.counts
    options: dict[str, tuple[str, Mapping[str, str]]] = {
        "sides": ("The judge is", {side: f"{MARKS[side]} {side} ({counts[side]})" for side in SIDES if counts[side]}),
        "found": ("Triage", {name: name for name in FOUND}),
        "systems": ("System", {name: name for name in sorted({item.system_id for item in scored} - {""})}),
    }
    if changes is not None:
        times = {name: sum(change == name for change in changes.values()) for name in KNOWN["changed"]}
        options["changed"] = ("Since the parent version", {name: f"{name} ({n})" for name, n in times.items()})
    is_usual = filters == Filters()
    icon = ":material/filter_alt:" if is_usual else ":material/tune:"
    with st.popover("Filter" if is_usual else "Filter: on", icon=icon, key=state.widget("misaligned_filter")):
        for name, (label, words) in options.items():
            key = state.widget(f"misaligned_{name}")
            st.session_state[key] = [option for option in getattr(filters, name) if option in words]
            look = {"format_func": words.__getitem__, "key": key, "on_change": _put, "args": (name, key)}
            if name == "systems" and words:
                st.multiselect(label, list(words), placeholder="all", **look)  # type: ignore[arg-type]
            elif name != "systems":
                st.pills(label, list(words), selection_mode="multi", **look)  # type: ignore[call-overload]
        if not is_usual:
            st.button("Show all misaligned items", key=state.widget("misaligned_all"), on_click=_set, args=(Filters(),))
        st.caption(f"Under {MISALIGNED_FROM:g} standard deviations of each side counts as aligned. Largest gap first.")


def _set(filters: Filters) -> None:
    state.put_in_url(filter=filters.write() or None)


def _put(name: str, key: str) -> None:
    """Set the field `name` of the filters to what its widget says."""
    _set(replace(Filters.read(state.url_id("filter") or ""), **{name: tuple(st.session_state[key])}))


def triage_words(triage: Triage | None) -> str:
    """What was found, in a cell of a table."""
    if triage is None:
        return ""
    return ", ".join(words for words in (triage.verdict, PICKED if triage.picked else "") if words) or tables.DASH
