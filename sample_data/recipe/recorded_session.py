"""A calibration whose every reply was written beforehand: kept as a table, expanded into a recorded session.

`sample_data/recorded/` holds what a large language model wrote: `ratings.tsv` (one row an item: its rating without
criteria and under each set of criteria it was asked with, and the reason) and `criteria.json` (the texts of the twelve
drafts, D01 …, and of the eight refinements, R01 …, in the order in which they are asked for).  `record` runs the
calibration over a provider that answers from these, and keeps each reply by the key of its request, as
`core.providers.cached` reads it.  When a prompt changes, so do the keys: record again.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.calibration.calibration_records import Calibration, CalibrationSettings
from core.calibration.loop import calibrate
from core.data import load_golden
from core.data.split import task_of
from core.errors import ProviderError
from core.judging.llm_judge import LLMJudge
from core.judging.scoring_styles import score_messages
from core.providers.cached import reply_to_json, write_recording
from core.providers.completions import Completion, OnReply, Reply, Request
from core.providers.scripted import ScriptedProvider
from core.records import GoldenSet, Task, Usage

SAMPLES = Path(__file__).parents[1]
FOLDER = SAMPLES / "recorded"
GOLDEN = SAMPLES / "summaries.jsonl"
SESSION = "consistency_session.jsonl"
"""The recorded session: `recorded:sample_data/recorded/consistency_session.jsonl` is its judge."""
REPLIES = "consistency_replies.jsonl"
"""The replies without criteria, as any judge's replies come in a file: to be brought in on Compare."""
MODEL, ENDPOINT = "recorded-llm", "a recording in sample_data"
PACE = 25.0
"""Replies a second at which the session is replayed, so that people can watch it."""

ASPECT = "consistency"
DEFINITION = "Every statement of the text is supported by its source."
CHOSEN = CalibrationSettings(preset="quick", rounds=1, keep=2, ensemble=3)
"""Settings of the recorded calibration; others ask for replies that were never written."""
_BARE = "none"


@dataclass(frozen=True)
class WrittenReplies:
    """`criteria`: name → text, in the order of the requests; `ratings`: (name or "none", item id) → rating as text."""

    criteria: Mapping[str, str]
    ratings: Mapping[tuple[str, str], str]
    reasons: Mapping[str, str]

    def reply(self, name: str, item_id: str) -> str | None:
        """The judge's reply in the form that the prompt asks for; None where no rating was written."""
        rating = self.ratings.get((name, item_id))
        return None if rating is None else f"Score: {rating}\n{self.reasons[item_id]}"


def read_written(folder: Path = FOLDER) -> WrittenReplies:
    """The table and the texts in `folder`."""
    criteria = json.loads((folder / "criteria.json").read_text("utf-8"))
    with (folder / "ratings.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return WrittenReplies(
        criteria,
        {(name, row["item_id"]): row[name] for row in rows for name in (_BARE, *criteria) if row[name]},
        {row["item_id"]: row["reason"] for row in rows},
    )


class Script(ScriptedProvider):
    """Answers each request with what `written` holds for it; `kept` is key → stored reply of all that were asked."""

    def __init__(self, written: WrittenReplies, golden: GoldenSet, task: Task) -> None:
        super().__init__(answer=self._reply)
        self.missing: list[str] = []
        named = {_BARE: "", **written.criteria}
        pairs = ((name, text, item) for name, text in named.items() for item in golden.items)
        self.ratings = {score_messages(task, item, text): (name, item.item_id) for name, text, item in pairs}
        self.written, self.criteria, self.kept = written, iter(written.criteria.values()), dict[str, str]()

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """ProviderError names everything asked here that nobody has written."""
        replies = super().complete(requests, on_reply=on_reply)
        if self.missing:
            raise ProviderError(f"{len(self.missing)} replies are not written: {', '.join(self.missing)}.")
        return replies

    def _reply(self, request: Request) -> Completion:
        pair = self.ratings.get(request.messages)
        text = self.written.reply(*pair) if pair else next(self.criteria, None)
        if text is None:
            self.missing.append("/".join(pair) if pair else f"criteria: {request.messages[-1].content}")
        reply = Completion(text or "", "stop", Usage(requests=1))
        self.kept[request.key(ENDPOINT)] = reply_to_json(reply)
        return reply


def record(folder: Path = FOLDER, out: Path | None = None) -> Calibration:
    """Expand what is written into `SESSION` and `REPLIES` in `out` (default: `folder`); the calibration it gives."""
    golden, written = load_golden(GOLDEN), read_written(folder)
    task = task_of(golden, ASPECT, DEFINITION)
    script = Script(written, golden, task)
    judge = LLMJudge(script, MODEL, spec="recorded")
    result = calibrate(golden, task, judge, CHOSEN)
    into = out or folder
    write_recording(into / SESSION, ENDPOINT, MODEL, script.kept.items(), pace=PACE)
    with (into / REPLIES).open("w", encoding="utf-8") as file:
        for item in golden.items:
            row = {"item_id": item.item_id, "responses": [written.reply(_BARE, item.item_id)]}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return result
