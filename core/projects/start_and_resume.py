"""Start, execute, cancel, resume and view runs. `KINDS` lists all kinds of runs.

`start_run` checks a request and adds the run to the queue (`core.jobs.queue`). A worker takes the run and calls
`execute_run`, which calls the function for this kind of run with a `RunWork`.

To resume a run, the worker calls the same function again. The function finds its earlier replies, criteria, judges,
scores and documents in the store, and hidden states on disk. Only arithmetic is repeated. So inputs must be fixed, and
requests, seeds and tie-breaks must have a fixed order.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from core.calibration.calibration_records import Calibration, LeaderboardSnapshot
from core.calibration.racing import BoundJudge, Recorder
from core.errors import JobError, UsageError
from core.jobs.queue import Lane, RunProgress, ensure_worker
from core.judging.judge_protocol import Judge, Prepared, judge_state
from core.judging.judge_specs import NAMED, restore_judge
from core.project_records import JUDGES, CriteriaAlignment, Run, RunKind, RunRequest, Side
from core.records import Alignment, Criteria, GoldenSet, JudgeScores, ScoreMatrix, Task
from core.settings import Settings
from core.store.database import pack, unpack
from core.store.log import Action, Entry
from core.store.runs import JUDGE, RESULT, SNAPSHOT, RunReplies
from core.store.store import Store, requires

T = TypeVar("T")

EDIT_SCORED = "an edit was scored on them"
"""Reason for opening held-out items: an edit was compared with its parent."""
MODELS_TRIED = "other models were tried on them"
"""Reason for opening held-out items: other models were compared with the judge's model."""


@dataclass(frozen=True)
class HeldOutAccess(Entry):
    """A log entry: somebody saw results on the held-out items of a golden set (the entry's subject).

    The more often results are seen, the more optimistic they become.
    """

    kind = "held-out opened"
    does = "used the held-out items: {0.why}"
    aspect: str
    why: str


@dataclass(frozen=True)
class JudgeState:
    """The state of a prepared judge, for `restore_judge`, with the calls and cost of its preparation (`prepared`)."""

    state: Mapping[str, Any]
    prepared: Prepared = field(default_factory=Prepared)


