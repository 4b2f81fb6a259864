"""All versions of criteria with what each was made from; a marked row shows its version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from core.projects.rounds import Relative
from pages.overview import judge_view
from pages.ui import grid, state, tables
from pages.ui.grid import Column
from pages.ui.page import link_to

if TYPE_CHECKING:
    pass


def draw(family: Sequence[Relative], names: Mapping[str, str]) -> None:
    """Draw the table and the marked version whole."""
    grown = _grown(family)
    n_dropped = len(family) - len(grown)
    everything = bool(grown and n_dropped) and st.toggle(
        f"Also the {n_dropped} that were dropped early", key=state.widget("lineage_all")
    )
    shown = family if everything or not grown else grown
    opened = st.session_state.get(state.widget("lineage_opened"), state.url_id("criteria"))
    st.caption(
        "Alignments on calibration items in the newest run that scored each version, with 95 % intervals; those on "
        "other or fewer items (see n) are not strictly comparable. Held-out figures are not shown here."
    )
    _draw_opened(shown, opened, names)
    _draw_table(shown, opened, names)


def _grown(family: Sequence[Relative]) -> list[Relative]:
    """Versions that were measured in full or made a judge, and all that they were made from."""
    by_id = {relative.criteria.criteria_id: relative for relative in family}
    in_full = (tables.MEASURED, tables.REJECTED)
    waiting = [name for name, kin in by_id.items() if kin.version or tables.group_of(kin.criteria) in in_full]
    kept: set[str] = set()
    while waiting:
        if (name := waiting.pop()) in by_id and name not in kept:
            kept.add(name)
            waiting += by_id[name].criteria.parents
    return [relative for relative in family if relative.criteria.criteria_id in kept]


def _pick_row() -> None:
    st.session_state[state.widget("lineage_opened")] = grid.picked(state.LINEAGE)


def _draw_opened(shown: Sequence[Relative], opened: str | None, names: Mapping[str, str]) -> None:
    relative = next((version for version in shown if version.criteria.criteria_id == opened), None)
    if relative is None:
        st.caption("Mark a row to read a version.")
        return
    alignment = tables.newest_calibration(relative.criteria)
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
            figure = tables.describe_n(None if alignment is None else alignment.alignment)
            st.text(f"{names[relative.criteria.criteria_id]} · {judge_view.state_words(relative.version)} · {figure}")
            st.space("stretch")
            link_to("criteria", "Open", icon=":material/rule:", key="tree", criteria=relative.criteria.criteria_id)
        st.text(relative.criteria.text or "No criteria: the judge is asked for a rating without any.")


def _draw_table(shown: Sequence[Relative], opened: str | None, names: Mapping[str, str]) -> None:
    ids = [relative.criteria.criteria_id for relative in shown]
    grid.draw(
        lineage_frame(shown, names),
        {"alignment": Column(digits=2)},
        alt="All versions, ancestors first",
        rows=8,
        key=state.LINEAGE,
        pick=grid.Pick(ids, opened, _pick_row),
    )


def lineage_frame(shown: Sequence[Relative], names: Mapping[str, str]) -> pd.DataFrame:
    """All versions, ancestors first; None where undefined."""
    alignments = [tables.newest_calibration(relative.criteria) for relative in shown]
    return pd.DataFrame(
        {
            "generation": [relative.depth for relative in shown],
            "version": [names[relative.criteria.criteria_id] for relative in shown],
            "made from": [", ".join(names[p] for p in relative.criteria.parents if p in names) for relative in shown],
            "judge": [judge_view.state_words(relative.version) for relative in shown],
            "alignment": pd.Series(
                [None if alignment is None else alignment.alignment.value for alignment in alignments], dtype="float64"
            ),
            "95 % interval": [
                tables.interval_of(None if alignment is None else alignment.alignment) for alignment in alignments
            ],
            "n": pd.array(
                [None if alignment is None else alignment.alignment.n for alignment in alignments], dtype="Int64"
            ),
            "text": [tables.one_line(relative.criteria.text)[:200] for relative in shown],
            "note": [relative.criteria.note for relative in shown],
        }
    )
