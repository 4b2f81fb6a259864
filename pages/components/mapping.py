"""The form that corrects how a file was read: role → column, item kind, label columns, scale per aspect."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import streamlit as st

from core.data import Mapping, Table, propose_mapping
from core.data.cells import Comma, folded
from core.data.columns import HUMAN
from core.data.label_cells import asks_about_commas
from core.records import GoldenSet, ItemKind, Scale
from pages.components import tables
from pages.components.screens import plain
from pages.components.state import widget

ITEM_ROLES = {
    "item_id": "item id",
    "source_id": "source id (the group)",
    "system_id": "system id",
    "target": "target (the judged text)",
    "source": "source",
    "context": "context",
    "references": "references",
    "split": "split",
    "annotator_id": "annotator (long files)",
    "aspect": "aspect (long files)",
    "value": "value (long files)",
}
COMMA_WORDS: dict[Comma, str] = {"decimal": "before decimals (1.234)", "thousands": "between thousands (1234)"}
KIND_WORDS: dict[ItemKind, str] = {
    "single": "a single text",
    "source_target": "source and target",
    "source_context_target": "source, context and target",
    "conversation": "a conversation",
    "data_text": "structured data and text",
}


def correct_mapping(table: Table, upload: str) -> Mapping:
    """Shows the proposed mapping and returns it with a person's corrections; `upload` keeps files apart."""
    mapping = propose_mapping(table.columns, table.rows)
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.markdown("**Columns and the parts they play**")
        shown = st.empty()
    with right:
        st.markdown("**Correct it where it is wrong**")
        mapping = _correct_roles(table, mapping, upload)
        mapping = _correct_labels(table, mapping, upload)
        if _asks_about_commas(upload, str(mapping.as_json()), table, mapping):
            mapping = _choose_comma(mapping, upload)
        kinds = list(get_args(ItemKind))
        kind = st.selectbox(
            "What an item is",
            kinds,
            index=kinds.index(mapping.kind),
            key=widget(f"kind_{upload}"),
            format_func=KIND_WORDS.__getitem__,
        )
        if kind != mapping.kind:
            mapping = mapping.with_kind(kind)
    frame = tables.mapping_frame(mapping)
    shown.dataframe(frame, hide_index=True, height=tables.height_for(len(frame)), alt="Column roles")
    if mapping.unused:
        with left:
            st.text("Not used: " + ", ".join(mapping.unused))
    return mapping


def choose_scales(draft: GoldenSet, upload: str) -> dict[str, Scale]:
    """Scales that a person confirmed or changed; the others stay as found."""
    scales: dict[str, Scale] = {}
    st.markdown("**Scale of each aspect**, as found in the labels")
    for aspect, scale in ((name, labels.scale) for name, labels in draft.aspects.items()):
        name, low, high, sure = st.columns([3, 2, 2, 2], vertical_alignment="bottom")
        name.text(aspect)
        key = widget(f"{upload}_{aspect}")
        bottom = low.number_input("from", value=float(scale.low), key=f"{key}_low", label_visibility="collapsed")
        top = high.number_input("to", value=float(scale.high), key=f"{key}_high", label_visibility="collapsed")
        confirmed = sure.checkbox("confirmed", key=f"{key}_sure")
        if confirmed or (bottom, top) != (scale.low, scale.high):
            scales[aspect] = Scale(bottom, top, scale.step, given=True)
    return scales


@st.cache_data(max_entries=20, show_spinner=False)
def _asks_about_commas(upload: str, key: str, _table: Table, _mapping: Mapping) -> bool:
    return asks_about_commas(_table, _mapping)


def _choose_comma(mapping: Mapping, upload: str) -> Mapping:
    """What a person says of numbers such as 1,234, of which the file alone does not tell what they mean."""
    st.warning("Labels such as 1,234 can mean 1.234 or 1234. Say which.", icon=":material/help:")
    comma = st.segmented_control(
        "The comma stands", list(COMMA_WORDS), format_func=COMMA_WORDS.__getitem__, key=widget(f"comma_{upload}")
    )
    return replace(mapping, comma=comma)


def _correct_roles(table: Table, mapping: Mapping, upload: str) -> Mapping:
    wide = ["item_id", "source_id", "system_id", "target", "source", "context", "references", "split"]
    roles = wide if mapping.layout == "wide" else list(ITEM_ROLES)
    places = st.columns(3)
    for place, role in enumerate(roles):
        proposed = mapping.roles.get(role)
        options = [None, *table.columns]
        column = places[place % 3].selectbox(
            ITEM_ROLES[role],
            options,
            index=options.index(proposed),
            key=widget(f"role_{upload}_{role}"),
            format_func=lambda column: "(none)" if column is None else column,
        )
        if column != proposed:
            mapping = mapping.with_role(role, column)
    return mapping


def _correct_labels(table: Table, mapping: Mapping, upload: str) -> Mapping:
    """Label columns of a wide file: each chosen column is an aspect named after it."""
    if mapping.layout == "long":
        return mapping
    proposed = list(mapping.gold_columns.values())
    chosen = st.multiselect(
        "Human labels, one column an aspect",
        list(table.columns),
        default=proposed,
        key=widget(f"labels_{upload}"),
    )
    for aspect, column in mapping.gold_columns.items():
        if column not in chosen:
            mapping = mapping.with_role(HUMAN + aspect, None)
    for column in chosen:
        if column not in proposed:
            mapping = mapping.with_role(HUMAN + folded(column).removeprefix(HUMAN), column)
    if not chosen and not mapping.aspects:
        st.warning(
            plain(
                "No column of human labels was found. Choose at least one above, or say that people have yet to label."
            ),
            icon=":material/warning:",
        )
    return mapping
