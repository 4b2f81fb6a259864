"""Choose what a screen is about (golden set, aspect, run, criteria) in select boxes, and keep it in the URL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

import streamlit as st

from core.project_records import GoldenSummary
from pages.ui import state
from pages.ui.page import Opened, link_to


def choose_golden(page: Opened) -> GoldenSummary:
    """Return the golden set in the URL, else the newest with judges, else the newest."""
    goldens = {golden.golden_id: golden for golden in page.store.goldens.all(page.project.project_id)}
    if not goldens:
        st.info("This project has no golden set yet. Upload a file with human labels first.", icon=":material/dataset:")
        link_to("golden_set", "Upload a golden set", icon=":material/upload_file:")
        st.stop()
    wanted = state.url_id("golden")
    if wanted is not None and wanted not in goldens:
        st.warning(
            "This link points to a golden set that isn't in this project. Concord shows another golden set instead."
        )
    if wanted not in goldens:
        judged = {view.golden_id for view in page.store.judges.all(page.project.project_id)}
        wanted = next((golden for golden in goldens if golden in judged), next(iter(goldens)))
    words = {golden.golden_id: f"{golden.name} ({golden.n_items:,} items)" for golden in goldens.values()}
    with page.head or nullcontext():
        return goldens[choose_in_url("Golden set", "golden", wanted, words, width=240)]


def choose_aspect(page: Opened, golden: GoldenSummary) -> str:
    """Return the aspect in the URL, else the one with the most judges, else the first with labels."""
    names = [aspect.aspect for aspect in golden.aspects if aspect.n_labelled]
    if not names:
        st.warning("This golden set has no labels. Concord measures a judge by its agreement with human labels.")
        st.stop()
    wanted = state.url_id("aspect")
    if wanted not in names:
        entries = page.store.judges.all(page.project.project_id, golden.golden_id)
        judged = Counter(view.judge.aspect for view in entries)
        wanted = max(names, key=lambda name: judged[name])  # the first of equals
    with page.head or nullcontext():
        return choose_in_url("Aspect", "aspect", wanted, {name: name for name in names}, width=180)


def distinct(words: Mapping[str, str]) -> dict[str, str]:
    """Add the id to labels that occur twice, because a select box identifies an option by its label."""
    times = Counter(words.values())
    return {option_id: text if times[text] == 1 else f"{text} ({option_id})" for option_id, text in words.items()}


def choose_in_url(label: str, name: str, wanted: str, words: Mapping[str, str], **look: Any) -> str:
    """Draw a select box whose value is kept in the URL under `name`."""
    key = state.widget(f"compare_{name}")
    st.session_state[key] = wanted

    def to_url() -> None:
        state.put_in_url(**{name: st.session_state[key]})
        if name == "golden":
            state.put_in_url(item=None)

    st.selectbox(
        label,
        list(words),
        key=key,
        format_func=words.__getitem__,
        on_change=state.when_changed(key, to_url),
        **look,
    )
    state.put_in_url(**{name: wanted})
    return wanted


def in_url(name: str, options: Iterable[str], usual: str) -> str:
    """Return the option in the URL under `name`, else `usual`."""
    named = state.url_id(name)
    return named if named in options else usual


def choose_part(label: str, name: str, words: Mapping[str, str], usual: str, **look: Any) -> str:
    """Draw a row of buttons; `words` maps each option to its label.

    The choice is kept in the URL under `name` unless it is `usual`.
    """
    key, value = state.widget(f"part_{name}"), in_url(name, words, usual)

    def keep() -> None:
        picked = st.session_state[key]
        state.put_in_url(**{name: None if picked == usual else picked})

    st.session_state[key] = value
    changed = state.when_changed(key, keep)
    st.segmented_control(
        label, list(words), required=True, format_func=words.__getitem__, key=key, on_change=changed, **look
    )
    return value
