"""Draw the errors of one judge: weak spots, individual items, and the mapping of its scores to the raters' scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from core import projects
from core.comparison import CalibrationCurve, Row, calibration_curve
from core.comparison.examination import examine_judge
from core.comparison.sureness import Sureness, calibrated_sureness
from core.errors import ConcordError
from core.findings.weak_spots import (
    DIVISIONS,
    bias_finding,
    examination_finding,
    sureness_finding,
)
from core.project_records import JudgeEntry
from core.records import FloatArray
from core.report.figures.curves import curve_figure, scatter_figure
from core.stats.intervals import HALF_ALPHA
from core.wording import change_figures, consistent_interval, number, p_figure, signed
from pages.compare import probes
from pages.compare.choices import SEED, Compared, choose_row, tell
from pages.label import label_item
from pages.ui import charts, chosen, grid, state, tables
from pages.ui.cached import cached
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing

VIEWS = {
    "fails": "Where it fails",
    "items": "Item by item",
    "curve": "Human scale",
    "probes": "Probes",
}
MAP_POINTS, MOST_POINTS, MOST_LISTED, MOST_REPLIES = 60, 3_000, 500, 20
GAP = "gap (SD)"
NOTED_BIAS = 0.05  # points of the scale


def draw(page: Opened, compared: Compared) -> None:
    """Draw the chosen view of the chosen judge."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        row = choose_row(compared)
        view = chosen.choose_part("Look at", "what", VIEWS, "fails", label_visibility="collapsed")
    entry = compared.judge_of(row)
    if view == "items":
        _draw_items(page, compared, row, entry)
        if unscored := entry.judge.unscored:
            words = f"Items that {plain(row.name)} didn't score, with reasons ({len(unscored):,})"
            with st.expander(words, icon=":material/help:"):
                missing = [
                    {
                        "item": each.item_id,
                        "reason": each.reason,
                        "detail": each.detail,
                        "reply": " ".join(each.raw)[:500],
                    }
                    for each in unscored[:MOST_LISTED]
                ]
                grid.draw(pd.DataFrame(missing), alt="Items without a score", rows=8)
    elif view == "curve":
        _draw_curve(page, compared, entry)
    elif view == "fails":
        _draw_fails(compared, entry)
    else:
        probes.draw(page, entry)


# ── weak spots ───────────────────────────────────────────────────────────────────────────────────────────────


def _draw_fails(compared: Compared, entry: JudgeEntry) -> None:
    """Draw where the judge fails: the worst subgroup in a sentence, all subgroups in a table, and biases."""
    statistic, judge = compared.leaderboard.measure.statistic, entry.judge
    key = (compared.golden.digest, compared.aspect, entry.judge_id, entry.name, statistic)
    model = f"{judge.name} {judge.note}"
    examination = cached(
        ("examined", *key),
        lambda: examine_judge(compared.golden, compared.aspect, judge, statistic=statistic, model=model),
    )
    tell(examination_finding(examination))
    if not examination.parts:
        return
    why = "; ".join(f"{DIVISIONS[division].lower()}: {reason}" for division, reason in examination.left_out.items())
    if why:
        st.caption(plain(f"No breakdown by {why}."))
    rows = [
        {
            "divided by": DIVISIONS[part.division],
            "subgroup": part.name,
            "agreement": part.alignment.value,
            "interval": tables.interval_of(part.alignment),
            "error": part.error,
            "expected error": part.expected,
            "excess over other subgroups": tables.DASH
            if part.difference is None
            else change_figures(part.difference, consistent_interval(part.interval, part.p, HALF_ALPHA)),
            "p": p_figure(part.p, tables.DASH, limit=HALF_ALPHA),
            "n": part.alignment.n,
        }
        for part in examination.parts
    ]
    columns = {
        "agreement": Column(
            digits=2,
            help="Agreement is lower in subgroups with a narrow range of labels, so Concord compares errors instead.",
        ),
        "error": Column(digits=2, help="Mean error of the judge, in points on the label scale."),
        "expected error": Column(
            digits=2, help="Mean error expected if the judge were equally accurate in all subgroups."
        ),
    }
    grid.draw(pd.DataFrame(rows), columns, alt="Agreement and errors of the judge in each subgroup of items", rows=12)
    with st.expander("Biases: what the judge favours more than raters do", icon=":material/balance:"):
        for bias in examination.biases:
            said = bias_finding(bias)
            st.markdown(f"- {plain(said.headline)} {plain(said.detail)}")
        st.caption(
            "Correlations are Spearman's. The excess is the bias that neither the raters' labels nor noise can explain."
        )


