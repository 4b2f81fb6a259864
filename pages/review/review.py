"""Review on screen: begin or join it, vote on the open point, decide; full screen for a projector."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary, is_demo
from core.projects.review import CHOICES, Choice, OpenReview, Point, PointDecided, Verdict
from core.wording import counted
from pages.criteria import comments_view, criteria_judge
from pages.review import point as shown_point
from pages.ui import people, state
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

Where = tuple[str, str, str]
"""Project, golden set and aspect."""
SECTION = "review"
TICK_SECONDS = 2.0
PROBLEM = state.widget("review_point_problem")
KEYS: dict[Choice, str] = {"for": "F", "against": "A", "abstain": "X"}
ENDINGS: dict[Choice, str] = {"for": "for", "against": "against", "abstain": "abstained"}
LABELS: dict[Verdict, str] = {"accepted": "Accept", "rejected": "Reject", "postponed": "Postpone"}
ICONS = {"accepted": ":material/check_circle:", "rejected": ":material/cancel:", "postponed": ":material/schedule:"}
COLOURS = {"accepted": "green", "rejected": "red", "postponed": "gray"}


def is_open() -> bool:
    """Whether the review has the screen to itself."""
    return state.url_id("section") == SECTION and state.is_bare()


def draw(page: Opened) -> None:
    goldens = [golden for golden in page.store.goldens.all(page.project.project_id) if golden.aspects]
    if not goldens:
        st.info("A review is about criteria for a golden set. This project has none yet.", icon=":material/dataset:")
        link_to("golden_set", "Add a golden set", icon=":material/upload_file:")
        return
    golden, aspect = _choose(page, goldens)
    where = (page.project.project_id, golden.golden_id, aspect)
    review = projects.open_review(page.store, *where)
    if problem := st.session_state.pop(PROBLEM, ""):
        st.warning(plain(problem), icon=":material/error:")
    if state.is_bare():
        _draw_full(page, where, review)
    else:
        _draw_start(page, where, review)


def _choose(page: Opened, goldens: list[GoldenSummary]) -> tuple[GoldenSummary, str]:
    """Golden set and aspect: of the URL, of the open criteria, or the first; the choice goes into the URL."""
    by_id = {golden.golden_id: golden for golden in goldens}
    golden_id, aspect = state.url_id("golden"), state.url_id("aspect")
    if golden_id is None and (criteria_id := state.url_id("criteria")):
        try:
            view = page.store.criteria.get(page.project.project_id, criteria_id)
            golden_id, aspect = view.golden_id, view.aspect
        except ConcordError:
            pass
    golden = by_id.get(golden_id or "", goldens[0])
    names = [known.aspect for known in golden.aspects]
    aspect = aspect if aspect in names else names[0]
    if not state.is_bare():
        left, right = st.columns([3, 2])
        ids, key = list(by_id), state.widget("review_golden")
        chosen = left.selectbox(
            "Golden set", ids, ids.index(golden.golden_id), key=key, format_func=lambda known: by_id[known].name
        )
        golden = by_id[chosen]
        names = [known.aspect for known in golden.aspects]
        place = names.index(aspect) if aspect in names else 0
        aspect = str(right.selectbox("Aspect", names, place, key=state.widget("review_aspect")))
    return golden, aspect


def _draw_start(page: Opened, where: Where, review: OpenReview) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        n = counted(len(review.points), "open point")
        st.header(f"{n} to review" if review.points else "Nothing to review", anchor=False, width="stretch")
        if review.points:
            people.button(
                page,
                "annotator",
                "Join the review" if review.joined else "Start the review",
                type="primary",
                icon=":material/groups:",
                key=state.widget("review_join"),
                on_click=_join,
                args=(page, where),
            )
    if review.joined:
        st.caption(f"In the review now: {plain(', '.join(review.joined))}")
    if not review.points:
        st.info(
            "Review proposals of a refinement round, edited criteria, and misaligned items that somebody picked or "
            "called ambiguous or wrongly labelled.",
            icon=":material/event_available:",
        )
        link_to("misaligned", "Triage misaligned items", icon=":material/difference:")
    for k, point in enumerate(review.points, 1):
        item = f" {plain(point.item_id[:60])}" if point.item_id else ""
        losing = " :orange-badge[lower alignment]" if point.losing else ""
        st.markdown(f"{k}\\. **{plain(point.title)}**{item}{losing}  \n{plain(' '.join(point.text.split())[:240])}")
    if review.decided:
        st.subheader("Decided", anchor=False)
        for decision in review.decided[:20]:
            _draw_decision(page, decision)


def _draw_full(page: Opened, where: Where, review: OpenReview) -> None:
    """One open point, its votes and its decision."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**Review** · {plain(where[2])}", width="content")
        if is_demo(page.project.project_id):
            st.badge("simulated labels", color="gray")
        st.markdown(f"**{counted(len(review.points), 'open point')}**, {len(review.decided)} decided", width="content")
        st.space("stretch")
        st.button(
            "Leave",
            icon=":material/logout:",
            type="tertiary",
            key=state.widget("review_leave"),
            on_click=_leave,
            args=(page, where),
        )
    _watch(page, projects.review_moved(page.store, page.project.project_id))
    if not review.points:
        st.header("Nothing is open", anchor=False)
        for decision in review.decided[:20]:
            _draw_decision(page, decision)
        return
    point = review.points[0]
    left, right = st.columns([5, 3], gap="large")
    with left:
        shown_point.draw(page, where, point)
    with right:
        _draw_votes(page, where, review, point)
        if not people.may(page, "reviewer"):
            st.caption("A reviewer enters the decision.")
        else:
            early = bool(point.waiting)
            with st.expander("Decide before all votes are in") if early else st.container(border=True):
                _draw_decision_form(page, where, point)
        if review.decided:
            st.caption("Last decision")
            _draw_decision(page, review.decided[0])


