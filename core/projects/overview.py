"""Where a project stands on one aspect, from the golden set to a judge in use, and what waits for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from core.comparison.recheck import Decision
from core.people import Role
from core.project_records import GoldenSummary, Run
from core.projects.calibration import version_asked
from core.projects.criteria import Comment, CommentSettled
from core.projects.judge_checks import DatedRecheck, list_rechecks
from core.projects.judge_line import JudgeLine, judge_line
from core.projects.labelling import still_rating
from core.projects.misaligned_items import list_triage
from core.projects.refining import open_proposals
from core.projects.review import open_review
from core.store.store import Store
from core.wording import counted

StageName = Literal["golden set", "labels", "calibration", "review", "approved", "in use"]
Task = Literal["label", "sign off", "decide", "vote", "triage", "comment", "measure", "grow"]
NEEDS: dict[Task, Role] = {"label": "annotator", "vote": "annotator"}
"""The least role of those for whom a task waits; of all others it is reviewer."""

RECHECKED: dict[Decision, str] = {
    "holds": "recheck: holds",
    "fallen": "recheck: fallen",
    "inconclusive": "recheck inconclusive",
}


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """One step on the way; `figure` says in a few words how far it is, "" where it has not begun."""

    name: StageName
    done: bool
    figure: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits for whoever looks: `n` of it, all said in `words`; `subject` is the id of what it is about."""

    task: Task
    n: int
    words: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Overview:
    """Where the judge of `aspect` stands; `waiting` most urgent first, `line` the versions of the judge.

    `aspect` is "" where nothing is labelled yet.  `calibrating` is the calibration that goes on, or None.
    """

    golden: GoldenSummary
    aspect: str
    stages: tuple[PipelineStep, ...]
    waiting: tuple[Waiting, ...]
    line: JudgeLine
    calibrating: Run | None = None

    @property
    def reached(self) -> PipelineStep | None:
        """The first stage that is not done yet; None when all are."""
        return next((stage for stage in self.stages if not stage.done), None)


def overview(store: Store, project_id: str, golden_id: str, aspect: str) -> Overview:
    """Where the project stands on an aspect of a golden set, for whoever acts.  NotFoundError for unknown ids.

    `aspect` "" is for a golden set without labels.
    """
    listed = {golden.golden_id: golden for golden in store.goldens.all(project_id)}  # as it is called in this project
    golden, line = listed.get(golden_id) or store.goldens.get(golden_id), judge_line(store, project_id, aspect)
    ours = [run for run in store.runs.all(project_id) if (run.golden_id, run.aspect) == (golden_id, aspect)]
    measuring = {version_asked(run).version for run in ours if run.kind == "version" and not run.finished}
    all_waiting = _waiting(store, project_id, golden, line, measuring)
    waiting = tuple(each for each in all_waiting if store.actor.may(NEEDS.get(each.task, "reviewer")))
    runs = [run for run in ours if run.kind == "calibration"]
    checks = list_rechecks(store, project_id, aspect) if line.current is not None else ()
    stages = tuple(_stages(golden, line, waiting, runs, checks, measuring=measuring))
    calibrating = next((run for run in runs if not run.finished), None)
    return Overview(golden, aspect, stages, waiting, line, calibrating)


def _stages(
    golden: GoldenSummary,
    line: JudgeLine,
    waiting: tuple[Waiting, ...],
    runs: list[Run],
    checks: tuple[DatedRecheck, ...],
    *,
    measuring: set[int],
) -> Iterator[PipelineStep]:
    summary, default = golden.aspect(line.aspect), line.default
    n_labelled = 0 if summary is None else summary.n_labelled
    yield PipelineStep("golden set", True, counted(golden.n_items, "item"))
    yield PipelineStep("labels", n_labelled > 0, f"{n_labelled:,} labelled" if n_labelled else "")
    n_done = sum(run.status == "done" for run in runs)
    versions = counted(len(line.versions), "version") if line.versions else f"{n_done:,} finished" if n_done else ""
    at_work = [f"{line.get(number).name} being measured" for number in sorted(measuring)]
    yield PipelineStep("calibration", bool(versions), ", ".join([versions, *at_work]))
    to_review = sum(each.n for each in waiting if each.task in ("decide", "comment", "sign off"))
    reviewed = default is not None and default.in_force
    yield PipelineStep("review", reviewed and not to_review, f"{to_review:,} open" if to_review else "nothing open")
    approved = next((version for version in reversed(line.versions) if version.in_force), None)
    yield PipelineStep("approved", approved is not None, "" if approved is None else approved.name)
    if line.current is None:
        yield PipelineStep("in use", False)
    else:
        last = RECHECKED[checks[-1].outcome.decision] if checks else "not rechecked"
        yield PipelineStep("in use", True, last if line.current is approved else f"{line.current.name}, {last}")


def _waiting(
    store: Store, project_id: str, golden: GoldenSummary, line: JudgeLine, measuring: set[int]
) -> Iterator[Waiting]:
    for labelling, n_open in still_rating(store, project_id, golden.golden_id):
        yield Waiting("label", n_open, f"{counted(n_open, 'item')} to label in {labelling.name}", labelling.pass_id)
    for version in line.waiting[:1]:
        yield Waiting("sign off", 1, f"{version.name} of the judge waits for sign-off", str(version.number))
    if drafts := [each for each in line.versions if each.state == "draft" and each.number not in measuring]:
        words = f"{drafts[-1].name} was made and not measured"
        if len(drafts) > 1:
            words = f"{len(drafts):,} versions were made and not measured"
        yield Waiting("measure", len(drafts), words, str(drafts[-1].number))
    review = open_review(store, project_id, golden.golden_id, line.aspect)
    if review.joined and review.points:
        words = f"{' and '.join(review.joined[:3])} in review, {counted(len(review.points), 'point')} open"
        yield Waiting("vote", len(review.points), words, "review")
    proposals = Counter(each.run_id for each in open_proposals(store, project_id, golden.golden_id, line.aspect))
    for run_id, n in proposals.items():
        yield Waiting("decide", n, f"{counted(n, 'proposal')} of a round to accept or reject", run_id)
    settled = {entry.comment for entry in store.events.all(project_id, CommentSettled)}
    criteria = {criteria.criteria_id for criteria, _ in store.criteria.texts(project_id, line.aspect)}
    remarks = [each for each in store.events.all(project_id, Comment) if each.number not in settled]
    if comments := [each for each in remarks if each.subject in criteria]:
        words = f"{counted(len(comments), 'comment')} on criteria, not settled yet"
        yield Waiting("comment", len(comments), words, comments[-1].subject)
    if line.default is not None and line.default.on(golden.golden_id) is None:
        words = f"{line.default.name} of the judge was measured on other labels, not on {golden.name}"
        if line.default.number not in measuring:
            yield Waiting("grow", 1, words, str(line.default.number))
    elif line.default is not None and not list_triage(store, project_id, golden.golden_id, line.aspect):
        yield Waiting("triage", 1, "nobody has looked at the misaligned items yet")
