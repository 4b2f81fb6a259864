"""Summarise a project for an aspect: the state of its judge, open tasks, and the log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Literal

from core.project_records import GoldenSummary, Role, Run
from core.projects.calibration import version_asked
from core.projects.judge_line import JudgeLine, judge_line
from core.projects.labelling import LabelPass, list_triage, still_rating
from core.projects.review import OpenReview, PointDecided, Vote, hidden_votes, open_review
from core.spreadsheets import csv_text
from core.store.log import Action, Entry
from core.store.store import Store, requires
from core.wording import counted

StageName = Literal["golden set", "labels", "calibration", "review", "version"]
ToDo = Literal["label", "sign off", "decide", "vote", "triage", "grow", "use"]
NEEDS: dict[ToDo, Role] = {"label": "annotator", "vote": "annotator"}
"""Task → required role. All other tasks require a reviewer."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An open task for the user about `n` items, described by `words`. `subject` is the id of the object to work on."""

    task: ToDo
    n: int
    words: str
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Overview:
    """The state of the judge of an aspect.

    Attributes:
        stages: For each step, whether it is done, and a short text.
        waiting: Open tasks of the user, most urgent first.
        line: Versions of the judge.
        calibrating: An unfinished calibration, or None.
    """

    golden: GoldenSummary
    stages: Mapping[StageName, tuple[bool, str]]
    waiting: tuple[Waiting, ...]
    line: JudgeLine
    calibrating: Run | None = None


def overview(store: Store, project_id: str, golden_id: str, aspect: str) -> Overview:
    """Summarise a project for an aspect of a golden set, with the user's open tasks.

    `aspect` is "" if there are no labels. Raises NotFoundError for unknown ids.
    """
    listed = {golden.golden_id: golden for golden in store.goldens.all(project_id)}  # with its name in this project
    golden, line = listed.get(golden_id) or store.goldens.get(golden_id), judge_line(store, project_id, aspect)
    ours = [run for run in store.runs.all(project_id) if (run.golden_id, run.aspect) == (golden_id, aspect)]
    measuring = {version_asked(run).version for run in ours if run.kind == "version" and not run.finished}
    review = open_review(store, project_id, golden_id, aspect)
    waiting = tuple(
        each
        for each in _waiting(store, project_id, golden, line, review=review, measuring=measuring)
        if store.actor.may(NEEDS.get(each.task, "reviewer"))
    )
    runs = [run for run in ours if run.kind == "calibration"]
    labelled = golden.aspect(aspect)
    n_labelled = 0 if labelled is None else labelled.n_labelled
    calibrated = bool(line.versions) or any(run.status == "done" for run in runs)
    approved = line.default if line.default is not None and line.default.in_force else None
    stages: dict[StageName, tuple[bool, str]] = {
        "golden set": (True, counted(golden.n_items, "item")),
        "labels": (n_labelled > 0, f"{n_labelled:,} labelled" if n_labelled else ""),
        "calibration": (calibrated, counted(len(line.versions), "version") if calibrated else ""),
        "review": (
            approved is not None and not review.points,
            f"{counted(len(review.points), 'point')} open" if review.points else "nothing open",
        ),
        "version": (approved is not None, f"{approved.number}, {approved.state}" if approved else ""),
    }
    return Overview(golden, stages, waiting, line, next((run for run in runs if not run.finished), None))


