"""Draw the mean of each system, corrected with labels; for pairs, show which system raters prefer."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from core import projects
from core.comparison.corrected_means import judged_items
from core.comparison.measures import preferred
from core.data.judge_results import ScoredRows
from core.findings.system_quality import (
    difference_words,
    means_finding,
    notes_of_systems,
    preferences_finding,
)
from core.report.figures.whiskers import strengths_figure, system_means_figure
from core.stats.system_means import SystemMeans, system_means
from core.wording import counted, estimate
from pages.compare.choices import Compared, choose_row, tell
from pages.ui import charts, grid
from pages.ui.cached import cached
from pages.ui.grid import Column
from pages.ui.page import Opened
from pages.ui.screens import plain

MOST_DRAWN = 16
"""Systems in the chart; the table has all."""


def draw(page: Opened, compared: Compared) -> None:
    """Show which system is better, according to one judge and the labels."""
    golden, aspect = compared.golden, compared.aspect
    if golden.kind != "pair" and compared.view.n_systems < 1:
        st.info("There are no systems to compare, because the items have no system_id column.", icon=":material/hub:")
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
    seen = projects.seen_labels(page.store, page.project.project_id, compared.view.golden_id, judge)

    def estimated() -> tuple[SystemMeans, dict[str, int]]:
        rows = ScoredRows(golden.item_ids, judge.upward)
        judged, left_out = judged_items(golden, aspect, rows, seen=seen)
        return system_means(judged), left_out

    key_of_means = (*key, np.asarray(seen, dtype=int).tobytes())  # bytes, because a long tuple is slow to hash
    means, left_out = cached(("means", *key_of_means), estimated)
    tell(means_finding(means, aspect, left_out))
    if means.corrected:
        drawn = cached(("systems", *key_of_means), lambda: system_means_figure(means, aspect, most=MOST_DRAWN))
        charts.place(drawn, key="compare_systems", alt="Corrected mean for each system")
    _draw_means(means)
    st.caption("To include verdicts on items outside this golden set, run `python -m core estimate-means`.")


def _draw_means(means: SystemMeans) -> None:
    """Draw all systems in a table, and all pairs of systems in words."""
    systems = [*means.corrected, *(system for system in means.systems if system.corrected.value is None)]
    frame = pd.DataFrame(
        {
            "system": [system.name for system in systems],
            "corrected": [estimate(system.corrected) for system in systems],
            "labels alone": [estimate(system.labels_only) for system in systems],
            "judge alone": [estimate(system.judge_only) for system in systems],
            "labels": [system.n_labelled for system in systems],
            "verdicts": [system.n_judged for system in systems],
            "equivalent labels": pd.Series([system.n_effective for system in systems], dtype="Float64"),
        }
    )
    columns = {
        "corrected": Column(help="The judge's mean score, corrected with the labels, and its 95 % interval"),
        "judge alone": Column(help="The judge's mean score without correction. The interval ignores the judge's bias."),
        "equivalent labels": Column(
            digits=0, help="Number of labels that would be needed for the same interval without the judge"
        ),
    }
    if frame["corrected"].equals(frame["labels alone"]):  # every judged item has a label
        frame = frame.drop(columns=["labels alone", "verdicts", "equivalent labels"])
    grid.draw(
        frame, columns, alt="Mean for each system: corrected, from labels alone, and from the judge alone", rows=12
    )
    if notes := notes_of_systems(means):
        st.caption("  \n".join(map(plain, notes)))
    if len(means.differences) > 1:
        with st.expander("Every system compared with every other", icon=":material/notes:"):
            st.text("\n".join(f"{pair.a} − {pair.b}: {difference_words(pair)}" for pair in means.differences))
