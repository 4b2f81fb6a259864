"""The log of what people did, to read and to take away."""

from __future__ import annotations

import json

from core.projects.access import requires
from core.review.kinds import KINDS
from core.review.log import Entry, LogPage
from core.spreadsheets import csv_text
from core.store.store import Store


@requires("viewer")
def list_events(store: Store, project_id: str, kind: str | None = None, subject: str | None = None) -> list[Entry]:
    """The project's log, oldest first; of one kind or about one thing when named."""
    return store.events.all(project_id, Entry if kind is None else KINDS[kind], subject)


@requires("viewer")
def log_page(
    store: Store,
    project_id: str,
    *,
    actor: str | None = None,
    kind: str | None = None,
    offset: int = 0,
    limit: int = 50,
) -> LogPage:
    """Up to `limit` entries of the log from `offset` on, newest first; of one person ("": nobody said) or kind."""
    return store.events.page(project_id, actor=actor, kind=kind, offset=offset, limit=limit)


@requires("viewer")
def list_people(store: Store, project_id: str) -> list[str]:
    """The names under which somebody labelled or did something in the project, in the order of the alphabet."""
    names = {*store.events.occurring(project_id)[0], *store.labels.raters(project_id)} - {""}
    return sorted(names, key=lambda name: (name.casefold(), name))


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
