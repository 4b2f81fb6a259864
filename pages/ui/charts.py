"""Where figures of `core.report.figures` are placed: from the records of a run to the figure and on to the screen.

A drawing is an image: it is there at once, and hostile text in it stays text.  What one clicks into is plotly's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from core.calibration.records import BothSides, Calibration, Candidate, LeaderboardSnapshot
from core.projects.calibration import CalibrationRequest
from core.projects.kinds import RunDetail
from core.records import Alignment, AspectLabels, GoldenSet
from core.report import figures
from core.report.figures import Drawing
from core.report.figures.clickable import in_dark
from pages.ui import tables

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_LONGEST_ALT = 900

CONFIG = {"displayModeBar": False, "displaylogo": False, "scrollZoom": False}
WORDS = {"waiting": "not finished", "running": "not finished", "stopped": "stopped", "kept": "kept"}


def place(figure: Drawing, *, key: str, alt: str) -> None:
    """A drawing over the full width of its container, in the colours of the page; it says in words what it shows.

    Of one with a narrow form the page shows either that or the other, by its own width.
    """
    said = f"{alt}. {figure.says}"[:_LONGEST_ALT]
    with st.container(key=key if figure.narrow is None else f"wide_{key}"):
        st.image(figure.svg(_theme()), width="stretch", alt=said)
    if figure.narrow is not None:
        with st.container(key=f"narrow_{key}"):
            st.image(figure.narrow.svg(_theme()), width="stretch", alt=said)


def place_clickable(figure: Figure, *, key: str, alt: str, on_select: Callable[[], None] | str = "ignore") -> Any:
    """A figure that a person clicks into; its height is kept free until the browser has drawn it."""
    shown: Any = in_dark(figure.to_plotly_json()) if _theme() == "dark" else figure
    return st.plotly_chart(
        shown,
        key=key,
        config=CONFIG,
        theme=None,
        height=int(figure.layout.height),
        alt=alt,
        on_select=on_select,  # type: ignore[arg-type]  # the three that Streamlit knows
        selection_mode="points",
    )


def _theme() -> figures.Theme:
    """The page's; one without dark colours of its own stays light whatever the system asks for."""
    has_dark = st.get_option("theme.dark.backgroundColor") is not None
    return "dark" if has_dark and st.context.theme.type == "dark" else "light"


def measure_of(candidates: Sequence[Candidate]) -> str:
    """The axis title: the statistic and level of the first candidate that has an alignment."""
    known = next((c.alignment for c in candidates if c.alignment is not None), None)
    return "alignment" if known is None else figures.measure_name(known.statistic, known.level)


def baseline_of(candidates: Sequence[Candidate]) -> Alignment | None:
    return next((c.alignment for c in candidates if c.status == "baseline"), None)


@dataclass(frozen=True, slots=True)
class _SnapshotFigures:
    candidates: Drawing
    curve: Drawing
    race: Drawing | None


def place_snapshot(view: RunDetail, snapshot: LeaderboardSnapshot, names: Mapping[str, str]) -> None:
    """Every candidate, by its name, with its interval beside the best-so-far curve."""
    drawn = _snapshot_figures(view.run_id, view.version, tuple(names.items()), view, snapshot)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Every candidate** on calibration items, with its 95 % interval")
        place(drawn.candidates, key="candidates_figure", alt="Alignment of each candidate with its interval")
    with right:
        st.markdown("**Best so far** against the calls spent")
        place(drawn.curve, key="curve_figure", alt="Best alignment so far against calls")
    if drawn.race is not None:
        st.markdown("**How the ranking came about**: a line per candidate, followed until it dropped out")
        place(drawn.race, key="race_figure", alt="Alignment of each candidate as more items were scored")


@st.cache_resource(max_entries=32, show_spinner=False)
def _snapshot_figures(
    run_id: str, version: int, named: tuple[tuple[str, str], ...], _view: RunDetail, _snapshot: LeaderboardSnapshot
) -> _SnapshotFigures:
    """A version of a run gets its figures once."""
    candidates, names = _snapshot.candidates, dict(named)
    measure, baseline = measure_of(candidates), baseline_of(candidates)
    made = sorted((c for c in candidates if c.status != "baseline"), key=_making)
    marks = [
        figures.Mark(tables.name_of(c.criteria, names), c.alignment, WORDS.get(c.status, c.status), c.criteria.text)
        for c in made
    ]
    return _SnapshotFigures(
        figures.candidates_figure(marks, baseline, measure=measure, slots=slots_of(_view, len(made))),
        figures.best_so_far_figure(_snapshot, baseline, measure=measure),
        _race_figure(candidates, names, measure),
    )


def _race_figure(candidates: Sequence[Candidate], names: Mapping[str, str], measure: str) -> Drawing | None:
    """None until some candidate has been measured on more than one batch of items."""
    if not any(len(candidate.trace) > 1 for candidate in candidates):
        return None
    lines = [
        figures.Race(
            tables.name_of(candidate.criteria, names),
            WORDS.get(candidate.status, candidate.status),
            candidate.trace,
        )
        for candidate in candidates
        if candidate.trace
    ]
    baseline = next((line for line in lines if line.group == "baseline"), None)
    return figures.race_figure([line for line in lines if line is not baseline], baseline, measure=measure)


def place_sides(view: RunDetail, calibration: Calibration) -> None:
    """The final judge, the best single criteria and the judge without criteria, on both sides of the split."""
    drawn = _sides_figure(view.run_id, view.version, calibration)
    place(drawn, key="sides_figure", alt="Alignment on calibration beside held-out")


@st.cache_resource(max_entries=32, show_spinner=False)
def _sides_figure(run_id: str, version: int, _result: Calibration) -> Drawing:
    rows = [figures.Sides(_final_name(_result), _result.calibration, _result.held_out)]
    if len(_result.chosen) > 1:
        rows.append(_sides("best single criteria", _result.best_single))
    rows.append(_sides("no criteria", _result.no_criteria))
    return figures.sides_figure(rows, measure=figures.measure_name(_result.held_out.statistic, _result.held_out.level))


@st.cache_resource(max_entries=64, show_spinner=False)
def _labels_figure(digest: str, aspect: str, _labels: AspectLabels) -> Drawing:
    return figures.labels_figure(_labels)


def place_labels(golden: GoldenSet) -> None:
    """One distribution a column, two in a row."""
    labels = list(golden.aspects.values())
    for start in range(0, len(labels), 2):
        for column, aspect_labels in zip(st.columns(2, gap="medium"), labels[start : start + 2], strict=False):
            with column:
                place(
                    _labels_figure(golden.digest, aspect_labels.aspect, aspect_labels),
                    key=f"labels_{aspect_labels.aspect}",
                    alt=f"Distribution of the labels of {aspect_labels.aspect}",
                )


def slots_of(view: RunDetail, n_made: int) -> int:
    """Room on the candidates' axis: all drafts from the start, then widened by twenties as rounds add more."""
    drafts = view.request.settings.plan.n_drafts if isinstance(view.request, CalibrationRequest) else 0
    return max(drafts, 20 * math.ceil(n_made / 20))


def _making(candidate: Candidate) -> tables.MakingOrder:
    return tables.origin_order(candidate.criteria)


def _final_name(calibration: Calibration) -> str:
    n = len(calibration.chosen)
    return "final judge" if n <= 1 else f"final judge (mean of {n})"


def _sides(name: str, both: BothSides) -> figures.Sides:
    return figures.Sides(name, both.calibration, both.held_out)
