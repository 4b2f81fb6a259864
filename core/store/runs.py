"""Store runs, their workers, their results (documents and scores), and paid replies.

Each start or resumption of a run by a worker is an *attempt*. A worker can write only while its attempt is running; a
worker that lost its run gets `False`. Workers send heartbeats, timed by the clock of the database. Every change to
a run increments its `version`, so a screen needs to poll only that number.

Scores are stored per run and criteria, as one float64 BLOB over all items of the golden set (NaN = unscored).
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa

from core.errors import JobError, LostRunError, NotFoundError, StoreError
from core.progress import Snapshot
from core.project_records import ALIVE_SECONDS, FINISHED, RESUMABLE, Run, Worker, moment
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
    metadata,
    pack,
    record_of,
    replies,
    run_replies,
    runs,
    scores,
    translated_errors,
    unpack,
    workers,
)

T = TypeVar("T")
SNAPSHOT = "standing"
"""Document with the latest snapshot: a leaderboard, or a grid of styles."""
JUDGE = "judge"
"""Document with the prepared judge (`core.projects.start_and_resume.JudgeState`)."""
RESULT = "result"
"""Document with the result of the run (`core.projects.start_and_resume`)."""
WAITING = "waiting for a worker"


class Runs(StorePart):
    def add(  # noqa: PLR0917 - the row, column by column
        self, project_id: str, golden_id: str, kind: str, title: str, aspect: str, judge_spec: str, request: str
    ) -> str:
        """Add a queued run and return its id.  `request` is JSON text that the store does not read."""
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
                "created_at": now,
                "updated_at": now,
            }
            transaction.insert_new(runs, row)
        return run_id

    def get(self, run_id: str) -> Run:
        """Return a run.  Raises NotFoundError for an unknown id."""
        if found := self._select(runs.c.run_id == run_id):
            return found[0]
        raise NotFoundError(f"Run {run_id!r} not found. The run may be in another CONCORD_HOME.")

    def all(self, project_id: str | None = None) -> list[Run]:
        """Return every run, or the project's runs, newest first."""
        return self._select(sa.true() if project_id is None else runs.c.project_id == project_id)

    def active(self) -> list[Run]:
        """Return the runs that are queued or running."""
        return self._select(runs.c.status.in_(("queued", "running")))

    # ── requests of users ────────────────────────────────────────────────────────────────────────────────────

    def request_cancel(self, run_id: str) -> None:
        """Cancel a run: at once if no worker is running it, otherwise at its worker's next check.

        A finished run is left unchanged.  Raises NotFoundError for an unknown id.
        """
        run = self.get(run_id)
        with self._db.write() as transaction:
            ended = sa.update(runs).filter_by(run_id=run_id, status="queued")
            if run.worker_alive is False:
                ended = _attempt("running", run_id, run.attempt)
            ended = ended.values(finished_at=transaction.now, cancel_requested=False)
            _bumped(transaction, ended, status="cancelled", message="cancelled")
            running = sa.update(runs).filter_by(run_id=run_id, status="running")
            _bumped(transaction, running, cancel_requested=True, message="cancelling")

    def requeue(self, run_id: str) -> None:
        """Queue a failed or cancelled run again; its replies stay cached.  Raises JobError for any other run."""
        status = self.get(run_id).status
        over = sa.update(runs).filter_by(run_id=run_id).where(runs.c.status.in_(RESUMABLE))
        again = over.values(attempt=runs.c.attempt + 1, cancel_requested=False, started_at=None, finished_at=None)
        with self._db.write() as transaction:
            changed = _bumped(transaction, again, status="queued", worker_id="", error="", message=WAITING)
        if not changed:
            raise JobError(f"Run {run_id} is {status}. You can resume only failed or cancelled runs.")

    # ── steps of workers ─────────────────────────────────────────────────────────────────────────────────────

    def claim(self, run_id: str, attempt: int, worker_id: str, message: str = "starting") -> bool:
        """Start this attempt as `worker_id`; return False if another worker was faster, or the run is over."""
        with self._db.write() as transaction:
            claimed = _attempt("queued", run_id, attempt).values(
                started_at=sa.func.coalesce(runs.c.started_at, transaction.now),
                begun_by=sa.case((runs.c.begun_by == "", VERSION), else_=runs.c.begun_by),
            )
            return _bumped(transaction, claimed, status="running", worker_id=worker_id, message=message)

    def pass_on(self, run_id: str, attempt: int, message: str = "queued again because its worker was lost") -> bool:
        """Requeue a running run as a new attempt; return False if another worker was faster."""
        again = _attempt("running", run_id, attempt).values(attempt=attempt + 1)
        with self._db.write() as transaction:
            return _bumped(transaction, again, status="queued", worker_id="", message=message)

    def progress(self, run_id: str, attempt: int, snapshot: Snapshot, snapshots: int) -> bool:
        """Store the run's progress and how many snapshots it has published; return False if the attempt is over."""
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
        """End the run; return False if the attempt is over."""
        with self._db.write() as transaction:
            ended = _attempt("running", run_id, attempt).values(finished_at=transaction.now, cancel_requested=False)
            return _bumped(transaction, ended, status=status, message=message, error=error)

    def must_stop(self, run_id: str, attempt: int) -> str:
        """Return "cancelled" after a cancel request, "lost" if another attempt is running, otherwise ""."""
        query = sa.select(runs.c.cancel_requested).filter_by(run_id=run_id, attempt=attempt, status="running")
        row = self._db.row(query)
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
    """Change a run to `values`, increase its version, and return whether a row changed."""
    change = change.values(**values, updated_at=transaction.now, version=runs.c.version + 1)
    return transaction.execute(change).rowcount == 1


# ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Workers(StorePart):
    def register(self, worker_id: str, place: str, pid: int) -> None:
        """Register a worker, replacing a predecessor with the same id."""
        about = {"worker_id": worker_id, "place": place, "pid": pid}
        with self._db.write() as transaction:
            now = transaction.now
            transaction.upsert(workers, about | {"started_at": now, "beat_at": now})

    def heartbeat(self, worker_id: str) -> None:
        """Record a heartbeat of the worker."""
        with self._db.write() as transaction:
            transaction.execute(sa.update(workers).filter_by(worker_id=worker_id).values(beat_at=transaction.now))

    def unregister(self, worker_id: str) -> None:
        """Unregister a worker, so that it counts as gone at once."""
        with self._db.write() as transaction:
            transaction.execute(sa.update(workers).filter_by(worker_id=worker_id).values(beat_at=0.0))

    def alive(self) -> list[Worker]:
        """Return the workers with a recent heartbeat, the latest first."""
        with self._db.read() as transaction:
            recent = workers.c.beat_at >= transaction.now - ALIVE_SECONDS
            rows = transaction.rows(sa.select(workers).where(recent).order_by(workers.c.beat_at.desc()))
        return [record_of(Worker, row) for row in rows]


# ── results of runs ──────────────────────────────────────────────────────────────────────────────────────────────────


Reasons = Mapping[str, tuple[Unscored, ...]]
"""Items without a score and the reasons, under the key `unscored`."""


