"""The log as people read it, what each entry is about in words, and as a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from textwrap import shorten

from core.project_records import Run
from core.projects.criteria import ProposalDecided
from core.projects.labelling import Adjudicated, LabelPass
from core.projects.misaligned_items import Triage
from core.projects.review import PointDecided, Vote, hidden_votes
from core.projects.roles import requires
from core.spreadsheets import csv_text
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
_NAMED = ("criteria_id", "judge_id", "golden_id", "run_id", "parent_id")
"""What an action may have been asked with, the more telling first."""


def log_lines(store: Store, project_id: str, entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """What was done in each entry, and what it was about ("" where that is gone), in words without ids.

    A vote that nobody may see yet says only that it is in.
    """
    hidden = hidden_votes(store, project_id) if any(isinstance(entry, Vote) for entry in entries) else set()
    passes = {begun.subject: begun for begun in store.events.all(project_id, LabelPass)}
    words = {pass_id: f"labelling pass {_quoted(begun.name)}" for pass_id, begun in passes.items()}
    words |= {each.criteria_id: _criteria_words(each.text, each.aspect) for each in store.criteria.all(project_id)}
    words |= {each.judge_id: f"judge {_quoted(each.name)}" for each in store.judges.all(project_id)}
    words |= {each.run_id: run_words(each) for each in store.runs.all(project_id)}
    goldens = {each.golden_id: f"golden set {_quoted(each.name)}" for each in store.goldens.all(project_id)}
    words |= goldens

    def item(golden_id: str, item_id: str) -> str:
        known = store.goldens.load(golden_id).items if golden_id in goldens else ()
        return next((f"item {_quoted(each.target)}" for each in known if each.item_id == item_id), "")

    def about(entry: Entry) -> str:
        match entry:
            case Vote() | PointDecided():
                return _quoted(entry.title)
            case Triage():
                return item(entry.golden_id, entry.item_id)
            case Adjudicated():
                return item(passes[entry.subject].golden_id, entry.item_id) if entry.subject in passes else ""
            case ProposalDecided():
                return words.get(entry.subject.partition(":")[2], "")
            case Action():  # the thing made, else the thing that it was done to; what is gone by the name it had
                keys = (entry.subject, *(str(entry.about.get(name) or "") for name in _NAMED))
                name = entry.about.get("name")
                named = _quoted(name) if isinstance(name, str) and name else ""
                return next((words[key] for key in keys if key in words), named)
        return words.get(entry.subject, "")

    voted = "voted; shown once all votes are in"
    return [(voted if entry.number in hidden else entry.sentence, about(entry)) for entry in entries]


@requires("admin", reads=True)
def log_csv(store: Store, project_id: str) -> str:
    """The whole log as CSV, one entry a row; no cell can be taken for a formula."""
    rows = []
    for entry in reversed(store.events.page(project_id, limit=10**9).entries):
        at, details = entry.at.isoformat(timespec="seconds"), json.dumps(entry.body, ensure_ascii=False, sort_keys=True)
        rows.append((entry.number, at, entry.actor, entry.role, entry.kind, entry.subject, entry.sentence, details))
    return csv_text(("number", "at", "actor", "role", "kind", "subject", "what", "details"), rows)


def run_words(run: Run) -> str:
    """What a run is, and on what, e.g. "calibration of consistency"."""
    return f"{RUN_WORDS.get(run.kind, run.kind)} of {run.aspect}"


def _criteria_words(text: str, aspect: str) -> str:
    """Criteria by how they begin and what they are for."""
    return f"criteria {_quoted(text)} for {aspect}" if text.strip() else f"no criteria, for {aspect}"


def _quoted(text: str) -> str:
    return f"“{shorten(' '.join(text.split()), _TEXT, placeholder=' …')}”"
