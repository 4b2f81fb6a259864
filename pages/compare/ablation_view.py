"""The ablation table of a calibration on screen: its estimate and start, its progress, the table with its figure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from core import projects
from core.calibration.records import Estimate
from core.errors import ConcordError
from core.project_records import Run
from core.projects.analyses import Ablation, AblationRequest
from core.records import Interval
from core.report.figures import describe, measure_name
from core.report.figures.analyses import ablation_figure, variant_name
from core.stats import claim, difference_figures
from core.wording import counted
from pages.ui import charts, forms, grid, live, people, run_view, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing

COLUMNS = {
    "calibration": Column(help="on the items that chose the criteria (optimistic)"),
    "held-out": Column(help="on items that chose nothing: the number to quote"),
    "n": Column(help="held-out items"),
    "unread": Column(help="items without a readable score, counted, never guessed"),
    "minus final": Column(digits=2, signed=True),
    "interval": Column("95 % interval"),
    "p": Column("p (Holm)", digits=3),
}


def draw_ablation(page: Opened, run: Run) -> None:
    """The ablation table of a finished calibration, or the way to it: estimate, button, progress."""
    last = projects.last_ablation(page.store, run.run_id)
    if last is not None and not last.finished:
        live.follow(
            lambda: run_view.read_run(page, last.run_id),
            lambda now: now.finished,
            lambda now: run_view.draw_status(page, now),
        )
        return
    outcome = None if last is None else run_view.read_run(page, last.run_id).outcome
    if last is not None and last.status in ("failed", "cancelled"):
        run_view.draw_status(page, last)
    if isinstance(outcome, Ablation) and last is not None:
        _draw_table(page, run, last, outcome)
        return
    st.markdown(
        "The final judge beside the same judge without criteria, without refinement, with its single best criteria "
        "instead of the mean and, for a language model, with evaluation steps switched."
    )
    _offer(page, run)


def _offer(page: Opened, run: Run) -> None:
    """The estimate and the button; only what the calibration has not scored yet costs calls."""
    with_steps = True
    if run.judge_spec != "offline":
        with_steps = st.checkbox(
            "Also with evaluation steps that the model writes itself (auto-CoT)",
            value=True,
            key=state.widget(f"analyses_steps_{run.run_id}"),
            help="Scores all items once more for each set of criteria of the final judge: most of the cost.",
        )
    request = AblationRequest(run.project_id, run.golden_id, run.aspect, run.run_id, with_steps)
    try:
        forms.show_estimate(_estimate(page, request))
    except ConcordError as error:
        st.warning(plain(str(error)), title="No ablation can be run now", icon=":material/warning:")
        return
    st.caption(
        "This opens the held-out items: variants are measured on them that were not before. The result says so, and "
        "the openings are counted."
    )
    people.button(
        page,
        "reviewer",
        "Run the ablations",
        type="primary",
        icon=":material/play_arrow:",
        key=state.widget("analyses_start"),
        on_click=_start,
        args=(page, request),
    )


@st.cache_resource(max_entries=32, ttl=600, show_spinner=False)
def _estimate(_page: Opened, request: AblationRequest) -> Estimate:
    """Kept for a while: every prompt is rendered for it, and a finished calibration does not change."""
    return projects.estimate_ablation(_page.store, _page.settings, request)


def _start(page: Opened, request: AblationRequest) -> None:
    try:
        projects.start_ablation(page.store, page.settings, request)
    except ConcordError as error:
        state.leave_notice(f"The ablations were not started: {error}", good=False)


def _draw_table(page: Opened, run: Run, last: Run, ablation: Ablation) -> None:
    held = ablation.rows[0].held_out
    measure = measure_name(held.statistic, held.level)
    method = f" by {held.interval.method}" if held.interval else ""
    st.subheader(plain(ablation_words(ablation)), anchor=False)
    st.caption(
        plain(
            f"{measure}, n = {held.n:,}; 95 % intervals{method}. Differences are variant minus final judge on "
            "the held-out items that both scored, "
            f"paired over sources; p is corrected (Holm) over the {len(ablation.rows) - 1} comparisons."
        )
    )
    grid.draw(ablation_frame(ablation), COLUMNS, alt="Ablation table")
    charts.place(
        _ablation_figure(last.run_id, ablation, measure), key="analyses_ablation", alt="Ablations with intervals"
    )
    notes = [
        f"{row.key}: {row.what}" + (f" Undefined: {row.reason}." if row.reason else "") for row in ablation.rows[1:]
    ]
    notes += [f"left out: {key}. {reason}" for key, reason in ablation.left_out.items()]
    st.text("\n".join(f"{line[0].upper()}{line[1:]}" for line in notes))
    st.caption(plain(f"{ablation.opening} {_accesses_words(page, run)}"))
    if ablation.steps:
        part = st.expander("The evaluation steps that the model wrote", on_change="rerun")
        if part.open:
            with part:
                for text in ablation.steps.values():
                    st.text(text)


def ablation_words(ablation: Ablation) -> str:
    """What the parts bring, in a sentence: the variants that differ from the final judge beyond chance."""
    shown = ("higher", "lower")
    differ = [row for row in ablation.rows[1:] if claim(row.difference, row.interval, row.p_holm) in shown]
    if not differ:
        return "No part is shown to make a difference"
    told = [f"{row.key} {difference_figures(row.difference, row.interval, row.p_holm)}" for row in differ]
    rest = "" if len(differ) == len(ablation.rows) - 1 else "; nothing is shown of the others"
    return f"Beside the final judge: {'; '.join(told)}{rest}"


def _accesses_words(page: Opened, run: Run) -> str:
    accesses = projects.list_held_out_accesses(page.store, run.project_id, run.golden_id, run.aspect)
    counts = Counter(access.why for access in accesses)
    if not counts:
        return ""
    reasons = "; ".join(f"{n} × {why}" for why, n in counts.items())
    return f"The held-out items of this aspect were opened {counted(len(accesses), 'time')} so far: {reasons}."


def ablation_frame(ablation: Ablation) -> pd.DataFrame:
    """The table of an ablation; None where undefined, which is drawn as "—"."""
    rows = ablation.rows
    unread = [row.held_out.n_unscored + row.calibration.n_unscored for row in rows]
    return pd.DataFrame(
        {
            "variant": [variant_name(row) for row in rows],
            "calibration": [describe(row.calibration) for row in rows],
            "held-out": [describe(row.held_out) for row in rows],
            "n": [row.held_out.n for row in rows],
            **({"unread": unread} if any(unread) else {}),
            "minus final": pd.Series([row.difference for row in rows], dtype="float64"),
            "interval": [signed(row.interval) for row in rows],
            "p": pd.Series([row.p_holm for row in rows], dtype="float64"),
        }
    )


def signed(interval: Interval | None) -> str:
    """`−0.043 to −0.020`, or "—" where there is none."""
    return tables.DASH if interval is None else f"{interval.low:+.3f} to {interval.high:+.3f}".replace("-", "−")


@st.cache_resource(max_entries=32, show_spinner=False)
def _ablation_figure(run_id: str, _ablation: Ablation, measure: str) -> Drawing:
    return ablation_figure(_ablation.rows, measure=measure)
