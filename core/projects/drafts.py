"""What people are typing and have not saved, kept at every pause, so that no closed tab and no restart takes it along.

A draft is nobody's record and is not logged: the log says who saved which version.  It belongs to one person and one
text (its *subject*, such as ``criteria:ID``), and saving or dropping the text takes it away.
"""

from __future__ import annotations

from core.errors import UsageError
from core.kept import moment
from core.projects.access import requires
from core.projects.criteria import LONGEST_TEXT
from core.projects.views.drafts import Drafting, DraftView
from core.store.rows import DraftRow
from core.store.store import Store

_LONGEST_SUBJECT = 200


@requires("reviewer")
def keep_draft(store: Store, project_id: str, subject: str, text: str, *, base: str = "") -> DraftView:
    """Keep what whoever acts has typed so far of `subject`; overwrites what they had typed there before.

    UsageError for a text that could not be saved for its length, StoreError for an unknown project.
    """
    if len(text.strip()) > LONGEST_TEXT:
        raise UsageError(f"A text may have {LONGEST_TEXT:,} characters; this one has {len(text.strip()):,}.")
    if not 0 < len(subject) <= _LONGEST_SUBJECT:
        raise UsageError(f"A draft says what it is of, in 1 to {_LONGEST_SUBJECT} characters; {len(subject)} came.")
    readable = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair could not be shown again
    return _view(store.drafts.keep(project_id, subject, store.actor.name, readable, base))


@requires("viewer")
def draft_of(store: Store, project_id: str, subject: str) -> DraftView | None:
    """The newest text that whoever acts has typed of `subject` and not saved; None for none."""
    mine = store.actor.name
    return next((_view(row) for row in store.drafts.of(project_id, subject) if row.author == mine), None)


@requires("viewer")
def others_drafting(store: Store, project_id: str, subject: str) -> list[Drafting]:
    """Who else has typed of `subject` and not saved, who typed last first: names, and never their texts."""
    return [
        Drafting(row.author, moment(row.began_at))
        for row in store.drafts.of(project_id, subject)
        if row.author not in ("", store.actor.name)
    ]


@requires("reviewer")
def drop_draft(store: Store, project_id: str, subject: str) -> None:
    """Take away what whoever acts has typed of `subject`: it was saved, or they begin again."""
    store.drafts.drop(project_id, subject, [store.actor.name])


def _view(row: DraftRow) -> DraftView:
    return DraftView(row.subject, row.author, row.text, row.base, moment(row.began_at), moment(row.kept_at))
