"""Which misaligned items are listed, and in which order: filters by side, group, label, triage and what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from core.projects.items import ItemScore
from core.review.triage import TRIAGE_VERDICTS, Triage
from pages.components import state, tables
from pages.components.misaligned_selection import NOW_ALIGNED, NOW_MISALIGNED

SIDES = ("too lenient", "too strict", "aligned", "unread")
STANDARDISED, RANKS = "standardised gap", "gap in places"
NOT_YET, PICKED = "not yet", "picked"

Order = Literal["standardised gap", "gap in places"]


@dataclass(frozen=True)
class FilteredItems:
    """The items that pass the filters, in their order."""

    items: tuple[ItemScore, ...]
    order: Order

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

    @property
    def order_words(self) -> str:
        where = "in standard deviations of each side" if self.order == STANDARDISED else "in places of the ranking"
        return f"largest gap first, {where}; under {tables.ALIGNED_GAP:g} standard deviations counts as aligned"

    def after(self, item_id: str, triage: Mapping[str, Triage]) -> str:
        """The next listed item that nobody triaged, from the top again after the last; the same where none is left."""
        ids = [item.item_id for item in self.items]
        at = ids.index(item_id) + 1 if item_id in ids else 0
        waiting = [other_id for other_id in (*ids[at:], *ids[:at]) if other_id not in triage and other_id != item_id]
        return waiting[0] if waiting else item_id


def side_of(item: ItemScore) -> str:
    return "unread" if item.gap is None else tables.gap_words(item)


def choose(
    scored: Sequence[ItemScore], triage: Mapping[str, Triage], changes: Mapping[str, str] | None, aspect: str
) -> FilteredItems:
    """Draws the filters and applies them."""
    counts = {side: sum(side_of(item) == side for item in scored) for side in SIDES}
    present = [side for side in SIDES if counts[side]]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        sides = st.pills(
            "The judge is",
            present,
            selection_mode="multi",
            default=[side for side in present if side.startswith("too")],
            format_func=lambda side: f"{side} ({counts[side]})",
            key=state.widget("misaligned_sides"),
        )
        if changes is not None:
            words = (NOW_ALIGNED, NOW_MISALIGNED)
            names = {name: sum(change == name for change in changes.values()) for name in words}
            changed = st.pills(
                "Since the parent version",
                list(names),
                format_func=lambda name: f"{name} ({names[name]})",
                key=state.widget("misaligned_changed"),
            )
        else:
            changed = None
        order = st.selectbox(
            "Order by", [STANDARDISED, RANKS], key=state.widget("misaligned_order"), width=190, filter_mode=None
        )
        with st.popover("More filters", icon=":material/filter_alt:"):
            passing = _more(scored, triage, aspect)
    items = [
        item
        for item in passing
        if (not sides or side_of(item) in sides)
        and (changed is None or (changes is not None and changes.get(item.item_id) == changed))
    ]
    unsorted = FilteredItems((), STANDARDISED if order == STANDARDISED else RANKS)
    return FilteredItems(tuple(sorted(items, key=lambda item: -abs(unsorted.gap_of(item) or 0.0))), unsorted.order)


def _more(scored: Sequence[ItemScore], triage: Mapping[str, Triage], aspect: str) -> list[ItemScore]:
    """Filters by source, system, label and triage."""

    def triaged_as(item: ItemScore) -> str:
        return triage[item.item_id].verdict if item.item_id in triage else NOT_YET

    wanted_triage = st.multiselect(
        "Triage", [NOT_YET, *TRIAGE_VERDICTS, PICKED], key=state.widget("misaligned_triage"), placeholder="all"
    )
    sources = _names("Source", [item.source_id for item in scored])
    systems = _names("System", [item.system_id for item in scored if item.system_id])
    low, high = _labels(scored, aspect)
    return [
        item
        for item in scored
        if (not sources or item.source_id in sources)
        and (not systems or item.system_id in systems)
        and low <= item.label <= high
        and (
            not wanted_triage
            or triaged_as(item) in wanted_triage
            or (PICKED in wanted_triage and item.item_id in triage and triage[item.item_id].picked)
        )
    ]


def _names(title: str, names: Sequence[str]) -> list[str]:
    known = sorted(set(names))
    if not known:
        return []
    return list(st.multiselect(title, known, key=state.widget(f"misaligned_of_{title.lower()}"), placeholder="all"))


def _labels(scored: Sequence[ItemScore], aspect: str) -> tuple[float, float]:
    """A range of labels; everything where all labels are equal."""
    values = [item.label for item in scored]
    low, high = min(values, default=0.0), max(values, default=0.0)
    if low == high:
        return low, high
    chosen = st.slider(
        "People's label", low, high, (low, high), key=state.widget(f"misaligned_label_{aspect}_{low:g}_{high:g}")
    )
    return float(chosen[0]), float(chosen[1])
