"""Golden sets of a project."""

from __future__ import annotations

from core.data import Table
from core.data import read_upload as read_table_sent
from core.data.files import MAX_GOLDEN_ROWS
from core.errors import NotFoundError, UsageError
from core.kept import AspectSummary, GoldenPage, GoldenSummary
from core.projects.access import requires
from core.records import GoldenSet
from core.store.store import Store

_MOST_ROWS = 2_000


@requires("reviewer", "added a golden set")
def add_golden(store: Store, project_id: str, golden: GoldenSet) -> str:
    """Store a golden set in a project and return its id, the content digest; a second time changes nothing.

    NotFoundError for an unknown project.
    """
    store.projects.get(project_id)
    return store.goldens.add(project_id, golden)


@requires("reviewer")
def read_upload(store: Store, data: bytes, name: str, *, max_mb: float) -> Table:
    """The table in a file that somebody sent, read as `core.data.read_upload`; only who may freeze it may send it.

    GoldenError for a file that cannot be read.
    """
    return read_table_sent(data, name, max_mb=max_mb, max_rows=MAX_GOLDEN_ROWS)


@requires("viewer")
def list_goldens(store: Store, project_id: str) -> list[GoldenSummary]:
    """The project's golden sets, newest first.  NotFoundError for an unknown project."""
    store.projects.get(project_id)
    return store.goldens.all(project_id)


@requires("viewer")
def get_golden(store: Store, golden_id: str) -> GoldenSummary:
    """NotFoundError for an unknown id."""
    return store.goldens.get(golden_id)


@requires("viewer")
def load_golden_set(store: Store, golden_id: str) -> GoldenSet:
    """The golden set whole, equal to what was added, with the same digest.  NotFoundError for an unknown id."""
    return store.goldens.load(golden_id)


@requires("viewer")
def golden_page(store: Store, golden_id: str, offset: int, limit: int) -> GoldenPage:
    """`limit` items (at most 2,000) from position `offset` on, read page by page.  NotFoundError for an unknown id."""
    if offset < 0 or not 1 <= limit <= _MOST_ROWS:
        raise UsageError(f"A page starts at 0 or later and has 1 to {_MOST_ROWS} rows, not {limit} from {offset}.")
    total = store.goldens.get(golden_id).n_items
    return GoldenPage(tuple(store.goldens.page(golden_id, offset, limit)), offset, total)


def require_aspect(store: Store, golden_id: str, aspect: str) -> tuple[GoldenSummary, AspectSummary]:
    """The golden set and its aspect.  NotFoundError where there is no such golden set, or it has no such aspect."""
    golden = store.goldens.get(golden_id)
    summary = golden.aspect(aspect)
    if summary is None:
        known = ", ".join(one.aspect for one in golden.aspects) or "none"
        raise NotFoundError(f"{golden.name} has no aspect {aspect!r}; it has {known}.")
    return golden, summary
