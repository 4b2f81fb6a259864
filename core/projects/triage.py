"""Misaligned items that people looked at, and looks at held-out sets."""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import ConflictError, UsageError
from core.kept import RunRequest, moment
from core.projects.access import requires
from core.projects.views.reviews import TRIAGE_VERDICTS, Opening, Triage, TriageVerdict
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
    body = {
        **{"did": f"triaged an item: {verdict}", "golden_id": golden_id, "aspect": aspect, "subject_id": subject_id},
        **{"verdict": verdict, "note": note.strip(), "picked": picked},
    }
    expected = None if seen is None else _check_unchanged(store, project_id, item_id, body, seen)
    store.events.add(project_id, TRIAGE, item_id, store.actor, body, form=form, expected=expected)


def _check_unchanged(store: Store, project_id: str, item_id: str, body: Mapping[str, object], seen: int) -> int:
    """The newest triage of the item (of any aspect; 0 for none); ConflictError where this one was changed meanwhile."""
    known = store.events.all(project_id, TRIAGE, item_id)
    here = [one for one in known if all(one.body[part] == body[part] for part in ("golden_id", "aspect"))]
    if here and here[-1].number != seen and (not store.actor.name or here[-1].actor != store.actor.name):
        theirs = str(here[-1].body["verdict"])
        raise ConflictError(
            f"{here[-1].actor or 'Somebody'} said {theirs!r} of this item while you were looking at it. Look at it "
            "again, then decide; nothing was overwritten.",
            theirs=theirs,
            yours=str(body["verdict"]),
        )
    return known[-1].number if known else 0


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