class Results(StorePart):
    def read(self, run_id: str, name: str, kind: type[T]) -> T | None:
        """Return the document `name` of the run as a record of type `kind`; None if it does not exist."""
        row = self._db.row(sa.select(documents).filter_by(run_id=run_id, name=name))
        return None if row is None else unpack(kind, Packed(row.body, row.blob))

    def put_document(self, run_id: str, name: str, document: object, *, attempt: int | None = None) -> None:
        """Store `document` under `name`, overwriting an existing one.

        If `attempt` is given and no longer running, raises LostRunError and stores nothing.
        """
        packed = pack(document)
        with self._db.write() as transaction:
            row = {"run_id": run_id, "name": name, "body": packed.body, "blob": packed.blob}
            transaction.upsert(documents, row)
            _touch(transaction, run_id, attempt)

    def add_scores(
        self, run_id: str, positions: Sequence[int], new: ScoreMatrix, *, attempt: int | None = None
    ) -> None:
        """Write scores (the columns of `new`) for the items at `positions` of the golden set, overwriting old ones.

        Repeating a call changes nothing.  `attempt` works as in `put_document`.
        """
        with self._db.write() as transaction:
            _touch(transaction, run_id, attempt)
            query = sa.select(goldens.c.n_items).join(runs, runs.c.golden_id == goldens.c.golden_id)
            n_items = int(transaction.execute(query.where(runs.c.run_id == run_id)).scalar_one())
            there = {row.criteria_id: row for row in transaction.rows(_scores_of(run_id, new.criteria_ids))}
            rows = []
            for k, criteria_id in enumerate(new.criteria_ids):
                reasons = {unscored.item_id: unscored for unscored in new.unscored.get(criteria_id, ())}
                values = np.full((2, n_items), np.nan)
                if (row := there.get(criteria_id)) is not None:
                    values = _values(row.blob, n_items)
                    reasons = {unscored.item_id: unscored for unscored in _reasons(row)} | reasons
                values[0, list(positions)] = new.values[k]
                if new.turned is not None:
                    values[1, list(positions)] = new.turned[k]
                blob = (values[:1] if np.isnan(values[1]).all() else values).astype("<f8").tobytes()
                body = pack({"unscored": tuple(reasons.values())}).body
                rows.append({"run_id": run_id, "criteria_id": criteria_id, "body": body, "blob": blob})
            transaction.upsert(scores, rows)

    def scores(self, run_id: str, item_ids: Sequence[str], criteria_ids: Sequence[str] | None = None) -> ScoreMatrix:
        """Return scores (n_criteria, n_items) of a run.

        Args:
            item_ids: All ids of the golden set, in its order. The scores have the same order.
            criteria_ids: Criteria to return; None means all criteria of the run. Criteria without any score are absent.
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
        raise LostRunError("Another worker has taken over the run.")


def _scores_of(run_id: str, criteria_ids: Sequence[str] | None) -> sa.Select[Any]:
    query = sa.select(scores).filter_by(run_id=run_id).order_by(scores.c.criteria_id)
    return query if criteria_ids is None else query.where(scores.c.criteria_id.in_(criteria_ids))


def _reasons(row: sa.Row[Any]) -> tuple[Unscored, ...]:
    reasons: Reasons = unpack(Reasons, row.body)  # type: ignore[type-abstract]
    return reasons["unscored"]


def _values(blob: bytes, n_items: int) -> FloatArray:
    """Return (2, n_items): scores, and scores of pairs in the other order (stored only if there are any)."""
    values = np.frombuffer(blob, dtype="<f8").astype(np.float64)
    if len(values) not in (n_items, 2 * n_items):
        raise StoreError(f"The stored scores cover {len(values)} items, but the golden set has {n_items}.")
    return np.concatenate([values, np.full(2 * n_items - len(values), np.nan)]).reshape(2, n_items)


# ── replies ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Replies(StorePart):
    """Replies shared by all runs; thread-safe.  `put_replies` commits before it returns."""

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        """Return a dict from key to text for the keys that are stored."""
        with self._db.read() as transaction:
            return _shared(transaction, keys)

    def put_replies(self, new: Sequence[tuple[str, str]]) -> None:
        """Store (key, text) pairs; a key that is already stored keeps its text."""
        with self._db.write() as transaction:
            _share(transaction, new)

    def of_run(self, run_id: str, *, alone: bool = False) -> RunReplies:
        """Return the reply store of a run; with `alone`, it neither reads shared replies nor adds any."""
        return RunReplies(self._db, run_id, alone=alone)


class RunReplies(StorePart):
    """Replies of one run, as a `ReplyStore` and as `RunAnswers` (`core.providers.cached`)."""

    def __init__(self, database: Database, run_id: str, *, alone: bool = False) -> None:
        super().__init__(database)
        self._run_id, self._alone = run_id, alone
        self.counted: set[str] = set()

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the shared replies by key, and link them to the run."""
        if self._alone:
            return {}
        with self._db.read() as transaction:
            texts = _shared(transaction, keys)
        if texts:
            self._note(dict.fromkeys(texts), paid=False)
        return texts

    def put_replies(self, new: Sequence[tuple[str, str]]) -> None:
        """Store replies that the run paid for; existing replies stay.

        The run's replies and the shared replies change in one transaction.
        """
        if self._alone:
            self._note(dict(new), paid=True)
        elif new:
            with self._db.joining():
                with self._db.write() as transaction:
                    shared = _share(transaction, new)
                self._note({key: None if key in shared else text for key, text in new}, paid=True)

    def put_failures(self, new: Sequence[tuple[str, str]]) -> None:
        """Store requests without a reply, with the reason as JSON text."""
        self._note(dict(new), paid=True)

    def unread(self) -> list[str]:
        """Return the keys without a reply, or with an unreadable reply."""
        query = sa.select(run_replies).filter_by(run_id=self._run_id).where(run_replies.c.body.is_not(None))
        return [row.reply_key for row in self._db.rows(query) if not _serves_everybody(row.body)]

    def forget_unread(self) -> None:
        """Delete entries without a readable reply, so that a resumed run asks again."""
        with self._db.write() as transaction:
            for keys in in_chunks(self.unread()):
                own = sa.delete(run_replies).filter_by(run_id=self._run_id)
                transaction.execute(own.where(run_replies.c.reply_key.in_(keys)))

    def answered(self, keys: Sequence[str]) -> dict[str, tuple[str, bool]]:
        """Return a dict from key to (stored text, whether this run paid for it), without keys that have no reply."""
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
    """Share the readable texts; return the keys whose stored text is now the given text."""
    serving = {key: text for key, text in reversed(new) if _serves_everybody(text)}
    there = _shared(transaction, list(serving))
    rows = [{"reply_key": k, "body": text} for k, text in serving.items() if k not in there]
    transaction.insert_new(replies, rows)
    return {key for key, text in serving.items() if there.get(key, text) == text}


