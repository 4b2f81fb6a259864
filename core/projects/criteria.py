"""Criteria of a project: list, look at one whole, save an edit."""

from __future__ import annotations

from core.errors import CriteriaError
from core.kept import CriteriaEntry
from core.projects.access import requires
from core.projects.reviews import review_of
from core.records import Criteria, Provenance
from core.review.criteria import LONGEST_TEXT
from core.store.store import Store


@requires("viewer")
def list_criteria(
    store: Store,
    project_id: str,
    aspect: str | None = None,
    golden_id: str | None = None,
    run_id: str | None = None,
) -> list[CriteriaEntry]:
    """The project's criteria, newest first; of one aspect, golden set or finished run when named."""
    return store.criteria.all(project_id, aspect=aspect, golden_id=golden_id, run_id=run_id)


@requires("viewer")
def get_criteria(store: Store, project_id: str, criteria_id: str) -> CriteriaEntry:
    """Criteria whole, with their edits and alignments.  NotFoundError for an unknown id."""
    return store.criteria.get(project_id, criteria_id)


@requires("reviewer", "edited criteria")
def save_edit(
    store: Store,
    project_id: str,
    parent_id: str,
    text: str,
    author: str = "",
    *,
    note: str = "",
    expected_head: str | None = None,
) -> str:
    """Save `text` as a new version of the criteria `parent_id` and return its id; the parent stays as it is.

    With `expected_head` (`CriteriaEntry.head` as the author saw it) ConflictError, with both texts, when somebody
    else saved another edit of the same parent since.  CriteriaError for an empty or overlong text or a
    locked parent, NotFoundError for an unknown one.  A text equal to the parent's gives the parent's id.
    The author is whoever acts where nobody else is named; who signed in is always the author.
    """
    parent = store.criteria.get(project_id, parent_id).criteria
    locked_by = review_of(store, project_id, parent_id).locked_by
    if locked_by:
        raise CriteriaError(f"{locked_by} locked these criteria. Copy the text, or ask them to unlock it.")
    trimmed = text.strip()
    if not trimmed:
        raise CriteriaError("Criteria need a text. To judge without criteria, choose the baseline.")
    if len(trimmed) > LONGEST_TEXT:
        raise CriteriaError(f"Criteria may have {LONGEST_TEXT:,} characters; these have {len(trimmed):,}.")
    author = store.actor.name if store.actor.subject else author.strip() or store.actor.name
    provenance = Provenance("edit", parent.provenance.round, (parent_id,), author=author, note=note.strip())
    edit = Criteria(trimmed, parent.aspect, provenance)
    if edit.criteria_id == parent_id:
        return parent_id
    return store.criteria.save_edit(project_id, parent_id, edit, expected_head)
