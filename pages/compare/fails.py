"""Below the leaderboard: where one judge fails, what it leans on, and its scores beside people's labels."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd
import streamlit as st

from core.comparison.examination import Examination, examine_judge
from core.comparison.fails import DIVISIONS
from core.project_records import JudgeEntry
from core.records import GoldenSet, Statistic
from core.report.figures import Drawing
from core.report.figures.examination import distribution_figure, parts_figure
from core.stats.claims import HALF_ALPHA, p_figure, signed, signed_range
from pages.compare.choices import Compared
from pages.compare.sections import choose_row
from pages.ui import charts, grid, tables
from pages.ui.grid import Column
from pages.ui.screens import plain

MOST_DRAWN = 24
"""Parts in the picture; the table has all."""


def draw(compared: Compared) -> None:
    """The worst part in a sentence, every part in a picture, then biases and the scale."""
    above = st.container()
    entry = compared.judge_of(compared.leaderboard.rows[choose_row(compared, "compare_fails_judge")])
    statistic = compared.leaderboard.measure.statistic
    key = (compared.golden.digest, compared.aspect, entry.judge_id, entry.name, statistic)
    examination = _examined(key, compared.golden, compared.aspect, entry, statistic)
    with above:
        st.markdown(f"##### {plain(examination.headline)}")
        for bias in examination.biases:
            if bias.shown:
                st.markdown(plain(bias.words))
        if examination.n:
            st.caption(plain(examination.basis))
    if not examination.parts:
        return
    drawn, spread = _figures(key, examination)
    charts.place(drawn, key="compare_fails", alt="Alignment of the judge in every part of the items")
    why = "; ".join(f"{DIVISIONS[division].lower()}: {reason}" for division, reason in examination.left_out.items())
    if why:
        st.caption(plain(f"Not divided by {why}."))
    _draw_biases(examination)
    if spread is not None and examination.distribution is not None:
        st.markdown(f"**{plain(examination.distribution.words)}**")
        charts.place(spread, key="compare_distribution", alt="Labels and scores over the scale")
    _draw_table(examination)


@st.cache_resource(max_entries=64, show_spinner="Examining the judge …")
def _examined(
    key: Hashable, _golden: GoldenSet, _aspect: str, _entry: JudgeEntry, _statistic: Statistic
) -> Examination:
    judge = _entry.judge
    return examine_judge(_golden, _aspect, judge, statistic=_statistic, model=f"{judge.name} {judge.note}")


@st.cache_resource(max_entries=64, show_spinner=False)
def _figures(key: Hashable, _examination: Examination) -> tuple[Drawing, Drawing | None]:
    spread = _examination.distribution
    return parts_figure(_examination, most=MOST_DRAWN), None if spread is None else distribution_figure(spread)


def _draw_biases(examination: Examination) -> None:
    """What the judge leans on, beyond chance or not."""
    lines = [f"- {bias.title}: {plain(bias.figures)}." for bias in examination.biases]
    with st.expander("What it leans on beyond the labels", icon=":material/balance:"):
        st.markdown("\n".join(lines))
        st.caption(
            "Correlations are Spearman's. The expected one is what a judge without this leaning would have, given its "
            "noise and that of the labels. The excess is what lies beyond. Pairs: how much more often the judge "
            "prefers the second text than quality explains. If each pair was asked both ways round: how often it "
            "prefers the text that stood first."
        )


def _draw_table(examination: Examination) -> None:
    frame = pd.DataFrame(
        {
            "divided by": [DIVISIONS[part.division] for part in examination.parts],
            "part": [part.name for part in examination.parts],
            "alignment": pd.Series([part.alignment.value for part in examination.parts], dtype="Float64"),
            "interval": [tables.interval_of(part.alignment) for part in examination.parts],
            "error": pd.Series([part.error for part in examination.parts], dtype="Float64"),
            "expected error": pd.Series([part.expected for part in examination.parts], dtype="Float64"),
            "excess over the others": [
                tables.DASH if part.difference is None else f"{signed(part.difference)} {signed_range(part.interval)}"
                for part in examination.parts
            ],
            "p": [p_figure(part.p, tables.DASH, limit=HALF_ALPHA) for part in examination.parts],
            "n": [part.alignment.n for part in examination.parts],
            "sources": [part.n_sources for part in examination.parts],
        }
    )
    with st.expander(f"All {len(frame)} parts as a table", icon=":material/table:"):
        columns = {
            "alignment": Column(digits=2, help="Lower in parts with a narrow range, so it is not tested."),
            "error": Column(digits=2, help="Mean error of the judge in points of the labels' scale."),
            "expected error": Column(digits=2, help="Mean error of a judge that is equally good everywhere."),
        }
        grid.draw(frame, columns, alt="Alignment and errors of the judge in every part of the items", rows=12)
