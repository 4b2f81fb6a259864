"""The report on a calibrated judge: everything that the store knows of it, gathered into one record."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from core.calibration.calibration_records import Calibration
from core.comparison.measures import preferred
from core.data.reply_files import ScoredRows, read_scored
from core.errors import AspectError, GoldenError, JobError
from core.fusion.fusion_settings import FusionRunView, FusionSettings
from core.fusion.plan import read_criteria
from core.project_records import JUDGES, CriteriaAlignment, CriteriaEntry, Run
from core.projects.calibration import calibration_asked, judge_runs
from core.projects.criteria import criteria_names
from core.projects.fusion import fusion_result
from core.projects.judge_line import JudgeLine, JudgeVersion, as_claimed, judge_line, used_before
from core.projects.label_passes import picked_labels, seen_labels
from core.projects.labelling import LabelPass, LabelsFrozen, list_passes
from core.projects.misaligned_items import list_triage
from core.projects.project_judges import as_compared
from core.projects.refining import family_tree
from core.projects.review import open_review
from core.projects.run_work import list_held_out_accesses, load_calibration
from core.records import Alignment, GoldenSet, JudgeScores, Usage
from core.report.headline import day
from core.report.report_facts import (
    CostLine,
    CriteriaFact,
    FusionFact,
    Report,
    ReportedJudge,
    is_simulated,
    misaligned,
    raters_of,
)
from core.store.log import Action
from core.store.runs import RESULT
from core.store.store import Store
from core.wording import VERSION_STATES

RUN_WORDS = {
    "calibration": "calibrations",
    "version": "measurements of judge versions",
    "rescore": "scoring of edits",
    "round": "refinement rounds",
    "styles": "judging styles",
    "ablation": "ablations",
    "metrics": "baseline metrics",
    "repeval": "RepEval",
    "fusion": "fusion",
    "recheck": "rechecks of an exported judge",
    "trial": "criteria tried on one item",
}
_MOST_CRITERIA = 60
_ALIKE = 1e-6


SentVerdicts = tuple[str, bytes]
"""A file of verdicts as it was sent: its name and its content."""


@dataclass(frozen=True, slots=True)
class MeasuredJudge:
    """A judge that a golden set has figures on, by the run that measured it; `version` is None where none was kept."""

    run: Run
    version: JudgeVersion | None
    held_out: bool

    @property
    def words(self) -> str:
        """E.g. "version 3 (current)"; "calibration of 22 November 2026" where it is no version."""
        missing = "" if self.held_out else ", not measured on held-out items"
        if self.version is None:
            return f"calibration of {day(self.run.created_at)}{missing}"
        return f"{self.version.name} ({VERSION_STATES[self.version.state]}{missing})"


def measured_judges(store: Store, project_id: str, golden_id: str, aspect: str) -> tuple[MeasuredJudge, ...]:
    """What a golden set has figures on: the version in use first, then by run, newest first; each version once."""
    line, judges = judge_line(store, project_id, aspect), []
    for run in judge_runs(store, project_id, golden_id, aspect):
        version = line.of_run(run.run_id)
        measured = None if version is None else version.on(golden_id)
        if measured is None or measured.run_id == run.run_id:
            judges.append(MeasuredJudge(run, version, measured is None or measured.held_out is not None))
    return tuple(judges)


def report(
    store: Store,
    project_id: str,
    golden_id: str,
    aspect: str,
    run_id: str | None = None,
    *,
    more: SentVerdicts | None = None,
) -> Report:
    """All facts on the judge of calibration or version `run_id` (None: the one in use, else the newest with a result).

    `more` are that judge's verdicts on items beyond the golden set, which count for the means of systems.  Reads only;
    nothing new is asked of a judge.  GoldenError for `more` of another judge, or that cannot be read.  NotFoundError
    for unknown ids, JobError while no calibration of that aspect has come to a result, or for a version that was not
    measured on held-out items.  `core.report` draws it.
    """

    project = store.projects.get(project_id)
    run = _calibration_run(store, project_id, golden_id, aspect, run_id)
    request = calibration_asked(store, run.run_id)
    calibration = as_claimed(store, run.run_id, load_calibration(store, run.run_id))
    if not calibration.held_out.n:
        raise JobError(
            "This version of the judge was not measured on held-out items, so there is nothing to report. Figures "
            "on the calibration set are optimistic. Measure the judge on held-out items first."
        )
    added = store.events.all(project_id, Action, golden_id)
    line, openings = judge_line(store, project_id, aspect), list_held_out_accesses(store, project_id, golden_id, aspect)
    used = used_before(line, run, openings)
    triage = list_triage(store, project_id, golden_id, aspect)
    judged = ReportedJudge(store.goldens.load(golden_id), calibration, run.run_id)
    further = None if more is None else read_more_verdicts(more, judged.golden, judged.scores)
    board, aside = judged.board(as_compared(store, project_id, store.judges.all(project_id, golden_id, aspect)))
    family = family_tree(store, project_id, aspect, golden_id)
    criteria, n_more_criteria = _criteria(store, run, line, calibration, family)
    made = Counter(entry.origin for entry, _ in family if entry.origin != "none")
    decided = open_review(store, project_id, golden_id, aspect).decided[::-1]
    return Report(
        project=project.name,
        made_at=datetime.now(UTC),
        golden=store.goldens.get(golden_id),
        added_by=added[0].actor if added else "",
        simulated=is_simulated(judged.golden, aspect),
        run=run,
        asked=request,
        judged=judged,
        raters=raters_of(judged).without_claim(used),
        passes=tuple(_passes(store, project_id, golden_id, aspect)),
        line=line,
        seen_before=used,
        made=dict(made.most_common()),
        criteria=criteria,
        n_more_criteria=n_more_criteria,
        decided=tuple(decided),
        board=board.without_p(0, used),
        aside=aside,
        means=judged.means(
            further,
            seen=seen_labels(store, project_id, golden_id, judged.scores),
            picked=picked_labels(store, project_id, golden_id, aspect),
        ),
        n_more=0 if further is None else len(further.item_ids),
        strengths=preferred(judged.golden, aspect, judged.values, seen=calibration.split.calibration)
        if judged.golden.kind == "pair"
        else None,
        examination=judged.examined(),
        curve=judged.curve(),
        sure=judged.sure(),
        misaligned=misaligned(
            judged,
            {item_id: found for item_id, found in triage.items() if found.verdict},
            {decision.item_id: decision for decision in decided if decision.item_id},
        ),
        openings=tuple(openings),
        costs=tuple(_costs(store, run)),
        fusion=_fusion(store, run, calibration),
    )


def _fusion(store: Store, run: Run, calibration: Calibration) -> FusionFact | None:
    """The newest finished fusion by a model that rated the aspect, at the statistic and level of the report."""
    held, aspect = calibration.held_out, calibration.task.aspect
    settings = FusionSettings(statistic=held.statistic, level=held.level)
    for other in store.runs.all(run.project_id):
        rated = other.kind == "fusion" and other.golden_id == run.golden_id
        outcome = store.results.read(other.run_id, RESULT, FusionRunView) if rated else None
        if outcome is None or aspect not in outcome.judges:
            continue
        try:
            result = fusion_result(store, other.run_id, settings)
        except AspectError:  # too few systems for this level
            continue
        if result is None:
            continue
        words = read_criteria(outcome.criteria, list(result.aspects), outcome.criteria_origins).words
        return FusionFact(other.title, aspect, words or "none", result)
    return None


def _calibration_run(store: Store, project_id: str, golden_id: str, aspect: str, run_id: str | None) -> Run:
    """The calibration or version `run_id`, or the one in use, else the newest of that aspect with a result."""
    name = store.goldens.get(golden_id).name
    complete = judge_runs(store, project_id, golden_id, aspect)
    if run_id is not None and all(run.run_id != run_id for run in complete):
        store.runs.get(run_id)
        raise JobError(
            f"Run {run_id[:40]} is no finished calibration of {aspect} on {name}, so there is nothing to report. Name "
            "one that is, or leave it out to take the newest."
        )
    if not complete:
        raise JobError(
            f"No calibration of {aspect} on {name} has come to a result yet, so there is nothing to report. Run one to "
            "its end first."
        )
    return next((run for run in complete if run.run_id == run_id), complete[0])


# ── labelling passes ─────────────────────────────────────────────────────────────────────────────────────────


def _passes(
    store: Store, project_id: str, golden_id: str, aspect: str
) -> Iterator[tuple[LabelPass, tuple[str, ...], int, bool]]:
    """The passes whose labels made this golden set, and those over it, oldest first."""
    frozen = {entry.pass_id for entry in store.events.all(project_id, LabelsFrozen, golden_id)}
    for labelling in reversed(list_passes(store, project_id)):
        concerned = labelling.pass_id in frozen or labelling.golden_id == golden_id
        if concerned and any(plan_aspect.aspect == aspect for plan_aspect in labelling.plan.aspects):
            rows = store.labels.current(project_id, labelling.pass_id)
            given = Counter(row.rater for row in rows if row.aspect == aspect and row.value is not None)
            raters = tuple(dict.fromkeys((*labelling.raters, *given)))
            yield labelling, raters, given.total(), labelling.pass_id in frozen


# ── history of the criteria ──────────────────────────────────────────────────────────────────────────────────


def _criteria(
    store: Store, run: Run, line: JudgeLine, calibration: Calibration, family: Sequence[tuple[CriteriaEntry, int]]
) -> tuple[tuple[CriteriaFact, ...], int]:
    """The criteria that led to the judge, those of its other versions, and those that people wrote; how many more."""
    names = criteria_names(store, run.project_id, run.aspect)
    chosen = {criteria.criteria_id for criteria in calibration.chosen}
    shown = _with_ancestors(family, chosen.union(*(version.criteria_ids for version in line.versions)))
    first = sorted(shown, key=lambda each: each[0].criteria_id not in chosen)[:_MOST_CRITERIA]
    kept = {entry.criteria_id for entry, _ in first}
    facts = tuple(
        CriteriaFact(
            entry,
            names.get(entry.criteria_id, "Criteria"),
            depth,
            entry.criteria_id in chosen,
            _alignment(entry.alignments, "calibration", run.run_id),
            _alignment(entry.alignments, "held-out", run.run_id),
        )
        for entry, depth in shown
        if entry.criteria_id in kept
    )
    return facts, len(shown) - len(kept)


def _with_ancestors(family: Sequence[tuple[CriteriaEntry, int]], wanted: set[str]) -> list[tuple[CriteriaEntry, int]]:
    """Criteria that are `wanted`, edited or given by hand, and the ancestors of all of these, in the family's order."""
    by_id = {entry.criteria_id: entry for entry, _ in family}
    waiting = [name for name, entry in by_id.items() if name in wanted or entry.origin in ("edit", "given")]
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [parent for parent in by_id[name].parents if parent in by_id]
    return [each for each in family if each[0].criteria_id in reached]


