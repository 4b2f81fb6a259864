"""What a finished LLM fusion is worth: its aspects, the score all in all, the fusion without each assistant."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.fusion.plan import OVERALL, folded
from core.records import Alignment
from pages.fusion.fusion_view import Fused, difference_words
from pages.ui import grid, tables
from pages.ui.grid import Column
from pages.ui.page import Opened
from pages.ui.screens import plain


def draw(page: Opened, fused: Fused, run_id: str) -> None:
    """The tables of the run at the screen's statistic and level; nothing while it goes on or where its judges are
    gone."""
    try:
        result = projects.fusion_result(page.store, run_id, fused.settings)
    except ConcordError as error:
        st.warning(plain(str(error)), icon=":material/block:")
        return
    if result is None:
        return
    rows = dict(result.aspects)
    if result.overall is not None:
        rows[f"{OVERALL}, compared with {result.overall_target}"] = result.overall
    st.markdown(f"**What it is worth** ({fused.measure}, on items that neither plan, criteria nor parts have seen)")
    grid.draw(_frame("rated", rows), _columns(rows), alt="Alignment of the LLM fusion by aspect", rows=8)
    if result.overall is None and OVERALL not in map(folded, result.aspects):
        st.caption(plain(f"The overall score is compared with nothing: {result.overall_target}."))
    for name, without in result.without.items():
        if name not in (fused.aspect, OVERALL):
            continue
        held = name == OVERALL and result.overall is not None
        beside = f" ({OVERALL}, compared with {result.overall_target})" if held else f" ({name})"
        st.markdown(f"**Without each assistant**{plain(beside)}: the same calls, its name and number left out")
        arms = {row.name: row.alignment for row in without}
        frame = _frame("without", arms)
        frame["the whole minus it"] = [difference_words(row.difference) for row in without]
        frame["n of both"] = [row.difference.n for row in without]
        grid.draw(frame, _columns(arms), alt=f"The LLM fusion without each assistant, {name}", rows=8)


def _frame(first: str, alignments: dict[str, Alignment]) -> pd.DataFrame:
    values = list(alignments.values())
    return pd.DataFrame(
        {
            first: list(alignments),
            tables.measure_heading(values[0]) if values else "value": pd.Series(
                [alignment.value for alignment in values], dtype="float64"
            ),
            "interval": [tables.interval_of(alignment) for alignment in values],
            "n": [alignment.n for alignment in values],
            "no score": [alignment.n_unscored for alignment in values],
        }
        | ({"why none": reasons} if any(reasons := [alignment.reason for alignment in values]) else {})
    )


def _columns(alignments: dict[str, Alignment]) -> dict[str, Column]:
    level = next((alignment.level for alignment in alignments.values()), "dataset")
    unit = "systems" if level == "system" else "items"
    heading = next((tables.measure_heading(alignment) for alignment in alignments.values()), "value")
    return {
        heading: Column(digits=2),
        "interval": Column("95 % interval", help="over sources"),
        "n": Column(help=f"counts {unit}"),
        "no score": Column(help="items whose reply said nothing readable on it; never counted as 0"),
        "the whole minus it": Column(help="paired over sources, Holm-corrected over the assistants"),
        "n of both": Column(help="items that both scored"),
    }
