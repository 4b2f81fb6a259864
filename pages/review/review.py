"""Review points together: join, vote on the open point, and decide. There is a full-screen view for projectors."""

from __future__ import annotations

import streamlit as st

from core import projects
from core.errors import ConcordError, UsageError
from core.project_records import is_demo
from core.projects.review import CHOICES, Choice, OpenReview, Point, PointDecided, Verdict
from core.report.figures.svg import shortened
from core.wording import counted
from pages.criteria import criteria_judge
from pages.label import label_item
from pages.review import point as shown_point
from pages.ui import chosen, people, state, tables
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

Where = tuple[str, str, str]
"""Project, golden set and aspect."""
SECTION = "review"
TICK_SECONDS = 2.0
MOST_DECIDED = 20
KEYS: dict[Choice, str] = {"for": "F", "against": "A", "abstain": "X"}
ENDINGS: dict[Choice, str] = {"for": "for", "against": "against", "abstain": "abstained"}
LABELS: dict[Verdict, tuple[str, str]] = {
    "accepted": ("Accept", ":material/check_circle:"),
    "rejected": ("Reject", ":material/cancel:"),
    "postponed": ("Postpone", ":material/schedule:"),
}
COLOURS = {"accepted": "green", "rejected": "red", "postponed": "gray"}


def is_open() -> bool:
    """Return whether the review is in full screen."""
    return state.url_id("section") == SECTION and state.is_bare()


def draw(page: Opened) -> None:
    """Draw the open questions about a golden set and aspect. The URL names both, or criteria written for them."""
    if state.url_id("golden") is None and (criteria_id := state.url_id("criteria")):
        try:
            entry = page.store.criteria.get(page.project.project_id, criteria_id)
            state.put_in_url(golden=entry.golden_id, aspect=entry.aspect)
        except ConcordError:
            pass
    golden = chosen.choose_golden(page)
    where = (page.project.project_id, golden.golden_id, chosen.choose_aspect(page, golden))
    review = projects.open_review(page.store, *where)
    if state.is_bare():
        _draw_full(page, where, review)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        n = counted(len(review.points), "open point")
        st.header(f"{n} to review" if review.points else "Nothing to review", anchor=False, width="stretch")
        if review.points:
            _draw_join(page, where, "Join the review" if review.joined else "Start the review", kind="primary")
    if review.joined:
        st.caption(f"In the review now: {plain(', '.join(review.joined))}")
    if not review.points:
        st.info(
            "Here you review proposals from refinement rounds, edited criteria, and misaligned items that someone "
            "picked or marked as ambiguous or wrongly labelled.",
            icon=":material/event_available:",
        )
        link_to("misaligned", "Triage misaligned items", icon=":material/difference:")
    for k, point in enumerate(review.points, 1):
        title = plain(_title(page, golden.golden_id, point))
        st.markdown(f"{k}\\. **{title}**  \n{plain(shortened(point.text, 240))}")
    st.caption("When another version becomes current, open points about the judge's mistakes are closed.")
    if review.decided:
        st.subheader("Decided", anchor=False)
        for decision in review.decided[:MOST_DECIDED]:
            _draw_decision(page, decision)


def _title(page: Opened, golden_id: str, about: Point | PointDecided) -> str:
    """Return the title of a point, with the first words of its item."""
    golden = label_item.cached_golden(golden_id, page.store)
    if about.item_id not in golden.item_ids:
        return about.title
    return f"{about.title} “{shortened(golden.items[golden.item_ids.index(about.item_id)].target, 90)}”"


def _draw_join(page: Opened, where: Where, label: str, *, kind: str = "secondary") -> None:
    def join() -> None:
        projects.join_review(page.store, *where)
        state.put_in_url(section=SECTION, golden=where[1], aspect=where[2], view=state.BARE)

    people.button(
        page,
        "annotator",
        label,
        type=kind,
        icon=":material/groups:",
        key=state.widget("review_join"),
        on_click=state.attempt,
        args=("Not joined", join),
    )


def _draw_full(page: Opened, where: Where, review: OpenReview) -> None:
    """Draw one open point, its votes and its decision."""

    def leave() -> None:
        if not page.actor.is_unnamed and people.may(page, "annotator"):
            state.attempt("Not left", projects.leave_review, page.store, *where)
        state.put_in_url(view=None)

    n_decided = sum(made.verdict != "postponed" for made in review.decided)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if is_demo(page.project.project_id):
            st.badge("simulated labels", color="gray")
        st.markdown(f"**{counted(len(review.points), 'open point')}**, {n_decided} decided", width="content")
        st.space("stretch")
        st.button("Leave", icon=":material/logout:", type="tertiary", key=state.widget("review_leave"), on_click=leave)
    _watch(page, projects.review_moved(page.store, page.project.project_id))
    if not review.points:
        st.header("No open points", anchor=False)
        for decision in review.decided[:MOST_DECIDED]:
            _draw_decision(page, decision)
        return
    point = review.points[0]
    left, right = st.columns([5, 3], gap="large")
    with left:
        shown_point.draw(page, where, point)
    with right:
        _draw_votes(page, where, review, point)
        if people.may(page, "reviewer"):
            early = st.expander("Decide before all votes are in") if point.waiting else st.container(border=True)
            with early:
                _draw_decision_form(page, where, point)
        else:
            st.caption("Only a reviewer can record the decision.")
        if review.decided:
            st.caption("Last decision")
            _draw_decision(page, review.decided[0])


