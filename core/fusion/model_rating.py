"""Fusion by a language model, which rates each item on one aspect, given the scores of other judges (assistants).

The prompt follows Fusion-Eval: task, criteria, assistants, plan, how to weigh assistants, the item with its scores, and
the form of the reply. A *plan* says in free text which assistants to use and how. The plan is written by a person or
the model, or made from the measured agreement of the assistants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from core.errors import JudgeError, UsageError
from core.fusion.fusion_settings import LONGEST_CRITERIA, LONGEST_PLAN, FusionEstimate, FusionSettings
from core.fusion.stack import Agreement, beats_chance
from core.judging.llm_judge import LLMJudge, total_usage, verdict_of
from core.judging.parse import without_thoughts
from core.judging.scoring_styles import SCORING, filled, item_block, neutral, shown_item, task_values
from core.progress import SILENT, Progress, Stage
from core.providers.completions import Failure, Message, Reply, Request
from core.records import FloatArray, GoldenSet, Item, JudgeScores, Task, Usage, is_blank
from core.verdicts import Verdicts

NONE = "none"
"""Used instead of a plan or criteria: the model rates without them."""
RATE_PROMPT = "fusion_rate.v2"
REPLY_TOKENS, WRITTEN_TOKENS = 320, 1_500
CHARACTERS_PER_TOKEN = 4
BATCH = 40
PLAN_STREAM = 5
"""Random stream that chooses assistants for a measured plan; nothing that is reported draws from it."""


@dataclass(frozen=True)
class FusionJudge:
    """What a model needs to rate items.

    Attributes:
        parts: Scores of the assistants on all items.
        plan: How to use the assistants; if "", the model writes it first.
        criteria: If "", the model writes them first.
        introduced: Description of the assistants for the prompt; if "", it is made from their scores.
    """

    task: Task
    parts: tuple[JudgeScores, ...]
    plan: str = ""
    criteria: str = ""
    introduced: str = ""

    @property
    def to_write(self) -> tuple[str, ...]:
        """Names of the texts that the model must write before it can rate items."""
        return tuple(name for name in ("criteria", "plan") if not getattr(self, name))

    @cached_property
    def assistants(self) -> str:
        """One line per part of the fusion: name, meaning, range and direction.

        Raises UsageError if a part has no score.
        """
        lines = []
        for part in self.parts if not self.introduced else ():
            known = part.values[~np.isnan(part.values)]
            if not known.size:
                raise UsageError(f"{part.name} has no scores, so it can't be part of the fusion.")
            better = "higher is better" if part.higher_is_better else "lower is better"
            note = _line(part.note) or "A number from elsewhere."
            lines.append(f"- {_line(part.name)}: {note} Range: {known.min():.3g} to {known.max():.3g}; {better}.")
        return self.introduced or "\n".join(lines)

    def prompt(self, name: str, values: Mapping[str, str]) -> tuple[Message, ...]:
        """Fill in the prompt file `name` for this task; `values` are the parts that differ between items."""
        own = {"assistants": self.assistants}
        for key, text in (("plan", self.plan), ("criteria", self.criteria)):
            own[key] = "" if is_none(text) else neutral(text)
        return (Message("user", filled(name, {**task_values(self.task), **own, **values})),)

    def request(self, model: str, item: Item, position: int) -> Request:
        """Return a request for `model` to rate the item at `position`. It quotes each part's score for the item."""
        given = ((part.name, part.values[position]) for part in self.parts)
        lines = [
            f"- {_line(name)}: {format(value, '.4g') if np.isfinite(value) else 'no number for this item'}"
            for name, value in given
        ]
        shown = item_block(self.task.kind, shown_item(item, references=False), SCORING)
        messages = self.prompt(RATE_PROMPT, {"item": shown, "numbers": "\n".join(lines)})
        return Request(model, messages, 0.0, REPLY_TOKENS)

    def affordable(self, items: Sequence[Item], positions: Sequence[int], budget: int | None) -> list[int]:
        """Return the positions of items with a text to rate, as many as `budget` allows.

        The calls that write criteria and plan are subtracted from `budget` first. A `budget` of None means no limit.
        """
        rateable = [k for k in positions if not is_blank(items[k].target)]
        return rateable if budget is None else rateable[: max(budget - len(self.to_write), 0)]

    def state(self, judge_state: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a judge file stores so that more items can be rated in the same way.

        `judge_state` is the stored state of the model.
        """
        return {
            "method": "llm",
            "parts": [part.name for part in self.parts],
            "judge": dict(judge_state),
            "prompt": RATE_PROMPT,
            "plan": self.plan,
            "introduced": self.assistants,
            "criteria": self.criteria,
        }


def is_none(text: str) -> bool:
    """Return whether the text of a plan or criteria is the word "none"."""
    return text.strip().casefold() == NONE


def _line(text: str) -> str:
    """Put `text` on one line of a prompt."""
    return " ".join(neutral(text).split())


def measured_plan(
    golden: GoldenSet, aspect: str, parts: Sequence[JudgeScores], positions: Sequence[int], settings: FusionSettings
) -> str:
    """Write a plan without calling a model: trust the assistants whose agreement is beyond chance, best first.

    Agreement is measured on the labelled items at `positions`, whose labels no assistant has seen. System level is
    replaced by dataset level, because a dozen systems are too few to choose assistants by.
    """
    level = "dataset" if settings.level == "system" else settings.level
    agreement = Agreement(golden, aspect, replace(settings, level=level))
    at = np.asarray(positions, dtype=np.intp)
    at = at[~np.isnan(golden.labels(aspect)[at])]
    aligned = agreement.align(np.array([part.upward for part in parts]), at, stream=PLAN_STREAM)
    better = [(part.name, found) for part, found in zip(parts, aligned, strict=True) if beats_chance(found)]
    better.sort(key=lambda pair: -(pair[1].value or 0.0))
    if not better:
        return "No assistant agrees with raters beyond chance here. Judge from the item alone."
    best, values = better[0][1], "\n".join(f"- {name} {alignment.value:.2f}" for name, alignment in better)
    return (
        f"Agreement with raters on {best.n} other items ({best.statistic}, {best.level} level), best first:\n"
        f"{values}\nTrust them in that order, and the item before any of them. Ignore other assistants."
    )


@dataclass(frozen=True)
class ModelRatings:
    """The verdicts of a model, and what they cost.

    Attributes:
        judge: What the model was given, with the final plan and criteria.
        positions: Positions of the rated items, in the order of `verdicts`.
        calls: Number of calls, including those that wrote the criteria and plan.
        usage: Number of requests sent, and their cost.
        n_left: Number of items not rated because the budget was spent.
    """

    judge: FusionJudge
    positions: tuple[int, ...]
    verdicts: Verdicts
    calls: int
    usage: Usage
    n_left: int

    def values(self, n_items: int) -> FloatArray:
        """Return scores (n_items,), NaN for each item that is unscored or was not requested."""
        values = np.full(n_items, np.nan)
        values[list(self.positions)] = self.verdicts.values
        return values

    @property
    def unread(self) -> dict[str, int]:
        """Count missing verdicts by reason."""
        return dict(Counter(verdict.reason for verdict in self.verdicts.unscored))


def rate_by_model(
    model: LLMJudge,
    items: Sequence[Item],
    judge: FusionJudge,
    positions: Sequence[int],
    settings: FusionSettings,
    *,
    progress: Progress = SILENT,
) -> ModelRatings:
    """Let `model` rate the items at `positions`. If the criteria or the plan are missing, the model writes them first.

    Items without a text cost no call.

    Raises:
        JudgeError: The model doesn't write criteria or a plan.
    """
    rated, usage, calls = judge.affordable(items, positions, settings.budget), Usage(), 0
    total = len(judge.to_write) + len(rated)

    def ask(phase: str, message: str, requests: Sequence[Request]) -> list[Reply]:
        nonlocal usage, calls
        progress.publish(Stage(phase, message, calls, total, usage))
        arrived = count(1)
        replies = model.provider.complete(
            requests, on_reply=lambda _index, _reply: progress.advance(next(arrived), len(requests))
        )
        usage, calls = usage + total_usage(replies), calls + len(requests)
        return replies

    def write(what: str, most: int) -> str:
        request = Request(model.model, judge.prompt(f"fusion_{what}.v2", {}), 0.0, WRITTEN_TOKENS)
        (reply,) = ask(what, f"the model writes the {what}", [request])
        said, fault = ("", reply.message) if isinstance(reply, Failure) else (reply.text, reply.finish)
        text = without_thoughts(said).strip()[:most]
        if not text or fault == "refusal":
            raise JudgeError(
                f"The model didn't write the {what} ({fault}). Write the {what} yourself, or use another model."
            )
        return text

    if not judge.criteria:
        judge = replace(judge, criteria=write("criteria", LONGEST_CRITERIA))
    if not judge.plan:
        judge = replace(judge, plan=write("plan", LONGEST_PLAN))
    verdicts, one_order = [], replace(judge.task, kind="single")  # a pair is shown in one order only
    for start in range(0, len(rated), BATCH):
        batch = rated[start : start + BATCH]
        requests = [judge.request(model.model, items[k], k) for k in batch]
        replies = ask("items", f"{start:,} of {len(rated):,} items", requests)
        verdicts += [verdict_of(one_order, items[k], [reply]) for k, reply in zip(batch, replies, strict=True)]
    progress.publish(Stage("done", "done", calls, total, usage))
    n_left = len(judge.affordable(items, positions, None)) - len(rated)
    return ModelRatings(judge, tuple(rated), Verdicts(verdicts), calls, usage, n_left)


def estimate_rating(
    judge: FusionJudge,
    items: Sequence[Item],
    positions: Sequence[int],
    settings: FusionSettings,
    *,
    cost_of: Callable[[int, int], float | None],
) -> FusionEstimate:
    """Estimate the calls, tokens and price of `rate_by_model`."""
    rated, to_write = judge.affordable(items, positions, settings.budget), judge.to_write
    prompt = sum(len(judge.request("", items[k], k).messages[0].content) for k in rated) // CHARACTERS_PER_TOKEN
    completion = len(rated) * REPLY_TOKENS // 2
    calls = len(rated) + len(to_write)
    return FusionEstimate(calls, prompt, completion, cost_of(prompt, completion), n_items=len(rated), to_write=to_write)