# ── the kinds of runs ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of run, with its functions and record types.

    Attributes:
        request: Type of the request.
        result: Type of the result.
        does: The action, in words for the log.
        check: Checks and completes a request; returns the request, the title and the judge's SPEC.
        run: Does the work and returns the result.
        opens: Returns why the run uses held-out items, or "" if it doesn't.
        documents: Types of intermediate records, by name.
        lane: Runs with the same lane share a limit on the number of runs at once.
        enter: Adds the stored result to the project.
    """

    request: type[RunRequest]
    result: type
    does: str
    check: Callable[[Store, Settings, Any], tuple[RunRequest, str, str]]
    run: Callable[[RunWork], Any]
    opens: Callable[[Any], str] = lambda request: ""
    documents: Mapping[str, type] = field(default_factory=dict)
    lane: Lane = "usual"
    enter: Callable[[RunWork, Any], None] | None = None


KINDS: dict[RunKind, Kind] = {}


@requires("reviewer")
def start_run(store: Store, settings: Settings, request: RunRequest) -> str:
    """Enqueue a run, make sure that a worker is running, and return the run id.

    If the run uses held-out items, the log records an access (`list_held_out_accesses`).

    Raises:
        NotFoundError: The project, golden set, aspect, run, judge or criteria is unknown.
        UsageError: The request is invalid, or the URL of the judge contains a password (specs are stored and shown).
        JobError: The request needs a run that is imported or has no result.
    """
    name, kind = next((name, kind) for name, kind in KINDS.items() if kind.request is type(request))
    request, title, judge_spec = kind.check(store, settings, request)
    if re.search(r"://[^/\s]*@", judge_spec):
        raise UsageError(
            "The judge's URL contains a user name or password. Remove it, and set the key in OPENAI_API_KEY."
        )
    project_id, golden_id, aspect = request.project_id, request.golden_id, request.aspect
    store.projects.get(project_id)
    if judge_run_id := getattr(request, "run_id", ""):
        require_made_here(store, judge_run_id)

    def enter() -> str:
        asked = pack(request).body
        run_id = store.runs.add(
            project_id, golden_id, kind=name, title=title, aspect=aspect, judge_spec=judge_spec, request=asked
        )
        if opens := kind.opens(request):
            access = HeldOutAccess(aspect, opens, subject=golden_id)
            store.events.add(project_id, access, store.actor, form=f"opened:{run_id}:{aspect}")
        store.events.add(project_id, Action(kind.does, {"aspect": aspect}, subject=run_id), store.actor)
        return run_id

    run_id = store.together(enter)
    ensure_worker(settings)
    return run_id


def execute_run(store: Store, settings: Settings, run: Run, progress: RunProgress) -> str:
    """Execute a run and store its result. Return "done", or "budget" if the budget was spent.

    Raises:
        JobError: The kind of the run is unknown.
        NotFoundError, AspectError: The request no longer fits the stored data.
    """
    kind = _kind_of(run)
    work = RunWork(store, settings, run, progress)
    result = kind.run(work)
    work.keep(RESULT, result)
    if kind.enter is not None:
        kind.enter(work, result)
    return "budget" if getattr(result, "stopped_early", "") else "done"


def _kind_of(run: Run) -> Kind:
    if run.kind not in KINDS:
        raise JobError(
            f"This version of Concord doesn't support run {run.run_id}, which is of kind {run.kind!r}. Update Concord."
        )
    return KINDS[run.kind]


def lane_of(run: Run) -> Lane:
    """Return the queue lane of a run; the default lane for an unknown kind."""
    kind = KINDS.get(run.kind)
    return "usual" if kind is None else kind.lane


def execute_here(store: Store, settings: Settings, run_id: str) -> str:
    """Execute a queued run in this process, and return its final status."""
    attempt = store.runs.get(run_id).attempt
    if not store.runs.claim(run_id, attempt, "here"):
        raise JobError(f"Run {run_id} isn't waiting for a worker. To see the run's status, reload the page.")
    run = store.runs.get(run_id)
    with RunProgress(store, run, threading.Event()) as progress:
        status = execute_run(store, settings, run, progress)
    store.runs.finish(run_id, attempt, status)
    return status


@requires("reviewer", "cancelled a run")
def cancel_run(store: Store, run_id: str) -> None:
    """Cancel a run. Paid replies stay cached. Raises NotFoundError for an unknown id."""
    store.runs.request_cancel(run_id)


@requires("reviewer", "resumed a run")
def resume_run(store: Store, settings: Settings, run_id: str) -> None:
    """Resume a failed or cancelled run. A failed run requests missing and unreadable replies again.

    Raises JobError for an imported run or a run with another status.
    """
    require_made_here(store, run_id)
    run = store.runs.get(run_id)
    store.runs.requeue(run_id)
    if run.status == "failed":
        store.replies.of_run(run_id).forget_unread()
    ensure_worker(settings)


def is_imported(store: Store, run_id: str) -> bool:
    """Return whether a run came with an imported project."""
    run = store.runs.get(run_id)
    return store.projects.get(run.project_id).came_with(run)


def require_made_here(store: Store, run_id: str) -> None:
    """Raise JobError for an imported run, whose endpoints, files and models must never be used."""
    if is_imported(store, run_id):
        raise JobError(
            f"Run {run_id} was imported and is read-only. To start a run of your own, choose a judge and calibrate it."
        )


def unread_replies(store: Store, run_id: str) -> int:
    """Return the number of unreadable replies of a run."""
    return len(store.replies.of_run(run_id).unread())


# ── results of runs ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class RunDetail(Run):
    """A run with its request, the latest leaderboard (`standing`, for judge runs), and its result (`outcome`)."""

    request: RunRequest = field(kw_only=True)
    standing: LeaderboardSnapshot | None = None
    outcome: Any = None

    @property
    def calibration(self) -> Calibration | None:
        """The result of a finished calibration, or of the measurement of a version."""
        return self.outcome if isinstance(self.outcome, Calibration) else None


def run_view(store: Store, run_id: str) -> RunDetail:
    """Load a run with its results so far. Raises NotFoundError for an unknown id, JobError for an unknown kind."""
    run = store.runs.get(run_id)
    kind = _kind_of(run)
    return RunDetail(
        **vars(run),
        request=unpack(kind.request, run.request_json),
        standing=store.results.read(run_id, SNAPSHOT, LeaderboardSnapshot) if run.kind in JUDGES else None,
        outcome=store.results.read(run_id, RESULT, kind.result),
    )


def load_calibration(store: Store, run_id: str) -> Calibration:
    """Load the result of a judge run. Raises NotFoundError for an unknown id, JobError if there is no result."""
    run = store.runs.get(run_id)
    result = store.results.read(run_id, RESULT, Calibration) if run.kind in JUDGES else None
    if result is None:
        raise JobError(f"Run {run_id} ({run.kind}, {run.status}) has no calibration result.")
    return result


def load_scores(store: Store, run_id: str) -> ScoreMatrix:
    """Load a run's scores so far, (n_criteria, n_items), for all items of its golden set."""
    golden = store.goldens.load(store.runs.get(run_id).golden_id)
    return store.results.scores(run_id, golden.item_ids)


