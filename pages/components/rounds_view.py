"""Refinement rounds on screen: what one learns from and may do, its cost, its progress, and its proposals."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core import projects
from core.calibration.settings import OPERATIONS, RoundSettings
from core.data.split import few_labels
from core.errors import ConcordError
from core.kept import CriteriaEntry, Run
from core.projects.rounds import RoundRequest, RoundResult
from pages.components import consent, live, people, proposals_view, run_view, state, tables
from pages.components.chosen import distinct
from pages.components.criteria_list import run_words
from pages.components.misaligned_looked import Looked, criteria_words
from pages.components.screens import plain

NEW = ""
PICKS, SAMPLED = "the picked items", "a sample of the most misaligned"
SIZES = (1, 2, 3, 4, 6, 8)


def draw(looked: Looked) -> None:
    """The round in the URL with its proposals, or the form that starts one."""
    rounds = {
        run.run_id: run
        for run in projects.list_runs(looked.page.store, looked.run.project_id)
        if run.kind == "round" and (run.golden_id, run.aspect) == (looked.run.golden_id, looked.run.aspect)
    }
    wanted = state.url_id("round")
    if wanted and wanted not in rounds:
        st.warning("The linked round is not of this golden set and aspect.", icon=":material/link_off:")
    chosen = _choose_round(rounds, wanted if wanted in rounds else NEW)
    if chosen == NEW:
        draw_start(looked)
        return
    run = rounds[chosen]
    if not run.finished:
        live.follow(
            lambda: run_view.read_run(looked.page, run.run_id),
            lambda now: now.finished,
            lambda now: run_view.draw_status(looked.page, now),
        )
        return
    _draw_done(looked, run)


def _choose_round(rounds: Mapping[str, Run], wanted: str | None) -> str:
    """The URL decides, a choice changes it."""
    if not rounds:
        return NEW
    key = state.widget("round_choice")
    st.session_state[key] = wanted or NEW
    words = distinct({one: run_words(run) for one, run in rounds.items()})
    st.selectbox(
        "Round",
        [NEW, *rounds],
        key=key,
        format_func=lambda one: words.get(one, "Start a new round"),
        on_change=lambda: state.put_in_url(round=st.session_state[key] or None),
    )
    return wanted or NEW


def _draw_done(looked: Looked, run: Run) -> None:
    view = run_view.read_run(looked.page, run.run_id)
    found = view.outcome
    if not isinstance(found, RoundResult):
        run_view.draw_status(looked.page, view)
        return
    took = None if view.finished_at is None else tables.seconds_taken(view, view.finished_at)
    spent = (
        f"{tables.count_words(view.calls, 'call')}, cost {tables.money(view.usage.cost)}, took {tables.duration(took)}"
    )
    st.caption(plain(f"Finished {tables.ago(view.finished_at)}: {spent}. Judge: {view.judge_spec}."))
    if found.problems:
        st.text("Left out: " + "; ".join(f"{n} × {why}" for why, n in found.problems.items()))
    for note in found.notes:
        st.info(plain(note), icon=":material/info:")
    if not found.proposals:
        st.info(
            "The round brought no proposal. Pick other items, allow more operations, or ask for more trials.",
            icon=":material/lightbulb:",
        )
        return
    proposals_view.draw(looked, view)


# ── starting one ─────────────────────────────────────────────────────────────────────────────────────────────────


def draw_start(looked: Looked) -> None:
    """What a round learns from, whom it refines, what it may do, what it costs at most."""
    _warn_few(looked)
    left, right = st.columns(2, gap="large")
    with left:
        items = _choose_items(looked)
        parents = _choose_parents(looked)
    with right:
        settings = _choose_settings(looked)
        if not parents or settings is None:
            st.warning(
                "Choose at least one set of criteria to refine, one operation and one size.", icon=":material/edit:"
            )
            return
        where = (looked.run.project_id, looked.run.golden_id, looked.run.aspect, looked.calibration_id)
        _offer(looked, RoundRequest(*where, parents, items, settings))


def _offer(looked: Looked, request: RoundRequest) -> None:
    """What it will cost, and the button."""
    consent.ask(looked.page, looked.calibration_id)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.button(
            "Start the round",
            type="primary",
            icon=":material/play_arrow:",
            key=state.widget("round_start"),
            on_click=_start,
            args=(looked, request),
            **people.gate(looked.page, "reviewer"),
        )
        _draw_cost(looked, request)
    st.caption("Replies that are stored already cost nothing. The round goes on with this tab closed.")


def _warn_few(looked: Looked) -> None:
    if words := few_labels(_n_calibration(looked), refining=True):
        st.warning(words, icon=":material/warning:")


def _n_calibration(looked: Looked) -> int:
    return len(_kept_split(looked.calibration_id, looked))


@st.cache_resource(max_entries=64, show_spinner=False)
def _kept_split(calibration_id: str, _looked: Looked) -> tuple[int, ...]:
    return projects.load_calibration(_looked.page.store, calibration_id).split.calibration


def _choose_items(looked: Looked) -> tuple[str, ...]:
    picked = looked.picked_ids
    if not picked:
        st.markdown("**Learn from** a sample of the most misaligned calibration items")
        st.caption("Pick items under Items, with the triage, to choose by hand what the round learns from.")
        return ()
    how = st.radio("Learn from", [PICKS, SAMPLED], key=state.widget("round_items"), horizontal=True)
    if how == SAMPLED:
        return ()
    st.dataframe(
        {
            "picked": list(picked),
            "found": [looked.triage[one].verdict for one in picked],
            "note": [looked.triage[one].note for one in picked],
            "by": [looked.triage[one].actor or tables.DASH for one in picked],
        },
        hide_index=True,
        height=tables.height_for(len(picked), 6),
        alt="Items picked for the round",
    )
    st.caption(
        "The sources of these items test no proposal: a proposal that saw an item is not measured on its source."
    )
    return picked


def _choose_parents(looked: Looked) -> tuple[str, ...]:
    known = {one.criteria_id: one for one in _refinable(looked)}
    default = [looked.criteria.criteria_id] if looked.criteria.criteria_id in known else list(known)[:1]
    chosen = st.multiselect(
        "Refine",
        list(known),
        default=default,
        format_func=lambda one: criteria_words(known[one]),
        key=state.widget(f"round_parents_{looked.criteria.criteria_id}"),
        help="Each of them gets its own proposals; the number is its newest alignment on calibration items.",
    )
    return tuple(chosen)


def _refinable(looked: Looked) -> list[CriteriaEntry]:
    listed = projects.list_criteria(looked.page.store, looked.run.project_id, looked.run.aspect, looked.run.golden_id)
    return [one for one in tables.best_first(listed) if one.text]


def _choose_settings(looked: Looked) -> RoundSettings | None:
    operations = st.pills(
        "Operations to suggest",
        OPERATIONS,
        selection_mode="multi",
        default=list(OPERATIONS),
        key=state.widget("round_operations"),
        help="Modify a rule or its weight, paraphrase a good rule, add a rule, or calibrate: move the numbers "
        "without a new rule.",
    )
    if looked.run.judge_spec == "offline":
        st.caption(
            "The offline judge reads meanings, not words: to modify is to change or drop a clause, to calibrate is to "
            "let the aspect as a whole count or not, and it cannot paraphrase."
        )
    sizes = st.pills(
        "Items shown at a time", SIZES, selection_mode="multi", default=[1, 2, 4], key=state.widget("round_sizes")
    )
    places = st.columns([3, 3, 3, 4])
    trials = places[0].number_input("Trials", 1, 20, 2, key=state.widget("round_trials"))
    samples = places[1].number_input("Samples", 1, 10, 1, key=state.widget("round_samples"))
    seed = places[2].number_input("Seed", 0, 10**6, 0, key=state.widget("round_seed"))
    budget = places[3].number_input(
        "Budget in calls", min_value=1, value=None, key=state.widget("round_budget"), placeholder="none"
    )
    if not operations or not sizes:
        return None
    return RoundSettings(
        sizes=tuple(sorted(sizes)),
        trials=int(trials),
        samples=int(samples),
        budget=None if budget is None else int(budget),
        seed=int(seed),
        operations=tuple(one for one in OPERATIONS if one in operations),
    )


def _draw_cost(looked: Looked, request: RoundRequest) -> None:
    """Calls at most; the price by what a call of the calibration cost, where that is known."""
    n_parents = len(request.parent_ids)
    calls = projects.round_cost(looked.page.store, looked.calibration_id, n_parents, request.settings)
    before = run_view.read_run(looked.page, looked.calibration_id)
    cost = None if before.usage.cost is None or not before.calls else before.usage.cost / before.calls * calls
    proposals = n_parents * request.settings.per_parent
    price = f", about {tables.money(cost)} by what a call of the calibration cost" if cost is not None else ""
    st.markdown(
        plain(f"At most {tables.count_words(proposals, 'proposal')} and {tables.count_words(calls, 'call')}{price}."),
        width="content",
    )


def _start(looked: Looked, request: RoundRequest) -> None:
    try:
        run_id = projects.start_round(looked.page.store, looked.page.settings, request)
    except ConcordError as error:
        state.leave_notice(f"The round was not started: {error}", good=False)
        return
    state.put_in_url(round=run_id)
