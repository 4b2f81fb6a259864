"""Probe a judge of this project: ask it again, show it spoiled texts, try other models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.findings.over_time import steadiness_finding
from core.findings.weak_spots import controls_finding
from core.judging.judge_protocol import CallEstimate
from core.project_records import JUDGES, JudgeEntry, Run, RunKind
from core.projects.method_runs import ControlsRequest, RepeatRequest
from core.wording import percent, price_words
from pages.compare.choices import tell
from pages.ui import grid, run_panel, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened
from pages.ui.screens import plain


def draw(page: Opened, entry: JudgeEntry, view: str) -> None:
    """Draw the newest result of a probe, a run in progress, and the button that starts one with its price."""
    run_id = entry.judge.run_id
    if entry.judge.kind != "calibrated" or not run_id or page.store.runs.get(run_id).kind not in JUDGES:
        st.info(
            "Choose a judge that was calibrated in this project. Concord can't ask other judges again.",
            icon=":material/repeat:",
        )
        return
    {"steady": _draw_steadiness, "spoiled": _draw_controls}[view](page, page.store.runs.get(run_id))


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
                "reliability": Column(digits=2, help="of the mean of this many samples"),
                "held-out agreement": Column(digits=2, help="measured for one sample, estimated for more"),
            }
            grid.draw(table, columns, alt="Reliability and expected agreement of the mean of several samples")
    request = RepeatRequest(run.project_id, run.golden_id, run.aspect, run.run_id)
    how = request.settings
    words = (
        f"How much do the scores change when the judge is asked again? Concord asks about {how.items} calibration "
        f"items {how.times} times, without cached replies."
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
        st.caption("Each spoiled text is judged next to its original. Equal scores count half.")
        return  # the same texts again would show the same
    request = ControlsRequest(run.project_id, run.golden_id, run.aspect, run.run_id)
    words = (
        f"Does the judge notice texts that are clearly worse? Concord takes {request.items} well-rated calibration "
        "items. It changes their numbers, deletes a sentence, repeats the text, or swaps in the text of another "
        "source."
    )
    _draw_start(page, "controls", request, words)


STARTS: dict[RunKind, tuple[Callable[..., CallEstimate], str, str]] = {
    "repeat": (projects.estimate_repeat, "Ask the judge again", ":material/repeat:"),
    "controls": (projects.estimate_controls, "Judge spoiled texts", ":material/content_cut:"),
}
"""Kind of run → its estimate, and label and icon of the button that starts it."""


def _draw_start(page: Opened, kind: RunKind, request: Any, words: str) -> None:
    """Draw a run in progress or, without one, the `words` with calls and price, and the button."""
    estimated, label, icon = STARTS[kind]
    last = projects.last_run_on(page.store, kind, request.run_id)
    if last is not None and last.status != "done":
        run_panel.follow_run(page, last.run_id)
        if not last.finished:
            return
    try:
        estimate = estimated(page.store, page.settings, request)
    except ConcordError as error:
        st.info(plain(str(error)), icon=icon)
        return
    st.caption(plain(f"{words} This takes {estimate.calls:,} calls{price_words(estimate.cost)}."))
    run_panel.draw_start(
        page,
        label,
        lambda: projects.start_run(page.store, page.settings, request),
        icon=icon,
        key=state.widget(f"compare_{kind}"),
    )
