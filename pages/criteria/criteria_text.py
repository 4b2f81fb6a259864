"""Show the text of criteria: name, lines, comments and origin."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import CriteriaEntry
from core.projects.criteria import LONGEST_NAME, Comment
from core.report.figures import describe, measure_name
from core.wording import counted
from pages.label import label_item
from pages.overview import judge_view
from pages.ui import grid, people, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

MOST_MARKED = 400
LONGEST_COMMENT = 5_000
NO_BREAK = "\u00a0"
_LEVEL = re.compile(r"^(\d+(?:[.,]\d+)?)\s*[:=–—-]\s+(?=\S)")


def draw_head(page: Opened, entry: CriteriaEntry, comments: Sequence[Comment], name: str) -> None:
    """Draw the name with a form to change it, the judge version that uses the criteria, and the number of open
    comments.
    """

    def rename() -> None:
        given = str(st.session_state.get(key) or "")
        projects.rename_criteria(page.store, page.project.project_id, entry.criteria_id, given)
        state.leave_notice("Renamed.", good=True)

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{plain(name)}**", width="content")
        key = state.closing(f"name_{entry.criteria_id}")
        with (
            st.popover("", icon=":material/edit:", type="tertiary", help="Rename these criteria", key=f"{key}_open"),
            st.form(f"{key}_form", border=False),
        ):
            st.text_input("Name of these criteria", value=name, key=key, help=f"At most {LONGEST_NAME} characters.")
            people.submit(page, "reviewer", "Save the name", on_click=state.attempt, args=("Not renamed", rename))
        judge_view.draw_follower(page, entry.aspect, entry.criteria_id)
        if n := sum(not comment.settled_by for comment in comments):
            st.badge(counted(n, "open comment"), color="blue", icon=":material/comment:")


def draw_lines(text: str, comments: Sequence[Comment] = ()) -> None:
    """Draw the text line by line, with levels in bold and the number of open comments per line."""
    if not text.strip():
        st.text("No criteria: this is the baseline.")
        return
    lines = text.splitlines()
    if len(lines) > MOST_MARKED:
        st.text(text)
        return
    open_at = [comment.line for comment in comments if not comment.settled_by]
    shown = []
    for number, line in enumerate(lines, 1):
        body = line.replace("\t", "    ")
        indent, words = NO_BREAK * (len(body) - len(body.lstrip(" "))), body.strip()
        level = _LEVEL.match(words)
        if level is None:
            marked = f"{indent}{plain(words)}" or NO_BREAK
        else:
            marked = f"{indent}**{plain(level[1])}**{NO_BREAK * 2}{plain(words[level.end() :])}"
        n = open_at.count(number)
        shown.append(f"{marked} :blue-badge[:material/comment: {n}]" if n else marked)
    with st.container(key="judged"):
        st.markdown("  \n".join(shown))


# ── comments ────────────────────────────────────────────────────────────────────────────────────


def draw_comment_form(page: Opened, entry: CriteriaEntry) -> None:
    """Draw a form for a comment on a line or on the whole text."""
    lines, key = entry.text.splitlines(), state.closing(f"comment_{entry.criteria_id}")
    form = st.session_state.setdefault(f"{key}_id", f"comment:{uuid.uuid4().hex}")  # a press twice adds it once

    def add() -> None:
        text, line = str(st.session_state.get(f"{key}_text") or ""), st.session_state.get(f"{key}_line")
        where = (page.project.project_id, entry.criteria_id)
        projects.add_comment(page.store, *where, text, line=line or None, form=form)
        state.leave_notice("Comment added.", good=True)

    with (
        st.popover("Comment", icon=":material/add_comment:", key=f"{key}_open"),
        st.form(f"{key}_form", border=False),
    ):
        st.selectbox(
            "On",
            [0, *range(1, len(lines) + 1)],
            key=f"{key}_line",
            format_func=lambda k: lines[k - 1].strip()[:80] or f"line {k}, empty" if k else "the whole text",
        )
        st.text_input("Comment", key=f"{key}_text", max_chars=LONGEST_COMMENT)
        people.submit(page, "annotator", "Add comment", on_click=state.attempt, args=("Not added", add))


def draw_comments(page: Opened, entry: CriteriaEntry, comments: Sequence[Comment]) -> None:
    """Draw open comments in the order of their lines, and resolved ones in an expander."""
    lines = entry.text.splitlines()

    def head(comment: Comment) -> str:
        quoted = lines[comment.line - 1].strip()[:60] if comment.line and comment.line <= len(lines) else ""
        where = f"“{plain(quoted)}”" if quoted else f"line {comment.line}" if comment.line else "the whole text"
        return f"**{plain(comment.actor or 'somebody')}** on {where}, {plain(tables.when(comment.at))}"

    for comment in sorted(comments, key=lambda comment: (comment.line or 0, comment.at)):
        if comment.settled_by:
            continue
        with st.container(border=True, gap="xsmall"):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(head(comment), width="content")
                st.space("stretch")
                where = (page.store, page.project.project_id, entry.criteria_id, comment.number)
                people.button(
                    page,
                    "annotator",
                    "Settle",
                    icon=":material/check:",
                    type="tertiary",
                    key=state.widget(f"settle_{comment.number}"),
                    on_click=state.attempt,
                    args=("Not settled", projects.settle_comment, *where),
                )
            st.text(comment.text)
    settled = [comment for comment in comments if comment.settled_by]
    if settled:
        with st.expander(f"Settled: {len(settled)}"):
            for comment in settled:
                st.markdown(f"{head(comment)} · settled by {plain(comment.settled_by)}")
                st.text(comment.text)


# ── where it comes from ──────────────────────────────────────────────────────────────────────────────────────


def origin_words(entry: CriteriaEntry) -> str:
    """Say in a sentence how these criteria were made."""
    origin = entry.provenance
    shown = origin.size or len(origin.item_ids)  # drafts fitted to all labels have no size of their own
    note = f" Note: {origin.note}" if origin.note else ""
    return {
        "none": "No criteria were given.",
        "given": f"Given from outside.{note}",
        "draft": f"Drafted from {counted(shown, 'labelled item')}.",
        "refine": f"Refined in round {origin.round} from {counted(shown, 'misaligned item')}.",
        "edit": f"Edited by {origin.author or 'somebody'}.{note}",
    }[origin.origin]


def draw_origin(page: Opened, entry: CriteriaEntry) -> None:
    """Draw when the criteria were saved, all their measurements, and the items they were made from."""
    st.text(f"{origin_words(entry)} Saved {entry.created_at.astimezone():%d %b %Y %H:%M}.")
    if entry.alignments:
        known = entry.alignments[0].alignment
        st.markdown(f"**Agreement with raters**: {measure_name(known.statistic, known.level)}")
        measured = {
            "items": [each.side for each in entry.alignments],
            "agreement": [describe(each.alignment) for each in entry.alignments],
            "n": [each.alignment.n for each in entry.alignments],
            "unread": [each.alignment.n_unscored for each in entry.alignments],
        }
        grid.draw(measured, alt="Measurements of these criteria", rows=5)
    draw_shown_items(page, entry)


def draw_shown_items(page: Opened, entry: CriteriaEntry) -> None:
    """Draw the items that criteria were made from, with their scores under the parent and under these criteria."""
    if not entry.provenance.item_ids:
        return
    refined = entry.origin == "refine"
    st.markdown(f"**{'The misaligned items it was shown' if refined else 'The items it was drafted from'}**")
    golden = label_item.kept_golden(entry.golden_id, page.store)
    labels = golden.aspects.get(entry.aspect)
    places = {
        item_id: golden.item_ids.index(item_id) for item_id in entry.provenance.item_ids if item_id in golden.item_ids
    }
    scores: dict[str, dict[str, float | None]] = {}
    for parent_id in entry.parents[:1]:
        try:
            runs = page.store.criteria.get(page.project.project_id, parent_id).runs
            run_id = next(run for run in entry.runs if run in runs)
            for heading, criteria_id in (("under the parent", parent_id), ("now", entry.criteria_id)):
                scored = projects.item_scores(page.store, run_id, criteria_id)
                scores[heading] = {item.item_id: item.score for item in scored}
        except (ConcordError, StopIteration):  # no run scored both
            scores.clear()
    frame = {
        "judged text": [golden.items[place].target for place in places.values()],
        "raters": [None if labels is None else labels.values[place] for place in places.values()],
        **{heading: [given.get(item_id) for item_id in places] for heading, given in scores.items()},
        "source": [golden.items[place].source for place in places.values()],
        "item": list(places),
    }
    columns = {name: Column(digits=2) for name in ("raters", "under the parent", "now")} | {"item": Column(width=150)}
    grid.draw(frame, columns, alt="Items that these criteria were made from", rows=5, tall=True)
    link_to("golden_set", "Open the golden set", icon=":material/dataset:", golden=entry.golden_id)