# ── item by item ─────────────────────────────────────────────────────────────────────────────────────────────


def _draw_items(page: Opened, compared: Compared, row: Row, entry: JudgeEntry) -> None:
    """Draw a scatter plot next to the list of items; selecting a row opens its item."""
    key = (*compared.key, entry.judge_id)
    frame = cached(("gaps", *key), lambda: _gaps(compared, entry))
    if frame.empty:
        st.info("No item here has both a label and a score from this judge.", icon=":material/scatter_plot:")
        return
    known = frame.index[frame["item"] == state.url_id("item")]
    picked = int(known[0]) if len(known) else None
    left, right = st.columns(2, gap="medium")
    with left:

        def drawn() -> Drawing:
            n = len(frame)
            some = frame.iloc[np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(int))]
            place = some.index.get_loc(picked) if picked in some.index else None
            labels, scores = some["raters"].to_numpy(), some["judge"].to_numpy()
            return scatter_figure(labels, scores, scale=compared.leaderboard.scale, of=row.name, picked=place)

        scatter = cached(("scatter", *key, picked), drawn)
        charts.place(scatter, key="compare_scatter", alt="The judge's scores plotted against the raters' labels")
    with right:

        def pick_row() -> None:
            if (position := grid.picked(state.COMPARE_LIST)) is not None:
                state.put_in_url(item=compared.golden.item_ids[int(position)])

        listed = frame.head(MOST_LISTED)
        columns = {
            "item": Column(width=190),
            "raters": Column(digits=2),
            "judge": Column(digits=2),
            GAP: Column(
                digits=2,
                signed=True,
                help="Standardised score minus standardised label. A positive value means that the judge is too "
                "lenient.",
            ),
        }
        pick = grid.Pick([str(at) for at in listed.index], None if picked is None else str(picked), pick_row)
        grid.draw(listed, columns, alt="Items, largest gap first", rows=11, key=state.COMPARE_LIST, pick=pick)
        st.caption(
            f"Up to {MOST_LISTED} items, largest gap first. To read an item, select its row. The list shows only ids, "
            "because an item that you have read no longer counts as unseen."
        )
    if picked is not None:
        _draw_item(page, compared, row, picked)


def _gaps(compared: Compared, entry: JudgeEntry) -> pd.DataFrame:
    """Return the compared items with standardised score minus standardised label, largest gap first."""

    def standardised(values: FloatArray) -> FloatArray:
        spread = values.std() if values.size else 0.0
        return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)

    at, judge = compared.leaderboard.pool.positions, entry.judge
    labels = compared.golden.labels(compared.aspect)[at]
    gaps = standardised(judge.upward[at]) - standardised(labels)
    names = [compared.golden.item_ids[position] for position in at]  # ids, because texts would reveal the items
    frame = pd.DataFrame({"item": names, "raters": labels, "judge": judge.values[at], GAP: gaps}, index=at)
    return frame.iloc[np.argsort(-np.abs(gaps), kind="stable")]


