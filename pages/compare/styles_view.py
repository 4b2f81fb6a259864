"""Compare judging styles: cost, progress, and the agreement of each style.

Every finished style is also a judge on the Compare page.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core import projects
from core.comparison.style_grid import StyleCell, StylesEstimate, StylesView
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.projects.start_and_resume import RunDetail
from core.report.figures import measure_name
from core.wording import counted, money, number
from pages.compare.styles_form import choose_styles
from pages.ui import grid, run_panel, state, tables
from pages.ui.cached import cached
from pages.ui.chosen import distinct
from pages.ui.grid import Column
from pages.ui.page import Opened
from pages.ui.screens import plain


def draw(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """Draw the last comparison of styles on this golden set, and the form for the next one."""
    every = page.store.runs.all(page.project.project_id)
    runs = {run.run_id: run for run in every if run.kind == "styles" and run.golden_id == golden.golden_id}
    running = next((run for run in runs.values() if not run.finished), None)
    if running is not None:
        run_panel.follow_run(page, running.run_id, lambda now: _draw_run(page, now))
        return
    if not runs:
        st.markdown(
            "You can prompt a model in several styles, which differ in cost and agreement. Try some styles on a few "
            "items."
        )
        _offer(page, golden, aspect)
        return
    run_id, words = next(iter(runs)), distinct({run_id: run_panel.run_words(run) for run_id, run in runs.items()})
    if len(runs) > 1:
        key = state.widget(f"styles_run_{golden.golden_id[-10:]}")
        run_id = st.selectbox("Grid", list(runs), key=key, format_func=words.__getitem__)
    run = run_panel.read_run(page, run_id)
    _draw_run(page, run)
    with st.expander("Try more styles", icon=":material/add:"):
        _offer(page, golden, aspect)


def _draw_run(page: Opened, run: RunDetail) -> None:
    """Draw status, progress, time left, and the styles finished so far."""
    styles = run.outcome if isinstance(run.outcome, StylesView) else projects.styles_so_far(page.store, run.run_id)
    run_panel.draw_status(page, run)
    if styles is None or not styles.cells:
        if not run.finished:
            st.caption("Each style appears here when it is finished. You can close this tab. The run continues.")
        return
    _draw_cells(styles.cells)
    if styles.unfinished:
        lines = [f"{style.name}: {style.reason}." for style in styles.unfinished]
        st.warning(plain("\n".join(["Not run:", *lines])), icon=":material/warning:")
    for note in styles.notes:
        st.info(plain(note), icon=":material/info:")
    if styles.steps:
        with st.expander("Evaluation steps"):
            st.text("\n".join(styles.steps.values()))


def _draw_cells(cells: Sequence[StyleCell]) -> None:
    """Draw the finding, table and figure of the styles, for one statistic and level on the same items."""
    first = cells[0]
    measure = measure_name(first.alignment.statistic, first.alignment.level)
    st.subheader(plain(highest_words(cells)), anchor=False)
    method = f" by {first.alignment.interval.method}" if first.alignment.interval else ""
    picked = (
        "The highest figure is slightly optimistic, because it is the best of several. To test whether the styles "
        "differ, open Ranking."
    )
    st.caption(plain(f"{measure}; 95 % intervals{method}. {picked}"))
    frame = cells_frame(cells, measure)
    grid.draw(frame, {measure: Column(digits=2)}, alt="Judging styles")


def highest_words(cells: Sequence[StyleCell]) -> str:
    """Return a sentence on the style with the highest agreement.

    It also names the style with the fewest calls, if that is another style.
    """
    measured = [cell for cell in cells if cell.alignment.value is not None]
    if not measured:
        return "Agreement with raters is undefined for every style."
    highest = max(measured, key=lambda cell: cell.alignment.value or 0.0)
    cheapest = min(measured, key=lambda cell: cell.n_replies)
    words = f"“{highest.name}” has the highest agreement: {number(highest.alignment.value)}."
    if cheapest.n_replies < highest.n_replies:
        words += f" “{cheapest.name}” makes the fewest calls: {number(cheapest.alignment.value)}."
    return words


def cells_frame(cells: Sequence[StyleCell], measure: str) -> pd.DataFrame:
    """Return the results as a table; NaN for undefined agreement."""
    frame = pd.DataFrame(
        {
            "style": [cell.name for cell in cells],
            measure: pd.Series([cell.alignment.value for cell in cells], dtype="float64"),
            "95 % interval": [tables.interval_of(cell.alignment) for cell in cells],
            "items": [cell.alignment.n for cell in cells],
            "unscored": [cell.alignment.n_unscored for cell in cells],
            "unread replies": [f"{cell.n_unread:,} of {cell.n_replies:,}" for cell in cells],
            "without probabilities": [cell.n_unweighted for cell in cells],
            "calls": [cell.n_replies for cell in cells],
            "cost": [money(cell.usage.cost) for cell in cells],
            "why undefined": [cell.alignment.reason for cell in cells],
        }
    )
    return frame.drop(columns=[name for name in ("without probabilities", "why undefined") if not frame[name].any()])


# ── before the start ─────────────────────────────────────────────────────────────────────────────────────────


def _offer(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """Draw the form, the estimate for each style, and the start button."""
    choice = choose_styles(page, golden, aspect)
    request = choice.request
    if request is None:
        st.warning(plain(choice.missing), icon=":material/edit:")
        return
    try:
        # cached, because the estimate renders every prompt
        estimate = cached(
            ("styles", repr(request)), lambda: projects.estimate_styles(page.store, page.settings, request)
        )
    except ConcordError as error:
        st.warning(
            plain(str(error)), title="Concord can't run these styles with these settings", icon=":material/warning:"
        )
        return
    tokens = None if estimate.prompt_tokens is None else estimate.prompt_tokens + (estimate.completion_tokens or 0)
    about = "" if tokens is None else f", about {tokens:,} tokens"
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        run_panel.draw_start(
            page,
            "Try these styles",
            lambda: projects.start_run(page.store, page.settings, request),
            key=state.widget("styles_start"),
        )
        st.text(f"{counted(estimate.calls, 'call')}{about}, price {money(estimate.cost)}.")
    with st.expander("Style by style", icon=":material/table_rows:"):
        grid.draw(estimate_frame(estimate), alt="Calls for each style", rows=8)


def estimate_frame(estimate: StylesEstimate) -> pd.DataFrame:
    """Return the estimate as a table with one row per style."""
    return pd.DataFrame(
        {
            "style": list(estimate.styles),
            "items": estimate.n_items,
            "calls": [each.calls for each in estimate.styles.values()],
            "price": [money(each.cost) for each in estimate.styles.values()],
        }
    )
