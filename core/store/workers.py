"""Workers: who is alive, by heartbeat on the database's clock."""

from __future__ import annotations

import sqlalchemy as sa

from core.store.database import Database
from core.store.patience import Part
from core.store.rows import WorkerRow
from core.store.schema import workers

ALIVE_SECONDS = 15.0
"""A worker that gave no sign of life for longer is shown as gone; its runs are taken over."""


class Workers(Part):
    def __init__(self, database: Database) -> None:
        self._db = database

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

    def all(self) -> list[WorkerRow]:
        """Every worker that ever signed on, the latest sign of life first."""
        with self._db.read() as connection:
            now = self._db.now(connection)
            found = connection.execute(sa.select(workers).order_by(workers.c.beat_at.desc()))
            return [WorkerRow(**row._mapping, now=now) for row in found]

    def alive(self) -> list[WorkerRow]:
        return [row for row in self.all() if row.now - row.beat_at <= ALIVE_SECONDS]
