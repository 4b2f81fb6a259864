"""The leaderboard on screen: one table and one axis, every pair of judges, and all figures as files."""

from __future__ import annotations

import io
import json
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from core.comparison import Leaderboard, leaderboard_csv
from core.findings.agreement import STANDING_WORDS, alone_words
from core.records import Alignment
from core.report.figures.comparison import PairCells, significance_figure
from core.report.figures.whiskers import JudgeMark, leaderboard_figure
from core.stats import (
    ALPHA,
    LEAST_SOURCES,
    NO_TEST,
    TOO_FEW,
    PairwiseComparison,
)
from core.stats.alignment import Difference
from core.wording import change_figures, p_figure
from pages.compare.choices import Compared
from pages.ui import charts, grid, state, tables
from pages.ui.grid import Column
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing

MOST_ROWS = 9


def draw(compared: Compared) -> None:
    """The table, the same on one axis with the raters among themselves, and every pair of judges."""
    board, shown = compared.leaderboard, compared.shown
    heading = tables.measure_heading(Alignment(board.measure.statistic, board.measure.level, None, 0))
    beside = "compared with the highest"
    if shown.version is not None and compared.has_own:
        beside = f"compared with version {shown.version.number}"
    methods = (row.alignment.interval.method for row in board.rows if row.alignment.interval is not None)
    columns = {
        "judge": Column(width=300),
        heading: Column(digits=2, help=f"alignment with raters: {compared.measure}"),
        "95 % interval": Column(help=next(methods, "over sources")),
        beside: Column(help=f"paired test over sources, corrected after Holm; none under {LEAST_SOURCES} sources"),
        "compared with a rater": Column(
            help="judge minus one rater, each against the other raters' mean: see “Raters”"
        ),
        "n": Column(help="items (systems at system level) it rests on"),
        "no score": Column(help="labelled items in reach without a score; never counted as 0"),
    }
    frame = judges_frame(board, heading, beside, compared.subject)
    grid.draw(frame, columns, alt=f"Judges by {compared.measure}", rows=MOST_ROWS)
    pool = board.pool
    words = [f"{pool.n_common:,} of {pool.n_labelled:,} labelled items"]
    if pool.n_seen:
        words.append(f"{pool.n_seen:,} left out because a judge has seen their labels")
    if pool.n_unscored:
        words.append(f"{pool.n_unscored:,} because a judge has no score for them")
    notes = ["; ".join(words) + "."]
    if pool.n_common < pool.n_labelled / 2:
        costs = sorted(board.rows, key=lambda row: -row.cost.alone)[:2]
        notes += [f"Leaving out {row.name} restores {row.cost.alone:,}." for row in costs if row.cost.alone]
    for row in board.rows:
        if row.cost.unscored:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in row.cost.unscored.items())
            notes.append(f"No score: {row.name}: {reasons}.")
    st.caption(plain(" ".join(notes)))
    if not board.problem:
        people = board.ceiling.alignment
        if people is not None and people.value is not None:
            st.caption(
                "Band: one rater against the mean of the other raters. Hollow dots: each judge against the same mean."
            )
        charts.place(
            _whisker_figure(compared.key, compared),
            key="compare_whiskers",
            alt=f"{compared.measure} of every judge with its interval, and of one rater against the other raters",
        )
    if board.pairwise is not None:
        with st.expander("Every judge against every other"):
            _draw_pairs(compared, board.pairwise)
    with st.expander("Every figure of every judge"):
        whole = pd.read_csv(io.StringIO(leaderboard_csv(board))).dropna(axis="columns", how="all")
        grid.draw(whole, {"judge": Column(width=300)}, alt="Every figure of every judge", rows=MOST_ROWS)


def draw_downloads(compared: Compared) -> None:
    """The whole table as files, every column of it."""
    board = compared.leaderboard
    with st.popover("Download", icon=":material/download:"):
        for label, mime, data in (
            ("CSV", "text/csv", lambda: leaderboard_csv(board)),
            ("JSON", "application/json", lambda: json.dumps(board.as_json(), ensure_ascii=False, indent=1)),
        ):
            st.download_button(
                f"{label} of the table",
                data=data,
                file_name=f"compare.{label.lower()}",
                mime=mime,
                icon=":material/download:",
                on_click="ignore",
                key=state.widget(f"compare_{label}"),
            )


