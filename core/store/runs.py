"""Runs, the workers that do them, what they leave (documents and scores), and replies, which are paid for once.

Every change of a run bumps `version`, so that a screen polls one small number.  Each time a worker starts or resumes a
run is an *attempt*; it writes only while that attempt is running: a worker whose run was passed on gets `False` back.
Who is alive is known by heartbeat on the clock of the database.

Scores are stored per run and criteria as one float64 BLOB over all items of the golden set, in the golden set's order,
NaN where there is none.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa

from core.errors import JobError, LostRunError, NotFoundError, StoreError
from core.progress import Snapshot
from core.project_records import FINISHED, RESUMABLE, Run, Worker, moment
from core.records import VERSION, FloatArray, ScoreMatrix, Unscored, Usage
from core.store.database import (
    Database,
    Packed,
    StorePart,
    Transaction,
    blocks,
    documents,
    goldens,
    in_chunks,
    in_our_words,
    metadata,
    pack,
    record_of,
    replies,
    run_replies,
    runs,
    scores,
    unpack,
    workers,
)

T = TypeVar("T")
SNAPSHOT = "standing"
"""Name of the document with the latest snapshot: a leaderboard, or a grid of styles."""
JUDGE = "judge"
"""Name of the document with the judge made ready (`core.projects.run_control.JudgeState`)."""
RESULT = "result"
"""Name of the document with the run's result (`core.projects.run_control`)."""
WAITING = "waiting for a worker"
"""What a queued run says of itself as long as there is nothing else to say."""


class Runs(StorePart):
    def add(  # noqa: PLR0917 - the row, column by column
        self, project_id: str, golden_id: str, kind: str, title: str, aspect: str, judge_spec: str, request: str
    ) -> str:
        """Enter a run as queued; returns its id.  `request` is JSON text that the store does not read."""
        run_id = f"r{uuid.uuid4().hex[:12]}"
        row: dict[str, Any] = dict.fromkeys(("phase", "error", "begun_by", "worker_id"), "")
        row |= dict.fromkeys(("calls", "calls_expected", "snapshots"), 0)
        row |= {"run_id": run_id, "project_id": project_id, "golden_id": golden_id, "kind": kind, "title": title}
        row |= {"aspect": aspect, "judge_spec": judge_spec, "request": request, "status": "queued", "message": WAITING}
        row |= {"usage": pack(Usage()).body, "attempt": 1, "version": 1, "cancel_requested": False}
        with self._db.write() as transaction:
            now = transaction.now
            transaction.insert_new(runs, row | {"created_at": now, "updated_at": now})
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

    def claim(self, run_id: str, attempt: int, worker_id: str, message: str = "starting") -> bool:
        """Begin this attempt as `worker_id`; False when another worker was faster, or it was cancelled or is over."""
        with self._db.write() as transaction:
            claimed = _attempt("queued", run_id, attempt).values(
                started_at=sa.func.coalesce(runs.c.started_at, transaction.now),
                begun_by=sa.case((runs.c.begun_by == "", VERSION), else_=runs.c.begun_by),
            )
            return _bumped(transaction, claimed, status="running", worker_id=worker_id, message=message)

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
        query = sa.select(runs, runs.c.request.label("request_json"), workers.c.beat_at)
        query = query.outerjoin(workers, workers.c.worker_id == runs.c.worker_id)
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
    def enter(self, worker_id: str, place: str, pid: int) -> None:
        """Sign on, over a predecessor of the same id."""
        with self._db.write() as transaction:
            about = {"worker_id": worker_id, "place": place, "pid": pid, "capability": ""}
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


# ── what runs leave behind ───────────────────────────────────────────────────────────────────────────────────────────


Reasons = Mapping[str, tuple[Unscored, ...]]
"""Why items have no score, as `unscored`."""