def _draw_item(page: Opened, compared: Compared, row: Row, position: int) -> None:
    """Draw an item in full, the score of every judge, and the judge's reply."""
    item, entry, project_id = compared.golden.items[position], compared.judge_of(row), page.project.project_id
    label, score = compared.golden.labels(compared.aspect)[position], entry.judge.values[position]
    replies = cached(("replies", entry.judge_id), lambda: page.store.judges.replies(project_id, entry.judge_id))
    with st.container(border=True):
        given = tables.DASH if np.isnan(score) else number(score)
        st.markdown(f"**{plain(item.item_id)}** · raters {label:.2f} · {plain(row.name)} {given}")
        left, right = st.columns(2, gap="large")
        with left:
            label_item.draw_parts(item, compared.golden.kind)
        with right:
            rows = compared.leaderboard.rows
            scores = [compared.judge_of(one).judge.values[position] for one in rows]
            table = {"judge": [one.name for one in rows], "score": scores}
            grid.draw(table, {"score": Column(digits=2)}, alt="Every judge's score for this item", rows=6)
            own = replies.get(item.item_id, ())
            if own:
                st.markdown("**The judge's raw reply**")
            elif entry.judge.run_id and entry.judge.kind in ("calibrated", "no criteria"):
                words = "Read the judge's reasons for each item"
                link_to("criteria", words, icon=":material/rule:", run=entry.judge.run_id)
            else:
                st.caption("This judge gave only a score, without reasons.")
            for reply in own[:MOST_REPLIES]:
                st.text(reply)


# ── scores as labels ─────────────────────────────────────────────────────────────────────────────────────────


def _draw_curve(page: Opened, compared: Compared, entry: JudgeEntry) -> None:
    """Draw mean labels by score, the isotonic map to the human scale, and the intervals around verdicts."""
    key, project_id = (*compared.key, entry.judge_id), page.project.project_id

    def measured() -> tuple[CalibrationCurve, Drawing, Sureness | None]:
        made = projects.calibration_of(page.store, project_id, entry.judge_id)
        own = None if made is None else made.score_map
        curve = calibration_curve(compared.golden, compared.aspect, entry.judge, own=own, seed=SEED)
        line: list[tuple[float, float]] = []
        if curve.score_map is not None:
            xs = np.linspace(curve.bins[0].low, curve.bins[-1].high, MAP_POINTS)
            line = list(zip(xs.tolist(), curve.score_map.apply(xs).tolist(), strict=True))
        drawn = curve_figure(curve.bins, line, compared.leaderboard.scale, on_scale=curve.before is not None, width=620)
        return curve, drawn, None if made is None else calibrated_sureness(compared.golden, made)

    try:
        curve, drawn, sure = cached(("curve", *key), measured)
    except ConcordError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        charts.place(drawn, key="compare_curve", alt="Mean label for each score, with the isotonic mapping")
    with right:
        for label, errors in (("Mean absolute error", curve.before), ("After mapping", curve.after)):
            undefined = errors is None or errors.mae is None or errors.bias is None
            st.metric(label, tables.DASH if undefined else f"{errors.mae:.2f} (bias {signed(errors.bias)})")
        scale = compared.leaderboard.scale
        words = [
            (
                f"The errors are measured on {curve.n:,} unseen items with both a score and a label, in points on the "
                f"scale {scale}."
            )
        ]
        if curve.score_map is not None:
            words.append(f"The mapping is fitted on {curve.fitted_on} and doesn't change the ranking.")
        if curve.before is None:
            words.append("This judge uses its own scale, so its scores must be mapped to the raters' scale first.")
        elif curve.before.bias is not None and abs(curve.before.bias) >= NOTED_BIAS:
            words.append(
                f"Without the mapping, the judge is too {'generous' if curve.before.bias > 0 else 'strict'} on average."
            )
        st.text("\n\n".join(words))
        if curve.map_note:
            st.caption(plain(curve.map_note))
    if sure is None:
        return
    said = sureness_finding(sure)
    st.markdown(f"**{plain(said.headline)}** {plain(said.detail)}")
    st.caption(
        "The share of labels inside the intervals is an average. It may be different for high or low scores alone."
    )
