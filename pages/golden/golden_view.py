"""Draw a frozen golden set: a summary, the next step, the distribution of its labels, and its items."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core import projects
from core.data.golden import sentence
from core.data.split import ENOUGH, LEAST, calibration_labels
from core.project_records import GoldenSummary
from core.report.figures.svg import shortened
from core.wording import counted
from pages.label import label_blind
from pages.label.label_item import cached_golden
from pages.ui import charts, grid, state, tables
from pages.ui.chosen import choose_in_url, distinct
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain

LONGEST = 60
"""Letters of a name within a sentence."""
PAGE_ROWS, MOST_PICTURES, MOST_RELATED = 100, 4, 12
LABELS, ITEMS = "Labels", "Items"


@st.cache_data(max_entries=32, show_spinner=False)
def _glance(golden_id: str, _page: Opened) -> tuple[str, int]:
    """Describe a golden set in a sentence, and count the labels to calibrate on."""
    golden = cached_golden(golden_id, _page.store)
    counts = [calibration_labels(golden, aspect) or 0 for aspect in golden.aspects]
    return sentence(golden), max(counts, default=0)


def choose(goldens: Sequence[GoldenSummary]) -> GoldenSummary:
    """Return the golden set in the URL, else the newest. If there are several, draw a picker."""
    known = {golden.golden_id: golden for golden in goldens}
    wanted = known.get(state.url_id("golden") or "", goldens[0]).golden_id
    if len(goldens) > 1:
        lines = {}
        for golden in goldens:
            labelled = ", ".join(aspect.aspect for aspect in golden.aspects[:6]) or "no labels"
            made = f"{golden.n_items:,} items · {labelled} · {tables.when(golden.created_at)}"
            lines[golden.golden_id] = f"{golden.name} · {made}"
        choose_in_url("Golden set", "golden", wanted, distinct(lines))
    state.put_in_url(golden=wanted)
    return known[wanted]


def draw(page: Opened, goldens: Sequence[GoldenSummary], golden: GoldenSummary) -> None:
    """Draw `golden`. `goldens` are all golden sets of the project, newest first."""
    sees = not golden.aspects or label_blind.may_see(page, golden.golden_id)
    words, n = _glance(golden.golden_id, page)
    rated = [aspect.aspect for aspect in golden.aspects if aspect.n_labelled]
    labelled = f"with labels for {rated[0]}" if len(rated) == 1 else f"with labels for {len(rated)} aspects"
    labelled = labelled if rated else "without labels"
    finding(f"{shortened(golden.name, LONGEST)}: {counted(golden.n_items, 'item')} {labelled}.")
    st.caption(plain(words))
    _draw_next(page, golden, n)
    if not sees:
        return
    part = ITEMS
    if golden.aspects:
        part = st.segmented_control(
            "Part", [LABELS, ITEMS], default=LABELS, required=True, key=state.GOLDEN_PART, label_visibility="collapsed"
        )
    if part == ITEMS:
        n_pages = max(1, -(-golden.n_items // PAGE_ROWS))
        number = st.pagination(n_pages, key=f"page_{golden.golden_id}") if n_pages > 1 else 1
        whole = cached_golden(golden.golden_id, page.store)
        grid.draw(tables.items_frame(whole, (number - 1) * PAGE_ROWS, PAGE_ROWS), alt="Items", rows=12)
        return
    names = [aspect.aspect for aspect in golden.aspects]
    if len(names) > MOST_PICTURES:
        number = st.pagination(-(-len(names) // MOST_PICTURES), key=f"aspects_{golden.golden_id}")
        names = names[(number - 1) * MOST_PICTURES : number * MOST_PICTURES]
    charts.place_labels(cached_golden(golden.golden_id, page.store), names)


def _draw_next(page: Opened, golden: GoldenSummary, n: int) -> None:
    """Draw the next step and its reason; `n` is the number of labels to calibrate on."""
    calibrate = n >= LEAST
    if not golden.aspects:
        words = "**Next:** have raters label these items. Calibrating a judge requires labels."
    elif not calibrate:
        words = (
            f"**Next:** label more items. Calibration requires at least {LEAST} labels, but could use only {n:,} now."
        )
    elif n < ENOUGH:
        words = (
            "**Next:** calibrate a judge, or label more items first. Half of the sources are held out, which leaves "
            f"{n:,} labels to calibrate on. We recommend {ENOUGH}."
        )
    else:
        words = f"**Next:** calibrate a judge on {n:,} labels. The other labels are held out to measure the judge."
    with st.container(border=True, gap="small"):
        st.markdown(words)
        ids = {"golden": golden.golden_id}
        with st.container(horizontal=True):
            if calibrate:
                link_to("calibrate", "Calibrate a judge on this golden set", icon=":material/tune:", **ids)
            link_to("label", "Have raters label these items", icon=":material/edit_note:", **ids)
            for aspect, line in projects.judge_lines(page.store, page.project.project_id).items():
                if (judge := line.default) and golden.aspect(aspect) and judge.on(golden.golden_id) is None:
                    label = f"Measure version {judge.number} of the {aspect} judge on this golden set"
                    link_to("overview", plain(label), icon=":material/science:", aspect=aspect, **ids)
