"""Refinement rounds on screen: what one learns from and may do, its cost, its progress, and its proposals."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core import projects
from core.calibration.calibration_settings import RoundSettings
from core.data.split import few_labels
from core.judging.judge_protocol import OPERATIONS
from core.project_records import CriteriaEntry, Run
from core.projects.rounds import RoundRequest, RoundResult
from core.wording import counted, duration, judge_words, money, price_words
from pages.misaligned import proposals_view
from pages.misaligned.misaligned_selection import Selection, criteria_words
from pages.ui import grid, run_panel, setting_form, state, tables
from pages.ui.chosen import distinct
from pages.ui.screens import plain

NEW = ""
PICKS, SAMPLED = "the picked items", "a sample of the most misaligned"
SIZES = (1, 2, 3, 4, 6, 8)


def draw(selection: Selection) -> None:
    """The round in the URL with its proposals, or the form that starts one."""
    rounds = {
        run.run_id: run
        for run in projects.list_runs(selection.page.store, selection.run.project_id)
        if run.kind == "round" and (run.golden_id, run.aspect) == (selection.run.golden_id, selection.run.aspect)
    }
    wanted = state.url_id("round")
    if wanted and wanted not in rounds:
        st.warning("The linked round is not of this golden set and aspect.", icon=":material/link_off:")
    chosen = _choose_round(rounds, wanted if wanted in rounds else NEW)
    if chosen == NEW:
        draw_start(selection)
        return
    run = rounds[chosen]
    if not run.finished:
        run_panel.follow_run(selection.page, run.run_id)
        return
    _draw_done(selection, run)


def _choose_round(rounds: Mapping[str, Run], wanted: str | None) -> str:
    """The URL decides, a choice changes it."""
    if not rounds:
        return NEW
    key = state.widget("round_choice")
    st.session_state[key] = wanted or NEW
    words = distinct({run_id: run_panel.run_words(run) for run_id, run in rounds.items()})
    st.selectbox(
        "Round",
        [NEW, *rounds],
        key=key,
        format_func=lambda run_id: words.get(run_id, "Start a new round"),
        on_change=state.when_changed(key, lambda: state.put_in_url(round=st.session_state[key] or None)),
    )
    return wanted or NEW


def _draw_done(selection: Selection, run: Run) -> None:
    view = run_panel.read_run(selection.page, run.run_id)
    result = view.outcome
    if not isinstance(result, RoundResult):
        run_panel.draw_status(selection.page, view)
        return
    took = None if view.finished_at is None else tables.seconds_taken(view, view.finished_at)
    spent = f"{counted(view.calls, 'call')}, cost {money(view.usage.cost)}, took {duration(took)}"
    st.caption(plain(f"Finished {tables.ago(view.finished_at)}: {spent}. Judge: {judge_words(view.judge_spec)}."))
    if result.problems:
        st.text("Left out: " + "; ".join(f"{n} × {why}" for why, n in result.problems.items()))
    for note in result.notes:
        st.info(plain(note), icon=":material/info:")
    if not result.proposals:
        st.info(
            "The round brought no proposal. Pick other items, allow more operations, or ask for more trials.",
            icon=":material/lightbulb:",
        )
        return
    proposals_view.draw(selection, view)


# ── starting one ─────────────────────────────────────────────────────────────────────────────────────────────────


def draw_start(selection: Selection) -> None:
    """What a round learns from, whom it refines, what it may do, what it costs at most."""
    if run_panel.note_imported(selection.page, run_panel.read_run(selection.page, selection.calibration_id)):
        return
    _warn_few(selection)
    left, right = st.columns(2, gap="large")
    with left:
        items = _choose_items(selection)
        parents = _choose_parents(selection)
    with right:
        settings = _choose_settings(selection)
        if not parents or settings is None:
            st.warning(
                "Choose at least one set of criteria to refine, one operation and one size.", icon=":material/edit:"
            )
            return
        where = (selection.run.project_id, selection.run.golden_id, selection.run.aspect, selection.calibration_id)
        _offer(selection, RoundRequest(*where, parents, items, settings))


def _offer(selection: Selection, request: RoundRequest) -> None:
    """What it will cost, and the button."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        run_panel.draw_start(
            selection.page,
            "Start the round",
            lambda: projects.start_round(selection.page.store, selection.page.settings, request),
            lambda run_id: state.put_in_url(round=run_id),
            key=state.widget("round_start"),
        )
        _draw_cost(selection, request)
    st.caption("Cached replies cost nothing. You can close this tab. The round continues.")


