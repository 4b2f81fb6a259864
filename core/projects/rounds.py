"""Refinement rounds: what one costs, its start, its proposals and what people decide on them; the family tree."""

from __future__ import annotations

from collections.abc import Sequence

from core.calibration.rounds import RoundResult
from core.calibration.settings import RoundSettings
from core.errors import JobError, UsageError
from core.jobs.documents import JUDGE, RESULT
from core.projects.access import requires
from core.projects.convert import calibration_asked, moment, request_of
from core.projects.criteria import list_criteria
from core.projects.reviews import list_reviews
from core.projects.runs import start_run
from core.projects.views import CriteriaSummary, DifferenceView, RescoreRequest
from core.projects.views.rounds import ProposalState, ProposalView, Relative, RoundRequest
from core.settings import Settings
from core.stats import Difference, holm
from core.store.codec import unpack
from core.store.rows import EventRow
from core.store.store import Store

__all__ = [
    "PROPOSAL",
    "RoundResult",
    "decide_proposal",
    "edit_proposal",
    "family_tree",
    "list_proposals",
    "round_cost",
    "start_round",
]

PROPOSAL = "proposal"


@requires("viewer")
def round_cost(store: Store, run_id: str, n_parents: int, settings: RoundSettings) -> int:
    """Calls of a round at most, before it starts; replies that are stored already cost nothing."""
    from core.calibration.rounds import round_calls
    from core.public import split_for

    asked = calibration_asked(store, run_id)
    split = split_for(store.goldens.load(asked.golden_id), asked.aspect, asked.settings)
    return round_calls(len(split.calibration), n_parents, settings)


@requires("reviewer", "started a refinement round")
def start_round(store: Store, settings: Settings, request: RoundRequest) -> str:
    """Put a refinement round in the queue and return its run's id.

    UsageError without parents, with picks that are no calibration items, or for a budget too small; JobError when the
    calibration has no judge yet; NotFoundError for unknown criteria or runs.
    """
    from core.calibration.rounds import require_affordable
    from core.public import split_for

    if not request.parent_ids:
        raise UsageError("Choose at least one criteria to refine.")
    parents = [store.criteria.get(request.project_id, one).criteria for one in request.parent_ids]
    if any(parent.aspect != request.aspect for parent in parents):
        raise UsageError(f"All criteria of a round must be for {request.aspect}.")
    asked = calibration_asked(store, request.run_id)
    if store.results.document(request.run_id, JUDGE) is None:
        raise JobError(f"Run {request.run_id} has not come to its judge yet; wait for its first candidates.")
    golden = store.goldens.load(request.golden_id)
    split = split_for(golden, asked.aspect, asked.settings)
    require_affordable(len(split.calibration), len(parents), request.settings)
    allowed = {golden.items[k].item_id for k in split.calibration}
    strange = [item_id for item_id in request.item_ids if item_id not in allowed]
    if strange:
        raise UsageError(
            f"{len(strange)} of the picked items are no labelled calibration items of that run ({strange[0][:60]}). "
            "A round learns from calibration items only, so that held-out ones stay held out."
        )
    learnt = f"{len(request.item_ids)} picked items" if request.item_ids else "sampled items"
    spec = store.runs.get(request.run_id).judge_spec
    title = f"{request.aspect} · round on {len(parents)} criteria, {learnt} · {spec}"
    return start_run(store, settings, "round", request, title=title, judge_spec=spec)


@requires("viewer")
def list_proposals(store: Store, run_id: str) -> list[ProposalView]:
    """The proposals of a finished round with what was decided on each; empty before its end.

    The largest difference on the inner fold comes first.  p is corrected over the proposals.
    """
    run = store.runs.get(run_id)
    kept = store.results.document(run_id, RESULT)
    if run.kind != "round":
        raise JobError(f"Run {run_id} is no refinement round.")
    if kept is None:
        return []
    decided = {event.subject: event for event in store.events.all(run.project_id, PROPOSAL)}
    views = []
    proposals = unpack(RoundResult, kept).proposals
    inner, whole = _corrected([one.inner for one in proposals]), _corrected([one.calibration for one in proposals])
    for one, on_inner, on_whole in zip(proposals, inner, whole, strict=True):
        event = decided.get(f"{run_id}:{one.criteria.criteria_id}")
        parent = store.criteria.get(run.project_id, one.parent_id).criteria
        views.append(
            ProposalView(
                run_id=run_id,
                criteria=one.criteria,
                parent=parent,
                calibration=on_whole,
                inner=on_inner,
                state=_state(event),
                reason="" if event is None else str(event.body["reason"]),
                decided_by="" if event is None else event.actor,
                decided_at=None if event is None else moment(event.created_at),
                seen=0 if event is None else event.number,
                edited_id="" if event is None else str(event.body.get("edited_id", "")),
            )
        )
    return views


