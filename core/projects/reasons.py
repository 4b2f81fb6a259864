"""Why people rate as they do: what they found on misaligned items (*triage*), and reasons for drafting and refining."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from core.projects.labelling import Highlighted, LabelsFrozen, list_passes
from core.records import GoldenSet
from core.store.log import Entry
from core.store.store import Store

TriageVerdict = Literal["judge wrong", "label wrong", "ambiguous"]
TRIAGE_VERDICTS: tuple[TriageVerdict, ...] = ("judge wrong", "label wrong", "ambiguous")


@dataclass(frozen=True)
class Triage(Entry):
    """A verdict on a misaligned item (the subject); `picked` items are shown in the next round.

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
        """Whether it is empty because everything was undone."""
        return not (self.verdict or self.picked or self.note)

    @property
    def description(self) -> str:
        if self.verdict:
            return super().description
        if self.picked:
            return "picked an item for the next round"
        return "noted something on an item" if self.note else "undid the verdict on an item"


def list_triage(store: Store, project_id: str, golden_id: str, aspect: str) -> dict[str, Triage]:
    """Item id → what was found last, by anybody; items of which all was taken back are left out."""
    said = store.events.all(project_id, Triage)
    found = {triage.item_id: triage for triage in said if (triage.golden_id, triage.aspect) == (golden_id, aspect)}
    return {item_id: triage for item_id, triage in found.items() if not triage.is_blank}


def with_reasons(
    store: Store, project_id: str, golden: GoldenSet, aspect: str, before: datetime | None = None
) -> GoldenSet:
    """`golden` with all reasons for its labels of `aspect`: triage notes, and words marked in passes that it came from.

    What was written after `before` is left out, so that a resumed run reads what it read before.  The digest of what
    comes back differs from that of `golden` where there is anything to add.
    """
    found: dict[str, list[str]] = {}
    passes = {labelling.pass_id: labelling for labelling in list_passes(store, project_id)}
    golden_id = golden.digest
    while (frozen := store.events.all(project_id, LabelsFrozen, golden_id)) and frozen[-1].pass_id in passes:
        labelling = passes.pop(frozen[-1].pass_id)
        marked = {
            (entry.actor, entry.item_id): entry
            for entry in store.events.all(project_id, Highlighted, labelling.pass_id)
        }
        for entry in marked.values() if aspect in labelling.aspects else ():
            if entry.spans and (before is None or entry.at <= before):
                found.setdefault(entry.item_id, []).append(
                    "Marked: " + ", ".join(f"“{span.words}”" for span in entry.spans)
                )
        golden_id = labelling.golden_id
    for item_id, triage in list_triage(store, project_id, golden.digest, aspect).items():
        if triage.note and (before is None or triage.at <= before):
            found.setdefault(item_id, []).append(f"{triage.verdict}: {triage.note}" if triage.verdict else triage.note)
    if not found:
        return golden
    labels = golden.aspects[aspect]
    reasons = {name: (*labels.reasons.get(name, ()), *found.get(name, ())) for name in {**labels.reasons, **found}}
    return replace(golden, aspects={**golden.aspects, aspect: replace(labels, reasons=reasons)})
