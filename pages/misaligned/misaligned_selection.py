"""Choose what the Misaligned screen shows: a run, criteria that the run scored, and the triage of the items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from core import projects
from core.errors import NotFoundError
from core.project_records import WITH_RESULT, CriteriaEntry, Run
from core.projects.labelling import Triage
from core.projects.misaligned_items import MISALIGNED_FROM, ScoredItems
from core.wording import counted, number
from pages.ui import run_panel, state, tables
from pages.ui.chosen import choose_in_url, distinct
from pages.ui.page import Opened, finding, link_to

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

NOW_ALIGNED, NOW_MISALIGNED = "fixed", "broken"
SCORING = ("calibration", "rescore", "round", "version")


@dataclass(frozen=True)
class Selection:
    """Criteria that the Misaligned screen shows, with their scores and the triage of the items.

    Attributes:
        run: The run that scored the criteria.
        calibration_id: The calibration that the criteria come from.
        scored: The calibration items, largest gap between score and label first, unreadable replies last.
        triage: The users' triage of the items, by item id.
        changes: How items changed since the parent criteria, by item id; None if the run didn't score the parent.
        judge: Name of the judge version that uses the criteria.
    """

    page: Opened
    run: Run
    calibration_id: str
    criteria: CriteriaEntry
    scored: ScoredItems
    triage: Mapping[str, Triage]
    changes: Mapping[str, str] | None
    judge: str

    @property
    def about(self) -> tuple[str, str, str]:
        """The project, golden set and aspect that the triage belongs to."""
        return self.run.project_id, self.run.golden_id, self.run.aspect

    def afresh(self) -> Selection:
        """Return the selection with the current triage."""
        return replace(self, triage=projects.list_triage(self.page.store, *self.about))


def choose(page: Opened, row: DeltaGenerator) -> Selection | None:
    """Return the run and criteria in the URL, else those of the current judge.

    A popover in `row` lets the user choose others. Without a run, draws a link to Calibrate and returns None.
    """
    listed = page.store.runs.all(page.project.project_id)
    runs = {run.run_id: run for run in listed if run.kind in SCORING and run.status in WITH_RESULT}
    if not runs:
        running = next((run for run in listed if run.kind == "calibration" and not run.finished), None)
        if running is not None:
            st.info(
                "A calibration is running. When it is finished, misaligned items appear here.",
                icon=":material/difference:",
            )
            run_panel.follow_run(page, running.run_id)
        else:
            st.info(
                "No judge has scored items in this project yet. Calibrate a judge to see where it disagrees with "
                "the raters.",
                icon=":material/difference:",
            )
            link_to("calibrate", "Start a calibration", icon=":material/tune:")
        return None
    run = runs[_wanted_run(page, runs)]
    by_id = {entry.criteria_id: entry for entry in _scored_by(page, run)}
    words = distinct({run_id: run_panel.run_words(each) for run_id, each in runs.items()})
    with row.popover("Run and criteria", icon=":material/rule:", key=state.widget("misaligned_what")):
        choose_in_url("Run", "run", run.run_id, words)
        if not by_id:
            st.info("This run didn't finish scoring any criteria. Choose another run.", icon=":material/difference:")
            return None
        version = projects.judge_line(page.store, page.project.project_id, run.aspect).of_run(run.run_id)
        followed = () if version is None else version.criteria_ids
        usual = next((criteria_id for criteria_id in followed if criteria_id in by_id), next(iter(by_id)))
        linked = state.url_id("criteria") or usual
        chosen_id = linked if linked in by_id else usual
        words = criteria_words(page, by_id.values(), run.aspect)
        criteria = by_id[choose_in_url("Criteria", "criteria", chosen_id, words)]
        st.text(criteria.text or "This is the baseline, which has no criteria.")
    if linked not in by_id:
        st.warning(
            "This run didn't score the criteria in your link. Concord shows the run's best criteria instead.",
            icon=":material/link_off:",
        )
    calibration_id = run.run_id
    if run.kind != "calibration":  # a re-scoring, a round or a version belongs to a calibration
        calibration_id = str(getattr(projects.run_view(page.store, run.run_id).request, "run_id", ""))
    return Selection(
        page,
        run,
        calibration_id,
        criteria,
        _kept_scores(run.run_id, criteria.criteria_id, page),
        projects.list_triage(page.store, page.project.project_id, run.golden_id, run.aspect),
        _changes_since(run.run_id, criteria.criteria_id, criteria.parents, page),
        version.name.capitalize() if version is not None and criteria.criteria_id in followed else "The judge",
    )


def _wanted_run(page: Opened, runs: Mapping[str, Run]) -> str:
    """Return the run in the URL, else the newest that scored the criteria in the URL, else the current judge's."""
    linked, criteria_id = state.url_id("run"), state.url_id("criteria")
    if linked in runs:
        return str(linked)
    if linked:
        st.warning(
            "The linked run doesn't exist or hasn't finished. Concord shows another run instead.",
            icon=":material/link_off:",
        )
    elif criteria_id:
        for entry in page.store.criteria.all(page.project.project_id):
            for aligned in entry.alignments:
                if entry.criteria_id == criteria_id and aligned.side == "calibration" and aligned.run_id in runs:
                    return aligned.run_id
    newest = next((run for run in runs.values() if run.kind == "calibration"), next(iter(runs.values())))
    judges = projects.judge_runs(page.store, page.project.project_id, newest.golden_id, newest.aspect)
    return next((run.run_id for run in judges if run.run_id in runs), newest.run_id)


