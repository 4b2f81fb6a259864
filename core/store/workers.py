"""Workers: who is alive, by heartbeat on the database's clock."""

from __future__ import annotations

import sqlalchemy as sa

from core.kept import Worker, moment
from core.store.database import Database
from core.store.patience import Part
from core.store.schema import workers


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

    def all(self) -> list[Worker]:
        """Every worker that ever signed on, the latest sign of life first."""
        with self._db.read() as connection:
            now = self._db.now(connection)
            rows = connection.execute(sa.select(workers).order_by(workers.c.beat_at.desc()))
            return [
                Worker(
                    worker_id=row.worker_id,
                    place=row.place,
                    pid=row.pid,
                    started_at=moment(row.started_at),
                    silent_for=now - row.beat_at if row.beat_at else None,
                    capability=row.capability,
                )
                for row in rows
            ]

    def alive(self) -> list[Worker]:
        return [worker for worker in self.all() if worker.alive]
