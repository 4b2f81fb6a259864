"""Draw the ablation of a calibrated judge: what each part of the judge adds."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core import projects
from core.calibration.ablate import Ablation
from core.errors import ConcordError
from core.project_records import Run
from core.projects.method_runs import AblationRequest
from core.report.figures import describe, measure_name
from core.stats import claim
from core.wording import consistent_interval, signed_range
from pages.ui import forms, grid, run_panel, state
from pages.ui.cached import cached
from pages.ui.grid import Column
from pages.ui.page import Opened
from pages.ui.screens import plain

COLUMNS = {
    "calibration": Column(help="Agreement on the items used to choose the criteria (optimistic)"),
    "held-out": Column(help="Agreement on items that weren't used to choose the criteria. Report this figure."),
    "n": Column(help="held-out items"),
    "unread": Column(help="Number of items without a readable score. Concord never guesses a score."),
    "minus final": Column(digits=2, signed=True),
    "p": Column("p (Holm)", digits=3),
}


def draw(page: Opened, run: Run) -> None:
    """Draw the ablation of a finished calibration: its result, its progress, or its cost and the start button."""
    st.markdown("**Contribution of each part**")
    last = projects.last_run_on(page.store, "ablation", run.run_id)
    if last is not None and not last.finished:
        run_panel.follow_run(page, last.run_id)
        return
    outcome = None if last is None else run_panel.read_run(page, last.run_id).outcome
    if last is not None and isinstance(outcome, Ablation):
        _draw_table(outcome)
        return
    if last is not None:
        run_panel.draw_status(page, last)
    request = AblationRequest(run.project_id, run.golden_id, run.aspect, run.run_id)
    try:
        # cached, because the estimate renders every prompt and a finished calibration doesn't change
        estimate = cached(
            ("ablation", run.run_id), lambda: projects.estimate_ablation(page.store, page.settings, request)
        )
    except ConcordError as error:
        st.warning(plain(str(error)), title="You can't run an ablation now", icon=":material/warning:")
        return
    st.caption(
        "Measure variants of the judge: without criteria, without refinement, with only the best set of criteria, and "
        "without each optional part of the prompt. This uses the held-out items once more."
    )
    forms.show_estimate(estimate)
    run_panel.draw_start(
        page,
        "Run the ablations",
        lambda: projects.start_run(page.store, page.settings, request),
        key=state.widget("analyses_start"),
    )


def _draw_table(ablation: Ablation) -> None:
    """Draw a table of all variants, which of them differ significantly, and the note on held-out items."""
    held = ablation.rows[0].held_out
    measure = measure_name(held.statistic, held.level)
    found = {row.key: claim(row.difference, row.interval, row.p_holm) for row in ablation.rows[1:]}
    words = " ".join(
        f"Significantly {way} agreement than the final judge: {', '.join(keys)}."
        for way in ("lower", "higher")
        if (keys := [key for key, claimed in found.items() if claimed == way])
    )
    words = words or "No variant differs significantly from the final judge."
    st.subheader(plain(words), anchor=False)
    method = f" by {held.interval.method}" if held.interval else ""
    st.caption(
        plain(
            f"{measure}, n = {held.n:,}; 95 % intervals{method}. Each difference is the variant's agreement "
            "minus that of the final judge on the same held-out items, paired by source. The p-values are "
            f"Holm-corrected for {len(ablation.rows) - 1} comparisons."
        )
    )
    frame = pd.DataFrame(
        [
            {
                "variant": "final judge" if row.key == "final" else row.key,
                "calibration": describe(row.calibration),
                "held-out": describe(row.held_out),
                "n": row.held_out.n,
                "unread": row.held_out.n_unscored + row.calibration.n_unscored,
                "minus final": row.difference,
                "95 % interval": signed_range(consistent_interval(row.interval, row.p_holm)),
                "p": row.p_holm,
            }
            for row in ablation.rows
        ]
    )
    grid.draw(frame, COLUMNS, alt="Ablation table")
    notes = [
        f"{row.key}: {row.what}" + (f" Undefined: {row.reason}." if row.reason else "") for row in ablation.rows[1:]
    ]
    notes += [f"left out: {key}. {reason}" for key, reason in ablation.left_out.items()]
    st.text("\n".join(f"{line[0].upper()}{line[1:]}" for line in notes))
    st.caption(plain(ablation.opening))