def _serves_everybody(text: str) -> bool:
    """Return whether a reply is readable; cut-off, refused or empty replies are requested again by the next run."""
    reply = json.loads(text)
    whole = reply.get("finish", "stop") == "stop" and bool(str(reply.get("text", "-")).strip())
    return whole and not reply.get("unread") and "failure" not in reply


def _chosen(transaction: Transaction, query: sa.Select[Any], column: Any, keys: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of `query` whose `column` is one of `keys`."""
    for some in in_chunks(dict.fromkeys(keys)):
        yield from transaction.rows(query.where(column.in_(some)))


# ── numbers of metrics ───────────────────────────────────────────────────────────────────────────────────────────


class MetricBlocks(StorePart):
    def get(self, key: str) -> str | None:
        """Return the text for `key`; None if there is none."""
        row = self._db.row(sa.select(blocks).filter_by(block_key=key))
        return None if row is None else row.body

    def put(self, key: str, text: str) -> None:
        """Store a text; an existing text stays."""
        with self._db.write() as transaction:
            transaction.insert_new(blocks, {"block_key": key, "body": text})


# ── disk space ───────────────────────────────────────────────────────────────────────────────────────────────────────


_HELD: dict[str, tuple[sa.Table, ...]] = {
    "replies": (replies, run_replies),
    "run results": (documents, scores),
    "metric values": (blocks,),
}
_REST = "golden sets, criteria, labels and the log"


@dataclass(frozen=True, slots=True)
class StoredSize:
    """Storage use of one kind of content: `n` rows or files, about `n_bytes` bytes in total."""

    what: str
    n: int
    n_bytes: int


class Upkeep(StorePart):
    def storage_use(self) -> tuple[StoredSize, ...]:
        """Return the storage use by kind of content, the largest first."""
        names = {table: what for what, tables in _HELD.items() for table in tables}
        n, n_bytes = Counter[str](), Counter[str]()
        with self._db.read() as transaction:
            for table in metadata.sorted_tables:
                what = names.get(table, _REST)
                lengths = [
                    sa.func.coalesce(sa.func.sum(sa.func.length(column, type_=sa.Integer)), 0)
                    for column in table.columns
                    if isinstance(column.type, sa.Text | sa.LargeBinary | sa.types.TypeDecorator)
                ]
                n_rows, *sizes = transaction.execute(sa.select(sa.func.count(), *lengths).select_from(table)).one()
                n[what] += 0 if table is run_replies else n_rows  # its rows only link runs to replies
                n_bytes[what] += sum(map(int, sizes))
        return tuple(StoredSize(what, n[what], size) for what, size in n_bytes.most_common())

    def prune_replies(self, before: float, *, delete: bool = False) -> StoredSize:
        """Delete replies stored before a time (seconds since 1970); without `delete`, only count them.

        Replies of runs that have not ended, or that can be resumed, are kept.
        """
        over = [status for status in FINISHED if status not in RESUMABLE]
        unfinished = sa.select(runs.c.run_id).where(runs.c.status.not_in(over))
        needed = sa.select(run_replies.c.reply_key).where(run_replies.c.run_id.in_(unfinished))
        old = sa.and_(replies.c.reply_key.not_in(needed), replies.c.created_at < before)
        sizes = sa.select(sa.func.count(), sa.func.sum(sa.func.length(replies.c.body, type_=sa.Integer)))
        with self._db.write() as transaction:
            n, n_bytes = transaction.execute(sizes.where(old)).one()
            if delete:
                keys = sa.select(replies.c.reply_key).where(old)
                transaction.execute(sa.delete(run_replies).where(run_replies.c.reply_key.in_(keys)))
                transaction.execute(sa.delete(replies).where(old))
        return StoredSize("replies", n, int(n_bytes or 0))

    def shrink(self) -> None:
        """Free the disk space of deleted rows; a database server does this by itself."""
        if self._db.is_sqlite:  # VACUUM takes no transaction
            with translated_errors(self._db.folder), closing(self._db.engine.raw_connection()) as connection:
                connection.cursor().execute("VACUUM")