class Results(StorePart):
    def document(self, run_id: str, name: str) -> Packed | None:
        """The run's document of that name as it is stored, or None."""
        row = self._db.row(sa.select(documents).filter_by(run_id=run_id, name=name))
        return None if row is None else Packed(row.body, row.blob)

    def read(self, run_id: str, name: str, kind: type[T]) -> T | None:
        """The record of type `kind` in the run's document of that name, or None."""
        stored = self.document(run_id, name)
        return None if stored is None else unpack(kind, stored)

    def put_document(self, run_id: str, name: str, document: object, *, attempt: int | None = None) -> None:
        """Store a record or overwrite the one there; a screen that polls the run's version sees it.

        LostRunError, and nothing is stored, where the run is no longer running in this `attempt`.
        """
        packed = document if isinstance(document, Packed) else pack(document)
        with self._db.write() as transaction:
            row = {"run_id": run_id, "name": name, "body": packed.body, "blob": packed.blob}
            transaction.upsert(documents, row)
            _touch(transaction, run_id, attempt)

    def add_scores(
        self, run_id: str, positions: Sequence[int], new: ScoreMatrix, *, attempt: int | None = None
    ) -> None:
        """Write scores of the items at `positions` of the golden set, the columns of `new`, over those there already.

        A repetition changes nothing.  `attempt` as above.
        """
        with self._db.write() as transaction:
            _touch(transaction, run_id, attempt)
            query = sa.select(goldens.c.n_items).join(runs, runs.c.golden_id == goldens.c.golden_id)
            n_items = int(transaction.execute(query.where(runs.c.run_id == run_id)).scalar_one())
            there = {row.criteria_id: row for row in transaction.rows(_scores_of(run_id, new.criteria_ids))}
            rows = []
            for k, criteria_id in enumerate(new.criteria_ids):
                row = there.get(criteria_id)
                values = np.full((2, n_items), np.nan) if row is None else _values(row.blob, n_items)
                values[0, list(positions)] = new.values[k]
                if new.turned is not None:
                    values[1, list(positions)] = new.turned[k]
                stored = values[0] if np.isnan(values[1]).all() else values
                reasons = {} if row is None else {u.item_id: u for u in _reasons(row)}
                reasons |= {unscored.item_id: unscored for unscored in new.unscored.get(criteria_id, ())}
                body, blob = pack({"unscored": tuple(reasons.values())}).body, stored.astype("<f8").tobytes()
                rows.append({"run_id": run_id, "criteria_id": criteria_id, "body": body, "blob": blob})
            transaction.upsert(scores, rows)

    def scores(self, run_id: str, item_ids: Sequence[str], criteria_ids: Sequence[str] | None = None) -> ScoreMatrix:
        """(n_criteria, n_items) in the golden set's order, of all criteria the run scored or of those named.

        `item_ids` are the golden set's.  Criteria without any score are absent.
        """
        rows = {row.criteria_id: row for row in self._db.rows(_scores_of(run_id, criteria_ids))}
        names = [name for name in (rows if criteria_ids is None else criteria_ids) if name in rows]
        both = np.array([_values(rows[name].blob, len(item_ids)) for name in names], dtype=np.float64)
        values, turned = both.reshape(len(names), 2, len(item_ids)).transpose(1, 0, 2)
        reasons = {name: _reasons(rows[name]) for name in names}
        return ScoreMatrix(
            tuple(names),
            tuple(item_ids),
            values,
            {name: why for name, why in reasons.items() if why},
            turned=None if np.isnan(turned).all() else turned,
        )


def _touch(transaction: Transaction, run_id: str, attempt: int | None) -> None:
    change = sa.update(runs).filter_by(run_id=run_id).values(version=runs.c.version + 1)
    if attempt is not None:
        change = change.filter_by(attempt=attempt, status="running")
    if transaction.execute(change).rowcount != 1 and attempt is not None:
        raise LostRunError("Another worker has the run.")


def _scores_of(run_id: str, criteria_ids: Sequence[str] | None) -> sa.Select[Any]:
    query = sa.select(scores).filter_by(run_id=run_id).order_by(scores.c.criteria_id)
    return query if criteria_ids is None else query.where(scores.c.criteria_id.in_(criteria_ids))


def _reasons(row: sa.Row[Any]) -> tuple[Unscored, ...]:
    reasons: Reasons = unpack(Reasons, row.body)  # type: ignore[type-abstract]
    return reasons["unscored"]


def _values(blob: bytes, n_items: int) -> FloatArray:
    """(2, n_items) scores, and those of pairs the other way round, which are stored where there are any."""
    values = np.frombuffer(blob, dtype="<f8").astype(np.float64)
    if len(values) not in (n_items, 2 * n_items):
        raise StoreError(f"Stored scores are of {len(values)} items and the golden set has {n_items}.")
    return np.concatenate([values, np.full(2 * n_items - len(values), np.nan)]).reshape(2, n_items)


