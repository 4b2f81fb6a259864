"""Draw an item and its scale as plain text, safe for any length and writing direction."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

import streamlit as st

from core.data.reshape import LEVELS, PREFERENCES
from core.projects.labelling import LabelAspect, LabelPlan
from core.records import GoldenSet, Item, ItemKind
from core.store.store import Store
from pages.ui import state
from pages.ui.screens import plain

LONG_TEXT, TALL = 2_500, 420
MANY_LINES = 24
_KEYS = "1234567890T"
_PARTS = {"target": "Judged text", "context": "Context", "source": "Source"}


@st.cache_resource(max_entries=8, show_spinner="Reading the golden set …")
def cached_golden(golden_id: str, _store: Store) -> GoldenSet:
    """Load a golden set, cached because the content behind an id never changes."""
    return _store.goldens.load(golden_id)


def kind_of(golden_id: str, store: Store) -> ItemKind:
    """Return the kind of the items of a golden set."""
    return cached_golden(golden_id, store).kind


def item_of(golden_id: str, store: Store, item_id: str) -> Item:
    golden = cached_golden(golden_id, store)
    return golden.items[golden.item_ids.index(item_id)]


# ── labels and their keys ────────────────────────────────────────────────────────────────────────────────────


def keys_for(choices: Sequence[float]) -> tuple[str, ...]:
    """Return the key that a rater presses for each label.

    If all labels are whole numbers from 0 to 10, the key is the number itself. The key for 10 is 0, or T if 0 is also a
    label. For other labels, the key is the label's position.
    """
    if all(float(choice).is_integer() and 0 <= choice <= 10 for choice in choices):
        ten = "T" if 0 in choices else "0"
        return tuple(ten if choice == 10 else f"{choice:g}" for choice in choices)
    return tuple(_KEYS[: len(choices)])


def keys_of(aspect: LabelAspect) -> str:
    """Return which keys to press for the labels of an aspect, for example "1–5"."""
    keys = keys_for(aspect.choices())
    if not keys:
        return "a number, then Enter"
    if len(keys) > 2 and "".join(keys) in f"0{_KEYS}":
        return f"{keys[0]}–{keys[-1]}"
    return f"{', '.join(keys[:-1])} or {keys[-1]}"


def keys_words(aspect: LabelAspect) -> str:
    """Return how to rate the aspect, for example "press 1–5"."""
    if not aspect.choices():
        return f"type a number from {aspect.scale.low:g} to {aspect.scale.high:g}"
    return f"press {keys_of(aspect)}"


def levels_of(aspect: LabelAspect, kind: ItemKind) -> Mapping[float, str]:
    """Return the meaning of each label of a pair; {} for other items."""
    return LEVELS if kind == "pair" and aspect.scale == PREFERENCES else {}


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────


def part_names(kind: ItemKind) -> Mapping[str, str]:
    """Return the titles of an item's parts, the judged text first. A pair has two texts."""
    return _PARTS | {"target": "Text A", "context": "Text B"} if kind == "pair" else _PARTS


def parts_of(item: Item, kind: ItemKind, parts: Sequence[str] = tuple(_PARTS)) -> list[tuple[str, str, str]]:
    """Return the name, title and text of each part in `parts` that the item has."""
    names = part_names(kind)
    return [(part, names[part], text) for part in parts if (text := getattr(item, part))]


def draw_parts(item: Item, kind: ItemKind) -> None:
    """Draw all parts under their titles, the judged text first."""
    for _, title, text in parts_of(item, kind):
        st.markdown(f"**{title}**")
        st.text(text)


def draw_beside(item: Item, kind: ItemKind) -> None:
    """Draw the source and context in expanders. They stay open or closed from one item to the next."""
    for name, title, text in parts_of(item, kind, ("source",) if kind == "pair" else ("context", "source")):
        with st.expander(title, expanded=True, key=state.widget(f"label_{name}")):
            draw_text(text)


def draw_target(item: Item, kind: ItemKind) -> None:
    """Draw the judged text in a frame; for a pair, draw both texts next to each other."""
    if kind != "pair":
        with st.container(border=True):
            draw_text(item.target)
        return
    for place, name, text in zip(st.columns(2, gap="small"), "AB", (item.target, item.context), strict=True):
        with place, st.container(border=True):
            st.markdown(f"**{name}**")
            draw_text(text)


def draw_instructions(plan: LabelPlan) -> None:
    """Draw the definition of each aspect, and the instructions for all raters."""
    for aspect in plan.aspects:
        if aspect.definition:
            st.markdown(f"**{plain(aspect.aspect)}**: {plain(aspect.definition)}")
    if plan.instructions:
        draw_text(plan.instructions)


def draw_text(text: str) -> None:
    """Draw a text without Markdown. A long text scrolls in its own box."""
    if not text.strip():
        st.caption("(empty)")
        return
    tall = len(text) > LONG_TEXT or text.count("\n") > MANY_LINES
    place = st.container(height=TALL, border=False) if tall else st
    if leftward(text):
        # a right-to-left isolate per line puts punctuation where its readers expect it
        lines = [f"\u2067{line}\u2069" if line else "" for line in text.split("\n")]
        place.text("\n".join(lines), text_alignment="right", width="stretch")
    else:
        place.text(text, width="stretch")


def leftward(text: str) -> bool:
    """Return whether the text starts in a right-to-left script."""
    kinds = (unicodedata.bidirectional(letter) for letter in text[:500])
    return next((kind in ("R", "AL") for kind in kinds if kind in ("L", "R", "AL")), False)
