"""List the criteria of an aspect, best first, and keep the selected criteria in the URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core import projects
from core.project_records import CriteriaEntry
from core.projects.criteria import RescoreResult
from core.report.figures import measure_name
from core.stats import claim
from core.stats.intervals import Claim
from core.wording import difference_figures, number
from pages.overview import judge_view
from pages.ui import grid, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened


def choose(page: Opened) -> list[CriteriaEntry]:
    """Return all criteria of the open aspect, best first, and open one of them; [] if there are none.

    The opened criteria are the first of these that exist, and their id is put into the URL:

    - the criteria in the URL
    - the best criteria of the run in the URL
    - the criteria of the current judge
    - the best of all criteria
    """
    everything = tables.best_first(page.store.criteria.all(page.project.project_id))
    if not everything:
        return []
    wanted, run_id, aspect = (state.url_id(name) for name in ("criteria", "run", "aspect"))
    lines = projects.judge_lines(page.store, page.project.project_id).values()
    in_use = {line.current.criteria_ids[0] for line in lines if line.current is not None}

    def place(entry: CriteriaEntry) -> tuple[bool, ...]:
        of_aspect = aspect in (None, entry.aspect)
        return entry.criteria_id != wanted, run_id not in entry.runs, not of_aspect, entry.criteria_id not in in_use

    opened = min(everything, key=place)
    if wanted != opened.criteria_id:
        open_criteria(opened.criteria_id, leave=wanted is not None)
    aspects = sorted({entry.aspect for entry in everything})
    if len(aspects) > 1:
        key = state.widget("criteria_aspect")
        st.session_state[key] = opened.aspect

        def switch() -> None:
            state.put_in_url(run=None, aspect=st.session_state[key])
            open_criteria(None)

        with page.head or st.container():
            st.selectbox("Aspect", aspects, key=key, on_change=state.when_changed(key, switch), width=200)
    return [entry for entry in everything if entry.aspect == opened.aspect]


def open_criteria(criteria_id: str | None, *, leave: bool = True) -> None:
    """Put the id of the criteria into the URL. With `leave`, remove ids that belong to the previous criteria."""
    state.put_in_url(criteria=criteria_id)
    if leave:
        state.put_in_url(rescore=None, edit=None)


def draw(page: Opened, entries: Sequence[CriteriaEntry], names: Mapping[str, str]) -> None:
    """Draw the list of criteria. Selecting a row opens its criteria."""
    followed = judge_view.line_of(page, entries[0].aspect).followed
    states = {criteria_id: judge_view.state_words(version) for criteria_id, version in followed.items()}
    frame = tables.criteria_frame(entries, names, states)
    heading = str(frame.columns[1])
    st.caption("Highest agreement first. Criteria that were rejected, dropped early or never measured come last.")
    grid.draw(
        frame,
        {"criteria": Column(width=430), heading: Column(digits=2), "interval": Column("95 % interval")},
        alt="Criteria, highest agreement first",
        rows=6,
        key=state.CANDIDATES,
        pick=grid.Pick(
            [entry.criteria_id for entry in entries],
            state.url_id("criteria"),
            lambda: open_criteria(grid.picked(state.CANDIDATES)),
        ),
    )


def claim_of(edit: RescoreResult | None) -> Claim:
    """Classify the difference between an edit and its parent, as in `claim`; "undefined" without an edit."""
    return "undefined" if edit is None else claim(edit.difference.value, edit.difference.interval, edit.difference.p)


def finding(entry: CriteriaEntry, names: Mapping[str, str], edit: RescoreResult | None) -> str:
    """Return a sentence on how well the criteria agree with raters.

    `edit` is the result of scoring an edit and its parent.
    """
    if edit is not None and edit.parent.value is not None and edit.new.value is not None:
        before, after = number(edit.parent.value), number(edit.new.value)
        where = "on the calibration set"
        return {
            "lower": f"This edit lowers agreement from {before} to {after} {where}.",
            "higher": f"This edit raises agreement from {before} to {after} {where}.",
            "open": f"This edit makes no clear difference {where}: {before} before, {after} now.",
        }.get(claim_of(edit), f"Agreement {where}: {before} before, {after} now.")
    newest = tables.newest_calibration(entry)
    if newest is None or newest.alignment.value is None:
        return f"“{names[entry.criteria_id]}” hasn't been measured for {entry.aspect} yet."
    return f"Agreement with raters on the calibration set: {number(newest.alignment.value)}."


def place_words(entry: CriteriaEntry, entries: Sequence[CriteriaEntry]) -> str:
    """Return the rank of the criteria in words; "" if they were not measured on all items.

    For example, ", rank 3 of 17 sets of criteria measured on all items".
    """
    ids = [each.criteria_id for each in entries if tables.group_of(each) == tables.MEASURED]
    if entry.criteria_id in ids:
        return f", rank {ids.index(entry.criteria_id) + 1} of {len(ids)} sets of criteria measured on all items"
    return ""


def measured_on(
    entry: CriteriaEntry, entries: Sequence[CriteriaEntry], edit: RescoreResult | None, *, scoring: bool
) -> str:
    """Describe how the agreement of the criteria was measured: statistic, level, n, interval.

    If it was not measured, say how to measure it.
    """
    newest = tables.newest_calibration(entry)
    if newest is None or newest.alignment.value is None:
        words = "To measure these criteria, use “Make this the judge”."
        return "Concord is measuring these criteria now." if scoring else words
    aligned = newest.alignment
    if edit is not None:
        tested = edit.difference
        figures = f"{difference_figures(tested.value, tested.interval, tested.p, tested.p_reason)}, n = {tested.n:,}"
    else:
        ends = "" if aligned.interval is None else f", 95 % interval {tables.interval_of(aligned)}"
        figures = f"n = {aligned.n:,}{ends}"
    measure = measure_name(aligned.statistic, aligned.level)
    place = place_words(entry, entries)
    return f"{entry.aspect}: {measure}, calibration set (optimistic), {figures}{place}."
