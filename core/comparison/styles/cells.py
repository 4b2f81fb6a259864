"""One cell of a grid: a style's questions put to a language model, its replies read one by one, what they tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten

import numpy as np

from core.comparison.styles.grid import Column, StyleGrid
from core.comparison.styles.records import FORECAST_AT, ForecastPoint, StyleCell, StyleForecast
from core.errors import JudgeError
from core.judging.base import OnProgress
from core.judging.llm import LLMJudge, verdict_of
from core.judging.styles import Style, calls_per_item, sampling_of
from core.progress import SILENT, Progress
from core.providers.base import Completion, OnReply, Provider, Reply, Request
from core.records import Criteria, FloatArray, Item, JudgeScores, Measure, Scored, Task, Unscored, Usage
from core.stats import LabelledItems, align
from core.stats.pilot import pilot_forecast

_LONGEST_NAME = 120


@dataclass(frozen=True)
class Answers:
    """Scores of some items in one style: `samples` (n_items, n_samples), NaN = no verdict; `values` (n_items,) means.

    `replies` are the texts as they came, by item.  `calls` counts the replies asked for, one a sample; `n_unread` those
    among them without a verdict, `n_unweighted` those of a weighted style that came without probabilities.
    """

    values: FloatArray
    samples: FloatArray
    unscored: tuple[Unscored, ...]
    replies: Mapping[str, tuple[str, ...]]
    calls: int
    n_unread: int
    n_unweighted: int
    usage: Usage

    @classmethod
    def joined(cls, batches: Sequence[Answers]) -> Answers:
        """Those of all batches, in their order."""
        return cls(
            np.concatenate([batch.values for batch in batches]),
            np.concatenate([batch.samples for batch in batches]),
            tuple(lost for batch in batches for lost in batch.unscored),
            {item_id: texts for batch in batches for item_id, texts in batch.replies.items()},
            sum(batch.calls for batch in batches),
            sum(batch.n_unread for batch in batches),
            sum(batch.n_unweighted for batch in batches),
            sum((batch.usage for batch in batches), Usage()),
        )


def ask_in_style(
    model: LLMJudge, task: Task, criteria: Criteria, style: Style, items: Sequence[Item], *, progress: Progress = SILENT
) -> Answers:
    """Every sample of `items`; `progress` counts replies.  Nothing is asked about an item without text."""
    judged = [k for k, item in enumerate(items) if item.target.strip()]
    tap = _Tap(model.provider, progress.advance, len(judged) * style.samples)
    judge = LLMJudge(tap, model.model, spec=model.spec, sampling=sampling_of(style))
    matrix = judge.score(task, items, [criteria])
    if len(tap.replies) != tap.expected:
        raise JudgeError(f"{len(tap.replies)} replies came for {len(judged)} items in the style {style.name}.")
    samples, texts = np.full((len(items), style.samples), np.nan), {}
    for n, k in enumerate(judged):
        replies = tap.replies[n * style.samples : (n + 1) * style.samples]
        samples[k] = [_value(items[k], reply, task, style) for reply in replies]
        texts[items[k].item_id] = tuple(reply.text for reply in replies if isinstance(reply, Completion))
    return Answers(
        values=matrix.values[0],
        samples=samples,
        unscored=matrix.unscored.get(criteria.criteria_id, ()),
        replies=texts,
        calls=len(tap.replies),
        n_unread=int(np.isnan(samples[judged]).sum()),
        n_unweighted=judge.n_unweighted,
        usage=matrix.usage,
    )


def _value(item: Item, reply: Reply, task: Task, style: Style) -> float:
    """What a reply says by itself, NaN where it holds no verdict."""
    verdict = verdict_of(item.item_id, [reply], task, weighted=style.weighted)
    return verdict.value if isinstance(verdict, Scored) else np.nan


@dataclass
class _Tap:
    """A provider that keeps the replies that pass, in the order of their requests, and counts them as they come."""

    inner: Provider
    on_progress: OnProgress
    expected: int
    replies: list[Reply] = field(default_factory=list)
    arrived: int = 0

    @property
    def endpoint(self) -> str:
        return self.inner.endpoint

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        def count(index: int, reply: Reply) -> None:
            self.arrived += 1
            self.on_progress(self.arrived, self.expected)
            if on_reply is not None:
                on_reply(index, reply)

        replies = self.inner.complete(requests, on_reply=count)
        self.replies += replies
        return replies

    def close(self) -> None:
        """The connection is the model's."""


# ── what a cell tells ────────────────────────────────────────────────────────────────────────────────────────


def measured(grid: StyleGrid, column: Column, style: Style, answers: Answers, call_cost: float | None) -> StyleCell:
    """The alignment on the reported items, with its interval, and the forecast where samples can differ.

    `call_cost` is the price of one call, None where unknown.
    """
    request, aspect, at = grid.request, column.task.aspect, np.asarray(column.reported)
    items, measure = LabelledItems.of(grid.golden, aspect, at), Measure(request.statistic, column.level)
    here = np.isin(np.asarray(column.positions), at)
    alignment = align(answers.values[here], items, measure, resamples=request.resamples, seed=request.seed)
    forecast = None
    if style.samples > 1 and style.temperature > 0:
        points = pilot_forecast(
            answers.samples[here],
            items,
            measure,
            ns=FORECAST_AT,
            n_items=column.n_labelled,
            seed=request.seed,
            resamples=request.resamples,
        )
        priced = tuple(
            ForecastPoint(p.n, p.alignment, p.interval, p.calls, None if call_cost is None else p.calls * call_cost)
            for p in points
        )
        forecast = StyleForecast(
            request.statistic, column.level, points[0].n_pilot, column.n_labelled, priced, points[0].reason
        )
    return StyleCell(
        aspect=aspect,
        style=style,
        name=style.name,
        criteria_id=column.criteria.criteria_id if column.criteria.text else "",
        alignment=alignment,
        n_asked=len(column.positions),
        n_seen=len(column.positions) - len(column.reported),
        n_replies=answers.calls,
        n_unread=answers.n_unread,
        n_unweighted=answers.n_unweighted,
        calls=answers.calls,
        usage=answers.usage,
        forecast=forecast,
    )


def as_judge(grid: StyleGrid, column: Column, style: Style, answers: Answers, run_id: str) -> JudgeScores:
    """The cell as a judge among judges, over all items of the golden set."""
    request, criteria = grid.request, column.criteria
    values = np.full(len(grid.golden.items), np.nan)
    values[list(column.positions)] = answers.values
    under = f"under criteria {criteria.criteria_id}" if criteria.text else "without criteria"
    pilot = f"; a pilot on {len(column.positions)} items" if request.is_pilot else ""
    parts = [request.judge_spec, style.name, *(["criteria"] * bool(criteria.text)), *(["pilot"] * request.is_pilot)]
    return JudgeScores(
        name=shorten(" · ".join(parts), _LONGEST_NAME, placeholder="…"),
        kind="style",
        aspect=column.task.aspect,
        values=values,
        unscored=answers.unscored,
        seen=column.seen,
        note=f"The judge {request.judge_spec}, {style.name}, {under}{pilot}.",
        run_id=run_id,
        calls_per_item=float(calls_per_item(style)),
    )
