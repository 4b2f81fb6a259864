"""What Fusion fuses: golden set, aspect, parts and measure as chosen; the table of parts and fusions, in words."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from core import projects
from core.comparison import unique_names, usual_level
from core.errors import ConcordError
from core.fusion.estimators import METHODS, FusionMethod
from core.fusion.stack import Fusion, FusionTable, StackSettings
from core.metrics import make_metric
from core.project_records import GoldenSummary, JudgeEntry
from core.records import STATISTICS, Alignment, GoldenSet, JudgeKind, Level
from core.report.figures import LEVEL_NAMES, STATISTIC_NAMES, measure_name
from core.report.figures.comparison import JudgeMark, leaderboard_figure
from core.stats import NO_TEST, Difference, claim, p_figure
from pages.components import charts, compare_view, metrics_view, state, tables
from pages.components.page import Opened, link_to
from pages.components.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing

METHOD_WORDS: dict[FusionMethod, str] = {
    "average": "average",
    "ridge": "ridge",
    "nnls": "non-negative weights",
}
METHOD_HELP = (
    "Average: the mean of the standardised scores of the parts that beat chance; no weights to learn. Ridge: weights "
    "learnt from the labels, shrunk. Non-negative weights: learnt too, and no part may count against itself."
)
KINDS: dict[JudgeKind, str] = {
    "calibrated": "calibrated judge",
    "no criteria": "judge, no criteria",
    "style": "judge, other style",
    "imported": "brought in",
    "metric": "metric",
    "repeval": "hidden states",
    "fused": "fused judge",
}
NEEDS: dict[JudgeKind, str] = {
    "calibrated": "its judge",
    "no criteria": "its judge",
    "repeval": "its encoder",
    "fused": "its parts",
    "imported": "its scores",
    "style": "its model",
}
LLM_FUSION = "LLM fusion"
BESIDE: dict[str, JudgeKind] = {LLM_FUSION: "fused", "plain judge": "no criteria"}
ROW = tables.ROW_HEIGHT + 1


@dataclass(frozen=True)
class Fused:
    """A table of fusions with what it was made of; `key` names its content."""

    view: GoldenSummary
    golden: GoldenSet
    aspect: str
    parts: tuple[JudgeEntry, ...]
    names: Mapping[str, str]
    settings: StackSettings
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
        link_to("calibrate", "Calibrate a judge", icon=":material/tune:", golden=golden.golden_id)
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


def choose_parts(golden: GoldenSummary, aspect: str, judges: Sequence[JudgeEntry]) -> tuple[JudgeEntry, ...]:
    """The judges as a table with a box before each judge; at first all but fusions and the plain judge."""
    names = _names(judges)
    frame = pd.DataFrame(
        {
            "part": [entry.judge.kind not in ("fused", "no criteria") for entry in judges],
            "judge": [names[entry.judge_id] for entry in judges],
            "kind": [KINDS[entry.judge.kind] for entry in judges],
            "calls an item": pd.Series([entry.judge.calls_per_item for entry in judges], dtype="float64"),
            "needs": [_needs(entry) for entry in judges],
            "scored": [entry.judge.n_scored for entry in judges],
            "labels seen": [len(entry.judge.seen) for entry in judges],
            "what it is": [entry.judge.note for entry in judges],
        }
    )
    config = st.column_config
    key = state.widget(f"fusion_parts_{golden.golden_id[-12:]}_{aspect}_{hash(tuple(names)) & 0xFFFFFF:x}")
    chosen = st.data_editor(
        frame,
        hide_index=True,
        key=key,
        disabled=[name for name in frame.columns if name != "part"],
        height=tables.height_for(len(frame), 8, ROW),
        placeholder=tables.DASH,
        column_config={
            "part": config.CheckboxColumn(width=64, help="take part in the fusion"),
            "judge": config.TextColumn(width=250),
            "kind": config.TextColumn(width=128),
            "calls an item": config.NumberColumn(format="%.3g", width=96, help="what one score costs; — is not known"),
            "needs": config.TextColumn(width=96, help="what scoring one more item takes, beside the text itself"),
            "scored": config.NumberColumn(width=64),
            "labels seen": config.NumberColumn(
                width=90, help="labels that chose or fitted it; their sources are left aside for every part"
            ),
            "what it is": config.TextColumn(width="large"),
        },
    )
    return tuple(entry for entry, ticked in zip(judges, chosen["part"], strict=True) if ticked)


def _needs(entry: JudgeEntry) -> str:
    """What scoring another item with it takes, as far as its kind tells."""
    if entry.judge.kind != "metric":
        return NEEDS.get(entry.judge.kind, tables.DASH)
    if entry.name.startswith("metric_"):
        return "the column"
    try:
        needs = make_metric(entry.name, aspect="quality").needs
    except ConcordError:  # renamed meanwhile: nothing tells how it came about
        return tables.DASH
    return ", ".join(sorted(needs)) or "nothing"


def choose_settings(page: Opened, view: GoldenSummary, aspect: str) -> StackSettings:
    """Method, statistic, level and the share that weights are learnt on."""
    levels: list[Level] = ["dataset", *(["sample"] if view.n_sources < view.n_items else [])]  # type: ignore[list-item]
    levels += ["system"] if view.n_systems > 1 else []
    usual = usual_level(compare_view.kept_golden(view.golden_id, page), aspect)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        method = st.segmented_control(
            "Show the fusion by",
            METHODS,
            default="ridge",
            required=True,
            format_func=lambda method: METHOD_WORDS[method].removesuffix(" weights"),
            key=state.widget("fusion_method"),
            help=METHOD_HELP,
        )
        statistic = st.segmented_control(
            "Statistic",
            STATISTICS,
            default="spearman",
            required=True,
            format_func=lambda statistic: STATISTIC_NAMES[statistic],
            key=state.widget("fusion_statistic"),
        )
        level = st.segmented_control(
            "Level",
            levels,
            default=usual if usual in levels else "dataset",
            required=True,
            format_func=lambda level: LEVEL_NAMES[level].removesuffix(" level"),
            key=state.widget(f"fusion_level_{view.golden_id[-12:]}_{aspect}"),
            help="Dataset: one coefficient over all items. Sample: one a source, averaged. System: over system means.",
        )
    return StackSettings(method=method, statistic=statistic, level=level)


def fuse(
    page: Opened,
    view: GoldenSummary,
    aspect: str,
    *,
    judges: Sequence[JudgeEntry],
    chosen: Sequence[JudgeEntry],
    settings: StackSettings,
) -> Fused:
    """Every fusion of the `chosen` of `judges`, the plain judges beside them, computed once for its content."""
    taken = {entry.judge_id for entry in chosen}
    shown = [
        entry
        for entry in judges
        if entry.judge.kind == "no criteria" or (entry.judge.kind == "fused" and entry.judge.run_id)
    ]
    beside = [entry for entry in shown if entry.judge_id not in taken]
    names = _names([*chosen, *beside])
    ids = tuple(entry.judge_id for entry in chosen), tuple(entry.judge_id for entry in beside)
    key = (view.golden_id, aspect, ids, tuple(names.values()), settings.statistic, settings.level)
    golden = compare_view.kept_golden(view.golden_id, page)
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
    _settings: StackSettings,
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


def draw_finding(fused: Fused) -> None:
    """What the table says, in words for whoever looks over a shoulder."""
    shown = fused.shown
    with st.container(border=True):
        st.subheader(plain(headline(fused)), anchor=False)
        unseen = "whose labels none of the parts, and not the weights, have seen"
        st.markdown(
            plain(
                f"{fused.measure} with people, on {len(shown.report):,} items {unseen}. {len(shown.fit):,} items of "
                "other sources were used to fit and to choose."
            )
        )
        for note in shown.notes:
            st.markdown(f":material/info: {plain(note)}")
        for name, why in shown.left_out.items():
            st.markdown(f":material/block: {plain(f'{name} takes no part: {why}.')}")
        for method, why in fused.table.failed.items():
            st.markdown(f":material/block: {plain(f'No fusion by {METHOD_WORDS[method]}: {why}')}")
        for name, why in fused.table.not_beside.items():
            st.markdown(f":material/block: {plain(f'{name} is not in the table: {why}.')}")


def headline(fused: Fused) -> str:
    """One sentence: the fusion beside the part that stood highest on the items to fit on."""
    shown = fused.shown
    value, against = shown.fused.value, shown.against_best
    how = METHOD_WORDS[shown.method]
    if value is None or against is None or against.value is None:
        return f"The fusion ({how}) has no defined agreement on these items: {shown.fused.reason or 'too few items'}"
    best = shown.parts[shown.best_part].value
    beside = "—" if best is None else f"{best:.2f}"
    tested = claim(against.value, against.interval, against.p)
    part = f"{shown.best_part}, its highest part on the items to fit on"
    if tested in ("higher", "lower"):
        word = "better with people than" if tested == "higher" else "less with people than"
        return f"The fusion ({how}) agrees {word} {part}: {value:.2f} against {beside}."
    chance = "The difference may be chance"
    said = f"The difference is not tested: {against.p_reason or NO_TEST}" if tested == "untested" else chance
    return f"The fusion ({how}) reaches {value:.2f}; {part}, {beside}. {said}."


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
            "beside the best part": [row[3] for row in rows],
            "n": [row[2].n for row in rows],
            "no score": [row[2].n_unscored for row in rows],
            "role": [row[1] for row in rows],
        }
    )


def _role(name: str) -> str:
    return LLM_FUSION if name.startswith(LLM_FUSION) else "plain judge"


def difference_words(difference: Difference | None) -> str:
    """`+0.062 [+0.02, +0.10], p = .004`; "—" where undefined."""
    if difference is None or difference.value is None:
        return tables.DASH
    ends = "" if difference.interval is None else f" [{difference.interval.low:+.2f}, {difference.interval.high:+.2f}]"
    return f"{difference.value:+.3f}{ends}, {'no test' if difference.p is None else p_figure(difference.p)}"


def draw_table(fused: Fused) -> None:
    """The one table, and the same with whiskers."""
    frame = table_frame(fused)
    heading = frame.columns[1]
    config = st.column_config
    st.dataframe(
        frame,
        hide_index=True,
        height=tables.height_for(len(frame), 16, ROW),
        placeholder=tables.DASH,
        column_config={
            "judge": config.TextColumn(width=210),
            heading: config.NumberColumn(format="%.3f", width=124, help=f"alignment with people: {fused.measure}"),
            "interval": config.TextColumn(
                "95 % interval",
                width=108,
                help="over sources: t at sample level, jackknife at dataset level, bootstrap error at system level",
            ),
            "beside the best part": config.TextColumn(
                width=236,
                help="fusion minus that part: paired test over sources, corrected after Holm; none under 8 sources",
            ),
            "n": config.NumberColumn(width=54, format="localized"),
            "no score": config.NumberColumn(width=76, help="labelled items without a score; never counted as 0"),
            "role": config.TextColumn(width=96),
        },
        alt=f"Fusions and their parts by {fused.measure}",
    )
    st.markdown(f"**{plain(fused.measure)}**, n = {fused.shown.fused.n:,}, with 95 % intervals")
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


def _names(judges: Sequence[JudgeEntry]) -> dict[str, str]:
    return dict(zip((entry.judge_id for entry in judges), unique_names([entry.judge for entry in judges]), strict=True))
