"""Below the leaderboard: how good each system is, by one judge's verdicts corrected with the labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from core import projects
from core.comparison.corrected_means import MoreVerdicts, SystemItems, judged_items, next_labels
from core.comparison.decisions import Preferences, preferred
from core.data.verdict_imports import ScoredRows
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
from core.records import GoldenSet, JudgeScores
from core.report.figures import Drawing
from core.report.figures.whiskers import strengths_figure, system_means_figure
from core.stats.system_means import LEAST_LABELS, USUAL_LABELS, SystemMeans, plan_labels, system_means
from core.wording import counted, estimate
from pages.compare import more_verdicts
from pages.compare.choices import Compared, choose_row
from pages.ui import charts, grid, state
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

MOST_DRAWN = 16
"""Systems in the chart; the table has all."""


def draw(page: Opened, compared: Compared) -> None:
    """Which system is better, as far as one judge and the labels can tell."""
    if compared.golden.kind == "pair":
        _draw_preferences(compared)
        return
    if compared.view.n_systems < 1:
        st.info("The items do not say which system wrote them: add a column system_id.", icon=":material/hub:")
        return
    above = st.container()
    entry = compared.judge_of(compared.leaderboard.rows[choose_row(compared)])
    key = (compared.golden.digest, compared.aspect, entry.judge_id)
    more = _more_verdicts(compared, entry, key)
    picked = projects.picked_labels(page.store, page.project.project_id, compared.view.golden_id, compared.aspect)
    seen = projects.seen_labels(page.store, page.project.project_id, compared.view.golden_id, entry.judge)
    positions = (np.asarray(which, dtype=int).tobytes() for which in (picked, seen))  # a tuple is hashed one by one
    key += (None if more is None else more.digest, *positions)
    try:
        judged, means = _estimated(key, compared.golden, compared.aspect, entry.judge, more, seen, picked)
    except ConcordError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    said = means_finding(means, compared.aspect, judged.left_out)
    with above:
        st.markdown(f"##### {plain(said.headline)}")
        st.caption(plain(said.detail))
        for sentence in said.cautions:
            st.markdown(f":material/warning: {plain(sentence)}")
    if means.corrected:
        charts.place(_figure(key, means, compared.aspect), key="compare_systems", alt="Corrected mean of each system")
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
        "corrected": Column(help="The judge's mean, put right by the labels; 95 % interval"),
        "judge alone": Column(help="Naive: its interval says nothing of the judge's bias"),
        "worth in labels": Column(
            digits=0, help="So many labels alone would give an interval as narrow as the corrected one"
        ),
    }
    grid.draw(frame, columns, alt="Mean of each system: corrected, by labels alone, by the judge alone", rows=12)
    if notes := notes_of_systems(means):
        st.caption("  \n".join(map(plain, notes)))
    if len(means.differences) > 1:
        n_shown = sum(map(is_shown, means.differences))
        with st.expander(f"{n_shown} of {len(means.differences)} pairs differ significantly", icon=":material/notes:"):
            st.text("\n".join(f"{pair.a} − {pair.b}: {difference_words(pair)}" for pair in means.differences))
    with st.expander("What more labels would bring", icon=":material/edit_note:", expanded=not means.corrected):
        n_labels = st.number_input(
            "Labels a system",
            min_value=LEAST_LABELS,
            max_value=10_000,
            value=USUAL_LABELS,
            key=state.widget("means_plan"),
        )
        plan = plan_labels(means, int(n_labels))
        st.markdown("\n".join(f"- {plain(worth.words)}" for worth in plan.worth))
        follow = next_labels(judged, means)
        if follow is None:
            st.caption("Every judged item has a label. Bring in verdicts on items without one to gain from the judge.")
            return
        st.caption(plain(f"Label next {counted(len(follow.item_ids), 'item')} of {follow.system}: {follow.why}."))
        st.code("\n".join(follow.item_ids), language=None)
        if np.isnan(compared.golden.labels(compared.aspect)).any():
            link_to("label", "Begin to label", icon=":material/edit_note:", golden=compared.view.golden_id)


def _draw_preferences(compared: Compared) -> None:
    """Pairs of texts: which systems people prefer, and whether one judge prefers the same."""
    above = st.container()
    entry = compared.judge_of(compared.leaderboard.rows[choose_row(compared)])
    key = (compared.golden.digest, compared.aspect, entry.judge_id)
    outcome = _preferred(key, compared.golden, compared.aspect, entry.judge)
    people = outcome.by_people
    with above:
        said = preferences_finding(outcome)
        st.markdown(f"##### {plain(said.headline)}")
        st.caption(plain(said.detail))
        for sentence in said.cautions:
            st.markdown(f":material/warning: {plain(sentence)}")
    if people.systems:
        drawn = strengths_figure(people, outcome.by_judge, entry.name)
        charts.place(drawn, key="compare_strengths", alt=f"Strength of {counted(len(people.systems), 'system')}")


@st.cache_resource(max_entries=32, show_spinner=False)
def _preferred(key: Hashable, _golden: GoldenSet, aspect: str, _judge: JudgeScores) -> Preferences:
    return preferred(_golden, aspect, _judge.upward, seen=_judge.seen)


@st.cache_resource(max_entries=32, show_spinner="Correcting the means …")
def _estimated(
    key: Hashable,
    _golden: GoldenSet,
    aspect: str,
    _judge: JudgeScores,
    _more: MoreVerdicts | None,
    _seen: Sequence[int],
    _picked: Sequence[int],
) -> tuple[SystemItems, SystemMeans]:
    own = ScoredRows(_golden.item_ids, _judge.upward)
    rows = own if _more is None else _more.beside(own)
    judged = judged_items(_golden, aspect, rows, seen=_seen, picked=_picked)
    return judged, system_means(judged.items)


def _more_verdicts(compared: Compared, entry: JudgeEntry, key: tuple[str, ...]) -> MoreVerdicts | None:
    """The judge's verdicts on any number of other items, out of a file that `score` wrote; None without one."""
    with st.expander("Verdicts on more items", icon=":material/upload_file:"):
        st.caption(
            "What `score` wrote for this judge, with a column system_id: labels stay few, intervals get narrower. The "
            "report has them too, until this tab is closed or reloaded."
        )
        sent = st.file_uploader(
            "Verdicts",
            type=["jsonl", "csv", "parquet"],
            key=state.widget(f"means_more_{'_'.join(key)[-40:]}"),
            label_visibility="collapsed",
        )
        judge = entry.judge
        place = more_verdicts.Place(compared.golden.digest, compared.aspect, judge.run_id or entry.judge_id)
        kept = more_verdicts.kept(place) if sent is None else more_verdicts.Kept.of(sent)
        if kept is None:
            return None
        try:
            more = _read_more((*key, kept.file_id), kept.sent, compared.golden, judge)
        except ConcordError as error:
            st.error(plain(str(error)), icon=":material/error:")
            return None
        more_verdicts.keep(place, kept)
        if sent is None:
            st.button("Leave them out", on_click=more_verdicts.forget, key=state.widget("means_more_out"))
        scale = ", put on the scale that this judge was imported with" if more.rescaled else ""
        n_more = counted(len(more.rows.item_ids), "verdict")
        st.markdown(f":material/check: {n_more} on items beyond the golden set{scale}.")
        return more


@st.cache_resource(max_entries=4, show_spinner="Reading the verdicts …")
def _read_more(key: Hashable, _sent: SentVerdicts, _golden: GoldenSet, _judge: JudgeScores) -> MoreVerdicts:
    return read_more_verdicts(_sent, _golden, _judge)


@st.cache_resource(max_entries=32, show_spinner=False)
def _figure(key: Hashable, _means: SystemMeans, aspect: str) -> Drawing:
    return system_means_figure(_means, aspect, most=MOST_DRAWN)
