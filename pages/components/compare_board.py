"""The leaderboard on screen: one table and one axis, at one statistic and level that both name."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from core.comparison import Leaderboard, Published, Row, departure, leaderboard_csv, published_beside
from core.records import Alignment
from core.report.figures import measure_name
from core.report.figures.comparison import JudgeMark, leaderboard_figure
from core.stats import ALPHA, LEAST_SOURCES, STANDING_WORDS, BesidePeople, p_figure
from pages.components import charts, state, tables
from pages.components.compare_view import Compared
from pages.components.screens import plain

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def draw_table(compared: Compared, printed: Sequence[Published] = ()) -> None:
    """One row a judge, at one statistic and level, which the column's heading names."""
    board = compared.board
    heading = tables.measure_heading(Alignment(board.measure.statistic, board.measure.level, None, 0))
    frame = board_frame(board, heading, printed)
    st.dataframe(
        frame,
        hide_index=True,
        column_config=_columns(heading, board),
        height=tables.height_for(len(frame), 16),
        placeholder=tables.DASH,
        alt=f"Judges by {compared.measure}",
    )
    st.caption(plain(_reading(board)))
    with st.container(horizontal=True, gap="small"):
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


def _reading(board: Leaderboard) -> str:
    told = ["— means undefined, never 0."]
    if without := [_unscored_words(row) for row in board.rows if row.unscored]:
        told.append(f"No score: {'; '.join(without)}.")
    if any(row.errors is None for row in board.rows):
        told.append("Errors in points are told only for judges on the labels' scale.")
    if board.binary:
        told.append("Labels are of two classes, so there is no quadratic kappa: see precision, recall, F1 and kappa.")
    elif board.scale.step is None:
        told.append("Labels are continuous, so there is no kappa and no exact agreement.")
    return " ".join(told)


def board_frame(board: Leaderboard, heading: str, printed: Sequence[Published] = ()) -> pd.DataFrame:
    """The leaderboard as a frame; columns in which no judge has anything are left away."""
    rows = board.rows
    columns: dict[str, Sequence[object]] = {
        "judge": [row.name for row in rows],
        heading: pd.Series([row.alignment.value for row in rows], dtype="float64"),
        "interval": [tables.interval_of(row.alignment) for row in rows],
        "printed": [_printed_words(row, board, printed) for row in rows] if printed else [],
        "beside the highest": _beside_highest(board),
        "beside a person": [beside_person(row.people) for row in rows],
        "n": [row.alignment.n for row in rows],
        "no score": [row.n_unscored for row in rows],
        "groups": [_group_words(row.alignment) for row in rows] if board.measure.level == "sample" else [],
        "MAE": _floats([None if row.errors is None else row.errors.mae for row in rows]),
        "bias": _floats([None if row.errors is None else row.errors.bias for row in rows]),
        "exact": _shares([None if row.steps is None else row.steps.exact for row in rows]),
        "within 1": _shares([None if row.steps is None else row.steps.adjacent for row in rows]),
        "quadratic kappa": _floats([None if row.steps is None else row.steps.quadratic_kappa for row in rows]),
        "precision": _floats([None if row.binary is None else row.binary.precision for row in rows]),
        "recall": _floats([None if row.binary is None else row.binary.recall for row in rows]),
        "F1": _floats([None if row.binary is None else row.binary.f1 for row in rows]),
        "kappa": _floats([None if row.binary is None else row.binary.kappa for row in rows]),
        "calls": _floats([row.calls_per_item for row in rows]),
        "labels seen": [row.n_seen for row in rows] if any(row.n_seen for row in rows) else [],
        "kind": [row.kind for row in rows],
        "why —": [row.alignment.reason for row in rows] if any(row.alignment.reason for row in rows) else [],
    }
    return pd.DataFrame({name: values for name, values in columns.items() if len(values) and any(_told(values))})


def _told(values: Sequence[object]) -> list[bool]:
    return [not pd.isna(value) and value not in ("", tables.DASH) for value in values]


def _floats(values: Sequence[float | None]) -> pd.Series:
    return pd.Series(values, dtype="float64")


def _shares(values: Sequence[float | None]) -> pd.Series:
    return pd.Series([None if value is None else 100 * value for value in values], dtype="float64")


def _group_words(found: Alignment) -> str:
    """`96 (4 left out)`: the sources averaged, and those without a coefficient."""
    return f"{found.n_groups:,}" + (f" ({found.n_left_out:,} left out)" if found.n_left_out else "")


def _unscored_words(row: Row) -> str:
    return f"{row.name}: " + ", ".join(f"{count:,} {reason}" for reason, count in row.unscored.items())


def beside_person(found: BesidePeople | None) -> str:
    """`below, −0.11 [−0.17, −0.05]`: judge minus one rater, each against the mean of the other raters."""
    if found is None or found.difference is None:
        return tables.DASH
    interval = found.interval
    limits = "" if interval is None else f" [{_signed(interval.low)}, {_signed(interval.high)}]"
    return f"{STANDING_WORDS[found.standing]}, {_signed(found.difference)}{limits}"


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")


