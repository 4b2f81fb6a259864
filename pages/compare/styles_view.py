"""The grid of judging styles on screen: its cost, its progress, where each style stands.

`draw` is a part of the Compare screen; every finished style stands among its judges as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from core import projects
from core.comparison.style_grid import StyleCell, StylesEstimate, StylesView
from core.errors import ConcordError
from core.project_records import GoldenSummary, Run
from core.projects.run_kinds import RunDetail
from core.projects.style_runs import StylesRequest
from core.report.figures import Mark, describe, measure_name
from core.report.figures.whiskers import styles_figure
from core.wording import counted, money
from pages.compare.styles_form import choose_styles
from pages.ui import charts, grid, run_panel, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing


def draw(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """The last grid of this golden set with its result, and the form of the next one."""
    runs = [
        run
        for run in projects.list_runs(page.store, page.project.project_id)
        if run.kind == "styles" and run.golden_id == golden.golden_id
    ]
    going_on = next((run for run in runs if not run.finished), None)
    if going_on is not None:
        run_panel.follow_run(page, going_on.run_id, lambda now: _draw_run(page, now, aspect))
        return
    if runs:
        _draw_run(page, run_panel.read_run(page, _choose_run(runs, golden).run_id), aspect)
        with st.expander("A new grid of styles", icon=":material/add:"):
            _offer(page, golden, aspect)
        return
    st.markdown(
        "One model can be asked in many ways; each costs differently and agrees with people differently. Choose some "
        "and try them on a few items."
    )
    _offer(page, golden, aspect)


def _choose_run(runs: Sequence[Run], golden: GoldenSummary) -> Run:
    """The newest, or an older one that a person picks."""
    by_id = {run.run_id: run for run in runs}
    if len(by_id) == 1:
        return runs[0]
    picked = st.selectbox(
        "Grid",
        list(by_id),
        key=state.widget(f"styles_run_{golden.golden_id[-10:]}"),
        format_func=lambda run_id: f"{by_id[run_id].title} ({tables.ago(by_id[run_id].created_at)})",
    )
    return by_id[picked]


def _draw_run(page: Opened, run: RunDetail, aspect: str) -> None:
    """Status with progress and time left, and the styles that are finished so far."""
    styles = run.outcome if isinstance(run.outcome, StylesView) else projects.styles_so_far(page.store, run.run_id)
    if not run.finished or styles is None or not styles.cells:
        run_panel.draw_status(page, run)
    if styles is None or not styles.cells:
        if not run.finished:
            st.caption("Styles appear here one by one. You can close this tab. The run continues.")
        return
    for cell_aspect in sorted({cell.aspect for cell in styles.cells}, key=lambda name: (name != aspect, name)):
        _draw_aspect(page, run, cell_aspect, [cell for cell in styles.cells if cell.aspect == cell_aspect])
    if styles.unfinished:
        lines = [f"{style.name} on {style.aspect}: {style.reason}." for style in styles.unfinished]
        st.warning(plain("\n".join(["Not run:", *lines])), icon=":material/warning:")
    for note in styles.notes:
        st.info(plain(note), icon=":material/info:")
    if styles.steps:
        part = st.expander("The evaluation steps that were in force", on_change="rerun")
        if part.open:
            for name, text in styles.steps.items():
                part.text(f"{name}\n{text}")
    if run.finished:
        run_panel.draw_status(page, run)


def _draw_aspect(page: Opened, run: RunDetail, aspect: str, cells: Sequence[StyleCell]) -> None:
    """What was found of one aspect, with table and figures; all of it at one statistic and level on the same items."""
    first = cells[0]
    measure = measure_name(first.alignment.statistic, first.alignment.level)
    st.subheader(plain(highest_words(aspect, cells)), anchor=False)
    method = f" by {first.alignment.interval.method}" if first.alignment.interval else ""
    seen = f" Of the {first.n_asked:,} items asked, {first.n_seen:,} that the criteria saw are left out." * bool(
        first.n_seen
    )
    st.caption(
        plain(
            f"{measure}; 95 % intervals{method}.{seen} Picking the best of several is a little optimistic: test the "
            "difference among the judges of Compare."
        )
    )
    names = projects.criteria_names(page.store, page.project.project_id, aspect)
    frame = cells_frame(cells, measure, names)
    grid.draw(frame, {measure: Column(digits=2)}, alt=f"Styles on {aspect}")
    key = f"styles_{run.run_id}_{aspect}"
    charts.place(_styles_figure(key, run.version, cells, measure), key=f"{key}_marks", alt="Styles with intervals")


def highest_words(aspect: str, cells: Sequence[StyleCell]) -> str:
    """The style that stands highest on an aspect, beside what the cheapest stands at."""
    measured = [cell for cell in cells if cell.alignment.value is not None]
    if not measured:
        return f"{aspect}: no style has a defined agreement with raters"
    highest = max(measured, key=lambda cell: cell.alignment.value or 0.0)
    cheapest = min(measured, key=lambda cell: cell.calls)
    said = f"{aspect}: “{highest.name}” agrees best, at {describe(highest.alignment)}, {highest.calls:,} calls"
    if cheapest.calls < highest.calls:
        said += f"; “{cheapest.name}” at {describe(cheapest.alignment)} takes {cheapest.calls:,}"
    return said


@st.cache_resource(max_entries=32, show_spinner=False)
def _styles_figure(key: str, version: int, _cells: Sequence[StyleCell], measure: str) -> Drawing:
    marks = [Mark(cell.name, cell.alignment, detail=f"{cell.calls:,} calls") for cell in _cells]
    return styles_figure(marks, measure=measure)


def cells_frame(cells: Sequence[StyleCell], measure: str, names: Mapping[str, str]) -> pd.DataFrame:
    """The table of results, criteria by their `names`; None where undefined, which is drawn as "—"."""
    return pd.DataFrame(
        {
            "style": [cell.name for cell in cells],
            "criteria": [names.get(cell.criteria_id, tables.DASH) if cell.criteria_id else "none" for cell in cells],
            measure: pd.Series([cell.alignment.value for cell in cells], dtype="float64"),
            "95 % interval": [tables.interval_of(cell.alignment) for cell in cells],
            "items": [cell.alignment.n for cell in cells],
            "unscored": [cell.alignment.n_unscored for cell in cells],
            "unread replies": [f"{cell.n_unread:,} of {cell.n_replies:,}" for cell in cells],
            **(
                {"without probabilities": [cell.n_unweighted for cell in cells]}
                if any(cell.style.weighted for cell in cells)
                else {}
            ),
            "calls": [cell.calls for cell in cells],
            "cost": [money(cell.usage.cost) for cell in cells],
            **(
                {"why none": [cell.alignment.reason for cell in cells]}
                if any(c.alignment.reason for c in cells)
                else {}
            ),
        }
    )


# ── before the start ─────────────────────────────────────────────────────────────────────────────────────────


def _offer(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """The form, the estimate cell by cell, and the button."""
    choice = choose_styles(page, golden, aspect)
    request = choice.request
    if request is None:
        st.warning(plain(choice.missing), icon=":material/edit:")
        return
    try:
        estimate = _estimate(repr(request), page, request)
    except ConcordError as error:
        st.warning(plain(str(error)), title="These styles cannot run with these settings", icon=":material/warning:")
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        run_panel.draw_start(
            page,
            "Start the grid",
            lambda: projects.start_styles(page.store, page.settings, request),
            key=state.widget("styles_start"),
            disabled=not any(cell.affordable for cell in estimate.cells),
        )
        st.text(estimate_words(estimate))
    with st.expander("Style by style", icon=":material/table_rows:"):
        _draw_cells(estimate)


@st.cache_resource(max_entries=16, show_spinner="Counting calls and tokens …")
def _estimate(asked: str, _page: Opened, _request: StylesRequest) -> StylesEstimate:
    """Renders every prompt once, so it is kept for as long as the request stays the same."""
    return projects.estimate_styles(_page.store, _page.settings, _request)


def estimate_words(estimate: StylesEstimate) -> str:
    """`At most 108 calls, about 41,000 tokens, $0.02.`; "—" where the price cannot be known."""
    tokens = None if estimate.prompt_tokens is None else estimate.prompt_tokens + (estimate.completion_tokens or 0)
    told = "" if tokens is None else f", about {tokens:,} tokens"
    return f"At most {counted(estimate.calls, 'call')}{told}, price {money(estimate.cost)}."


def _draw_cells(estimate: StylesEstimate) -> None:
    grid.draw(estimate_frame(estimate), alt="What each style will ask for", rows=8)


def estimate_frame(estimate: StylesEstimate) -> pd.DataFrame:
    """The grid before it starts, a row a style and aspect."""
    return pd.DataFrame(
        {
            "aspect": [cell.aspect for cell in estimate.cells],
            "style": [cell.style for cell in estimate.cells],
            "items": [cell.n_items for cell in estimate.cells],
            "calls": [cell.calls for cell in estimate.cells],
            "tokens": pd.Series(
                [
                    None if cell.prompt_tokens is None else cell.prompt_tokens + (cell.completion_tokens or 0)
                    for cell in estimate.cells
                ],
                dtype="Int64",
            ),
            "price": [money(cell.cost) for cell in estimate.cells],
            "budget": ["within" if cell.affordable else "left out" for cell in estimate.cells],
        }
    )
