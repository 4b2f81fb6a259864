"""Review: the open points of an aspect, one at a time, with votes and decisions.

Open points are proposals of refinement rounds, edits that are no version of the judge yet, and triaged items that
somebody picked, called ambiguous or called wrongly labelled.  Everybody sees the first of them.  Its votes stay hidden
until everybody who joined has voted.  A reviewer decides; decision and reason are logged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

from core.errors import ConflictError, UsageError
from core.projects.criteria import ProposalDecided, open_proposals
from core.projects.judge_line import judge_line
from core.projects.reasons import list_triage
from core.store.log import Entry
from core.store.store import Store, requires
from core.wording import change_figures, counted

Choice = Literal["for", "against", "abstain"]
CHOICES: tuple[Choice, ...] = ("for", "against", "abstain")
Verdict = Literal["accepted", "rejected", "postponed"]
VERDICTS: tuple[Verdict, ...] = ("accepted", "rejected", "postponed")
JOINED_FOR = timedelta(hours=12)
"""Whoever joined earlier than this, and never left, is not waited for."""
_LONGEST = 2_000
_LONGEST_QUOTE = 180
_BULLET = re.compile(r"^\s*(?:[-*•·]\s+|\d+[.)]\s+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_a-z]|[\"“‘(])")
_QUESTIONS = {
    "ambiguous": "Do the criteria need a rule for this?",
    "judge wrong": "Is the judge wrong here?",
    "label wrong": "Is the label wrong here?",
    "": "Who is right here, judge or raters?",
}


@dataclass(frozen=True)
class ReviewEntry(Entry):
    """An event in the review of an aspect of a golden set."""

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
    """A vote on a point, whose key is the subject; the newest vote of a person counts."""

    kind = "vote"
    does = "voted {0.choice}"
    title: str
    choice: Choice


@dataclass(frozen=True)
class PointDecided(ReviewEntry):
    """A decision on a point, whose key is the subject; `tally` is how the votes stood, "" without any."""

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
    """An open point: a disagreement about item `item_id`, or ("") a change.

    A change proposes criteria (`subject_id`) in place of `parent_id`; `run_id` is the round that proposed them, "" for
    an edit by hand.  A disagreement is about the item as the criteria or judge `subject_id` scored it.
    `seen` is the number of the decision that postponed it, 0 for none.
    `waiting` are the people who have yet to vote.
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
        """Whether the votes may be shown with their names."""
        return bool(self.votes) and not self.waiting

    def voters(self, choice: Choice) -> list[str]:
        return [vote.actor for vote in self.votes if vote.choice == choice]

    @property
    def tally(self) -> str:
        """E.g. "2 for, 1 against, 0 abstained"; "" without votes."""
        n_for, n_against, n_abstained = (len(self.voters(choice)) for choice in CHOICES)
        return f"{n_for} for, {n_against} against, {n_abstained} abstained" if self.votes else ""

    def needs_reason(self, verdict: Verdict) -> bool:
        """Whether this decision differs from the votes, or postpones the point."""
        lead = len(self.voters("for")) - len(self.voters("against"))
        return verdict != "postponed" and (bool(self.waiting) or lead == 0 or (lead > 0) != (verdict == "accepted"))


@dataclass(frozen=True)
class OpenReview:
    """The review of an aspect of a golden set: its open `points`, the first of which is to be decided.

    `joined` are the people to wait for, `decided` the decisions so far, newest first.
    """

    points: tuple[Point, ...]
    joined: tuple[str, ...]
    decided: tuple[PointDecided, ...]

    def find(self, key: str) -> Point:
        """An open point.  ConflictError where it was decided, UsageError where there was none."""
        for point in self.points:
            if point.key == key:
                return point
        made = next((decision for decision in self.decided if decision.subject == key), None)
        if made is None:
            raise UsageError("This point is not open. Look at the review again.")
        raise ConflictError(
            f"{made.actor or 'Somebody'} decided on this point while you were looking at it, and nothing was "
            f"overwritten. It was {made.verdict}: {made.reason}",
            theirs=f"{made.verdict}: {made.reason}",
            yours="",
        )