@requires("reviewer")
def edit_proposal(store: Store, settings: Settings, run_id: str, criteria_id: str, text: str, *, note: str) -> str:
    """Save `text` as a version made from a proposal and score it beside the proposal; returns the version's id.

    Hand the id to `decide_proposal` to accept it in the proposal's place.  UsageError without a note, for an unchanged
    text or for what the round did not propose; CriteriaError for an empty or overlong one.
    """
    from core.projects.criteria import save_edit
    from core.projects.rescore import start_rescore

    run = store.runs.get(run_id)
    asked = request_of(run)
    found = next((one for one in list_proposals(store, run_id) if one.criteria.criteria_id == criteria_id), None)
    if found is None or not isinstance(asked, RoundRequest):
        raise UsageError("The round did not propose these criteria.")
    if not note.strip():
        raise UsageError("A decision needs a reason, so that people can follow it later.")
    if text.strip() == found.criteria.text.strip():
        raise UsageError("The text is unchanged; accept the proposal as it stands.")
    edited_id = save_edit(store, run.project_id, criteria_id, text, store.actor.name, note=note.strip())
    request = RescoreRequest(
        run.project_id, asked.golden_id, asked.aspect, criteria_id=edited_id, parent_id=criteria_id, run_id=asked.run_id
    )
    start_rescore(store, settings, request)
    return edited_id


@requires("reviewer")
def decide_proposal(
    store: Store, run_id: str, criteria_id: str, *, accepted: bool, reason: str, seen: int = 0, edited_id: str = ""
) -> None:
    """Accept or reject a proposal; `seen` is `ProposalView.seen` as the person saw it.

    An accepted one is proposed for approval at once, where its review still stands at draft: itself, or the edit of
    it (`edited_id`) that people made before they accepted.  UsageError without a reason, for what the round did not
    propose or for an edit of something else; ConflictError when somebody else has decided meanwhile.
    """
    from core.projects.reviews import review_of, set_state

    run = store.runs.get(run_id)
    if all(one.criteria.criteria_id != criteria_id for one in list_proposals(store, run_id)):
        raise UsageError("The round did not propose these criteria.")
    if not reason.strip():
        raise UsageError("A decision needs a reason, so that people can follow it later.")
    wanted = edited_id or criteria_id
    if edited_id and criteria_id not in store.criteria.get(run.project_id, edited_id).criteria.provenance.parents:
        raise UsageError("That version is no edit of this proposal.")
    word = "accepted" if accepted else "rejected"
    body = {"did": f"{word} a proposal", "to": word, "reason": reason.strip(), "criteria_id": criteria_id}
    body |= {"edited_id": edited_id} if edited_id else {}
    store.events.add(run.project_id, PROPOSAL, f"{run_id}:{criteria_id}", store.actor, body, expected=seen)
    review = review_of(store, run.project_id, wanted)
    if accepted and review.state == "draft":
        set_state(store, run.project_id, wanted, "proposed", reason=reason, seen=review.seen)


@requires("viewer")
def family_tree(store: Store, project_id: str, aspect: str, golden_id: str) -> list[Relative]:
    """All versions for an aspect of a golden set, ancestors before descendants; a parent that is unknown is skipped."""
    listed = {one.criteria_id: one for one in list_criteria(store, project_id, aspect, golden_id)}
    reviews = list_reviews(store, project_id)
    children: dict[str, list[str]] = {}
    for one in listed.values():
        for parent in one.parents:
            if parent in listed and parent != one.criteria_id:
                children.setdefault(parent, []).append(one.criteria_id)
    depth = _depths(listed, children)
    order = sorted(listed.values(), key=lambda one: (depth[one.criteria_id], one.created_at, one.criteria_id))
    return [
        Relative(
            one,
            depth[one.criteria_id],
            tuple(children.get(one.criteria_id, ())),
            reviews[one.criteria_id].state if one.criteria_id in reviews else "draft",
        )
        for one in order
    ]


def _depths(listed: dict[str, CriteriaSummary], children: dict[str, list[str]]) -> dict[str, int]:
    """Steps from the oldest ancestor, each version reached once (two texts may name each other as parents)."""
    roots = [name for name, one in listed.items() if not any(parent in listed for parent in one.parents)]
    depth = dict.fromkeys(roots, 0)
    waiting = list(roots)
    while waiting:
        name = waiting.pop(0)
        for child in children.get(name, ()):
            if child not in depth:
                depth[child] = depth[name] + 1
                waiting.append(child)
    return {name: depth.get(name, 0) for name in listed}


def _corrected(found: Sequence[Difference]) -> list[DifferenceView]:
    """The differences with p corrected after Holm; None stays None and does not count."""
    raised = holm([float("nan") if one.p is None else one.p for one in found]).tolist()
    return [
        DifferenceView(one.value, one.interval, None if one.p is None else p, one.n)
        for one, p in zip(found, raised, strict=True)
    ]


def _state(event: EventRow | None) -> ProposalState:
    if event is None:
        return "open"
    return "accepted" if event.body["to"] == "accepted" else "rejected"
