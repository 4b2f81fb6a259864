"""Better criteria with the judge of a run: an edit scored next to its parent or on one item, and refinement rounds.

The trial on one item has a lane of its own in the worker, so that it waits for no long run; nothing of it is saved.
Reviewers start all three: they send texts to an endpoint that may cost money.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Literal

from core.calibration.calibration_records import RoundSettings
from core.calibration.proposals import RoundResult
from core.errors import CriteriaError, JobError, UsageError
from core.progress import Stage
from core.project_records import CriteriaEntry, Side
from core.projects.calibration import calibration_asked, sides_of
from core.projects.criteria import LONGEST_TEXT, ProposalDecided
from core.projects.roles import given_reason, requires
from core.projects.run_work import EDIT_SCORED, RunWork, judge_run, require_judge, start_run
from core.providers.completions import Message
from core.records import Alignment, Criteria, Interval, Measure, Provenance, Scored, Usage
from core.settings import Settings
from core.stats import Difference, holm
from core.store.runs import RESULT
from core.store.store import Store
from core.wording import judge_words

ProposalState = Literal["open", "accepted", "rejected"]


@dataclass(frozen=True, slots=True)
class RescoreRequest:
    """Score edited criteria next to their parent, with the judge of `run_id` on that run's calibration items."""

    project_id: str
    golden_id: str
    aspect: str
    criteria_id: str
    parent_id: str
    run_id: str
    held_out: bool = False


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """Judge one item under `text` with the judge of `run_id`; `criteria_id` is what was on the screen, if anything."""

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    item_id: str
    text: str
    criteria_id: str = ""


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


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Alignment of the new criteria minus the parent's on the same items, paired over sources.

    `p` is two-sided; None (like `value`) where a side is undefined.
    """

    value: float | None
    interval: Interval | None
    p: float | None
    n: int

    @classmethod
    def of(cls, difference: Difference) -> PairedDifference:
        return cls(difference.value, difference.interval, difference.p, difference.n)


def _start(
    store: Store, settings: Settings, request: RescoreRequest | TrialRequest | RoundRequest, about: str, opens: str = ""
) -> str:
    """Start a run of the kind of the request (`start_run`); JobError where its run has no judge yet."""
    require_judge(store, request.run_id)
    spec = store.runs.get(request.run_id).judge_spec
    title = f"{request.aspect} · {about} · {judge_words(spec)}"
    if isinstance(request, RoundRequest):
        return start_run(store, settings, "round", request, title=title, judge_spec=spec)
    kind: Literal["rescore", "trial"] = "rescore" if isinstance(request, RescoreRequest) else "trial"
    return start_run(store, settings, kind, request, title=title, judge_spec=spec, opens=opens)


# ── an edit next to its parent ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RescoreResult:
    """What a re-scoring found; those on held-out items are None unless they were asked for."""

    parent: Alignment
    new: Alignment
    difference: PairedDifference
    parent_held_out: Alignment | None = None
    new_held_out: Alignment | None = None
    held_out_difference: PairedDifference | None = None


@requires("reviewer", "re-scored an edit")
def start_rescore(store: Store, settings: Settings, request: RescoreRequest) -> str:
    """Score the edited criteria and their parent with the judge of `request.run_id`, on that run's calibration items.

    A re-scoring or a round has the judge of the calibration it began from.  Held-out items are left alone unless
    `request.held_out`.  NotFoundError for unknown criteria or run; JobError when the run has no judge yet.
    """
    author = store.criteria.get(request.project_id, request.criteria_id).author
    store.criteria.get(request.project_id, request.parent_id)
    request = replace(request, run_id=judge_run(store, request.run_id))
    opens = EDIT_SCORED if request.held_out else ""
    return _start(store, settings, request, f"edit{f' by {author}' if author else ''}", opens)


def run_rescore(work: RunWork) -> RescoreResult:
    """Score both, compare them on calibration and, where asked for, on held-out; enter their alignments."""
    from core.stats import LabelledItems, paired_difference

    request, golden = work.request(RescoreRequest), work.golden
    of = calibration_asked(work.store, request.run_id)
    task, split, chosen = of.task(golden), sides_of(work.store, request.run_id, golden), of.settings
    ids = (request.criteria_id, request.parent_id)
    pair = [work.store.criteria.get(request.project_id, criteria_id).criteria for criteria_id in ids]
    labelled = LabelledItems.of(golden, task.aspect, split.calibration)
    measure = Measure(chosen.statistic, chosen.level or labelled.usual_level)
    sides: dict[Side, Sequence[int]] = {"calibration": split.calibration}
    if request.held_out:
        sides["held-out"] = split.held_out
    expected = 2 * sum(map(len, sides.values()))
    calls, usage = 0, Usage()
    found: dict[Side, Difference] = {}
    with work.asking(require_judge(work.store, request.run_id), task) as judge:
        for side, positions in sides.items():
            phase = "revisit" if side == "calibration" else side
            work.progress.publish(Stage(phase, f"scoring {side} items", calls, expected, usage))
            scored = judge.score(pair, positions)
            calls, usage = calls + scored.calls, usage + scored.usage
            new, parent = (scored.values[scored.criteria_ids.index(criteria_id)] for criteria_id in ids)
            items = LabelledItems.of(golden, task.aspect, positions)
            found[side] = paired_difference(new, parent, items, measure, resamples=chosen.resamples, seed=chosen.seed)
        work.progress.publish(Stage("done", "done", expected, expected, usage))
    alignments = [work.alignment(ids[0], side, both.a) for side, both in found.items()]
    work.add_alignments([*alignments, *(work.alignment(ids[1], side, both.b) for side, both in found.items())])
    both, held_out = found["calibration"], found.get("held-out")
    if held_out is None:
        return RescoreResult(both.b, both.a, PairedDifference.of(both))
    differences = PairedDifference.of(both), PairedDifference.of(held_out)
    return RescoreResult(both.b, both.a, differences[0], held_out.b, held_out.a, differences[1])


# ── a text on one item ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What came of it.  `score` is None where no reply could be read; `reason` then says why.

    `prompts` are the messages as sent, one entry a prompt (() for a judge that is asked in no words), `replies` the
    raw replies, and `explanation` the judge's reasons, or what it computed on.
    """

    score: float | None
    reason: str
    explanation: str
    prompts: tuple[tuple[Message, ...], ...]
    replies: tuple[str, ...]
    notice: str


