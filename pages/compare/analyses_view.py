"""What each part of a calibrated judge brings, and what its winning criteria looked like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary, Run
from core.projects.analyses import Analyses
from core.report.figures.analyses import length_figure, pattern_figure, size_figure
from core.wording import judge_words
from pages.compare.ablation_view import draw_ablation
from pages.ui import charts, run_choice, state
from pages.ui.chosen import distinct
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing


PARTS, LOOKS = QUESTIONS = ("With and without each part", "What the criteria looked like")


def draw(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """One question at a time about a finished calibration of `aspect` on `golden`."""
    runs = projects.calibrations_of(page.store, page.project.project_id, golden.golden_id, aspect)
    if not runs:
        st.info(
            f"No calibration of {plain(aspect)} on this golden set has come to its end yet. Run a calibration: its "
            "parts are then taken away one by one here, and its criteria compared.",
            icon=":material/tune:",
        )
        link_to("calibrate", "Start a calibration", icon=":material/tune:", golden=golden.golden_id)
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        question = st.segmented_control(
            "Question",
            QUESTIONS,
            default=PARTS,
            required=True,
            key=state.widget("analyses_question"),
            label_visibility="collapsed",
        )
        run = _choose_run(page, golden, aspect, runs)
    try:
        if question == PARTS:
            draw_ablation(page, run)
        else:
            _draw_candidates(page, run)
    except ConcordError as error:
        st.error(plain(str(error)), title="This calibration cannot be analysed", icon=":material/error:")


def _choose_run(page: Opened, golden: GoldenSummary, aspect: str, runs: list[Run]) -> Run:
    """A calibration: at first the one behind the judge in use, else the newest."""
    by_id = {run.run_id: run for run in (*run_choice.behind_judge_in_use(page, runs), *runs)}
    if len(by_id) == 1:
        return runs[0]
    words = distinct({run_id: _run_words(run) for run_id, run in by_id.items()})
    chosen = st.selectbox(
        "Calibration",
        list(by_id),
        key=state.widget(f"analyses_run_{golden.golden_id}_{aspect}"),
        format_func=lambda run_id: words[run_id],
        label_visibility="collapsed",
        width=330,
    )
    return by_id[chosen]


# ── what the candidates looked like ──────────────────────────────────────────────────────────────────────────


@st.cache_resource(max_entries=32, show_spinner=False)
def _analysed(_page: Opened, run_id: str) -> tuple[Analyses, dict[str, Drawing]]:
    """Analyse a finished calibration once, for it does not change."""
    found = projects.analyse_candidates(_page.store, run_id)
    return found, {
        "**By exemplar size** (drafts)": size_figure(found),
        "**By length**": length_figure(found),
        "**Holistic or specific**": pattern_figure(found),
    }


def _run_words(run: Run) -> str:
    """Judge and a fixed moment, for an option whose words moved on by themselves would lose its choice."""
    return f"{judge_words(run.judge_spec)}, {(run.finished_at or run.created_at).astimezone():%d %b %H:%M}"


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
    places = [*st.columns(2, gap="medium"), st.columns(2, gap="medium")[0]]
    for column, (title, figure) in zip(places, figures.items(), strict=True):
        with column:
            st.markdown(title)
            charts.place(figure, key=f"analyses_{figure.name}", alt=title.strip("*"))
    st.caption(f"Length: {found.by_length.sentence}")
    st.caption(
        "Specific criteria have a rubric line for at least half of the scale's steps, such as “5: …” or "
        "“Score 3 - …”; holistic ones say what good and bad items have in common."
    )
