"""Draw the candidates of a calibration: the ranking during and after the run, and charts of all candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import streamlit as st

from core import projects
from core.calibration.calibration_records import Calibration, Candidate, LeaderboardSnapshot
from core.project_records import Run
from core.projects.calibration import CalibrationRequest
from core.projects.start_and_resume import RunDetail
from core.report import figures
from core.report.figures import Drawing, describe, measure_name
from core.wording import change_figures
from pages.ui import charts, grid, run_panel, state, tables
from pages.ui.cached import cached
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain
from pages.ui.tables import value_of

ALONG = ("Order found", "Exemplars", "Length")
"""What the candidates of the chart are arranged by."""
WORDS = {"waiting": "not finished", "running": "not finished", "stopped": "stopped", "kept": "kept"}


def draw_unfinished(page: Opened, view: RunDetail) -> None:
    """Draw a run without a result: its progress, the best candidate so far, and the current ranking."""
    candidates = () if view.standing is None else view.standing.candidates
    best = next((c for c in candidates if value_of(c.alignment) is not None), None)
    if view.status in run_panel.ENDED_WITHOUT:
        ended = run_panel.ENDED_WITHOUT[view.status]
        finding(f"The calibration for {view.aspect} {ended} before it produced a result.")
    elif best is None:
        finding(f"Calibrating {view.aspect}: Concord is drafting criteria and hasn't measured any yet.")
    else:
        name = tables.name_of(best.criteria, names_of(page, view, candidates))
        figure = describe(best.alignment)
        finding(
            f"Calibrating {view.aspect}: “{name}” agrees best with raters so far, at {figure} on calibration items."
        )
    run_panel.draw_status(page, view)
    if view.standing is not None and candidates:
        draw_ranking(page, view, view.standing)
    elif not view.finished:
        st.caption("Criteria appear here as soon as Concord drafts them. You can close this tab. The run continues.")


def names_of(page: Opened, view: Run, candidates: Sequence[Candidate]) -> Mapping[str, str]:
    """Return the names of criteria by id: the criteria of a run, and all other criteria of the same aspect."""
    own = [candidate.criteria for candidate in candidates]
    return projects.criteria_names(page.store, view.project_id, view.aspect, own)


def draw_ranking(page: Opened, view: RunDetail, snapshot: LeaderboardSnapshot) -> None:
    """Draw the candidates, best first, and the text of the selected one."""
    known = next((c.alignment for c in snapshot.candidates if c.alignment is not None), None)
    if known is None:
        st.caption("No candidates have been scored yet.")
        return
    names, heading = names_of(page, view, snapshot.candidates), tables.measure_heading(known)
    method = f" by {known.interval.method}" if known.interval else ""
    st.caption(
        plain(
            f"Ranked by {measure_name(known.statistic, known.level)} on calibration items, which were also used to "
            f"choose the criteria. 95 % intervals{method}. To read the full criteria, select a row."
        )
    )
    ids = [c.criteria.criteria_id for c in snapshot.candidates]
    picked = grid.picked(state.LEADERBOARD)
    grid.draw(
        tables.leaderboard_frame(snapshot.candidates, heading, names),
        tables.alignment_columns(heading),
        alt="Leaderboard of criteria",
        rows=12,
        key=state.LEADERBOARD,
        pick=grid.Pick(ids, picked),
    )
    if picked not in ids:
        return
    candidate = snapshot.candidates[ids.index(picked)]
    criteria = candidate.criteria
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            measured = tables.describe_n(candidate.alignment)
            st.text(f"{tables.name_of(criteria, names)} · {candidate.status} · {measured}")
            st.space("stretch")
            link_to("criteria", "Open in Criteria", icon=":material/rule:", run=view.run_id, criteria=picked)
        st.text(criteria.text or "This is the baseline, which has no criteria.")
        if candidate.inner_gain is not None:
            gain = change_figures(candidate.inner_gain, None)
            st.caption(
                f"{gain} compared with its parent on the inner fold, which decides whether Concord accepts a "
                "refinement. The difference wasn't tested."
            )


def draw_search(page: Opened, view: RunDetail, snapshot: LeaderboardSnapshot) -> None:
    """Draw the alignment of every candidate with its interval.

    The user can choose the order: drafting order, number of exemplars, or length.
    """
    names = names_of(page, view, snapshot.candidates)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.markdown("**All candidates** on calibration items, with 95 % intervals")
        st.space("stretch")
        along = st.segmented_control(
            "Sort by", ALONG, default=ALONG[0], required=True, key=state.ALONG, label_visibility="collapsed"
        )
    key = ("search", view.run_id, view.version, along, *names.items())
    drawn = cached(key, lambda: _search_figure(view, snapshot, names, along))
    charts.place(drawn, key="candidates_figure", alt="Agreement of each candidate, with its interval")


def _search_figure(view: RunDetail, snapshot: LeaderboardSnapshot, names: Mapping[str, str], along: str) -> Drawing:
    candidates = snapshot.candidates
    known = next((c.alignment for c in candidates if c.alignment is not None), None)
    measure = "agreement" if known is None else measure_name(known.statistic, known.level)
    bare = next((c for c in candidates if c.status == "baseline"), None)
    made = sorted(
        (c for c in candidates if c.status != "baseline"), key=lambda candidate: tables.origin_order(candidate.criteria)
    )
    marks = [(tables.name_of(c.criteria, names), WORDS.get(c.status, c.status), c.alignment) for c in made]
    if along == "Length":
        lengths = [len(c.criteria.text.split()) for c in made]
        title = "words in the criteria"
        return figures.candidates_figure(marks, bare and bare.alignment, measure=measure, along=title, places=lengths)
    if along == "Exemplars":
        shown = [c.criteria.provenance.size for c in made]
        # draw candidates with the same number next to each other
        places = [n + 0.7 * (shown[:k].count(n) + 0.5) / shown.count(n) - 0.35 for k, n in enumerate(shown)]
        title = "items shown to the model that wrote the criteria"
        return figures.candidates_figure(marks, bare and bare.alignment, measure=measure, along=title, places=places)
    # room for all drafts from the start, then for twenty more at a time as rounds add candidates
    drafts = view.request.settings.plan.n_drafts if isinstance(view.request, CalibrationRequest) else 0
    slots = max(drafts, 20 * math.ceil(len(made) / 20))
    return figures.candidates_figure(marks, bare and bare.alignment, measure=measure, slots=slots)


def draw_sides(view: RunDetail, calibration: Calibration) -> None:
    """Draw the held-out agreement of the final judge, the best single criteria, and the baseline."""
    n, held = len(calibration.chosen), calibration.held_out
    rows = {"final judge" if n <= 1 else f"final judge (mean of {n})": held}
    if n > 1:
        rows["best single criteria"] = calibration.best_single.held_out
    rows["baseline"] = calibration.no_criteria.held_out
    measure = measure_name(held.statistic, held.level)
    drawn = cached(("sides", view.run_id, view.version), lambda: figures.held_out_figure(rows, measure=measure))
    charts.place(drawn, key="held_out_figure", alt="Agreement on held-out items")