def open_review(store: Store, project_id: str, golden_id: str, aspect: str) -> OpenReview:
    """Open the review of an aspect: open points, reviewers and decisions.

    Changes come first, then disagreements, then what was postponed.
    """
    entries = [
        entry
        for entry in store.events.all(project_id, ReviewEntry)
        if (entry.golden_id, entry.aspect) == (golden_id, aspect)
    ]
    decided = {entry.subject: entry for entry in entries if isinstance(entry, PointDecided)}
    joined: dict[str, None] = {}
    for entry in entries:
        if isinstance(entry, ReviewLeft):
            joined.pop(entry.actor, None)
        elif isinstance(entry, ReviewJoined | Vote) and datetime.now(UTC) - entry.at < JOINED_FOR:
            joined[entry.actor] = None

    points = []
    for point in _found(store, project_id, golden_id, aspect, decided):
        seen = decided[point.key].number if point.key in decided else 0
        cast = (entry for entry in entries if isinstance(entry, Vote) and entry.subject == point.key)
        votes = {entry.actor: entry for entry in cast if entry.number > seen}
        waiting = tuple(name for name in joined if name not in votes)
        points.append(replace(point, seen=seen, votes=tuple(votes.values()), waiting=waiting))
    points.sort(key=lambda point: point.seen)
    decisions = [entry for entry in entries if isinstance(entry, PointDecided)]
    return OpenReview(tuple(points), tuple(joined), tuple(decisions[::-1]))


def _found(
    store: Store, project_id: str, golden_id: str, aspect: str, decided: Mapping[str, PointDecided]
) -> Iterator[Point]:
    """What is open, votes apart."""
    # proposals of finished rounds that nobody has decided on, newest round first
    for proposal in open_proposals(store, project_id, golden_id, aspect):
        new, old, gain = proposal.criteria.criteria_id, proposal.parent.criteria_id, proposal.inner
        change = "undefined" if gain.value is None else change_figures(gain.value, gain.interval)
        yield Point(
            f"proposal:{proposal.run_id}:{new}",
            change_question(proposal.parent.text, proposal.criteria.text),
            f"Change of alignment: {change}, n = {gain.n} items that no refiner saw.",
            subject_id=new,
            parent_id=old,
            run_id=proposal.run_id,
        )
    # the newest edits by hand that are no version of the judge yet, and that nobody has decided on
    taken = {decision.edited_id for decision in store.events.all(project_id, ProposalDecided)}
    taken |= {decision.criteria_id for decision in decided.values() if decision.verdict != "postponed"}
    taken |= set(judge_line(store, project_id, aspect).followed)
    listed = {entry.criteria_id: entry for entry in store.criteria.all(project_id, aspect, golden_id)}
    for new, entry in listed.items():
        if entry.origin == "edit" and not entry.edits and entry.parents[0] in listed and new not in taken:
            yield Point(
                f"edit:{new}",
                change_question(listed[entry.parents[0]].text, entry.text),
                f"{entry.author or 'Somebody'} changed it by hand" + (f": {entry.note}" if entry.note else "."),
                subject_id=new,
                parent_id=entry.parents[0],
            )
    # triaged items that somebody picked, called ambiguous or called wrongly labelled, and triaged anew since
    for item_id, triage in list_triage(store, project_id, golden_id, aspect).items():
        key = f"item:{golden_id}:{aspect}:{item_id}"
        decision = decided.get(key)
        settled = decision is not None and decision.verdict != "postponed" and decision.number > triage.number
        if not settled and (triage.picked or triage.verdict not in ("", "judge wrong")):
            did = f"called it {triage.verdict}" if triage.verdict else "picked it for the next round"
            text = f"{triage.actor or 'Somebody'} {did}" + (f": {triage.note}" if triage.note else ".")
            yield Point(key, _QUESTIONS[triage.verdict], text, subject_id=triage.subject_id, item_id=item_id)


def hidden_votes(store: Store, project_id: str) -> set[int]:
    """The numbers of votes that nobody may see yet: their point is open, and somebody who joined has not voted."""
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
    """A number that grows whenever somebody joins, votes or decides in a review of the project."""
    return max((entry.number for entry in store.events.all(project_id, ReviewEntry)), default=0)


