"""Runs and the workers that do them: what was asked for, where it stands, who works on it.

Every change of a run bumps `version`, so that a screen polls one small number.  Each time a worker takes a run up is an
*attempt*; it writes only while that attempt is under way: a worker whose run was taken over gets `False` back.
Who is alive is known by heartbeat on the clock of the database.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from core.errors import JobError, NotFoundError
from core.progress import Snapshot
from core.project_records import RESUMABLE, Run, Worker, moment
from core.records import Usage
from core.store.codec import pack, unpack
from core.store.database import record_of
from core.store.reconnecting import Part
from core.store.schema import projects, runs, workers
from core.version import VERSION

WAITING = "waiting for a worker"
"""What a queued run says of itself as long as there is nothing else to say."""


class Runs(Part):
    def add(  # noqa: PLR0917 - the row, column by column
        self, project_id: str, golden_id: str, kind: str, title: str, aspect: str, judge_spec: str, request: str
    ) -> str:
        """Enter a run as queued; returns its id.  `request` is JSON text that the store does not read."""
        run_id = f"r{uuid.uuid4().hex[:12]}"
        with self._db.write() as connection:
            now = self._db.now(connection)
            row = {
                **{"run_id": run_id, "project_id": project_id, "golden_id": golden_id, "kind": kind, "title": title},
                **{"aspect": aspect, "judge_spec": judge_spec, "request": request},
                **{"status": "queued", "phase": "", "message": WAITING, "error": ""},
                **{"calls": 0, "calls_expected": 0, "usage": pack(Usage()).body},
                **{"attempt": 1, "snapshots": 0, "begun_by": ""},
                **{"cancel_requested": False, "worker_id": "", "version": 1, "created_at": now, "updated_at": now},
            }
            connection.execute(sa.insert(runs), row)
        return run_id

    def get(self, run_id: str) -> Run:
        """NotFoundError for an unknown id."""
        rows = self._select(runs.c.run_id == run_id)
        if not rows:
            raise NotFoundError(f"There is no run {run_id!r}. It may have been made in another CONCORD_HOME.")
        return rows[0]

    def all(self, project_id: str | None = None) -> list[Run]:
        """Every run, or the project's, newest first."""
        return self._select(sa.true() if project_id is None else runs.c.project_id == project_id)

    def active(self) -> list[Run]:
        """Runs that are queued or running."""
        return self._select(runs.c.status.in_(("queued", "running")))

    def version(self, run_id: str) -> int:
        """A number that grows with every change.  NotFoundError for an unknown id."""
        with self._db.read() as connection:
            version = connection.execute(sa.select(runs.c.version).where(runs.c.run_id == run_id)).scalar()
        if version is None:
            raise NotFoundError(f"There is no run {run_id!r}.")
        return int(version)

    # ── what people ask for ──────────────────────────────────────────────────────────────────────────────────

    def request_cancel(self, run_id: str) -> None:
        """Ask for a stop: at once where nobody works on the run, else when its worker next looks.

        Nothing happens to a finished run.  NotFoundError for an unknown id.
        """
        run = self.get(run_id)
        lost = sa.and_(runs.c.status == "running", sa.literal(run.worker_alive is False))
        idle = sa.and_(sa.or_(runs.c.status == "queued", lost), runs.c.worker_id == run.worker_id)
        with self._db.write() as connection:
            ended = {"status": "cancelled", "message": "cancelled", "cancel_requested": False}
            self._update(connection, run_id, idle, **ended, finished_at=self._db.now(connection))
            self._update(connection, run_id, runs.c.status == "running", cancel_requested=True, message="cancelling")

    def requeue(self, run_id: str) -> None:
        """Set a failed or cancelled run going again; what it was answered is kept.  JobError for any other."""
        status = self.get(run_id).status
        again = {
            **{"status": "queued", "attempt": runs.c.attempt + 1, "cancel_requested": False, "worker_id": ""},
            **{"error": "", "message": WAITING},
            **{"started_at": None, "finished_at": None},
        }
        with self._db.write() as connection:
            changed = self._update(connection, run_id, runs.c.status.in_(RESUMABLE), **again)
        if not changed:
            raise JobError(f"Run {run_id} is {status}; only a failed or cancelled run can be resumed.")

    # ── what workers do ──────────────────────────────────────────────────────────────────────────────────────

    def claim(
        self, run_id: str, attempt: int, worker_id: str, message: str = "starting", *, most: int | None = None
    ) -> bool:
        """Begin this attempt as `worker_id`; False when another worker was faster, or it was cancelled or is over.

        With `most` also where so many runs of its project are at work, whoever claims beside this.
        """
        with self._db.write() as connection:
            free = _waiting(attempt)
            if most is not None:
                free = sa.and_(free, sa.literal(self._n_at_work_beside(connection, run_id) < most))
            taken = {
                **{"status": "running", "worker_id": worker_id, "message": message},
                "started_at": sa.func.coalesce(runs.c.started_at, self._db.now(connection)),
                "begun_by": sa.case((runs.c.begun_by == "", VERSION), else_=runs.c.begun_by),
            }
            return self._update(connection, run_id, free, **taken)

    def say(self, run_id: str, attempt: int, message: str) -> bool:
        """Say why a queued run waits; False when this attempt waits no longer."""
        with self._db.write() as connection:
            return self._update(connection, run_id, _waiting(attempt), message=message)

    def pass_on(self, run_id: str, attempt: int, message: str = "passed on from a lost worker") -> bool:
        """Queue a running run again as a new attempt; False when somebody was faster."""
        with self._db.write() as connection:
            again = {"status": "queued", "attempt": attempt + 1, "worker_id": ""}
            return self._update(connection, run_id, _at_work(attempt), **again, message=message)

    def progress(self, run_id: str, attempt: int, snapshot: Snapshot, snapshots: int) -> bool:
        """Write where the run is, and how many snapshots it has published; False when the attempt is over."""
        stage = {name: getattr(snapshot, name) for name in ("phase", "message", "calls", "calls_expected")}
        with self._db.write() as connection:
            usage = pack(snapshot.usage).body
            return self._update(connection, run_id, _at_work(attempt), **stage, usage=usage, snapshots=snapshots)

    def finish(self, run_id: str, attempt: int, status: str, *, message: str = "", error: str = "") -> bool:
        """End the run; False when the attempt is over."""
        with self._db.write() as connection:
            values = {"status": status, "message": message, "error": error, "finished_at": self._db.now(connection)}
            return self._update(connection, run_id, _at_work(attempt), **values, cancel_requested=False)

    def must_stop(self, run_id: str, attempt: int) -> str:
        """ "cancelled" when a person asked, "lost" when another attempt is under way, else ""."""
        query = sa.select(runs.c.cancel_requested, runs.c.attempt, runs.c.status).where(runs.c.run_id == run_id)
        with self._db.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None or row.attempt != attempt or row.status != "running":
            return "lost"
        return "cancelled" if row.cancel_requested else ""

    # ── SQL ──────────────────────────────────────────────────────────────────────────────────────────────────

    @staticmethod
    def _n_at_work_beside(connection: sa.Connection, run_id: str) -> int:
        """How many runs of its project are at work; nobody else counts them until this transaction is over."""
        its_project = sa.select(runs.c.project_id).where(runs.c.run_id == run_id).scalar_subquery()
        row = sa.select(projects.c.project_id).where(projects.c.project_id == its_project)
        connection.execute(row.with_for_update(key_share=True))
        at_work = sa.and_(runs.c.project_id == its_project, runs.c.status == "running")
        return int(connection.execute(sa.select(sa.func.count()).select_from(runs).where(at_work)).scalar_one())

    def _update(self, connection: sa.Connection, run_id: str, where: sa.ColumnElement[bool], **values: Any) -> bool:
        change = sa.update(runs).where(runs.c.run_id == run_id, where)
        bumped = {"updated_at": self._db.now(connection), "version": runs.c.version + 1}
        return connection.execute(change.values(**values, **bumped)).rowcount == 1

    def _select(self, where: sa.ColumnElement[bool]) -> list[Run]:
        query = sa.select(runs, workers.c.beat_at, sa.func.coalesce(workers.c.capability, "").label("capability"))
        query = query.outerjoin(workers, workers.c.worker_id == runs.c.worker_id).where(where)
        with self._db.read() as connection:
            now = moment(self._db.now(connection))
            rows = connection.execute(query.order_by(runs.c.created_at.desc(), runs.c.run_id)).all()
        return [_run(row, now) for row in rows]


