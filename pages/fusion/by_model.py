"""Fusion by a language model: its aspects, plan and criteria, the price, the newest run and what it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.fusion.fusion_settings import FusionRequest, FusionRunView
from core.fusion.plan_and_criteria import OVERALL, folded
from core.projects.run_control import RunDetail
from core.records import Alignment
from core.wording import money
from pages.fusion.result import Fused
from pages.ui import grid, run_panel, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened
from pages.ui.screens import plain

EXPLAINED = (
    "A language model reads each item with the numbers of the parts, and rates it by a plan: which part serves which "
    "aspect. One call per item rates all aspects below. The scores join the judges."
)
CRITERIA_HELP = (
    "A line with the aspect's name, and its criteria beneath it. The model writes the criteria of every aspect that "
    "you leave out. Write 'none' beneath an aspect to rate it without criteria."
)


def draw(page: Opened, fused: Fused) -> None:
    """Draw the newest run, then the form that starts another."""
    project_id, golden_id = page.project.project_id, fused.view.golden_id
    st.markdown(EXPLAINED)
    runs = page.store.runs.all(project_id)
    newest = next((run for run in runs if run.kind == "fusion" and run.golden_id == golden_id), None)
    if newest is not None:
        run_panel.follow_run(page, newest.run_id, lambda view: _draw_run(page, view))
        _draw_worth(page, fused, newest.run_id)
    aspects = _choose_aspects(fused)
    spec = st.text_input(
        "Model",
        key=state.widget("fusion_model"),
        placeholder="openai:MODEL, openai:MODEL@BASE_URL, or scripted (a stand-in)",
        help="An OpenAI-compatible endpoint. The scripted judge is a stand-in for demonstrations.",
    ).strip()
    request = FusionRequest(
        project_id, golden_id, fused.aspect, aspects, _assistants(page, fused, aspects), spec
    )  # fmt: skip
    outcome = None if newest is None else projects.run_view(page.store, newest.run_id).outcome
    request = _edit_texts(page, request, outcome)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        limit = st.number_input(
            "Items to rate (0: all)", min_value=0, value=0, step=20, key=state.widget("fusion_items_limit"), width=220
        )
        budget = st.number_input(
            "Most calls (0: no limit)", min_value=0, value=0, step=50, key=state.widget("fusion_budget"), width=220
        )
    settings = replace(request.settings, budget=int(budget) or None)
    request = replace(request, settings=settings, n_items=int(limit) or None)
    if not spec:
        st.caption("Name the model to see what the fusion would cost.")
        return
    try:
        estimate = projects.estimate_fusion(page.store, page.settings, request)
    except ConcordError as error:
        st.warning(plain(str(error)), icon=":material/edit:")
        return
    n_tokens = (estimate.prompt_tokens or 0) + (estimate.completion_tokens or 0)
    st.markdown(f"{plain(estimate.words)}; about {n_tokens:,} tokens, {plain(money(estimate.cost))}.")
    run_panel.draw_start(page, "Start the LLM fusion", lambda: projects.start_run(page.store, page.settings, request))


def _choose_aspects(fused: Fused) -> tuple[str, ...]:
    """The screen's aspect and, unless somebody deselects them, all others that have labels."""
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
    """The chosen parts, and judges of the same kinds for the other aspects; a metric serves every aspect."""
    kinds = {part.judge.kind for part in fused.parts} - {"metric", "fused"}
    judge_ids = [part.judge_id for part in fused.parts]
    for aspect in aspects[1:] if kinds else ():
        entries = page.store.judges.all(page.project.project_id, fused.view.golden_id, aspect)
        judge_ids += [entry.judge_id for entry in entries if entry.judge.kind in kinds]
    return tuple(judge_ids)


