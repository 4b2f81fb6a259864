"""Misaligned items that people looked at, and looks at held-out sets."""

from __future__ import annotations

from core.errors import UsageError
from core.jobs.tasks.access import requires
from core.jobs.tasks.convert import moment
from core.jobs.views import RunRequest
from core.jobs.views.reviews import TRIAGE_VERDICTS, Opening, Triage, TriageVerdict
from core.store.store import Store

TRIAGE, OPENED = "triage", "held-out opened"
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
) -> None:
    """Keep what somebody found on a misaligned item; `subject_id` is the criteria or judge that was looked at.

    UsageError for a verdict that there is not, or an endless note.
    """
    if verdict not in TRIAGE_VERDICTS:
        raise UsageError(f"A triage says {', '.join(TRIAGE_VERDICTS)}; {verdict!r} came.")
    if len(note) > _LONGEST:
        raise UsageError(f"A note may have {_LONGEST:,} characters; this one has {len(note):,}.")
    body = {
        **{"did": f"triaged an item: {verdict}", "golden_id": golden_id, "aspect": aspect, "subject_id": subject_id},
        **{"verdict": verdict, "note": note.strip(), "picked": picked},
    }
    store.events.add(project_id, TRIAGE, item_id, store.actor, body, form=form)


@requires("viewer")
def list_triage(store: Store, project_id: str, golden_id: str, aspect: str) -> dict[str, Triage]:
    """Item id → what was found last, by anybody."""
    found = (
        Triage(
            number=one.number,
            item_id=one.subject,
            aspect=str(one.body["aspect"]),
            golden_id=str(one.body["golden_id"]),
            subject_id=str(one.body["subject_id"]),
            verdict=one.body["verdict"],
            note=str(one.body["note"]),
            picked=bool(one.body["picked"]),
            actor=one.actor,
            at=moment(one.created_at),
        )
        for one in store.events.all(project_id, TRIAGE)
    )
    return {one.item_id: one for one in found if (one.golden_id, one.aspect) == (golden_id, aspect)}


@requires("viewer")
def list_openings(store: Store, project_id: str, golden_id: str, aspect: str) -> list[Opening]:
    """Every look at the held-out items of an aspect, oldest first."""
    return [
        Opening(golden_id, aspect, str(one.body["why"]), one.actor, moment(one.created_at))
        for one in store.events.all(project_id, OPENED, golden_id)
        if one.body["aspect"] == aspect
    ]


def record_opening(store: Store, request: RunRequest, why: str, *, run_id: str) -> None:
    """Write down that a run looks at held-out items; once for each run."""
    body = {"did": f"opened the held-out items: {why}", "aspect": request.aspect, "why": why}
    store.events.add(request.project_id, OPENED, request.golden_id, store.actor, body, form=f"opened:{run_id}")
