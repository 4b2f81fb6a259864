"""What each part of a calibrated judge brings, and what its winning criteria looked like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from core import projects
from core.calibration.records import Candidate
from core.errors import ConcordError
from core.project_records import GoldenSummary, Run
from core.projects.analyses import Analyses, CaseStudy, Scope
from core.records import STATISTICS
from core.report.figures import STATISTIC_NAMES, describe
from core.report.figures.analyses import length_figure, pattern_figure, size_figure
from core.stats import change_figures
from core.wording import judge_words, word_diff
from pages.components import charts, criteria_names, diff_view, grid, run_choice, state, tables
from pages.components.ablation_view import draw_ablation, signed
from pages.components.chosen import distinct
from pages.components.grid import Column
from pages.components.page import Opened, link_to
from pages.components.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing


SCOPES: tuple[Scope, ...] = ("complete", "common")
PARTS, LOOKS, CASE = QUESTIONS = (
    "With and without each part",
    "What the criteria looked like",
    "Before and after refining",
)


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
        elif question == LOOKS:
            _draw_candidates(page, run)
        else:
            _draw_case(page, run)
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


@dataclass(frozen=True)
class _Drawn:
    analyses: Analyses
    size: Drawing
    length: Drawing
    pattern: Drawing


@st.cache_resource(max_entries=32, show_spinner=False)
def _analysed(_page: Opened, run_id: str, scope: Scope) -> _Drawn:
    """A finished calibration does not change, so its analyses are made once."""
    analyses = projects.analyse_candidates(_page.store, run_id, scope)
    pool = analyses.pool
    return _Drawn(
        analyses,
        size_figure(pool),
        length_figure(pool, analyses.by_length),
        pattern_figure(pool, analyses.by_pattern.groups),
    )


def _run_words(run: Run) -> str:
    """Judge and a fixed moment, for an option whose words moved on by themselves would lose its choice."""
    return f"{judge_words(run.judge_spec)}, {(run.finished_at or run.created_at).astimezone():%d %b %H:%M}"


def _draw_candidates(page: Opened, run: Run) -> None:
    drawn = {scope: _analysed(page, run.run_id, scope) for scope in SCOPES}
    scope: Scope = "complete"
    if drawn["common"].analyses.pool.n_items == drawn["complete"].analyses.pool.n_items:
        st.text(scope_words(drawn[scope].analyses))
    else:
        scope = st.radio(
            "Compare",
            SCOPES,
            key=state.widget("analyses_scope"),
            format_func=lambda option: scope_words(drawn[option].analyses),
            help="Alignments on few items are no match for those on all, so the two are never mixed.",
        )
    chosen = drawn[scope]
    if not chosen.analyses.pool.places:
        st.info(f"There is nothing to analyse: {chosen.analyses.pool.why_empty}", icon=":material/info:")
        return
    st.caption(
        "On calibration items, whose labels shaped and chose these criteria: what made them win here, not how good "
        "they are."
    )
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**By exemplar size** (drafts)")
        charts.place(chosen.size, key="analyses_by_size", alt="Alignment of drafts by exemplar size")
        st.text(chosen.analyses.by_size.sentence)
    with right:
        st.markdown("**By length**")
        charts.place(chosen.length, key="analyses_by_length", alt="Alignment by length of the criteria in words")
        st.text(chosen.analyses.by_length.sentence)
    left, right = st.columns(2, gap="medium", vertical_alignment="center")
    with left:
        st.markdown("**Holistic or specific**")
        charts.place(chosen.pattern, key="analyses_by_pattern", alt="Alignment of holistic and specific criteria")
    with right:
        st.text(chosen.analyses.by_pattern.sentence)
        st.caption(
            "Specific criteria have a rubric line for at least half of the scale's steps, such as “5: …” or "
            "“Score 3 - …”; holistic ones say what good and bad items have in common."
        )


def scope_words(analyses: Analyses) -> str:
    """What is compared, with its counts, e.g. "8 of 132 candidates are complete: scored on all 800 …"."""
    pool = analyses.pool
    n = len(pool.places) + pool.n_undefined
    undefined = f" ({pool.n_undefined} undefined)" if pool.n_undefined else ""
    if pool.scope == "complete":
        verb = "is" if n == 1 else "are"
        return f"{n} of {pool.n_candidates} candidates {verb} complete: scored on all {pool.n_items:,} items{undefined}"
    return f"{n} of {pool.n_candidates} candidates on the first {pool.n_items:,} items, scored by all{undefined}"


# ── before and after ─────────────────────────────────────────────────────────────────────────────────────────


def _draw_case(page: Opened, run: Run) -> None:
    refinements = {refinement.criteria.criteria_id: refinement for refinement in _refinements(page, run.run_id)}
    if not refinements:
        st.caption("No refinement was scored on all calibration items in this calibration.")
        return
    names = criteria_names.names_of(page, run.aspect)
    chosen = st.selectbox(
        "Refinement (largest difference on the inner fold first)",
        list(refinements),
        key=state.widget(f"analyses_case_{run.run_id}"),
        format_func=lambda criteria_id: _refinement_words(refinements[criteria_id], names),
    )
    case = _case(page, run.run_id, chosen)
    if case is None:
        return
    st.caption(
        f"Both on the same {case.n:,} calibration items, {case.before[STATISTICS[0]].level} level. These items chose "
        "the refinement and some were shown to its writer, so the difference flatters."
    )
    columns = {"after − before": Column(digits=3, signed=True), "p": Column(digits=3)}
    grid.draw(case_frame(case), columns, alt="Alignment before and after refinement")
    diff_view.draw(word_diff(case.parent.text, case.child.text))
    link_to("criteria", "Open in Criteria", icon=":material/rule:", run=run.run_id, criteria=case.child.criteria_id)


@st.cache_resource(max_entries=32, show_spinner=False)
def _refinements(_page: Opened, run_id: str) -> tuple[Candidate, ...]:
    return projects.list_refinements(_page.store, run_id)


@st.cache_resource(max_entries=64, show_spinner=False)
def _case(_page: Opened, run_id: str, criteria_id: str) -> CaseStudy | None:
    return projects.case_study(_page.store, run_id, criteria_id)


def case_frame(case: CaseStudy) -> pd.DataFrame:
    """r, rho and tau before and after, with the paired difference."""
    differences = [case.differences[statistic] for statistic in STATISTICS]
    return pd.DataFrame(
        {
            "statistic": [STATISTIC_NAMES[statistic] for statistic in STATISTICS],
            "before": [describe(case.before[statistic]) for statistic in STATISTICS],
            "after": [describe(case.after[statistic]) for statistic in STATISTICS],
            "after − before": pd.Series([difference.value for difference in differences], dtype="float64"),
            "95 % interval": [signed(difference.interval) for difference in differences],
            "p": pd.Series([difference.p for difference in differences], dtype="float64"),
            "n": [difference.n for difference in differences],
        }
    )


def _refinement_words(candidate: Candidate, names: Mapping[str, str]) -> str:
    gain = (
        "inner fold undefined"
        if candidate.inner_gain is None
        else f"inner fold {change_figures(candidate.inner_gain, None)}"
    )
    return f"{tables.name_of(candidate.criteria, names)}: {gain}, {candidate.status}"
