"""Where a project stands on one aspect, from the golden set to a judge in use, and what waits for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from core.project_records import GoldenSummary
from core.projects.analyses import list_rechecks
from core.projects.criteria import list_criteria
from core.projects.judge_line import judge_line
from core.projects.labelling import still_rating
from core.projects.meetings import list_meetings
from core.projects.rounds import list_proposals
from core.projects.triage import list_triage
from core.review.criteria import Comment, CommentSettled
from core.review.judge_versions import JudgeLine
from core.store.store import Store

StageName = Literal["golden set", "labels", "calibration", "review", "approved", "in use"]
Task = Literal["label", "sign off", "decide", "meet", "triage", "comment", "measure", "grow"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One step on the way; `figure` says in a few words how far it is, "" where it has not begun."""

    name: StageName
    done: bool
    figure: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that waits for whoever looks: `n` of it, in `words`; `subject` is the id of what it is about."""

    task: Task
    n: int
    words: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Overview:
    """Where the judge of `aspect` stands; `waiting` most urgent first, `line` the versions of the judge."""

    golden: GoldenSummary
    aspect: str
    stages: tuple[Stage, ...]
    waiting: tuple[Waiting, ...]
    line: JudgeLine

    @property
    def reached(self) -> Stage | None:
        """The first stage that is not done yet; None when all are."""
        return next((stage for stage in self.stages if not stage.done), None)


def overview(store: Store, project_id: str, golden_id: str, aspect: str) -> Overview:
    """Where the project stands on an aspect of a golden set, for whoever acts.  NotFoundError for unknown ids."""
    golden, line = store.goldens.get(golden_id), judge_line(store, project_id, aspect)
    waiting = tuple(_waiting(store, project_id, golden, line))
    return Overview(golden, aspect, tuple(_stages(store, project_id, golden, line, waiting)), waiting, line)


def _stages(
    store: Store, project_id: str, golden: GoldenSummary, line: JudgeLine, waiting: tuple[Waiting, ...]
) -> Iterator[Stage]:
    summary, default = golden.aspect(line.aspect), line.default
    n_labelled = 0 if summary is None else summary.n_labelled
    yield Stage("golden set", True, _count(golden.n_items, "item"))
    yield Stage("labels", n_labelled > 0, f"{_count(n_labelled, 'item')} labelled" if n_labelled else "")
    yield Stage("calibration", bool(line.versions), _count(len(line.versions), "version") if line.versions else "")
    to_review = sum(each.n for each in waiting if each.task in ("decide", "comment", "sign off", "meet"))
    reviewed = default is not None and default.in_force
    yield Stage("review", reviewed and not to_review, f"{to_review} open" if to_review else "nothing open")
    approved = next((version for version in reversed(line.versions) if version.in_force), None)
    yield Stage("approved", approved is not None, "" if approved is None else approved.name)
    checks = list_rechecks(store, project_id, line.aspect)
    last = f"last check: {checks[-1].outcome.decision}" if checks else "not checked since"
    yield Stage("in use", line.current is not None, last if line.current is not None else "")


def _waiting(store: Store, project_id: str, golden: GoldenSummary, line: JudgeLine) -> Iterator[Waiting]:
    for rating in still_rating(store, project_id, golden.golden_id):
        if rating.n_open:
            yield Waiting("label", rating.n_open, f"to label in {rating.name}", rating.pass_id)
    for version in line.waiting[:1]:
        yield Waiting("sign off", 1, f"{version.name} of the judge waits for sign-off", str(version.number))
    for version in line.versions:
        if version.state == "draft":
            yield Waiting("measure", 1, f"{version.name} was made and not measured", str(version.number))
    yield from _to_decide(store, project_id, (golden.golden_id, line.aspect))
    if n_comments := _open_comments(store, project_id, line.aspect):
        yield Waiting("comment", n_comments, "on criteria, not settled yet")
    if line.default is not None and line.default.on(golden.golden_id) is None:
        words = f"{line.default.name} of the judge was measured on other labels, not on {golden.name}"
        yield Waiting("grow", 1, words, str(line.default.number))
    elif line.default is not None and not list_triage(store, project_id, golden.golden_id, line.aspect):
        yield Waiting("triage", 1, "nobody has looked at the misaligned items yet")


def _to_decide(store: Store, project_id: str, about: tuple[str, str]) -> Iterator[Waiting]:
    """Meetings that go on, and proposals of refinement rounds that nobody has decided on."""
    for meeting in list_meetings(store, project_id):
        if meeting.closed_at is None and (meeting.golden_id, meeting.aspect) == about:
            n_open = sum(point.decision is None for point in meeting.points)
            yield Waiting("meet", n_open, f"open in the meeting {meeting.name}", meeting.meeting_id)
    for run in store.runs.all(project_id):
        if (run.kind, run.golden_id, run.aspect) == ("round", *about):
            n_open = sum(proposal.state == "open" for proposal in list_proposals(store, run.run_id))
            if n_open:
                yield Waiting("decide", n_open, "proposed by a round, to accept or reject", run.run_id)


def _open_comments(store: Store, project_id: str, aspect: str) -> int:
    ours = {entry.criteria_id for entry in list_criteria(store, project_id, aspect)}
    settled = {entry.comment for entry in store.events.all(project_id, CommentSettled)}
    comments = store.events.all(project_id, Comment)
    return sum(comment.subject in ours and comment.number not in settled for comment in comments)


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
