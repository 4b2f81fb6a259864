"""Below the leaderboard: which differences are real, and what scores mean."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from core import projects
from core.comparison import CalibrationCurve, Leaderboard, calibration_curve
from core.comparison.sureness import Sureness, calibrated_sureness
from core.errors import ConcordError
from core.project_records import JudgeEntry
from core.report.figures.comparison import PairCells, curve_figure, kept_figure, significance_figure
from core.stats import (
    ALPHA,
    LEAST_SOURCES,
    NO_TEST,
    TOO_FEW,
    WILLIAMS_GROUPED,
    WILLIAMS_SINGLE,
    AbsoluteErrors,
    PairwiseComparison,
    change_figures,
    p_figure,
)
from core.stats.claims import alone_words, level_words, signed
from core.wording import percent
from pages.compare.choices import SEED, Compared
from pages.ui import charts, state, tables
from pages.ui.page import Opened
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing


MAP_POINTS = 60
TELLING_BIAS = 0.05  # points of the scale


def draw_differences(compared: Compared) -> None:
    """Every judge against every other."""
    leaderboard = compared.leaderboard
    if leaderboard.pairwise is None:
        why = "It takes two judges with common items to compare. Add one under “Add, rename”."
        st.info(why, icon=":material/compare_arrows:")
        return
    st.markdown(
        f"**{plain(compared.measure)}, row minus column.** "
        ":green-background[The row agrees better with people than the column], :orange-background[worse], "
        f"or grey where nothing is shown (p above {level_words(ALPHA)}, or no test). Paired test over sources; p "
        "corrected after Holm over all pairs."
    )
    charts.place(_matrix_figure(compared.key, compared), key="compare_matrix", alt="Every judge against every other")
    _draw_sentences(leaderboard, leaderboard.pairwise)
    if leaderboard.williams_applies:
        st.caption(f"In the hover box: {WILLIAMS_GROUPED if leaderboard.pairwise.grouped else WILLIAMS_SINGLE}.")


def _draw_sentences(leaderboard: Leaderboard, pairwise: PairwiseComparison) -> None:
    """The significant pairs in words, for a phone, a screen reader, or minutes of a meeting."""
    if leaderboard.n_sources < LEAST_SOURCES:
        st.markdown(f"**No difference is tested:** {TOO_FEW}.")
        return
    n = len(leaderboard.rows)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    real = [(i, j) for i, j in pairs if pairwise.p_holm[i, j] <= ALPHA]
    noun = "difference is" if len(pairs) == 1 else "differences are"
    st.markdown(f"**{len(real)} of {len(pairs)} {noun} significant**")
    if real:
        with st.expander("In words", icon=":material/notes:"):
            st.text("\n".join(_pair_words(leaderboard, pairwise, i, j) for i, j in real))


@st.cache_resource(max_entries=64, show_spinner=False)
def _matrix_figure(key: Hashable, _compared: Compared) -> Drawing:
    leaderboard, pairwise = _compared.leaderboard, _compared.leaderboard.pairwise
    assert pairwise is not None
    names = tuple(row.name for row in leaderboard.rows)
    words = tuple(tuple(_pair_words(leaderboard, pairwise, i, j) for j in range(len(names))) for i in range(len(names)))
    cells = PairCells(names, pairwise.difference, pairwise.p_holm, words)
    return significance_figure(cells, alpha=ALPHA, measure=_compared.measure)


def _pair_words(leaderboard: Leaderboard, pairwise: PairwiseComparison, i: int, j: int) -> str:
    """`A is better than B by 0.050 [0.01, 0.09], p = 0.012, n = 800`."""
    if i == j:
        return ""
    pair, p = pairwise.pair(i, j), float(pairwise.p_holm[i, j])
    first, second = leaderboard.rows[i].name, leaderboard.rows[j].name
    if pair.value is None:
        return f"{first} and {second}: {pair.reason}"
    gap = change_figures(pair.value, pair.interval)
    if np.isnan(p):
        return f"{first} minus {second}: {gap}, {pair.p_reason or NO_TEST}, n = {pair.n:,}"
    if p <= ALPHA:
        sentence = f"{first} is {'better' if pair.value > 0 else 'worse'} than {second} by {gap}"
    else:
        sentence = f"{first} and {second} are not shown to differ: {gap}"
    williams = float(pairwise.williams_p_holm[i, j])
    beside = f"; Williams {p_figure(williams)}" if leaderboard.williams_applies and not np.isnan(williams) else ""
    if beside and pairwise.grouped:
        beside += " (takes items as independent, which they are not)"
    tested = f"no p ({pair.p_reason})" if np.isnan(p) else p_figure(p) + alone_words(pair.interval, p)
    return f"{sentence}, {tested}, n = {pair.n:,}{beside}"


def choose_row(compared: Compared, key: str) -> int:
    """A row of the leaderboard, that of the judge in use (without one, the best) unless somebody chooses another."""
    rows = compared.leaderboard.rows
    ids = [compared.judge_of(row).judge_id for row in rows]
    chosen = st.selectbox(
        "Judge",
        ids,
        index=compared.subject,
        format_func=lambda judge_id: rows[ids.index(judge_id)].name if judge_id in ids else judge_id,
        key=state.widget(key),
    )
    return ids.index(chosen) if chosen in ids else 0


def draw_curve(page: Opened, compared: Compared) -> None:
    """What one judge's scores mean in points of the human scale, and the map that mends them."""
    row = compared.leaderboard.rows[choose_row(compared, "compare_curve_judge")]
    entry = compared.judge_of(row)
    try:
        curve = _kept_curve((compared.key, entry.judge_id), page, compared, entry)
    except ConcordError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        charts.place(
            _curve_figure((compared.key, entry.judge_id), curve),
            key="compare_curve",
            alt="Mean label by score, with the isotonic map",
        )
    with right:
        st.metric("Mean absolute error as it comes", _points(curve.before))
        st.metric("after the map", _points(curve.after))
        st.text(_curve_words(curve))
        if curve.fit.reason:
            st.caption(plain(curve.fit.reason))
    _draw_sure(page, compared, entry)