def _scored_by(page: Opened, run: Run) -> list[CriteriaEntry]:
    """Return the criteria that the run scored on calibration items, best first, with their alignment in this run."""
    scored = []
    for entry in page.store.criteria.all(page.project.project_id, run.aspect, run.golden_id):
        own = tuple(a for a in entry.alignments if (a.run_id, a.side) == (run.run_id, "calibration"))
        if own:
            scored.append(replace(entry, alignments=own))
    return tables.best_first(scored)


def criteria_words(page: Opened, entries: Iterable[CriteriaEntry], aspect: str) -> dict[str, str]:
    """Return a dict from criteria id to name and newest agreement, for example "version 2 · 0.83"."""
    said = projects.criteria_references(page.store, page.project.project_id, aspect)
    newest = {each.criteria_id: each.alignments[0].alignment.value if each.alignments else None for each in entries}
    return {criteria_id: f"{said[criteria_id]} · {number(value)}" for criteria_id, value in newest.items()}


@st.cache_resource(max_entries=64, show_spinner=False)
def _kept_scores(run_id: str, criteria_id: str, _page: Opened) -> ScoredItems:
    """Return the scores of a run, cached because those of a finished run don't change."""
    return projects.item_scores(_page.store, run_id, criteria_id)


@st.cache_resource(max_entries=320, show_spinner=False)
def changes(run_id: str, criteria_id: str, parent_id: str, _page: Opened) -> dict[str, str]:
    """Return a dict from item id to how the item changed since the parent criteria.

    Raises NotFoundError if the run didn't score both criteria.
    """
    changed = projects.item_changes(_page.store, run_id, criteria_id, parent_id)
    return {item_id: NOW_MISALIGNED if now else NOW_ALIGNED for item_id, now in changed.items()}


def _changes_since(run_id: str, criteria_id: str, parents: tuple[str, ...], page: Opened) -> dict[str, str] | None:
    for parent_id in parents:
        try:
            return changes(run_id, criteria_id, parent_id, page)
        except NotFoundError:
            continue
    return None


def draw_finding(selection: Selection, place: DeltaGenerator) -> None:
    """Draw the finding in `place`: on how many items judge and raters disagree, and how many are triaged."""
    scored, triage = selection.scored, selection.triage
    n, facts = len(scored.misaligned), []
    if n:
        found = [triage[item.item_id] for item in scored.misaligned if item.item_id in triage]
        facts = [
            f"Gap of at least {MISALIGNED_FROM:g} SD on {n} of {len(scored):,} calibration items",
            f"▲ {scored.counts['too lenient']} too lenient",
            f"▼ {scored.counts['too strict']} too strict",
            f"{sum(bool(known.verdict) for known in found)} of {n} triaged",
            f"{sum(known.picked for known in found)} picked",
        ]
    if scored.counts["unread"]:
        facts.append(f"{scored.counts['unread']} unreadable")
    with place.container(gap="xsmall"):
        if n:
            finding(f"{selection.judge} and raters disagree on {counted(n, 'item')}.")
        else:
            finding(f"{selection.judge} and raters agree on all {len(scored):,} calibration items.")
        st.caption(" · ".join(facts))