@st.fragment(run_every=TICK_SECONDS)
def _watch(page: Opened, moved: int) -> None:
    """Draw the screen anew where another screen joined, voted or decided."""
    if projects.review_moved(page.store, page.project.project_id) != moved:
        st.rerun()


# ── votes ────────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_votes(page: Opened, where: Where, review: OpenReview, point: Point) -> None:
    """Who has voted or, once all have, who voted what; and the buttons of whoever joined."""
    voted = {vote.actor for vote in point.votes}
    if point.revealed:
        for choice in CHOICES:
            if names := point.voters(choice):
                st.markdown(f"**{len(names)} {ENDINGS[choice]}**: {plain(', '.join(names))}")
    elif review.joined:
        n = len(voted) + len(point.waiting)
        st.markdown(f"**{len(voted)} of {n} votes are in.** They are shown once all are.")
        with st.container(horizontal=True, gap="small"):
            for name in review.joined:
                icon = ":material/check:" if name in voted else ":material/hourglass_empty:"
                st.badge(plain(name), icon=icon, color="green" if name in voted else "gray")
    if page.actor.name not in review.joined:
        key = state.widget("review_join_here")
        people.button(
            page, "annotator", "Join the review", icon=":material/groups:", key=key, on_click=_join, args=(page, where)
        )
        return
    st.markdown("Vote again to change your vote" if page.actor.name in voted else "**Your vote**")
    with st.container(horizontal=True, gap="small"):
        for choice, key in KEYS.items():
            people.button(
                page,
                "annotator",
                choice.capitalize(),
                shortcut=key,
                width=150,
                key=state.widget(f"vote_{point.key}_{point.seen}_{choice}"),
                on_click=_vote,
                args=(page, where, point, choice),
            )


def _vote(page: Opened, where: Where, point: Point, choice: Choice) -> None:
    vote = partial(projects.cast_vote, page.store, *where, point.key)
    comments_view.attempt(lambda: vote(choice=choice), PROBLEM)


def _join(page: Opened, where: Where) -> None:
    join = partial(projects.join_review, page.store, *where)
    if comments_view.attempt(join, PROBLEM):
        state.put_in_url(section=SECTION, golden=where[1], aspect=where[2], view=state.BARE)


def _leave(page: Opened, where: Where) -> None:
    if not page.actor.is_unnamed and people.may(page, "annotator"):
        leave = partial(projects.leave_review, page.store, *where)
        comments_view.attempt(leave, PROBLEM)
    state.put_in_url(view=None)


# ── decisions ────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_decision_form(page: Opened, where: Where, point: Point) -> None:
    key = state.widget(f"decide_{point.key}_{point.seen}")
    causes = {point.needs_reason("accepted"), point.needs_reason("rejected")}
    with st.form(f"{key}_form", border=False):
        with st.container(horizontal=True, gap="small"):
            for verdict, label in LABELS.items():
                follows = verdict != "postponed" and not point.needs_reason(verdict)
                people.submit(
                    page,
                    "reviewer",
                    label,
                    type="primary" if follows else "secondary",
                    icon=ICONS[verdict],
                    on_click=_decide,
                    args=(page, where, point, verdict, f"{key}_reason"),
                )
        st.text_area(
            "Reason",
            key=f"{key}_reason",
            height=80,
            max_chars=2_000,
            placeholder="Optional where the decision follows the votes" if "" in causes else f"Needed: {min(causes)}",
        )


def _decide(page: Opened, where: Where, point: Point, verdict: Verdict, reason_key: str) -> None:
    """`point` is what the screen showed, so that nobody overrules a decision unseen."""
    reason = str(st.session_state.get(reason_key) or "")
    decide = partial(projects.decide_point, page.store, *where, point.key)
    comments_view.attempt(lambda: decide(verdict=verdict, reason=reason, seen=point.seen), PROBLEM)


def _draw_decision(page: Opened, decision: PointDecided) -> None:
    """A decision, and for an accepted text the way to a judge that follows it."""
    tally = f" · {decision.tally}" if decision.tally and not decision.reason.startswith(decision.tally) else ""
    with st.container(border=True):
        st.markdown(
            f"**{plain(decision.title)}** :{COLOURS[decision.verdict]}-badge[{decision.verdict}]  \n"
            f"{plain(decision.reason)}{tally} · {plain(decision.actor or 'somebody')}, "
            f"{plain(comments_view.when(decision.at))}"
        )
        if decision.verdict == "accepted" and decision.criteria_id:
            try:
                taken = page.store.criteria.get(page.project.project_id, decision.criteria_id)
            except ConcordError as error:
                st.caption(plain(f"It cannot be made the judge: {error}"))
            else:
                criteria_judge.draw_make_judge(page, taken, "review")
