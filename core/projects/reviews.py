"""Criteria as reviewed documents: comments by line, locks, states from draft to retired, merging and copying.

What is approved is a text under its content hash: it cannot change under its approval, for an edit is another text.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import CriteriaError, UsageError
from core.kept import moment
from core.projects.access import requires
from core.projects.views.reviews import NEXT_STATES, Comment, Evidence, Review, ReviewState, StateChange
from core.records import Criteria, Provenance
from core.store.codec import Packed, pack, unpack
from core.store.rows import EventRow
from core.store.store import Store
from core.wording import merged

COMMENT, SETTLED, STATE, LOCK = "comment", "comment settled", "state", "lock"
_LONGEST = 5_000


@requires("viewer")
def review_of(store: Store, project_id: str, criteria_id: str) -> Review:
    """Where criteria stand with the people.  NotFoundError for unknown criteria."""
    store.criteria.get(project_id, criteria_id)
    return _review(criteria_id, [one for kind in _KINDS for one in store.events.all(project_id, kind, criteria_id)])


@requires("viewer")
def list_reviews(store: Store, project_id: str) -> dict[str, Review]:
    """Criteria id → review, for all that somebody commented on, locked or decided on."""
    by_id: dict[str, list[EventRow]] = {}
    for kind in _KINDS:
        for event in store.events.all(project_id, kind):
            by_id.setdefault(event.subject, []).append(event)
    return {criteria_id: _review(criteria_id, events) for criteria_id, events in by_id.items()}


@requires("annotator")
def add_comment(
    store: Store, project_id: str, criteria_id: str, text: str, *, line: int | None = None, form: str = ""
) -> None:
    """Remark on criteria, on line `line` (from 1) or on the whole.  UsageError for an empty or endless remark."""
    lines = store.criteria.get(project_id, criteria_id).criteria.text.splitlines()
    said = text.strip()
    if not 1 <= len(said) <= _LONGEST:
        raise UsageError(f"A comment has 1 to {_LONGEST:,} characters, not {len(said):,}.")
    if line is not None and not 1 <= line <= len(lines):
        raise UsageError(f"These criteria have {len(lines)} lines; there is no line {line}.")
    body = {"did": "commented on criteria", "text": said, "line": line}
    store.events.add(project_id, COMMENT, criteria_id, store.actor, body, form=form)


@requires("annotator")
def settle_comment(store: Store, project_id: str, criteria_id: str, number: int) -> None:
    """Mark a comment as settled; it stays readable.  UsageError when there is no such comment."""
    if all(one.number != number for one in store.events.all(project_id, COMMENT, criteria_id)):
        raise UsageError("There is no such comment on these criteria.")
    body = {"did": "settled a comment", "comment": number}
    store.events.add(project_id, SETTLED, criteria_id, store.actor, body, form=f"settled:{number}")


@requires("reviewer")
def set_lock(store: Store, project_id: str, criteria_id: str, *, locked: bool) -> None:
    """Lock criteria against edits, or unlock them."""
    store.criteria.get(project_id, criteria_id)
    body = {"did": "locked criteria" if locked else "unlocked criteria", "locked": locked}
    store.events.add(project_id, LOCK, criteria_id, store.actor, body)


@requires("reviewer")
def set_state(
    store: Store,
    project_id: str,
    criteria_id: str,
    state: ReviewState,
    *,
    reason: str,
    seen: int,
    run_id: str = "",
) -> None:
    """Propose, approve, retire criteria or send them back to draft; `seen` is `Review.seen` as the person saw it.

    An approval names the run (`run_id`) whose alignment is its evidence: held-out where it was measured, else
    calibration.  ConflictError when somebody was faster, UsageError for a step that the order does not have, without a
    reason, or for an approval of what no run has measured.
    """
    review = review_of(store, project_id, criteria_id)
    if state not in NEXT_STATES[review.state]:
        allowed = " or ".join(NEXT_STATES[review.state])
        raise UsageError(f"Criteria that are {review.state} can become {allowed}, not {state}.")
    if not reason.strip():
        raise UsageError("A decision needs a reason, so that people can follow it later.")
    evidence = _evidence(store, project_id, criteria_id, run_id) if state == "approved" else None
    body = {
        "did": f"made criteria {state}",
        "to": state,
        "reason": reason.strip(),
        "evidence": None if evidence is None else pack(evidence).body,
    }
    store.events.add(project_id, STATE, criteria_id, store.actor, body, expected=seen)


@requires("reviewer", "merged criteria")
def merge_criteria(store: Store, project_id: str, first_id: str, second_id: str, *, note: str = "") -> str:
    """A new version with the lines of both, those of the first before those that only the second has; returns its id.

    CriteriaError for criteria of different aspects.
    """
    first = store.criteria.get(project_id, first_id).criteria
    second = store.criteria.get(project_id, second_id).criteria
    if first.aspect != second.aspect:
        raise CriteriaError(f"Criteria for {first.aspect} and for {second.aspect} cannot be merged into one.")
    provenance = Provenance(
        "edit",
        max(first.provenance.round, second.provenance.round),
        (first_id, second_id),
        author=store.actor.name,
        note=note.strip() or "merged",
    )
    union = Criteria(merged(first.text, second.text), first.aspect, provenance)
    golden_id = store.criteria.get(project_id, first_id).golden_id
    store.criteria.add(project_id, golden_id, [union])
    return union.criteria_id


@requires("reviewer", "copied criteria")
def copy_criteria(
    store: Store, project_id: str, criteria_id: str, *, to_project: str, golden_id: str, aspect: str
) -> str:
    """The same text for another aspect, golden set or project, to be worked on there; returns its id."""
    one = store.criteria.get(project_id, criteria_id).criteria
    store.projects.get(to_project)
    known = [each.aspect for each in store.goldens.get(golden_id).aspects]
    if aspect not in known:
        raise UsageError(f"That golden set has no aspect {aspect!r}; it has {', '.join(known) or 'none'}.")
    note = f"copied from {criteria_id}; measure it here before you trust it"
    copy = Criteria(one.text, aspect, Provenance("given", author=store.actor.name, note=note))
    store.criteria.add(to_project, golden_id, [copy])
    return copy.criteria_id


_KINDS = (COMMENT, SETTLED, STATE, LOCK)


def _review(criteria_id: str, events: Sequence[EventRow]) -> Review:
    settled = {one.body["comment"]: one.actor or "somebody" for one in events if one.kind == SETTLED}
    changes = tuple(_change(one) for one in events if one.kind == STATE)
    locks = [one for one in events if one.kind == LOCK]
    return Review(
        criteria_id=criteria_id,
        state=changes[-1].state if changes else "draft",
        changes=changes,
        comments=tuple(
            Comment(
                one.number,
                one.body["line"],
                str(one.body["text"]),
                one.actor,
                moment(one.created_at),
                settled.get(one.number, ""),
            )
            for one in events
            if one.kind == COMMENT
        ),
        locked_by=(locks[-1].actor or "somebody") if locks and locks[-1].body["locked"] else "",
    )


def _change(event: EventRow) -> StateChange:
    kept = event.body.get("evidence")
    evidence = None if kept is None else unpack(Evidence, Packed(str(kept)))
    reason = str(event.body["reason"])
    return StateChange(event.number, event.body["to"], event.actor, moment(event.created_at), reason, evidence)


def _evidence(store: Store, project_id: str, criteria_id: str, run_id: str) -> Evidence:
    stood = [one for one in store.criteria.alignments(project_id, criteria_id) if run_id in ("", one.run_id)]
    if not stood:
        raise UsageError(
            "No run has measured these criteria, so there is nothing to approve them on. Score them first."
        )
    best = next((one for one in stood if one.side == "held-out"), stood[0])
    return Evidence(best.run_id, best.side, best.alignment)
