"""One judge of Compare: where it fails, its scores item by item and on the raters' scale, what its parts add."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from core import projects
from core.comparison import CalibrationCurve, calibration_curve
from core.comparison.examination import Examination, examine_judge
from core.comparison.sureness import Sureness, calibrated_sureness
from core.errors import ConcordError
from core.findings.weak_spots import (
    DIVISIONS,
    bias_finding,
    distribution_words,
    examination_finding,
    sureness_finding,
)
from core.project_records import JudgeEntry
from core.records import GoldenSet, Statistic
from core.report.figures.bars import distribution_figure
from core.report.figures.comparison import curve_figure, kept_figure
from core.report.figures.whiskers import parts_figure
from core.stats.claims import HALF_ALPHA
from core.wording import p_figure, percent, signed, signed_range
from pages.compare import choices, items, parts
from pages.compare.choices import SEED, Compared, choose_row
from pages.ui import charts, grid, tables
from pages.ui.grid import Column
from pages.ui.page import Opened
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing

VIEWS = {"fails": "Where it fails", "items": "Item by item", "curve": "Human scale", "parts": "What its parts add"}
MOST_DRAWN, MAP_POINTS = 24, 60
TELLING_BIAS = 0.05  # points of the scale


def draw(page: Opened, compared: Compared) -> None:
    """One view of one judge."""
    held = choices.hold("what", list(VIEWS), "fails")
    held.draw("Look at", VIEWS, label_visibility="collapsed")
    if held.value == "parts":
        parts.draw(page, compared.view, compared.aspect)
        return
    row = compared.leaderboard.rows[choose_row(compared)]
    entry = compared.judge_of(row)
    if held.value == "items":
        items.draw(page, compared, row, entry)
    elif held.value == "curve":
        _draw_curve(page, compared, entry)
    else:
        _draw_fails(compared, entry)


# ── where it fails ───────────────────────────────────────────────────────────────────────────────────────────


def _draw_fails(compared: Compared, entry: JudgeEntry) -> None:
    """The worst part in a sentence, every part in a picture, then biases, the scale, and the table."""
    statistic = compared.leaderboard.measure.statistic
    key = (compared.golden.digest, compared.aspect, entry.judge_id, entry.name, statistic)
    examination, drawn, spread = _examined(key, compared.golden, compared.aspect, entry, statistic)
    said = examination_finding(examination)
    st.markdown(f"##### {plain(said.headline)}")
    for sentence in said.cautions:
        st.markdown(plain(sentence))
    st.caption(plain(said.detail))
    if drawn is None:
        return
    charts.place(drawn, key="compare_fails", alt="Alignment of the judge in every part of the items")
    why = "; ".join(f"{DIVISIONS[division].lower()}: {reason}" for division, reason in examination.left_out.items())
    if why:
        st.caption(plain(f"Not divided by {why}."))
    with st.expander("What it leans on beyond the labels", icon=":material/balance:"):
        st.markdown(
            "\n".join(
                f"- {plain(bias_finding(bias).headline)} {plain(bias_finding(bias).detail)}"
                for bias in examination.biases
            )
        )
        st.caption(
            "Correlations are Spearman's. The expected one is what a judge without this leaning would have, given its "
            "noise and that of the labels. The excess is what lies beyond. Pairs: how much more often the judge "
            "prefers the second text than quality explains. If each pair was asked both ways round: how often it "
            "prefers the text that stood first."
        )
    if spread is not None and examination.distribution is not None:
        st.markdown(f"**{plain(distribution_words(examination.distribution))}**")
        charts.place(spread, key="compare_distribution", alt="Labels and scores over the scale")
    rows = [
        {
            "divided by": DIVISIONS[part.division],
            "part": part.name,
            "alignment": part.alignment.value,
            "interval": tables.interval_of(part.alignment),
            "error": part.error,
            "expected error": part.expected,
            "excess over the others": tables.DASH
            if part.difference is None
            else f"{signed(part.difference)} {signed_range(part.interval)}",
            "p": p_figure(part.p, tables.DASH, limit=HALF_ALPHA),
            "n": part.alignment.n,
            "sources": part.n_sources,
        }
        for part in examination.parts
    ]
    with st.expander(f"All {len(rows)} parts as a table", icon=":material/table:"):
        columns = {
            "alignment": Column(digits=2, help="Lower in parts with a narrow range, so it is not tested."),
            "error": Column(digits=2, help="Mean error of the judge in points of the labels' scale."),
            "expected error": Column(digits=2, help="Mean error of a judge that is equally good everywhere."),
        }
        grid.draw(
            pd.DataFrame(rows), columns, alt="Alignment and errors of the judge in every part of the items", rows=12
        )


@st.cache_resource(max_entries=64, show_spinner="Examining the judge …")
def _examined(
    key: Hashable, _golden: GoldenSet, _aspect: str, _entry: JudgeEntry, _statistic: Statistic
) -> tuple[Examination, Drawing | None, Drawing | None]:
    judge = _entry.judge
    found = examine_judge(_golden, _aspect, judge, statistic=_statistic, model=f"{judge.name} {judge.note}")
    spread = None if found.distribution is None else distribution_figure(found.distribution)
    return found, parts_figure(found, most=MOST_DRAWN) if found.parts else None, spread


# ── scores as labels ─────────────────────────────────────────────────────────────────────────────────────────


def _draw_curve(page: Opened, compared: Compared, entry: JudgeEntry) -> None:
    """What the judge's scores mean in points of the human scale, the map that mends them, and how sure it is."""
    key = (compared.key, entry.judge_id)
    try:
        curve, drawn = _curve(key, page, compared, entry)
    except ConcordError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        charts.place(drawn, key="compare_curve", alt="Mean label by score, with the isotonic map")
    with right:
        for label, errors in (("Mean absolute error as it comes", curve.before), ("after the map", curve.after)):
            undefined = errors is None or errors.mae is None or errors.bias is None
            st.metric(label, tables.DASH if undefined else f"{errors.mae:.2f} (bias {signed(errors.bias)})")
        words = [f"Measured on {curve.n:,} unseen items with score and label, in points of the scale {curve.scale}."]
        if curve.fit.map is not None:
            words.append(f"The map is fitted on {curve.fitted_on}. It changes no rank, so alignment by rank stays.")
        if curve.before is None:
            words.append("This judge has a scale of its own, so its scores are no points until they are mapped.")
        elif curve.before.bias is not None and abs(curve.before.bias) >= TELLING_BIAS:
            leans = "generous" if curve.before.bias > 0 else "strict"
            words.append(f"As they come, its scores are too {leans} on average.")
        st.text("\n\n".join(words))
        if curve.fit.reason:
            st.caption(plain(curve.fit.reason))
    found = _sureness(key, page, compared, entry)
    if found is None:
        return
    sure, drawn = found
    said = sureness_finding(sure)
    st.markdown(f"**{plain(said.headline)}** {plain(said.detail)}")
    if sure.kept:
        charts.place(drawn, key="compare_kept", alt="Error against the share of verdicts kept")
    if sure.levels:
        told = "; ".join(f"scores {level.name}: {percent(level.share)} of {level.n:,}" for level in sure.levels)
        st.caption(plain(f"The share is that of all verdicts. Held apart, {told}."))