def _warn_few(selection: Selection) -> None:
    if words := few_labels(_n_calibration(selection), refining=True):
        st.warning(words, icon=":material/warning:")


def _n_calibration(selection: Selection) -> int:
    return len(_kept_split(selection.calibration_id, selection))


@st.cache_resource(max_entries=64, show_spinner=False)
def _kept_split(calibration_id: str, _selection: Selection) -> tuple[int, ...]:
    return projects.load_calibration(_selection.page.store, calibration_id).split.calibration


def _choose_items(selection: Selection) -> tuple[str, ...]:
    picked = selection.picked_ids
    if not picked:
        st.markdown("**Learn from** a sample of the most misaligned calibration items")
        st.caption("Pick items under Items, with the triage, to choose by hand what the round learns from.")
        return ()
    how = st.radio("Learn from", [PICKS, SAMPLED], key=state.widget("round_items"), horizontal=True)
    if how == SAMPLED:
        return ()
    frame = {
        "picked": list(picked),
        "found": [selection.triage[item_id].verdict for item_id in picked],
        "note": [selection.triage[item_id].note for item_id in picked],
        "by": [selection.triage[item_id].actor or tables.DASH for item_id in picked],
    }
    grid.draw(frame, alt="Items picked for the round", rows=6)
    st.caption(
        "The sources of these items test no proposal: a proposal that saw an item is not measured on its source."
    )
    return picked


def _choose_parents(selection: Selection) -> tuple[str, ...]:
    by_id = {entry.criteria_id: entry for entry in _refinable(selection)}
    default = [selection.criteria.criteria_id] if selection.criteria.criteria_id in by_id else list(by_id)[:1]
    chosen = st.multiselect(
        "Refine",
        list(by_id),
        default=default,
        format_func=lambda criteria_id: criteria_words(by_id[criteria_id]),
        key=state.widget(f"round_parents_{selection.criteria.criteria_id}"),
        help="Each of them gets its own proposals; the number is its newest alignment on calibration items.",
    )
    return tuple(chosen)


def _refinable(selection: Selection) -> list[CriteriaEntry]:
    entries = selection.page.store.criteria.all(selection.run.project_id, selection.run.aspect, selection.run.golden_id)
    return [entry for entry in tables.best_first(entries) if entry.text]


def _choose_settings(selection: Selection) -> RoundSettings | None:
    operations = st.pills(
        "Operations to suggest",
        OPERATIONS,
        selection_mode="multi",
        default=list(OPERATIONS),
        key=state.widget("round_operations"),
        help="Modify a rule or its weight, paraphrase a good rule, add a rule, or calibrate: move the numbers "
        "without a new rule.",
    )
    if selection.run.judge_spec == "offline":
        st.caption(
            "The offline judge reads meanings, not words: to modify is to change or drop a clause, to calibrate is to "
            "let the aspect as a whole count or not, and it cannot paraphrase."
        )
    sizes = st.pills(
        "Items shown at a time", SIZES, selection_mode="multi", default=[1, 2, 4], key=state.widget("round_sizes")
    )
    labels = {"trials": "Trials", "samples": "Samples", "seed": "Seed", "budget": "Budget in calls"}
    numbers = setting_form.draw(RoundSettings, labels, prefix="round_", placeholder="none")
    if not operations or not sizes:
        return None
    allowed = tuple(operation for operation in OPERATIONS if operation in operations)
    return RoundSettings(sizes=tuple(sorted(sizes)), operations=allowed, **numbers)


def _draw_cost(selection: Selection, request: RoundRequest) -> None:
    """Calls at most; the price by what a request of the calibration cost, where that is known."""
    n_parents = len(request.parent_ids)
    calls = projects.round_cost(selection.page.store, selection.calibration_id, n_parents, request.settings)
    before = run_panel.read_run(selection.page, selection.calibration_id)
    sent, paid = before.usage.requests, before.usage.cost
    cost = None if paid is None or not sent else paid / sent * calls
    proposals = n_parents * request.settings.per_parent
    asked = run_panel.makes_calls(before)
    price = (price_words(cost) + (" by what a request of the calibration cost" if cost else "")) if asked else ""
    st.markdown(
        plain(f"At most {counted(proposals, 'proposal')} and {counted(calls, 'call')}{price}."),
        width="content",
    )
