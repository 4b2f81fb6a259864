"""Draw how Concord reads a file, with sample values next to each choice, and let the user correct it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.data import Mapping, Table, propose_mapping
from core.data.columns import ANN, HUMAN, Best, How, Values, detect_kind, plain_name
from core.data.labels import Question, aspects_in
from core.data.reshape import joined, separated, unnamed_labels
from core.data.tables import rows_words
from core.errors import UsageError
from core.records import GoldenSet, ItemKind, Scale
from core.report.figures.svg import shortened
from pages.label import label_item
from pages.ui.screens import plain
from pages.ui.state import widget

MAIN_ROLES = {
    "target": "Judged text",
    "source": "Source",
    "source_id": "Source ID (group)",
    "system_id": "System that wrote the text",
    "item_id": "Item ID",
}
OTHER_ROLES = {
    "context": "Context",
    "references": "References",
    "split": "Split",
    "annotator_id": "Rater (one row per rating)",
    "aspect": "Aspect (one row per rating)",
    "value": "Label (one row per rating)",
    "reason": "Raters' reason",
}
KIND_WORDS: dict[ItemKind, str] = {
    "single": "a single text",
    "source_target": "a source and a text about it",
    "source_context_target": "a source, its context and a text about it",
    "conversation": "a conversation",
    "data_text": "structured data and a text about it",
    "pair": "a pair of texts, A and B, of which raters prefer one",
}
HOW_WORDS: dict[How | None, str] = {
    "exact": "matched by name",
    "alias": "guessed from the name",
    "corrected": "chosen by you",
    None: "",
}
_WIDTHS = (2, 3, 5)
_ASPECT_WIDTHS = (3, 4, 5)
_MOST_ASPECTS = 20
_SAMPLES, _LONGEST_SAMPLE = 3, 40


@dataclass(frozen=True)
class AspectRow:
    """An aspect, its column, and the container on the screen where its scale is drawn later."""

    aspect: str
    column: str
    place: DeltaGenerator


@st.cache_resource(max_entries=6, show_spinner="Reading the columns …")
def proposed(upload: str, _table: Table, labels: Sequence[str] = ()) -> Mapping:
    """Propose a mapping for a file, with readable names of aspects; `labels` are the label columns."""
    mapping = propose_mapping(_table.columns, _table.rows).with_plain_names()
    for column in labels:
        mapping = mapping.with_role(HUMAN + plain_name(column), column)
    return mapping


def confirm_raters(table: Table, upload: str) -> tuple[Table, list[str], int]:
    """Ask whether columns hold labels of several raters, and what numeric columns with unknown names mean.

    Returns the table with the answers applied, the columns that are separate aspects, and the number of open questions.
    """
    n_open, alone = 0, list[str]()
    raters, apart, no_labels = "Raters for one aspect: use their mean", "One aspect each", "No labels"
    asked = [(ratings.removeprefix(ANN), columns) for ratings, columns in table.joined.items()]
    if unnamed := unnamed_labels(table, proposed(upload, table)):
        asked.append(("", unnamed))
    for aspect, columns in asked:
        names = ", ".join(map(plain, columns))
        words = f"{names} look like labels from {len(columns)} raters for **{plain(aspect)}**. What are they?"
        options = [raters, apart]
        if not aspect:
            words, options = f"{names} contain numbers. What do the numbers represent?", [raters, apart, no_labels]
        with st.container(border=True):
            chosen = st.radio(words, options, index=None, key=widget(f"raters_{upload}_{aspect}"))
        n_open += chosen is None
        if chosen == apart:
            table, alone = separated(table, ANN + aspect) if aspect else table, [*alone, *columns]
        elif chosen == raters and not aspect:
            table = joined(table, "overall", {name: name for name in columns})
    return table, alone, n_open


def correct_mapping(table: Table, upload: str, labels: Sequence[str]) -> tuple[Mapping, list[AspectRow]]:
    """Draw the proposed mapping and return it with corrections; `upload` makes widget keys unique per file."""
    guess = proposed(upload, table, labels)
    mapping = _correct_roles(table, guess, upload)
    mapping = replace(mapping, kind=detect_kind(table.rows, mapping.roles))
    kinds = list(get_args(ItemKind))
    label, box, beside = st.columns(_WIDTHS, vertical_alignment="center")
    label.markdown("**Each item is**")
    kind = box.selectbox(
        "Kind of item",
        kinds,
        index=kinds.index(mapping.kind),
        key=_kind_key(upload, mapping.kind),
        format_func=KIND_WORDS.__getitem__,
        label_visibility="collapsed",
    )
    if kind != mapping.kind:
        beside.caption("chosen by you")
        mapping = mapping.with_kind(kind)
    return _correct_labels(table, mapping, guess, upload)


def _kind_key(upload: str, kind: ItemKind) -> str:
    """Return the widget key for the choice of kind, new for each proposal."""
    return widget(f"kind_{upload}_{kind}")


def _correct_roles(table: Table, mapping: Mapping, upload: str) -> Mapping:
    """Draw the column of each role, how it was found, and sample values; return the mapping with corrections."""
    keys = {role: widget(f"role_{upload}_{role}") for role in (*MAIN_ROLES, *OTHER_ROLES)}

    def take_from_others(role: str) -> None:
        """Remove the column chosen for `role` from its old role, because a column can have only one role."""
        column = st.session_state[keys[role]]
        for other, key in keys.items():
            if other != role and column is not None and st.session_state.get(key) == column:
                st.session_state[key] = None
        labels = widget(f"labels_{upload}")
        st.session_state[labels] = [name for name in st.session_state.get(labels, ()) if name != column]

    guess = mapping
    for role, key in keys.items():
        mapping = mapping.with_role(role, st.session_state.get(key, mapping.roles.get(role)))
    detected = detect_kind(table.rows, mapping.roles)
    named, kind = MAIN_ROLES | OTHER_ROLES, st.session_state.get(_kind_key(upload, detected), detected)
    if kind == "pair":  # keep its two texts together
        texts = {role: label_item.part_names(kind)[role] for role in ("target", "context")}
        named = texts | named | texts
    usual = [role for role in named if role in MAIN_ROLES or role in guess.roles]
    more = st.container()
    rest = st.expander("More column roles", icon=":material/view_column:")
    options = [None, *table.columns]
    for role in sorted(named, key=lambda role: role not in usual):
        with more if role in usual else rest:
            label, box, beside = st.columns(_WIDTHS, vertical_alignment="center")
            label.markdown(f"**{named[role]}**")
            column = box.selectbox(
                named[role],
                options,
                index=options.index(guess.roles.get(role)),
                key=keys[role],
                format_func=lambda column: "(none)" if column is None else column,
                label_visibility="collapsed",
                on_change=take_from_others,
                args=(role,),
            )
            with beside:
                if role == "source_id" and column is None and mapping.roles.get("source"):
                    st.caption("Items with the same source form a group.")
                else:
                    _draw_samples(table, column, HOW_WORDS[mapping.found.get(role)] if column else "")
    return mapping


def _draw_samples(table: Table, column: str | None, how: str) -> None:
    """Draw up to three different values of a column, and how Concord found its role."""
    if column is None:
        st.caption("—")
        return
    cells: dict[str, None] = {}
    for row in islice(table.rows, 500):
        if (value := row.get(column)) not in (None, "", [], {}):
            if isinstance(value, list):
                value = ", ".join("—" if entry in (None, "") else str(entry) for entry in value)
            words = f"{value:.4g}" if isinstance(value, float) else str(value)[:200]
            cells[shortened(words, _LONGEST_SAMPLE)] = None
    said = f"{how}: " if how else ""
    st.caption(f"{said}{' · '.join(map(plain, list(cells)[:_SAMPLES])) or 'always empty'}")


def _correct_labels(table: Table, mapping: Mapping, guess: Mapping, upload: str) -> tuple[Mapping, list[AspectRow]]:
    """Draw the aspects with editable names and, for a wide file, the choice of their columns."""
    if {"aspect", "value"} <= mapping.roles.keys():
        among = aspects_in(table, mapping.roles["aspect"])
        columns = dict(zip(among, among, strict=True))
    else:
        among, mapping = [], _choose_labels(table, mapping, guess, upload)
        columns = {aspect: column for column, aspect, _, _ in mapping.rating_columns} | mapping.gold_columns
    aspects = among or mapping.aspects
    rows: list[AspectRow] = []
    if columns:
        for place, words in zip(st.columns(_ASPECT_WIDTHS), ("Aspect name", "Scale", ""), strict=True):
            place.caption(words)
    for number, aspect in enumerate(aspects[:_MOST_ASPECTS], start=1):
        column = columns[aspect]
        naming, scaling, beside = st.columns(_ASPECT_WIDTHS, vertical_alignment="center")
        key, label = widget(f"aspect_{upload}_{column}"), f"Name of aspect {number}"
        name = naming.text_input(label, value=aspect, key=key, label_visibility="collapsed")
        try:
            mapping = mapping.renamed(aspect, name, among)
        except UsageError as error:
            st.warning(plain(str(error)), icon=":material/edit:")
            name = aspect
        with beside:
            how = next((how for role, how in mapping.found.items() if mapping.roles[role] == column), None)
            raters = table.joined.get(column, ())
            said = f"{len(raters)} raters" if raters else f"column {plain(column)}, {HOW_WORDS[how]}"
            if among:
                st.caption(f"named {plain(aspect)} in the file")
            else:
                _draw_samples(table, column, said)
        rows.append(AspectRow(" ".join(name.split()), column, scaling))
    if len(aspects) > _MOST_ASPECTS:
        st.caption(f"The other {len(aspects) - _MOST_ASPECTS} aspects keep their detected names and scales.")
    names = {row.column: row.aspect for row in rows}
    if names and mapping.kind != "pair":
        low = st.multiselect(
            "Reverse the scale (the lowest label is the best)",
            list(names),
            format_func=names.__getitem__,
            key=widget(f"best_{upload}"),
            placeholder="none",
            help="Use this for labels such as school marks, where 1 is the best. After reversing, higher is better.",
        )
        best: tuple[tuple[str, Best], ...] = tuple((names[column], "low") for column in low)
        mapping = replace(mapping, values=replace(mapping.values, best=best))
    return mapping, rows


def _choose_labels(table: Table, mapping: Mapping, guess: Mapping, upload: str) -> Mapping:
    """Let the user choose the label columns, one per aspect."""
    was = [column for column in mapping.gold_columns.values() if column in guess.roles.values()]
    chosen = st.multiselect(
        "More human labels, one column per aspect" if table.joined else "Human labels, one column per aspect",
        list(table.columns),
        default=was,
        key=widget(f"labels_{upload}"),
        placeholder="none",
    )
    for aspect, column in mapping.gold_columns.items():
        if column not in chosen:
            mapping = mapping.with_role(HUMAN + aspect, None)
    for column in chosen:
        if column not in mapping.gold_columns.values():
            name = plain_name(column)
            mapping = mapping.with_role(HUMAN + (column if HUMAN + name in mapping.roles else name), column)
    if not mapping.aspects:
        words = (
            "Concord found no column of human labels. Choose a column above, or confirm below that there are no "
            "labels yet."
        )
        st.warning(words, icon=":material/warning:")
    return mapping


def choose_scales(draft: GoldenSet, rows: Sequence[AspectRow], upload: str) -> dict[str, Scale]:
    """Draw the scales and return the scales that a reviewer confirmed or changed."""
    scales: dict[str, Scale] = {}
    for number, row in enumerate(rows, start=1):
        if row.aspect not in draft.aspects:
            continue
        scale = draft.aspects[row.aspect].scale
        low, high, sure = row.place.columns((2, 2, 3), vertical_alignment="center")
        key = widget(f"{upload}_{row.column}_{scale}")  # new if other answers change the scale
        bottom, top = (
            place.number_input(
                f"{name} label of aspect {number}",
                value=float(end),
                format="%g",
                key=f"{key}_{name}",
                label_visibility="collapsed",
            )
            for place, name, end in ((low, "Lowest", scale.low), (high, "Highest", scale.high))
        )
        confirmed = sure.checkbox(
            "confirmed",
            key=f"{key}_sure",
            help="Concord detected this scale from the labels. Select the checkbox if the scale is correct.",
        )
        if confirmed or (bottom, top) != (scale.low, scale.high):
            scales[row.aspect] = Scale(bottom, top, scale.step, given=True)
    return scales


def answer_questions(questions: Sequence[Question], values: Values, upload: str) -> Values:
    """Ask about values with an unclear meaning; return `values` with the answers so far."""
    for question in questions:
        aspect, numbers = question.aspect, ", ".join(f"{number:g}" for number in question.numbers[:8])
        if question.kind == "ids":
            words = f"R{rows_words(question.rows)[1:]} have the same id, **{plain(aspect)}**. Are they one item or two?"
            options = {
                "Two items: keep both": replace(values, ids="number"),
                "The same item: leave out the later row": replace(values, ids="first"),
            }
        else:
            where = f"{numbers} in {rows_words(question.rows)}"
            words = f"**{plain(aspect)}** has values far from the other labels: {where}. Are these values labels?"
            lost = tuple((aspect, number) for number in question.numbers)
            options = {
                "No, leave them out": replace(values, missing=(*values.missing, *lost)),
                "Yes, keep them": replace(values, missing=(*values.missing, (aspect, None))),
            }
        with st.container(border=True):
            chosen = st.radio(words, list(options), index=None, key=widget(f"values_{upload}_{question}"))
        values = options[chosen] if chosen else values
    return values
