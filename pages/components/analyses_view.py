"""What each part of a calibrated judge brings, and what its winning criteria looked like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary, Run
from core.projects.analyses import Analyses, Scope
from core.report.figures.analyses import length_figure, pattern_figure, size_figure
from core.wording import judge_words
from pages.components import charts, run_choice, state
from pages.components.ablation_view import draw_ablation
from pages.components.chosen import distinct
from pages.components.page import Opened, link_to
from pages.components.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing


SCOPES: tuple[Scope, ...] = ("complete", "common")
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
