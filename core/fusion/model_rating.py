"""LLM fusion: a model rates items by a plan, all aspects in one call, with the assistants' numbers.

The prompt has the paper's blocks in our own words: the task, the assistants and their use by the plan, how to weigh
them, a preview of the input, the output form, then the filled input.  The reply is read aspect by aspect: what is
missing, off its scale or cut off is unscored alone.  The ratings are measured aspect by aspect, and all in all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from core.errors import JudgeError, UsageError
from core.fusion.fusion_settings import FusionEstimate, FusionSettings
from core.fusion.plan_and_criteria import (
    NONE,
    OVERALL,
    AspectUse,
    FusionCriteria,
    FusionPlan,
    UnusableTextError,
    aspects_block,
    assistants_block,
    criteria_messages,
    filled,
    folded,
    headed_blocks,
    plain_line,
    plan_messages,
    read_plan,
    read_written,
)
from core.fusion.stack import Agreement, beats_chance
from core.judging.llm_judge import LLMJudge, total_usage
from core.judging.parse import read_rating, without_thoughts
from core.judging.scoring_styles import KINDS, SCORING, item_block, neutral, range_words, shown_item
from core.progress import SILENT, Progress, Stage
from core.providers.completions import Completion, Failure, Message, Reply, Request
from core.records import (
    Alignment,
    FloatArray,
    GoldenSet,
    IntArray,
    Item,
    JudgeScores,
    Level,
    Scale,
    Scored,
    Task,
    Unscored,
    UnscoredReason,
    Usage,
    Verdict,
    is_blank,
)
from core.verdicts import Reading, Verdicts

Result = TypeVar("Result")
EVALUATE_PROMPT, UNPLANNED_PROMPT = "evaluate.v1", "evaluate_unplanned.v1"
TOKENS_AN_ASPECT = 160
PLAN_TOKENS = 1_500
CHARACTERS_PER_TOKEN = 4
BATCH = 40
PLAN_STREAM = 5
"""Random stream of the choice of assistants for a measured plan; no report draws from it."""
NO_TARGET = "the raters gave no overall label, and a mean of aspects takes two that are rated in the same call"
AN_ASPECT = "it is an aspect rated here, and compared with the labels of it"
AGAIN = (
    "That cannot be used: {fault} Write the whole of it again, one block for each aspect in the form that was asked "
    "for, without anything before or after."
)


@dataclass(frozen=True)
class FusionJudge:
    """Request of an LLM fusion: aspects in `tasks` (one kind of item), with the assistants `parts`, by `criteria`.

    `plan` is that of the assistants' use (None: the model writes it first).  `introduced` is how they were introduced
    where the plan was made; "" does it by these numbers.
    """

    tasks: tuple[Task, ...]
    parts: tuple[JudgeScores, ...]
    plan: FusionPlan | None
    introduced: str = ""
    criteria: FusionCriteria = field(default_factory=FusionCriteria)

    @cached_property
    def planned(self) -> FusionPlan:
        """The plan; one with every part on the first aspect replaces a plan that has still to be written."""
        names = tuple(part.name for part in self.parts)
        uses = (AspectUse(task.aspect, () if k else names) for k, task in enumerate(self.tasks))
        return self.plan or FusionPlan(tuple(uses))

    @cached_property
    def scales(self) -> dict[str, Scale]:
        """The scales to read from a reply: each aspect, and `OVERALL` on the scale of the first."""
        scales = {task.aspect: task.scale for task in self.tasks}
        return scales | {OVERALL: scales.get(OVERALL, self.tasks[0].scale)}

    @cached_property
    def _fixed(self) -> dict[str, str]:
        aspects = [(plain_line(task.aspect), task.scale) for task in self.tasks]
        return {
            "thing": KINDS[self.tasks[0].kind].thing,
            "aspects": aspects_block(self.tasks, self.criteria.by_aspect),
            "assistants": self.introduced or introduced(self.parts, self.planned),
            "plan": neutral(self.planned.text),
            "form": "\n".join(
                f"Aspect: {name}\nExplanation: <two or three sentences>\nScore: <a number {range_words(scale)}>"
                for name, scale in [*aspects, (OVERALL, self.tasks[0].scale)]
            ),
        }

    def messages(self, item: Item, position: int) -> tuple[Message, ...]:
        """The evaluation prompt of the item at `position`, with what each assistant gave it on its own scale."""
        given = {part.name: part.values[position] for part in self.parts}
        lines = [
            f"- {plain_line(name)}: "
            f"{format(given[name], '.4g') if np.isfinite(given[name]) else 'no number for this item'}"
            for name in self.planned.assistants
        ]
        values = self._fixed | {
            "item": item_block(self.tasks[0].kind, shown_item(item, references=False), SCORING),
            "numbers": "\n".join(lines) or "- none",
        }
        return (Message("user", filled(_prompt(self.planned), values)),)

    def request(self, model: str, item: Item, position: int) -> Request:
        """One call at temperature 0."""
        return Request(model, self.messages(item, position), 0.0, TOKENS_AN_ASPECT * (len(self.tasks) + 1))

    def tokens(self, items: Sequence[Item], positions: Sequence[int]) -> tuple[int, int]:
        """(prompt, completion) tokens of rating `items` at `positions`, about 4 characters each."""
        characters = sum(len(message.content) for k in positions for message in self.messages(items[k], k))
        return characters // CHARACTERS_PER_TOKEN, len(positions) * (len(self.tasks) + 1) * TOKENS_AN_ASPECT // 2

    def read(self, item_id: str, reply: Reply) -> dict[str, Verdict]:
        """A verdict for each aspect, and under `OVERALL` for all in all; each is read by itself."""
        if isinstance(reply, Failure):
            return {name: Unscored(item_id, "provider error", reply.message) for name in self.scales}
        verdicts: dict[str, Verdict] = {}
        for name, (reading, words) in read_sections(reply, self.scales).items():
            if reading.value is None:
                detail = words or "The reply says nothing on this aspect."
                verdicts[name] = Unscored(item_id, reading.reason or "no verdict", detail[:500], (reply.text,))
            else:
                verdicts[name] = Scored(item_id, reading.value, explanation=words, raw=(reply.text,))
        return verdicts


def read_sections(reply: Completion, scales: Mapping[str, Scale]) -> dict[str, tuple[Reading, str]]:
    """(reading, the words it was read from) of every aspect in `scales`, each by itself.

    In a reply that was cut off the section it was cut in is truncated, and the aspects after it too; the sections
    before are read.
    """
    text, cut = reply.text, reply.finish == "length"
    if reply.finish == "refusal" or not text.strip():
        return {name: (read_rating(text, scale, name, reply.finish), "") for name, scale in scales.items()}
    readings: dict[str, tuple[Reading, str]] = {}
    blocks = headed_blocks(text, tuple(scales))[1]
    for k, (name, first, lines) in enumerate(blocks):
        words = "\n".join([f"{name}: {first}", *lines] if first.strip() else lines).strip()
        is_cut = cut and k == len(blocks) - 1
        reading = Reading(None, "truncated") if is_cut else read_rating(words, scales[name], name)
        if name not in readings or reading.value is not None:  # a later section that can be read replaces the earlier
            readings[name] = (reading, words)
    refused = read_rating(text, next(iter(scales.values()))).reason == "refused"
    nothing: UnscoredReason = "truncated" if cut else "refused" if refused else "no verdict"
    return {name: readings.get(name, (Reading(None, nothing), "")) for name in scales}


def _prompt(plan: FusionPlan) -> str:
    return UNPLANNED_PROMPT if plan.origin == NONE else EVALUATE_PROMPT


def introduced(parts: Sequence[JudgeScores], plan: FusionPlan) -> str:
    """The assistants of the plan as the model is told of them; UsageError for one without a score."""
    return assistants_block([part for part in parts if part.name in plan.assistants])


def fusion_state(
    judge_state: Mapping[str, Any],
    parts: Sequence[JudgeScores],
    plan: FusionPlan,
    tasks: Sequence[Task],
    criteria: FusionCriteria,
) -> dict[str, Any]:
    """The stored state of a fusion: all that rating other items by the same plan and criteria requires."""
    return {
        "method": "llm",
        "parts": [part.name for part in parts],
        "judge": dict(judge_state),
        "prompt": _prompt(plan),
        "plan": plan.text,
        "introduced": introduced(parts, plan),
        "aspects": [
            {
                "aspect": task.aspect,
                "kind": task.kind,
                "definition": task.definition,
                "scale": {"low": task.scale.low, "high": task.scale.high, "step": task.scale.step},
            }
            for task in tasks
        ],
        "criteria": [asdict(entry) for entry in criteria.entries],
    }


def measured_plan(
    golden: GoldenSet,
    parts: Mapping[str, Sequence[JudgeScores]],
    positions: Sequence[int],
    settings: FusionSettings,
) -> FusionPlan:
    """A plan without any call: for each aspect the assistants that align beyond chance at `positions`, best first.

    `parts` holds the assistants by aspect; none of them may have seen labels at `positions` (the caller sees to it).
    For system level they are measured over items: a dozen systems are too few to choose by.
    """
    level: Level | None = "dataset" if settings.level == "system" else settings.level
    settings = replace(settings, level=level)
    uses = []
    for aspect, judges in parts.items():
        at = np.asarray(positions, dtype=np.intp)
        at, better = at[~np.isnan(golden.labels(aspect)[at])], []
        if judges and at.size:
            matrix = np.array([judge.upward for judge in judges])
            aligned = Agreement(golden, aspect, settings).align(matrix, at, stream=PLAN_STREAM)
            better = [(judge.name, a) for judge, a in zip(judges, aligned, strict=True) if beats_chance(a)]
        better.sort(key=lambda pair: -(pair[1].value or 0.0))
        how = "No assistant agrees with people here beyond chance; judge from the item alone."
        if better:
            best, values = better[0][1], "\n".join(f"- {name} {alignment.value:.2f}" for name, alignment in better)
            how = (
                f"Agreement with people on {best.n} other items ({best.statistic}, {best.level} level), best first:\n"
                f"{values}\nTrust them in that order, and the item before any of them."
            )
        uses.append(AspectUse(aspect, tuple(name for name, _ in better), how))
    return FusionPlan(tuple(uses), "measured")


# ── rating by a model ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ModelRatings:
    """What a model rated by `plan` and `criteria`: `verdicts` by aspect (and `OVERALL`), one for each of `positions`.

    `replies` are the texts as they came, by item id.  It took `calls`, those for plan and criteria included; `usage`
    says how many were sent and what they cost.  `n_left` items were not asked for want of budget.
    """

    plan: FusionPlan
    criteria: FusionCriteria
    positions: tuple[int, ...]
    verdicts: Mapping[str, Verdicts]
    replies: Mapping[str, tuple[str, ...]]
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    n_left: int = 0

    def values(self, name: str, n_items: int) -> FloatArray:
        """(n_items,) scores on an aspect, NaN = unscored or not asked."""
        values = np.full(n_items, np.nan)
        values[list(self.positions)] = self.verdicts[name].values
        return values

    def unread(self, name: str) -> dict[str, int]:
        """How many verdicts on an aspect are missing, by reason."""
        return dict(Counter(verdict.reason for verdict in self.verdicts[name].unscored))


def with_texts(items: Sequence[Item], positions: Sequence[int]) -> list[int]:
    """Those of the `positions` whose items have a text to rate."""
    return [k for k in positions if not is_blank(items[k].target)]


def rate_by_model(
    model: LLMJudge,
    items: Sequence[Item],
    judge: FusionJudge,
    positions: Sequence[int],
    settings: FusionSettings,
    *,
    progress: Progress = SILENT,
) -> ModelRatings:
    """Let `model` rate the items at `positions` by `judge`.

    It first writes the criteria of aspects that have none, then, where `judge` has none, the plan.  Items without a
    text to rate cost no call; of a `budget` in calls criteria and plan are paid first and then the items.
    UnusableTextError where the model writes nothing that can be used.
    """
    rateable, lacking = with_texts(items, positions), judge.criteria.lacking(judge.tasks)
    asking = _Asking(model, (judge.plan is None) + bool(lacking) + len(rateable), progress, settings.budget)
    aspects = [task.aspect for task in judge.tasks]
    if lacking:
        asking.publish("criteria", "the model writes the criteria")
        wanted = [task.aspect for task in lacking]
        written, text, fault = asking.write(criteria_messages(lacking), lambda text: read_written(text, wanted))
        if written is None:
            raise UnusableTextError(fault, text, criteria=True)
        judge = replace(judge, criteria=judge.criteria.with_more(written, aspects))
    if judge.plan is None:
        asking.publish("plan", "the model writes the plan")
        names = [part.name for part in judge.parts]
        messages = plan_messages(judge.tasks, judge.parts, judge.criteria.by_aspect)
        plan, text, fault = asking.write(messages, lambda text: read_plan(text, aspects, names, "model"))
        if plan is None:
            raise UnusableTextError(fault, text, written=judge.criteria.text)
        judge = replace(judge, plan=plan)
    rated = rateable[: asking.left(len(rateable))]
    verdicts: dict[str, list[Verdict]] = {name: [] for name in judge.scales}
    replies: dict[str, tuple[str, ...]] = {}
    for start in range(0, len(rated), BATCH):
        batch = rated[start : start + BATCH]
        asking.publish("items", f"{start:,} of {len(rated):,} items")
        for k, reply in zip(
            batch, asking.complete([judge.request(model.model, items[k], k) for k in batch]), strict=True
        ):
            for name, verdict in judge.read(items[k].item_id, reply).items():
                verdicts[name].append(verdict)
            if isinstance(reply, Completion):
                replies[items[k].item_id] = (reply.text,)
    asking.publish("done", "done")
    rows, n_left = {name: Verdicts(row) for name, row in verdicts.items()}, len(rateable) - len(rated)
    return ModelRatings(judge.planned, judge.criteria, tuple(rated), rows, replies, asking.calls, asking.usage, n_left)


def estimate_rating(
    judge: FusionJudge,
    items: Sequence[Item],
    positions: Sequence[int],
    settings: FusionSettings,
    *,
    cost_of: Callable[[int, int], float | None],
) -> FusionEstimate:
    """Estimate the calls of `rate_by_model`."""
    to_write = tuple(task.aspect for task in judge.criteria.lacking(judge.tasks))
    rateable, writes = with_texts(items, positions), (judge.plan is None) + bool(to_write)
    rated = rateable if settings.budget is None else rateable[: max(settings.budget - writes, 0)]
    prompt, completion = judge.tokens(items, rated)
    return FusionEstimate(
        len(rated) + writes,
        prompt,
        completion,
        cost_of(prompt, completion),
        n_items=len(rated),
        to_write=to_write,
        writes_plan=judge.plan is None,
    )


class _Asking:
    """Calls to the model, counted and reported: `expected` of them in all, and no more than the `budget`."""

    def __init__(self, model: LLMJudge, expected: int, progress: Progress, budget: int | None) -> None:
        self.model, self.progress, self.budget = model, progress, budget
        self.expected = expected if budget is None else min(expected, budget)
        self.calls, self.usage = 0, Usage()

    def left(self, wanted: int) -> int:
        """As many of the calls `wanted` as the budget still has."""
        return wanted if self.budget is None else max(0, min(wanted, self.budget - self.calls))

    def publish(self, phase: str, message: str) -> None:
        self.progress.publish(Stage(phase, message, self.calls, self.expected, self.usage))

    def complete(self, requests: Sequence[Request]) -> list[Reply]:
        arrived = 0

        def count(_index: int, _reply: object) -> None:
            nonlocal arrived
            arrived += 1
            self.progress.advance(arrived, len(requests))

        replies = self.model.provider.complete(requests, on_reply=count)
        self.calls, self.usage = self.calls + len(requests), self.usage + total_usage(replies)
        return replies

    def write(self, messages: tuple[Message, ...], read: Callable[[str], Result]) -> tuple[Result | None, str, str]:
        """(what the model wrote, as `read` returns it, its text, its fault); asked again once, with the fault."""

        def attempt(text: str) -> tuple[Result | None, str]:
            try:
                return read(text), ""
            except UsageError as error:
                return None, str(error)

        for turn in (1, 2):
            request = Request(
                self.model.model, messages, 0.0, PLAN_TOKENS, reads=lambda reply: attempt(reply.text)[0] is not None
            )
            reply = self.complete([request])[0]
            if isinstance(reply, Failure):
                raise JudgeError(f"The model did not write what it was asked for: {reply.message}")
            text = reply.text
            written, fault = attempt(text)
            if written is not None:
                break
            if self.budget is None or self.expected < self.budget:
                self.expected += 1  # a call that was not planned
            if turn == 2 or self.calls >= self.expected:
                return None, without_thoughts(text).strip(), fault
            messages = (*messages, Message("assistant", text), Message("user", AGAIN.format(fault=fault)))
        return written, text, ""


# ── what the ratings are worth ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ModelResult:
    """Alignments of a model's ratings by aspect, and of its `overall` score with `overall_target` (in words).

    `overall` is None, and the target says why, where nothing can be compared with it.
    """

    aspects: Mapping[str, Alignment]
    overall: Alignment | None
    overall_target: str

    def as_json(self) -> dict[str, Any]:
        """What `fuse --json` holds of it, next to the aspect that was asked for."""
        _, *others = self.aspects
        return {
            "also": {name: self.aspects[name].as_json() for name in others},
            "overall": None if self.overall is None else self.overall.as_json() | {"beside": self.overall_target},
            "overall_beside": self.overall_target,
        }


def overall_target(golden: GoldenSet, tasks: Sequence[Task]) -> tuple[FloatArray, str] | None:
    """The raters' overall labels (n_items,); without any, the mean of the aspects of `tasks` on items with them all.

    The second says in words where they are from.  Aspects of different scales are taken to 0 to 1 first.  None for a
    single aspect, or where overall is one of them.
    """
    if any(folded(task.aspect) == OVERALL for task in tasks):
        return None
    if (own := next((name for name in golden.aspects if folded(name) == OVERALL), None)) is not None:
        return golden.labels(own), f"human_{own}"
    if len(tasks) < 2:
        return None
    labels = np.array([golden.labels(task.aspect) for task in tasks])
    ends = np.array([(task.scale.low, task.scale.high) for task in tasks])
    scaled = ""
    if (ends != ends[0]).any():
        labels, scaled = (labels - ends[:, :1]) / np.ptp(ends, axis=1, keepdims=True), ", each taken to 0 to 1"
    return labels.mean(axis=0), f"the mean of {', '.join(task.aspect for task in tasks)}{scaled}"


def measured_ratings(
    golden: GoldenSet, tasks: Sequence[Task], rated: Mapping[str, FloatArray], at: IntArray, settings: FusionSettings
) -> ModelResult:
    """Measure `rated`, (n_items,) scores by aspect and under `OVERALL`, NaN = none, at the positions `at`.

    Neither plan, criteria nor assistants have seen these items.
    """
    aligned = {
        task.aspect: Agreement(golden, task.aspect, settings).align(rated[task.aspect][None, :], at)[0]
        for task in tasks
    }
    if (target := overall_target(golden, tasks)) is not None:
        agreement = Agreement(golden, tasks[0].aspect, settings, target[0])
        return ModelResult(aligned, agreement.align(rated[OVERALL][None, :], at)[0], target[1])
    rated_too = any(folded(task.aspect) == OVERALL for task in tasks)
    return ModelResult(aligned, None, AN_ASPECT if rated_too else NO_TARGET)
