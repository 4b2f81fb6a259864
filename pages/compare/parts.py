"""What each part of a calibrated judge adds (its ablation), and what its candidates looked like."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from core import projects
from core.calibration.calibration_result import Estimate
from core.errors import ConcordError
from core.project_records import GoldenSummary, Run
from core.projects.judge_checks import Ablation, AblationRequest, Analyses
from core.report.figures import describe, measure_name
from core.report.figures.candidate_plots import length_figure, size_figure
from core.report.figures.whiskers import ablation_figure, variant_name
from core.stats import claim
from core.wording import counted, difference_figures, judge_words, signed_range
from pages.ui import charts, forms, grid, run_panel, state
from pages.ui.chosen import distinct
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing

COLUMNS = {
    "calibration": Column(help="on the items that chose the criteria (optimistic)"),
    "held-out": Column(help="on items that chose nothing: the number to quote"),
    "n": Column(help="held-out items"),
    "unread": Column(help="items without a readable score, counted, never guessed"),
    "minus final": Column(digits=2, signed=True),
    "p": Column("p (Holm)", digits=3),
}


def draw(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """The ablation of a finished calibration of `aspect` on `golden`, or the way to it; its candidates below."""
    runs = projects.calibrations_of(page.store, page.project.project_id, golden.golden_id, aspect)
    if not runs:
        st.info(
            f"No calibration of {plain(aspect)} on this golden set has come to its end yet. Run a calibration: its "
            "parts are then taken away one by one here, and its criteria compared.",
            icon=":material/tune:",
        )
        link_to("calibrate", "Start a calibration", icon=":material/tune:", golden=golden.golden_id)
        return
    by_id = {run.run_id: run for run in (*run_panel.behind_judge_in_use(page, runs), *runs)}
    run = next(iter(by_id.values()))
    if len(by_id) > 1:
        # a fixed moment, for an option whose words moved on by themselves would lose its choice
        ended = {each.run_id: (each.finished_at or each.created_at).astimezone() for each in runs}
        words = distinct({key: f"{judge_words(by_id[key].judge_spec)}, {ended[key]:%d %b %H:%M}" for key in by_id})
        key = state.widget(f"analyses_run_{golden.golden_id}_{aspect}")
        run = by_id[st.selectbox("Calibration", list(by_id), key=key, format_func=words.__getitem__, width=330)]
    try:
        _draw_ablation(page, run)
        with st.expander("What the candidates looked like", icon=":material/scatter_plot:"):
            _draw_candidates(page, run)
    except ConcordError as error:
        st.error(plain(str(error)), title="This calibration cannot be analysed", icon=":material/error:")


def _draw_ablation(page: Opened, run: Run) -> None:
    last = projects.last_ablation(page.store, run.run_id)
    if last is not None and not last.finished:
        run_panel.follow_run(page, last.run_id)
        return
    outcome = None if last is None else run_panel.read_run(page, last.run_id).outcome
    if last is not None and last.status in ("failed", "cancelled"):
        run_panel.draw_status(page, last)
    if isinstance(outcome, Ablation) and last is not None:
        _draw_table(page, run, last, outcome)
        return
    st.markdown(
        "The final judge next to the same judge without criteria, without refinement, and with its single best "
        "criteria instead of the mean."
    )
    request = AblationRequest(run.project_id, run.golden_id, run.aspect, run.run_id)
    try:
        forms.show_estimate(_estimate(page, request))
    except ConcordError as error:
        st.warning(plain(str(error)), title="No ablation can be run now", icon=":material/warning:")
        return
    st.caption(
        "This opens the held-out items: variants are measured on them that were not before. The result says so, and "
        "the openings are counted."
    )
    run_panel.draw_start(
        page,
        "Run the ablations",
        lambda: projects.start_ablation(page.store, page.settings, request),
        key=state.widget("analyses_start"),
    )


@st.cache_resource(max_entries=32, ttl=600, show_spinner=False)
def _estimate(_page: Opened, request: AblationRequest) -> Estimate:
    """Kept for a while: every prompt is rendered for it, and a finished calibration does not change."""
    return projects.estimate_ablation(_page.store, _page.settings, request)


def _draw_table(page: Opened, run: Run, last: Run, ablation: Ablation) -> None:
    """Which variants differ from the final judge, all of them as a table and a figure, and what was opened."""
    held = ablation.rows[0].held_out
    measure = measure_name(held.statistic, held.level)
    differ = [
        f"{row.key} {difference_figures(row.difference, row.interval, row.p_holm)}"
        for row in ablation.rows[1:]
        if claim(row.difference, row.interval, row.p_holm) in ("higher", "lower")
    ]
    words = (
        f"Compared with the final judge: {'; '.join(differ)}" if differ else "No part makes a significant difference"
    )
    st.subheader(plain(words), anchor=False)
    method = f" by {held.interval.method}" if held.interval else ""
    st.caption(
        plain(
            f"{measure}, n = {held.n:,}; 95 % intervals{method}. Differences are variant minus final judge on "
            "the held-out items that both scored, "
            f"paired over sources; p is corrected (Holm) over the {len(ablation.rows) - 1} comparisons."
        )
    )
    frame = pd.DataFrame(
        [
            {
                "variant": variant_name(row),
                "calibration": describe(row.calibration),
                "held-out": describe(row.held_out),
                "n": row.held_out.n,
                "unread": row.held_out.n_unscored + row.calibration.n_unscored,
                "minus final": row.difference,
                "95 % interval": signed_range(row.interval),
                "p": row.p_holm,
            }
            for row in ablation.rows
        ]
    )
    grid.draw(frame, COLUMNS, alt="Ablation table")
    drawn = _ablation_figure(last.run_id, ablation, measure)
    charts.place(drawn, key="analyses_ablation", alt="Ablations with intervals")
    notes = [
        f"{row.key}: {row.what}" + (f" Undefined: {row.reason}." if row.reason else "") for row in ablation.rows[1:]
    ]
    notes += [f"left out: {key}. {reason}" for key, reason in ablation.left_out.items()]
    st.text("\n".join(f"{line[0].upper()}{line[1:]}" for line in notes))
    accesses = projects.list_held_out_accesses(page.store, run.project_id, run.golden_id, run.aspect)
    reasons = "; ".join(f"{n} × {why}" for why, n in Counter(access.why for access in accesses).items())
    opened = f" The held-out items of this aspect were opened {counted(len(accesses), 'time')} so far: {reasons}."
    st.caption(plain(ablation.opening + (opened if accesses else "")))


@st.cache_resource(max_entries=32, show_spinner=False)
def _ablation_figure(run_id: str, _ablation: Ablation, measure: str) -> Drawing:
    return ablation_figure(_ablation.rows, measure=measure)


@st.cache_resource(max_entries=32, show_spinner=False)
def _analysed(_page: Opened, run_id: str) -> tuple[Analyses, dict[str, Drawing]]:
    """Analyse a finished calibration once, for it does not change."""
    found = projects.analyse_candidates(_page.store, run_id)
    return found, {
        "By exemplar size (drafts)": size_figure(found),
        "By length": length_figure(found),
    }


def _draw_candidates(page: Opened, run: Run) -> None:
    found, figures = _analysed(page, run.run_id)
    if not found.places:
        st.info(
            f"None of the {found.n_candidates} candidates has an alignment. Calibrate with a larger budget, or on "
            "items that the judge tells apart.",
            icon=":material/info:",
        )
        return
    undefined = f" Another {found.n_undefined} have no defined alignment there." if found.n_undefined else ""
    st.text(
        f"{len(found.places)} of {found.n_candidates} candidates, compared on the {found.n_items:,} calibration items "
        f"that all of them were scored on.{undefined}"
    )
    st.caption("These labels shaped and chose the criteria: the plots show what won here, not how good it is.")
    for column, (title, figure) in zip(st.columns(2, gap="medium"), figures.items(), strict=True):
        with column:
            st.markdown(f"**{title}**")
            charts.place(figure, key=f"analyses_{figure.name}", alt=title)
    st.caption(f"Length: {found.by_length.sentence}")