def _draw_sure(page: Opened, compared: Compared, entry: JudgeEntry) -> None:
    """How sure a calibrated judge is: whether intervals hold, and the error that is left without the unsure ones."""
    sure = _kept_sureness((compared.key, entry.judge_id), page, compared, entry)
    if sure is None:
        return
    held, fifth = sure.words
    st.markdown(f"**{plain(held)}** {plain(fifth)}")
    if sure.kept:
        drawn = _kept_figure((compared.key, entry.judge_id), sure)
        charts.place(drawn, key="compare_kept", alt="Error against the share of verdicts kept")
    if sure.levels:
        told = "; ".join(f"scores {level.name}: {percent(level.share)} of {level.n:,}" for level in sure.levels)
        st.caption(plain(f"The share is that of all verdicts. Held apart, {told}."))


@st.cache_resource(max_entries=64, show_spinner=False)
def _kept_curve(key: Hashable, _page: Opened, _compared: Compared, _entry: JudgeEntry) -> CalibrationCurve:
    made = projects.calibration_behind(_page.store, _page.project.project_id, _entry.judge_id)
    own = None if made is None else made.score_map
    return calibration_curve(_compared.golden, _compared.aspect, _entry.judge, own=own, seed=SEED)


@st.cache_resource(max_entries=64, show_spinner="Looking how sure its verdicts are …")
def _kept_sureness(key: Hashable, _page: Opened, _compared: Compared, _entry: JudgeEntry) -> Sureness | None:
    made = projects.calibration_behind(_page.store, _page.project.project_id, _entry.judge_id)
    return None if made is None else replace(calibrated_sureness(_compared.golden, made), name=_entry.judge.name)


@st.cache_resource(max_entries=64, show_spinner=False)
def _kept_figure(key: Hashable, _sure: Sureness) -> Drawing:
    return kept_figure(_sure.kept, wrong=_sure.two_answers)


@st.cache_resource(max_entries=64, show_spinner=False)
def _curve_figure(key: Hashable, _curve: CalibrationCurve) -> Drawing:
    line: list[tuple[float, float]] = []
    if _curve.fit.map is not None:
        xs = np.linspace(_curve.bins[0].low, _curve.bins[-1].high, MAP_POINTS)
        line = list(zip(xs.tolist(), _curve.fit.map.apply(xs).tolist(), strict=True))
    return curve_figure(_curve.bins, line, _curve.scale, on_scale=_curve.before is not None, width=620)


def _points(errors: AbsoluteErrors | None) -> str:
    if errors is None or errors.mae is None or errors.bias is None:
        return tables.DASH
    return f"{errors.mae:.2f} (bias {signed(errors.bias)})"


def _curve_words(curve: CalibrationCurve) -> str:
    sentences = [f"Measured on {curve.n:,} unseen items with score and label, in points of the scale {curve.scale}."]
    if curve.fit.map is not None:
        sentences.append(
            f"The map is fitted on {curve.fitted_on}. It changes no rank, so alignment by rank stays as it is."
        )
    if curve.before is None:
        sentences.append("This judge has a scale of its own, so its scores are no points until they are mapped.")
    elif curve.before.bias is not None and abs(curve.before.bias) >= TELLING_BIAS:
        sentences.append(
            f"As they come, its scores are too {'generous' if curve.before.bias > 0 else 'strict'} on average."
        )
    return "\n\n".join(sentences)
