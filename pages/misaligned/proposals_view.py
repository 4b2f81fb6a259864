"""Draw the proposals of a refinement round, and compare each with its parent: tests, changed items, decisions."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core import projects
from core.projects.criteria import PairedDifference, RoundRequest
from core.projects.review import ListedProposal, ProposalState
from core.projects.start_and_resume import RunDetail
from core.stats import claim
from core.word_diff import word_diff
from core.wording import consistent_interval, counted, difference_figures, signed
from pages.criteria import criteria_judge
from pages.misaligned.misaligned_selection import NOW_ALIGNED, NOW_MISALIGNED, Selection, changes
from pages.ui import diff_view, grid, state, tables
from pages.ui.grid import Column
from pages.ui.page import link_to
from pages.ui.run_panel import BadgeColour
from pages.ui.screens import plain

STATE_COLOURS: dict[ProposalState, BadgeColour] = {"open": "gray", "accepted": "green", "rejected": "red"}
COLUMNS = {
    "proposal": Column(width=220),
    "inner fold": Column(
        "change",
        digits=2,
        signed=True,
        help="Agreement of the proposal minus that of its parent, on items that weren't used to write any proposal",
    ),
    "interval": Column("95 % interval"),
    "n": Column(help="Number of items in the inner fold"),
    "p": Column(
        "p (Holm)",
        digits=3,
        help="Tested on the inner fold, and corrected for the number of proposals. A dash means that Concord "
        "didn't test the difference.",
    ),
    NOW_ALIGNED: Column(help="Calibration items that were misaligned under the parent criteria"),
    NOW_MISALIGNED: Column(help="Calibration items that were aligned under the parent criteria"),
}


def draw(selection: Selection, run: RunDetail) -> None:
    """Draw the table of proposals, open ones first, and the selected proposal in full."""
    page = selection.page
    proposals = sorted(projects.list_proposals(page.store, run.run_id), key=lambda one: one.state != "open")
    changed = [
        list(changes(run.run_id, each.criteria.criteria_id, each.parent.criteria_id, page).values())
        for each in proposals
    ]
    names = projects.criteria_names(page.store, page.project.project_id, run.aspect)
    parents = [tables.name_of(proposal.parent, names) for proposal in proposals]
    ids = [proposal.criteria.criteria_id for proposal in proposals]
    picked = grid.picked(state.PROPOSALS)
    if picked not in ids:
        picked = next((proposal.criteria.criteria_id for proposal in proposals if proposal.state == "open"), ids[0])
    frame = pd.DataFrame(
        {
            "proposal": [tables.name_of(proposal.criteria, names) for proposal in proposals],
            "parent": parents,
            "inner fold": pd.Series([proposal.inner.value for proposal in proposals], dtype="float64"),
            "interval": [_interval(proposal.inner) for proposal in proposals],
            "n": [proposal.inner.n for proposal in proposals],
            "p": pd.Series([proposal.inner.p for proposal in proposals], dtype="float64"),
            NOW_ALIGNED: [words.count(NOW_ALIGNED) for words in changed],
            NOW_MISALIGNED: [words.count(NOW_MISALIGNED) for words in changed],
            "decision": [
                f"{proposal.state} by {made.actor}" if (made := proposal.decision) and made.actor else proposal.state
                for proposal in proposals
            ],
        }
    )
    if len(set(parents)) == 1:  # named in the text below
        frame = frame.drop(columns="parent")
    n_open = sum(proposal.state == "open" for proposal in proposals)
    st.markdown(f"**{counted(len(proposals), 'proposal')}**, {n_open} to decide")
    alt = "Proposals: undecided first, then by difference on the inner fold, largest first"
    grid.draw(frame, COLUMNS, alt=alt, rows=7, key=state.PROPOSALS, pick=grid.Pick(ids, picked))
    _draw_one(selection, run, proposals[ids.index(picked)])


def _interval(difference: PairedDifference) -> str:
    ends = consistent_interval(difference.interval, difference.p)
    return tables.DASH if ends is None else " to ".join(map(signed, ends))


def _difference_words(difference: PairedDifference) -> str:
    """Say whether the difference is significant on these items, with its figures."""
    figures = difference_figures(difference.value, difference.interval, difference.p, difference.p_reason)
    words = f"{figures}, n = {difference.n:,}"
    return {
        "undefined": "Concord can't compute the difference on these items.",
        "untested": f"{words}.",
        "higher": f"{words}: a significant gain on these items.",
        "lower": f"{words}: a significant loss on these items.",
        "open": f"{words}: not significant on these items.",
    }[claim(difference.value, difference.interval, difference.p)]


def _draw_one(selection: Selection, run: RunDetail, proposal: ListedProposal) -> None:
    said = projects.criteria_references(selection.page.store, selection.page.project.project_id, run.aspect)
    criteria_id = proposal.criteria.criteria_id
    left, right = st.columns([11, 9], gap="large")
    with left:
        st.markdown(f"**From {plain(said[proposal.parent.criteria_id])} to {plain(said[criteria_id])}**")
        diff_view.draw(word_diff(proposal.parent.text, proposal.criteria.text))
        became = changes(run.run_id, criteria_id, proposal.parent.criteria_id, selection.page)
        picked = run.request.item_ids if isinstance(run.request, RoundRequest) else ()
        shown = picked or proposal.criteria.provenance.item_ids
        whose = f"the {len(shown)} {'picked items' if picked else 'items used to write it'}"
        everything = f"all {proposal.calibration.n:,} calibration items"
        for of, words in ((whose, [became.get(item_id) for item_id in shown]), (everything, [*became.values()])):
            aligned, misaligned = words.count(NOW_ALIGNED), words.count(NOW_MISALIGNED)
            st.text(f"Of {of}: {aligned} {NOW_ALIGNED}, {misaligned} {NOW_MISALIGNED}.")
        st.button(
            "See which items are still misaligned",
            type="tertiary",
            icon=":material/difference:",
            key=state.widget(f"proposal_items_{run.run_id}_{criteria_id}"),
            on_click=state.put_in_url,
            kwargs={"run": run.run_id, "criteria": criteria_id, "item": None, "round": None, "section": None},
        )
    with right:
        differences = (proposal.inner, proposal.calibration)
        claims = {claim(each.value, each.interval, each.p) for each in differences}
        verdict: tuple[str, BadgeColour] = ("no significant difference", "gray")
        if "untested" in claims:
            verdict = ("not tested", "gray")
        elif claims == {"higher"}:
            verdict = ("significantly higher on both", "green")
        elif claims == {"lower"}:
            verdict = ("significantly lower on both", "red")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown("**Compared with its parent**", width="content")
            st.badge(verdict[0], color=verdict[1])
        st.text(f"Inner fold: {_difference_words(proposal.inner)}")
        st.text(f"All calibration items (optimistic): {_difference_words(proposal.calibration)}")
        st.caption(
            "The inner fold contains items that weren't used to write any proposal in this round. "
            "Differences are paired by source and shown with 95 % intervals. p is Holm-corrected for the round's "
            "proposals. Held-out items weren't used."
        )
        _draw_decision(selection, proposal)


def _draw_decision(selection: Selection, proposal: ListedProposal) -> None:
    """Draw the review decision or a link to the review; an accepted text can become the judge."""
    page, made = selection.page, proposal.decision
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown("**Decision**", width="content")
            st.badge(proposal.state, color=STATE_COLOURS[proposal.state])
            if made is not None:
                st.text(f"by {made.actor or 'somebody'}, {tables.when(made.at)}: {made.reason}")
        if made is None:
            about = {"golden": selection.run.golden_id, "aspect": selection.run.aspect}
            link_to("criteria", "Open the review", icon=":material/groups:", section="review", **about)
        elif made.verdict == "accepted":
            entry = page.store.criteria.get(page.project.project_id, proposal.criteria.criteria_id)
            link_to("criteria", "Open in Criteria", icon=":material/rule:", criteria=entry.criteria_id)
            criteria_judge.draw(page, entry, "proposal")
