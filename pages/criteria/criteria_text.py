"""Draw a set of criteria: its name, its lines, and its origin."""

from __future__ import annotations

import re

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import CriteriaEntry
from core.report.figures import describe, measure_name
from core.wording import counted
from pages.label import label_item
from pages.overview import judge_view
from pages.ui import grid, tables
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

MOST_MARKED = 400
NO_BREAK = "\u00a0"
_LEVEL = re.compile(r"^(\d+(?:[.,]\d+)?)\s*[:=–—-]\s+(?=\S)")


def draw_head(page: Opened, entry: CriteriaEntry, name: str) -> None:
    """Draw the name of the criteria, and the judge version that uses them."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{plain(name)}**", width="content")
        judge_view.draw_follower(page, entry.aspect, entry.criteria_id)


def draw_lines(text: str) -> None:
    """Draw the text line by line, with the levels of a scale in bold."""
    if not text.strip():
        st.text("This is the baseline, which has no criteria.")
        return
    lines = text.splitlines()
    if len(lines) > MOST_MARKED:
        st.text(text)
        return
    shown = []
    for line in lines:
        body = line.replace("\t", "    ")
        indent, words = NO_BREAK * (len(body) - len(body.lstrip(" "))), body.strip()
        level = _LEVEL.match(words)
        if level is None:
            marked = f"{indent}{plain(words)}" or NO_BREAK
        else:
            marked = f"{indent}**{plain(level[1])}**{NO_BREAK * 2}{plain(words[level.end() :])}"
        shown.append(marked)
    with st.container(key="judged"):
        st.markdown("  \n".join(shown))


# ── origin ───────────────────────────────────────────────────────────────────────────────────────────────────


def origin_words(entry: CriteriaEntry) -> str:
    """Say in a sentence how these criteria were made."""
    origin = entry.provenance
    shown = origin.size or len(origin.item_ids)  # drafts fitted to all labels have no size
    note = f" Note: {origin.note}" if origin.note else ""
    return {
        "none": "There are no criteria.",
        "given": f"Imported.{note}",
        "draft": f"Drafted from {counted(shown, 'labelled item')}.",
        "refine": f"Refined in round {origin.round} from {counted(shown, 'misaligned item')}.",
        "edit": f"Edited by {origin.author or 'somebody'}.{note}",
    }[origin.origin]


def draw_origin(page: Opened, entry: CriteriaEntry) -> None:
    """Draw when the criteria were saved, all their measurements, and the items used to write them."""
    st.text(f"{origin_words(entry)} Saved {tables.when(entry.created_at)}.")
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
    """Draw the items used to write the criteria, with their scores under the parent and under these criteria."""
    if not entry.provenance.item_ids:
        return
    refined = entry.origin == "refine"
    st.markdown(f"**{'Misaligned items used for refining' if refined else 'Items used for drafting'}**")
    golden = label_item.cached_golden(entry.golden_id, page.store)
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
    grid.draw(frame, columns, alt="Items used to write these criteria", rows=5, tall=True)
    link_to("golden_set", "Open the golden set", icon=":material/dataset:", golden=entry.golden_id)
