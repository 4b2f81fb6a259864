"""The log of what people did, to read and to take away."""

from __future__ import annotations

import json

from core.export.cells import csv_text
from core.jobs.tasks.access import requires
from core.jobs.tasks.convert import moment
from core.jobs.views.people import Entry
from core.store.store import Store


@requires("viewer")
def list_events(store: Store, project_id: str, kind: str | None = None, subject: str | None = None) -> list[Entry]:
    """The project's log, oldest first; of one kind or about one thing when named."""
    return [
        Entry(row.number, row.kind, row.subject, row.actor, row.role, row.body, moment(row.created_at))
        for row in store.events.all(project_id, kind, subject)
    ]


@requires("admin")
def log_csv(store: Store, project_id: str) -> str:
    """The whole log as CSV, one entry a row; no cell can be taken for a formula."""
    header = ("number", "at", "actor", "role", "kind", "subject", "what", "details")
    rows = (
        (
            *(one.number, one.at.isoformat(timespec="seconds"), one.actor, one.role, one.kind, one.subject),
            *(one.sentence, json.dumps(dict(one.body), ensure_ascii=False, sort_keys=True)),
        )
        for one in list_events(store, project_id)
    )
    return csv_text(header, rows)
