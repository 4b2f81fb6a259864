"""The proposals of a round beside their parents: differences with their tests, items that changed, decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from core import projects
from core.errors import ConcordError, ConflictError
from core.projects.edit_scoring import PairedDifference
from core.projects.rounds import ListedProposal, ProposalState, RoundRequest
from core.projects.run_kinds import RunDetail
from core.stats import NO_TEST, claim
from core.word_diff import word_diff
from core.wording import change_figures, counted
from pages.criteria import criteria_judge, criteria_names, criteria_view
from pages.misaligned.misaligned_selection import ITEMS, NOW_ALIGNED, NOW_MISALIGNED, Selection, change_words
from pages.ui import diff_view, drafts, grid, people, state, tables
from pages.ui.grid import Column
from pages.ui.page import link_to
from pages.ui.run_panel import BadgeColour
from pages.ui.screens import plain

STATE_COLOURS: dict[ProposalState, BadgeColour] = {"open": "gray", "accepted": "green", "rejected": "red"}
MOST_NAMED, LONGEST_TEXT = 6, 8_000
CHANGED_HELP = (
    "of all calibration items, compared with the parent: items that crossed the gap that counts as misaligned"
)
EDIT_HELP = "Saves your text as a version made from the proposal, scores it next to the proposal, and proposes it."
COLUMNS = {
    "proposal": Column(width=220),
    "inner fold": Column(digits=2, signed=True, help="proposal minus parent on items that no proposal was made from"),
    "interval": Column("95 % interval"),
    "n": Column(help="items of the inner fold"),
    "p": Column("p (Holm)", digits=3, help="on the inner fold, corrected over the proposals; — is no test"),
    "calibration": Column(digits=2, signed=True, help="proposal minus parent on all calibration items (optimistic)"),
    NOW_ALIGNED: Column(help=CHANGED_HELP),
    NOW_MISALIGNED: Column(help=CHANGED_HELP),
}


def draw(selection: Selection, run: RunDetail) -> None:
    """All proposals in a table, by their difference on the inner fold; the marked one whole, with the decision."""
    proposals = projects.list_proposals(selection.page.store, run.run_id)
    changes = [
        _changes(run.run_id, proposal.criteria.criteria_id, proposal.parent.criteria_id, selection)
        for proposal in proposals
    ]
    ids = [proposal.criteria.criteria_id for proposal in proposals]
    picked = grid.picked(state.PROPOSALS)
    if picked not in ids:
        picked = next((proposal.criteria.criteria_id for proposal in proposals if proposal.state == "open"), ids[0])
    n_open = sum(proposal.state == "open" for proposal in proposals)
    st.markdown(
        f"**{counted(len(proposals), 'proposal')}**, {n_open} to decide, largest difference on the inner fold first"
    )
    names = criteria_names.names_of(selection.page, run.aspect)
    grid.draw(
        _frame(proposals, changes, names),
        COLUMNS,
        alt="Proposals, largest difference on the inner fold first",
        rows=7,
        key=state.PROPOSALS,
        pick=grid.Pick(ids, picked),
    )
    place = ids.index(picked)
    _draw_one(selection, run, proposals[place], changes[place], names)


def _frame(
    proposals: Sequence[ListedProposal], changes: Sequence[Mapping[str, str]], names: Mapping[str, str]
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "proposal": [tables.name_of(proposal.criteria, names) for proposal in proposals],
            "parent": [tables.name_of(proposal.parent, names) for proposal in proposals],
            "inner fold": pd.Series([proposal.inner.value for proposal in proposals], dtype="float64"),
            "interval": [_interval(proposal.inner) for proposal in proposals],
            "n": [proposal.inner.n for proposal in proposals],
            "p": pd.Series([proposal.inner.p for proposal in proposals], dtype="float64"),
            "calibration": pd.Series([proposal.calibration.value for proposal in proposals], dtype="float64"),
            NOW_ALIGNED: [_count(item_changes, NOW_ALIGNED) for item_changes in changes],
            NOW_MISALIGNED: [_count(item_changes, NOW_MISALIGNED) for item_changes in changes],
            "decision": [
                f"{proposal.state} by {made.actor}" if (made := proposal.decision) and made.actor else proposal.state
                for proposal in proposals
            ],
        }
    )


def _count(changes: Mapping[str, str], word: str) -> int:
    return sum(change == word for change in changes.values())


def _interval(difference: PairedDifference) -> str:
    return (
        tables.DASH
        if difference.interval is None
        else " to ".join(change_figures(end, None) for end in (difference.interval.low, difference.interval.high))
    )


def _shown(proposal: ListedProposal, wanted: Sequence[str]) -> Sequence[str]:
    """The items the round was to learn from; where they were sampled, those this proposal saw."""
    return wanted or proposal.criteria.provenance.item_ids


@st.cache_resource(max_entries=256, show_spinner=False)
def _changes(run_id: str, criteria_id: str, parent_id: str, _selection: Selection) -> dict[str, str]:
    changed = projects.item_changes(_selection.page.store, run_id, criteria_id, parent_id)
    return change_words(changed)


# ── one of them ──────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_one(
    selection: Selection,
    run: RunDetail,
    proposal: ListedProposal,
    changes: Mapping[str, str],
    names: Mapping[str, str],
) -> None:
    left, right = st.columns([11, 9], gap="large")
    with left:
        parent, name = tables.name_of(proposal.parent, names), tables.name_of(proposal.criteria, names)
        st.markdown(f"**From “{plain(parent)}” to “{plain(name)}”**")
        diff_view.draw(word_diff(proposal.parent.text, proposal.criteria.text))
        wanted = run.request.item_ids if isinstance(run.request, RoundRequest) else ()
        _draw_items(run, proposal, _shown(proposal, wanted), changes, picked=bool(wanted))
    with right:
        _draw_gains(proposal)
        _draw_decision(selection, run, proposal)


def _draw_gains(proposal: ListedProposal) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown("**Beside its parent**", width="content")
        words, colour = _verdict(proposal)
        st.badge(words, color=colour)
    st.text(f"Inner fold: {criteria_view.difference_words(proposal.inner)}")
    st.text(f"All calibration items: {criteria_view.difference_words(proposal.calibration)}")
    st.caption(
        "The inner fold holds items that no proposal of this round was made from; all calibration items hold those "
        "too, which is optimistic. 95 % intervals, paired over sources; p corrected after Holm over the round's "
        "proposals. Held-out items were not touched."
    )


def _verdict(proposal: ListedProposal) -> tuple[str, BadgeColour]:
    """What the tests on the inner fold and on all calibration items show together, and its colour."""
    claims = {
        claim(difference.value, difference.interval, difference.p)
        for difference in (proposal.inner, proposal.calibration)
    }
    if claims == {"higher"}:
        return "higher on both, beyond chance", "green"
    if claims == {"lower"}:
        return "lower on both, beyond chance", "red"
    if "untested" in claims:
        return NO_TEST, "gray"
    return "no difference shown on both", "gray"


def _draw_items(
    run: RunDetail, proposal: ListedProposal, shown: Sequence[str], changes: Mapping[str, str], *, picked: bool
) -> None:
    def named(word: str) -> str:
        item_ids = [item for item in shown if changes.get(item, "unchanged") == word]
        more = f" and {len(item_ids) - MOST_NAMED} more" if len(item_ids) > MOST_NAMED else ""
        return f"{word}: {', '.join(item_ids[:MOST_NAMED]) or 'none'}{more}"

    whose = "picked items" if picked else "items it was shown"
    st.markdown(f"**Of the {len(shown)} {whose}**")
    st.text("\n".join(named(word) for word in (NOW_ALIGNED, NOW_MISALIGNED, "unchanged")))
    st.text(
        f"Of all {proposal.calibration.n:,} calibration items: {_count(changes, NOW_ALIGNED)} {NOW_ALIGNED}, "
        f"{_count(changes, NOW_MISALIGNED)} {NOW_MISALIGNED}."
    )
    st.button(
        "See what is still misaligned under it",
        type="tertiary",
        icon=":material/difference:",
        key=state.widget(f"proposal_items_{run.run_id}_{proposal.criteria.criteria_id}"),
        on_click=_show_items,
        args=(run.run_id, proposal.criteria.criteria_id),
    )


def _show_items(run_id: str, criteria_id: str) -> None:
    st.session_state[state.MISALIGNED_VIEW] = ITEMS
    state.put_in_url(run=run_id, criteria=criteria_id, item=None, round=None)


def _draw_decision(selection: Selection, run: RunDetail, proposal: ListedProposal) -> None:
    key = state.widget(f"proposal_{run.run_id}_{proposal.criteria.criteria_id}")
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown("**Decision**", width="content")
            st.badge(proposal.state, color=STATE_COLOURS[proposal.state])
            if (made := proposal.decision) is not None:
                st.text(f"by {made.actor or 'somebody'}, {tables.ago(made.at)}: {made.reason}")
        st.text_input("Reason", key=f"{key}_reason", max_chars=2_000, placeholder="Why, for those who read it later")
        with st.container(horizontal=True):
            for label, accepted, icon in (
                ("Accept", True, ":material/check:"),
                ("Reject", False, ":material/close:"),
            ):
                people.button(
                    selection.page,
                    "reviewer",
                    label,
                    key=f"{key}_{label}",
                    icon=icon,
                    type="primary" if accepted else "secondary",
                    on_click=_decide,
                    args=(selection, proposal, key),
                    kwargs={"accepted": accepted},
                )
        if problem := st.session_state.pop(f"{key}_problem", ""):
            st.warning(plain(problem), icon=":material/warning:")
        _draw_edit(selection, proposal, key)
        if made is not None and made.verdict == "accepted":
            accepted_id = made.edited_id or proposal.criteria.criteria_id
            words = "the edited text that was accepted" if made.edited_id else "it in Criteria"
            link_to("criteria", f"Open {words}", icon=":material/rule:", criteria=accepted_id)
            page = selection.page
            accepted = page.store.criteria.get(page.project.project_id, accepted_id)
            criteria_judge.draw_make_judge(page, accepted, "proposal")


def _draw_edit(selection: Selection, proposal: ListedProposal, key: str) -> None:
    part = st.expander("Edit before accepting", icon=":material/edit:", key=f"{key}_edit", on_change="rerun")
    if not part.open:
        return
    with part:
        editing = drafts.begin(selection.page, drafts.of_proposal(proposal), proposal.criteria.text, f"{key}_text")
        drafts.draw_kept(selection.page, editing)
        st.text_area("Text", value=editing.text, height=220, max_chars=LONGEST_TEXT, key=editing.key)
        people.button(
            selection.page,
            "reviewer",
            "Accept the edited text",
            key=f"{key}_accept_edited",
            icon=":material/check:",
            on_click=_decide_edited,
            args=(selection, proposal, key, editing),
            help=EDIT_HELP,
        )
        drafts.watch(selection.page, editing)


def _decide(selection: Selection, proposal: ListedProposal, key: str, *, accepted: bool, edited_id: str = "") -> None:
    reason = st.session_state.get(f"{key}_reason", "")
    kept = " Your edited text is kept as a version of its own." if edited_id else ""
    try:
        projects.decide_proposal(
            selection.page.store,
            proposal.run_id,
            proposal.criteria.criteria_id,
            accepted=accepted,
            reason=reason,
            seen=proposal.seen,
            edited_id=edited_id,
        )
    except ConflictError as clash:
        st.session_state[f"{key}_problem"] = f"{clash}{kept}"
        return
    except ConcordError as error:
        st.session_state[f"{key}_problem"] = f"Nothing was decided: {error}{kept}"
        return
    said = "Accepted. Make it the judge to see what it gains." if accepted else "Rejected."
    st.toast(said, icon=":material/check:")


def _decide_edited(selection: Selection, proposal: ListedProposal, key: str, editing: drafts.Editing) -> None:
    text, reason = st.session_state[editing.key], st.session_state.get(f"{key}_reason", "")
    page, which = selection.page, (proposal.run_id, proposal.criteria.criteria_id)
    try:
        edited_id = projects.edit_proposal(page.store, page.settings, *which, text, note=reason)
    except ConcordError as error:
        st.session_state[f"{key}_problem"] = f"Nothing was decided: {error}"
        return
    drafts.done(page, editing)
    _decide(selection, proposal, key, accepted=True, edited_id=edited_id)
