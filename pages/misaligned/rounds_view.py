"""Refinement rounds: settings, cost, progress and proposals."""

from __future__ import annotations

import streamlit as st

from core import projects
from core.calibration.calibration_records import RoundSettings
from core.data.split import few_labels
from core.project_records import Run
from core.projects.criteria import RoundRequest, RoundResult
from core.wording import counted, duration, judge_words, money, price_words
from pages.label import label_item
from pages.misaligned import proposals_view
from pages.misaligned.misaligned_selection import Selection, criteria_words
from pages.ui import grid, run_panel, setting_form, state, tables
from pages.ui.chosen import distinct
from pages.ui.grid import Column
from pages.ui.screens import plain

NEW = "new"
PICKS, SAMPLED = "the picked items", "a sample of the most misaligned items"
SIZES = (1, 2, 3, 4, 6, 8)


def draw(selection: Selection) -> None:
    """Draw the round named in the URL, else the newest round with open proposals, else the form for a new round."""
    rounds = {
        run.run_id: run
        for run in selection.page.store.runs.all(selection.run.project_id)
        if run.kind == "round" and (run.golden_id, run.aspect) == (selection.run.golden_id, selection.run.aspect)
    }
    wanted = state.url_id("round") or next((run_id for run_id in rounds if _has_open(selection, run_id)), NEW)
    if wanted != NEW and wanted not in rounds:
        st.warning("The round in your link doesn't belong to this golden set and aspect.", icon=":material/link_off:")
        wanted = NEW
    if rounds:
        key = state.widget("round_choice")
        st.session_state[key] = wanted
        words = distinct({run_id: run_panel.run_words(run) for run_id, run in rounds.items()})
        st.selectbox(
            "Round",
            [NEW, *rounds],
            key=key,
            format_func=lambda run_id: words.get(run_id, "Start a new round"),
            on_change=state.when_changed(key, lambda: state.put_in_url(round=st.session_state[key], section="rounds")),
        )
    if wanted == NEW:
        _draw_form(selection)
    elif not rounds[wanted].finished:
        run_panel.follow_run(selection.page, wanted)
    else:
        _draw_done(selection, rounds[wanted])


def _has_open(selection: Selection, run_id: str) -> bool:
    return any(proposal.state == "open" for proposal in projects.list_proposals(selection.page.store, run_id))


def _draw_done(selection: Selection, run: Run) -> None:
    view = run_panel.read_run(selection.page, run.run_id)
    result = view.outcome
    if not isinstance(result, RoundResult):
        run_panel.draw_status(selection.page, view)
        return
    if result.proposals:
        proposals_view.draw(selection, view)
    else:
        st.info(
            "The round produced no proposals. Pick different items, or increase the number of trials.",
            icon=":material/lightbulb:",
        )
    took = None if view.finished_at is None else tables.seconds_taken(view, view.finished_at)
    spent = f"{counted(view.calls, 'call')}, cost {money(view.usage.cost)}, took {duration(took)}"
    st.caption(plain(f"Finished {tables.when(view.finished_at)}: {spent}. Judge: {judge_words(view.judge_spec)}."))
    if result.problems:
        st.caption("Left out: " + "; ".join(f"{n} × {why}" for why, n in result.problems.items()))


# ── start a round ────────────────────────────────────────────────────────────────────────────────────────────────


@st.cache_resource(max_entries=64, show_spinner=False)
def _n_calibration(calibration_id: str, _selection: Selection) -> int:
    return len(projects.load_calibration(_selection.page.store, calibration_id).split.calibration)


def _draw_form(selection: Selection) -> None:
    """Draw the settings of a round and its maximum cost."""
    page, store = selection.page, selection.page.store
    if run_panel.note_imported(page, run_panel.read_run(page, selection.calibration_id)):
        return
    if words := few_labels(_n_calibration(selection.calibration_id, selection)):
        st.warning(words, icon=":material/warning:")
    left, right = st.columns(2, gap="large")
    with left:
        items = _choose_items(selection)
        entries = store.criteria.all(selection.run.project_id, selection.run.aspect, selection.run.golden_id)
        by_id = {entry.criteria_id: entry for entry in tables.best_first(entries) if entry.text}
        here = selection.criteria.criteria_id
        parents = st.multiselect(
            "Refine",
            list(by_id),
            default=[here] if here in by_id else list(by_id)[:1],
            format_func=criteria_words(page, by_id.values(), selection.run.aspect).__getitem__,
            key=state.widget(f"round_parents_{here}"),
            help=(
                "Concord writes separate proposals for each set of criteria. The number after each set shows its "
                "latest agreement on the calibration set."
            ),
        )
    with right:
        sizes = st.pills(
            "Items shown to the model at once",
            SIZES,
            selection_mode="multi",
            default=[1, 2, 4],
            key=state.widget("round_sizes"),
        )
        numbers = setting_form.draw(RoundSettings, {"trials": "Trials"}, prefix="round_")
        if not parents or not sizes:
            st.warning(
                "Choose at least one set of criteria to refine, and a number of items to show.", icon=":material/edit:"
            )
            return
        settings = RoundSettings(sizes=tuple(sorted(sizes)), **numbers)
        request = RoundRequest(*selection.about, selection.calibration_id, tuple(parents), items, settings)
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            run_panel.draw_start(
                page,
                "Start the round",
                lambda: projects.start_run(store, page.settings, request),
                lambda run_id: state.put_in_url(round=run_id),
                key=state.widget("round_start"),
            )
            st.markdown(plain(_cost_words(selection, request)), width="content")
        st.caption("Cached replies cost nothing. You can close this tab. The round continues.")


def _choose_items(selection: Selection) -> tuple[str, ...]:
    """Return the picked items; () samples the most misaligned ones."""
    triage = selection.triage
    picked = [item.item_id for item in selection.scored if (known := triage.get(item.item_id)) and known.picked]
    if not picked:
        st.markdown(f"**Learn from** {SAMPLED}")
        st.caption("To choose the items yourself, pick them under Items or List.")
        return ()
    if st.radio("Learn from", [PICKS, SAMPLED], key=state.widget("round_items"), horizontal=True) == SAMPLED:
        return ()
    golden = selection.run.golden_id, selection.page.store
    frame = {
        "text": [tables.one_line(label_item.item_of(*golden, item_id).target)[:200] for item_id in picked],
        "found": [triage[item_id].verdict for item_id in picked],
        "note": [triage[item_id].note for item_id in picked],
    }
    grid.draw(frame, {"text": Column(width=220)}, alt="Items picked for this round", rows=6)
    st.caption("Concord tests proposals on items from other sources.")
    return tuple(picked)


def _cost_words(selection: Selection, request: RoundRequest) -> str:
    """Return the maximum number of proposals and calls, with a price if the calibration had one."""
    page, n_parents = selection.page, len(request.parent_ids)
    calls = projects.round_cost(page.store, selection.calibration_id, n_parents, request.settings)
    before = run_panel.read_run(page, selection.calibration_id)
    sent, paid = before.usage.requests, before.usage.cost
    price = price_words(None if paid is None or not sent else paid / sent * calls)
    asked = f" and {counted(calls, 'call')}{price}" if run_panel.makes_calls(before) else ""
    return f"This round makes at most {counted(n_parents * request.settings.per_parent, 'proposal')}{asked}."