def _alignment(alignments: Sequence[CriteriaAlignment], side: str, run_id: str) -> Alignment | None:
    """The alignment on that side: in this calibration, else in the newest run that measured it there."""
    on_side = [measured for measured in alignments if measured.side == side]
    own = [measured for measured in on_side if measured.run_id == run_id]
    return next((measured.alignment for measured in (*own, *on_side)), None)


def _runs(store: Store, calibration: Run) -> list[Run]:
    """All runs on the same aspect of the same golden set, newest first."""
    wanted = calibration.golden_id, calibration.aspect
    return [run for run in store.runs.all(calibration.project_id) if (run.golden_id, run.aspect) == wanted]


# ── costs ────────────────────────────────────────────────────────────────────────────────────────────────────


def _costs(store: Store, calibration: Run) -> Iterator[CostLine]:
    """Of this calibration, then of all runs on its aspect of its golden set by kind, oldest kind first."""
    runs = []
    for run in reversed(_runs(store, calibration)):  # a calibration's result knows exactly what it used
        result = store.results.read(run.run_id, RESULT, Calibration) if run.kind in JUDGES else None
        runs.append(run if result is None else replace(run, calls=result.calls, usage=result.usage))
    this = "this calibration" if calibration.kind == "calibration" else "measuring this version"
    yield _cost(this, [run for run in runs if run.run_id == calibration.run_id])
    for kind in dict.fromkeys(run.kind for run in runs):
        yield _cost(f"all {RUN_WORDS[kind]}", [run for run in runs if run.kind == kind])