def judges_frame(board: Leaderboard, heading: str, beside: str, subject: int = 0) -> pd.DataFrame:
    """A row per judge, compared with row `subject`, and one for the regression; empty columns are left out."""

    def against(gap: Difference, p: float | None, *, above: bool) -> str:
        if p is not None and not np.isnan(p):
            return f"{'no clear difference' if p > ALPHA else 'better' if above else 'worse'}, {p_figure(p)}"
        return tables.DASH if gap.value is None else f"{change_figures(gap.value, gap.interval)}, no p"

    rows: list[dict[str, Any]] = []
    for k, row in enumerate(board.rows):
        aligned, people, person, words = row.alignment, row.people, tables.DASH, ""
        if people is not None and people.difference is not None:
            standing = "no claim" if people.withheld else STANDING_WORDS[people.standing]
            person = f"{standing}, {change_figures(people.difference, people.interval)}"
        if board.pairwise is not None and k != subject:
            gap = board.pairwise.pair(k, subject)
            p = None if aligned.value is None else float(board.pairwise.p_holm[subject, k])
            words = against(gap, p, above=k < subject)
        elif board.pairwise is not None and aligned.value is not None:
            words = "highest" if k == 0 else "itself"
        rows.append(
            {
                "judge": row.name,
                heading: aligned.value,
                "95 % interval": tables.interval_of(aligned),
                beside: words,
                "compared with a rater": person,
                "n": aligned.n,
                "no score": row.cost.n_unscored,
                "why —": aligned.reason,
            }
        )
    if board.bar is not None:
        aligned, gap = board.bar.alignment, board.bar.minus[subject].reversed
        cells = {
            "judge": board.bar.name,
            heading: aligned.value,
            "95 % interval": tables.interval_of(aligned),
            beside: against(gap, gap.p, above=(gap.value or 0.0) > 0),
            "n": aligned.n,
            "no score": 0,
        }
        higher = [row for row in rows if None not in (row[heading], aligned.value) and row[heading] >= aligned.value]
        rows.insert(len(higher), cells)
    frame = pd.DataFrame(rows).astype({heading: "float64"})
    told = {"compared with a rater": ("", tables.DASH), "no score": (0,), "why —": ("",), beside: ("",)}
    empty = [name for name, nothing in told.items() if frame[name].fillna(nothing[0]).isin(nothing).all()]
    return frame.drop(columns=empty)


@st.cache_resource(max_entries=64, show_spinner=False)
def _whisker_figure(key: Hashable, _compared: Compared) -> Drawing:
    board = _compared.leaderboard
    people = board.ceiling.alignment
    band = None if people is None or people.value is None else people
    marks = [
        JudgeMark(row.name, row.kind, row.alignment, row.people.judge if band and row.people else None)
        for row in board.rows
    ]
    if board.bar is not None:
        marks.append(JudgeMark(board.bar.name, "metric", board.bar.alignment))
        marks.sort(key=lambda mark: -(mark.alignment.value if mark.alignment.value is not None else -2.0))
    return leaderboard_figure(marks, band, measure=_compared.measure)


def _draw_pairs(compared: Compared, pairwise: PairwiseComparison) -> None:
    """The matrix of differences, and the significant ones in words, for a phone or a screen reader."""
    board = compared.leaderboard
    st.markdown(
        f"**{plain(compared.measure)}, row minus column.** "
        ":green-background[The row agrees better with raters than the column], :orange-background[worse], "
        f"or grey where nothing is shown (p above {ALPHA:g}, or no test). Paired test over sources; p "
        "corrected after Holm over all pairs."
    )
    charts.place(_matrix_figure(compared.key, compared), key="compare_matrix", alt="Every judge against every other")
    if board.n_sources < LEAST_SOURCES:
        st.markdown(f"**No difference is tested:** {TOO_FEW}.")
    else:
        n = len(board.rows)
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
        real = [(i, j) for i, j in pairs if pairwise.p_holm[i, j] <= ALPHA]
        st.markdown(
            f"**{len(real)} of {len(pairs)} {'difference is' if len(pairs) == 1 else 'differences are'} significant**"
        )
        st.text("\n".join(_pair_words(board, pairwise, i, j) for i, j in real))


@st.cache_resource(max_entries=64, show_spinner=False)
def _matrix_figure(key: Hashable, _compared: Compared) -> Drawing:
    board, pairwise = _compared.leaderboard, _compared.leaderboard.pairwise
    assert pairwise is not None
    names = tuple(row.name for row in board.rows)
    n = range(len(names))
    words = tuple(tuple(_pair_words(board, pairwise, i, j) for j in n) for i in n)
    cells = PairCells(names, pairwise.difference, pairwise.p_holm, words)
    return significance_figure(cells, alpha=ALPHA, measure=_compared.measure)


def _pair_words(board: Leaderboard, pairwise: PairwiseComparison, i: int, j: int) -> str:
    """`A is better than B by 0.050 [0.01, 0.09], p = 0.012, n = 800`."""
    if i == j:
        return ""
    pair, p = pairwise.pair(i, j), float(pairwise.p_holm[i, j])
    first, second = board.rows[i].name, board.rows[j].name
    if pair.value is None:
        return f"{first} and {second}: {pair.reason}"
    gap = change_figures(pair.value, pair.interval)
    if np.isnan(p):
        return f"{first} minus {second}: {gap}, {pair.p_reason or NO_TEST}, n = {pair.n:,}"
    sentence = f"{first} and {second} do not differ significantly: {gap}"
    if p <= ALPHA:
        sentence = f"{first} is {'better' if pair.value > 0 else 'worse'} than {second} by {gap}"
    return f"{sentence}, {p_figure(p)}{alone_words(pair.interval, p)}, n = {pair.n:,}"
