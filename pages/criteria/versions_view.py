"""Draw all versions of the criteria of an aspect, and compare any two."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from core import projects
from core.project_records import CriteriaEntry
from core.projects.criteria import RescoreRequest
from core.word_diff import word_diff
from core.wording import counted, number
from pages.overview import judge_view
from pages.ui import diff_view, grid, people, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain

FROM, TO = state.widget("versions_from"), state.widget("versions_to")


def draw(page: Opened, opened: CriteriaEntry, names: Mapping[str, str]) -> None:
    """Draw the best version, a comparison of two versions, and a table of all versions.

    Selecting a row of the table makes it the second version of the comparison.
    """
    family = page.store.criteria.all(page.project.project_id, opened.aspect, opened.golden_id)
    family.sort(key=lambda entry: (entry.created_at, entry.provenance.round, entry.criteria_id))
    by_id = {entry.criteria_id: entry for entry in family}
    best, said = (
        tables.best_first(family)[0],
        projects.criteria_references(page.store, page.project.project_id, opened.aspect),
    )
    if (found := tables.newest_calibration(best)) is not None and found.alignment.value is not None:
        figure = number(found.alignment.value)
        name = said[best.criteria_id]
        finding(f"{name[0].upper()}{name[1:]} has the highest agreement on the calibration set: {figure}.")
    if len(by_id) > 1:
        _draw_pair(page, by_id, opened, said)
    else:
        st.caption("These criteria have only one version so far. Edits and refinement rounds add more versions.")
    _draw_table(page, family, names)


def _draw_pair(
    page: Opened, by_id: Mapping[str, CriteriaEntry], opened: CriteriaEntry, names: Mapping[str, str]
) -> None:
    ids, marker = list(reversed(by_id)), state.widget("versions_opened")
    if st.session_state.get(marker) != opened.criteria_id or not {FROM, TO} <= set(st.session_state):
        # by default the open version and its parent, else the newest other version
        other = next((parent for parent in opened.parents if parent in by_id), None)
        other = other or next(version for version in ids if version != opened.criteria_id)
        pair = sorted((other, opened.criteria_id), key=list(by_id).index)  # oldest first
        st.session_state[FROM], st.session_state[TO] = pair
        st.session_state[marker] = opened.criteria_id

    def words(criteria_id: str) -> str:
        newest = tables.newest_calibration(by_id[criteria_id])
        return f"{names[criteria_id]} · {number(newest.alignment.value if newest else None)}"

    chosen = []
    for column, label, key in zip(st.columns(2, gap="large"), ("From", "To"), (FROM, TO), strict=True):
        with column:
            entry = by_id[str(st.selectbox(label, ids, key=key, format_func=words))]
            chosen.append(entry)
            newest = tables.newest_calibration(entry)
            parents = ", ".join(names[parent] for parent in entry.parents if parent in names)
            made = f" · created from {parents}" if parents else ""
            note = f" · {entry.note}" if entry.note else ""
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                judge_view.draw_follower(page, entry.aspect, entry.criteria_id)
                link_to("criteria", "Open", icon=":material/rule:", key=label, criteria=entry.criteria_id)
            st.caption(plain(f"{tables.when(entry.created_at)}{made}{note}"))
            figure = tables.describe_n(newest.alignment if newest else None)
            st.text(f"Calibration set: {figure}" if newest else "Not scored yet.")
    old, new = chosen
    if old is new:
        st.info("Choose two different versions.", icon=":material/compare_arrows:")
        return
    diff_view.draw(word_diff(old.text, new.text))
    project_id, runs = page.project.project_id, (*old.runs, *new.runs)

    def measure() -> None:
        where = (project_id, opened.golden_id, opened.aspect)
        request = RescoreRequest(*where, new.criteria_id, old.criteria_id, runs[0])
        rescore_id = projects.start_run(page.store, page.settings, request)
        state.put_in_url(criteria=new.criteria_id, section=None, rescore=rescore_id)

    people.button(
        page,
        "reviewer",
        "Compare both versions on the same items",
        icon=":material/science:",
        key=state.widget("measure_pair"),
        on_click=state.attempt,
        args=("Not measured", measure),
        disabled=not runs,
        help="Concord scores both versions with the same judge on the same calibration items. It doesn't use "
        "held-out items.",
    )


def _draw_table(page: Opened, family: list[CriteriaEntry], names: Mapping[str, str]) -> None:
    """Draw all versions, highest agreement first; those that were never fully measured appear on request."""
    in_full = (tables.MEASURED, tables.REJECTED)
    followed = judge_view.line_of(page, family[0].aspect).followed
    shown = [each for each in family if each.criteria_id in followed or tables.group_of(each) in in_full]
    if not shown or (
        len(shown) < len(family)
        and st.toggle(
            f"Also show {counted(len(family) - len(shown), 'version')} that Concord didn't measure on all items",
            key=state.widget("lineage_all"),
        )
    ):
        shown = family
    shown = tables.best_first(shown)
    st.caption(
        "Agreement on the calibration set, from the newest run that scored each version. Figures "
        "measured on different items aren't strictly comparable (see n)."
    )
    newest = [tables.newest_calibration(entry) for entry in shown]
    alignments = [None if each is None else each.alignment for each in newest]
    frame = pd.DataFrame(
        {
            "criteria": [names[entry.criteria_id] for entry in shown],
            "created from": [", ".join(names[p] for p in entry.parents if p in names) for entry in shown],
            "judge": [judge_view.state_words(followed.get(entry.criteria_id)) for entry in shown],
            "agreement": pd.Series([tables.value_of(each) for each in alignments], dtype="float64"),
            "95 % interval": [tables.interval_of(each) for each in alignments],
            "n": pd.array([None if each is None else each.n for each in alignments], dtype="Int64"),
        }
    )

    def pick() -> None:
        st.session_state[TO] = grid.picked(state.LINEAGE)

    grid.draw(
        frame,
        {"agreement": Column(digits=2), "criteria": Column(width=220), "created from": Column(width=160)},
        alt="All versions, highest agreement first",
        rows=8,
        key=state.LINEAGE,
        pick=grid.Pick([entry.criteria_id for entry in shown], st.session_state.get(TO), pick),
    )
