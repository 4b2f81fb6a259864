"""Criteria on screen: the text whole, line by line, and where it comes from."""

from __future__ import annotations

import re

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import CriteriaAlignment, CriteriaEntry
from core.projects.criteria import Review
from core.report.figures import describe, measure_name
from core.wording import counted
from pages.criteria import comments_view, criteria_names
from pages.criteria.criteria_effect import difference_words
from pages.overview import judge_view
from pages.ui import grid
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.run_panel import read_run
from pages.ui.screens import plain

__all__ = ["difference_words", "draw_head", "draw_lines", "draw_origin", "draw_shown_items", "origin_words"]

MOST_MARKED = 400
NO_BREAK = "\u00a0"
_LEVEL = re.compile(r"^(\d+(?:[.,]\d+)?)\s*[:=–—-]\s+(?=\S)")


def draw_head(page: Opened, view: CriteriaEntry, review: Review, name: str) -> None:
    """The name, which can be changed where it stands, and what people made of the criteria."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{plain(name)}**", width="content")
        criteria_names.draw_rename(page, view, name)
        judge_view.draw_follower(page, view.aspect, view.criteria_id)
        comments_view.draw_badges(review)


def draw_lines(text: str, review: Review | None = None) -> None:
    """The text line by line, the level of a ladder in bold; a line with open comments says how many."""
    if not text.strip():
        st.text("No criteria: the judge is asked for a rating without any. This is the baseline.")
        return
    lines = text.splitlines()
    if len(lines) > MOST_MARKED:
        st.text(text)
        return
    open_at = [] if review is None else [comment.line for comment in review.comments if not comment.settled_by]
    shown = []
    for number, line in enumerate(lines, 1):
        n = open_at.count(number)
        mark = f" :blue-badge[:material/comment: {n}]" if n else ""
        shown.append(f"{_shown(line)}{mark}")
    st.markdown("  \n".join(shown))


def _shown(line: str) -> str:
    body = line.replace("\t", "    ")
    indent, words = NO_BREAK * (len(body) - len(body.lstrip(" "))), body.strip()
    level = _LEVEL.match(words)
    if level is None:
        return f"{indent}{plain(words)}" or NO_BREAK
    return f"{indent}**{plain(level[1])}**{NO_BREAK * 2}{plain(words[level.end() :])}"


def origin_words(view: CriteriaEntry) -> str:
    """What made these criteria, in a sentence."""
    origin = view.provenance
    shown = origin.size or len(origin.item_ids)  # what fits strengths to all labels has no size of its own
    labelled, misaligned = (counted(shown, f"{kind} item") for kind in ("labelled", "misaligned"))
    note = f" Note: {origin.note}" if origin.note else ""
    return {
        "none": "No criteria were given.",
        "given": f"Given from outside.{note}",
        "draft": f"Drafted from {labelled}.",
        "refine": f"Refined in round {origin.round} from {misaligned}.",
        "edit": f"Edited by {origin.author or 'somebody'}.{note}",
    }[origin.origin]


# ── where it comes from ──────────────────────────────────────────────────────────────────────────────────────


def draw_origin(page: Opened, view: CriteriaEntry) -> None:
    """When and from what the version was made, how it stood, and the items behind it."""
    origin = view.provenance
    st.text(f"{origin_words(view)} Saved {view.created_at.astimezone():%d %b %Y %H:%M}.")
    if words := _search_words(page, view):
        st.caption(plain(words))
    _draw_alignments(view)
    if origin.item_ids:
        refined = origin.origin == "refine"
        st.markdown(f"**{'The misaligned items it was shown' if refined else 'The items it was drafted from'}**")
        draw_shown_items(page, view)


def _search_words(page: Opened, view: CriteriaEntry) -> str:
    """How the calibration that made these criteria searched; "" where a person wrote them."""
    if view.origin not in ("draft", "refine"):
        return ""
    made = (read_run(page, run_id).calibration for run_id in reversed(view.runs))
    return next((calibration.settings.words for calibration in made if calibration is not None), "")


def standings(view: CriteriaEntry) -> list[tuple[CriteriaAlignment, int]]:
    """How criteria stood, once for each side and number of items however often that was measured; newest first.

    Beside each the number of runs that measured it.
    """
    found: dict[tuple[str, int], list[CriteriaAlignment]] = {}
    for aligned in view.alignments:
        found.setdefault((aligned.side, aligned.alignment.n), []).append(aligned)
    return [(runs[0], len(runs)) for runs in found.values()]


def _draw_alignments(view: CriteriaEntry) -> None:
    rows = standings(view)
    if not rows:
        st.caption("Not scored yet.")
        return
    known = rows[0][0].alignment
    st.markdown(f"**Alignment**: {measure_name(known.statistic, known.level)}")
    standing = {
        "items": [aligned.side for aligned, _ in rows],
        "alignment": [describe(aligned.alignment) for aligned, _ in rows],
        "n": [aligned.alignment.n for aligned, _ in rows],
        "unread": [aligned.alignment.n_unscored for aligned, _ in rows],
        "measured": [f"{n} times" if n > 1 else "once" for _, n in rows],
    }
    grid.draw(standing, alt="Alignments of these criteria", rows=5)


def draw_shown_items(page: Opened, view: CriteriaEntry) -> None:
    """The items a version was made from; where a run scored it and its parent, what each gave them."""
    if not view.provenance.item_ids:
        return
    golden = page.store.goldens.load(view.golden_id)
    labels = golden.aspects.get(view.criteria.aspect)
    places = {item_id: place for place, item_id in enumerate(golden.item_ids)}
    known = [item_id for item_id in view.provenance.item_ids if item_id in places]
    parent = _parent(page, view)
    run_id = None if parent is None else next((run for run in view.runs if run in parent.runs), None)
    before = {} if parent is None or run_id is None else _scores(page, run_id, parent.criteria_id)
    after = {} if run_id is None else _scores(page, run_id, view.criteria_id)
    frame = {
        "item": known,
        "raters": [None if labels is None else labels.values[places[i]] for i in known],
        **({"under the parent": [before.get(i) for i in known]} if before else {}),
        **({"now": [after.get(i) for i in known]} if after else {}),
        "judged text": [golden.items[places[i]].target for i in known],
        "source": [golden.items[places[i]].source for i in known],
    }
    columns = {name: Column(digits=2) for name in ("raters", "under the parent", "now")} | {"item": Column(width=150)}
    grid.draw(frame, columns, alt="Items this version was made from", rows=5, tall=True)
    link_to("golden_set", "The golden set", icon=":material/dataset:", golden=view.golden_id)


def _parent(page: Opened, view: CriteriaEntry) -> CriteriaEntry | None:
    try:
        return page.store.criteria.get(page.project.project_id, view.parents[0]) if view.parents else None
    except ConcordError:
        return None


def _scores(page: Opened, run_id: str, criteria_id: str) -> dict[str, float | None]:
    try:
        scored = projects.item_scores(page.store, run_id, criteria_id)
    except ConcordError:
        return {}
    return {item.item_id: item.score for item in scored}
