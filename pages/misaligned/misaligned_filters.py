"""Which misaligned items are listed, and in which order: filters that stand in the link, so that it opens the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from urllib.parse import parse_qs, urlencode

import streamlit as st

from core.projects.misaligned import MISALIGNED_FROM, TRIAGE_VERDICTS, GapSide, ItemScore, ScoredItems, Triage
from pages.misaligned.misaligned_selection import NOW_ALIGNED, NOW_MISALIGNED, Selection
from pages.ui import state, tables

SIDES: tuple[GapSide, ...] = ("too lenient", "too strict", "aligned", "unread")
MARKS: dict[GapSide, str] = {"too lenient": "▲", "too strict": "▼", "aligned": "●", "unread": "?"}
"""Shapes, the same in the plot: told apart without colour."""
MISALIGNED = SIDES[:2]
STANDARDISED, RANKS = "standardised gap", "gap in places"
NOT_YET, PICKED = "not yet", "picked"
FOUND = (NOT_YET, *TRIAGE_VERDICTS, PICKED)


@dataclass(frozen=True)
class FilteredItems:
    """The items that pass the filters, in their order."""

    items: tuple[ItemScore, ...]
    order: str

    def gap_of(self, item: ItemScore) -> float | None:
        return item.gap if self.order == STANDARDISED else item.rank_gap

    @property
    def gap_format(self) -> str:
        return "%+.2f" if self.order == STANDARDISED else "%+.1f"

    @property
    def gap_help(self) -> str:
        if self.order == STANDARDISED:
            return "in standard deviations of each side; above 0: too lenient"
        return "how many places higher the judge ranks the item than the people do; ties share their middle place"

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {item.item_id: place for place, item in enumerate(self.items)}

    def place(self, item_id: str) -> int | None:
        """From 0; None where the item is not listed."""
        return self._places.get(item_id)

    def beside(self, item_id: str, step: int) -> str | None:
        """The listed item so many places on; None beyond an end.  From an item that is not listed to the first."""
        place = self.place(item_id)
        at = 0 if place is None else place + step
        return self.items[at].item_id if 0 <= at < len(self.items) else None

    def first_waiting(self, triage: Mapping[str, Triage], start: int = 0, *, but: str = "") -> str | None:
        """The next listed item without a verdict from place `start` on, from the top again after the last."""
        ids = (item.item_id for item in chain(islice(self.items, start, None), islice(self.items, start)))
        return next((k for k in ids if k != but and (k not in triage or not triage[k].verdict)), None)

    def after(self, item_id: str, triage: Mapping[str, Triage]) -> str:
        """The next listed item without a verdict, from the top again after the last; the same where none is left."""
        place = self.place(item_id)
        return self.first_waiting(triage, 0 if place is None else place + 1, but=item_id) or item_id


@dataclass(frozen=True)
class Filters:
    """What is listed.  Empty tuples and None let everything pass; `sides` begin with the misaligned ones."""

    sides: tuple[str, ...] = MISALIGNED
    changed: str = ""
    found: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    order: str = STANDARDISED

    @classmethod
    def read(cls, text: str) -> Filters:
        """From a link; what makes no sense is left out."""
        said = parse_qs(text, keep_blank_values=True)

        def names(key: str, known: Sequence[str] | None = None) -> tuple[str, ...]:
            return tuple(name for name in said.get(key, ()) if name and (known is None or name in known))

        changed, order = (said.get(key, [""])[0] for key in ("changed", "order"))
        return cls(
            sides=names("side", SIDES) if "side" in said else MISALIGNED,
            changed=changed if changed in (NOW_ALIGNED, NOW_MISALIGNED) else "",
            found=names("found", FOUND),
            sources=names("source"),
            systems=names("system"),
            low=_number(said.get("from", [""])[0]),
            high=_number(said.get("to", [""])[0]),
            order=RANKS if order == RANKS else STANDARDISED,
        )

    def write(self) -> str:
        """As it stands in a link; empty where nothing was changed."""
        said: list[tuple[str, str]] = []
        if self.sides != MISALIGNED:
            said += [("side", side) for side in self.sides or ("",)]
        pairs = (("found", self.found), ("source", self.sources), ("system", self.systems))
        said += [(key, name) for key, names in pairs for name in names]
        numbers = (("from", self.low), ("to", self.high))
        said += [(key, f"{value:g}") for key, value in numbers if value is not None]
        said += [("changed", self.changed)] if self.changed else []
        said += [("order", self.order)] if self.order != STANDARDISED else []
        return urlencode(said)

    def apply(
        self, scored: ScoredItems, triage: Mapping[str, Triage], changes: Mapping[str, str] | None
    ) -> FilteredItems:
        if self == Filters():
            return FilteredItems(scored.misaligned, self.order)
        unsorted = FilteredItems((), self.order)
        items = [item for item in scored if self._passes(item, triage.get(item.item_id), changes or {})]
        return replace(unsorted, items=tuple(sorted(items, key=lambda item: -abs(unsorted.gap_of(item) or 0.0))))

    def _passes(self, item: ItemScore, known: Triage | None, changes: Mapping[str, str]) -> bool:
        return (
            (not self.sides or item.side in self.sides)
            and (not self.changed or changes.get(item.item_id) == self.changed)
            and (not self.found or bool(_found(known) & set(self.found)))
            and (not self.sources or item.source_id in self.sources)
            and (not self.systems or item.system_id in self.systems)
            and (self.low is None or item.label >= self.low)
            and (self.high is None or item.label <= self.high)
        )


def _found(known: Triage | None) -> set[str]:
    """The words of `FOUND` that are true of an item."""
    if known is None:
        return {NOT_YET}
    return {known.verdict or NOT_YET} | ({PICKED} if known.picked else set())


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


# ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────


def chosen(selection: Selection) -> FilteredItems:
    """The items that pass the filters in the link."""
    return Filters.read(state.url_id("filter") or "").apply(selection.scored, selection.triage, selection.changes)


def draw(selection: Selection) -> None:
    """The filters behind a button; each change goes into the link."""
    filters, scored = Filters.read(state.url_id("filter") or ""), selection.scored
    label, icon = ("Filter", ":material/filter_alt:") if filters == Filters() else ("Filter: on", ":material/tune:")
    with st.popover(label, icon=icon, key=state.widget("misaligned_filter")):
        counts = scored.counts
        _many("The judge is", "sides", filters.sides, {s: f"{MARKS[s]} {s} ({counts[s]})" for s in SIDES if counts[s]})
        if (changes := selection.changes) is not None:
            names = {"": "all"} | {
                name: f"{name} ({sum(change == name for change in changes.values())})"
                for name in (NOW_ALIGNED, NOW_MISALIGNED)
            }
            _one("Since the parent version", "changed", filters.changed, names)
        _many("Triage", "found", filters.found, {name: name for name in FOUND})
        _names("Source", "sources", filters.sources, sorted({item.source_id for item in scored}))
        _names("System", "systems", filters.systems, sorted({item.system_id for item in scored if item.system_id}))
        _labels(filters, scored)
        _one("Order by", "order", filters.order, {STANDARDISED: STANDARDISED, RANKS: RANKS})
        if filters != Filters():
            st.button("Show all misaligned items", key=state.widget("misaligned_all"), on_click=_set, args=(Filters(),))
        st.caption(f"Under {MISALIGNED_FROM:g} standard deviations of each side counts as aligned. Largest gap first.")


def _set(filters: Filters) -> None:
    state.put_in_url(filter=filters.write() or None)


def _put(name: str, key: str) -> None:
    """What was chosen in a widget, as the field `name` of the filters."""
    value = st.session_state[key]
    value = tuple(value) if isinstance(value, list) else value or ""
    _set(replace(Filters.read(state.url_id("filter") or ""), **{name: value}))


def _many(label: str, name: str, value: Sequence[str], words: Mapping[str, str]) -> None:
    key = state.widget(f"misaligned_{name}")
    st.session_state[key] = [option for option in value if option in words]
    st.pills(
        label,
        list(words),
        selection_mode="multi",
        format_func=lambda option: words[option],
        key=key,
        on_change=_put,
        args=(name, key),
    )


def _one(label: str, name: str, value: str, words: Mapping[str, str]) -> None:
    key = state.widget(f"misaligned_{name}")
    st.session_state[key] = value
    st.segmented_control(
        label,
        list(words),
        required=True,
        format_func=lambda option: words[option],
        key=key,
        on_change=_put,
        args=(name, key),
    )


def _names(title: str, name: str, value: Sequence[str], names: Sequence[str]) -> None:
    key = state.widget(f"misaligned_{name}")
    if names:
        st.session_state[key] = [option for option in value if option in names]
        st.multiselect(title, names, key=key, placeholder="all", on_change=_put, args=(name, key))


def _labels(filters: Filters, scored: ScoredItems) -> None:
    """A range of labels; nothing where all labels are equal."""
    labels = [item.label for item in scored]
    low, high = min(labels, default=0.0), max(labels, default=0.0)
    if low < high:
        key = state.widget(f"misaligned_label_{low:g}_{high:g}")
        at = (
            max(low, low if filters.low is None else filters.low),
            min(high, high if filters.high is None else filters.high),
        )
        st.session_state[key] = at if at[0] <= at[1] else (low, high)
        st.slider("People's label", low, high, key=key, on_change=_put_labels, args=(key, low, high))


def _put_labels(key: str, lowest: float, highest: float) -> None:
    low, high = st.session_state[key]
    filters = Filters.read(state.url_id("filter") or "")
    _set(replace(filters, low=None if low <= lowest else low, high=None if high >= highest else high))


def triage_words(triage: Triage | None) -> str:
    """What was found, in a cell of a table."""
    if triage is None:
        return ""
    return ", ".join(words for words in (triage.verdict, PICKED if triage.picked else "") if words) or tables.DASH
