"""Misaligned items that people looked at, and looks at held-out items."""

from __future__ import annotations

from core.errors import ConflictError, UsageError
from core.kept import RunRequest
from core.projects.access import requires
from core.review.triage import TRIAGE_VERDICTS, HeldOutAccess, Triage, TriageVerdict
from core.store.store import Store

_LONGEST = 5_000


@requires("annotator")
def save_triage(
    store: Store,
    project_id: str,
    golden_id: str,
    *,
    aspect: str,
    item_id: str,
    subject_id: str,
    verdict: TriageVerdict,
    note: str = "",
    picked: bool = False,
    form: str = "",
    seen: int | None = None,
) -> None:
    """Keep what somebody found on a misaligned item; `subject_id` is the criteria or judge that was looked at.

    `seen` is the number of the triage that they saw (0: none); with it ConflictError where somebody else was faster.
    UsageError for a verdict that there is not, or an endless note.
    """
    if verdict not in TRIAGE_VERDICTS:
        raise UsageError(f"A triage says {', '.join(TRIAGE_VERDICTS)}; {verdict!r} came.")
    if len(note) > _LONGEST:
        raise UsageError(f"A note may have {_LONGEST:,} characters; this one has {len(note):,}.")
    triage = Triage(golden_id, aspect, subject_id, verdict, note.strip(), picked, subject=item_id)
    expected = None if seen is None else _check_unchanged(store, project_id, triage, seen)
    store.events.add(project_id, triage, store.actor, form=form, expected=expected)


def _check_unchanged(store: Store, project_id: str, triage: Triage, seen: int) -> int:
    """The newest triage of the item (of any aspect; 0 for none); ConflictError where this one was changed meanwhile."""
    earlier = store.events.all(project_id, Triage, triage.item_id)
    newest = next((one for one in reversed(earlier) if one.is_about(triage.golden_id, triage.aspect)), None)
    if newest is not None and newest.number != seen and (not store.actor.name or newest.actor != store.actor.name):
        raise ConflictError(
            f"{newest.actor or 'Somebody'} said {newest.verdict!r} of this item while you were looking at it. Look at "
            "it again, then decide; nothing was overwritten.",
            theirs=newest.verdict,
            yours=triage.verdict,
        )
    return earlier[-1].number if earlier else 0


@requires("viewer")
def list_triage(store: Store, project_id: str, golden_id: str, aspect: str) -> dict[str, Triage]:
    """Item id → what was found last, by anybody."""
    return {one.item_id: one for one in store.events.all(project_id, Triage) if one.is_about(golden_id, aspect)}


@requires("viewer")
def list_openings(store: Store, project_id: str, golden_id: str, aspect: str) -> list[HeldOutAccess]:
    """Every look at the held-out items of an aspect, oldest first."""
    return [one for one in store.events.all(project_id, HeldOutAccess, golden_id) if one.aspect == aspect]


def record_opening(store: Store, request: RunRequest, why: str, *, run_id: str) -> None:
    """Write down that a run looks at held-out items; once for each run."""
    opening = HeldOutAccess(request.aspect, why, subject=request.golden_id)
    store.events.add(request.project_id, opening, store.actor, form=f"opened:{run_id}")