# ── replies ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Replies(StorePart):
    """Thread-safe; what `put_replies` was given is committed when it returns."""

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        """Key → stored text, for those that are there."""
        if not keys:
            return {}
        with self._db.read() as transaction:
            return _shared(transaction, keys)

    def put_replies(self, new: Sequence[tuple[str, str]]) -> None:
        """Store (key, text) pairs that serve everybody; storing a key twice keeps the first."""
        if new:
            with self._db.write() as transaction:
                _share(transaction, new)

    def of_run(self, run_id: str, *, alone: bool = False) -> RunReplies:
        """The replies that a run may use, and those that are its own; `alone`: only its own, which serve no other."""
        return RunReplies(self._db, run_id, alone=alone)


class RunReplies(StorePart):
    """A `ReplyStore` in the hands of one run, and its `RunAnswers` (`core.providers.cached`)."""

    def __init__(self, database: Database, run_id: str, *, alone: bool = False) -> None:
        super().__init__(database)
        self._run_id, self._alone = run_id, alone
        self.counted: set[str] = set()

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored replies that all runs share, by key; the run then owns them too."""
        if self._alone:
            return {}
        with self._db.read() as transaction:
            texts = _shared(transaction, keys)
        if texts:
            self._note(dict.fromkeys(texts), paid=False)
        return texts

    def put_replies(self, new: Sequence[tuple[str, str]]) -> None:
        """Store what the run paid for, in one transaction with what serves everybody; the first answer stays."""
        if self._alone:
            self._note(dict(new), paid=True)
        elif new:
            with self._db.joining():
                with self._db.write() as transaction:
                    shared = _share(transaction, new)
                self._note({key: None if key in shared else text for key, text in new}, paid=True)

    def put_failures(self, new: Sequence[tuple[str, str]]) -> None:
        """Store requests that were answered by no reply, with the reason as JSON text."""
        self._note(dict(new), paid=True)

    def unread(self) -> list[str]:
        """The keys of what was answered by no reply, or by one that cannot be read."""
        query = sa.select(run_replies).filter_by(run_id=self._run_id).where(run_replies.c.body.is_not(None))
        return [row.reply_key for row in self._db.rows(query) if not _serves_everybody(row.body)]

    def forget_unread(self) -> None:
        """Ask again what is `unread`: a person resumes a run that failed, perhaps over one of these."""
        with self._db.write() as transaction:
            for keys in in_chunks(self.unread()):
                own = sa.delete(run_replies).filter_by(run_id=self._run_id)
                transaction.execute(own.where(run_replies.c.reply_key.in_(keys)))

    def answered(self, keys: Sequence[str]) -> dict[str, tuple[str, bool]]:
        """Key → (stored text, whether this run paid for it), for what the run was answered already."""
        query = sa.select(run_replies).filter_by(run_id=self._run_id)
        with self._db.read() as transaction:
            rows = list(_chosen(transaction, query, run_replies.c.reply_key, keys))
        texts = self.get_replies([row.reply_key for row in rows if row.body is None])
        answers = {row.reply_key: (row.body or texts.get(row.reply_key, ""), bool(row.paid)) for row in rows}
        return {key: answer for key, answer in answers.items() if answer[0]}

    def _note(self, texts: dict[str, str | None] | dict[str, str], *, paid: bool) -> None:
        rows = [{"run_id": self._run_id, "reply_key": k, "paid": paid, "body": text} for k, text in texts.items()]
        with self._db.write() as transaction:
            transaction.insert_new(run_replies, rows)


def _shared(transaction: Transaction, keys: Sequence[str]) -> dict[str, str]:
    query = sa.select(replies.c.reply_key, replies.c.body)
    return {row.reply_key: row.body for row in _chosen(transaction, query, replies.c.reply_key, keys)}


def _share(transaction: Transaction, new: Sequence[tuple[str, str]]) -> set[str]:
    """Store the texts that serve everybody; the keys whose stored text is now the one given here."""
    serving = {key: text for key, text in reversed(new) if _serves_everybody(text)}
    there = _shared(transaction, list(serving))
    rows = [{"reply_key": k, "body": text} for k, text in serving.items() if k not in there]
    transaction.insert_new(replies, rows)
    return {key for key, text in serving.items() if there.get(key, text) == text}


def _serves_everybody(text: str) -> bool:
    """Whether a reply can be read.  The next run asks again for one that was cut off, refused or empty."""
    reply = json.loads(text)
    whole = reply.get("finish", "stop") == "stop" and bool(str(reply.get("text", "-")).strip())
    return whole and not reply.get("unread") and "failure" not in reply


def _chosen(transaction: Transaction, query: sa.Select[Any], column: Any, keys: Sequence[str]) -> Iterator[Any]:
    """Rows of `query` with one of `keys` in `column`."""
    for some in in_chunks(dict.fromkeys(keys)):
        yield from transaction.rows(query.where(column.in_(some)))


# ── numbers of metrics ───────────────────────────────────────────────────────────────────────────────────────────


class MetricBlocks(StorePart):
    def get(self, key: str) -> str | None:
        """The text under `key`, or None."""
        row = self._db.row(sa.select(blocks).filter_by(block_key=key))
        return None if row is None else row.body

    def put(self, key: str, text: str) -> None:
        """Store a text; one that is there already stays."""
        with self._db.write() as transaction:
            transaction.insert_new(blocks, {"block_key": key, "body": text})


# ── what takes room ──────────────────────────────────────────────────────────────────────────────────────────────────


_HELD: dict[str, tuple[sa.Table, ...]] = {
    "replies": (replies, run_replies),
    "results of runs": (documents, scores),
    "metric values": (blocks,),
}


@dataclass(frozen=True, slots=True)
class StoredSize:
    """`n` rows or files of about `n_bytes` in all."""

    what: str
    n: int
    n_bytes: int


class Upkeep(StorePart):
    def held(self) -> tuple[StoredSize, ...]:
        """What takes room, the largest first; the rest of the tables are labels, texts and the log, under one name."""
        with self._db.read() as transaction:
            listed = [_held(transaction, what, tables) for what, tables in _HELD.items()]
            named = {table.name for tables in _HELD.values() for table in tables}
            rest = tuple(table for table in metadata.sorted_tables if table.name not in named)
            listed.append(_held(transaction, "golden sets, criteria, labels and the log", rest))
        return tuple(sorted(listed, key=lambda held: -held.n_bytes))

    def prune_replies(self, before: float, *, delete: bool = False) -> StoredSize:
        """Delete replies that came before a time; without `delete` only count them.

        Replies of runs that have not ended, or that can be resumed, stay.  Scores, criteria and reports stay: only the
        models' own words are lost, and would have to be asked for again.
        """
        over = [status for status in FINISHED if status not in RESUMABLE]
        unfinished = sa.select(runs.c.run_id).where(runs.c.status.not_in(over))
        needed = sa.select(run_replies.c.reply_key).where(run_replies.c.run_id.in_(unfinished))
        old = [replies.c.reply_key.not_in(needed), replies.c.created_at < before]
        sizes = sa.select(sa.func.count(), sa.func.sum(sa.func.length(replies.c.body, type_=sa.Integer)))
        with self._db.write() as transaction:
            n, n_bytes = transaction.execute(sizes.where(*old)).one()
            if delete:
                keys = [row.reply_key for row in transaction.rows(sa.select(replies.c.reply_key).where(*old))]
                for some in in_chunks(keys):
                    transaction.execute(sa.delete(replies).where(replies.c.reply_key.in_(some)))
                    transaction.execute(sa.delete(run_replies).where(run_replies.c.reply_key.in_(some)))
        return StoredSize("replies", n, int(n_bytes or 0))

    def shrink(self) -> None:
        """Give the room of deleted rows back to the disk; a server does that by itself."""
        if self._db.is_sqlite:  # VACUUM takes no transaction
            with in_our_words(self._db.folder), closing(self._db.engine.raw_connection()) as connection:
                connection.cursor().execute("VACUUM")


def _held(transaction: Transaction, what: str, tables: tuple[sa.Table, ...]) -> StoredSize:
    n = n_bytes = 0
    for table in tables:
        lengths = [
            sa.func.coalesce(sa.func.sum(sa.func.length(column, type_=sa.Integer)), 0)
            for column in table.columns
            if isinstance(column.type, sa.Text | sa.LargeBinary | sa.types.TypeDecorator)
        ]
        n_rows, *sizes = transaction.execute(sa.select(sa.func.count(), *lengths).select_from(table)).one()
        n += int(n_rows) if table is not run_replies else 0  # which run was answered by which is no reply more
        n_bytes += sum(map(int, sizes))
    return StoredSize(what, n, n_bytes)
