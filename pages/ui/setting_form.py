"""Form fields for settings records, with their defaults, bounds, choices and help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

import streamlit as st

from core.records import LEVELS, STATISTICS, choices
from core.report.figures import LEVEL_NAMES, STATISTIC_NAMES
from pages.ui.state import widget

WORDS: Mapping[str, Mapping[Any, str]] = {
    "statistic": {name: STATISTIC_NAMES[name] for name in STATISTICS},
    "level": {None: "automatic, based on the golden set"} | {name: LEVEL_NAMES[name] for name in LEVELS},
}


def draw(
    record: type,
    labels: Mapping[str, str],
    *,
    prefix: str = "",
    usual: Mapping[str, Any] | None = None,
    words: Mapping[str, Mapping[Any, str]] | None = None,
) -> dict[str, Any]:
    """Draw a widget for each field in `labels`, one below the other, and return the values by field.

    Args:
        record: A settings dataclass.
        labels: Field → label of its widget.
        prefix: Makes widget keys unique per form.
        usual: Field → its default in this form, if it differs from the default of `record`.
        words: Field → its options with their names, if they differ from those of `record`.
    """
    known = {field.name: field for field in fields(record)}
    hints, among = get_type_hints(record), choices(record)
    values = {}
    for name, label in labels.items():
        field = known[name]
        key, default = widget(f"{prefix}{name}"), (usual or {}).get(name, field.default)
        look: dict[str, Any] = {"key": key, "help": field.metadata.get("help") or None, "persist_state": "session"}
        options = (words or {}).get(name) or WORDS.get(name) or {option: str(option) for option in among.get(name, ())}
        if default is not None or options:
            st.session_state.setdefault(key, default)
        if options:
            look["placeholder"] = options.get(None)
            values[name] = st.selectbox(label, list(options), format_func=options.__getitem__, **look)
        elif hints[name] is bool:
            values[name] = st.checkbox(label, **look)
        else:
            whole = "float" not in str(hints[name])
            ends = [end if end is None or whole else float(end) for end in map(field.metadata.get, ("low", "high"))]
            if default is None:
                look |= {"value": None, "placeholder": "automatic" if ends[1] else "no limit"}
            number = st.number_input(label, *ends, step=1 if whole else 0.1, **look)
            values[name] = int(number) if whole and number is not None else number
    return values
