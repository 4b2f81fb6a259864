"""LLM fusion on screen: what is rated by which model, what it costs, its run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.fusion.fusion_request import FusionRequest, FusionRunView
from core.projects.kinds import RunDetail
from core.wording import money
from pages.fusion import fusion_result, fusion_texts
from pages.fusion.fusion_view import Fused
from pages.ui import run_panel, state
from pages.ui.page import Opened
from pages.ui.screens import plain

EXPLAINED = (
    "A language model reads each item with the numbers of the parts and rates it by a plan: which part "
    "serves which aspect, and how. One call an item rates all the aspects below, with an explanation each and a score "
    "all in all. The scores join the judges, to be compared on items the plan was not made from."
)


def draw(page: Opened, fused: Fused) -> None:
    """The aspects, the plan, the estimate, the start, and the newest run."""
    st.markdown(EXPLAINED)
    _draw_run(page, fused)
    aspects = _choose_aspects(fused)
    spec = st.text_input(
        "Model",
        key=state.widget("fusion_model"),
        placeholder="openai:MODEL, openai:MODEL@BASE_URL, or scripted (a stand-in)",
        help="An OpenAI-compatible endpoint; scripted is the stand-in for demonstrations, which knows nothing.",
    ).strip()
    request = FusionRequest(
        page.project.project_id, fused.view.golden_id, fused.aspect, aspects, _assistants(page, fused, aspects), spec
    )
    key = state.widget(f"fusion_plan_{fused.view.golden_id[-12:]}_{'+'.join(aspects)}")
    versions = [plan for plan in projects.list_plans(page.store, page.project.project_id, fused.view.golden_id)
                if set(plan.aspects) == set(aspects)]  # fmt: skip
    request = fusion_texts.draw(page, request, versions, key)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        limit = st.number_input(
            "Items to rate (0: all)", min_value=0, value=0, step=20, key=state.widget("fusion_items_limit"), width=220
        )
        budget = st.number_input(
            "Most calls (0: no limit)", min_value=0, value=0, step=50, key=state.widget("fusion_budget"), width=220
        )
        each = st.checkbox(
            "Also without each assistant",
            key=state.widget("fusion_leave_one_out"),
            help="Rates the items once more without each assistant of the plan in turn: what does each bring? The "
            "price below counts them; of a limited number of calls they get what the items leave.",
        )
        references = st.checkbox(
            "Show references",
            key=state.widget("fusion_references"),
            help="Adds each item's references to the prompt. Items without one are not rated.",
        )
    settings = replace(request.settings, budget=int(budget) or None, leave_one_out=each, references=references)
    _draw_start(page, replace(request, settings=settings, n_items=int(limit) or None))


def _choose_aspects(fused: Fused) -> tuple[str, ...]:
    """What each call rates: the aspect of the screen, and at first every other that has labels."""
    others = [aspect.aspect for aspect in fused.view.aspects if aspect.n_labelled and aspect.aspect != fused.aspect]
    if not others:
        return (fused.aspect,)
    chosen = st.multiselect(
        f"Rated in each call, along with {plain(fused.aspect)}",
        others,
        default=others,
        format_func=plain,
        key=state.widget(f"fusion_aspects_{fused.view.golden_id[-12:]}_{fused.aspect}"),
        help="Every aspect is rated in the same call, so more of them cost hardly more.",
    )
    return (fused.aspect, *chosen)


def _assistants(page: Opened, fused: Fused, aspects: Sequence[str]) -> tuple[str, ...]:
    """The ticked parts, and for the other aspects their like: metrics serve every aspect, others have their own."""
    kinds = {part.judge.kind for part in fused.parts} - {"metric", "fused"}
    judge_ids = [part.judge_id for part in fused.parts]
    for aspect in aspects[1:] if kinds else ():
        entries = page.store.judges.all(page.project.project_id, fused.view.golden_id, aspect)
        judge_ids += [entry.judge_id for entry in entries if entry.judge.kind in kinds]
    return tuple(judge_ids)


def _draw_start(page: Opened, request: FusionRequest) -> None:
    if not request.judge_spec:
        st.caption("Name the model to see what the fusion would cost.")
        return
    try:
        estimate = projects.estimate_fusion(page.store, page.settings, request)
    except ConcordError as error:
        st.warning(plain(str(error)), icon=":material/edit:")
        return
    n_tokens = (estimate.prompt_tokens or 0) + (estimate.completion_tokens or 0)
    price = plain(money(estimate.cost))
    st.markdown(f"{plain(estimate.words)}; about {n_tokens:,} tokens, {price}.")
    run_panel.draw_start(
        page, "Start the LLM fusion", lambda: projects.start_fusion(page.store, page.settings, request)
    )


def _draw_run(page: Opened, fused: Fused) -> None:
    runs = projects.list_runs(page.store, page.project.project_id)
    newest = next((run for run in runs if run.kind == "fusion" and run.golden_id == fused.view.golden_id), None)
    if newest is None:
        return
    run_panel.follow_run(page, newest.run_id, lambda view: _draw_view(page, view))
    fusion_result.draw(page, fused, newest.run_id)


def _draw_view(page: Opened, view: RunDetail) -> None:
    if isinstance(view.outcome, FusionRunView):
        lost = [
            f"{aspect}: {', '.join(f'{n} {reason}' for reason, n in counts.items())}"
            for aspect, counts in view.outcome.unscored.items()
        ]
        used = view.usage
        calls = f"{view.outcome.calls:,} calls ({used.requests:,} sent, {used.cached:,} from replies kept earlier)"
        price = f"{used.prompt_tokens + used.completion_tokens:,} tokens, {money(used.cost)}"
        st.success(
            plain(f"{view.title}: {calls}, {price}; its scores are among the judges. {view.outcome.stopped_early}"),
            icon=":material/check:",
        )
        with st.popover("Plan and criteria of this run", icon=":material/description:"):
            st.caption("Plan")
            st.text(view.outcome.plan)
            whose = "; ".join(f"{aspect}: {origin}" for aspect, origin in view.outcome.criteria_origins.items())
            st.caption(plain(f"Criteria ({whose or 'none'})"))
            st.text(view.outcome.criteria)
        if lost:
            st.caption(plain(f"Without a score: {'; '.join(lost)}."))
    else:
        run_panel.draw_status(page, view)
