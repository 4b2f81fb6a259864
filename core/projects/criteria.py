"""Criteria of a project: list, look at one whole, save an edit."""

from __future__ import annotations

from core.errors import CriteriaError
from core.projects.access import requires
from core.projects.convert import criteria_alignment, moment
from core.projects.reviews import review_of
from core.projects.views import CriteriaAlignment, CriteriaSummary, CriteriaView
from core.records import Criteria, Provenance
from core.store.store import Store

LONGEST_TEXT = 20_000
"""Characters of criteria at most."""


@requires("viewer")
def list_criteria(
    store: Store,
    project_id: str,
    aspect: str | None = None,
    golden_id: str | None = None,
    run_id: str | None = None,
) -> list[CriteriaSummary]:
    """The project's criteria, newest first; of one aspect, golden set or finished run when named."""
    rows = store.criteria.all(project_id, aspect=aspect, golden_id=golden_id, run_id=run_id)
    stood: dict[str, list[CriteriaAlignment]] = {}
    for found in store.criteria.alignments(project_id):
        stood.setdefault(found.criteria_id, []).append(criteria_alignment(found))
    return [
        CriteriaSummary(
            criteria_id=row.criteria.criteria_id,
            project_id=row.project_id,
            aspect=row.criteria.aspect,
            text=row.criteria.text,
            origin=row.criteria.provenance.origin,
            parents=row.criteria.provenance.parents,
            author=row.criteria.provenance.author,
            note=row.criteria.provenance.note,
            created_at=moment(row.created_at),
            alignments=tuple(stood.get(row.criteria.criteria_id, ())),
        )
        for row in rows
    ]


@requires("viewer")
def get_criteria(store: Store, project_id: str, criteria_id: str) -> CriteriaView:
    """Criteria whole, with its edits and how it stood.  NotFoundError for an unknown id."""
    row = store.criteria.get(project_id, criteria_id)
    edits = tuple(store.criteria.edits(project_id, criteria_id))
    stood = store.criteria.alignments(project_id, criteria_id)
    return CriteriaView(
        criteria=row.criteria,
        project_id=project_id,
        golden_id=row.golden_id,
        created_at=moment(row.created_at),
        alignments=tuple(criteria_alignment(one) for one in stood),
        edits=edits,
        head=edits[-1] if edits else criteria_id,
    )


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

    With `expected_head` (`CriteriaView.head` as the author saw it) ConflictError, with both texts, when somebody
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
