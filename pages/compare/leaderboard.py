"""The leaderboard on screen: one table and one axis, at one statistic and level that both name."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from core.comparison import Leaderboard, Row, leaderboard_csv
from core.records import Alignment
from core.report.figures import measure_name
from core.report.figures.comparison import JudgeMark, leaderboard_figure
from core.stats import ALPHA, LEAST_SOURCES, STANDING_WORDS, BesidePeople, p_figure
from core.stats.alignment import Bar, Difference
from pages.compare import choices
from pages.compare.choices import Compared, items_words
from pages.ui import charts, grid, state, tables
from pages.ui.grid import Column
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing


MOST_ROWS, HIGHEST = 9, "beside the highest"
BAND = "Band: one person against the mean of the other raters; hollow dots: each judge against that same target."
FURTHER = frozenset(
    (
        *("no score", "groups", "MAE", "bias", "exact", "within 1", "quadratic kappa", "precision", "recall", "F1"),
        *("kappa", "calls", "labels seen", "kind"),
    )
)
"""Columns that stand in the table when asked for."""


def draw_table(compared: Compared, *, columns: Sequence[str]) -> None:
    """One row a judge, at one statistic and level, which the column's heading names; `columns` beside the usual."""
    leaderboard = compared.leaderboard
    frame = _kept_frame(compared.key, compared)
    optional = set(_optional(frame, leaderboard))
    shown = [name for name in frame.columns if name not in optional or name in columns]
    grid.draw(
        frame[shown],
        _columns(heading_of(leaderboard), leaderboard, _beside(compared)["beside"]),
        alt=f"Judges by {compared.measure}",
        rows=MOST_ROWS,
    )
    st.caption(plain(f"{items_words(leaderboard)} {_reading(leaderboard)}".strip()))


def choose_columns(compared: Compared) -> tuple[str, ...]:
    """Which of the further columns that have anything to tell a person wants to see."""
    frame = _kept_frame(compared.key, compared)
    return choices.choose_columns(_optional(frame, compared.leaderboard))


@st.cache_resource(max_entries=64, show_spinner=False)
def _kept_frame(key: Hashable, _compared: Compared) -> pd.DataFrame:
    leaderboard = _compared.leaderboard
    return judges_frame(leaderboard, heading_of(leaderboard), **_beside(_compared))


def _optional(frame: pd.DataFrame, leaderboard: Leaderboard) -> list[str]:
    """The columns that are shown when asked for; lost scores are always told."""
    lost = any(row.cost.n_unscored for row in leaderboard.rows)
    return [name for name in frame.columns if name in FURTHER and not (name == "no score" and lost)]


def heading_of(leaderboard: Leaderboard) -> str:
    """The heading of the column with the alignments."""
    return tables.measure_heading(Alignment(leaderboard.measure.statistic, leaderboard.measure.level, None, 0))


