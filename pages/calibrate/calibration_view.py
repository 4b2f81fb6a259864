"""Draw a finished calibration: the finding and its chart, then its criteria, ranking, search and figures."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core import projects
from core.calibration.calibration_records import Calibration
from core.findings.agreement import gain_finding, gain_warning
from core.projects.calibration import CalibrationRequest
from core.projects.judge_line import JudgeVersion
from core.projects.start_and_resume import RunDetail
from core.report.figures import describe, measure_name
from core.wording import VERSION_STATES, counted, difference_figures, duration, judge_words, money
from pages.calibrate import ablation_view, ranking
from pages.overview import judge_view
from pages.ui import run_panel, state, tables
from pages.ui.page import Opened, finding, link_to
from pages.ui.screens import plain

FOLLOWS, RANKING, SEARCH, FIGURES = SECTIONS = (
    "The judge's criteria",
    "Ranking",
    "Search",
    "All figures",
)
DIFFER = "Where the judge and raters disagree"


def draw(page: Opened, view: RunDetail, result: Calibration) -> None:
    """Draw the finding, its chart and the next step, then the other results in sections."""
    line = judge_view.line_of(page, view.aspect)
    version = line.of_run(view.run_id)
    result = projects.drop_invalid_p(page.store, view.run_id, result)
    finding(sentence(result), step=lambda: _draw_next(view, version, waits=version in line.waiting))
    if view.status != "done":
        run_panel.draw_status(page, view)
    st.caption(plain(_measured(view, result, version)))
    warnings = [each for each in result.warnings if each != gain_warning(result.gain)]  # that one is shown above
    if warnings:
        st.caption(f":material/warning: {plain(' '.join(warnings))}")
    if isinstance(view.request, CalibrationRequest) and view.request.split_from:
        st.caption(f":material/call_split: {plain(kept_words(page, view.request.split_from))}")
    ranking.draw_sides(view, result)
    section = st.segmented_control(
        "More",
        SECTIONS,
        default=FOLLOWS,
        required=True,
        key=state.widget("calibration_section"),
        label_visibility="collapsed",
    )
    if section == RANKING and view.standing is not None:
        ranking.draw_ranking(page, view, view.standing)
    elif section == SEARCH and view.standing is not None:
        ranking.draw_search(page, view, view.standing)
    elif section == FIGURES:
        draw_figures(page, view, result)
        ablation_view.draw(page, view)
    else:
        _draw_criteria(page, view, result, version)


def sentence(result: Calibration) -> str:
    """Return a sentence on what calibration changed on held-out items."""
    if result.held_out.value is None:
        return f"Agreement with raters is undefined: {result.held_out.reason or 'too few items'}."
    return gain_finding(result.gain).headline


def kept_words(page: Opened, split_from: str) -> str:
    """Return a note saying that the held-out and calibration sources of an earlier golden set keep these roles."""
    earlier = run_panel.read_run(page, split_from)
    old = page.store.goldens.get(earlier.golden_id).name
    return (
        f"Sources that were held out in {old} stay held out, and the others stay in the calibration set. Concord "
        "splits only new sources."
    )


def _draw_next(view: RunDetail, version: JudgeVersion | None, *, waits: bool) -> None:
    if version is not None:
        words = f"Approve version {version.number}" if waits else f"Version {version.number}"
        at = {"golden": view.golden_id, "aspect": view.aspect, "version": str(version.number)}
        link_to("overview", words, icon=":material/verified:", **at)
    else:
        link_to("misaligned", DIFFER, icon=":material/difference:", run=view.run_id)


def _measured(view: RunDetail, result: Calibration, version: JudgeVersion | None) -> str:
    held, gain = result.held_out, result.gain
    change = difference_figures(gain.value, gain.interval, gain.p, gain.p_reason)
    offline = view.judge_spec == "offline"
    judge = "Judge: the offline judge, which isn't an LLM" if offline else f"Judge: {judge_words(view.judge_spec)}"
    made = f"Version {version.number}, {VERSION_STATES[version.state]}. " if version else ""
    return (
        f"{made}Aspect: {result.task.aspect}, from {result.golden_name}. Agreement: {describe(held)}; gain: "
        f"{change}. {measure_name(held.statistic, held.level)}, held-out items, n = {held.n:,}, 95 % intervals. "
        f"{judge}."
    )


def _draw_criteria(page: Opened, view: RunDetail, result: Calibration, version: JudgeVersion | None) -> None:
    """Draw the criteria of the final judge by name."""
    if not result.chosen:
        st.info("No criteria beat the baseline, so Concord chose none.", icon=":material/rule:")
        return
    names = ranking.names_of(page, view, result.candidates)
    best = result.chosen[0].criteria_id
    if len(result.chosen) > 1:
        st.caption(f"The judge's score is the mean of the scores for these {len(result.chosen)} sets of criteria.")
    for criteria in result.chosen:
        name = plain(tables.name_of(criteria, names))
        with st.expander(name, expanded=len(result.chosen) == 1, icon=":material/rule:"):
            st.text(criteria.text)
    _draw_shown(result)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        link_to("criteria", "Read and edit the criteria", icon=":material/edit:", run=view.run_id, criteria=best)
        if version is not None:  # otherwise it is the next step above
            link_to("misaligned", DIFFER, icon=":material/difference:", run=view.run_id, criteria=best)
        beside = {"golden": view.golden_id, "aspect": view.aspect}
        link_to("compare", "Compare with other judges", icon=":material/leaderboard:", **beside)
        st.download_button(
            "Download judge.yaml" if version and version.in_force else "Download judge.yaml (not approved)",
            data=lambda: projects.judge_file(page.store, view.run_id),
            file_name="judge.yaml",
            mime="application/yaml",
            icon=":material/download:",
            on_click="ignore",
        )


def _draw_shown(result: Calibration) -> None:
    """Draw what else the prompt contains: descriptions of levels, and rated examples."""
    if levels := result.task.levels:
        with st.expander("Level descriptions", icon=":material/anchor:"):
            st.text("\n".join(f"{level.value:g}: {level.text}" for level in levels))
    sampling = result.judge_state.get("sampling") or {}
    if examples := [each for each in sampling.get("examples", ()) if not each["spare"]]:
        nearest = sampling.get("nearest", 0)
        chosen = f"; the prompt for each item shows the {nearest} most similar examples" if nearest else ""
        title = counted(len(examples), "rated example") + chosen
        with st.expander(title, icon=":material/format_list_numbered:"):
            for each in examples:
                st.caption(f"Raters' label: {each['label']:.3g}")
                st.text(each["item"]["target"])


def draw_figures(page: Opened, view: RunDetail, result: Calibration) -> None:
    """Draw every figure with its n. Then list the skipped work, and the cost of the run."""
    base, best = result.no_criteria, result.best_single
    rows = {"the judge": (result.held_out, result.calibration)}
    if len(result.chosen) > 1:
        rows["best single criteria"] = (best.held_out, best.calibration)
    rows["baseline"] = (base.held_out, base.calibration)
    st.table(
        pd.DataFrame(
            {
                "held-out": [tables.describe_n(held) for held, _ in rows.values()],
                "calibration (optimistic)": [tables.describe_n(chosen) for _, chosen in rows.values()],
            },
            index=list(rows),
        )
    )
    took = duration(tables.seconds_taken(view, view.updated_at))
    facts = [result.settings.words, result.work.words, f"Cost: {money(view.usage.cost)}. Took {took}."]
    if result.problems:
        facts.append("Left out: " + "; ".join(f"{n} × {why}" for why, n in result.problems.items()) + ".")
    st.caption(plain(" ".join(facts)))
    for words in result.work.left_out:
        st.warning(plain(words), icon=":material/warning:")
    run_panel.note_imported(page, view)
