"""Refinement rounds: what one costs, its start, the run, what people decide on its proposals; the family tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from core.calibration.calibration_settings import RoundSettings
from core.calibration.proposals import RoundResult
from core.errors import JobError, UsageError
from core.project_records import CriteriaEntry
from core.projects.calibration import calibration_asked, sides_of
from core.projects.criteria import ProposalDecided, save_edit
from core.projects.edit_scoring import PairedDifference, RescoreRequest, start_rescore
from core.projects.judge_line import JudgeVersion, VersionState, judge_line
from core.projects.roles import given_reason, requires
from core.projects.run_work import RunWork, require_judge, start_run
from core.records import Criteria
from core.settings import Settings
from core.stats import Difference, holm
from core.store.codec import unpack
from core.store.runs import RESULT
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
    """A proposal next to its parent: differences proposal minus parent, on calibration and on the inner fold.

    Their p values are corrected (Holm) over the proposals of the round.  `decision` is what somebody decided on it,
    None for nobody.
    """

    run_id: str
    criteria: Criteria
    parent: Criteria
    calibration: PairedDifference
    inner: PairedDifference
    decision: ProposalDecided | None = None

    @property
    def state(self) -> ProposalState:
        return "open" if self.decision is None else self.decision.verdict

    @property
    def seen(self) -> int:
        """The number of the decision in the log (0 for none): hand it back to `decide_proposal`."""
        return 0 if self.decision is None else self.decision.number


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
    from core.calibration.proposals import round_calls

    golden = store.goldens.load(calibration_asked(store, run_id).golden_id)
    return round_calls(len(sides_of(store, run_id, golden).calibration), n_parents, settings)


@requires("reviewer", "started a refinement round")
def start_round(store: Store, settings: Settings, request: RoundRequest) -> str:
    """Start a refinement round (`start_run`).

    UsageError without parents, with picks that are no calibration items, or for a budget too small; JobError when the
    calibration has no judge yet; NotFoundError for unknown criteria or runs.
    """
    from core.calibration.proposals import require_affordable

    if not request.parent_ids:
        raise UsageError("Choose at least one set of criteria to refine.")
    parents = [store.criteria.get(request.project_id, criteria_id).criteria for criteria_id in request.parent_ids]
    if any(parent.aspect != request.aspect for parent in parents):
        raise UsageError(f"All criteria of a round must be for {request.aspect}.")
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
    from core.calibration.proposals import refinement_round

    request, golden = work.request(RoundRequest), work.golden
    of, split = calibration_asked(work.store, request.run_id), sides_of(work.store, request.run_id, golden)
    entries = [work.store.criteria.get(request.project_id, criteria_id) for criteria_id in request.parent_ids]
    parents = tuple(entry.criteria for entry in entries)
    positions = tuple(golden.item_ids.index(item_id) for item_id in request.item_ids)
    number = 1 + max(parent.provenance.round for parent in parents)
    with work.asking(require_judge(work.store, request.run_id), of.task(golden)) as judge:
        result = refinement_round(judge, split, of.settings, parents, request.settings, picks=positions, number=number)
    work.add_criteria([proposal.criteria for proposal in result.proposals])
    alignments = {}
    for proposal in result.proposals:
        new_id, parent_id, measured = proposal.criteria.criteria_id, proposal.parent_id, proposal.calibration
        alignments[parent_id] = work.alignment(parent_id, "calibration", measured.b)
        alignments[new_id] = work.alignment(new_id, "calibration", measured.a, "proposed")
    work.add_alignments(list(alignments.values()))
    return result


# ── proposals ────────────────────────────────────────────────────────────────────────────────────────────────


def list_proposals(store: Store, run_id: str) -> list[ListedProposal]:
    """The proposals of a finished round with what was decided on each; empty before its end.

    The largest difference on the inner fold comes first.  p is corrected over the proposals.
    """
    run = store.runs.get(run_id)
    if run.kind != "round":
        raise JobError(f"Run {run_id} is not a refinement round.")
    result = store.results.read(run_id, RESULT, RoundResult)
    if result is None:
        return []
    decided = {decision.subject: decision for decision in store.events.all(run.project_id, ProposalDecided)}
    inner = _corrected([proposal.inner for proposal in result.proposals])
    whole = _corrected([proposal.calibration for proposal in result.proposals])
    return [
        ListedProposal(
            run_id,
            proposal.criteria,
            store.criteria.get(run.project_id, proposal.parent_id).criteria,
            on_whole,
            on_inner,
            decided.get(f"{run_id}:{proposal.criteria.criteria_id}"),
        )
        for proposal, on_inner, on_whole in zip(result.proposals, inner, whole, strict=True)
    ]


def _corrected(differences: Sequence[Difference]) -> list[PairedDifference]:
    """The differences with p corrected after Holm; None stays None and does not count."""
    raised = holm([float("nan") if difference.p is None else difference.p for difference in differences]).tolist()
    return [
        replace(PairedDifference.of(difference), p=None if difference.p is None else p)
        for difference, p in zip(differences, raised, strict=True)
    ]


def open_proposals(store: Store, project_id: str, golden_id: str, aspect: str) -> dict[str, list[ListedProposal]]:
    """Round → its proposals that nobody has decided on, newest round first; rounds with none left out."""
    still_open = {}
    for run in store.runs.all(project_id):
        if (run.kind, run.golden_id, run.aspect) == ("round", golden_id, aspect):
            still_open[run.run_id] = [each for each in list_proposals(store, run.run_id) if each.state == "open"]
    return {run_id: proposals for run_id, proposals in still_open.items() if proposals}


@requires("reviewer")
def edit_proposal(store: Store, settings: Settings, run_id: str, criteria_id: str, text: str, *, note: str) -> str:
    """Save `text` as a version made from a proposal and score it next to the proposal; returns the version's id.

    Hand the id to `decide_proposal` to accept it in the proposal's place.  UsageError without a note, for an unchanged
    text or for what the round did not propose; CriteriaError for an empty or overlong one.
    """
    run = store.runs.get(run_id)
    proposal = _proposal(store, run_id, criteria_id)
    why = given_reason(note)
    if text.strip() == proposal.criteria.text.strip():
        raise UsageError("The text is unchanged; accept the proposal as it is.")
    edited_id = save_edit(store, run.project_id, criteria_id, text, store.actor.name, note=why)
    of = unpack(RoundRequest, run.request_json).run_id
    request = RescoreRequest(run.project_id, run.golden_id, run.aspect, edited_id, criteria_id, of)
    start_rescore(store, settings, request)
    return edited_id


@requires("reviewer")
def decide_proposal(
    store: Store, run_id: str, criteria_id: str, *, accepted: bool, reason: str, seen: int = 0, edited_id: str = ""
) -> None:
    """Accept or reject a proposal; `seen` is `ListedProposal.seen` as the person saw it.

    What is accepted (itself, or the edit of it, `edited_id`, that people made before) can be made the judge then
    (`make_version`).  UsageError without a reason, for what the round did not propose or for an edit of something else;
    ConflictError when somebody else has decided meanwhile.
    """
    run = store.runs.get(run_id)
    _proposal(store, run_id, criteria_id)
    why = given_reason(reason)
    if edited_id and criteria_id not in store.criteria.get(run.project_id, edited_id).parents:
        raise UsageError("That version is not an edit of this proposal.")
    subject = f"{run_id}:{criteria_id}"
    decision = ProposalDecided("accepted" if accepted else "rejected", why, edited_id, subject=subject)
    store.events.add(run.project_id, decision, store.actor, expected=seen)


def _proposal(store: Store, run_id: str, criteria_id: str) -> ListedProposal:
    """UsageError for what the round did not propose."""
    for proposal in list_proposals(store, run_id):
        if proposal.criteria.criteria_id == criteria_id:
            return proposal
    raise UsageError("The round did not propose these criteria.")


# ── the family tree ──────────────────────────────────────────────────────────────────────────────────────────


def family_tree(store: Store, project_id: str, aspect: str, golden_id: str) -> list[Relative]:
    """All versions for an aspect of a golden set, ancestors before descendants; a parent that is unknown is skipped."""
    listed = {entry.criteria_id: entry for entry in store.criteria.all(project_id, aspect, golden_id)}
    followed = judge_line(store, project_id, aspect).followed
    children: dict[str, list[str]] = {name: [] for name in listed}
    for entry in listed.values():
        for parent in entry.parents:
            if parent in listed and parent != entry.criteria_id:
                children[parent].append(entry.criteria_id)
    depth = {name: 0 for name, entry in listed.items() if not any(parent in listed for parent in entry.parents)}
    waiting = list(depth)
    for name in waiting:  # grows as it goes; each is reached once, though two texts may name each other as parents
        new = [child for child in children[name] if child not in depth]
        depth |= dict.fromkeys(new, depth[name] + 1)
        waiting += new
    family = [
        Relative(entry, depth.get(name, 0), tuple(children[name]), followed.get(name)) for name, entry in listed.items()
    ]
    return sorted(family, key=lambda each: (each.depth, each.criteria.created_at, each.criteria.criteria_id))
