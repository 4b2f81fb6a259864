"""Several aspects in one call: which judges in use go together, what that saves, the run, its result and files."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.projects.kinds import RunDetail
from core.projects.together import TogetherEstimate, TogetherOffer, TogetherRequest, TogetherResult, file_names
from core.report.figures import measure_name
from core.stats import claim, difference_figures
from core.stats.claims import Claim
from core.wording import counted
from pages.components import grid, live, people, run_view, state, tables
from pages.components.grid import Column
from pages.components.page import Opened
from pages.components.screens import plain
from pages.components.state import widget

FOUND: Mapping[Claim, str] = {
    "lower": "worse than alone",
    "higher": "better than alone",
    "open": "no change shown",
    "untested": "cannot be told",
    "undefined": "undefined",
}


def draw(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """The newest run with what came of it, and what can be asked, with its price and Start."""
    try:
        offer = projects.together_offer(page.store, page.settings, page.project.project_id, golden.golden_id, aspect)
    except ConcordError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    runs = projects.list_runs(page.store, page.project.project_id)
    newest = next((run for run in runs if run.kind == "together" and run.golden_id == golden.golden_id), None)
    if newest is None:
        st.markdown(
            "Each aspect keeps its judge, and an item is sent once for all of them. The scores differ from those asked "
            "alone: how well both agree with people is measured on the same held-out items."
        )
        _offer(page, golden, offer)
        return
    live.follow(
        lambda: run_view.read_run(page, newest.run_id),
        lambda view: view.finished,
        lambda view: _draw_run(page, view, offer),
    )
    if newest.finished:
        with st.expander("Ask again, or other aspects", icon=":material/add:"):
            _offer(page, golden, offer)


# ── before the start ─────────────────────────────────────────────────────────────────────────────────────────


def _offer(page: Opened, golden: GoldenSummary, offer: TogetherOffer) -> None:
    """The aspects that go together, the price of those chosen, and the button."""
    if offer.reason:
        st.info(plain(" ".join((offer.reason, *aside_words(offer)))), icon=":material/info:")
        return
    others = [name for name in offer.runs if name != offer.aspect]
    chosen = st.multiselect(
        f"In one call with {plain(offer.aspect)}",
        others,
        default=others,
        key=widget(f"together_{golden.golden_id[-12:]}_{offer.aspect}"),
        format_func=plain,
    )
    for words in aside_words(offer):
        st.caption(plain(words))
    aspects = (offer.aspect, *(name for name in others if name in chosen))
    runs = tuple(offer.runs[name] for name in aspects)
    where = page.project.project_id, golden.golden_id, offer.aspect
    request = TogetherRequest(*where, runs[0], aspects, runs)
    if not chosen:
        st.warning("Choose at least one aspect more.", icon=":material/edit:")
        return
    try:
        estimate = _estimate(repr(request), page, request)
    except ConcordError as error:
        st.warning(plain(str(error)), icon=":material/warning:")
        return
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        people.button(
            page,
            "reviewer",
            "Ask them together",
            type="primary",
            icon=":material/join:",
            key=widget("together_start"),
            on_click=_start,
            args=(page, request),
        )
        st.text(cost_words(estimate))


@st.cache_resource(max_entries=16, show_spinner="Counting calls and tokens …")
def _estimate(asked: str, _page: Opened, _request: TogetherRequest) -> TogetherEstimate:
    """Renders every prompt once, so it is kept for as long as the request stays the same."""
    return projects.estimate_together(_page.store, _page.settings, _request)


def cost_words(estimate: TogetherEstimate) -> str:
    """`72 calls about 72 held-out items, about 41,000 tokens, price $0.02; one aspect a call would take 144.`"""
    asked = estimate.asked
    known = None if asked.prompt_tokens is None else asked.prompt_tokens + (asked.completion_tokens or 0)
    tokens = "" if known is None else f", about {known:,} tokens"
    about = f"{counted(asked.calls, 'call')} about {counted(estimate.n_items, 'held-out item')}"
    alone = f"one aspect a call would take {estimate.calls_alone:,}"
    return f"{about}{tokens}, price {tables.money(asked.cost)}; {alone}."


def aside_words(offer: TogetherOffer) -> list[str]:
    """Why other aspects are not among them, a sentence each."""
    return [f"{aspect} is left out: {reason.rstrip('.')}." for aspect, reason in offer.aside.items()]


def _start(page: Opened, request: TogetherRequest) -> None:
    try:
        projects.start_together(page.store, page.settings, request)
    except ConcordError as error:
        state.leave_notice(f"Nothing was started: {error}", good=False)


# ── the run, and what came of it ─────────────────────────────────────────────────────────────────────────────


def _draw_run(page: Opened, view: RunDetail, offer: TogetherOffer) -> None:
    if not isinstance(view.outcome, TogetherResult):
        run_view.draw_status(page, view)
        if not view.finished:
            st.caption("This tab can be closed; the run goes on.")
        return
    outcome, request = view.outcome, view.request
    assert isinstance(request, TogetherRequest)
    st.subheader(plain(found_words(outcome)), anchor=False)
    first = next(iter(outcome.measured.values()))
    method = f" by {first.difference.a.interval.method}" if first.difference.a.interval else ""
    st.caption(
        plain(
            f"{outcome.calls:,} calls; one aspect a call takes {outcome.calls_alone:,}. On each judge's held-out items "
            f"(paired); 95 % intervals{method}; p by Holm over {counted(len(outcome.measured), 'aspect')}. The scores "
            "asked together are among the judges."
        )
    )
    grid.draw(measured_frame(outcome), _columns(), alt="Each aspect in one call beside its judge alone", rows=8)
    changed = [
        aspect
        for aspect, run_id in zip(request.aspects, request.runs, strict=True)
        if offer.runs.get(aspect, run_id) != run_id
    ]
    if changed:
        st.warning(
            plain(f"Another version is the judge in use of {', '.join(changed)} since: ask again."),
            icon=":material/history:",
        )
    _draw_files(page, request)


def found_words(outcome: TogetherResult) -> str:
    """`In one call: worse than alone on coherence; no change shown on fluency`."""
    by_claim: dict[Claim, list[str]] = {}
    for aspect in outcome.measured:
        by_claim.setdefault(_shown(outcome, aspect), []).append(aspect)
    told = [f"{words} on {', '.join(by_claim[shown])}" for shown, words in FOUND.items() if shown in by_claim]
    return f"In one call: {'; '.join(told)}"


def _shown(outcome: TogetherResult, aspect: str) -> Claim:
    found = outcome.measured[aspect]
    return claim(found.difference.value, found.difference.interval, found.p_corrected)


def measured_frame(outcome: TogetherResult) -> pd.DataFrame:
    """A row an aspect; None where undefined, which is drawn as "—"."""
    measured = outcome.measured
    found = {aspect: each.difference for aspect, each in measured.items()}
    reasons = [each.reason for each in found.values()]
    return pd.DataFrame(
        {
            "aspect": list(found),
            "measure": [measure_name(each.measure.statistic, each.measure.level) for each in measured.values()],
            "in one call": pd.Series([each.a.value for each in found.values()], dtype="float64"),
            "interval in one call": [tables.interval_of(each.a) for each in found.values()],
            "alone": pd.Series([each.b.value for each in found.values()], dtype="float64"),
            "interval alone": [tables.interval_of(each.b) for each in found.values()],
            "in one call minus alone": [
                difference_figures(each.difference.value, each.difference.interval, each.p_corrected)
                for each in measured.values()
            ],
            "n": [each.n for each in found.values()],
            "no score": [each.a.n_unscored for each in found.values()],
            **({"why none": reasons} if any(reasons) else {}),
        }
    )


def _columns() -> dict[str, Column]:
    return {
        "in one call": Column(digits=2),
        "interval in one call": Column("interval"),
        "alone": Column(digits=2),
        "interval alone": Column("interval"),
        "n": Column(help="items (at system level systems) that both ways scored"),
        "no score": Column(help="items whose reply in one call said nothing readable on it; never counted as 0"),
    }


def _draw_files(page: Opened, request: TogetherRequest) -> None:
    """The judge files that `score --together` takes, and the command."""
    with st.popover("Score other items this way", icon=":material/download:"):
        st.download_button(
            f"Download {counted(len(request.runs), 'judge file')}",
            data=lambda: projects.together_files(page.store, request),
            file_name="judges.zip",
            mime="application/zip",
            icon=":material/download:",
            on_click="ignore",
        )
        named = " ".join(f"--judge-file {name}" for name in file_names(request))
        st.code(f"python -m core score ITEMS {named} --together --out verdicts.jsonl", language="bash", wrap_lines=True)
        st.markdown(
            "Add `--check GOLDEN`, the file of this golden set, to have verdicts on the human scale with intervals: "
            "the maps in the files are of scores asked alone."
        )