def _waiting(
    store: Store,
    project_id: str,
    golden: GoldenSummary,
    line: JudgeLine,
    *,
    review: OpenReview,
    measuring: set[int],
) -> Iterator[Waiting]:
    """Yield the open tasks of a project. Items to label are the user's own."""
    where = (store, project_id, golden.golden_id, line.aspect)
    for labelling, n_open in still_rating(store, project_id, golden.golden_id):
        yield Waiting("label", n_open, f"{counted(n_open, 'item')} to label in {labelling.name}", labelling.pass_id)
    for version in line.waiting[:1]:
        yield Waiting("sign off", 1, f"{version.name} is waiting for approval", str(version.number))
    if review.joined and review.points:
        words = f"{' and '.join(review.joined[:3])} reviewing, {counted(len(review.points), 'point')} open"
        yield Waiting("vote", len(review.points), words, "review")
    elif any(point.run_id for point in review.points):
        yield Waiting("decide", len(review.points), f"{counted(len(review.points), 'open point')} to review", "review")
    if line.default is not None and line.default.on(golden.golden_id) is None:
        words = f"{line.default.name} was measured on other labels, not on {golden.name}"
        if line.default.number not in measuring:
            yield Waiting("grow", 1, words, str(line.default.number))
    elif line.default is not None and not list_triage(*where):
        yield Waiting("triage", 1, "the misaligned items haven't been reviewed yet")
    if line.current and (newest := line.versions[-1]).state == "approved":
        yield Waiting("use", 1, f"{newest.name} is approved but not current", str(newest.number))


# ── the log ────────────────────────────────────────────────────────────────────────────────────────────────────

_TEXT = 60
_RUN_WORDS: Mapping[str, str] = {
    "rescore": "scoring of an edit",
    "round": "refinement round",
    "styles": "judging styles",
    "repeval": "RepEval",
    "fusion": "LLM fusion",
    "recheck": "drift check",
    "version": "judge version",
}
"""Kind of run → display name, if it differs."""
_NAMED = ("criteria_id", "judge_id", "golden_id", "run_id", "parent_id")
"""Arguments of an action that may be its subject, most specific first."""


def log_lines(store: Store, project_id: str, entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """Describe log entries as (action, subject) in words without ids. A deleted subject is "".

    For a hidden vote the description only says that somebody voted.
    """
    hidden = hidden_votes(store, project_id) if any(isinstance(entry, Vote) for entry in entries) else set()
    begun = store.events.all(project_id, LabelPass)
    words = {each.subject: f"labelling pass {_quoted(each.name)}" for each in begun}
    words |= {
        each.criteria_id: f"criteria {_quoted(each.text)} for {each.aspect}"
        if each.text.strip()
        else f"no criteria for {each.aspect}"
        for each in store.criteria.all(project_id)
    }
    words |= {each.judge_id: f"judge {_quoted(each.name)}" for each in store.judges.all(project_id)}
    words |= {each.run_id: run_words(each) for each in store.runs.all(project_id)}
    words |= {each.golden_id: f"golden set {_quoted(each.name)}" for each in store.goldens.all(project_id)}

    def about(entry: Entry) -> str:
        match entry:
            case Vote() | PointDecided():
                return _quoted(entry.title)
            case Action():  # what was created, else what was changed; a deleted one by its last name
                keys = (entry.subject, *(str(entry.about.get(name) or "") for name in _NAMED))
                name = str(entry.about.get("name") or "")
                return next((words[key] for key in keys if key in words), name and _quoted(name))
        return words.get(entry.subject, "")

    voted = "voted (the vote is hidden until everyone has voted)"
    return [(voted if entry.number in hidden else entry.sentence, about(entry)) for entry in entries]


@requires("admin", reads=True)
def log_csv(store: Store, project_id: str) -> str:
    """Write the whole log as CSV, one row per entry. Cells are escaped, so spreadsheets never run them as formulas."""
    rows = []
    for entry in reversed(store.events.page(project_id)):
        at, details = entry.at.isoformat(timespec="seconds"), json.dumps(entry.body, ensure_ascii=False, sort_keys=True)
        rows.append((entry.number, at, entry.actor, entry.role, entry.kind, entry.subject, entry.sentence, details))
    return csv_text(("number", "at", "actor", "role", "kind", "subject", "what", "details"), rows)


def run_words(run: Run) -> str:
    """Return the display name of a run, such as "calibration of consistency"."""
    return f"{_RUN_WORDS.get(run.kind, run.kind)} of {run.aspect}"


def _quoted(text: str) -> str:
    return f"“{shorten(' '.join(text.split()), _TEXT, placeholder=' …')}”"