def _edit_texts(page: Opened, request: FusionRequest, newest: FusionRunView | None) -> FusionRequest:
    """Draw the boxes of plan and criteria, filled with those of the newest run; the request with both."""
    box = state.widget(f"fusion_plan_{request.golden_id[-12:]}_{'+'.join(request.aspects)}")
    session = st.session_state
    if newest is not None and set(newest.judges) - {OVERALL} == set(request.aspects) - {OVERALL}:
        session.setdefault(box, newest.plan)
        session.setdefault(f"{box}_criteria", newest.criteria)
    height = min(140 + 60 * (len(request.aspects) - 1), 360)
    example = "\n".join(f"{aspect}:\n- What earns a high number." for aspect in request.aspects[:2])
    left, right = st.columns(2)
    criteria = left.text_area(
        "Criteria",
        key=f"{box}_criteria",
        height=height,
        max_chars=20_000,
        placeholder=f"{example}\nIf empty, the model writes the criteria.",
        help=CRITERIA_HELP,
    )
    example = "\n".join(f"{aspect}: part, part\nHow to read their numbers." for aspect in request.aspects[:2])
    plan = right.text_area(
        "Plan",
        key=box,
        height=height,
        max_chars=8_000,
        placeholder=f"{example}\nIf empty, the model writes the plan.",
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
    words = f"{view.title}: {calls}, {price}. Its scores are among the judges. {outcome.stopped_early}"
    st.success(plain(words), icon=":material/check:")
    with st.popover("Plan and criteria of this run", icon=":material/description:"):
        st.caption("Plan")
        st.text(outcome.plan)
        origins = "; ".join(f"{aspect}: {origin}" for aspect, origin in outcome.criteria_origins.items())
        st.caption(plain(f"Criteria ({origins or 'none'})"))
        st.text(outcome.criteria)
    unscored = [
        f"{aspect}: {', '.join(f'{n} {reason}' for reason, n in counts.items())}"
        for aspect, counts in outcome.unscored.items()
    ]
    if unscored:
        st.caption(plain(f"Without a score: {'; '.join(unscored)}."))


def _draw_worth(page: Opened, fused: Fused, run_id: str) -> None:
    """Draw the alignment of a finished run by aspect."""
    try:
        result = projects.fusion_result(page.store, run_id, fused.settings)
    except ConcordError as error:
        st.warning(plain(str(error)), icon=":material/block:")
        return
    if result is None:  # still running, or its judges were deleted
        return
    rows = dict(result.aspects)
    if result.overall is not None:
        rows[f"{OVERALL}, compared with {result.overall_target}"] = result.overall
    st.markdown(f"**What it is worth** ({fused.measure}, on items that neither plan, criteria nor parts have seen)")
    _draw_table(_frame("rated", rows), "Alignment of the LLM fusion by aspect", fused)
    if result.overall is None and OVERALL not in map(folded, result.aspects):
        st.caption(plain(f"The overall score is compared with nothing: {result.overall_target}."))


def _frame(first: str, alignments: dict[str, Alignment]) -> pd.DataFrame:
    values = list(alignments.values())
    heading = tables.measure_heading(values[0]) if values else "value"
    reasons = [alignment.reason for alignment in values]
    return pd.DataFrame(
        {
            first: list(alignments),
            heading: pd.Series([alignment.value for alignment in values], dtype="float64"),
            "interval": [tables.interval_of(alignment) for alignment in values],
            "n": [alignment.n for alignment in values],
            "no score": [alignment.n_unscored for alignment in values],
        }
        | ({"why none": reasons} if any(reasons) else {})
    )


def _draw_table(frame: pd.DataFrame, alt: str, fused: Fused) -> None:
    columns = {
        str(frame.columns[1]): Column(digits=2),
        "interval": Column("95 % interval", help="over sources"),
        "n": Column(help="counts systems" if fused.settings.level == "system" else "counts items"),
        "no score": Column(help="items whose reply could not be read for it; never counted as 0"),
    }
    grid.draw(frame, columns, alt=alt, rows=8)
