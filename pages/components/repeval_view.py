"""A RepEval run on screen: progress, the result in words, the heat map to click, and what stands behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from core import projects
from core.project_records import Run
from core.projects.kinds import RunDetail
from core.projects.repeval import METHOD_NAMES, RepEvalOutcome, RepEvalRequest
from core.repeval.records import RepEvalResult
from core.report.figures import STATISTIC_NAMES, describe, measure_name
from core.report.figures.repeval import (
    Heat,
    heat_figure,
    layers_figure,
    pairs_figure,
    random_figure,
    wins_figure,
)
from pages.components import charts, repeval_cell, run_view, state, tables
from pages.components.page import Opened, link_to
from pages.components.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing

LAYERS, RANDOM, STEADY, PAIRS, RUNS = (
    "Over layers",
    "Against random directions",
    "How steady is the choice",
    "Number of pairs",
    "Settings of all runs",
)
SECTIONS = (LAYERS, RANDOM, STEADY, PAIRS, RUNS)
MOST_RUNS = 12


def measure_of(result: RepEvalResult) -> str:
    return measure_name(result.settings.statistic, result.settings.level)


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def runs_of(page: Opened, golden_id: str) -> list[Run]:
    """RepEval runs on a golden set, newest first."""
    runs = projects.list_runs(page.store, page.project.project_id)
    return [run for run in runs if run.kind == "repeval" and run.golden_id == golden_id]


def draw_runs(runs: Sequence[Run]) -> None:
    """Links to what is going on and to the last ones that ended."""
    for run in runs[:4]:
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            st.badge(tables.status_words(run), color=run_view.STATUS_COLOURS.get(run.status, "blue"))
            link_to("repeval", plain(run.title), icon=":material/grid_on:", run=run.run_id)


def draw_status(page: Opened, view: RunDetail) -> None:
    """A run without a result: how far it is, how fast, or why it stopped; with the way to cancel or go on."""
    message = run_view.waiting_words(view) if view.status == "queued" else view.message
    if view.placement and view.status == "running":
        message = f"{message} · {view.placement}"
    run_view.draw_state(page, view, message, kept="texts that were read are kept")
    if not view.finished:
        texts = f"{view.calls:,} of {view.calls_expected:,} texts read" if view.calls_expected else "getting ready"
        st.progress(view.progress or 0.0, text=texts)
        st.caption("The map appears here when the texts are read. This tab can be closed; the run goes on.")
        if not projects.worker_alive(page.store):
            projects.ensure_worker(page.settings)
    if view.error:
        st.error(plain(view.error), icon=":material/error:", title="This run failed")


# ── the result ───────────────────────────────────────────────────────────────────────────────────────────────


def draw_result(page: Opened, view: RunDetail, outcome: RepEvalOutcome) -> None:
    """The result in words and numbers, the map, the cell looked at, and the sections below."""
    result = outcome.result
    _draw_headline(view, result)
    st.subheader("Where quality shows: layer by token", anchor=False)
    st.caption(
        f"Validation alignment of every cell ({measure_of(result)}, n = {result.validation.n}). Thick frame: the best "
        "cell. Dotted: averaged into the score. Grey and hatched: undefined. Click a cell to look into it."
    )
    picked = repeval_cell.picked(view, result)
    heat = Heat.of(result, picked)
    charts.place_clickable(
        heat_figure(heat, measure=measure_of(result)),
        key=f"repeval_heat_{view.run_id}",
        on_select=lambda: repeval_cell.pick_point(view.run_id, result),
        alt="Validation alignment by layer and token",
    )
    repeval_cell.draw(page, view, result, picked)
    section = st.segmented_control(
        "More", SECTIONS, default=LAYERS, required=True, key=state.widget("repeval_section"), label_visibility="hidden"
    )
    if section == LAYERS:
        _place(layers_figure(heat, measure=measure_of(result)), "layers", "Validation alignment over layers")
    elif section == RANDOM:
        _draw_random(result)
    elif section == STEADY:
        _draw_steady(outcome)
    elif section == PAIRS:
        _draw_pairs(outcome)
    else:
        draw_settings(page, view)


def _draw_headline(view: RunDetail, result: RepEvalResult) -> None:
    with st.container(horizontal=True, gap="large"):
        st.metric(f"Test, {STATISTIC_NAMES[result.settings.statistic]}", _value(result.test.value), width="content")
        st.metric("Validation", _value(result.validation.value), width="content")
        st.metric("Best cell", _cell_words(result), width="content")
        percentile = None if result.random is None else result.random.percentile
        shown = "—" if percentile is None else f"{percentile:.1f} %"
        st.metric(
            "Best cell above random",
            shown,
            width="content",
            help="Share of random directions in the best cell that agree less with people than the projection there.",
        )
        st.metric("Tokens read", f"{int(result.states.get('tokens', 0)):,}", width="content")
    st.markdown(plain(_in_words(result)))
    if result.warnings:
        st.caption(plain(" ".join(result.warnings)))
    beside = {"golden": view.golden_id, "aspect": view.aspect}
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        st.badge("The score is a judge of this project now", icon=":material/check:", color="green")
        link_to("compare", "Compare it with other judges", icon=":material/leaderboard:", **beside)
        link_to("fusion", "Fuse it with others", icon=":material/merge:", **beside)


def _in_words(result: RepEvalResult) -> str:
    n = len(result.members)
    what = f"The mean of the {n} best cells" if n > 1 else "The best cell"
    test = result.test
    sentence = f"{what} agrees with people on test items at {describe(test)} ({measure_of(result)}, n = {test.n})."
    gap = result.optimism
    if test.value is None:
        return f"{sentence} Undefined: {test.reason}."
    if gap is None:
        return sentence
    if gap > 0:
        how = f"Validation said {gap:.3f} more: layer and token were chosen there, so believe the test figure."
    else:
        how = f"Validation said {-gap:.3f} less, on other items: believe the test figure all the same."
    return f"{sentence} {how}"


def _draw_random(result: RepEvalResult) -> None:
    random = result.random
    if random is None:
        st.info("This run drew no random directions.", icon=":material/casino:")
        return
    _place(
        random_figure(random.values, random.flipped, random.projection, measure=measure_of(result)),
        "random",
        "Random directions beside the projection",
    )
    if random.percentile is None:
        st.markdown("The projection has no defined test alignment in the best cell, so it has no place among them.")
        return
    turned = "—" if random.percentile_flipped is None else f"{random.percentile_flipped:.1f} %"
    st.markdown(
        plain(
            f"In the best cell ({_cell_words(result)}), the projection lies above {random.percentile:.1f} % of "
            f"{random.values.size:,} random directions, and above {turned} of the same ones turned so that the good "
            f"texts of most training pairs project higher. Test items, n = {result.test.n}; a box holds the middle "
            "half, the whiskers 95 %."
        )
    )


def _draw_steady(outcome: RepEvalOutcome) -> None:
    steady = outcome.stability
    if steady is None:
        st.info("This run did not repeat the choice. Turn on “How steady is the choice” in the form.")
        return
    n = len(steady.seeds)
    _place(wins_figure(steady.layers, steady.tokens, steady.wins, n), "wins", "How often each cell was best")
    st.markdown(
        plain(
            f"Over {n} seeds, each with a split of its own, the cell that wins most often wins in "
            f"{steady.favourite_share:.0%} of them. Test {_spread(steady.test)}, validation "
            f"{_spread(steady.validation)}: choosing flatters by {_value(steady.optimism.mean)} on average."
        )
    )


def _spread(spread: object) -> str:
    mean, deviation = getattr(spread, "mean", None), getattr(spread, "deviation", None)
    return _value(mean) + (f" ± {deviation:.3f}" if deviation is not None else "")


def _draw_pairs(outcome: RepEvalOutcome) -> None:
    result, points = outcome.result, outcome.pairs_curve
    if not points:
        if result.settings.uses_pairs:
            st.info(
                "This run did not try other numbers of pairs. Turn on “Curve over the number of pairs” in the form."
            )
        else:
            method = METHOD_NAMES[result.settings.method]
            st.info(f"The method {method} learns from all training labels, not from pairs. Choose another to see this.")
        return
    _place(pairs_figure(points, measure=measure_of(result)), "pairs", "Test alignment by number of pairs")
    st.caption(f"Mean and range over {max(p.test.n for p in points)} seeds, each with a split of its own.")


def draw_settings(page: Opened, view: RunDetail) -> None:
    """What each RepEval run on this golden set chose, in the columns of the paper's table."""
    rows = []
    for run in [past for past in runs_of(page, view.golden_id) if past.status == "done"][:MOST_RUNS]:
        whole = run_view.read_run(page, run.run_id)
        if isinstance(whole.outcome, RepEvalOutcome) and isinstance(whole.request, RepEvalRequest):
            rows.append(_settings_row(whole.request, whole.outcome.result))
    st.dataframe(pd.DataFrame(rows), hide_index=True, placeholder=tables.DASH, alt="Settings of RepEval runs")


def _settings_row(request: RepEvalRequest, result: RepEvalResult) -> dict[str, object]:
    extraction = request.extraction
    read = extraction.template[:60] or "the text alone"
    return {
        "criterion": result.aspect,
        "method": METHOD_NAMES[result.settings.method],
        "pairs": result.n_pairs or None,
        "prompt": f"joined with the {extraction.beside}" if extraction.beside else read,
        "k": result.chosen.k,
        "layer": result.chosen.layer,
        "token": result.chosen.token,
        "cells averaged": len(result.members),
        "test": describe(result.test),
        "n": result.test.n,
        "validation": result.validation.value,
        "model": result.model,
    }


def _cell_words(result: RepEvalResult) -> str:
    k = f", k {result.chosen.k}" if result.chosen.k else ""
    return f"layer {result.chosen.layer}, token {result.chosen.token}{k}"


def _value(value: float | None) -> str:
    return tables.DASH if value is None else f"{value:.3f}"


def _place(figure: Drawing, key: str, alt: str) -> None:
    charts.place(figure, key=f"repeval_{key}_figure", alt=alt)
