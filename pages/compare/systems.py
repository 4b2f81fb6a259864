"""How good each system is, by one judge's verdicts corrected with the labels; of pairs, which system raters prefer."""

from __future__ import annotations

from typing import cast

import numpy as np
import pandas as pd
import streamlit as st

from core import projects
from core.comparison.corrected_means import SystemItems, judged_items, next_labels, rows_with
from core.comparison.measures import preferred
from core.data.reply_files import ScoredRows
from core.errors import ConcordError
from core.findings.system_quality import (
    difference_words,
    is_shown,
    means_finding,
    notes_of_systems,
    preferences_finding,
)
from core.project_records import JudgeEntry
from core.projects.reports import SentVerdicts, read_more_verdicts
from core.report.figures.whiskers import strengths_figure, system_means_figure
from core.stats.system_means import LEAST_LABELS, USUAL_LABELS, SystemMeans, plan_labels, system_means
from core.wording import counted, estimate
from pages.compare.choices import Compared, choose_row, tell
from pages.ui import charts, grid, state
from pages.ui.cached import cached
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

MOST_DRAWN = 16
"""Systems in the chart; the table has all."""


def draw(page: Opened, compared: Compared) -> None:
    """Which system is better, as far as one judge and the labels show."""
    golden, aspect = compared.golden, compared.aspect
    if golden.kind != "pair" and compared.view.n_systems < 1:
        st.info("The items have no column system_id, so there are no systems to compare.", icon=":material/hub:")
        return
    entry = compared.judge_of(choose_row(compared))
    judge, key = entry.judge, (golden.digest, aspect, entry.judge_id)
    if golden.kind == "pair":
        outcome = cached(("preferred", *key), lambda: preferred(golden, aspect, judge.upward, seen=judge.seen))
        tell(preferences_finding(outcome))
        if systems := outcome.by_people.systems:
            drawn = strengths_figure(outcome.by_people, outcome.by_judge, entry.name)
            charts.place(drawn, key="compare_strengths", alt=f"Strength of {counted(len(systems), 'system')}")
        return
    above = st.container()
    more = _choose_more(compared, entry)
    project_id, golden_id = page.project.project_id, compared.view.golden_id
    picked = projects.picked_labels(page.store, project_id, golden_id, aspect)
    seen = projects.seen_labels(page.store, project_id, golden_id, judge)

    def estimated() -> tuple[SystemItems, SystemMeans]:
        rows = rows_with(golden, judge.upward, more[1] if more else None)
        judged = judged_items(golden, aspect, rows, seen=seen, picked=picked)
        return judged, system_means(judged.items)

    positions = (np.asarray(which, dtype=int).tobytes() for which in (picked, seen))  # a tuple is hashed one by one
    key_of_means = (*key, more and more[0], *positions)
    try:
        judged, means = cached(("means", *key_of_means), estimated)
    except ConcordError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    with above:
        tell(means_finding(means, aspect, judged.left_out))
        if means.corrected:
            drawn = cached(("systems", *key_of_means), lambda: system_means_figure(means, aspect, most=MOST_DRAWN))
            charts.place(drawn, key="compare_systems", alt="Corrected mean of each system")
        _draw_means(means)
    with st.expander("How much more labels would add", icon=":material/edit_note:", expanded=not means.corrected):
        n = st.number_input("Labels per system", LEAST_LABELS, 10_000, USUAL_LABELS, key=state.widget("means_plan"))
        st.markdown("\n".join(f"- {plain(worth.words)}" for worth in plan_labels(means, int(n)).worth))
        follow = next_labels(judged, means)
        if follow is None:
            st.caption("Every judged item has a label. Add verdicts on items without one to gain from the judge.")
            return
        st.caption(plain(f"Label next {counted(len(follow.item_ids), 'item')} of {follow.system}: {follow.why}."))
        if np.isnan(golden.labels(aspect)).any():
            link_to("label", "Begin to label", icon=":material/edit_note:", golden=golden_id)


def _draw_means(means: SystemMeans) -> None:
    """Every system as a table, and every pair of systems in words."""
    systems = [*means.corrected, *(system for system in means.systems if system.corrected.value is None)]
    frame = pd.DataFrame(
        {
            "system": [system.name for system in systems],
            "corrected": [estimate(system.corrected) for system in systems],
            "labels alone": [estimate(system.labels_only) for system in systems],
            "judge alone": [estimate(system.judge_only) for system in systems],
            "labels": [system.n_labelled for system in systems],
            "verdicts": [system.n_judged for system in systems],
            "worth in labels": pd.Series([system.n_effective for system in systems], dtype="Float64"),
        }
    )
    columns = {
        "corrected": Column(help="The judge's mean, corrected with the labels; 95 % interval"),
        "judge alone": Column(help="Naive: its interval says nothing about the judge's bias"),
        "worth in labels": Column(digits=0, help="How many labels alone would give as narrow an interval"),
    }
    grid.draw(frame, columns, alt="Mean of each system: corrected, by labels alone, by the judge alone", rows=12)
    if notes := notes_of_systems(means):
        st.caption("  \n".join(map(plain, notes)))
    if len(means.differences) > 1:
        n_shown = sum(map(is_shown, means.differences))
        with st.expander(f"{n_shown} of {len(means.differences)} pairs differ significantly", icon=":material/notes:"):
            st.text("\n".join(f"{pair.a} − {pair.b}: {difference_words(pair)}" for pair in means.differences))


# ── verdicts on more items ───────────────────────────────────────────────────────────────────────────────────


def more_verdicts(golden_id: str, aspect: str, judge: str) -> tuple[str, SentVerdicts] | None:
    """The id and content of a file with verdicts on more items, added in this session for that judge.

    `judge` is the run that measured it, or its own id if it was imported.
    """
    place, file = st.session_state.get(state.MORE_VERDICTS, (None, None))
    return cast(tuple[str, SentVerdicts], file) if place == (golden_id, aspect, judge) else None


def _choose_more(compared: Compared, entry: JudgeEntry) -> tuple[str, ScoredRows] | None:
    """The judge's verdicts on any number of other items, from a file that `score` wrote, with the file's id."""
    judge, golden = entry.judge, compared.golden
    place = (golden.digest, compared.aspect, judge.run_id or entry.judge_id)
    with st.expander("Verdicts on more items", icon=":material/upload_file:"):
        st.caption(
            "Add what `score` wrote for this judge, with a column system_id, to get narrower intervals without more "
            "labels. The report uses it too, until you close or reload this tab."
        )
        upload = st.file_uploader(
            "Verdicts",
            type=["jsonl", "csv", "parquet"],
            key=state.widget(f"means_more_{'_'.join(place)[-40:]}"),
            label_visibility="collapsed",
        )
        file = more_verdicts(*place)
        if upload is not None:
            file = (upload.file_id, (upload.name, upload.getvalue()))
        if file is None:
            return None
        file_id, sent = file
        try:
            more = cached(("more", *place, file_id), lambda: read_more_verdicts(sent, golden, judge))
        except ConcordError as error:
            st.error(plain(str(error)), icon=":material/error:")
            return None
        st.session_state[state.MORE_VERDICTS] = (place, file)
        if upload is None:
            forget = st.session_state.pop
            st.button("Leave them out", on_click=forget, args=(state.MORE_VERDICTS, None), key="form_means_more_out")
        st.markdown(f":material/check: {counted(len(more.item_ids), 'verdict')} on items beyond the golden set.")
        return file_id, more