@st.cache_resource(max_entries=64, show_spinner=False)
def _curve(key: Hashable, _page: Opened, _compared: Compared, _entry: JudgeEntry) -> tuple[CalibrationCurve, Drawing]:
    made = projects.calibration_behind(_page.store, _page.project.project_id, _entry.judge_id)
    own = None if made is None else made.score_map
    curve = calibration_curve(_compared.golden, _compared.aspect, _entry.judge, own=own, seed=SEED)
    line: list[tuple[float, float]] = []
    if curve.fit.map is not None:
        xs = np.linspace(curve.bins[0].low, curve.bins[-1].high, MAP_POINTS)
        line = list(zip(xs.tolist(), curve.fit.map.apply(xs).tolist(), strict=True))
    return curve, curve_figure(curve.bins, line, curve.scale, on_scale=curve.before is not None, width=620)


@st.cache_resource(max_entries=64, show_spinner="Looking how sure its verdicts are …")
def _sureness(key: Hashable, _page: Opened, _compared: Compared, _entry: JudgeEntry) -> tuple[Sureness, Drawing] | None:
    """Whether the intervals of a calibrated judge hold, and the error that is left without the unsure verdicts."""
    made = projects.calibration_behind(_page.store, _page.project.project_id, _entry.judge_id)
    if made is None:
        return None
    sure = replace(calibrated_sureness(_compared.golden, made), name=_entry.judge.name)
    return sure, kept_figure(sure.kept, wrong=sure.two_answers)
