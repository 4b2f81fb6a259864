"""A judge that replays a file of replies or scores: for judges run elsewhere, and for published responses.

It scores by item id, whatever the criteria; it cannot draft.  The file is whatever `core.data.reply_files` reads,
with `item_id` and either `responses` (replies) or `score` (a number, or empty for unscored), or aliases of these.
Several rows of one item are its samples where a column numbers them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from core.data.reply_files import (
    OWN_NAMES,
    RecordedRow,
    Use,
    entries,
    load_recording,
    number_in,
    propose_columns,
    readings_of,
    verdict_of,
    words_of,
)
from core.errors import GoldenError, JudgeError, UsageError
from core.judging.judge_protocol import DraftBatch, DraftRequest, Judge, OnProgress
from core.judging.parse import read_rating
from core.judging.reply_verdicts import NO_TEXT, has_texts
from core.records import Criteria, Item, Task, Unscored, Usage, Verdict
from core.verdicts import Scores

_MOST_MB = 4096


class RecordedJudge(Judge):
    """Replays the file at `path`; made by `from_file`."""

    is_llm = False

    def __init__(
        self, path: Path, recorded: Mapping[str, Sequence[RecordedRow]], aliases: Mapping[str, str] | None = None
    ) -> None:
        """`recorded`: item id → its rows; `aliases`: part → the column taken for it under another name."""
        self.path = path
        self.recorded = recorded
        self._aliases = aliases or {}

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Reads the whole file.  UsageError names the row that cannot be used."""
        try:
            recording = load_recording(path, max_mb=_MOST_MB)
            columns = propose_columns(recording)
            rows: dict[str, list[RecordedRow]] = {}
            for entry in entries(recording, columns, once=True):
                rows.setdefault(entry.item_id, []).append(entry)
        except GoldenError as error:
            raise UsageError(str(error)) from error
        aliases = {OWN_NAMES[role]: columns.roles[role] for role, how in columns.found.items() if how == "alias"}
        for claims in rows.values():
            if any(entry.replies for entry in claims):
                continue
            if not any(entry.has_score for entry in claims):
                raise UsageError(f"{path}, row {claims[0].row}: expected responses (a list of texts) or score.")
            for entry in claims:
                if isinstance(problem := number_in(entry.score), str):
                    raise UsageError(f"{path}, row {entry.row}: the score must be a number or empty: {problem}.")
        return cls(path, rows, aliases)

    @property
    def spec(self) -> str:
        return f"recorded:{self.path}"

    @property
    def notice(self) -> str:
        taken = ", ".join(f"{column} as {role}" for role, column in self._aliases.items())
        taken_as = f" Columns were taken: {taken}." if taken else ""
        return f"Scores are replayed from {self.path.name}; criteria do not change them.{taken_as}"

    def score(
        self,
        task: Task,
        items: Sequence[Item],
        criteria: Sequence[Criteria],
        *,
        explain: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Scores:
        """The recorded scores, the same whatever the criteria; items the file does not hold are unscored."""
        verdicts = [self._verdict(task, item) for item in items]
        calls = len(items) * len(criteria)
        if on_progress is not None:
            on_progress(calls, calls)
        return Scores.of(items, criteria, [verdicts] * len(criteria), Usage(cached=calls), explain=explain)

    def draft(self, task: Task, requests: Sequence[DraftRequest]) -> DraftBatch:
        """JudgeError: a recording cannot write criteria."""
        raise JudgeError(
            f"A recorded judge ({self.path.name}) replays scores and cannot write criteria. "
            "Calibrate with offline or openai:MODEL, and use the recording to compare."
        )

    def _verdict(self, task: Task, item: Item) -> Verdict:
        """What the rows of an item come to: the mean of all its replies that can be read, or of its scores."""
        if not has_texts(task, item):
            return Unscored(item.item_id, "missing input", NO_TEXT)
        rows = self.recorded.get(item.item_id)
        if rows is None:
            return Unscored(item.item_id, "missing input", f"{self.path.name} holds no row for this item.")
        use: Use = "replies" if any(entry.replies for entry in rows) else "scores"
        answered = [entry for entry in rows if (entry.replies if use == "replies" else entry.has_score)]
        read = [readings_of(entry, use, task.scale, task.aspect, read_rating) for entry in answered]
        return verdict_of(answered, [reading for found in read for reading, _ in found], words_of(answered, use))
