"""Baseline metrics: choose metrics that the golden set supports, compute them, and see the results."""

from __future__ import annotations

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.metrics import Metric, make_metric, metrics_for
from core.project_records import GoldenSummary
from core.projects.project_judges import MetricsRequest, MetricsResult
from core.projects.start_and_resume import RunDetail
from core.wording import counted
from pages.ui import run_panel, state
from pages.ui.page import Opened
from pages.ui.screens import plain
from pages.ui.state import widget

COLUMN_PREFIX = "metric_"
ACROSS = 3


@st.cache_resource(max_entries=8, show_spinner="Checking the items …")
def _offers(golden_id: str, _page: Opened) -> tuple[tuple[Metric, str], ...]:
    """Return each metric with the reason why it is unavailable, or ""; cached because golden sets never change."""
    golden = _page.store.goldens.load(golden_id)
    return tuple((metric, metric.missing(golden)) for metric in metrics_for(golden))


def draw(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """Draw the newest run, the metrics to choose from, and the button that computes them for all labelled aspects."""
    draw_run(page, golden)
    offers = _offers(golden.golden_id, page)
    there = {entry.name for entry in page.store.judges.all(page.project.project_id, golden.golden_id, aspect)}
    st.caption(
        "Metrics use the texts, never the labels. Each metric is a baseline for the judges and has its own scale."
    )
    # New boxes after each start, because browsers keep old ones checked
    prefix = widget(f"metrics_{golden.golden_id[-12:]}_{st.session_state.get(state.METRICS_RUN, '')}")
    possible = [metric for metric, missing in offers if not missing]
    chosen = []
    places = st.columns(ACROSS, gap="medium")
    for place, metric in enumerate(possible):
        with places[place % ACROSS], st.container(gap="xxsmall"):
            needs = ", ".join(sorted(metric.needs)) or "only the judged text"
            name = f"{metric.name} (already added)" if metric.name in there else metric.name
            help_words = plain(f"Needs: {needs}. Cost: {metric.cost}.")
            if st.checkbox(plain(name), key=f"{prefix}_{metric.name}", help=help_words):
                chosen.append(metric.name)
            st.caption(plain(metric.measures))
    by_reason: dict[str, list[str]] = {}
    for metric, missing in offers:
        if missing:
            by_reason.setdefault(missing, []).append(metric.name)
    if by_reason:
        lacking = "; ".join(f"{', '.join(names)} ({reason})" for reason, names in by_reason.items())
        st.caption(plain(f"Not available here: {lacking}."))
    with st.expander("Use your own model", icon=":material/deployed_code:"):
        typed = st.text_input(
            "Other metrics, separated by commas",
            key=f"{prefix}_models",
            placeholder="bertscore:MODEL, nli:FOLDER",
            help="Enter bertscore:, nli:, regression: or likelihood:, followed by a Hugging Face ID or a folder on "
            "the worker's machine.",
        )
    chosen += [name.strip() for name in typed.split(",") if name.strip()]
    problem = "A metric is listed twice. Remove the duplicate." if len(set(chosen)) < len(chosen) else ""
    try:
        for name in chosen:
            if not name.startswith(COLUMN_PREFIX):
                make_metric(name)
    except ConcordError as error:
        problem = str(error)
    if problem:
        st.warning(plain(problem), icon=":material/edit:")
    costs = {metric.name: metric.cost for metric in possible}
    known = dict.fromkeys(costs.get(name, "your own model: slow without a GPU") for name in chosen)
    words = "No metrics chosen yet. Metrics make no judge calls."
    if chosen:
        words = f"{golden.n_items:,} items for each metric, no judge calls. " + " ".join(
            f"{cost[0].upper()}{cost[1:]}." for cost in known
        )
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        request = MetricsRequest(page.project.project_id, golden.golden_id, aspect, tuple(chosen))
        label = f"Compute {counted(len(chosen), 'metric')}" if chosen else "Compute"
        draw_start(page, label, request, disabled=not chosen or bool(problem))
        st.text(words)


def draw_start(page: Opened, label: str, request: MetricsRequest, *, disabled: bool) -> None:
    """Draw the button that computes the metrics. This session then shows the run even after it has finished."""
    run_panel.draw_start(
        page,
        label,
        lambda: projects.start_run(page.store, page.settings, request),
        lambda run_id: st.session_state.update({state.METRICS_RUN: run_id}),
        icon=":material/calculate:",
        disabled=disabled,
    )


def draw_run(page: Opened, golden: GoldenSummary) -> None:
    """Draw the newest computation of metrics on this golden set, while it runs.

    A finished computation stays visible in the session that started it.
    """
    runs = page.store.runs.all(page.project.project_id)
    newest = next((run for run in runs if run.kind == "metrics" and run.golden_id == golden.golden_id), None)
    if newest is None or (newest.finished and newest.run_id != st.session_state.get(state.METRICS_RUN)):
        return

    def draw(view: RunDetail) -> None:
        outcome = view.outcome
        if not isinstance(outcome, MetricsResult):
            run_panel.draw_status(page, view)
            return
        if outcome.judges:
            words = f"Added as judges for {', '.join(outcome.aspects)}: {', '.join(outcome.judges)}."
            st.success(plain(words), icon=":material/check:")
        if outcome.left_out:
            left_out = outcome.left_out.items()
            lines = [plain(f"{name} was left out: {reason.rstrip('.')}.") for name, reason in left_out]
            st.warning("  \n".join(lines), icon=":material/info:")

    run_panel.follow_run(page, newest.run_id, draw)
