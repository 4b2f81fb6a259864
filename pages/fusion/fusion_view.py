"""The fusions of the chosen parts: the finding in a sentence, one axis with intervals, the table behind it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from core import projects
from core.fusion.fusion_settings import FusionSettings
from core.fusion.stack import Fusion, FusionTable
from core.project_records import GoldenSummary, JudgeEntry
from core.records import Alignment, GoldenSet, JudgeKind
from core.report.figures import measure_name
from core.report.figures.comparison import JudgeMark, leaderboard_figure
from core.stats import NO_TEST, Difference, claim
from core.wording import change_figures, number, p_figure
from pages.compare.choices import kept_golden
from pages.fusion.fusion_choice import METHOD_WORDS, Choice, names_of
from pages.ui import charts, grid, metrics_view, tables
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing

LLM_FUSION = "LLM fusion"
BESIDE: dict[str, JudgeKind] = {LLM_FUSION: "fused", "plain judge": "no criteria"}


@dataclass(frozen=True)
class Fused:
    """A table of fusions with what it was made of; `key` names its content."""

    view: GoldenSummary
    golden: GoldenSet
    aspect: str
    parts: tuple[JudgeEntry, ...]
    names: Mapping[str, str]
    settings: FusionSettings
    table: FusionTable
    key: Hashable

    @property
    def measure(self) -> str:
        return measure_name(self.settings.statistic, self.settings.level)

    @property
    def shown(self) -> Fusion:
        """The fusion by the chosen method, or the first there is."""
        fusions = self.table.fusions
        return fusions.get(self.settings.method) or next(iter(fusions.values()))


def draw_empty(page: Opened, golden: GoldenSummary, aspect: str, n_there: int) -> None:
    """Fewer than two judges: what to do."""
    there = "no judge yet" if not n_there else "one judge only"
    st.info(
        f"There is {there} for {plain(aspect)} of {plain(golden.name)}; a fusion needs two or more, the more different "
        "the better. Compute metrics below (they cost nothing), calibrate a judge, or bring in replies on Compare.",
        icon=":material/merge:",
    )
    draw_ways(page, golden, aspect, opened=True)


def draw_ways(page: Opened, golden: GoldenSummary, aspect: str, *, opened: bool = False) -> None:
    """Links to whatever makes another part, and the metrics right here."""
    with st.container(horizontal=True, gap="medium"):
        link_to("calibrate", "Calibrate a judge", icon=":material/tune:", golden=golden.golden_id, section="new")
        link_to("repeval", "Read hidden states", icon=":material/grid_on:", golden=golden.golden_id, aspect=aspect)
        link_to(
            "compare",
            "Bring in replies or scores",
            icon=":material/upload_file:",
            golden=golden.golden_id,
            aspect=aspect,
        )
    with st.expander("Compute metrics", icon=":material/calculate:", expanded=opened):
        metrics_view.draw(page, golden, aspect)


def fuse(
    page: Opened,
    view: GoldenSummary,
    aspect: str,
    *,
    judges: Sequence[JudgeEntry],
    choice: Choice,
) -> Fused:
    """Every fusion of the chosen parts, the plain judges beside them, computed once for its content."""
    chosen, settings = choice.parts, choice.settings
    taken = {entry.judge_id for entry in chosen}
    shown = [
        entry
        for entry in judges
        if entry.judge.kind == "no criteria" or (entry.judge.kind == "fused" and entry.judge.run_id)
    ]
    beside = [entry for entry in shown if entry.judge_id not in taken]
    names = names_of([*chosen, *beside])
    ids = tuple(entry.judge_id for entry in chosen), tuple(entry.judge_id for entry in beside)
    key = (view.golden_id, aspect, ids, tuple(names.values()), settings.statistic, settings.level)
    golden = kept_golden(view.golden_id, page)
    table = _kept_table(key, page, _golden_id=view.golden_id, _aspect=aspect, _ids=ids, _settings=settings)
    return Fused(view, golden, aspect, tuple(chosen), names, settings, table, (*key, settings.method))


@st.cache_resource(max_entries=64, show_spinner="Fusing …")
def _kept_table(
    key: Hashable,
    _page: Opened,
    *,
    _golden_id: str,
    _aspect: str,
    _ids: tuple[tuple[str, ...], tuple[str, ...]],
    _settings: FusionSettings,
) -> FusionTable:
    return projects.compare_fusions(
        _page.store,
        _page.project.project_id,
        _golden_id,
        _aspect,
        judge_ids=_ids[0],
        settings=_settings,
        beside=_ids[1],
    )


def draw_notes(fused: Fused) -> None:
    """What the figure of the finding is, and what is left out of it."""
    shown, ends = fused.shown, fused.shown.fused.interval
    system = fused.settings.level == "system"
    over = f"{shown.fused.n} systems, over their" if system else f"{len(shown.report):,}"
    words = [
        f"{fused.measure}, n = {over} items whose labels neither a part nor the weights have seen; "
        f"{len(shown.fit):,} of other sources to fit on. The best part is that on the items to fit on.",
        *([f"The interval holds for these systems alone; it is that of a {ends.method}."] if system and ends else []),
        *shown.notes,
        *(f"{name} takes no part: {why}." for name, why in shown.left_out.items()),
        *(
            f"No fusion by {METHOD_WORDS[method]}: {why}"
            for method, why in fused.table.failed.items()
            if method != fused.settings.method
        ),
        *(f"{name} is not compared: {why}." for name, why in fused.table.not_beside.items()),
    ]
    st.caption(plain(" ".join(words)))


def headline(fused: Fused) -> str:
    """One sentence: the fusion by the chosen method beside the part that stood highest on the items to fit on."""
    shown, asked = fused.shown, fused.settings.method
    against = shown.against_best
    how = METHOD_WORDS[shown.method]
    failed = ""
    if shown.method != asked:
        failed = f"There is no fusion by {METHOD_WORDS[asked]}: {fused.table.failed[asked].removesuffix('.')}. "
    if shown.fused.value is None or against is None or against.value is None:
        return f"{failed}Fused by {how}, the judges have no defined agreement: {shown.fused.reason or 'too few items'}."
    best = number(shown.parts[shown.best_part].value)
    tested = claim(against.value, against.interval, against.p)
    said = {
        "higher": "a significant gain",
        "lower": "a significant loss",
        "untested": f"the difference is not tested: {against.p_reason or NO_TEST}",
    }.get(tested, "no significant difference")
    words = f"Fused by {how}, agreement with raters is {number(shown.fused.value)}"
    return f"{failed}{words}. The best part, {shown.best_part}, has {best}: {said}."


def table_frame(fused: Fused) -> pd.DataFrame:
    """Fusions first, then parts and the plain judge, at the one statistic and level of the heading."""
    rows: list[tuple[str, str, Alignment, str]] = []
    for method, fusion in fused.table.fusions.items():
        rows.append((f"fusion, {METHOD_WORDS[method]}", "fusion", fusion.fused, difference_words(fusion.against_best)))
    shown = fused.shown
    for name, alignment in sorted(shown.parts.items(), key=lambda pair: -_height(pair[1])):
        kind = "left out" if name in shown.left_out else "part"
        said = "highest part on the items to fit on" if name == shown.best_part else ""
        rows.append((name, kind, alignment, said))
    rows += [(name, _role(name), alignment, "") for name, alignment in fused.table.beside.items()]
    heading = tables.measure_heading(shown.fused)
    return pd.DataFrame(
        {
            "judge": [row[0] for row in rows],
            heading: pd.Series([row[2].value for row in rows], dtype="float64"),
            "interval": [tables.interval_of(row[2]) for row in rows],
            "compared with the best part": [row[3] for row in rows],
            "n": [row[2].n for row in rows],
            "no score": [row[2].n_unscored for row in rows],
            "role": [row[1] for row in rows],
        }
    )


def _role(name: str) -> str:
    return LLM_FUSION if name.startswith(LLM_FUSION) else "plain judge"


def difference_words(difference: Difference | None) -> str:
    """`+0.062 [+0.020, +0.100], p = 0.004`; "—" where undefined."""
    if difference is None or difference.value is None:
        return tables.DASH
    return f"{change_figures(difference.value, difference.interval)}, {p_figure(difference.p, 'no test')}"


def draw_table(fused: Fused) -> None:
    """Fusions and parts with n, tests and roles."""
    frame = table_frame(fused)
    columns = {
        "judge": Column(width=260),
        str(frame.columns[1]): Column(digits=2, help=f"alignment with people: {fused.measure}"),
        "interval": Column(
            "95 % interval",
            help="over sources: t at sample level, jackknife at dataset level, bootstrap error at system level",
        ),
        "compared with the best part": Column(
            help="fusion minus that part: paired test over sources, corrected after Holm; none under 8 sources"
        ),
        "no score": Column(help="labelled items without a score; never counted as 0"),
    }
    grid.draw(frame, columns, alt=f"Fusions and their parts by {fused.measure}", rows=16)


def draw_whiskers(fused: Fused) -> None:
    """Fusions, parts and the plain judge on one axis, with intervals."""
    charts.place(_whiskers(fused.key, fused), key="fusion_whiskers", alt=f"{fused.measure} of fusions and parts")


@st.cache_resource(max_entries=64, show_spinner=False)
def _whiskers(key: Hashable, _fused: Fused) -> Drawing:
    kinds = {_fused.names[part.judge_id]: part.judge.kind for part in _fused.parts}
    marks = [
        JudgeMark(f"fusion, {METHOD_WORDS[method]}", "fused", fusion.fused)
        for method, fusion in _fused.table.fusions.items()
    ]
    marks += [JudgeMark(name, kinds.get(name, "imported"), alignment) for name, alignment in _fused.shown.parts.items()]
    marks += [JudgeMark(name, BESIDE[_role(name)], alignment) for name, alignment in _fused.table.beside.items()]
    marks.sort(key=lambda mark: -_height(mark.alignment))
    return leaderboard_figure(marks, None, measure=_fused.measure)


def _height(alignment: Alignment) -> float:
    return -2.0 if alignment.value is None else alignment.value
