"""Draw the ranking of judges: its finding, one table, one chart, and every pair of judges."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from core.comparison import Leaderboard
from core.findings.agreement import STANDING_WORDS
from core.records import Alignment
from core.report.figures.whiskers import leaderboard_figure
from core.stats import ALPHA, LEAST_SOURCES, TOO_FEW, PairwiseComparison, claim
from core.stats.alignment import Difference
from core.stats.intervals import HALF_ALPHA
from core.wording import change_figures, consistent_interval, p_figure
from pages.compare.choices import Compared
from pages.ui import charts, grid, tables
from pages.ui.cached import cached
from pages.ui.grid import Column
from pages.ui.page import finding, link_to
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing

MOST_ROWS = 9
CLAIMS = {"higher": "better", "lower": "worse", "better": "worse", "worse": "better"}
"""Words for a row compared with the subject. The last two are for the regression: how the subject compares with it."""


def draw(compared: Compared) -> None:
    """Draw the finding, the table, the chart with agreement among raters, and every pair of judges."""
    said, board = compared.finding, compared.leaderboard
    finding(said.headline, step=lambda: _draw_next(compared))
    st.caption(plain(said.detail))
    for sentence in said.cautions:
        st.markdown(f":material/warning: {plain(sentence)}")
    heading = tables.measure_heading(Alignment(board.measure.statistic, board.measure.level, None, 0))
    against = f"version {compared.version.number}" if compared.version else "the best judge"
    methods = (row.alignment.interval.method for row in board.rows if row.alignment.interval is not None)
    columns = {
        "judge": Column(width=230),
        heading: Column(digits=2, help=f"Agreement with raters: {compared.measure}"),
        "95 % interval": Column(help=next(methods, "Computed over sources")),
        f"compared with {against}": Column(
            help=f"Paired test over at least {LEAST_SOURCES} sources, Holm-corrected except for a version's baseline."
        ),
        "compared with a rater": Column(
            help="Agreement with the mean of the other raters: the judge's minus one rater's"
        ),
        "n": Column(help="Number of items, or number of systems at the system level"),
        "no score": Column(help="Number of labelled items without a score. They don't count as 0."),
    }
    frame = judges_frame(compared, heading, f"compared with {against}")
    grid.draw(frame, columns, alt=f"Judges by {compared.measure}", rows=MOST_ROWS)
    pool = board.pool
    notes = [f"{pool.n_common:,} of {pool.n_labelled:,} labelled items"]
    if pool.n_seen:
        notes.append(f"{pool.n_seen:,} left out because at least one judge has seen their labels")
    if pool.n_unscored:
        notes.append(f"{pool.n_unscored:,} left out because at least one judge hasn't scored them")
    notes = ["; ".join(notes) + "."]
    for row in board.rows:
        if row.unscored:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in row.unscored.items())
            notes.append(f"No score from {row.name}: {reasons}.")
    if compared.hidden:
        notes.append(
            f"Hidden because they share too few items with the other judges: “{'”, “'.join(compared.hidden)}”."
        )
    st.caption(plain(" ".join(notes)))
    if not board.problem:
        charts.place(
            cached(("whiskers", *compared.key), lambda: _whiskers(compared)),
            key="compare_whiskers",
            alt=f"{compared.measure} with intervals: every judge, and one rater compared with the other raters",
        )
    if board.pairwise is not None:
        with st.expander("All judges compared with each other"):
            _draw_pairs(board, board.pairwise)


def _draw_next(compared: Compared) -> None:
    """Draw the next step: approve the version, measure it here, or read the report."""
    golden_id, version = compared.view.golden_id, compared.shown.line.default
    where = {"golden": golden_id, "aspect": compared.aspect}
    if version is None:
        link_to("calibrate", "Calibrate a judge", icon=":material/tune:", golden=golden_id)
    elif version.in_force and version.on(golden_id) is not None:
        link_to("report", "Read the report", icon=":material/summarize:", **where)
    else:
        words = "Measure version {} here" if version.on(golden_id) is None else "Approve version {}"
        number = str(version.number)
        link_to("overview", words.format(number), icon=":material/verified:", version=number, **where)


def judges_frame(compared: Compared, heading: str, against: str) -> pd.DataFrame:
    """Return a table with one row per judge and one for the plain regression, each compared with `compared.subject`.

    `heading` and `against` are the headers of the columns with the agreement and the comparison.
    """
    board, subject = compared.leaderboard, compared.subject

    def comparison(gap: Difference, shown: str, limit: float = ALPHA) -> str:
        if shown in ("undefined", "untested"):
            return tables.DASH if gap.value is None else f"{change_figures(gap.value, gap.interval)}, not tested"
        return f"{CLAIMS.get(shown, 'no clear difference')}, {p_figure(gap.p, limit=limit)}"

    rows: list[dict[str, Any]] = []
    for k, row in enumerate(board.rows):
        aligned, people, person, words = row.alignment, row.people, tables.DASH, ""
        if people is not None and people.difference is not None:
            standing = "not tested" if people.withheld else STANDING_WORDS[people.standing]
            person = f"{standing}, {change_figures(people.difference, people.interval)}"
        if (gap := board.minus(k, subject)) is not None:
            words = comparison(gap, claim(gap.value, gap.interval, gap.p))
        rows.append(
            {
                "judge": row.name,
                heading: aligned.value,
                "95 % interval": tables.interval_of(aligned),
                against: words,
                "compared with a rater": person,
                "n": aligned.n,
                "no score": sum(row.unscored.values()),
                "why undefined": aligned.reason,
            }
        )
    if board.bar is not None:
        aligned = board.bar.alignment
        cells = {
            "judge": board.bar.name,
            heading: aligned.value,
            "95 % interval": tables.interval_of(aligned),
            against: comparison(board.bar.minus[subject].reversed, board.bar.standing(subject), HALF_ALPHA),
            "n": aligned.n,
            "no score": 0,
        }
        higher = [row for row in rows if None not in (row[heading], aligned.value) and row[heading] >= aligned.value]
        rows.insert(len(higher), cells)
    frame = pd.DataFrame(rows).astype({heading: "float64"})
    optional = ["compared with a rater", "no score", "why undefined", against]
    nothing = frame[optional].isin(["", tables.DASH, 0]) | frame[optional].isna()
    dropped = [name for name in optional if nothing[name].all()]
    if frame["n"].nunique() == 1 and board.measure.level != "system":
        dropped.append("n")  # shown in the line above the table
    return frame.drop(columns=dropped)


def _whiskers(compared: Compared) -> Drawing:
    board = compared.leaderboard
    marks = {row.name: row.alignment for row in board.rows}
    if board.bar is not None:
        marks[board.bar.name] = board.bar.alignment
    return leaderboard_figure(marks, board.ceiling, measure=compared.measure)


def _draw_pairs(board: Leaderboard, pairwise: PairwiseComparison) -> None:
    """Draw every pair of judges, significant differences first."""
    st.caption("Paired test by source. The p-values are Holm-corrected, except for a version and its own baseline.")
    if board.n_sources < LEAST_SOURCES:
        st.markdown(f"**Concord doesn't test differences here:** {TOO_FEW}.")
    rows = []
    for i, j in combinations(range(len(board.rows)), 2):
        pair, p = pairwise.pair(i, j), float(pairwise.p_holm[i, j])
        verdict = CLAIMS.get(claim(pair.value, pair.interval, p), "no")
        rows.append(
            {
                "judge": board.rows[i].name,
                "minus": board.rows[j].name,
                "difference": pair.reason
                if pair.value is None
                else change_figures(pair.value, consistent_interval(pair.interval, p)),
                "significant": "not tested" if np.isnan(p) else verdict,
                "p": p_figure(p, tables.DASH),
                "n": pair.n,
            }
        )
    rows.sort(key=lambda row: row["significant"] in ("no", "not tested"))
    grid.draw(pd.DataFrame(rows), alt="All judges compared with each other", rows=MOST_ROWS)
