"""Fusion by a language model: the newest run with its agreement, and a form that starts another run."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.fusion.fusion_settings import LONGEST_CRITERIA, LONGEST_PLAN, FusionRequest, FusionRunView
from core.projects.start_and_resume import RunDetail
from core.report.figures import describe
from core.wording import money
from pages.fusion.result import Fused
from pages.ui import run_panel, state
from pages.ui.page import Opened
from pages.ui.screens import plain

EXPLAINED = (
    "A language model reads each item with the scores from all parts of the fusion, and rates the item by following "
    "a plan. Its ratings are the scores of a new judge."
)


def draw(page: Opened, fused: Fused) -> None:
    """Draw the newest run, and the form that starts another run."""
    project_id, golden_id = page.project.project_id, fused.view.golden_id
    st.markdown(EXPLAINED)
    runs = page.store.runs.all(project_id)
    about = ("fusion", golden_id, fused.aspect)
    newest = next((run for run in runs if (run.kind, run.golden_id, run.aspect) == about), None)
    if newest is not None:
        run_panel.follow_run(page, newest.run_id, lambda view: _draw_run(page, view))
        _draw_agreement(page, fused, newest.run_id)
    spec = st.text_input(
        "Model",
        key=state.widget("fusion_model"),
        placeholder="openai:MODEL or openai:MODEL@BASE_URL",
        help="Use a model at an OpenAI-compatible endpoint.",
    ).strip()
    judge_ids = tuple(part.judge_id for part in fused.parts)
    request = FusionRequest(project_id, golden_id, fused.aspect, judge_ids, spec)
    outcome = None if newest is None else projects.run_view(page.store, newest.run_id).outcome
    request = _edit_texts(request, outcome)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        limit = st.number_input(
            "Items to rate (0: all)", min_value=0, value=0, step=20, key=state.widget("fusion_items_limit"), width=220
        )
        budget = st.number_input(
            "Maximum calls (0: no limit)", min_value=0, value=0, step=50, key=state.widget("fusion_budget"), width=220
        )
    settings = replace(request.settings, budget=int(budget) or None)
    request = replace(request, settings=settings, n_items=int(limit) or None)
    if not spec:
        st.caption("Enter a model to see the cost of the fusion.")
        return
    try:
        estimate = projects.estimate_fusion(page.store, page.settings, request)
    except ConcordError as error:
        st.warning(plain(str(error)), icon=":material/edit:")
        return
    n_tokens = (estimate.prompt_tokens or 0) + (estimate.completion_tokens or 0)
    st.markdown(f"{plain(estimate.words)}; about {n_tokens:,} tokens, {plain(money(estimate.cost))}.")
    run_panel.draw_start(page, "Start the LLM fusion", lambda: projects.start_run(page.store, page.settings, request))


def _edit_texts(request: FusionRequest, newest: FusionRunView | None) -> FusionRequest:
    """Draw the text areas for plan and criteria, filled from the newest run; return the request with both."""
    box = state.widget(f"fusion_plan_{request.golden_id[-12:]}_{request.aspect}")
    if newest is not None:
        st.session_state.setdefault(box, newest.plan)
        st.session_state.setdefault(f"{box}_criteria", newest.criteria)
    left, right = st.columns(2)
    criteria = left.text_area(
        "Criteria",
        key=f"{box}_criteria",
        height=200,
        max_chars=LONGEST_CRITERIA,
        placeholder="Describe what deserves a high rating. If you leave this empty, the model writes the criteria.",
        help="To rate without criteria, enter “none”.",
    )
    plan = right.text_area(
        "Plan",
        key=box,
        height=200,
        max_chars=LONGEST_PLAN,
        placeholder="Explain which parts to use and how to interpret their scores. If you leave this empty, the model "
        "writes the plan.",
        help="To rate without a plan, enter “none”.",
    )
    return replace(request, settings=replace(request.settings, plan=plan.strip(), criteria=criteria.strip()))


def _draw_run(page: Opened, view: RunDetail) -> None:
    outcome = view.outcome
    if not isinstance(outcome, FusionRunView):
        run_panel.draw_status(page, view)
        return
    used = view.usage
    calls = f"{outcome.calls:,} calls ({used.requests:,} sent, {used.cached:,} cached)"
    price = f"{used.prompt_tokens + used.completion_tokens:,} tokens, {money(used.cost)}"
    words = f"{view.title}: {calls}, {price}. Its scores were saved as a judge. {outcome.stopped_early}"
    st.success(plain(words), icon=":material/check:")
    with st.popover("Plan and criteria used in this run", icon=":material/description:"):
        st.caption("Plan")
        st.text(outcome.plan)
        st.caption("Criteria")
        st.text(outcome.criteria)
    for aspect, reasons in outcome.unscored.items():
        words = ", ".join(f"{n} {reason}" for reason, n in reasons.items())
        st.caption(plain(f"Items without a score for {aspect}: {words}."))


def _draw_agreement(page: Opened, fused: Fused, run_id: str) -> None:
    """Draw the agreement of a finished run with the raters."""
    try:
        result = projects.fusion_result(page.store, run_id, fused.settings)
    except ConcordError as error:
        st.warning(plain(str(error)), icon=":material/block:")
        return
    if result is not None:
        st.markdown(f"**Agreement with raters: {plain(describe(result))}**")
        units = "systems" if fused.settings.level == "system" else "items"
        st.caption(plain(f"{fused.measure}, n = {result.n:,} {units}. No part has seen the labels of these items."))