def _cost(name: str, runs: Sequence[Run]) -> CostLine:
    took = [
        (run.finished_at - run.started_at).total_seconds()
        for run in runs
        if run.finished_at is not None and run.started_at is not None
    ]
    usage = sum((run.usage for run in runs), Usage())
    return CostLine(name, len(runs), sum(run.calls for run in runs), usage, sum(took) if took else None)


# ── verdicts on further items ────────────────────────────────────────────────────────────────────────────────


def read_more_verdicts(sent: SentVerdicts, golden: GoldenSet, judge: JudgeScores) -> ScoredRows:
    """The verdicts of `judge` in a file on items that `golden` has not; those on its own items have to be the same.

    Where a column names the aspect of each row, those of the judge's count.  GoldenError for a file that cannot be
    read, names no systems, holds nothing new, is of another judge, or on another scale.
    """
    name, data = sent
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / f"verdicts{Path(name).suffix.lower()}"
        place.write_bytes(data)
        rows = read_scored(place, judge.aspect)
    if rows is None:
        raise GoldenError("This is no table of verdicts: columns item_id, score and system_id are needed.", file=name)
    if not rows.systems:
        raise GoldenError("No column says which system wrote each item: add system_id to the verdicts.", file=name)
    own = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    places = np.array([own.get(item_id, -1) for item_id in rows.item_ids], dtype=np.intp)
    common = np.flatnonzero(places >= 0)
    differ = ~np.isclose(judge.upward[places[common]], rows.scores[common], atol=_ALIKE, equal_nan=True)
    if differ.any():
        raise GoldenError(
            f"{int(differ.sum()):,} of the {common.size:,} verdicts on items of the golden set differ from those of "
            f"{judge.name}: the file is of another judge, or of another version of it.",
            file=name,
        )
    new = np.flatnonzero(places < 0).tolist()
    if not new:
        raise GoldenError("All of these verdicts are on items of the golden set, which are counted already.", file=name)
    sources = [rows.sources[k] for k in new] if rows.sources else []
    return ScoredRows([rows.item_ids[k] for k in new], rows.scores[new], [rows.systems[k] for k in new], sources)
