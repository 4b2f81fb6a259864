"""What a fusion of the chosen parts is worth: the finding, one axis with intervals, one table, contradictions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.fusion.fusion_settings import FusionSettings
from core.fusion.stack import Fusion, FusionTable, contradictions
from core.project_records import GoldenSummary, JudgeEntry
from core.records import Alignment, GoldenSet, JudgeKind
from core.report.figures import measure_name
from core.report.figures.whiskers import leaderboard_figure
from core.stats import NO_TEST, Difference, claim
from core.wording import change_figures, number, p_figure
from pages.compare.choices import kept_golden
from pages.fusion.parts import METHOD_WORDS, Choice, names_of
from pages.label import label_item
from pages.ui import charts, grid, people, state, tables
from pages.ui.cached import cached
from pages.ui.grid import Column
from pages.ui.page import Opened
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing

MOST_LISTED = 50
TABLE_COLUMNS = {
    "judge": Column(width=260),
    "interval": Column(
        "95 % interval",
        help="over sources: t at sample level, jackknife at dataset level, bootstrap error at system level",
    ),
    "compared with the best part": Column(
        help="fusion minus that part: paired test over sources, corrected after Holm; none under 8 sources"
    ),
    "fusion loses without it": Column(help="the whole fusion minus the fusion of the other parts, tested likewise"),
    "weight": Column(digits=2, help="points of the label for one standard deviation of the part"),
    "no score": Column(help="labelled items without a score; never counted as 0"),
}


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
    key: tuple[Hashable, ...]

    @property
    def measure(self) -> str:
        return measure_name(self.settings.statistic, self.settings.level)

    @property
    def shown(self) -> Fusion:
        """The fusion by the chosen method, or the first that could be made."""
        fusions = self.table.fusions
        return fusions.get(self.settings.method) or next(iter(fusions.values()))


def fuse(page: Opened, view: GoldenSummary, aspect: str, choice: Choice) -> Fused:
    """Compute every fusion of the chosen parts, once for each choice, next to the baselines and kept fusions."""
    settings = choice.settings
    rest = [entry for entry in choice.judges if entry not in choice.parts]
    beside = [
        one for one in rest if one.judge.kind == "no criteria" or (one.judge.kind == "fused" and one.judge.run_id)
    ]
    names = names_of([*choice.parts, *beside])
    part_ids, beside_ids = [one.judge_id for one in choice.parts], [one.judge_id for one in beside]
    key = (
        "fusion",
        view.golden_id,
        aspect,
        *part_ids,
        "",
        *beside_ids,
        *names.values(),
        settings.statistic,
        settings.level,
    )

    def compute() -> FusionTable:
        where = (page.store, page.project.project_id, view.golden_id, aspect)
        return projects.compare_fusions(*where, judge_ids=part_ids, settings=settings, beside=beside_ids)

    golden = kept_golden(view.golden_id, page)
    return Fused(view, golden, aspect, choice.parts, names, settings, cached(key, compute), (*key, settings.method))


def headline(fused: Fused) -> str:
    """Say what the fusion by the chosen method gains over the part that aligned best on the items to fit on."""
    shown, asked = fused.shown, fused.settings.method
    how, against, failed = METHOD_WORDS[shown.method], shown.against_best, ""
    if shown.method != asked:
        failed = f"There is no fusion by {METHOD_WORDS[asked]}: {fused.table.failed[asked].removesuffix('.')}. "
    if shown.fused.value is None or against is None or against.value is None:
        return f"{failed}Fused by {how}, the judges have no defined agreement: {shown.fused.reason or 'too few items'}."
    said = {
        "higher": "a significant gain",
        "lower": "a significant loss",
        "untested": f"the difference is not tested: {against.p_reason or NO_TEST}",
    }.get(claim(against.value, against.interval, against.p), "no significant difference")
    best = number(shown.parts[shown.best_part].value)
    words = f"Fused by {how}, agreement with raters is {number(shown.fused.value)}"
    return f"{failed}{words}. The best part, {shown.best_part}, has {best}: {said}."


def draw(page: Opened, fused: Fused) -> None:
    """Draw one axis with intervals, the table, the items on which the parts contradict, and the files of fusions."""
    _draw_notes(fused)
    figure = cached(("whiskers", *fused.key), lambda: _whiskers(fused))
    charts.place(figure, key="fusion_whiskers", alt=f"{fused.measure} of fusions and parts")
    frame = table_frame(fused)
    heading = Column(digits=2, help=f"alignment with raters: {fused.measure}")
    columns = TABLE_COLUMNS | {str(frame.columns[1]): heading}
    grid.draw(frame, columns, alt=f"Fusions and their parts by {fused.measure}", rows=16)
    _draw_contradictions(fused)
    for judge in page.store.judges.all(page.project.project_id, fused.view.golden_id, fused.aspect):
        if judge.judge.kind != "fused":
            continue
        try:
            text = projects.fused_file(page.store, page.project.project_id, judge.judge_id)
        except ConcordError:
            continue  # imported, an overall score, or a part was deleted: it has no file
        st.download_button(
            plain(f"File of {judge.name}"),
            data=text,
            file_name="fused.yaml",
            mime="application/yaml",
            icon=":material/download:",
            on_click="ignore",
            key=state.widget(f"fusion_file_{judge.judge_id}"),
            help="Scores other items: python -m core score ITEMS --judge-file fused.yaml --out verdicts.jsonl",
        )


def _draw_notes(fused: Fused) -> None:
    """Say what the figure of the finding is, and what it leaves out."""
    shown, ends = fused.shown, fused.shown.fused.interval
    system = fused.settings.level == "system"
    over = f"{shown.fused.n} systems, over their" if system else f"{len(shown.report):,}"
    words = [
        f"{fused.measure}, n = {over} items whose labels neither a part nor the weights have seen; "
        f"{len(shown.fit):,} of other sources to fit on. The best part is that on the items to fit on."
    ]
    if system and ends:
        words.append(f"The interval holds for these systems alone; it is that of a {ends.method}.")
    words += shown.notes
    words += [f"{name} takes no part: {why}." for name, why in shown.left_out.items()]
    failed = fused.table.failed.items()
    words += [f"No fusion by {METHOD_WORDS[how]}: {why}" for how, why in failed if how != fused.settings.method]
    words += [f"{name} is not compared: {why}." for name, why in fused.table.not_beside.items()]
    st.caption(plain(" ".join(words)))


def table_frame(fused: Fused) -> pd.DataFrame:
    """Fusions first, then parts from high to low, then baselines and kept fusions, all at one measure."""
    shown = fused.shown
    lost = {name: difference_words(minus) for name, (_, minus) in shown.without.items()}
    weights = dict(shown.weights) if shown.method != "average" else {}
    rows: list[tuple[str, str, Alignment, str]] = [
        (f"fusion, {METHOD_WORDS[method]}", "fusion", fusion.fused, difference_words(fusion.against_best))
        for method, fusion in fused.table.fusions.items()
    ]
    for name, alignment in sorted(shown.parts.items(), key=lambda pair: -_height(pair[1])):
        said = "highest part on the items to fit on" if name == shown.best_part else ""
        rows.append((name, "left out" if name in shown.left_out else "part", alignment, said))
    rows += [(name, _role(name), alignment, "") for name, alignment in fused.table.beside.items()]
    names = [name for name, *_ in rows]
    frame = {
        "judge": names,
        tables.measure_heading(shown.fused): pd.Series([row[2].value for row in rows], dtype="float64"),
        "interval": [tables.interval_of(row[2]) for row in rows],
        "compared with the best part": [row[3] for row in rows],
        "fusion loses without it": [lost.get(name, "") for name in names],
        "weight": pd.Series([weights.get(name) for name in names], dtype="float64"),
        "n": [row[2].n for row in rows],
        "no score": [row[2].n_unscored for row in rows],
        "role": [row[1] for row in rows],
    }
    if not weights:
        del frame["weight"]
    return pd.DataFrame(frame)


def difference_words(difference: Difference | None) -> str:
    """`+0.062 [+0.020, +0.100], p = 0.004`; "—" where undefined."""
    if difference is None or difference.value is None:
        return tables.DASH
    return f"{change_figures(difference.value, difference.interval)}, {p_figure(difference.p, 'no test')}"


def _role(name: str) -> str:
    return "fusion by a model" if name.startswith("LLM fusion") else "baseline"


def _height(alignment: Alignment) -> float:
    return -2.0 if alignment.value is None else alignment.value


def _whiskers(fused: Fused) -> Drawing:
    kinds = {fused.names[part.judge_id]: part.judge.kind for part in fused.parts}
    marks: list[tuple[str, JudgeKind, Alignment, None]] = [
        (f"fusion, {METHOD_WORDS[method]}", "fused", fusion.fused, None)
        for method, fusion in fused.table.fusions.items()
    ]
    marks += [(name, kinds.get(name, "imported"), alignment, None) for name, alignment in fused.shown.parts.items()]
    marks += [
        (name, "no criteria" if _role(name) == "baseline" else "fused", alignment, None)
        for name, alignment in fused.table.beside.items()
    ]
    marks.sort(key=lambda mark: -_height(mark[2]))
    return leaderboard_figure(marks, None, measure=fused.measure)


def draw_keep(page: Opened, fused: Fused) -> None:
    """Draw the button that keeps the shown fusion as a judge."""
    shown = fused.shown
    with st.popover("Keep as a judge", icon=":material/bookmark_add:", key=state.closing("fusion_keep")):
        st.markdown("The fused score joins the judges: on Compare next to the others, and as a file for other items.")
        name = st.text_input(
            "Name", value=shown.judge.name, max_chars=120, key=state.widget(f"fusion_name_{shown.method}")
        )
        if not people.button(
            page, "reviewer", "Keep", disabled=not name.strip(), type="primary", icon=":material/save:"
        ):
            return
        try:
            kept_id = projects.keep_fusion(
                page.store,
                page.project.project_id,
                fused.view.golden_id,
                fused.aspect,
                judge_ids=[part.judge_id for part in fused.parts],
                settings=replace(fused.settings, method=shown.method),
                name=name,
            )
            kept = page.store.judges.get(page.project.project_id, kept_id).judge.name
            new = kept == name.strip()
            said = f"{kept} is among the judges now" if new else f"This fusion was kept before, as {kept}"
            state.leave_notice(f"{said}: on Compare, and below as a file.", good=True)
        except ConcordError as error:
            state.leave_notice(f"The fusion was not kept: {error}", good=False)
        st.rerun()


def _draw_contradictions(fused: Fused) -> None:
    """List the items on which the parts disagree most, and show one of them with every part's score."""
    report = fused.shown.report
    judges = {fused.names[part.judge_id]: part.judge for part in fused.parts}
    positions = contradictions(list(judges.values()), report, MOST_LISTED)
    if not positions:
        return
    st.subheader("Where the parts contradict each other", anchor=False)
    st.caption("One part ranks these items high and another low. Ranks run from 0, the lowest, to 100.")
    ranks = {name: pd.Series(judge.upward).iloc[list(report)].rank() for name, judge in judges.items()}
    percent = {name: 100 * (rank - 1) / max(rank.count() - 1, 1) for name, rank in ranks.items()}
    labels = fused.golden.labels(fused.aspect)
    frame = pd.DataFrame(
        {
            "item": [fused.golden.items[k].item_id for k in positions],
            "raters": [labels[k] for k in positions],
            **{name: rank.loc[list(positions)].to_numpy() for name, rank in percent.items()},
        }
    )
    key = state.widget(f"fusion_items_{hash(fused.key) & 0xFFFFFF:x}")
    ids = [str(position) for position in positions]
    picked = grid.picked(key) or ids[0]
    picked = picked if picked in ids else ids[0]
    columns = {name: Column(digits=0, help="rank: 0 lowest, 100 highest") for name in judges}
    columns |= {"item": Column(width=170), "raters": Column(digits=2)}
    alt = "Items on which the parts contradict each other"
    grid.draw(frame, columns, alt=alt, rows=8, key=key, pick=grid.Pick(ids, picked))
    position = int(picked)
    item = fused.golden.items[position]
    with st.container(border=True):
        st.markdown(f"**{plain(item.item_id)}** · raters {labels[position]:.2f}")
        left, right = st.columns([3, 2], gap="large")
        with left:
            label_item.draw_parts(item, fused.golden.kind)
        with right:
            scores = pd.Series([judge.values[position] for judge in judges.values()], dtype="float64")
            alt = "Every part's score of this item"
            grid.draw(pd.DataFrame({"part": list(judges), "score": scores}), {"score": Column(digits=2)}, alt=alt)
