"""A run whose judge is asked by batch: while it waits it holds no place at a worker, and is called again when due."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn, Protocol, TypeVar

from core.errors import CallAgainError
from core.judging.by_batch import BatchAsker, BatchNotes
from core.providers.base import RunAnswers

T = TypeVar("T")
BATCHES = "batches"


@dataclass(frozen=True)
class BatchSteps:
    """The batches of a run, by what was asked in each step."""

    steps: Mapping[str, BatchNotes] = field(default_factory=dict)


class Keeping(Protocol):
    """What a run keeps (`core.projects.runs.RunWork`)."""

    def kept(self, name: str, kind: type[T]) -> T | None: ...
    def keep(self, name: str, document: object) -> None: ...


@dataclass(frozen=True)
class _RunNotes:
    work: Keeping
    name: str

    def load(self) -> BatchNotes | None:
        return (self.work.kept(BATCHES, BatchSteps) or BatchSteps()).steps.get(self.name)

    def save(self, notes: BatchNotes) -> None:
        steps = self.work.kept(BATCHES, BatchSteps) or BatchSteps()
        self.work.keep(BATCHES, replace(steps, steps={**steps.steps, self.name: notes}))


def batches_of(work: Keeping, replies: RunAnswers) -> BatchAsker:
    """Asks by batch for the run; CallAgainError while a batch is under way."""
    return BatchAsker(replies, lambda name: _RunNotes(work, name), _call_again)


def _call_again(done: int, of: int, seconds: float) -> NoReturn:
    raise CallAgainError(f"waiting for a batch, {done:,} of {of:,} done", seconds=seconds)
