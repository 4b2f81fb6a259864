"""Criteria of a project: names, edits, merges, comments by line, locks; drafts of texts.

People sign off versions of the judge (`core.projects.judge_line`), not texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from core.errors import ConflictError, CriteriaError, UsageError
from core.projects.criteria_naming import LONGEST_NAME, NamedText
from core.projects.criteria_naming import criteria_names as names_of
from core.projects.roles import requires
from core.records import Criteria, Provenance
from core.store.labels import Draft
from core.store.log import Entry
from core.store.store import Store
from core.word_diff import merged

LONGEST_TEXT = 20_000
"""Characters of criteria at most."""


# ── what is logged of criteria ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class CriteriaEvent(Entry):
    """Something done to criteria, which are the subject."""


@dataclass(frozen=True)
class Comment(CriteriaEvent):
    """A remark on line `line` (from 1) or, with None, on the whole; `settled_by` "" while it is open."""

    kind = "comment"
    does = "commented on criteria"
    text: str
    line: int | None = None
    settled_by: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class CommentSettled(CriteriaEvent):
    kind = "comment settled"
    does = "settled a comment"
    comment: int


@dataclass(frozen=True)
class LockChange(CriteriaEvent):
    kind = "lock"
    locked: bool

    @property
    def did(self) -> str:
        return "locked criteria" if self.locked else "unlocked criteria"


@dataclass(frozen=True)
class CriteriaNamed(Entry):
    """Somebody gave criteria, the subject, a name; the newest one counts.  UsageError for what is no name."""

    kind = "criteria name"
    does = "named criteria “{0.name}”"
    name: str

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= LONGEST_NAME:
            raise UsageError(f"A name has 1 to {LONGEST_NAME} characters; this one has {len(self.name):,}.")
        if self.name != " ".join(self.name.split()) or not self.name.isprintable():
            raise UsageError("A name is one line of visible characters, without spaces before or behind it.")


@dataclass(frozen=True)
class ProposalDecided(Entry):
    """A proposal of a refinement round was accepted or rejected; the subject is ``RUN_ID:CRITERIA_ID``.

    `edited_id` names the version that people made of it and accepted in its place, "" for none.
    """

    kind = "proposal"
    does = "{0.verdict} a proposal"
    verdict: Literal["accepted", "rejected"]
    reason: str
    edited_id: str = ""


# ── what it adds up to ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Review:
    """What people remarked on criteria, and who locked them ("" for nobody)."""

    criteria_id: str
    comments: tuple[Comment, ...]
    locked_by: str = ""

    @property
    def locked(self) -> bool:
        return bool(self.locked_by)


_LONGEST_COMMENT = 5_000
_LONGEST_SUBJECT = 200
_AFTER_ALL = 1e12
"""When criteria were made that are not kept yet: after all others, round by round."""


def criteria_names(store: Store, project_id: str, aspect: str, beside: Iterable[Criteria] = ()) -> Mapping[str, str]:
    """Criteria id → the name that people gave, else one proposed from the text; all of an aspect, no two alike.

    `beside` are those of a run that goes on, which the project keeps once it has ended.
    """
    given = {named.subject: named.name for named in store.events.all(project_id, CriteriaNamed)}
    texts = [
        NamedText(criteria.criteria_id, criteria.text, at, criteria.provenance.parents)
        for criteria, at in store.criteria.texts(project_id, aspect)
    ]
    known = {text.criteria_id for text in texts}
    texts += [
        NamedText(
            criteria.criteria_id, criteria.text, _AFTER_ALL + criteria.provenance.round, criteria.provenance.parents
        )
        for criteria in beside
        if criteria.criteria_id not in known
    ]
    return names_of(texts, given)


@requires("reviewer")
def rename_criteria(store: Store, project_id: str, criteria_id: str, name: str, *, shown: str | None = None) -> None:
    """Give criteria a name.

    With `shown` (the name as the person saw it) ConflictError when somebody else renamed them since.  UsageError for an
    empty name, one of over 80 characters, or one that other criteria of the aspect have.
    """
    aspect = store.criteria.get(project_id, criteria_id).aspect
    named = CriteriaNamed(" ".join(name.split()), subject=criteria_id)
    names = criteria_names(store, project_id, aspect)
    if any(known.casefold() == named.name.casefold() for other, known in names.items() if other != criteria_id):
        raise UsageError(f"Other criteria for {aspect} are named {named.name!r} already. Give these another name.")
    earlier = store.events.all(project_id, CriteriaNamed, criteria_id)
    if shown is not None and names[criteria_id] != shown:
        raise ConflictError(
            f"{(earlier[-1].actor if earlier else '') or 'Somebody'} named these criteria “{names[criteria_id]}” while "
            "you were typing. Look at that name, then name them again; nothing was overwritten.",
            theirs=names[criteria_id],
            yours=named.name,
        )
    if named.name != names[criteria_id]:
        expected = earlier[-1].number if earlier else 0
        store.events.add(project_id, named, store.actor, expected=expected)


@requires("reviewer", "edited criteria")
def save_edit(
    store: Store,
    project_id: str,
    parent_id: str,
    text: str,
    author: str = "",
    *,
    note: str = "",
    expected_head: str | None = None,
) -> str:
    """Save `text` as a new version of the criteria `parent_id` and return its id; the parent stays as it is.

    With `expected_head` (`CriteriaEntry.head` as the author saw it) ConflictError, with both texts, when somebody
    else saved another edit of the same parent since.  CriteriaError for an empty or overlong text or a
    locked parent, NotFoundError for an unknown one.  A text equal to the parent's gives the parent's id.
    The author is whoever acts where nobody else is named; who signed in is always the author.
    """
    parent = store.criteria.get(project_id, parent_id).criteria
    locked_by = review_of(store, project_id, parent_id).locked_by
    if locked_by:
        raise CriteriaError(f"{locked_by} locked these criteria. Copy the text, or ask them to unlock it.")
    trimmed = text.strip()
    if not trimmed:
        raise CriteriaError("Criteria need a text. To judge without criteria, choose the baseline.")
    if len(trimmed) > LONGEST_TEXT:
        raise CriteriaError(f"Criteria may have {LONGEST_TEXT:,} characters; these have {len(trimmed):,}.")
    author = store.actor.name if store.actor.subject else author.strip() or store.actor.name
    provenance = Provenance("edit", parent.provenance.round, (parent_id,), author=author, note=note.strip())
    edit = Criteria(trimmed, parent.aspect, provenance)
    if edit.criteria_id == parent_id:
        return parent_id
    return store.criteria.save_edit(project_id, parent_id, edit, expected_head)


# ── reviews ──────────────────────────────────────────────────────────────────────────────────────────────────────


def review_of(store: Store, project_id: str, criteria_id: str) -> Review:
    """Remarks on criteria and their lock.  NotFoundError for unknown criteria."""
    store.criteria.get(project_id, criteria_id)
    comments: dict[int, Comment] = {}
    locked_by = ""
    for entry in store.events.all(project_id, CriteriaEvent, criteria_id):
        who = entry.actor or "somebody"
        if isinstance(entry, Comment):
            comments[entry.number] = entry
        elif isinstance(entry, CommentSettled) and entry.comment in comments:
            comments[entry.comment] = replace(comments[entry.comment], settled_by=who)
        elif isinstance(entry, LockChange):
            locked_by = who if entry.locked else ""
    return Review(criteria_id, tuple(comments.values()), locked_by)


@requires("annotator")
def add_comment(
    store: Store, project_id: str, criteria_id: str, text: str, *, line: int | None = None, form: str = ""
) -> None:
    """Remark on criteria, on line `line` (from 1) or on the whole.  UsageError for an empty or endless remark."""
    lines = store.criteria.get(project_id, criteria_id).criteria.text.splitlines()
    remark = text.strip()
    if not 1 <= len(remark) <= _LONGEST_COMMENT:
        raise UsageError(f"A comment has 1 to {_LONGEST_COMMENT:,} characters, not {len(remark):,}.")
    if line is not None and not 1 <= line <= len(lines):
        raise UsageError(f"These criteria have {len(lines)} lines; there is no line {line}.")
    store.events.add(project_id, Comment(remark, line, subject=criteria_id), store.actor, form=form)


@requires("annotator")
def settle_comment(store: Store, project_id: str, criteria_id: str, number: int) -> None:
    """Mark a comment as settled; it stays readable.  UsageError when there is no such comment."""
    if all(comment.number != number for comment in store.events.all(project_id, Comment, criteria_id)):
        raise UsageError("There is no such comment on these criteria.")
    settled = CommentSettled(number, subject=criteria_id)
    store.events.add(project_id, settled, store.actor, form=f"settled:{number}")


@requires("reviewer")
def set_lock(store: Store, project_id: str, criteria_id: str, *, locked: bool) -> None:
    """Lock criteria against edits, or unlock them."""
    store.criteria.get(project_id, criteria_id)
    store.events.add(project_id, LockChange(locked, subject=criteria_id), store.actor)


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


# ── what is typed and not saved ──────────────────────────────────────────────────────────────────────────────


@requires("reviewer")
def keep_draft(store: Store, project_id: str, subject: str, text: str, *, base: str = "") -> Draft:
    """Keep what whoever acts has typed so far of `subject`; overwrites what they had typed there before.

    Kept at every pause, so that no closed tab and no restart takes it along; saving or dropping the text takes it
    away.  UsageError for a text that could not be saved for its length, StoreError for an unknown project.
    """
    if len(text.strip()) > LONGEST_TEXT:
        raise UsageError(f"A text may have {LONGEST_TEXT:,} characters; this one has {len(text.strip()):,}.")
    if not 0 < len(subject) <= _LONGEST_SUBJECT:
        raise UsageError(f"A draft says what it is of, in 1 to {_LONGEST_SUBJECT} characters; {len(subject)} came.")
    readable = text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair could not be shown again
    return store.drafts.keep(project_id, subject, store.actor.name, readable, base)


def draft_of(store: Store, project_id: str, subject: str) -> Draft | None:
    """The newest text that whoever acts has typed of `subject` and not saved; None for none."""
    return next((draft for draft in store.drafts.of(project_id, subject) if draft.author == store.actor.name), None)


def others_drafting(store: Store, project_id: str, subject: str) -> list[Draft]:
    """Who else has typed of `subject` and not saved, who typed last first; their texts stay theirs and are left out."""
    drafts = store.drafts.of(project_id, subject)
    return [replace(draft, text="") for draft in drafts if draft.author not in ("", store.actor.name)]


@requires("reviewer")
def drop_draft(store: Store, project_id: str, subject: str) -> None:
    """Take away what whoever acts has typed of `subject`: it was saved, or they begin again."""
    store.drafts.drop(project_id, subject, [store.actor.name])
