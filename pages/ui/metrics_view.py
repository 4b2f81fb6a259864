"""Baseline metrics: which there are, what each needs and lacks, computed by a run, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.metrics import Metric, make_metric, metrics_for
from core.project_records import GoldenSummary
from core.projects.project_judges import MetricsRequest, MetricsResult
from core.projects.run_kinds import RunDetail
from core.records import GoldenSet
from core.wording import counted
from pages.ui import run_panel, state
from pages.ui.page import Opened
from pages.ui.screens import plain
from pages.ui.state import widget

COLUMN_PREFIX = "metric_"
ACROSS = 3


@dataclass(frozen=True, slots=True)
class Offer:
    """A metric that can be chosen; `missing` says why it cannot ("" when it can)."""

    name: str
    measures: str
    needs: str
    cost: str
    missing: str


@st.cache_resource(max_entries=8, show_spinner="Looking at what the items have …")
def _offers(golden_id: str, _page: Opened) -> tuple[Offer, ...]:
    """Golden sets never change under their id."""
    golden = _page.store.goldens.load(golden_id)
    return tuple(_offer(metric, golden) for metric in metrics_for(golden))


def draw(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """What can be computed, to choose from; "Compute" with its cost; the run, then what was entered and left out."""
    draw_run(page, golden)
    try:
        offers = _offers(golden.golden_id, page)
        there = {view.name for view in page.store.judges.all(page.project.project_id, golden.golden_id, aspect)}
    except ConcordError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    st.caption("Metrics read the texts and know no labels. Each is a baseline for the judges, on a scale of its own.")
    last = st.session_state.get(state.METRICS_RUN, "")  # a start makes new boxes: a browser would keep the old ones set
    prefix = f"metrics_{golden.golden_id[-12:]}_{last}"
    possible = [offer for offer in offers if not offer.missing]
    columns = [offer for offer in possible if offer.name.startswith(COLUMN_PREFIX)]
    chosen = _choose("Computed here", [offer for offer in possible if offer not in columns], there, prefix)
    chosen += _choose("Columns of the uploaded file", columns, there, prefix)
    if words := missing_words([offer for offer in offers if offer.missing]):
        st.caption(plain(words))
    with st.expander("With a model of your own", icon=":material/deployed_code:"):
        typed = st.text_input(
            "Others, parted by commas",
            key=widget(f"{prefix}_models"),
            placeholder="bertscore:MODEL, nli:FOLDER",
            help="A Hugging Face id or a folder on the worker's machine, after bertscore:, nli:, regression: or "
            "likelihood:.",
        )
    chosen += [name.strip() for name in typed.split(",") if name.strip()]
    n_labelled = sum(1 for labelled in golden.aspects if labelled.n_labelled)
    every = n_labelled < 2 or st.toggle(
        f"For all {n_labelled} labelled aspects", value=True, key=widget(f"{prefix}_every")
    )
    problem = _problem(chosen)
    if problem:
        st.warning(plain(problem), icon=":material/edit:")
    label = f"Compute {counted(len(chosen), 'metric')}" if chosen else "Compute"
    off = not chosen or bool(problem)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        request = MetricsRequest(page.project.project_id, golden.golden_id, aspect, tuple(chosen), every)
        draw_start(page, label, request, disabled=off)
        st.text(cost_words(chosen, {offer.name: offer.cost for offer in offers}, golden.n_items))


def draw_start(page: Opened, label: str, request: MetricsRequest, *, disabled: bool) -> None:
    """The button that computes; what it started stays in view once it has ended."""
    run_panel.draw_start(
        page,
        label,
        lambda: projects.start_metrics(page.store, page.settings, request),
        lambda run_id: st.session_state.update({state.METRICS_RUN: run_id}),
        icon=":material/calculate:",
        disabled=disabled,
    )


def missing_words(offers: Sequence[Offer]) -> str:
    """What cannot be computed on this golden set, by reason; "" where there is nothing."""
    by_reason: dict[str, list[str]] = {}
    for offer in offers:
        by_reason.setdefault(offer.missing, []).append(offer.name)
    if not by_reason:
        return ""
    return "Not here: " + "; ".join(f"{', '.join(names)} ({reason})" for reason, names in by_reason.items()) + "."


def cost_words(chosen: Sequence[str], costs: Mapping[str, str], n_items: int) -> str:
    """What computing the chosen metrics takes; one that is not in `costs` runs a model of the person's own."""
    if not chosen:
        return "Nothing is chosen yet. No metric calls a judge."
    known = dict.fromkeys(costs.get(name, "a model of your own: slow without a GPU") for name in chosen)
    return f"{n_items:,} items each, no calls. " + " ".join(f"{words[:1].upper()}{words[1:]}." for words in known)


def _offer(metric: Metric, golden: GoldenSet) -> Offer:
    needs = ", ".join(sorted(metric.needs)) or "nothing but the target"
    return Offer(metric.name, metric.measures, needs, metric.cost, metric.missing(golden))


def _choose(title: str, offers: Sequence[Offer], there: Iterable[str], prefix: str) -> list[str]:
    if not offers:
        return []
    st.markdown(f"**{title}**")
    known = frozenset(there)
    chosen = []
    for start in range(0, len(offers), ACROSS):
        for place, offer in zip(st.columns(ACROSS, gap="medium"), offers[start : start + ACROSS], strict=False):
            with place:
                if _offered(offer, offer.name in known, prefix):
                    chosen.append(offer.name)
    return chosen


def _offered(offer: Offer, there: bool, prefix: str) -> bool:
    """One metric: its box and what it measures."""
    with st.container(gap="xxsmall"):
        picked = st.checkbox(
            plain(f"{offer.name} (among the judges)" if there else offer.name),
            key=widget(f"{prefix}_{offer.name}"),
            help=plain(f"Needs: {offer.needs}. Cost: {offer.cost}."),
        )
        st.caption(plain(offer.measures))
    return picked


def _problem(chosen: Sequence[str]) -> str:
    """Why the choice cannot be computed, in words."""
    if len(set(chosen)) < len(chosen):
        return "A metric was named twice."
    try:
        for name in chosen:
            if not name.startswith(COLUMN_PREFIX):
                make_metric(name)
    except ConcordError as error:
        return str(error)
    return ""


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────


def draw_run(page: Opened, golden: GoldenSummary) -> None:
    """The newest computation on this golden set, while it goes on and right after it ended."""
    runs = projects.list_runs(page.store, page.project.project_id)
    newest = next((run for run in runs if run.kind == "metrics" and run.golden_id == golden.golden_id), None)
    if newest is None:
        return
    if newest.finished and newest.run_id != st.session_state.get(state.METRICS_RUN):
        return

    def draw(view: RunDetail) -> None:
        if isinstance(view.outcome, MetricsResult):
            _draw_outcome(view.outcome)
        else:
            run_panel.draw_status(page, view)

    run_panel.follow_run(page, newest.run_id, draw)


def _draw_outcome(outcome: MetricsResult) -> None:
    if outcome.judges:
        every = [name for name in outcome.judges if name not in outcome.of_one]
        shown = ((outcome.aspects, every), (outcome.aspects[:1], outcome.of_one))
        where = "; ".join(f"on {', '.join(aspects)}: {', '.join(names)}" for aspects, names in shown if names)
        st.success(plain(f"Among the judges now {where}."), icon=":material/check:")
    if outcome.left_out:
        sentences = [f"{name} was left out: {reason.rstrip('.')}." for name, reason in outcome.left_out.items()]
        st.warning("  \n".join(plain(sentence) for sentence in sentences), icon=":material/info:")