def judge_run(store: Store, run_id: str) -> str:
    """Return the id of the judge run behind a re-scoring or a refinement round; any other id is returned unchanged."""
    run = store.runs.get(run_id)
    return str(json.loads(run.request_json)["run_id"]) if run.kind in ("rescore", "round") else run_id


def load_judge_state(store: Store, run_id: str) -> Mapping[str, Any] | None:
    """Return the state of the judge that a run prepared; None if it has prepared none."""
    kept = store.results.read(run_id, JUDGE, JudgeState)
    return None if kept is None else kept.state


def require_judge(store: Store, run_id: str) -> Mapping[str, Any]:
    """Return the state of the judge that a calibration prepared.

    Raises JobError if the state is missing or the run is imported.
    """
    require_made_here(store, run_id)
    state = load_judge_state(store, run_id)
    if state is None:
        raise JobError(f"Run {run_id} has no judge yet. Try again once its first criteria appear.")
    return state


def list_held_out_accesses(store: Store, project_id: str, golden_id: str, aspect: str) -> list[HeldOutAccess]:
    """Return the `HeldOutAccess` entries for an aspect of a golden set, oldest first."""
    return [access for access in store.events.all(project_id, HeldOutAccess, golden_id) if access.aspect == aspect]


# ── a run in progress ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class RunWork(Recorder):
    """The inputs and outputs of a run in progress.

    Once another attempt has started, the store refuses writes by this attempt.
    """

    store: Store
    settings: Settings
    run: Run
    progress: RunProgress

    def request(self, kind: type[T]) -> T:
        return unpack(kind, self.run.request_json)

    @cached_property
    def golden(self) -> GoldenSet:
        return self.store.goldens.load(self.run.golden_id)

    @cached_property
    def replies(self) -> RunReplies:
        """The run's reply cache."""
        return self.store.replies.of_run(self.run.run_id)

    # ── stored results ─────────────────────────────────────────────────────────────────────────────────────────

    def keep(self, name: str, document: object) -> None:
        self.store.results.put_document(self.run.run_id, name, document, attempt=self.run.attempt)

    def add_criteria(self, criteria: Sequence[Criteria]) -> None:
        """Add criteria to the project."""
        self.progress.check()
        self.store.criteria.add(self.run.project_id, self.run.golden_id, criteria)

    def alignment(self, criteria_id: str, side: Side, alignment: Alignment, status: str = "") -> CriteriaAlignment:
        """Return a record of the alignment of criteria in this run, for `add_alignments`."""
        return CriteriaAlignment(criteria_id, self.run.run_id, side, alignment, status)

    def add_alignments(self, alignments: Sequence[CriteriaAlignment]) -> None:
        self.progress.check()
        self.store.criteria.record(self.run.project_id, alignments)

    def add_judge(self, judge: JudgeScores, replies: Mapping[str, tuple[str, ...]] | None = None) -> str:
        """Add a judge to the project, unless it already exists; return its id."""
        self.progress.check()
        return self.store.judges.add(self.run.project_id, self.run.golden_id, judge, replies)

    # ── judges ─────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def asking(self, state: Mapping[str, Any], task: Task) -> Iterator[BoundJudge]:
        """Open the judge in `state` for a `with` block. Criteria and scores are stored as they arrive."""
        with closing(restore_judge(state, self.settings, self.replies, gate=NAMED)) as judge:
            self.progress.remarks = lambda: judge.remarks
            yield BoundJudge(judge, self.golden, task, self.progress, recorder=self)

    def set_judge(self, judge: Judge, prepared: Prepared) -> None:
        self.progress.remarks = lambda: judge.remarks
        self.keep(JUDGE, JudgeState(judge_state(judge), prepared))

    def add_scores(self, positions: Sequence[int], scores: ScoreMatrix) -> None:
        self.store.results.add_scores(self.run.run_id, positions, scores, attempt=self.run.attempt)
