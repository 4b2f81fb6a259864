"""The log as people read it: what an entry is about in words, and who started a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from textwrap import shorten

from core.errors import ConcordError
from core.project_records import Run
from core.projects.criteria import CriteriaEvent, ProposalDecided
from core.projects.fusion import FusionKept
from core.projects.fusion_by_model import FusionPlanSaved
from core.projects.labelling import Adjudicated, LabelPass, PassEntry
from core.projects.review import PointDecided, Vote, hidden_votes
from core.projects.runs import HeldOutAccess
from core.projects.triage import Triage
from core.records import Criteria
from core.store.log import Action, Entry
from core.store.store import Store

_TEXT = 60
RUN_WORDS: Mapping[str, str] = {
    "calibration": "calibration",
    "rescore": "scoring of an edit",
    "round": "refinement round",
    "styles": "judging styles",
    "ablation": "ablation",
    "metrics": "metrics",
    "repeval": "RepEval",
    "fusion": "fusion by a model",
    "recheck": "drift check",
    "version": "judge version",
}
"""Kind of run → what people call it."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """An entry with what was done and what it is `about`, in words; "" where what it was about is gone."""

    entry: Entry
    did: str
    about: str


def log_lines(store: Store, project_id: str, entries: Sequence[Entry]) -> list[LogLine]:
    """The entries in words, no ids in them; a vote that nobody may see yet says only that it is in."""
    known = _Known(store, project_id)
    return [LogLine(entry, known.did(entry), known.about(entry)) for entry in entries]


def run_words(run: Run) -> str:
    """What a run is, and on what, e.g. "calibration of consistency"."""
    return f"{RUN_WORDS.get(run.kind, run.kind)} of {run.aspect}"


@dataclass(frozen=True, slots=True)
class Participant:
    """Somebody who did something in a project: the `role` in which they did last ("" for labels alone), and how much.

    `n_labels` counts every label that they gave, also those that they gave anew later.
    """

    name: str
    role: str
    n_actions: int
    n_labels: int
    last_at: datetime


def list_participants(store: Store, project_id: str) -> list[Participant]:
    """Everybody who labelled or did something in the project, in the order of the alphabet."""
    acted = {entry.actor: entry for entry in store.events.by_actor(project_id)}
    labelled = store.labels.by_rater(project_id)
    listed = []
    for name in {*acted, *labelled}:
        did, (n_labels, labelled_at) = acted.get(name), labelled.get(name, (0, None))
        moments = [at for at in (labelled_at, did.last_at if did else None) if at is not None]
        role, n_actions = (did.role, did.n_actions) if did else ("", 0)
        listed.append(Participant(name, role, n_actions, n_labels, max(moments)))
    return sorted(listed, key=lambda person: (person.name.casefold(), person.name))


def criteria_words(criteria: Criteria) -> str:
    """Criteria by how they begin and what they are for."""
    if not criteria.text.strip():
        return f"no criteria, for {criteria.aspect}"
    return f"criteria {_quoted(criteria.text)} for {criteria.aspect}"


def _quoted(text: str) -> str:
    return f"“{shorten(' '.join(text.split()), _TEXT, placeholder=' …')}”"


class _Known:
    """What the entries of one page of the log are about, each thing read once."""

    def __init__(self, store: Store, project_id: str) -> None:
        self._store, self._project_id = store, project_id
        self._criteria: dict[str, str] = {}

    @cached_property
    def _goldens(self) -> dict[str, str]:
        return {golden.golden_id: golden.name for golden in self._store.goldens.all(self._project_id)}

    @cached_property
    def _runs(self) -> dict[str, Run]:
        return {run.run_id: run for run in self._store.runs.all(self._project_id)}

    @cached_property
    def _judges(self) -> dict[str, str]:
        return {entry.judge_id: entry.name for entry in self._store.judges.all(self._project_id)}

    @cached_property
    def _hidden(self) -> set[int]:
        return hidden_votes(self._store, self._project_id)

    @cached_property
    def _passes(self) -> dict[str, LabelPass]:
        return {begun.subject: begun for begun in self._store.events.all(self._project_id, LabelPass)}

    def did(self, entry: Entry) -> str:
        if isinstance(entry, Vote) and entry.number in self._hidden:
            return "voted; shown once all votes are in"
        return entry.sentence

    def about(self, entry: Entry) -> str:
        match entry:
            case Vote() | PointDecided():
                return _quoted(entry.title)
            case Triage():
                return self._item(entry.golden_id, entry.item_id)
            case Adjudicated():
                begun = self._passes.get(entry.subject)
                return self._item(begun.golden_id, entry.item_id) if begun is not None else ""
            case PassEntry():
                begun = self._passes.get(entry.subject)
                return f"labelling pass {_quoted(begun.name)}" if begun is not None else ""
            case ProposalDecided():
                return self._of_id(entry.subject.partition(":")[2])
            case CriteriaEvent():
                return self._of_id(entry.subject)
            case HeldOutAccess() | FusionPlanSaved():
                return self._golden(entry.subject)
            case FusionKept():
                return self._of_id(entry.subject)
            case Action():
                return self._action(entry)
        return self._of_id(entry.subject)

    def _action(self, entry: Action) -> str:
        """The thing made, else the thing that it was done to; what is gone by the name it had."""
        for key in (entry.subject, *(str(entry.about.get(name) or "") for name in _NAMED)):
            if words := self._of_id(key):
                return words
        return _quoted(name) if isinstance(name := entry.about.get("name"), str) and name else ""

    def _of_id(self, key: str) -> str:
        """Whatever has this id."""
        readers: tuple[Callable[[str], str], ...] = (self._golden, self._run, self._judge, self._of_criteria)
        return next((words for reader in readers if key and (words := reader(key))), "")

    def _golden(self, key: str) -> str:
        return f"golden set {_quoted(self._goldens[key])}" if key in self._goldens else ""

    def _run(self, key: str) -> str:
        return run_words(self._runs[key]) if key in self._runs else ""

    def _judge(self, key: str) -> str:
        return f"judge {_quoted(self._judges[key])}" if key in self._judges else ""

    def _of_criteria(self, key: str) -> str:
        if key not in self._criteria:
            try:
                self._criteria[key] = criteria_words(self._store.criteria.get(self._project_id, key).criteria)
            except ConcordError:
                self._criteria[key] = ""
        return self._criteria[key]

    def _item(self, golden_id: str, item_id: str) -> str:
        if golden_id not in self._goldens:
            return ""
        golden = self._store.goldens.load(golden_id)
        place = golden.item_ids.index(item_id) if item_id in golden.item_ids else None
        return "" if place is None else f"item {_quoted(golden.items[place].target)}"


_NAMED = ("criteria_id", "judge_id", "golden_id", "run_id", "parent_id")
"""What an action may have been asked with, the more telling first."""
