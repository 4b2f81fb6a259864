"""A judge that replays a file of replies or scores: for judges run elsewhere, and for published responses.

It scores by item id, whatever the criteria; it cannot draft.  The file is JSONL (plain or .gz) or CSV with `item_id`
and either `responses` (a list of replies, JSONL only) or `score` (a number, or empty for unscored).
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from core.errors import JudgeError, UsageError
from core.judging.base import CallEstimate, DraftBatch, DraftRequest, OnProgress, RefineRequest
from core.judging.parse import read_rating
from core.records import Criteria, Item, Scored, ScoreMatrix, Task, Unscored, Usage, Verdict


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the file holds for one item: replies as they came, or a score (None = unscored)."""

    responses: tuple[str, ...] = ()
    score: float | None = None


class RecordedJudge:
    """Replays the file at `path`; made by `from_file`."""

    is_llm = False

    def __init__(self, path: Path, recorded: Mapping[str, Recorded]) -> None:
        self.path = path
        self.recorded = recorded

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Reads the whole file.  UsageError names the line that cannot be used."""
        recorded: dict[str, Recorded] = {}
        for number, row in _rows(path):
            recorded[_item_id(path, number, row, recorded)] = _entry(path, number, row)
        if not recorded:
            raise UsageError(f"{path} holds no rows. Expected item_id with responses or score.")
        return cls(path, recorded)

    @property
    def spec(self) -> str:
        return f"recorded:{self.path}"

    @property
    def notice(self) -> str:
        return f"Scores are replayed from {self.path.name}; criteria do not change them."

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
            criteria_ids=tuple(one.criteria_id for one in criteria),
            item_ids=tuple(item.item_id for item in items),
            values=np.tile(row, (len(criteria), 1)),
            unscored={one.criteria_id: unscored for one in criteria} if unscored else {},
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
        readings = [read_rating(reply, task.scale, task.aspect) for reply in entry.responses]
        values = [reading.value for reading in readings if reading.value is not None]
        if not values:
            return Unscored(item.item_id, readings[0].reason or "no verdict", raw=entry.responses)
        return Scored(
            item.item_id,
            sum(values) / len(values),
            explanation=entry.responses[0],
            raw=entry.responses,
            n_read=len(values),
            n_unread=len(readings) - len(values),
        )


def _scored(task: Task, item_id: str, score: float | None) -> Verdict:
    if score is None:
        return Unscored(item_id, "no verdict", "The recorded score is empty.")
    if not task.scale.holds(score):
        return Unscored(item_id, "out of range", f"The recorded score {score:g} is outside {task.scale}.")
    return Scored(item_id, score)


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(line number, row) of a JSONL or CSV file."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if ".csv" in path.suffixes:
        yield from enumerate(csv.DictReader(io.StringIO(text)), 2)
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError as error:
                raise UsageError(f"{path}, line {number}: not JSON: {error}") from error
            if not isinstance(row, dict):
                raise UsageError(f"{path}, line {number}: expected a JSON object, not {type(row).__name__}.")
            yield number, row


def _item_id(path: Path, number: int, row: Mapping[str, Any], seen: Mapping[str, Recorded]) -> str:
    item_id = row.get("item_id")
    if item_id is None or item_id == "":
        raise UsageError(f"{path}, line {number}: there is no item_id.")
    if str(item_id) in seen:
        raise UsageError(f"{path}, line {number}: item {item_id!r} stands there twice.")
    return str(item_id)


def _entry(path: Path, number: int, row: Mapping[str, Any]) -> Recorded:
    responses = row.get("responses")
    if isinstance(responses, list) and responses and all(isinstance(reply, str) for reply in responses):
        return Recorded(tuple(responses))
    if "score" in row:
        score = row["score"]
        if score is None or score == "":
            return Recorded()
        try:
            value = float(score)
        except (TypeError, ValueError):
            value = math.nan
        if math.isfinite(value):
            return Recorded(score=value)
        raise UsageError(f"{path}, line {number}: the score must be a number or empty, not {score!r}.")
    raise UsageError(f"{path}, line {number}: expected responses (a list of texts, not empty) or score.")