def _beside_highest(board: Leaderboard) -> list[str]:
    """Each judge against the first row, in words."""
    if board.pairwise is None:
        return []
    words = ["highest" if board.rows[0].alignment.value is not None else ""]
    for k, row in enumerate(board.rows[1:], 1):
        p = float(board.pairwise.p_holm[0, k])
        if row.alignment.value is None:
            words.append(tables.DASH)
        elif math.isnan(p):
            words.append("no test")
        else:
            words.append(f"{'worse' if p <= ALPHA else 'no clear difference'}, {p_figure(p)}")
    return words


def _printed_words(row: Row, board: Leaderboard, printed: Sequence[Published]) -> str:
    same = [one for one in printed if not departure(one, board.measure)]
    found = published_beside(row.name, same) or published_beside(row.name, printed)
    if found is None:
        return ""
    flag = departure(found, board.measure)
    return f"{found.value:.3f}" + (f" ({flag})" if flag else "")


def _interval_help(board: Leaderboard) -> str:
    """How the first interval of the table was made."""
    made = (row.alignment.interval for row in board.rows)
    return next((one.method for one in made if one is not None), "over sources")


def _columns(heading: str, board: Leaderboard) -> dict[str, object]:
    config = st.column_config
    measure = measure_name(board.measure.statistic, board.measure.level)
    return {
        "judge": config.TextColumn(width=196),
        heading: config.NumberColumn(format="%.3f", width=126, help=f"alignment with people: {measure}"),
        "interval": config.TextColumn("95 % interval", width=108, help=_interval_help(board)),
        "beside the highest": config.TextColumn(
            width=184, help=f"paired test over sources, corrected after Holm; none under {LEAST_SOURCES} sources"
        ),
        "beside a person": config.TextColumn(
            width=280,
            help="judge minus one rater, each against the other raters' mean: see “Beside people”",
        ),
        "n": config.NumberColumn(width=48, format="localized", help="items (systems at system level) it rests on"),
        "no score": config.NumberColumn(width=72, help="labelled items in reach without a score; never counted as 0"),
        "groups": config.TextColumn(
            width=112 if any(row.alignment.n_left_out for row in board.rows) else 62,
            help="sources averaged; left out are those where all scores or all labels are equal",
        ),
        "MAE": config.NumberColumn(format="%.2f", width=56, help="mean absolute error in points of the scale"),
        "bias": config.NumberColumn(format="%+.2f", width=58, help="above 0: more generous than people"),
        "exact": config.NumberColumn(format="%.0f %%", width=66, help="same step as the people"),
        "within 1": config.NumberColumn(format="%.0f %%", width=72, help="at most one step apart"),
        "quadratic kappa": config.NumberColumn(format="%.2f", width=118),
        **{name: config.NumberColumn(format="%.2f", width=76) for name in ("precision", "recall", "F1", "kappa")},
        "calls": config.NumberColumn(format="%.3g", width=58, help="calls that one score costs"),
        "labels seen": config.NumberColumn(width=90, help="labels that chose or fitted this judge; never told on them"),
        "printed": config.TextColumn("printed in a paper", width=150),
        "why —": config.TextColumn(width="large"),
    }


def draw_whiskers(compared: Compared, printed: Sequence[Published] = ()) -> None:
    """Every judge with its interval and the people among themselves, on one axis."""
    if compared.board.problem:
        return
    same = tuple(one for one in printed if not departure(one, compared.board.measure))
    n = "" if compared.board.pool.mode == "own" else f", n = {compared.board.pool.n_common:,} items"
    band = (
        ""
        if _band(compared.board) is None
        else "; band: one person against the mean of the other raters; hollow dots: each judge against that same target"
    )
    hollow = "; diamonds: printed in a paper, on all items of its data set" if same else ""
    st.markdown(f"**{plain(compared.measure)}**{n}, with 95 % intervals{band}{hollow}")
    charts.place(
        _whisker_figure(compared.key, same, compared),
        key=f"compare_whiskers_{bool(same)}",  # drawn anew with the printed ones, not morphed
        alt=f"{compared.measure} of every judge with its interval, and of one person against the other raters",
    )


def _band(board: Leaderboard) -> Alignment | None:
    """The people among themselves; None where undefined, and where each judge stands on items of its own."""
    people = board.ceiling.alignment
    return None if people is None or people.value is None or board.pool.mode == "own" else people


@st.cache_resource(max_entries=64, show_spinner=False)
def _whisker_figure(key: Hashable, printed: tuple[Published, ...], _compared: Compared) -> Figure:
    board = _compared.board
    band = _band(board)
    marks = [
        JudgeMark(row.name, row.kind, row.alignment, row.note, row.people.judge if band and row.people else None)
        for row in board.rows
    ]
    marks += [
        JudgeMark(
            one.judge,
            None,
            Alignment(one.measure.statistic, one.measure.level, one.value, 0),
            f"{one.source}. {one.note}",
        )
        for one in sorted(printed, key=lambda one: -one.value)
    ]
    return leaderboard_figure(marks, band, measure=_compared.measure)
