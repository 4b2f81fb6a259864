"""Review the open points of an aspect together, with votes and decisions.

Open points are proposals of refinement rounds, edits that no judge version uses yet, and disagreements about items. An
item counts as a disagreement if somebody marked it as ambiguous or wrongly labelled, or selected it for the next round
of the current version.

All participants see the first open point. Votes stay hidden until everybody who joined has voted. A reviewer decides,
and the log records the decision with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from core.calibration.proposals import RoundResult
from core.errors import ConflictError, JobError, UsageError
from core.projects.criteria import PairedDifference, criteria_names
from core.projects.judge_line import judge_line
from core.projects.labelling import list_triage, named_user
from core.records import Criteria
from core.stats import Difference, holm
from core.store.log import Entry
from core.store.runs import RESULT
from core.store.store import Store, requires
from core.wording import change_figures

Choice = Literal["for", "against", "abstain"]
CHOICES: tuple[Choice, ...] = ("for", "against", "abstain")
Verdict = Literal["accepted", "rejected", "postponed"]
JOINED_FOR = timedelta(hours=12)
"""Time after which the review no longer waits for the vote of somebody who joined."""
_CLAIMS = {  # points to vote for or against
    "ambiguous": "The criteria need a rule for this text.",
    "judge wrong": "The judge is wrong on this text.",
    "label wrong": "The label of this text is wrong.",
    "": "The criteria should be revised to cover this text.",
}


@dataclass(frozen=True)
class ReviewEntry(Entry):
    """A log entry about a review of an aspect of a golden set."""

    golden_id: str
    aspect: str


class ReviewJoined(ReviewEntry):
    kind = "review joined"
    does = "joined the review"


class ReviewLeft(ReviewEntry):
    kind = "review left"
    does = "left the review"


@dataclass(frozen=True)
class Vote(ReviewEntry):
    """A log entry: a vote on a point. `subject` is the point's key. Only each user's newest vote counts."""

    kind = "vote"
    does = "voted {0.choice}"
    title: str
    choice: Choice


@dataclass(frozen=True)
class PointDecided(ReviewEntry):
    """A log entry: a decision on a point. `subject` is the point's key, and `tally` sums up the votes."""

    kind = "decision"
    does = "decided: {0.verdict}"
    title: str
    verdict: Verdict
    reason: str
    tally: str = ""
    item_id: str = ""
    criteria_id: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """An open point of a review: a proposed change of criteria, or a disagreement about an item.

    Attributes:
        subject_id: For a change, the proposed criteria. For a disagreement, the criteria or judge that scored the item.
        parent_id: For a change, the criteria to replace.
        run_id: For a change, the refinement round that proposed it; "" for an edit.
        item_id: For a disagreement, the item.
        seen: Number of the decision that postponed the point, 0 for none.
        waiting: Users who have not voted yet.
    """

    key: str
    title: str
    text: str
    subject_id: str
    parent_id: str = ""
    run_id: str = ""
    item_id: str = ""
    seen: int = 0
    votes: tuple[Vote, ...] = ()
    waiting: tuple[str, ...] = ()

    @property
    def revealed(self) -> bool:
        """Whether votes and names may be shown."""
        return bool(self.votes) and not self.waiting

    def voters(self, choice: Choice) -> list[str]:
        return [vote.actor for vote in self.votes if vote.choice == choice]

    @property
    def tally(self) -> str:
        """The votes in words, such as "2 for, 1 against, 0 abstained"; "" without votes."""
        n_for, n_against, n_abstained = (len(self.voters(choice)) for choice in CHOICES)
        return f"{n_for} for, {n_against} against, {n_abstained} abstained" if self.votes else ""

    def needs_reason(self, verdict: Verdict) -> bool:
        """Return whether this decision requires a reason.

        No reason is needed to postpone a point, or for a decision that the votes support after everybody has voted.
        """
        lead = len(self.voters("for")) - len(self.voters("against"))
        return verdict != "postponed" and (bool(self.waiting) or lead == 0 or (lead > 0) != (verdict == "accepted"))


@dataclass(frozen=True)
class OpenReview:
    """The review of an aspect of a golden set: open points, participants, and decisions (newest first)."""

    points: tuple[Point, ...]
    joined: tuple[str, ...]
    decided: tuple[PointDecided, ...]

    def find(self, key: str) -> Point:
        """Return an open point by its key. Raises ConflictError if it was decided, UsageError if it is unknown."""
        for point in self.points:
            if point.key == key:
                return point
        made = next((decision for decision in self.decided if decision.subject == key), None)
        if made is None:
            raise UsageError("This point is no longer open. Reload the review.")
        raise ConflictError(
            f"{made.actor or 'Someone'} decided on this point while you had it open. Nothing was overwritten. The "
            f"decision was {made.verdict}: {made.reason}"
        )


