"""A frozen golden set on screen: what it is in a sentence, what to do next, how its labels spread, and its items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from core import projects
from core.data.golden import sentence
from core.data.split import ENOUGH, LEAST, Grown, calibration_labels, grown
from core.project_records import GoldenSummary
from core.records import GoldenSet
from core.report.figures.svg import shortened
from core.wording import counted
from pages.label import label_blind
from pages.ui import charts, grid, state, tables
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain

LONGEST = 60
"""Letters of a name within a sentence."""
PAGE_ROWS, MOST_PICTURES, MOST_RELATED, MOST_SOURCES = 100, 4, 12, 2_000
LABELS, ITEMS, GROUPS = "Labels", "Items", "Sources and systems"


@st.cache_resource(max_entries=8, show_spinner=False)
def _kept_golden(golden_id: str, _page: Opened) -> GoldenSet:
    """Golden sets never change under their id, so the id is key enough."""
    return _page.store.goldens.load(golden_id)


@st.cache_data(max_entries=32, show_spinner=False)
def _glance(golden_id: str, _page: Opened) -> tuple[str, int]:
    """What a golden set is, in a sentence, and the labels to calibrate on."""
    golden = _kept_golden(golden_id, _page)
    counts = [calibration_labels(golden, aspect) or 0 for aspect in golden.aspects]
    return sentence(golden), max(counts, default=0)


@st.cache_data(max_entries=32, show_spinner=False)
def _grown(older_id: str, newer_id: str, _page: Opened) -> Grown:
    return grown(_kept_golden(older_id, _page), _kept_golden(newer_id, _page))


@st.cache_resource(max_entries=16, show_spinner=False)
def _with_aspects(golden_id: str, aspects: tuple[str, ...], _golden: GoldenSet) -> GoldenSet:
    """The same set with labels of these aspects only, kept so that its digest is computed once."""
    return replace(_golden, aspects={aspect: _golden.aspects[aspect] for aspect in aspects})


@st.cache_resource(max_entries=8, show_spinner=False)
def _groups(golden_id: str, _golden: GoldenSet) -> tuple[pd.DataFrame, int]:
    """Items per source and system, of the first sources, and how many sources there are."""
    frame = tables.groups_frame(_golden)
    return frame.head(MOST_SOURCES).copy(), len(frame)


def draw(page: Opened, goldens: Sequence[GoldenSummary]) -> None:
    """The golden set in the URL, else the newest, of at least one."""
    golden = _picked(goldens)
    sees = not golden.aspects or label_blind.may_see(page, golden.golden_id)
    words, n = _glance(golden.golden_id, page)
    finding(f"{shortened(golden.name, LONGEST)}: {words}")
    _draw_age(page, goldens, golden)
    _draw_next(page, golden, n)
    if not sees:
        return
    offered = [LABELS, ITEMS, GROUPS] if golden.aspects else [ITEMS, GROUPS]
    part = st.segmented_control(
        "Part", offered, default=offered[0], required=True, key=state.GOLDEN_PART, label_visibility="collapsed"
    )
    if part == ITEMS:
        n_pages = max(1, -(-golden.n_items // PAGE_ROWS))
        number = st.pagination(n_pages, key=f"page_{golden.golden_id}") if n_pages > 1 else 1
        rows = projects.golden_page(page.store, golden.golden_id, (number - 1) * PAGE_ROWS, PAGE_ROWS).rows
        grid.draw(tables.items_frame(rows, golden.kind), alt="Items", rows=12)
        return
    whole = _kept_golden(golden.golden_id, page)
    if part == GROUPS:
        frame, n_sources = _groups(golden.golden_id, whole)
        height = tables.height_for(len(frame), 12)
        st.dataframe(frame, hide_index=True, height=height, alt="Items per source and system")
        if n_sources > len(frame):
            st.caption(f"The first {len(frame):,} of {n_sources:,} sources.")
        return
    names = tuple(whole.aspects)
    if len(names) > MOST_PICTURES:
        number = st.pagination(-(-len(names) // MOST_PICTURES), key=f"aspects_{golden.golden_id}")
        names = names[(number - 1) * MOST_PICTURES : number * MOST_PICTURES]
        whole = _with_aspects(golden.golden_id, names, whole)
    charts.place_labels(whole)


def choose(goldens: Sequence[GoldenSummary]) -> None:
    """The picker of golden sets, where there is more than one; the URL holds the choice."""
    if len(goldens) < 2:
        return
    lines = {}
    for place, golden in enumerate(goldens):
        # nothing that changes with time, and no two alike: the browser holds a choice by these words
        labelled = ", ".join(aspect.aspect for aspect in golden.aspects[:6]) or "no labels"
        made = f"{golden.n_items:,} items · {labelled} · {golden.created_at:%d %b %Y}"
        lines[golden.golden_id] = f"{len(goldens) - place} · {golden.name} · {made}"
    st.session_state[state.GOLDENS] = _picked(goldens).golden_id
    st.selectbox(
        "Golden set",
        list(lines),
        key=state.GOLDENS,
        format_func=lines.__getitem__,
        on_change=state.when_changed(state.GOLDENS, lambda: state.put_in_url(golden=st.session_state[state.GOLDENS])),
        label_visibility="collapsed",
    )


def _picked(goldens: Sequence[GoldenSummary]) -> GoldenSummary:
    known = {golden.golden_id: golden for golden in goldens}
    picked = known.get(state.url_id("golden") or "", goldens[0])
    state.put_in_url(golden=picked.golden_id)
    return picked


def _draw_age(page: Opened, goldens: Sequence[GoldenSummary], golden: GoldenSummary) -> None:
    """What it adds to the one before it that shares sources, or a newer one to it; which rows were left out."""
    ids = [known.golden_id for known in goldens]
    place = ids.index(golden.golden_id)
    newer = [known for known in goldens[:place][:MOST_RELATED] if _grown(golden.golden_id, known.golden_id, page).known]
    older = [
        known for known in goldens[place + 1 :][:MOST_RELATED] if _grown(known.golden_id, golden.golden_id, page).known
    ]
    if newer:
        words = _grown(golden.golden_id, newer[0].golden_id, page).words("this one")
        st.markdown(plain(f"{shortened(newer[0].name, LONGEST)} is newer. {words}"))
    elif older:
        words = _grown(older[0].golden_id, golden.golden_id, page).words(shortened(older[0].name, LONGEST))
        st.markdown(plain(f"The newest of {len(older) + 1}. {words}"))


def _draw_next(page: Opened, golden: GoldenSummary, n: int) -> None:
    """The one next action, with why: `n` labels are there to calibrate on; the other action next to it."""
    calibrate = n >= LEAST
    if not golden.aspects:
        words = "**Next:** have raters label these items. A judge needs labels to be calibrated."
    elif not calibrate:
        labels = counted(n, "label")
        words = f"**Next:** label more. A calibration would have {labels} to choose by; {LEAST} are needed."
    elif n < ENOUGH:
        words = (
            f"**Next:** calibrate a judge, or label more first: {n:,} labels would choose its criteria, {ENOUGH} are "
            "advised."
        )
    else:
        words = f"**Next:** calibrate a judge. {n:,} labels would choose its criteria, the rest measure it."
    with st.container(border=True, gap="small"):
        st.markdown(words)
        ids = {"golden": golden.golden_id}
        with st.container(horizontal=True):
            if calibrate:
                link_to("calibrate", "Calibrate a judge on it", icon=":material/tune:", **ids)
            link_to("label", "Have raters label it", icon=":material/edit_note:", **ids)
            for aspect, line in projects.judge_lines(page.store, page.project.project_id).items():
                if (judge := line.default) and golden.aspect(aspect) and judge.on(golden.golden_id) is None:
                    label = f"Measure version {judge.number} of the judge of {aspect} on it"
                    link_to("overview", plain(label), icon=":material/science:", aspect=aspect, **ids)
