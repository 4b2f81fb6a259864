"""A judge that replays a file of replies or scores: for judges run elsewhere, and for published responses.

It scores by item id, whatever the criteria; it cannot draft.  The file is whatever `core.data.verdict_files` reads,
with `item_id` and either `responses` (replies) or `score` (a number, or empty for unscored), or aliases of these.
Several rows of one item are its samples where a column numbers them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from core.data.verdict_files import Entry, Reply, entries, load_recording, propose_columns
from core.data.verdict_files.columns import OWN_NAMES
from core.data.verdict_files.reading import number_in
from core.data.verdict_files.recording import doubled_rows
from core.errors import GoldenError, JudgeError, UsageError
from core.judging.base import CallEstimate, DraftBatch, DraftRequest, OnProgress, RefineRequest
from core.judging.parse import Reading, read_rating
from core.records import Criteria, Item, Scored, ScoreMatrix, Task, Unscored, Usage, Verdict

_MOST_MB = 4096


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the file holds for one item: replies as they came, or a score (None = unscored)."""

    responses: tuple[Reply, ...] = ()
    score: float | None = None


class RecordedJudge:
    """Replays the file at `path`; made by `from_file`."""

    is_llm = False

    def __init__(self, path: Path, recorded: Mapping[str, Recorded], aliases: Mapping[str, str] | None = None) -> None:
        """`aliases`: part → the column taken for it under another name."""
        self.path = path
        self.recorded = recorded
        self._aliases = aliases or {}

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Reads the whole file.  UsageError names the row that cannot be used."""
        try:
            recording = load_recording(path, max_mb=_MOST_MB)
            columns = propose_columns(recording)
            rows: dict[str, list[Entry]] = {}
            for entry in entries(recording, columns):
                rows.setdefault(entry.item_id, []).append(entry)
        except GoldenError as error:
            raise UsageError(str(error)) from error
        aliases = {OWN_NAMES[role]: columns.roles[role] for role, how in columns.found.items() if how == "alias"}
        return cls(path, {item_id: _recorded(path, claims) for item_id, claims in rows.items()}, aliases)

    @property
    def spec(self) -> str:
        return f"recorded:{self.path}"

    @property
    def notice(self) -> str:
        taken = ", ".join(f"{column} as {role}" for role, column in self._aliases.items())
        taken_as = f" Columns were taken: {taken}." if taken else ""
        return f"Scores are replayed from {self.path.name}; criteria do not change them.{taken_as}"

    def prepare(self, task: Task, items: Sequence[Item]) -> Self:
        """Nothing to learn."""
        return self

    def score(
        self, task: Task, items: Sequence[Item], criteria: Sequence[Criteria], *, on_progress: OnProgress | None = None
    ) -> ScoreMatrix:
        """The recorded scores, the same for every criteria; items the file does not hold are unscored."""
        verdicts = [self._verdict(task, item) for item in items]
        row = np.array([verdict.value if isinstance(verdict, Scored) else np.nan for verdict in verdicts])
        unscored = tuple(verdict for verdict in verdicts if isinstance(verdict, Unscored))
        calls = len(items) * len(criteria)
        if on_progress is not None:
            on_progress(calls, calls)
        return ScoreMatrix(
            criteria_ids=tuple(each.criteria_id for each in criteria),
            item_ids=tuple(item.item_id for item in items),
            values=np.tile(row, (len(criteria), 1)),
            unscored={each.criteria_id: unscored for each in criteria} if unscored else {},
            calls=calls,
            usage=Usage(cached=calls),
        )

    def explain(self, task: Task, items: Sequence[Item], criteria: Criteria) -> list[Verdict]:
        return [self._verdict(task, item) for item in items]

    def draft(self, task: Task, requests: Sequence[DraftRequest]) -> DraftBatch:
        """JudgeError: a recording cannot write criteria."""
        raise self._mute("draft")

    def refine(self, task: Task, requests: Sequence[RefineRequest]) -> DraftBatch:
        """JudgeError: a recording cannot write criteria."""
        raise self._mute("refine")

    def estimate(self, task: Task, items: Sequence[Item], criteria_words: int) -> CallEstimate:
        return CallEstimate(len(items), 0, 0, 0.0)

    def as_state(self) -> Mapping[str, Any]:
        return {"spec": self.spec}

    def close(self) -> None:
        """Nothing to release."""

    def _mute(self, what: str) -> JudgeError:
        return JudgeError(
            f"A recorded judge ({self.path.name}) replays scores and cannot {what} criteria. "
            "Calibrate with offline or openai:MODEL, and use the recording to compare."
        )

    def _verdict(self, task: Task, item: Item) -> Verdict:
        entry = self.recorded.get(item.item_id)
        if entry is None:
            return Unscored(item.item_id, "missing input", f"{self.path.name} holds no row for this item.")
        if not entry.responses:
            return _scored(task, item.item_id, entry.score)
        readings = [_reading(reply, task) for reply in entry.responses]
        raw = tuple(reply.text for reply in entry.responses)
        values = [reading.value for reading in readings if reading.value is not None]
        if not values:
            return Unscored(item.item_id, readings[0].reason or "no verdict", raw=raw)
        return Scored(
            item.item_id,
            sum(values) / len(values),
            explanation=raw[0],
            raw=raw,
            n_read=len(values),
            n_unread=len(readings) - len(values),
        )


def _reading(reply: Reply, task: Task) -> Reading:
    if reply.finish == "error":
        return Reading(None, "provider error")
    return read_rating(reply.text, task.scale, task.aspect, reply.finish)


def _scored(task: Task, item_id: str, score: float | None) -> Verdict:
    if score is None:
        return Unscored(item_id, "no verdict", "The recorded score is empty.")
    if not task.scale.holds(score):
        return Unscored(item_id, "out of range", f"The recorded score {score:g} is outside {task.scale}.")
    return Scored(item_id, score)


def _recorded(path: Path, claims: Sequence[Entry]) -> Recorded:
    """What the rows of one item hold: all its replies, or the mean of its scores."""
    if twice := doubled_rows(claims):
        raise UsageError(f"{path}, row {twice[1]}: item {claims[0].item_id!r} stands there twice.")
    replies = tuple(reply for entry in claims for reply in entry.replies or ())
    if replies:
        return Recorded(replies)
    scored = [entry for entry in claims if entry.has_score]
    if not scored:
        raise UsageError(f"{path}, row {claims[0].row}: expected responses (a list of texts, not empty) or score.")
    values: list[float] = []
    for entry in scored:
        number = number_in(entry.score)
        if isinstance(number, str):
            raise UsageError(f"{path}, row {entry.row}: the score must be a number or empty: {number}.")
        values += [] if number is None else [number]
    return Recorded(score=sum(values) / len(values) if values else None)
