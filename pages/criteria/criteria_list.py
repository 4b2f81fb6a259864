"""Which criteria are looked at: of a run, best first, with the state that people gave them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import streamlit as st

from core import projects
from core.project_records import CriteriaEntry, Run
from core.report.figures import measure_name
from core.wording import number
from pages.overview import judge_view
from pages.ui import grid, run_panel, state, tables
from pages.ui.chosen import distinct
from pages.ui.grid import Column
from pages.ui.page import Opened

EVERY_RUN = ""
EVERY_RUN_OF = "aspect:"


def wanted_run(page: Opened) -> str:
    """The run in the URL, else the newest finished one; empty (all criteria) where other criteria are linked.

    Where nothing is, the criteria of a judge in use are opened.
    """
    runs = _calibrations(page)
    wanted = state.url_id("run")
    if wanted not in runs:
        linked = state.url_id("criteria") or state.url_id("rescore") or _in_use(page)
        finished = (run_id for run_id in runs if runs[run_id].status == "done")
        wanted = EVERY_RUN if linked else next(finished, next(iter(runs), EVERY_RUN))
    state.put_in_url(run=wanted or None)
    return wanted or EVERY_RUN


def _in_use(page: Opened) -> str | None:
    """The first criteria of a judge in use, put into the URL; None where none is."""
    lines = projects.judge_lines(page.store, page.project.project_id).values()
    criteria_id = next((line.current.criteria_ids[0] for line in lines if line.current is not None), None)
    state.put_in_url(criteria=criteria_id)
    return criteria_id


def _calibrations(page: Opened) -> dict[str, Run]:
    listed = projects.list_runs(page.store, page.project.project_id)
    return {run.run_id: run for run in listed if run.kind == "calibration"}


def choose_run(page: Opened, view: CriteriaEntry) -> None:
    """Whose criteria are listed: those of a run, or all for an aspect."""
    runs = _calibrations(page)
    aspects = dict.fromkeys(entry.aspect for entry in page.store.criteria.all(page.project.project_id))
    words = distinct({run_id: run_panel.run_words(run) for run_id, run in runs.items()})
    words |= {f"{EVERY_RUN_OF}{aspect}": f"all criteria for {aspect}, edits among them" for aspect in aspects}
    key = state.widget("criteria_run")
    st.session_state[key] = state.url_id("run") if state.url_id("run") in runs else f"{EVERY_RUN_OF}{view.aspect}"
    st.selectbox(
        "Criteria of",
        list(words),
        key=key,
        format_func=words.__getitem__,
        label_visibility="collapsed",
        on_change=state.when_changed(key, _switch_run, page, key),
    )


def _switch_run(page: Opened, key: str) -> None:
    """The best of what is listed now is opened."""
    chosen: str = st.session_state[key]
    ids: dict[str, str | None] = {"run": chosen, "criteria": None}
    if chosen.startswith(EVERY_RUN_OF):
        listed = page.store.criteria.all(page.project.project_id, chosen.removeprefix(EVERY_RUN_OF))
        ids = {"run": None, "criteria": tables.best_first(listed)[0].criteria_id}
    state.put_in_url(**ids, rescore=None, edit=None)


def draw_list(page: Opened, entries: list[CriteriaEntry], names: Mapping[str, str], picked: str) -> None:
    """The list in its order, said in words; a marked row is opened (`opened_in_list`)."""
    ids = [entry.criteria_id for entry in entries]
    followed = {aspect: judge_view.line_of(page, aspect).followed for aspect in {entry.aspect for entry in entries}}
    standing = {key: judge_view.state_words(each) for line in followed.values() for key, each in line.items()}
    frame = tables.criteria_frame(entries, names, standing)
    st.caption(order_words(entries))
    grid.draw(
        frame,
        {str(frame.columns[1]): Column(digits=2), "interval": Column("95 % interval")},
        alt="Criteria, best measured first",
        rows=6,
        key=state.CANDIDATES,
        pick=grid.Pick(ids, picked),
    )


def finding(view: CriteriaEntry, entries: list[CriteriaEntry], names: Mapping[str, str]) -> str:
    """How well the criteria agree with raters, and where that puts them."""
    name, newest = names[view.criteria_id], tables.newest_calibration(view)
    if newest is None or newest.alignment.value is None:
        return f"“{name}” has not been measured on {view.aspect} yet"
    whole = [entry for entry in entries if tables.group_of(entry) == tables.MEASURED]
    ids = [entry.criteria_id for entry in whole]
    place = f"number {ids.index(view.criteria_id) + 1} of {len(ids)} measured in full" if view in whole else ""
    place = place or tables.standing_words(view)
    return f"Agreement of “{name}” with raters: {number(newest.alignment.value)}, {place}."


def measured_on(view: CriteriaEntry, *, scoring: bool) -> str:
    """What the figure of the finding is: statistic, level, side and n; else how to get one, or that it comes."""
    newest = tables.newest_calibration(view)
    if newest is None or newest.alignment.value is None:
        if scoring:
            return "It is being scored now."
        return "Make it the judge to measure it, or save an edit of what is measured."
    measure = measure_name(newest.alignment.statistic, newest.alignment.level)
    interval = newest.alignment.interval
    ends = "" if interval is None else f", 95 % interval {number(interval.low)} to {number(interval.high)}"
    return f"{view.aspect}: {measure}, calibration items (optimistic), n = {newest.alignment.n:,}{ends}"


def order_words(entries: Sequence[CriteriaEntry]) -> str:
    """In which order the list stands, and why what stands below does."""
    n = Counter(map(tables.group_of, entries))
    below = [
        f"{n[group]:,} {words}"
        for group, words in (
            (tables.REJECTED, "rejected (they did not gain on their parent on items that neither was made from)"),
            (tables.DROPPED_EARLY, "dropped early (measured on few items, so not comparable)"),
            (tables.UNMEASURED, "not measured"),
        )
        if n[group]
    ]
    return f"Best measured first{', then ' if below else ''}{'; '.join(below)}."


def opened_in_list(entries: list[CriteriaEntry]) -> str:
    """The id of the marked row, else the one in the URL, else the best; it stands in the URL from then on."""
    ids = [entry.criteria_id for entry in entries]
    picked = grid.picked(state.CANDIDATES)
    wanted = state.url_id("criteria")
    if picked not in ids or st.session_state.get(state.OPENED) != wanted:
        picked = wanted if wanted in ids else ids[0]
    if wanted and picked != wanted:  # another row: what stood in the link was about the one before
        state.put_in_url(rescore=None, edit=None)
    state.put_in_url(criteria=picked)
    st.session_state[state.OPENED] = picked
    return picked


def of_run(entries: list[CriteriaEntry], run_id: str) -> list[CriteriaEntry]:
    """Criteria that a run scored, and what people and rounds made from them since.

    For no run, all of one aspect: that of the criteria in the URL, else of the newest.
    """
    if not run_id:
        wanted = state.url_id("criteria")
        aspect = next((entry.aspect for entry in entries if entry.criteria_id == wanted), None)
        return [entry for entry in entries if entry.aspect == (aspect or entries[0].aspect)]
    kept = {entry.criteria_id for entry in entries if any(a.run_id == run_id for a in entry.alignments)}
    for entry in sorted(entries, key=lambda entry: entry.created_at):
        if entry.origin in ("edit", "refine") and kept & set(entry.parents):
            kept.add(entry.criteria_id)
    return [entry for entry in entries if entry.criteria_id in kept]
