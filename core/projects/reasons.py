"""Triage of misaligned items, and the reasons for labels that drafting and refining read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from core.projects.labelling import frozen_from, highlights
from core.records import GoldenSet
from core.store.log import Entry
from core.store.store import Store

TriageVerdict = Literal["judge wrong", "label wrong", "ambiguous"]
TRIAGE_VERDICTS: tuple[TriageVerdict, ...] = ("judge wrong", "label wrong", "ambiguous")


@dataclass(frozen=True)
class Triage(Entry):
    """A verdict on a misaligned item, the subject; the next round learns from `picked` items.

    `subject_id` is the criteria or judge that scored the item.  `verdict` is "" while nobody has decided.
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
        """Whether everything in it was undone."""
        return not (self.verdict or self.picked or self.note)

    @property
    def description(self) -> str:
        if self.verdict:
            return super().description
        if self.picked:
            return "picked an item for the next round"
        return "noted something on an item" if self.note else "undid the verdict on an item"


def list_triage(store: Store, project_id: str, golden_id: str, aspect: str) -> dict[str, Triage]:
    """Map item id to its newest triage, by anybody, without those that were undone."""
    said = store.events.all(project_id, Triage)
    found = {triage.item_id: triage for triage in said if (triage.golden_id, triage.aspect) == (golden_id, aspect)}
    return {item_id: triage for item_id, triage in found.items() if not triage.is_blank}


def with_reasons(
    store: Store, project_id: str, golden: GoldenSet, aspect: str, before: datetime | None = None
) -> GoldenSet:
    """Add to a golden set all reasons for its labels of `aspect`: triage notes, and highlights of the passes behind it.

    Reasons after `before` are left out, so that a resumed run reads what it read before.  The digest changes with them.
    """
    found: dict[str, list[str]] = {}
    for _, labelling in frozen_from(store, project_id, golden.digest):
        marked = highlights(store, project_id, labelling.pass_id) if aspect in labelling.aspects else {}
        for (_, item_id), entry in marked.items():
            if before is None or entry.at <= before:
                words = ", ".join(f"“{span.words}”" for span in entry.spans)
                found.setdefault(item_id, []).append(f"Marked: {words}")
    for item_id, triage in list_triage(store, project_id, golden.digest, aspect).items():
        if triage.note and (before is None or triage.at <= before):
            found.setdefault(item_id, []).append(f"{triage.verdict}: {triage.note}" if triage.verdict else triage.note)
    if not found:
        return golden
    labels = golden.aspects[aspect]
    reasons = {name: (*labels.reasons.get(name, ()), *found.get(name, ())) for name in {**labels.reasons, **found}}
    return replace(golden, aspects={**golden.aspects, aspect: replace(labels, reasons=reasons)})
