"""Draw the result of a fusion of the chosen parts: the finding, a chart with intervals, a table and buttons."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.fusion.fusion_settings import FusionSettings
from core.fusion.stack import Fusion
from core.project_records import GoldenSummary, JudgeEntry
from core.records import Alignment
from core.report.figures import measure_name
from core.report.figures.whiskers import leaderboard_figure
from core.stats import Difference, claim
from core.wording import capital, difference_figures, number
from pages.fusion.parts import METHOD_WORDS, Choice, names_of
from pages.ui import charts, grid, people, state, tables
from pages.ui.cached import cached
from pages.ui.grid import Column
from pages.ui.page import Opened
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing

TABLE_COLUMNS = {
    "judge": Column(width=210),
    "interval": Column(
        "95 % interval",
        help="Computed over sources: t interval (sample level), jackknife (dataset level) or bootstrap (system level)",
    ),
    "loss if removed": Column(help="Agreement of the whole fusion minus that of a fusion without this part"),
    "weight": Column(
        digits=2, help="Change in the label, in points, if this part's score rises by one standard deviation"
    ),
    "no score": Column(help="Number of labelled items without a score. They don't count as 0."),
}


@dataclass(frozen=True)
class Fused:
    """A fusion with its parts and settings; `key` identifies its content for the cache."""

    view: GoldenSummary
    aspect: str
    parts: tuple[JudgeEntry, ...]
    names: Mapping[str, str]
    settings: FusionSettings
    fusion: Fusion
    key: tuple[Hashable, ...]

    @property
    def measure(self) -> str:
        return measure_name(self.settings.statistic, self.settings.level)


def fuse(page: Opened, view: GoldenSummary, aspect: str, choice: Choice) -> Fused:
    """Fuse the chosen parts; results are cached for each choice."""
    names, how = names_of(page, choice.parts), choice.settings
    where = (page.project.project_id, view.golden_id, aspect)
    key = ("fusion", *where, *names, *names.values(), how.method, how.statistic, how.level)

    def compute() -> Fusion:
        return projects.fuse_judges(page.store, *where, judge_ids=list(names), settings=how)

    return Fused(view, aspect, choice.parts, names, how, cached(key, compute), key)


def headline(fused: Fused) -> str:
    """Return a sentence on whether the fusion agrees better with raters than its best part does."""
    shown, against = fused.fusion, fused.fusion.against_best
    if shown.fused.value is None or against is None or against.value is None:
        return "The fusion's agreement with raters is undefined."
    how = {
        "higher": "The fusion agrees better with raters than its best part does",
        "lower": "The fusion agrees less well with raters than its best part does",
        "untested": "The fusion isn't tested against its best part",
    }.get(claim(against.value, against.interval, against.p), "No clear difference between the fusion and its best part")
    return f"{how}: {number(shown.fused.value)} and {number(shown.parts[shown.best_part].value)}."


def draw(page: Opened, fused: Fused) -> None:
    """Draw the chart with intervals, the table, and a download button for each saved fusion."""
    _draw_notes(fused)
    figure = cached(("whiskers", *fused.key), lambda: _whiskers(fused))
    charts.place(figure, key="fusion_whiskers", alt=f"{fused.measure} of the fusion and its parts")
    frame = table_frame(fused)
    heading = Column(digits=2, help=f"Agreement with raters: {fused.measure}")
    columns = TABLE_COLUMNS | {str(frame.columns[1]): heading}
    grid.draw(frame, columns, alt=f"The fusion and its parts by {fused.measure}", rows=16)
    for judge in page.store.judges.all(page.project.project_id, fused.view.golden_id, fused.aspect):
        if judge.judge.kind != "fused":
            continue
        try:
            text = projects.fused_file(page.store, page.project.project_id, judge.judge_id)
        except ConcordError:
            continue  # no file: it was imported, is an overall score, or lost a part
        st.download_button(
            plain(f"Download {judge.name}"),
            data=text,
            file_name="fused.yaml",
            mime="application/yaml",
            icon=":material/download:",
            on_click="ignore",
            key=state.widget(f"fusion_file_{judge.judge_id}"),
            help="To score other items, run: python -m core score ITEMS --judge-file fused.yaml --out verdicts.jsonl",
        )


def _draw_notes(fused: Fused) -> None:
    """Draw the statistic of the finding, its n and interval, and the parts left out."""
    shown, ends, against = fused.fusion, fused.fusion.fused.interval, fused.fusion.against_best
    system = fused.settings.level == "system"
    over = f"{shown.fused.n} systems with {len(shown.report):,}" if system else f"{len(shown.report):,}"
    words = [
        f"{fused.measure}, n = {over} items whose labels weren't used to fit any part or weight. The weights were "
        f"fitted on {len(shown.fit):,} items from other sources. On those items, the best part was {shown.best_part}."
    ]
    if shown.fused.value is None:
        words.insert(0, f"{capital(shown.fused.reason or 'too few items')}.")
    elif against is not None and against.value is not None:
        words.append(f"Fusion minus the best part: {difference_words(against)}.")
    if system and ends:
        words.append(f"The interval applies only to these systems (method: {ends.method}).")
    untested = {minus.p_reason for _, minus in shown.without.values() if minus.p is None}
    words += [f"Rows without a p-value: {reason}." for reason in untested if reason]
    words += shown.notes
    words += [f"{name} was left out: {why}." for name, why in shown.left_out.items()]
    st.caption(plain(" ".join(words)))


def table_frame(fused: Fused) -> pd.DataFrame:
    """Return a table of the fusion and its parts, highest agreement first."""
    shown = fused.fusion
    # the notes give the reason for a missing p once
    lost = {name: difference_words(minus).partition(", no p")[0] for name, (_, minus) in shown.without.items()}
    weights = dict(shown.weights) if shown.method != "average" else {}
    parts = sorted(shown.parts.items(), key=lambda pair: -_height(pair[1]))
    names, alignments = [_name(shown), *(name for name, _ in parts)], [shown.fused, *(each for _, each in parts)]
    roles = dict.fromkeys(shown.left_out, "left out") | {names[0]: "fusion", shown.best_part: "best part"}
    frame = {
        "judge": names,
        tables.measure_heading(shown.fused): pd.Series([each.value for each in alignments], dtype="float64"),
        "interval": [tables.interval_of(each) for each in alignments],
        "loss if removed": [lost.get(name, "") for name in names],
        "weight": pd.Series([weights.get(name) for name in names], dtype="float64"),
        "n": [each.n for each in alignments],
        "no score": [each.n_unscored for each in alignments],
        "role": [roles.get(name, "part") for name in names],
    }
    table = pd.DataFrame(frame)
    # the line above has n, so a column of equal numbers adds nothing
    same = [name for name in ("n", "no score") if table[name].nunique() == 1 and not table["no score"].any()]
    return table.drop(columns=same + ([] if weights else ["weight"]))


def _name(fusion: Fusion) -> str:
    return f"fusion, {METHOD_WORDS[fusion.method]}"


def difference_words(difference: Difference | None) -> str:
    """Return a difference as text, for example `+0.062 [+0.020, +0.100], p = 0.004`; "—" if undefined."""
    if difference is None or difference.value is None:
        return tables.DASH
    return difference_figures(difference.value, difference.interval, difference.p, difference.p_reason)


def _height(alignment: Alignment) -> float:
    return -2.0 if alignment.value is None else alignment.value


def _whiskers(fused: Fused) -> Drawing:
    fusion = fused.fusion
    return leaderboard_figure({_name(fusion): fusion.fused} | dict(fusion.parts), None, measure=fused.measure)


def draw_keep(page: Opened, fused: Fused) -> None:
    """Draw the button that saves the fusion as a judge."""
    shown = fused.fusion
    with st.popover("Save as a judge", icon=":material/bookmark_add:", key=state.closing("fusion_keep")):
        st.markdown(
            "Once the fusion is saved, you can compare it with other judges, or download it to score other items."
        )
        name = st.text_input(
            "Name", value=shown.judge.name, max_chars=120, key=state.widget(f"fusion_name_{shown.method}")
        )
        if not people.button(
            page, "reviewer", "Save", disabled=not name.strip(), type="primary", icon=":material/save:"
        ):
            return
        try:
            kept_id = projects.save_fusion(
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
            said = f"{kept} was saved as a judge" if new else f"This fusion is already saved as {kept}"
            state.set_notice(f"{said}. Compare it on the Compare page, or download it below.", good=True)
        except ConcordError as error:
            state.set_notice(f"The fusion wasn't saved: {error}", good=False)
        st.rerun()