@requires("reviewer", "tried criteria on one item")
def start_trial(store: Store, settings: Settings, request: TrialRequest) -> str:
    """Ask the judge of `request.run_id` for the score of one item under `request.text` (`start_run`).

    An empty text asks without criteria.  UsageError for an item that the run's golden set does not have, for a held-out
    one (looking at those one by one would end their being held out), or for another aspect; CriteriaError for an
    overlong text; JobError when the run has no judge yet.
    """
    request = replace(request, run_id=judge_run(store, request.run_id), text=request.text.strip())
    if len(request.text) > LONGEST_TEXT:
        raise CriteriaError(f"Criteria may have {LONGEST_TEXT:,} characters; these have {len(request.text):,}.")
    of = calibration_asked(store, request.run_id)
    if (request.golden_id, request.aspect) != (of.golden_id, of.aspect):
        raise UsageError(f"The judge of that run was calibrated for {of.aspect} on another golden set.")
    if request.item_id not in trial_items(store, request.run_id):
        known = request.item_id in store.goldens.load(of.golden_id).item_ids
        why = "is held out. Try criteria on a calibration item" if known else "is not in the golden set"
        raise UsageError(f"The item {request.item_id[:60]!r} {why}.")
    return _start(store, settings, request, f"criteria tried on {request.item_id[:60]}")


def trial_items(store: Store, run_id: str) -> tuple[str, ...]:
    """The ids of the items that criteria may be tried on with the judge of a run: all that are not held out."""
    golden = store.goldens.load(calibration_asked(store, run_id).golden_id)
    held_out = set(sides_of(store, run_id, golden).held_out)
    return tuple(item_id for place, item_id in enumerate(golden.item_ids) if place not in held_out)