def _run(row: sa.Row[Any], now: datetime) -> Run:
    parsed = {"request_json": row.request, "usage": unpack(Usage, row.usage)}
    return record_of(Run, row, now=now, **parsed)


def _waiting(attempt: int) -> sa.ColumnElement[bool]:
    return sa.and_(runs.c.status == "queued", runs.c.attempt == attempt)


def _at_work(attempt: int) -> sa.ColumnElement[bool]:
    return sa.and_(runs.c.status == "running", runs.c.attempt == attempt)


# ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Workers(Part):
    def enter(self, worker_id: str, place: str, pid: int, capability: str = "cpu") -> None:
        """Sign on (over a predecessor of the same id); `capability` says what the worker's machine computes on."""
        with self._db.write() as connection:
            now = self._db.now(connection)
            about = {"worker_id": worker_id, "place": place, "pid": pid, "capability": capability}
            connection.execute(self._db.insert_or_replace(workers), about | {"started_at": now, "beat_at": now})

    def beat(self, worker_id: str) -> None:
        with self._db.write() as connection:
            now = self._db.now(connection)
            connection.execute(sa.update(workers).where(workers.c.worker_id == worker_id).values(beat_at=now))

    def leave(self, worker_id: str) -> None:
        """Sign off: the worker counts as gone at once."""
        with self._db.write() as connection:
            connection.execute(sa.update(workers).where(workers.c.worker_id == worker_id).values(beat_at=0.0))

    def all(self) -> list[Worker]:
        """Every worker that ever signed on, the latest sign of life first."""
        with self._db.read() as connection:
            now = self._db.now(connection)
            rows = connection.execute(sa.select(workers).order_by(workers.c.beat_at.desc()))
            return [record_of(Worker, row, silent_for=now - row.beat_at if row.beat_at else None) for row in rows]

    def alive(self) -> list[Worker]:
        return [worker for worker in self.all() if worker.alive]