def open_review(store: Store, project_id: str, golden_id: str, aspect: str) -> OpenReview:
    """Load the review of an aspect: open points, participants and decisions.

    Changes come first, then disagreements, then postponed points.
    """
    entries = [
        entry
        for entry in store.events.all(project_id, ReviewEntry)
        if (entry.golden_id, entry.aspect) == (golden_id, aspect)
    ]
    decisions = [entry for entry in entries if isinstance(entry, PointDecided)]
    decided = {entry.subject: entry for entry in decisions}
    joined: dict[str, None] = {}
    for entry in entries:
        if isinstance(entry, ReviewLeft):
            joined.pop(entry.actor, None)
        elif isinstance(entry, ReviewJoined | Vote) and datetime.now(UTC) - entry.at < JOINED_FOR:
            joined[entry.actor] = None

    points = []
    for point in [
        *_changes(store, project_id, golden_id, aspect, decided),
        *_items(store, project_id, golden_id, aspect, decided),
    ]:
        seen = decided[point.key].number if point.key in decided else 0
        cast = (entry for entry in entries if isinstance(entry, Vote) and entry.subject == point.key)
        votes = {entry.actor: entry for entry in cast if entry.number > seen}
        waiting = tuple(name for name in joined if name not in votes)
        points.append(replace(point, seen=seen, votes=tuple(votes.values()), waiting=waiting))
    points.sort(key=lambda point: point.seen)
    return OpenReview(tuple(points), tuple(joined), tuple(decisions[::-1]))


def criteria_references(store: Store, project_id: str, aspect: str) -> dict[str, str]:
    """Return a dict from each criteria id of an aspect to a name for use in a sentence.

    The name is that of the newest judge version that has only these criteria, such as "version 2". Otherwise, it is
    the name from `criteria_names` in quotation marks, such as "“Be brief”".
    """
    quoted = {each: f"“{name}”" for each, name in criteria_names(store, project_id, aspect).items()}
    for version in judge_line(store, project_id, aspect).versions:
        if len(version.criteria_ids) == 1:
            quoted[version.criteria_ids[0]] = version.name
    return quoted


def _changes(
    store: Store, project_id: str, golden_id: str, aspect: str, decided: Mapping[str, PointDecided]
) -> Iterator[Point]:
    """Yield proposals and edits without a decision, as points without votes."""
    names = criteria_references(store, project_id, aspect)
    for run in store.runs.all(project_id):  # newest first
        if (run.kind, run.golden_id, run.aspect) != ("round", golden_id, aspect):
            continue
        for proposal in list_proposals(store, run.run_id):
            new, old, gain = proposal.criteria.criteria_id, proposal.parent.criteria_id, proposal.inner
            if proposal.decision is None:
                change = "an undefined amount" if gain.value is None else change_figures(gain.value, gain.interval)
                text = f"Agreement changes by {change} on {gain.n} items that weren't used for refining."
                title = f"Replace {names[old]} with {names[new]}?"
                yield Point(f"proposal:{run.run_id}:{new}", title, text, new, old, run.run_id)
    settled = {decision.criteria_id for decision in decided.values() if decision.verdict != "postponed"}
    settled |= set(judge_line(store, project_id, aspect).followed)
    listed = {entry.criteria_id: entry for entry in store.criteria.all(project_id, aspect, golden_id)}
    for new, entry in listed.items():
        if entry.origin == "edit" and not entry.edits and entry.parents[0] in listed and new not in settled:
            text = f"{entry.author or 'Someone'} edited the criteria" + (f": {entry.note}" if entry.note else ".")
            title = f"Replace {names[entry.parents[0]]} with {names[new]}?"
            yield Point(f"edit:{new}", title, text, new, entry.parents[0])


def _items(
    store: Store, project_id: str, golden_id: str, aspect: str, decided: Mapping[str, PointDecided]
) -> Iterator[Point]:
    """Yield triaged items without a later decision, as points without votes."""
    current = judge_line(store, project_id, aspect).current
    for item_id, triage in list_triage(store, project_id, golden_id, aspect).items():
        key = f"item:{golden_id}:{aspect}:{item_id}"
        decision = decided.get(key)
        settled = decision is not None and decision.verdict != "postponed" and decision.number > triage.number
        picked = triage.picked and (current is None or triage.subject_id in current.criteria_ids)
        if not settled and (picked or triage.verdict not in ("", "judge wrong")):
            did = f"marked this item “{triage.verdict}”" if triage.verdict else "selected this item for the next round"
            text = f"{triage.actor or 'Someone'} {did}" + (f": {triage.note}" if triage.note else ".")
            yield Point(key, _CLAIMS[triage.verdict], text, triage.subject_id, item_id=item_id)


# ── proposals of refinement rounds ─────────────────────────────────────────────────────────────────────────────

ProposalState = Literal["open", "accepted", "rejected"]