def run_trial(work: RunWork) -> TrialResult:
    """Ask for one score, with reasons; it is entered nowhere."""
    from core.judging.judge_specs import NAMED, restore_judge
    from core.judging.llm_judge import LLMJudge

    request, golden = work.request(TrialRequest), work.golden
    task = calibration_asked(work.store, request.run_id).task(golden)
    item = golden.items[golden.item_ids.index(request.item_id)]
    criteria = Criteria(request.text, request.aspect, Provenance("given" if request.text else "none"))
    state = require_judge(work.store, request.run_id)
    work.progress.publish(Stage("trial", "asking the judge", 0, 1))
    with closing(restore_judge(state, work.settings, work.replies, gate=NAMED)) as judge:
        prompts = judge.prompts(task, item, criteria) if isinstance(judge, LLMJudge) else ()
        scores = judge.score(task, [item], [criteria], explain=True, on_progress=work.progress.advance)
        notice = judge.notice
    (verdict,) = scores.explained
    work.progress.publish(Stage("done", "done", 1, 1, scores.usage))
    if isinstance(verdict, Scored):
        return TrialResult(verdict.value, "", verdict.explanation, prompts, verdict.raw, notice)
    return TrialResult(None, verdict.reason, verdict.detail, prompts, verdict.raw, notice)


# ── rounds ───────────────────────────────────────────────────────────────────────────────────────────────────


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
    return _start(store, settings, request, f"round on {len(parents)} criteria, {learnt}")


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

    def corrected(differences: list[Difference]) -> list[PairedDifference]:
        """With p after Holm; None stays None and does not count."""
        raised = holm([float("nan") if each.p is None else each.p for each in differences]).tolist()
        pairs = zip(map(PairedDifference.of, differences), raised, strict=True)
        return [each if each.p is None else replace(each, p=p) for each, p in pairs]

    decided = {decision.subject: decision for decision in store.events.all(run.project_id, ProposalDecided)}
    whole = corrected([proposal.calibration for proposal in result.proposals])
    inner = corrected([proposal.inner for proposal in result.proposals])
    return [
        ListedProposal(
            run_id,
            proposal.criteria,
            store.criteria.get(run.project_id, proposal.parent_id).criteria,
            on_whole,
            on_inner,
            decided.get(f"{run_id}:{proposal.criteria.criteria_id}"),
        )
        for proposal, on_whole, on_inner in zip(result.proposals, whole, inner, strict=True)
    ]


def open_proposals(store: Store, project_id: str, golden_id: str, aspect: str) -> list[ListedProposal]:
    """The proposals of rounds that nobody has decided on, newest round first."""
    about = ("round", golden_id, aspect)
    rounds = [run.run_id for run in store.runs.all(project_id) if (run.kind, run.golden_id, run.aspect) == about]
    return [each for run_id in rounds for each in list_proposals(store, run_id) if each.decision is None]


@requires("reviewer")
def decide_proposal(store: Store, run_id: str, criteria_id: str, *, accepted: bool, reason: str, seen: int = 0) -> None:
    """Accept or reject a proposal; `seen` is `ListedProposal.seen` as the person saw it.

    What is accepted can be made the judge then (`make_version`).  UsageError without a reason, or for what the round
    did not propose; ConflictError when somebody else has decided meanwhile.
    """
    if all(proposal.criteria.criteria_id != criteria_id for proposal in list_proposals(store, run_id)):
        raise UsageError("The round did not propose these criteria.")
    verdict: Literal["accepted", "rejected"] = "accepted" if accepted else "rejected"
    decision = ProposalDecided(verdict, given_reason(reason), subject=f"{run_id}:{criteria_id}")
    store.events.add(store.runs.get(run_id).project_id, decision, store.actor, expected=seen)


def family_tree(store: Store, project_id: str, aspect: str, golden_id: str) -> list[tuple[CriteriaEntry, int]]:
    """All criteria for an aspect of a golden set, each with its generation from 0, ancestors before descendants.

    A parent that is unknown is skipped.
    """
    listed = {entry.criteria_id: entry for entry in store.criteria.all(project_id, aspect, golden_id)}
    depth = {name: 0 for name, entry in listed.items() if not set(entry.parents) & set(listed) - {name}}
    waiting = list(depth)
    for name in waiting:  # grows as it goes; each is reached once, though two texts may name each other as parents
        new = [child for child, entry in listed.items() if name in entry.parents and child not in depth]
        depth |= dict.fromkeys(new, depth[name] + 1)
        waiting += new
    family = [(entry, depth.get(name, 0)) for name, entry in listed.items()]
    return sorted(family, key=lambda each: (each[1], each[0].created_at, each[0].criteria_id))
