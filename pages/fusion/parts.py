"""Choose the parts and the method of a fusion, and list ways to add parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from core import projects
from core.fusion.fusion_settings import METHODS, FusionMethod, FusionSettings
from core.fusion.stack import MIN_SYSTEMS
from core.project_records import GoldenSummary, JudgeEntry
from core.records import STATISTICS, JudgeKind, Level
from core.report.figures import LEVEL_NAMES, STATISTIC_NAMES
from pages.compare.choices import cached_golden
from pages.ui import grid, metrics_view, state
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

METHOD_WORDS: dict[FusionMethod, str] = {
    "average": "average",
    "ridge": "ridge",
    "nnls": "non-negative weights",
}
METHOD_HELP = (
    "Average: the mean of standardised scores, using only parts that beat chance. Ridge: weights learned from the "
    "labels, with shrinkage. Non-negative: weights learned from the labels, but never below 0."
)
KINDS: dict[JudgeKind, str] = {
    "calibrated": "calibrated judge",
    "no criteria": "baseline",
    "style": "judge, other style",
    "imported": "imported",
    "metric": "metric",
    "repeval": "hidden states",
    "fused": "fused judge",
}


@dataclass(frozen=True)
class Choice:
    """Parts and settings chosen in the form (`draw_choice`); `names` maps the ids of `judges` to display names."""

    judges: tuple[JudgeEntry, ...]
    names: Mapping[str, str]
    parts: tuple[JudgeEntry, ...]
    settings: FusionSettings
    levels: tuple[Level, ...]
    key: str


def choice_of(page: Opened, view: GoldenSummary, aspect: str, judges: Sequence[JudgeEntry]) -> Choice:
    """Return the parts and settings chosen in the form.

    By default, the parts are all judges except fusions and the baseline. The default statistic and level are those of
    the default version of the judge.
    """
    key = f"{view.golden_id[-12:]}_{aspect}"
    names = names_of(page, judges)
    at_first = [names[entry.judge_id] for entry in judges if entry.judge.kind not in ("fused", "no criteria")]
    taken = [name for name in _held(f"parts_{key}", at_first) if name in names.values()]
    levels: list[Level] = ["dataset", *(["sample"] if view.n_sources < view.n_items else [])]  # type: ignore[list-item]
    levels += ["system"] if view.n_systems >= MIN_SYSTEMS and view.kind != "pair" else []
    known = cached_golden(view.golden_id, page)
    usual = projects.default_measure(page.store, page.project.project_id, known, aspect)
    settings = FusionSettings(
        method=_held("method", "ridge"),
        statistic=_held(f"statistic_{key}", usual.statistic),
        level=_held(f"level_{key}", usual.level if usual.level in levels else "dataset"),
    )
    parts = tuple(entry for entry in judges if names[entry.judge_id] in taken)
    return Choice(tuple(judges), names, parts, settings, tuple(levels), key)


def _held(name: str, at_first: Any) -> Any:
    """Return the value of a widget, or its default before it is drawn."""
    return st.session_state.setdefault(state.widget(f"fusion_{name}"), at_first)


def draw_choice(choice: Choice) -> None:
    """Let the user choose parts, method, statistic and level."""
    st.multiselect(
        "Parts of the fusion",
        list(choice.names.values()),
        key=state.widget(f"fusion_parts_{choice.key}"),
        persist_state="session",
    )
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        st.segmented_control(
            "Weights",
            METHODS,
            required=True,
            format_func=lambda method: METHOD_WORDS[method].removesuffix(" weights"),
            key=state.widget("fusion_method"),
            persist_state="session",
            help=METHOD_HELP,
        )
        st.segmented_control(
            "Statistic",
            STATISTICS,
            required=True,
            format_func=lambda statistic: STATISTIC_NAMES[statistic],
            key=state.widget(f"fusion_statistic_{choice.key}"),
            persist_state="session",
        )
        st.segmented_control(
            "Level",
            choice.levels,
            required=True,
            format_func=lambda level: LEVEL_NAMES[level].removesuffix(" level"),
            key=state.widget(f"fusion_level_{choice.key}"),
            persist_state="session",
            help=(
                "Dataset: agreement across all items. Sample: agreement within each source, averaged over sources. "
                "System: agreement between the systems' mean scores and mean labels."
            ),
        )


def draw_kinds(choice: Choice) -> None:
    """Draw the kind of each judge, its calls per score, and the number of labels that it has seen."""
    judges, names = choice.judges, choice.names
    frame = pd.DataFrame(
        {
            "judge": [names[entry.judge_id] for entry in judges],
            "kind": [KINDS[entry.judge.kind] for entry in judges],
            "calls per item": pd.Series([entry.judge.calls_per_item for entry in judges], dtype="float64"),
            "scored": [entry.judge.n_scored for entry in judges],
            "labels seen": [len(entry.judge.seen) for entry in judges],
            "description": [entry.judge.note for entry in judges],
        }
    )
    columns = {
        "judge": Column(width=250),
        "calls per item": Column(help="Calls needed for one score. A dash means that the number is unknown."),
        "labels seen": Column(
            help="Number of labelled items used to choose or fit the judge. The fusion leaves out all items from the "
            "same sources."
        ),
    }
    grid.draw(frame, columns, alt="Judges that can be fused", rows=12)


def draw_empty(page: Opened, golden: GoldenSummary, aspect: str, n_judges: int) -> None:
    """Explain what to do if there are fewer than two judges."""
    there = "only one judge" if n_judges else "no judge yet"
    st.info(
        f"{plain(golden.name)} has {there} for {plain(aspect)}. A fusion needs at least two different judges. "
        "Compute metrics below (free), calibrate a judge, or import scores on the Compare page.",
        icon=":material/merge:",
    )
    draw_sources(page, golden, aspect, opened=True)


def draw_sources(page: Opened, golden: GoldenSummary, aspect: str, *, opened: bool = False) -> None:
    """Draw links to screens that add judges, and the form that computes metrics."""
    at = {"golden": golden.golden_id}
    with st.container(horizontal=True, gap="medium"):
        link_to("calibrate", "Calibrate a judge", icon=":material/tune:", section="new", **at)
        link_to("repeval", "Read hidden states", icon=":material/grid_on:", aspect=aspect, **at)
        link_to("compare", "Import scores", icon=":material/upload_file:", aspect=aspect, **at)
    with st.expander("Compute metrics", icon=":material/calculate:", expanded=opened):
        metrics_view.draw(page, golden, aspect)


def names_of(page: Opened, judges: Sequence[JudgeEntry]) -> dict[str, str]:
    """Return a readable, unique name for each judge id."""
    named = projects.readable_judges(page.store, page.project.project_id, judges)
    return {entry.judge_id: judge.name for entry, judge in zip(judges, named, strict=True)}
