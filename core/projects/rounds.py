"""Refinement rounds: what one costs, its start, the run, what people decide on its proposals; the family tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from core.calibration.calibration_settings import RoundSettings
from core.calibration.refinement_round import RoundResult
from core.errors import JobError, UsageError
from core.project_records import CriteriaEntry
from core.projects.calibration import calibration_asked, sides_of
from core.projects.criteria import ProposalDecided, save_edit
from core.projects.judge_line import JudgeVersion, VersionState, judge_line
from core.projects.rescore import PairedDifference, RescoreRequest, start_rescore
from core.projects.roles import given_reason, requires
from core.projects.runs import RunWork, require_judge, start_run
from core.records import Criteria
from core.settings import Settings
from core.stats import Difference, holm
from core.store.codec import unpack
from core.store.results import RESULT
from core.store.store import Store
from core.wording import judge_words

ProposalState = Literal["open", "accepted", "rejected"]


@dataclass(frozen=True, slots=True)
class RoundRequest:
    """Refine `parent_ids` with the judge of calibration `run_id`.

    `item_ids` are the calibration items to learn from; empty to sample each parent's most misaligned ones.
    """

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    parent_ids: tuple[str, ...]
    item_ids: tuple[str, ...] = ()
    settings: RoundSettings = field(default_factory=RoundSettings)


@dataclass(frozen=True)
class ListedProposal:
    """A proposal beside its parent: differences proposal minus parent, on calibration and on the inner fold.

    Their p values are corrected (Holm) over the proposals of the round.

    `seen` is the number of the decision in the log (0 for none): hand it back to `decide_proposal`.  `edited_id` is
    the edit of it that was accepted in its place, if any.
    """

    run_id: str
    criteria: Criteria
    parent: Criteria
    calibration: PairedDifference
    inner: PairedDifference
    state: ProposalState = "open"
    reason: str = ""
    decided_by: str = ""
    decided_at: datetime | None = None
    seen: int = 0
    edited_id: str = ""


@dataclass(frozen=True)
class Relative:
    """Criteria in the family tree: `depth` steps from their oldest ancestor, `children` those made from them.

    `version` is the newest version of the judge that follows them, or None.
    """

    criteria: CriteriaEntry
    depth: int
    children: tuple[str, ...]
    version: JudgeVersion | None

    @property
    def state(self) -> VersionState:
        """How far that version is; "draft" where there is none."""
        return "draft" if self.version is None else self.version.state


def round_cost(store: Store, run_id: str, n_parents: int, settings: RoundSettings) -> int:
    """Calls of a round at most, before it starts; replies that are stored already cost nothing."""
    from core.calibration.refinement_round import round_calls

    golden = store.goldens.load(calibration_asked(store, run_id).golden_id)
    return round_calls(len(sides_of(store, run_id, golden).calibration), n_parents, settings)


@requires("reviewer", "started a refinement round")
def start_round(store: Store, settings: Settings, request: RoundRequest) -> str:
    """Start a refinement round (`start_run`).

    UsageError without parents, with picks that are no calibration items, or for a budget too small; JobError when the
    calibration has no judge yet; NotFoundError for unknown criteria or runs.
    """
    from core.calibration.refinement_round import require_affordable

    if not request.parent_ids:
        raise UsageError("Choose at least one set of criteria to refine.")
    parents = [store.criteria.get(request.project_id, criteria_id).criteria for criteria_id in request.parent_ids]
    if any(parent.aspect != request.aspect for parent in parents):
        raise UsageError(f"All criteria of a round must be for {request.aspect}.")
    calibration_asked(store, request.run_id)  # refuses a run of another kind
    require_judge(store, request.run_id)
    golden = store.goldens.load(request.golden_id)
    split = sides_of(store, request.run_id, golden)
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
    title = f"{request.aspect} · round on {len(parents)} criteria, {learnt} · {judge_words(spec)}"
    return start_run(store, settings, "round", request, title=title, judge_spec=spec)


def run_round(work: RunWork) -> RoundResult:
    """Ask for proposals, and enter them and their alignments."""
    from core.calibration.refinement_round import RoundAsked, refinement_round

    request, golden = work.request(RoundRequest), work.golden
    of = calibration_asked(work.store, request.run_id)
    task, split = of.task(golden), sides_of(work.store, request.run_id, golden)
    parents = tuple(
        work.store.criteria.get(request.project_id, criteria_id).criteria for criteria_id in request.parent_ids
    )
    position = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    wanted = RoundAsked(
        parents,
        tuple(position.get(item_id, -1) for item_id in request.item_ids),
        1 + max(parent.provenance.round for parent in parents),
        request.settings,
    )
    with work.asking(require_judge(work.store, request.run_id), task) as judge:
        result = refinement_round(judge, split, of.settings, wanted)
    work.add_criteria([proposal.criteria for proposal in result.proposals])
    alignments = {
        proposal.parent_id: work.alignment(proposal.parent_id, "calibration", proposal.calibration.b)
        for proposal in result.proposals
    }
    alignments |= {
        proposal.criteria.criteria_id: work.alignment(
            proposal.criteria.criteria_id, "calibration", proposal.calibration.a, "proposed"
        )
        for proposal in result.proposals
    }
    work.add_alignments(list(alignments.values()))
    return result


# ── proposals ────────────────────────────────────────────────────────────────────────────────────────────────


def list_proposals(store: Store, run_id: str) -> list[ListedProposal]:
    """The proposals of a finished round with what was decided on each; empty before its end.

    The largest difference on the inner fold comes first.  p is corrected over the proposals.
    """
    run = store.runs.get(run_id)
    if run.kind != "round":
        raise JobError(f"Run {run_id} is no refinement round.")
    result = store.results.read(run_id, RESULT, RoundResult)
    if result is None:
        return []
    decided = {decision.subject: decision for decision in store.events.all(run.project_id, ProposalDecided)}
    inner = _corrected([proposal.inner for proposal in result.proposals])
    whole = _corrected([proposal.calibration for proposal in result.proposals])
    parent_ids = dict.fromkeys(proposal.parent_id for proposal in result.proposals)
    parents = {name: store.criteria.get(run.project_id, name).criteria for name in parent_ids}
    listed = []
    for proposal, on_inner, on_whole in zip(result.proposals, inner, whole, strict=True):
        entry = ListedProposal(run_id, proposal.criteria, parents[proposal.parent_id], on_whole, on_inner)
        if decision := decided.get(f"{run_id}:{proposal.criteria.criteria_id}"):
            entry = replace(
                entry,
                state=decision.verdict,
                reason=decision.reason,
                decided_by=decision.actor,
                decided_at=decision.at,
                seen=decision.number,
                edited_id=decision.edited_id,
            )
        listed.append(entry)
    return listed


def open_proposals(store: Store, project_id: str, golden_id: str, aspect: str) -> dict[str, int]:
    """Round → how many of its proposals nobody has decided on, newest first; rounds with none left out."""
    decided = {decision.subject for decision in store.events.all(project_id, ProposalDecided)}
    n_open = {}
    for run in store.runs.all(project_id):
        if (run.kind, run.golden_id, run.aspect) == ("round", golden_id, aspect):
            result = store.results.read(run.run_id, RESULT, RoundResult)
            ids = [] if result is None else [proposal.criteria.criteria_id for proposal in result.proposals]
            n_open[run.run_id] = sum(f"{run.run_id}:{criteria_id}" not in decided for criteria_id in ids)
    return {run_id: n for run_id, n in n_open.items() if n}


@requires("reviewer")
def edit_proposal(store: Store, settings: Settings, run_id: str, criteria_id: str, text: str, *, note: str) -> str:
    """Save `text` as a version made from a proposal and score it beside the proposal; returns the version's id.

    Hand the id to `decide_proposal` to accept it in the proposal's place.  UsageError without a note, for an unchanged
    text or for what the round did not propose; CriteriaError for an empty or overlong one.
    """
    run = store.runs.get(run_id)
    proposal = _proposal(store, run_id, criteria_id)
    why = given_reason(note)
    if text.strip() == proposal.criteria.text.strip():
        raise UsageError("The text is unchanged; accept the proposal as it stands.")
    round_request = unpack(RoundRequest, run.request_json)
    edited_id = save_edit(store, run.project_id, criteria_id, text, store.actor.name, note=why)
    request = RescoreRequest(
        run.project_id,
        round_request.golden_id,
        round_request.aspect,
        criteria_id=edited_id,
        parent_id=criteria_id,
        run_id=round_request.run_id,
    )
    start_rescore(store, settings, request)
    return edited_id


@requires("reviewer")
def decide_proposal(
    store: Store, run_id: str, criteria_id: str, *, accepted: bool, reason: str, seen: int = 0, edited_id: str = ""
) -> None:
    """Accept or reject a proposal; `seen` is `ProposalView.seen` as the person saw it.

    What is accepted (itself, or the edit of it, `edited_id`, that people made before) can be made the judge then
    (`make_version`).  UsageError without a reason, for what the round did not propose or for an edit of something else;
    ConflictError when somebody else has decided meanwhile.
    """
    run = store.runs.get(run_id)
    _proposal(store, run_id, criteria_id)
    why = given_reason(reason)
    if edited_id and criteria_id not in store.criteria.get(run.project_id, edited_id).criteria.provenance.parents:
        raise UsageError("That version is no edit of this proposal.")
    subject = f"{run_id}:{criteria_id}"
    decision = ProposalDecided("accepted" if accepted else "rejected", why, edited_id, subject=subject)
    store.events.add(run.project_id, decision, store.actor, expected=seen)


def family_tree(store: Store, project_id: str, aspect: str, golden_id: str) -> list[Relative]:
    """All versions for an aspect of a golden set, ancestors before descendants; a parent that is unknown is skipped."""
    listed = {entry.criteria_id: entry for entry in store.criteria.all(project_id, aspect, golden_id)}
    followed = judge_line(store, project_id, aspect).followed
    children: dict[str, list[str]] = {}
    for entry in listed.values():
        for parent in entry.parents:
            if parent in listed and parent != entry.criteria_id:
                children.setdefault(parent, []).append(entry.criteria_id)
    depth = _depths(listed, children)
    order = sorted(listed.values(), key=lambda entry: (depth[entry.criteria_id], entry.created_at, entry.criteria_id))
    return [
        Relative(
            entry,
            depth[entry.criteria_id],
            tuple(children.get(entry.criteria_id, ())),
            followed.get(entry.criteria_id),
        )
        for entry in order
    ]


def _depths(listed: dict[str, CriteriaEntry], children: dict[str, list[str]]) -> dict[str, int]:
    """Steps from the oldest ancestor, each version reached once (two texts may name each other as parents)."""
    roots = [name for name, entry in listed.items() if not any(parent in listed for parent in entry.parents)]
    depth = dict.fromkeys(roots, 0)
    waiting = list(roots)
    while waiting:
        name = waiting.pop(0)
        for child in children.get(name, ()):
            if child not in depth:
                depth[child] = depth[name] + 1
                waiting.append(child)
    return {name: depth.get(name, 0) for name in listed}


def _proposal(store: Store, run_id: str, criteria_id: str) -> ListedProposal:
    """UsageError for what the round did not propose."""
    for proposal in list_proposals(store, run_id):
        if proposal.criteria.criteria_id == criteria_id:
            return proposal
    raise UsageError("The round did not propose these criteria.")


def _corrected(differences: Sequence[Difference]) -> list[PairedDifference]:
    """The differences with p corrected after Holm; None stays None and does not count."""
    raised = holm([float("nan") if difference.p is None else difference.p for difference in differences]).tolist()
    return [
        replace(PairedDifference.of(difference), p=None if difference.p is None else p)
        for difference, p in zip(differences, raised, strict=True)
    ]
