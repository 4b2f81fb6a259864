"""Runs and the workers that do them: what was asked for, its state, who works on it.

Every change of a run bumps `version`, so that a screen polls one small number.  Each time a worker starts or resumes a
run is an *attempt*; it writes only while that attempt is running: a worker whose run was passed on gets `False` back.
Who is alive is known by heartbeat on the clock of the database.
"""

from __future__ import annotations

import uuid
from typing import Any

import sqlalchemy as sa

from core.errors import JobError, NotFoundError
from core.progress import Snapshot
from core.project_records import RESUMABLE, Run, Worker, moment
from core.records import Usage
from core.store.codec import pack, unpack
from core.store.database import StorePart, Transaction, record_of
from core.store.schema import projects, runs, workers
from core.version import VERSION

WAITING = "waiting for a worker"
"""What a queued run says of itself as long as there is nothing else to say."""


class Runs(StorePart):
    def add(  # noqa: PLR0917 - the row, column by column
        self, project_id: str, golden_id: str, kind: str, title: str, aspect: str, judge_spec: str, request: str
    ) -> str:
        """Enter a run as queued; returns its id.  `request` is JSON text that the store does not read."""
        run_id = f"r{uuid.uuid4().hex[:12]}"
        with self._db.write() as transaction:
            now = transaction.now
            row = {
                "run_id": run_id,
                "project_id": project_id,
                "golden_id": golden_id,
                "kind": kind,
                "title": title,
                "aspect": aspect,
                "judge_spec": judge_spec,
                "request": request,
                "status": "queued",
                "message": WAITING,
                "usage": pack(Usage()).body,
                "attempt": 1,
                "version": 1,
                "cancel_requested": False,
                "created_at": now,
                "updated_at": now,
            }
            row |= dict.fromkeys(("phase", "error", "begun_by", "worker_id"), "")
            row |= dict.fromkeys(("calls", "calls_expected", "snapshots"), 0)
            transaction.execute(sa.insert(runs), row)
        return run_id

    def get(self, run_id: str) -> Run:
        """NotFoundError for an unknown id."""
        for run in self._select(runs.c.run_id == run_id):
            return run
        raise NotFoundError(f"There is no run {run_id!r}. It may have been made in another CONCORD_HOME.")

    def all(self, project_id: str | None = None) -> list[Run]:
        """Every run, or the project's, newest first."""
        return self._select(sa.true() if project_id is None else runs.c.project_id == project_id)

    def active(self) -> list[Run]:
        """Runs that are queued or running."""
        return self._select(runs.c.status.in_(("queued", "running")))

    def version(self, run_id: str) -> int:
        """A number that grows with every change.  NotFoundError for an unknown id."""
        row = self._db.row(sa.select(runs.c.version).filter_by(run_id=run_id))
        if row is None:
            raise NotFoundError(f"There is no run {run_id!r}.")
        return int(row.version)

    # ── what people ask for ──────────────────────────────────────────────────────────────────────────────────

    def request_cancel(self, run_id: str) -> None:
        """Ask for a stop: at once where nobody works on the run, else when its worker next looks.

        Nothing happens to a finished run.  NotFoundError for an unknown id.
        """
        run = self.get(run_id)
        lost = sa.and_(runs.c.status == "running", sa.literal(run.worker_alive is False))
        idle = sa.and_(sa.or_(runs.c.status == "queued", lost), runs.c.worker_id == run.worker_id)
        with self._db.write() as transaction:
            now = transaction.now
            ended = sa.update(runs).filter_by(run_id=run_id).where(idle).values(cancel_requested=False)
            _bumped(transaction, ended, status="cancelled", message="cancelled", finished_at=now)
            running = sa.update(runs).filter_by(run_id=run_id, status="running")
            _bumped(transaction, running, cancel_requested=True, message="cancelling")

    def requeue(self, run_id: str) -> None:
        """Set a failed or cancelled run going again; what it was answered is kept.  JobError for any other."""
        status = self.get(run_id).status
        over = sa.update(runs).filter_by(run_id=run_id).where(runs.c.status.in_(RESUMABLE))
        again = over.values(attempt=runs.c.attempt + 1, cancel_requested=False, started_at=None, finished_at=None)
        with self._db.write() as transaction:
            changed = _bumped(transaction, again, status="queued", worker_id="", error="", message=WAITING)
        if not changed:
            raise JobError(f"Run {run_id} is {status}; only a failed or cancelled run can be resumed.")

    # ── what workers do ──────────────────────────────────────────────────────────────────────────────────────

    def claim(
        self, run_id: str, attempt: int, worker_id: str, message: str = "starting", *, most: int | None = None
    ) -> bool:
        """Begin this attempt as `worker_id`; False when another worker was faster, or it was cancelled or is over.

        With `most` also where so many runs of its project are running, whoever claims at the same time.
        """
        with self._db.write() as transaction:
            if most is not None:
                its_project = sa.select(runs.c.project_id).filter_by(run_id=run_id).scalar_subquery()
                row = sa.select(projects.c.project_id).where(projects.c.project_id == its_project)
                transaction.execute(row.with_for_update(key_share=True))  # nobody else counts until this is over
                running = sa.select(sa.func.count()).select_from(runs).where(runs.c.project_id == its_project)
                if transaction.execute(running.where(runs.c.status == "running")).scalar_one() >= most:
                    return False
            claimed = _attempt("queued", run_id, attempt).values(
                started_at=sa.func.coalesce(runs.c.started_at, transaction.now),
                begun_by=sa.case((runs.c.begun_by == "", VERSION), else_=runs.c.begun_by),
            )
            return _bumped(transaction, claimed, status="running", worker_id=worker_id, message=message)

    def say(self, run_id: str, attempt: int, message: str) -> bool:
        """Say why a queued run waits; False when this attempt waits no longer."""
        with self._db.write() as transaction:
            return _bumped(transaction, _attempt("queued", run_id, attempt), message=message)

    def pass_on(self, run_id: str, attempt: int, message: str = "passed on from a lost worker") -> bool:
        """Queue a running run again as a new attempt; False when somebody was faster."""
        again = _attempt("running", run_id, attempt).values(attempt=attempt + 1)
        with self._db.write() as transaction:
            return _bumped(transaction, again, status="queued", worker_id="", message=message)

    def progress(self, run_id: str, attempt: int, snapshot: Snapshot, snapshots: int) -> bool:
        """Write where the run is, and how many snapshots it has published; False when the attempt is over."""
        change = _attempt("running", run_id, attempt).values(
            phase=snapshot.phase,
            calls=snapshot.calls,
            calls_expected=snapshot.calls_expected,
            usage=pack(snapshot.usage).body,
            snapshots=snapshots,
        )
        with self._db.write() as transaction:
            return _bumped(transaction, change, message=snapshot.message)

    def finish(self, run_id: str, attempt: int, status: str, *, message: str = "", error: str = "") -> bool:
        """End the run; False when the attempt is over."""
        with self._db.write() as transaction:
            ended = _attempt("running", run_id, attempt).values(finished_at=transaction.now, cancel_requested=False)
            return _bumped(transaction, ended, status=status, message=message, error=error)

    def must_stop(self, run_id: str, attempt: int) -> str:
        """ "cancelled" when a person asked, "lost" when another attempt is running, else ""."""
        row = self._db.row(
            sa.select(runs.c.cancel_requested).filter_by(run_id=run_id, attempt=attempt, status="running")
        )
        return "lost" if row is None else "cancelled" if row.cancel_requested else ""

    def _select(self, where: sa.ColumnElement[bool]) -> list[Run]:
        query = sa.select(
            runs,
            runs.c.request.label("request_json"),
            workers.c.beat_at,
            sa.func.coalesce(workers.c.capability, "").label("capability"),
        ).outerjoin(workers, workers.c.worker_id == runs.c.worker_id)
        with self._db.read() as transaction:
            now = moment(transaction.now)
            rows = transaction.rows(query.where(where).order_by(runs.c.created_at.desc(), runs.c.run_id))
        return [record_of(Run, row, now=now, usage=unpack(Usage, row.usage)) for row in rows]


