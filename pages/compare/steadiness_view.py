"""Ask a judge again about calibration items, and show how much its scores change."""

from __future__ import annotations

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.findings.over_time import steadiness_finding
from core.project_records import JUDGES, JudgeEntry
from core.projects.method_runs import RepeatRequest
from core.wording import price_words
from pages.compare.choices import tell
from pages.ui import grid, run_panel, state
from pages.ui.grid import Column
from pages.ui.page import Opened
from pages.ui.screens import plain


def draw(page: Opened, entry: JudgeEntry) -> None:
    """Draw the newest result, a run in progress, and the button that asks again with its price."""
    run_id = entry.judge.run_id
    if entry.judge.kind != "calibrated" or not run_id or page.store.runs.get(run_id).kind not in JUDGES:
        st.info("Choose a judge that was calibrated here: only those can be asked again.", icon=":material/repeat:")
        return
    found = projects.steadiness_of(page.store, run_id)
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
                "reliability": Column(digits=2, help="of the mean of so many samples"),
                "held-out agreement": Column(digits=2, help="measured with one sample, expected for more"),
            }
            grid.draw(table, columns, alt="Reliability and expected agreement of the mean of several samples")
    last = projects.last_run_on(page.store, "repeat", run_id)
    if last is not None and last.status != "done":
        run_panel.follow_run(page, last.run_id)
        if not last.finished:
            return
    run = page.store.runs.get(run_id)
    request = RepeatRequest(run.project_id, run.golden_id, run.aspect, run_id)
    try:
        estimate = projects.estimate_repeat(page.store, page.settings, request)
    except ConcordError as error:
        st.info(plain(str(error)), icon=":material/repeat:")
        return
    how = request.settings
    st.caption(
        plain(
            f"How much do the scores change when the judge is asked again? Concord asks about {how.items} calibration "
            f"items {how.times} times, without cached replies: {estimate.calls:,} calls{price_words(estimate.cost)}."
        )
    )
    run_panel.draw_start(
        page,
        "Ask the judge again",
        lambda: projects.start_run(page.store, page.settings, request),
        icon=":material/repeat:",
        key=state.widget("compare_repeat"),
    )
