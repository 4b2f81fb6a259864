"""Test a judge of this project: repeat its scores, score damaged texts, and try other models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from core import projects
from core.comparison.switching import MOST
from core.errors import ConcordError
from core.findings.over_time import model_names, steadiness_finding, switch_finding
from core.findings.weak_spots import controls_finding
from core.judging.judge_protocol import CallEstimate
from core.project_records import JUDGES, JudgeEntry, Run, RunKind
from core.projects.calibration import VersionRequest
from core.projects.judge_line import JudgeVersion
from core.projects.method_runs import ControlsRequest, RepeatRequest, SwitchRequest
from core.stats import Difference
from core.wording import change_figures, consistent_interval, money, p_figure, percent, price_words
from pages.compare.choices import tell
from pages.ui import grid, run_panel, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.screens import go, plain


def draw(page: Opened, entry: JudgeEntry) -> None:
    """Draw the newest result of a test or its run in progress, and the start button with the price."""
    run_id = entry.judge.run_id
    if entry.judge.kind != "calibrated" or not run_id or page.store.runs.get(run_id).kind not in JUDGES:
        st.info(
            "Choose a judge that was calibrated in this project. Concord can't rerun other judges.",
            icon=":material/repeat:",
        )
        return
    run = page.store.runs.get(run_id)
    for name, draw_one in (
        ("Steadiness", _draw_steadiness),
        ("Spoiled texts", _draw_controls),
        ("Other models", _draw_models),
    ):
        st.subheader(name, anchor=False)
        draw_one(page, run)


def _draw_steadiness(page: Opened, run: Run) -> None:
    found = projects.steadiness_of(page.store, run.run_id)
    if found is not None:
        said = steadiness_finding(found)
        tell(said)
        if said.next_step:
            st.markdown(plain(said.next_step))
        if found.changed_share:
            table = {
                "samples": [1, *(each.samples for each in found.forecasts)],
                "reliability": [found.reliability, *(each.reliability for each in found.forecasts)],
                "held-out agreement": [found.alignment, *(each.alignment for each in found.forecasts)],
            }
            columns = {
                "reliability": Column(digits=2, help="Reliability of the mean of this many samples"),
                "held-out agreement": Column(digits=2, help="Measured for one sample, and estimated for more than one"),
            }
            grid.draw(table, columns, alt="Reliability and expected agreement of the mean of several samples")
    if _draw_running(page, "repeat", run.run_id):
        return
    request = RepeatRequest(run.project_id, run.golden_id, run.aspect, run.run_id)
    how = request.settings
    words = (
        f"How much do the scores change when the judge is asked again? The judge scores {how.items} calibration "
        f"items {how.times} times, without using cached replies."
    )
    _draw_start(page, "repeat", request, words)


def _draw_controls(page: Opened, run: Run) -> None:
    found = projects.controls_of(page.store, run.run_id)
    if found is not None:
        st.markdown(f"##### {plain(controls_finding(found).headline)}")
        ends = [control.interval for control in found]
        table = {
            "spoiled text": [control.kind for control in found],
            "judge prefers it": [percent(control.preferred) for control in found],
            "95 % interval": [
                tables.DASH if each is None else f"{percent(each.low)} to {percent(each.high)}" for each in ends
            ],
            "pairs": [control.n for control in found],
            "without a score": [control.n_unscored for control in found],
        }
        grid.draw(table, alt="How often the judge prefers a spoiled text to the original")
        st.caption(
            "Concord compares the score of each spoiled text with that of its original. Equal scores count as half."
        )
        return  # the same texts would give the same result
    if _draw_running(page, "controls", run.run_id):
        return
    request = ControlsRequest(run.project_id, run.golden_id, run.aspect, run.run_id)
    words = (
        f"Does the judge notice texts that are clearly worse? Concord spoils {request.items} highly rated "
        "calibration items. It changes numbers, deletes a sentence, repeats the text, or swaps in a text about "
        "another source."
    )
    _draw_start(page, "controls", request, words)


def _draw_models(page: Opened, run: Run) -> None:
    found = projects.models_tried(page.store, run.run_id)
    if found is not None:
        tell(switch_finding(found))
        line = projects.judge_line(page.store, run.project_id, run.aspect)
        own = line.of_run(run.run_id)
        ids = () if own is None else own.criteria_ids
        moved = {each.made.judge_spec: each for each in line.versions if each.criteria_ids == ids}
        runs = [each.newest.run_id if (each := moved.get(one.judge)) and each.newest else "" for one in found]
        runs[0] = run.run_id
        steady = [projects.steadiness_of(page.store, run_id) if run_id else None for run_id in runs]
        names = model_names(found)
        table = {
            "model": names,
            "held-out": [one.held_out.value for one in found],
            "95 % interval": [tables.interval_of(one.held_out) for one in found],
            "difference": [_change(one.difference, one.p_holm) for one in found],
            "p (Holm)": [p_figure(one.p_holm, tables.DASH) for one in found],
            "calibration": [one.calibration.value for one in found],
            "per 1,000": [money(one.cost) for one in found],
            "unread": [percent(one.unread_share) for one in found],
        }
        if any(steady):
            table["unsteady"] = [percent(each.changed_share if each else None) for each in steady]
        if all(one.p_holm is None for one in found):
            del table["p (Holm)"]  # the detail above explains why it is missing
        columns = {
            "held-out": Column(digits=2, help="Agreement with raters on held-out items. Report this figure."),
            "difference": Column(
                help="Held-out agreement of this model minus that of the judge's own model, on items scored by both."
            ),
            "calibration": Column(digits=2, help="Agreement on the items used to choose the criteria (optimistic)."),
            "per 1,000": Column(help="Price of scoring 1,000 items without cached replies."),
            "unread": Column(help="Share of items without a score."),
            "unsteady": Column(help="Share of items whose score changes when Concord asks the model again."),
        }
        grid.draw(table, columns, alt="Agreement and price of other models with the same criteria")
        for name, one in list(zip(names, found, strict=True))[1:]:
            if one.held_out.value is not None:
                _draw_model(page, run, one.judge, name, own=own, moved=moved.get(one.judge))
    if _draw_running(page, "switch", run.run_id):
        return
    st.caption("Does another model agree better with raters? Concord scores all labelled items with the same criteria.")
    if specs := _choose_models(page, run):
        request = SwitchRequest(run.project_id, run.golden_id, run.aspect, run.run_id, specs)
        _draw_start(page, "switch", request, "This uses the held-out items once more.")


def _change(gap: Difference | None, p: float | None) -> str:
    return (
        tables.DASH
        if gap is None or gap.value is None
        else change_figures(gap.value, consistent_interval(gap.interval, p))
    )


def _draw_model(
    page: Opened, run: Run, spec: str, name: str, *, own: JudgeVersion | None, moved: JudgeVersion | None
) -> None:
    """Draw the next steps for a model: a version with the criteria of `own` (or the existing `moved`), a calibration.

    Args:
        spec: SPEC of the model.
        name: Its name on screen.
    """
    place = {"golden": run.golden_id, "aspect": run.aspect}

    def show(_run_id: str) -> None:
        versions = projects.judge_line(page.store, run.project_id, run.aspect).versions
        go("overview", version=str(len(versions)), **place)

    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.text(name, width=180)
        if moved is not None:
            words = moved.name.capitalize()
            link_to("overview", words, icon=":material/verified:", version=str(moved.number), **place)
        elif own is not None:
            base, ids = own.made.base_run, own.criteria_ids
            request = VersionRequest(run.project_id, run.aspect, ids, run.golden_id, base, judge_spec=spec)
            try:
                estimate = projects.estimate_version(page.store, page.settings, request)
            except ConcordError as error:
                st.caption(plain(str(error)), width="stretch")
                return
            run_panel.draw_start(
                page,
                "Save as a version",
                lambda: projects.make_version(page.store, page.settings, request, origin="switch", note=name),
                show,
                icon=":material/add:",
                key=state.widget(f"compare_version_{spec}"),
                kind="secondary",
            )
            st.caption(plain(f"at most {estimate.calls:,} scores{price_words(estimate.cost)}"), width="content")
        form = {"section": run_panel.NEW, "judge": spec}
        link_to("calibrate", "Calibrate with this model", icon=":material/tune:", **place, **form)


def _choose_models(page: Opened, run: Run) -> tuple[str, ...]:
    """Let the user choose models; typed ones must use an endpoint, so that nobody can open files of the server."""
    runs = page.store.runs.all(run.project_id)
    asked = {
        each.judge_spec for each in runs if each.judge_spec.startswith("openai:") and not page.project.came_with(each)
    }
    known = [*sorted(asked), *(f"hf:{name}" for name in page.settings.local_models), "offline"]
    picked = st.multiselect(
        "Models to try",
        [spec for spec in known if spec != run.judge_spec],
        max_selections=MOST,
        accept_new_options=True,
        placeholder="Choose a model, or type openai:MODEL or openai:MODEL@URL",
        key=state.widget(f"compare_models_{run.run_id}"),
    )
    if any(spec not in known and not spec.startswith("openai:") for spec in picked):
        st.warning("Type a model as openai:MODEL or openai:MODEL@URL. Choose other models from the list.")
        return ()
    return tuple(picked)


STARTS: dict[RunKind, tuple[Callable[..., CallEstimate], str, str]] = {
    "repeat": (projects.estimate_repeat, "Ask the judge again", ":material/repeat:"),
    "controls": (projects.estimate_controls, "Judge spoiled texts", ":material/content_cut:"),
    "switch": (projects.estimate_switch, "Try these models", ":material/swap_horiz:"),
}
"""Kind of run → its estimate, and label and icon of the button that starts it."""


def _draw_running(page: Opened, kind: RunKind, run_id: str) -> bool:
    """Draw the newest run of a kind on `run_id` unless it is done; return whether it is running."""
    last = projects.last_run_on(page.store, kind, run_id)
    if last is not None and last.status != "done":
        run_panel.follow_run(page, last.run_id)
    return last is not None and not last.finished


def _draw_start(page: Opened, kind: RunKind, request: Any, words: str) -> None:
    """Draw `words` with calls and price, and the button that starts the run."""
    estimated, label, icon = STARTS[kind]
    try:
        estimate = estimated(page.store, page.settings, request)
    except ConcordError as error:
        st.info(plain(str(error)), icon=icon)
        return
    st.caption(plain(f"{words} Concord makes at most {estimate.calls:,} calls{price_words(estimate.cost)}."))
    run_panel.draw_start(
        page,
        label,
        lambda: projects.start_run(page.store, page.settings, request),
        icon=icon,
        key=state.widget(f"compare_{kind}"),
        kind="secondary",
    )