# ── what a person does ───────────────────────────────────────────────────────────────────────────────────────


@requires("annotator")
def join_review(store: Store, project_id: str, golden_id: str, aspect: str) -> None:
    """Join: from now on votes are shown only once this person has voted as well.  UsageError without a name."""
    if not store.actor.name:
        raise UsageError("Enter your name first. Votes carry a name.")
    if store.actor.name not in open_review(store, project_id, golden_id, aspect).joined:
        store.events.add(project_id, ReviewJoined(golden_id, aspect, subject=golden_id), store.actor)


@requires("annotator")
def leave_review(store: Store, project_id: str, golden_id: str, aspect: str) -> None:
    """Leave: nobody waits for this person's votes any more; those that they gave count."""
    if store.actor.name in open_review(store, project_id, golden_id, aspect).joined:
        store.events.add(project_id, ReviewLeft(golden_id, aspect, subject=golden_id), store.actor)


@requires("annotator")
def cast_vote(store: Store, project_id: str, golden_id: str, aspect: str, key: str, *, choice: Choice) -> None:
    """Vote on an open point, and join; a second vote replaces the first.

    UsageError without a name or for an unknown choice, ConflictError for a point that was decided meanwhile.
    """
    if not store.actor.name:
        raise UsageError("Enter your name first. Votes carry a name.")
    if choice not in CHOICES:
        raise UsageError(f"A vote is {', '.join(CHOICES)}; got {choice!r}.")
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
    """Decide on an open point; `seen` is `Point.seen` as the person saw it.

    A decision needs a reason where the votes are not reason enough (`Point.needs_reason`).  A round's proposal is
    accepted or rejected with it.  What is postponed comes last from then on, without its votes.
    UsageError without the reason, ConflictError when somebody else decided meanwhile; nothing is written then.
    """
    if verdict not in VERDICTS:
        raise UsageError(f"A decision is {', '.join(VERDICTS)}; got {verdict!r}.")
    point = open_review(store, project_id, golden_id, aspect).find(key)
    if point.needs_reason(verdict) and not reason.strip():
        raise UsageError("This decision needs a reason, because it differs from the votes.")
    why = reason.strip()[:_LONGEST] or ("Postponed." if verdict == "postponed" else f"{point.tally}.")
    criteria_id = "" if point.item_id else point.subject_id
    decision = PointDecided(
        golden_id, aspect, point.title, verdict, why, point.tally, point.item_id, criteria_id, subject=key
    )

    def write() -> None:
        if point.run_id and verdict != "postponed":
            proposal = ProposalDecided(verdict, why, subject=f"{point.run_id}:{point.subject_id}")
            store.events.add(project_id, proposal, store.actor)
        store.events.add(project_id, decision, store.actor, expected=seen)

    store.together(write)


def change_question(old: str, new: str) -> str:
    """The question whether `old` is to become `new`; what came and went is quoted where it is short, else counted."""
    before, after = _sentences(old), _sentences(new)
    came = [sentence for sentence in after if sentence not in before]
    went = [sentence for sentence in before if sentence not in after]
    quoted = [f"“{sentence.strip(' .;,')}”" for sentence in (*came, *went)]
    if not quoted:
        return "Should the criteria be worded like this?"
    if max(len(came), len(went)) == 1 and sum(map(len, quoted)) <= _LONGEST_QUOTE:
        if not went:
            return f"Should the criteria also say {quoted[0]}?"
        return f"Should the criteria {f'say {quoted[0]} instead of' if came else 'no longer say'} {quoted[-1]}?"
    counts = [
        f"{counted(len(listed), 'sentence')} {word}" for word, listed in (("new", came), ("gone", went)) if listed
    ]
    return f"Should the criteria be rewritten, {' and '.join(counts)}?"


def _sentences(text: str) -> list[str]:
    """The sentences of criteria without bullets and numbers of lines, in order."""
    lines = (_BULLET.sub("", line).strip() for line in text.splitlines())
    return [sentence for line in lines if line for sentence in _SENTENCE_END.split(line)]