def draw_downloads(compared: Compared) -> None:
    """The whole table as files, every column of it."""
    leaderboard = compared.leaderboard
    with st.popover("Download", icon=":material/download:"):
        for label, mime, data in (
            ("CSV", "text/csv", lambda: leaderboard_csv(leaderboard)),
            ("JSON", "application/json", lambda: json.dumps(leaderboard.as_json(), ensure_ascii=False, indent=1)),
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


def _reading(leaderboard: Leaderboard) -> str:
    notes = ["— means undefined, never 0."]
    if without := [_unscored_words(row) for row in leaderboard.rows if row.cost.unscored]:
        notes.append(f"No score: {'; '.join(without)}.")
    if any(row.on_scale.errors is None for row in leaderboard.rows):
        notes.append("Errors in points are shown only for judges on the labels' scale.")
    if leaderboard.binary:
        notes.append("Labels are of two classes, so there is no quadratic kappa: see precision, recall, F1 and kappa.")
    elif leaderboard.scale.step is None:
        notes.append("Labels are continuous, so there is no kappa and no exact agreement.")
    return " ".join(notes)


def judges_frame(
    leaderboard: Leaderboard,
    heading: str,
    *,
    subject: int = 0,
    beside: str = HIGHEST,
) -> pd.DataFrame:
    """The leaderboard as a frame, differences beside row `subject`; columns where nobody has anything are left away."""
    rows, on_scale = leaderboard.rows, [row.on_scale for row in leaderboard.rows]
    columns: dict[str, Sequence[object]] = {
        "judge": [row.name for row in rows],
        heading: pd.Series([row.alignment.value for row in rows], dtype="float64"),
        "interval": [tables.interval_of(row.alignment) for row in rows],
        beside: _beside_subject(leaderboard, subject),
        "beside a person": [beside_person(row.people) for row in rows],
        "n": [row.alignment.n for row in rows],
        "no score": [row.cost.n_unscored for row in rows],
        "groups": [_group_words(row.alignment) for row in rows] if leaderboard.measure.level == "sample" else [],
        "MAE": _floats([points.errors and points.errors.mae for points in on_scale]),
        "bias": _floats([points.errors and points.errors.bias for points in on_scale]),
        "exact": _shares([points.steps and points.steps.exact for points in on_scale]),
        "within 1": _shares([points.steps and points.steps.adjacent for points in on_scale]),
        "quadratic kappa": _floats([points.steps and points.steps.quadratic_kappa for points in on_scale]),
        "precision": _floats([points.binary and points.binary.precision for points in on_scale]),
        "recall": _floats([points.binary and points.binary.recall for points in on_scale]),
        "F1": _floats([points.binary and points.binary.f1 for points in on_scale]),
        "kappa": _floats([points.binary and points.binary.kappa for points in on_scale]),
        "calls": _floats([row.calls_per_item or None for row in rows]),
        "labels seen": [row.cost.n_seen for row in rows] if any(row.cost.n_seen for row in rows) else [],
        "kind": [row.kind for row in rows],
        "why —": [row.alignment.reason for row in rows] if any(row.alignment.reason for row in rows) else [],
    }
    always = {heading, "interval"}  # the regression has them where no judge does
    frame = pd.DataFrame(
        {name: values for name, values in columns.items() if len(values) and (name in always or any(_told(values)))}
    )
    return frame if leaderboard.bar is None else _with_bar(frame, leaderboard.bar, heading, beside, subject)


def _with_bar(frame: pd.DataFrame, bar: Bar, heading: str, beside: str, subject: int) -> pd.DataFrame:
    """The regression as a row in its place."""
    gap = bar.minus[subject].reversed
    said = _difference_words(gap) if gap.p is None else _apart_words(gap.p, above=(gap.value or 0.0) > 0)
    aligned = bar.alignment
    cells = {"judge": bar.name, heading: aligned.value, "interval": tables.interval_of(aligned), beside: said}
    cells |= {"n": aligned.n, "no score": 0, "groups": _group_words(aligned), "labels seen": 0, "kind": "the bar"}
    row = pd.DataFrame({name: [cells.get(name)] for name in frame.columns}).astype(frame.dtypes)
    at = 0 if aligned.value is None else int((frame[heading] >= aligned.value).sum())
    return pd.concat([frame[:at], row, frame[at:]], ignore_index=True)


def _apart_words(p: float, *, above: bool) -> str:
    return f"{'no clear difference' if p > ALPHA else 'better' if above else 'worse'}, {p_figure(p)}"


def _told(values: Sequence[object]) -> list[bool]:
    return [not pd.isna(value) and value not in ("", tables.DASH) for value in values]


def _floats(values: Sequence[float | None]) -> pd.Series:
    return pd.Series(values, dtype="float64")


def _shares(values: Sequence[float | None]) -> pd.Series:
    return pd.Series([None if value is None else 100 * value for value in values], dtype="float64")


def _group_words(alignment: Alignment) -> str:
    """`96 (4 left out)`: the sources averaged, and those without a coefficient."""
    return f"{alignment.n_groups:,}" + (f" ({alignment.n_left_out:,} left out)" if alignment.n_left_out else "")


def _unscored_words(row: Row) -> str:
    return f"{row.name}: " + ", ".join(f"{count:,} {reason}" for reason, count in row.cost.unscored.items())


def beside_person(beside: BesidePeople | None) -> str:
    """`below, −0.11 [−0.17, −0.05]`: judge minus one rater, each against the mean of the other raters."""
    if beside is None or beside.difference is None:
        return tables.DASH
    interval = beside.interval
    limits = "" if interval is None else f" [{_signed(interval.low)}, {_signed(interval.high)}]"
    standing = "no claim" if beside.withheld else STANDING_WORDS[beside.standing]
    return f"{standing}, {_signed(beside.difference)}{limits}"


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")


def _beside(compared: Compared) -> dict[str, Any]:
    """The row that the others stand beside, and the heading of the column that says how."""
    version = compared.shown.version
    named = version is not None and compared.has_own
    return {"subject": compared.subject, "beside": f"beside version {version.number}" if named and version else HIGHEST}


def _beside_subject(leaderboard: Leaderboard, subject: int) -> list[str]:
    """Each judge against row `subject`, in words."""
    if leaderboard.pairwise is None:
        return []
    words = []
    for k, row in enumerate(leaderboard.rows):
        p = float(leaderboard.pairwise.p_holm[subject, k])
        if k == subject:
            words.append("" if row.alignment.value is None else "highest" if k == 0 else "itself")
        elif row.alignment.value is None:
            words.append(tables.DASH)
        elif math.isnan(p):
            words.append(_difference_words(leaderboard.pairwise.pair(k, subject)))
        else:
            words.append(_apart_words(p, above=k < subject))
    return words


def _difference_words(difference: Difference) -> str:
    """`−0.12 [−0.20, −0.05]`: where there is no p."""
    if difference.value is None:
        return tables.DASH
    interval = difference.interval
    limits = "" if interval is None else f" [{_signed(interval.low)}, {_signed(interval.high)}]"
    return f"{_signed(difference.value)}{limits}, no p"


def _interval_help(leaderboard: Leaderboard) -> str:
    """How the first interval of the table was made."""
    intervals = (row.alignment.interval for row in leaderboard.rows)
    return next((interval.method for interval in intervals if interval is not None), "over sources")


def _columns(heading: str, leaderboard: Leaderboard, beside: str) -> dict[str, Column]:
    measure = measure_name(leaderboard.measure.statistic, leaderboard.measure.level)
    return {
        "judge": Column(width=300),
        heading: Column(digits=2, help=f"alignment with people: {measure}"),
        "interval": Column("95 % interval", help=_interval_help(leaderboard)),
        beside: Column(help=f"paired test over sources, corrected after Holm; none under {LEAST_SOURCES} sources"),
        "beside a person": Column(
            help="judge minus one rater, each against the other raters' mean: see “Beside people”"
        ),
        "n": Column(help="items (systems at system level) it rests on"),
        "no score": Column(help="labelled items in reach without a score; never counted as 0"),
        "groups": Column(help="sources averaged; left out are those where all scores or all labels are equal"),
        "MAE": Column(
            digits=2,
            help="Mean absolute error in points, with scores on the raters' scale where the judge has a map to it.",
        ),
        "bias": Column(digits=2, signed=True, help="above 0: more generous than people"),
        "exact": Column(digits=0, unit=" %", help="same step as the people"),
        "within 1": Column(digits=0, unit=" %", help="at most one step apart"),
        **{name: Column(digits=2) for name in ("quadratic kappa", "precision", "recall", "F1", "kappa")},
        "calls": Column(help="calls that one score costs"),
        "labels seen": Column(help="labels that chose or fitted this judge; never measured on them"),
    }


def draw_whiskers(compared: Compared) -> None:
    """Every judge with its interval and the people among themselves, on one axis."""
    if compared.leaderboard.problem:
        return
    if _band(compared.leaderboard) is not None:
        st.caption(BAND)
    charts.place(
        _whisker_figure(compared.key, compared),
        key="compare_whiskers",
        alt=f"{compared.measure} of every judge with its interval, and of one person against the other raters",
    )


def _band(leaderboard: Leaderboard) -> Alignment | None:
    """The people among themselves; None where undefined."""
    people = leaderboard.ceiling.alignment
    return None if people is None or people.value is None else people


@st.cache_resource(max_entries=64, show_spinner=False)
def _whisker_figure(key: Hashable, _compared: Compared) -> Drawing:
    leaderboard = _compared.leaderboard
    band = _band(leaderboard)
    marks = [
        JudgeMark(row.name, row.kind, row.alignment, row.people.judge if band and row.people else None)
        for row in leaderboard.rows
    ]
    if (bar := leaderboard.bar) is not None:
        marks.append(JudgeMark(bar.name, "metric", bar.alignment))
        marks.sort(key=lambda mark: -(mark.alignment.value if mark.alignment.value is not None else -2.0))
    return leaderboard_figure(marks, band, measure=_compared.measure)