@dataclass(frozen=True)
class ListedProposal:
    """A refinement proposal, compared with the criteria that it would replace.

    Attributes:
        criteria: The proposed criteria.
        parent: The criteria that they would replace.
        calibration: Alignment of the proposal minus that of `parent`, on the calibration items. The p is Holm-corrected
            for the number of proposals in the round.
        inner: The same difference, with the same correction, on the calibration items that were set aside for
            validation.
        decision: None if nobody has decided.
    """

    criteria: Criteria
    parent: Criteria
    calibration: PairedDifference
    inner: PairedDifference
    decision: PointDecided | None = None

    @property
    def state(self) -> ProposalState:
        return "open" if self.decision is None or self.decision.verdict == "postponed" else self.decision.verdict


def list_proposals(store: Store, run_id: str) -> list[ListedProposal]:
    """List the proposals of a finished refinement round, largest difference on the inner fold first."""
    run = store.runs.get(run_id)
    if run.kind != "round":
        raise JobError(f"Run {run_id} isn't a refinement round. Choose a refinement round.")
    result = store.results.read(run_id, RESULT, RoundResult)
    if result is None:
        return []

    def corrected(differences: Sequence[Difference]) -> list[PairedDifference]:
        raised = holm([float("nan") if each.p is None else each.p for each in differences]).tolist()
        pairs = zip(map(PairedDifference.of, differences), raised, strict=True)
        return [each if each.p is None else replace(each, p=p) for each, p in pairs]

    whole = corrected([proposal.calibration for proposal in result.proposals])
    inner = corrected([proposal.inner for proposal in result.proposals])
    decisions = store.events.all(run.project_id, PointDecided)
    decided = {decision.subject: decision for decision in decisions if decision.verdict != "postponed"}
    listed = []
    for proposal, on_whole, on_inner in zip(result.proposals, whole, inner, strict=True):
        parent = store.criteria.get(run.project_id, proposal.parent_id).criteria
        decision = decided.get(f"proposal:{run_id}:{proposal.criteria.criteria_id}")
        listed.append(ListedProposal(proposal.criteria, parent, on_whole, on_inner, decision))
    return listed


def hidden_votes(store: Store, project_id: str) -> set[int]:
    """Return the log numbers of votes that must stay hidden, because others have not voted on the point yet."""
    entries = store.events.all(project_id, ReviewEntry)
    reviews = {(entry.golden_id, entry.aspect) for entry in entries}
    points = [point for where in reviews for point in open_review(store, project_id, *where).points]
    open_since = {point.key: point.seen for point in points if not point.revealed}
    return {
        entry.number
        for entry in entries
        if isinstance(entry, Vote) and entry.number > open_since.get(entry.subject, entry.number)
    }


def review_moved(store: Store, project_id: str) -> int:
    """Return a number that increases with each change in a review of the project."""
    return max((entry.number for entry in store.events.all(project_id, ReviewEntry)), default=0)


# ── join, vote and decide ──────────────────────────────────────────────────────────────────────────────────────


@requires("annotator")
def join_review(store: Store, project_id: str, golden_id: str, aspect: str) -> None:
    """Add the user to the review. All votes then stay hidden until this user has voted, too.

    Raises UsageError if the user has no name.
    """
    if named_user(store) not in open_review(store, project_id, golden_id, aspect).joined:
        store.events.add(project_id, ReviewJoined(golden_id, aspect, subject=golden_id), store.actor)


@requires("annotator")
def leave_review(store: Store, project_id: str, golden_id: str, aspect: str) -> None:
    """Leave the review, so that nobody waits for this user. Their votes still count."""
    if store.actor.name in open_review(store, project_id, golden_id, aspect).joined:
        store.events.add(project_id, ReviewLeft(golden_id, aspect, subject=golden_id), store.actor)


@requires("annotator")
def cast_vote(store: Store, project_id: str, golden_id: str, aspect: str, key: str, *, choice: Choice) -> None:
    """Vote on an open point, and join the review. A second vote replaces the first.

    Raises UsageError if the user has no name, and ConflictError if the point was decided in the meantime.
    """
    named_user(store)
    point = open_review(store, project_id, golden_id, aspect).find(key)
    store.events.add(project_id, Vote(golden_id, aspect, point.title, choice, subject=key), store.actor)


@requires("reviewer")
def decide_point(
    store: Store,
    project_id: str,
    golden_id: str,
    aspect: str,
    key: str,
    *,
    verdict: Verdict,
    reason: str = "",
    seen: int = 0,
) -> None:
    """Decide an open point of a review. A postponed point moves to the end and loses its votes.

    Args:
        reason: Required if the votes don't support the decision.
        seen: The `Point.seen` that the user saw.

    Raises:
        UsageError: A required reason is missing.
        ConflictError: Somebody else has decided in the meantime.
    """
    point = open_review(store, project_id, golden_id, aspect).find(key)
    if point.needs_reason(verdict) and not reason.strip():
        raise UsageError("The votes don't support this decision. Enter a reason.")
    why = reason.strip() or f"{point.tally or 'No votes'}."
    criteria_id = "" if point.item_id else point.subject_id
    decision = PointDecided(
        golden_id, aspect, point.title, verdict, why, point.tally, point.item_id, criteria_id, subject=key
    )
    store.events.add(project_id, decision, store.actor, expected=seen)