@st.fragment(run_every=TICK_SECONDS)
def _watch(page: Opened, moved: int) -> None:
    """Redraw the screen when another participant joins, votes or decides."""
    if projects.review_moved(page.store, page.project.project_id) != moved:
        st.rerun()


def _draw_votes(page: Opened, where: Where, review: OpenReview, point: Point) -> None:
    """Draw who has voted, each vote once everyone has, and the participants' buttons."""
    voted = {vote.actor for vote in point.votes}
    if point.revealed:
        for choice in CHOICES:
            if names := point.voters(choice):
                st.markdown(f"**{len(names)} {ENDINGS[choice]}**: {plain(', '.join(names))}")
    elif review.joined:
        n = len(voted) + len(point.waiting)
        st.markdown(f"**{len(voted)} of {n} votes are in.** You can see the votes once everyone has voted.")
        with st.container(horizontal=True, gap="small"):
            for name in review.joined:
                icon = ":material/check:" if name in voted else ":material/hourglass_empty:"
                st.badge(plain(name), icon=icon, color="green" if name in voted else "gray")
    if page.actor.name not in review.joined:
        _draw_join(page, where, "Join the review")
        return

    def vote(choice: Choice) -> None:
        projects.cast_vote(page.store, *where, point.key, choice=choice)

    st.markdown("To change your vote, vote again" if page.actor.name in voted else "**Your vote**")
    with st.container(horizontal=True, gap="small"):
        for choice, key in KEYS.items():
            people.button(
                page,
                "annotator",
                choice.capitalize(),
                shortcut=key,
                width=140,
                key=state.widget(f"vote_{point.key}_{point.seen}_{choice}"),
                on_click=state.attempt,
                args=("Your vote wasn't saved", vote, choice),
            )


def _draw_decision_form(page: Opened, where: Where, point: Point) -> None:
    """Draw the form for the decision; `point` is the version shown, so that no newer decision is overwritten unseen."""
    key = state.widget(f"decide_{point.key}_{point.seen}")
    voted = not (point.needs_reason("accepted") and point.needs_reason("rejected"))

    def decide(verdict: Verdict) -> None:
        reason = str(st.session_state.get(f"{key}_reason") or "")
        try:
            projects.decide_point(page.store, *where, point.key, verdict=verdict, reason=reason, seen=point.seen)
        except UsageError as error:  # shown below the buttons, so that no button moves under the pointer
            st.session_state[f"{key}_refused"] = str(error)

    with st.form(f"{key}_form", border=False):
        st.text_area(
            "Reason",
            key=f"{key}_reason",
            height=80,
            max_chars=2_000,
            placeholder="Optional if your decision follows the votes" if voted else "Reason for the decision",
        )
        with st.container(horizontal=True, gap="small"):
            for verdict, (label, icon) in LABELS.items():
                follows = verdict != "postponed" and not point.needs_reason(verdict)
                people.submit(
                    page,
                    "reviewer",
                    label,
                    type="primary" if follows else "secondary",
                    icon=icon,
                    on_click=state.attempt,
                    args=("Nothing was decided", decide, verdict),
                )
        if refused := st.session_state.pop(f"{key}_refused", ""):
            st.warning(plain(refused))


def _draw_decision(page: Opened, decision: PointDecided) -> None:
    """Draw a decision and, for an accepted text, the button that makes it the judge."""
    tally = f" · {decision.tally}" if decision.tally and not decision.reason.startswith(decision.tally) else ""
    title = plain(_title(page, decision.golden_id, decision))
    with st.container(border=True):
        st.markdown(
            f"**{title}** :{COLOURS[decision.verdict]}-badge[{decision.verdict}]  \n"
            f"{plain(decision.reason)}{tally} · {plain(decision.actor or 'somebody')}, "
            f"{plain(tables.when(decision.at))}"
        )
        if decision.verdict == "accepted" and decision.criteria_id:
            try:
                criteria = page.store.criteria.get(page.project.project_id, decision.criteria_id)
            except ConcordError as error:
                st.caption(plain(f"The criteria can't become the judge: {error}"))
            else:
                criteria_judge.draw(page, criteria, "review")
