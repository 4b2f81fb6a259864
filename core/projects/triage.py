"""Triage of misaligned items: what people found, how far they are, and taking it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from core.errors import ConflictError, UsageError
from core.projects.roles import requires
from core.store.log import UNWRITTEN, Entry
from core.store.store import Store

TriageVerdict = Literal["judge wrong", "label wrong", "ambiguous"]
TRIAGE_VERDICTS: tuple[TriageVerdict, ...] = ("judge wrong", "label wrong", "ambiguous")


@dataclass(frozen=True)
class Triage(Entry):
    """What somebody found on a misaligned item, which is the subject; `picked`: to be shown in the next round.

    `subject_id` is the criteria or judge that was looked at; `verdict` is "" where nobody has decided yet, as on an
    item that was only picked, or whose verdict was taken back.
    """

    kind = "triage"
    does = "triaged an item: {0.verdict}"
    golden_id: str
    aspect: str
    subject_id: str
    verdict: TriageVerdict | Literal[""]
    note: str = ""
    picked: bool = False

    @property
    def item_id(self) -> str:
        return self.subject

    @property
    def is_blank(self) -> bool:
        """Whether it says nothing: all that stood there was taken back."""
        return not (self.verdict or self.picked or self.note)

    @property
    def did(self) -> str:
        if self.verdict:
            return super().did
        if self.picked:
            return "picked an item for the next round"
        return "noted something on an item" if self.note else "took back what was said of an item"

    def is_about(self, golden_id: str, aspect: str) -> bool:
        return (self.golden_id, self.aspect) == (golden_id, aspect)


_LONGEST_NOTE = 5_000


@dataclass(frozen=True, slots=True)
class TriageRequest:
    """What somebody says of items, looking at the criteria or judge `subject_id`; None stays as it was said before."""

    golden_id: str
    aspect: str
    subject_id: str
    verdict: TriageVerdict | None = None
    note: str | None = None
    picked: bool | None = None


@dataclass(frozen=True, slots=True)
class TriagedItems:
    """What became of several items triaged at once: item id → number of its entry, item id → why it was left alone."""

    numbers: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


@requires("annotator")
def save_triage(
    store: Store, project_id: str, item_id: str, request: TriageRequest, *, form: str = "", seen: int | None = None
) -> int:
    """Keep what somebody found on a misaligned item, and return the number of the entry.

    An item can be picked or noted without a verdict.  `seen` is the number of the triage that the person saw (0: none),
    and with it ConflictError where somebody else was faster.  UsageError for an unknown verdict, or an endless note.
    """
    verdict, note = request.verdict, request.note
    if verdict is not None and verdict not in TRIAGE_VERDICTS:
        raise UsageError(f"A triage says {', '.join(TRIAGE_VERDICTS)}; {verdict!r} came.")
    if note is not None and len(note) > _LONGEST_NOTE:
        raise UsageError(f"A note may have {_LONGEST_NOTE:,} characters; this one has {len(note):,}.")
    where = (request.golden_id, request.aspect)
    before = _newest(_history(store, project_id, *where, item_id), *where, item_id)
    triage = Triage(
        *where,
        request.subject_id,
        before.verdict if verdict is None else verdict,
        before.note if note is None else note.strip(),
        before.picked if request.picked is None else request.picked,
        subject=item_id,
    )
    expected = None if seen is None else _check_unchanged(store, project_id, triage, seen)
    return store.events.add(project_id, triage, store.actor, form=form, expected=expected)


@requires("annotator")
def triage_items(
    store: Store, project_id: str, seen: Mapping[str, int], request: TriageRequest, *, form: str = ""
) -> TriagedItems:
    """Say the same of several items.

    `seen` maps each item id → the number of the triage that the person saw (0: none).  An item on which somebody else
    was faster is left alone and named with the reason.
    """
    numbers, refused = {}, {}
    for item_id, number in seen.items():
        own_form = f"{form}:{item_id}" if form else ""
        try:
            numbers[item_id] = save_triage(store, project_id, item_id, request, form=own_form, seen=number)
        except ConflictError as error:
            refused[item_id] = str(error)
    return TriagedItems(numbers, refused)


@requires("annotator")
def undo_triage(
    store: Store, project_id: str, golden_id: str, *, aspect: str, item_id: str, number: int, form: str = ""
) -> int:
    """Say again of an item what was said before entry `number`; nothing where that was the first.  One more entry.

    ConflictError where something was said of it since, so that nobody else's word is undone unseen.
    """
    history = _history(store, project_id, golden_id, aspect, item_id)
    newest = _newest(history, golden_id, aspect, item_id)
    if newest.number != number:
        raise ConflictError(
            f"{newest.actor or 'Somebody'} has said something of this item since; nothing was undone.",
            theirs=newest.verdict,
            yours="",
        )
    before = _newest(history[:-1], golden_id, aspect, item_id)
    restored = replace(before, number=0, project_id="", actor="", role="", at=UNWRITTEN)
    expected = _check_unchanged(store, project_id, restored, number)
    return store.events.add(project_id, restored, store.actor, form=form, expected=expected)


def _history(store: Store, project_id: str, golden_id: str, aspect: str, item_id: str) -> list[Triage]:
    said = store.events.all(project_id, Triage, item_id)
    return [triage for triage in said if triage.is_about(golden_id, aspect)]


def _newest(history: Sequence[Triage], golden_id: str, aspect: str, item_id: str) -> Triage:
    """What was said last; where nobody has said anything, an entry that says nothing."""
    return history[-1] if history else Triage(golden_id, aspect, "", "", subject=item_id)


def _check_unchanged(store: Store, project_id: str, triage: Triage, seen: int) -> int:
    """The newest triage of the item (of any aspect; 0 for none); ConflictError where this one was changed meanwhile."""
    earlier = store.events.all(project_id, Triage, triage.item_id)
    newest = next((triaged for triaged in reversed(earlier) if triaged.is_about(triage.golden_id, triage.aspect)), None)
    unchanged = newest is None or newest.number == seen or (newest.is_blank and not seen)
    if newest is not None and not unchanged and (not store.actor.name or newest.actor != store.actor.name):
        said = f"said {newest.verdict!r} of this item" if newest.verdict else newest.did.replace("an item", "this item")
        raise ConflictError(
            f"{newest.actor or 'Somebody'} {said} while you were looking at it. Look at it again, then decide; "
            "nothing was overwritten.",
            theirs=newest.verdict,
            yours=triage.verdict,
        )
    return earlier[-1].number if earlier else 0


def list_triage(store: Store, project_id: str, golden_id: str, aspect: str) -> dict[str, Triage]:
    """Item id → what was found last, by anybody; items of which all was taken back are left out."""
    found = {
        triage.item_id: triage for triage in store.events.all(project_id, Triage) if triage.is_about(golden_id, aspect)
    }
    return {item_id: triage for item_id, triage in found.items() if not triage.is_blank}
