"""Baseline metrics as a durable run: one step per batch of items and metric, each entered as a judge at the end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.errors import ConcordError, JobError
from core.fusion.assistants import Assistant, AssistantScores, kept, make_assistant, unusable
from core.jobs.documents import RESULT
from core.jobs.journal import Journal
from core.jobs.tasks.convert import request_of
from core.jobs.views.metrics import MetricsRequest, MetricsView
from core.records import FloatArray, JudgeScores, Unscored, Usage, content_digest
from core.settings import Settings
from core.store.codec import Packed, pack, unpack
from core.store.rows import Progress, RunRow
from core.store.store import Store

BATCH = 400
"""Items of a step: a killed worker loses at most these, and a model is loaded once for so many."""


@dataclass(frozen=True, slots=True)
class MetricStep:
    """Score the items `start` … `stop` with the assistant `name`."""

    name: str
    start: int
    stop: int


@dataclass(frozen=True)
class MetricPart:
    """What came out of a step: `values` (n,) with NaN = unscored; `problem` says why there is nothing at all."""

    values: FloatArray
    unscored: tuple[Unscored, ...] = ()
    note: str = ""
    problem: str = ""


class MetricsProgram:
    """Scores batch by batch; a metric that fails is left out with its reason, and the others go on."""

    def __init__(self, store: Store, settings: Settings, run: RunRow) -> None:
        request = request_of(run)
        assert isinstance(request, MetricsRequest)
        self.store, self.run, self._request = store, run, request
        self._golden = store.goldens.load(request.golden_id)
        self._assistants = {
            name: kept(make_assistant(name, golden=self._golden, aspect=request.aspect), settings.home)
            for name in request.names
        }
        self._scores: dict[str, AssistantScores] = {}

    def steps(self) -> Generator[Any, Any, MetricsView]:
        """Left out are metrics whose needs no item meets, that fail, or that give nothing or one number throughout."""
        left_out: dict[str, str] = {}
        n_items, done = len(self._golden.items), 0
        expected = n_items * len(self._assistants)
        for name, assistant in self._assistants.items():
            if reason := assistant.missing(self._golden):
                left_out[name] = reason
            else:
                scored = yield from self._score(name, done, expected)
                if isinstance(scored, str):
                    left_out[name] = scored
                else:
                    self._scores[name] = scored
            done += n_items
        yield Progress("done", "done", expected, expected, Usage())
        return MetricsView(left_out=left_out)

    def question(self, step: MetricStep | Progress) -> str:
        if isinstance(step, Progress):
            return ""
        return content_digest("step", [step.name, step.start, step.stop])

    def work(self, step: MetricStep, on_progress: Callable[[int, int], None]) -> Packed:
        items = self._golden.items[step.start : step.stop]
        watch = _Watch(on_progress)
        try:
            scores = self._assistants[step.name].score(items, watch)
        except Exception as error:  # one metric must not end the others; its reason is told
            if watch.interrupted or isinstance(error, JobError):
                raise
            return pack(MetricPart(np.full(len(items), np.nan), problem=_reason(error)))
        if scores.values.shape != (len(items),):
            told = f"it returned numbers of shape {scores.values.shape} for {len(items)} items"
            return pack(MetricPart(np.full(len(items), np.nan), problem=told))
        return pack(MetricPart(scores.values, scores.unscored, scores.note))

    def read(self, step: MetricStep, stored: Packed) -> MetricPart:
        return unpack(MetricPart, stored)

    def keep(self, step: MetricStep, answer: MetricPart) -> None:
        """Nothing but the answer: judges are entered when all their items are scored."""

    def note(self, snapshot: Progress, journal: Journal) -> None:
        journal.note(snapshot, lambda: Packed("{}"))

    def finish(self, result: MetricsView) -> str:
        """Enter a judge for each metric that served, on each aspect, and store what was left out."""
        entered = {}
        for name, scores in self._scores.items():
            for aspect in self._aspects_of(name):
                judge = judge_of(self._assistants[name], scores, aspect)
                judge_id = self.store.judges.add(self.run.project_id, self.run.golden_id, judge)
                if aspect == self._request.aspect:
                    entered[name] = judge_id
        view = MetricsView(entered, result.left_out, self._aspects())
        self.store.results.put_document(self.run.run_id, RESULT, pack(view))
        return "done"

    def close(self) -> None:
        """Nothing to release."""

    def _score(self, name: str, done: int, expected: int) -> Generator[Any, Any, AssistantScores | str]:
        """The metric's scores over all items, or the reason why they cannot serve."""
        n_items, parts = len(self._golden.items), []
        for start in range(0, n_items, BATCH):
            yield Progress("metrics", name, done + start, expected, Usage())
            part: MetricPart = yield MetricStep(name, start, min(start + BATCH, n_items))
            if part.problem:
                return part.problem
            parts.append(part)
        scores = _joined(parts)
        return unusable(scores) or scores

    def _aspects(self) -> tuple[str, ...]:
        if not self._request.every_aspect:
            return (self._request.aspect,)
        labelled = (name for name, labels in self._golden.aspects.items() if labels.n_labelled)
        return tuple(dict.fromkeys((self._request.aspect, *labelled)))

    def _aspects_of(self, name: str) -> tuple[str, ...]:
        """UniEval asks about the one aspect; every other metric knows none."""
        asks = name.removeprefix("hf:").startswith("unieval:")
        return (self._request.aspect,) if asks else self._aspects()


def judge_of(assistant: Assistant, scores: AssistantScores, aspect: str) -> JudgeScores:
    """The metric as a judge of `aspect`.

    It names no run: the same metric computed again is the same judge.
    """
    return JudgeScores(
        name=assistant.name,
        kind="metric",
        aspect=aspect,
        values=scores.values,
        unscored=scores.unscored,
        on_scale=False,
        higher_is_better=assistant.higher_is_better,
        note=f"{assistant.measures} {scores.note}".strip(),
        calls_per_item=0.0,
    )


class _Watch:
    """Progress, and whether an error came from the run (cancelled, say) and not from the metric."""

    def __init__(self, on_progress: Callable[[int, int], None]) -> None:
        self._on_progress = on_progress
        self.interrupted = False

    def __call__(self, done: int, asked: int) -> None:
        try:
            self._on_progress(done, asked)
        except BaseException:
            self.interrupted = True
            raise


def _reason(error: Exception) -> str:
    if isinstance(error, ConcordError):
        return str(error)
    said = " ".join(str(error).split())[:200]
    return f"it failed: {type(error).__name__}{': ' + said if said else ''}"


def _joined(parts: Sequence[MetricPart]) -> AssistantScores:
    notes = dict.fromkeys(part.note for part in parts if part.note)
    return AssistantScores(
        np.concatenate([part.values for part in parts]),
        tuple(one for part in parts for one in part.unscored),
        " ".join(notes),
    )
