"""RepEval screen: the newest result with its heat map, and the form that starts a run."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.method_runs import RepEvalOutcome, RepEvalRequest
from core.projects.start_and_resume import RunDetail
from pages.repeval import repeval_form, repeval_view
from pages.ui import chosen, run_panel
from pages.ui.page import Opened, link_to, open_page, stop_with
from pages.ui.screens import plain


def show_run(page: Opened, run_id: str) -> None:
    try:
        view = run_panel.read_run(page, run_id)
    except ConcordError as error:
        stop_with("Concord can't show this run.", str(error))
    if not isinstance(view.request, RepEvalRequest):
        link_to("runs", "Open in Runs", icon=":material/list_alt:", run=run_id)
        stop_with("This isn't a RepEval run.", "Choose a RepEval run, or start one.")
    run_panel.follow_run(page, run_id, lambda now: draw(page, now))


def draw(page: Opened, view: RunDetail) -> None:
    if isinstance(view.outcome, RepEvalOutcome):
        repeval_view.draw_result(page, view, view.outcome)
    else:
        repeval_view.draw_status(page, view)


def show_form(page: Opened) -> None:
    golden = chosen.choose_golden(page)
    aspect = chosen.choose_aspect(page, golden)
    runs = page.store.runs.all(page.project.project_id)
    if not any(run.kind == "repeval" and run.golden_id == golden.golden_id for run in runs):
        st.info(
            "RepEval hasn't been run on this golden set yet. Start it with the settings below. The MiniLM model "
            "comes with Concord, runs on any computer and needs no network connection.",
            icon=":material/grid_on:",
        )
    try:
        request = repeval_form.choose(page, golden, aspect)
        repeval_form.draw_estimate(page, request)
    except ConcordError as error:
        st.warning(f"Concord can't start RepEval with these settings.  \n{plain(str(error))}", icon=":material/edit:")
        return
    run_panel.draw_start(
        page,
        "Read the hidden states",
        lambda: projects.start_run(page.store, page.settings, request),
        run_panel.show_started,
    )


page = open_page("repeval", intro="Predict text quality from a model's hidden states, without calling a judge.")
if run_id := run_panel.choose_run(page, "repeval", new="New RepEval"):
    show_run(page, run_id)
else:
    show_form(page)