def _attempt(status: str, run_id: str, attempt: int) -> sa.Update:
    return sa.update(runs).filter_by(run_id=run_id, attempt=attempt, status=status)


def _bumped(transaction: Transaction, change: sa.Update, **values: Any) -> bool:
    """Make a change, with `values`, under a new version number; whether there was a row to change."""
    change = change.values(**values, updated_at=transaction.now, version=runs.c.version + 1)
    return transaction.execute(change).rowcount == 1


# ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Workers(StorePart):
    def enter(self, worker_id: str, place: str, pid: int, capability: str = "cpu") -> None:
        """Sign on (over a predecessor of the same id); `capability` says what the worker's machine computes on."""
        with self._db.write() as transaction:
            about = {"worker_id": worker_id, "place": place, "pid": pid, "capability": capability}
            now = transaction.now
            transaction.upsert(workers, about | {"started_at": now, "beat_at": now})

    def beat(self, worker_id: str) -> None:
        """Give a sign of life."""
        with self._db.write() as transaction:
            transaction.execute(sa.update(workers).filter_by(worker_id=worker_id).values(beat_at=transaction.now))

    def leave(self, worker_id: str) -> None:
        """Sign off: the worker counts as gone at once."""
        with self._db.write() as transaction:
            transaction.execute(sa.update(workers).filter_by(worker_id=worker_id).values(beat_at=0.0))

    def all(self) -> list[Worker]:
        """Every worker that ever signed on, the latest sign of life first."""
        with self._db.read() as transaction:
            now = transaction.now
            rows = transaction.rows(sa.select(workers).order_by(workers.c.beat_at.desc()))
        return [record_of(Worker, row, silent_for=now - row.beat_at if row.beat_at else None) for row in rows]

    def alive(self) -> list[Worker]:
        return [worker for worker in self.all() if worker.alive]
