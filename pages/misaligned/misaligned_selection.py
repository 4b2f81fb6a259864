"""What the Misaligned screen looks at: a run, criteria that it scored, and what people found on its items so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from core import projects
from core.errors import NotFoundError
from core.project_records import CriteriaEntry, Run
from core.projects.edit_scoring import ChangedItem
from core.projects.misaligned_items import ScoredItems, Triage
from core.wording import counted, number
from pages.ui import run_panel, state, tables
from pages.ui.chosen import choose_in_url, distinct
from pages.ui.page import Opened, link_to

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

ITEMS, LIST, ROUNDS = VIEWS = ("Items", "List", "Rounds")
NOW_ALIGNED, NOW_MISALIGNED = "now aligned", "now misaligned"
SCORING = ("calibration", "rescore", "round", "version")
CRITERIA_WORDS = 90


@dataclass(frozen=True)
class Selection:
    """What is looked at: criteria as a run scored them, the calibration behind that run, and what people found.

    `scored` are the calibration items, largest gap first; `changes` says which became aligned or misaligned
    since the parent, None where the run did not score the parent.
    """

    page: Opened
    run: Run
    calibration_id: str
    criteria: CriteriaEntry
    scored: ScoredItems
    triage: Mapping[str, Triage]
    changes: Mapping[str, str] | None

    @property
    def picked_ids(self) -> tuple[str, ...]:
        """Calibration items that people picked for the next round."""
        picked = {item_id for item_id, known in self.triage.items() if known.picked}
        return tuple(item.item_id for item in self.scored if item.item_id in picked) if picked else ()

    def afresh(self) -> Selection:
        """With what people have found by now."""
        found = projects.list_triage(self.page.store, self.run.project_id, self.run.golden_id, self.run.aspect)
        return replace(self, triage=found)

    @property
    def about(self) -> tuple[str, str, str]:
        """Project, golden set and aspect: what a verdict on an item holds for."""
        return self.run.project_id, self.run.golden_id, self.run.aspect


def choose(page: Opened, row: DeltaGenerator) -> Selection | None:
    """Run and criteria from the URL, else those of the judge in use; None with the way to a calibration.

    They are changed behind a button that goes into `row`.
    """
    runs = {
        run.run_id: run
        for run in projects.list_runs(page.store, page.project.project_id)
        if run.kind in SCORING and run.status in ("done", "budget")
    }
    if not runs:
        _draw_empty(page)
        return None
    wanted = _wanted_run(page, runs)
    run = runs[wanted]
    entries = scored_by(page, run)
    by_id = {entry.criteria_id: entry for entry in entries}
    with row.popover("Run and criteria", icon=":material/rule:", key=state.widget("misaligned_what")):
        choose_in_url("Run", "run", wanted, distinct({run_id: _run_words(runs[run_id]) for run_id in runs}))
        if not entries:
            st.info("This run scored no criteria to the end. Choose another.", icon=":material/difference:")
            return None
        usual = _followed(page, run, by_id) or entries[0].criteria_id
        linked = state.url_id("criteria") or usual
        chosen_id = linked if linked in by_id else usual
        words = {entry.criteria_id: criteria_words(entry, run.run_id) for entry in entries}
        criteria = by_id[choose_in_url("Criteria", "criteria", chosen_id, words)]
        st.text(criteria.text or "No criteria: the judge without any.")
    if linked not in by_id:
        st.warning("The linked criteria were not scored by this run; its best are shown.", icon=":material/link_off:")
    return Selection(
        page,
        run,
        _calibration_of(page, run),
        criteria,
        _kept_scores(run.run_id, criteria.criteria_id, page),
        projects.list_triage(page.store, page.project.project_id, run.golden_id, run.aspect),
        _kept_changes(run.run_id, criteria.criteria_id, criteria.parents, page),
    )


def _draw_empty(page: Opened) -> None:
    going = [run for run in projects.list_runs(page.store, page.project.project_id) if run.kind == "calibration"]
    going = [run for run in going if not run.finished]
    st.info(
        "A calibration is running. Its items appear here when it is done."
        if going
        else "Nothing has been scored in this project yet. Calibrate a judge to see where it and the raters disagree.",
        icon=":material/difference:",
    )
    if going:
        link_to("calibrate", "Watch it", icon=":material/visibility:", run=going[0].run_id)
        run_panel.follow_run(page, going[0].run_id)  # its items are drawn as soon as it is done
    else:
        link_to("calibrate", "Start a calibration", icon=":material/tune:")


def _wanted_run(page: Opened, runs: Mapping[str, Run]) -> str:
    """The run in the URL; else the newest that scored the criteria in the URL; else that of the judge in use."""
    linked, criteria_id = state.url_id("run"), state.url_id("criteria")
    if linked in runs:
        return str(linked)
    if linked:
        st.warning("The linked run is not here or not finished; another is shown.", icon=":material/link_off:")
    if criteria_id and not linked:
        by_id = {entry.criteria_id: entry for entry in page.store.criteria.all(page.project.project_id)}
        alignments = by_id[criteria_id].alignments if criteria_id in by_id else ()
        newest = next(
            (
                alignment.run_id
                for alignment in alignments
                if alignment.side == "calibration" and alignment.run_id in runs
            ),
            None,
        )
        if newest:
            return newest
    newest = next((run for run in runs.values() if run.kind == "calibration"), next(iter(runs.values())))
    judges = projects.judge_runs(page.store, page.project.project_id, newest.golden_id, newest.aspect)
    return next((run.run_id for run in judges if run.run_id in runs), newest.run_id)


def _followed(page: Opened, run: Run, by_id: Mapping[str, CriteriaEntry]) -> str:
    """The best of the criteria that the version of the judge follows which this run measured; "" for none."""
    version = projects.judge_line(page.store, page.project.project_id, run.aspect).of_run(run.run_id)
    return next((name for name in version.criteria_ids if name in by_id), "") if version is not None else ""


def _run_words(run: Run) -> str:
    return f"{run.title}, {run.created_at.astimezone():%d %b %H:%M:%S}"


def scored_by(page: Opened, run: Run) -> list[CriteriaEntry]:
    """The criteria that the run scored on calibration items, best first, with how they stood there."""
    entries = page.store.criteria.all(page.project.project_id, run.aspect, run.golden_id)
    of_run = [
        replace(
            entry, alignments=tuple(a for a in entry.alignments if a.run_id == run.run_id and a.side == "calibration")
        )
        for entry in entries
    ]
    return tables.best_first([entry for entry in of_run if entry.alignments])


def criteria_words(entry: CriteriaEntry, run_id: str = "") -> str:
    """How criteria stood (in that run, else in the newest) and how they begin."""
    value = next((a.alignment.value for a in entry.alignments if run_id in ("", a.run_id)), None)
    text = tables.one_line(entry.text) or "the baseline, without criteria"
    short = text if len(text) <= CRITERIA_WORDS else f"{text[:CRITERIA_WORDS]} …"
    return f"{number(value)} · {short}"


def _calibration_of(page: Opened, run: Run) -> str:
    """The calibration whose judge scored in the run: itself, or the one that a re-scoring or a round names."""
    if run.kind == "calibration":
        return run.run_id
    return str(getattr(projects.run_view(page.store, run.run_id).request, "run_id", ""))


@st.cache_resource(max_entries=64, show_spinner=False)
def _kept_scores(run_id: str, criteria_id: str, _page: Opened) -> ScoredItems:
    """What a finished run scored does not change."""
    return projects.item_scores(_page.store, run_id, criteria_id)


@st.cache_resource(max_entries=64, show_spinner=False)
def _kept_changes(run_id: str, criteria_id: str, parents: tuple[str, ...], _page: Opened) -> dict[str, str] | None:
    for parent_id in parents:
        try:
            changed = projects.item_changes(_page.store, run_id, criteria_id, parent_id)
        except NotFoundError:
            continue
        return change_words(changed)
    return None


def change_words(changed: Sequence[ChangedItem]) -> dict[str, str]:
    """Item id → what became of it since the parent."""
    return {item.item_id: NOW_ALIGNED if item.now == "mended" else NOW_MISALIGNED for item in changed}


def finding(selection: Selection) -> str:
    """What is so, in one sentence, and how far people are with it; the same definition as of the rows listed."""
    scored, triage = selection.scored, selection.triage
    unread = f" {scored.counts['unread']} could not be read." if scored.counts["unread"] else ""
    if not scored.misaligned:
        return f"**Judge and raters agree on all {len(scored)} calibration items.**{unread}"
    found = [triage[item.item_id] for item in scored.misaligned if item.item_id in triage]
    picked = sum(known.picked for known in found)
    all_picked = sum(known.picked for item_id, known in triage.items() if item_id in scored.by_id)
    elsewhere = f" ({all_picked} in all)" if all_picked > picked else ""
    return (
        f"**Judge and raters disagree on {len(scored.misaligned)} of {len(scored):,} items**: "
        f"▲ {scored.counts['too lenient']} too lenient, ▼ {scored.counts['too strict']} too strict. "
        f"Of the {len(scored.misaligned)}, {sum(bool(known.verdict) for known in found)} triaged, "
        f"{picked} picked{elsewhere}.{unread}"
    )


def draw_accesses(selection: Selection) -> None:
    """That held-out items stay closed here, and how often they were opened elsewhere."""
    accesses = projects.list_held_out_accesses(
        selection.page.store, selection.run.project_id, selection.run.golden_id, selection.run.aspect
    )
    st.caption(
        "Calibration items only; held-out items stay closed. "
        f"This held-out set has been opened {counted(len(accesses), 'time')}."
    )
