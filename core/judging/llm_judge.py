"""The LLM judge: one request per sample, each reply read into a rating, their mean the verdict.

The probability-weighted score (G-Eval, section 2) is what the model would have said on average: the sum of p(s) · s
over the ratings s of the scale, with the probabilities of the likeliest tokens in the rating's place renormalised.
Only ratings of one digit are one token with every tokenizer, so an endpoint needs a scale of whole numbers from 0 to 9.
"""

from __future__ import annotations

import copy
import json
import math
import re
import textwrap
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from core.errors import JudgeError, UsageError, hide
from core.judging.judge_protocol import (
    NO_TEXT,
    CallEstimate,
    DraftBatch,
    DraftRequest,
    Judge,
    OnProgress,
    Prepared,
    has_texts,
    orders_of,
)
from core.judging.parse import read_rating, without_thoughts
from core.judging.scoring_styles import (
    MOST_NUMBERS,
    MOST_STEPS,
    REPLY_TOKENS,
    ScoreFrame,
    Style,
    draft_messages,
    score_frame,
    shortened_parts,
    shown_item,
    steps_messages,
    whole_numbers,
    whole_ratings,
)
from core.providers.budget import BudgetSpentError, ProviderWithinBudget
from core.providers.completions import OFF_SCALE, Completion, Failure, Message, OnReply, Provider, Reply, Request
from core.records import Criteria, Item, Scale, Scored, Task, Unscored, Usage, Verdict
from core.verdicts import Reading, Scores, mean_verdict
from core.wording import counted, percent

CHARACTERS_PER_TOKEN = 4
CHARACTERS_PER_WORD = 6
CALLS_PER_CHUNK = 2048
"""Calls prepared at once: enough to keep an endpoint busy, few enough to hold in memory."""

STEPS_TOKENS = 512
"""Longest evaluation steps that the model may write."""

LOGPROBS = 20
"""Likeliest tokens to ask for: ten ratings at most, some of them written in several ways."""

NO_REFERENCES = "The item has no reference, and this judge was made with references."

_NOT_TAKEN = {
    "temperature": "refuses the temperature {0.temperature:g}: it uses its own, so a second scoring may differ",
    "top_p": "refuses top_p {0.top_p:g}: its replies are drawn from all tokens",
    "reasoning_effort": "accepts no reasoning effort: the model decides how long it thinks",
    "logprobs": "returns no token probabilities: the ratings that it states count instead",
    "response_format": "accepts no JSON schema: its replies are read as text",
}
"""What an endpoint may not take of a style, in words."""

Requests = Iterator[Sequence[Request]]
CostOf = Callable[[int, int], float | None]
"""(prompt tokens, completion tokens) → dollars, None if the model's price is unknown."""
Written = tuple[str, str, Usage]
"""What the model wrote or "", the problem or "", and the cost."""


class LLMJudge(Judge):
    """Judge with the model `model` behind `provider`.

    Attributes:
        spec: What `make_judge` made it from.
        sampling: How it is asked.
        spent: What its scores and drafts have cost so far.
        refused_before: What the endpoint refused when the judge was calibrated.
        first_sample: The number of the first sample of each prompt; see `asked_again`.
    """

    spec: str = ""

    def __init__(
        self,
        provider: Provider,
        model: str,
        *,
        spec: str,
        sampling: Style | None = None,
        cost_of: CostOf | None = None,
        effort: str = "",
        extra: str = "",
    ) -> None:
        self.provider = provider
        self.model = model
        self.spec = spec
        self.sampling = sampling or Style()
        self.effort = effort
        self.extra = extra
        self.room = 0
        self.first_sample = 0
        self.refused_before = frozenset[str]()
        self.cost_of = cost_of or (lambda _prompt, _reply: None)
        self.first = FirstReplies(f"{model} at {provider.endpoint}")
        self._without: set[str] = set()
        self.spent = Usage()
        self._counting = threading.Lock()  # batches of one scoring are asked in several threads

    @property
    def is_llm(self) -> bool:
        return not self.spec.startswith("scripted")

    @property
    def notice(self) -> str:
        if self.spec == "scripted:newsroom":
            return "This is the simulated reader of the demo: a program of a few rules, not a language model."
        if not self.is_llm:
            return "This scripted stand-in for tests and demos is not a language model. Its scores mean nothing."
        return f"Scores come from the language model {self.model} at {self.provider.endpoint}."

    # ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────

    def score(
        self,
        task: Task,
        items: Sequence[Item],
        criteria: Sequence[Criteria],
        *,
        explain: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Scores:
        """Scores on the task's scale.  Requests go out item by item, so that criteria share each item's prefix.

        With a reply cache, nothing that arrived before an error is asked for again.

        Raises:
            ProviderError: Going on is pointless.
            UsageError: The style cannot be asked on this scale.
        """
        verdicts: list[list[Verdict]] = [[] for _ in criteria]
        usage, samples, n_replies = Usage(), self.sampling.samples * (2 if task.kind == "pair" else 1), 0

        def arrived(_index: int = 0, reply: Reply | None = None) -> None:
            nonlocal n_replies
            if reply is not None and not self.first.any_read:
                self.first.note(unread_because(reading_of(reply, task)), FIRST_RATINGS, reply)
            n_replies += 1
            if on_progress is not None and n_replies % samples == 0:
                on_progress(n_replies // samples, len(items) * len(criteria))

        for cells, requests in self._chunks(task, items, criteria):
            replies = self._complete(requests, arrived)
            usage += self._note_sent(replies)
            left = iter(replies)
            for column, item, n_requests in cells:
                if own := list(islice(left, n_requests)):
                    verdict = verdict_of(task, item, own, weighted=self.sampling.weighted)
                else:
                    verdict = Unscored(item.item_id, "missing input", self.lacking(task, item))
                verdicts[column].append(verdict)
            for _ in range(len(cells) * samples - len(requests)):  # for items that cannot be asked about
                arrived()
        return Scores.of(items, criteria, verdicts, usage, explain=explain)

    def _chunks(
        self, task: Task, items: Iterable[Item], criteria: Sequence[Criteria]
    ) -> Iterator[tuple[list[tuple[int, Item, int]], list[Request]]]:
        """What is asked, item by item with all criteria: (position of the criteria, item, n requests), the requests."""
        self.require_askable(task)
        how = self.sampling
        besides = self._asked_besides(task)

        def reads(reply: Completion) -> bool:
            return reading_of(reply, task).value is not None

        cells: list[tuple[int, Item, int]] = []
        requests: list[Request] = []
        for item in items:
            shown = () if self.lacking(task, item) else orders_of(task, item)
            frames = [{prompt: self._frame(task, way, prompt) for prompt in how.prompts} for way in shown]
            for column, each in enumerate(criteria):
                for frame in frames:
                    messages = {prompt: frame[prompt].messages(each.text) for prompt in how.prompts}
                    requests += [
                        self.request(
                            messages[slot.prompt],
                            how.temperature,
                            how.max_tokens,
                            reads,
                            top_p=how.top_p,
                            sample=self.first_sample + slot.sample,
                            json_schema=slot.schema,
                            **besides,
                        )
                        for slot in how.slots
                    ]
                cells.append((column, item, len(frames) * how.samples))
            if len(requests) >= CALLS_PER_CHUNK:
                yield cells, requests
                cells, requests = [], []
        if cells:
            yield cells, requests

    def _asked_besides(self, task: Task) -> dict[str, Any]:
        """What a request for a rating asks for besides a reply."""
        return {"logprobs": LOGPROBS if self.sampling.weighted else 0}

    def requests(self, task: Task, items: Iterable[Item], criteria: Sequence[Criteria]) -> Requests:
        """The requests of `score`, chunk by chunk."""
        return (requests for _, requests in self._chunks(task, items, criteria))

    def prompts(self, task: Task, item: Item, criteria: Criteria) -> tuple[tuple[Message, ...], ...]:
        """The distinct prompts behind one score; () for an item without a text."""
        asked = [request.messages for requests in self.requests(task, [item], [criteria]) for request in requests]
        return tuple(dict.fromkeys(asked))

    def require_askable(self, task: Task) -> None:
        """UsageError if the model cannot be asked in this style on the task's scale."""
        how, scale = self.sampling, task.scale
        if how.form == "stars" and not whole_numbers(scale):
            raise UsageError(f"Stars are whole numbers, and this scale is {scale}. Ask for a number (another form).")
        if how.weighted and not whole_ratings(scale):
            raise UsageError(
                f"The probability-weighted score needs a scale of whole numbers from 0 to 9, and this one is "
                f"{_in_steps(task)}. Take the read rating (weighted off)."
            )

    def _frame(self, task: Task, item: Item, prompt: str) -> ScoreFrame:
        how = self.sampling
        item = shown_item(item, references=how.references)
        return score_frame(task, item, prompt, steps=how.steps, persona=how.persona, examples=how.examples)

    def lacking(self, task: Task, item: Item) -> str:
        """Why an item cannot be judged; "" if it can."""
        if not has_texts(task, item):
            return NO_TEXT
        return NO_REFERENCES if self.sampling.references and not item.references else ""

    def request(
        self,
        messages: tuple[Message, ...],
        temperature: float | None,
        max_tokens: int,
        reads: Callable[[Completion], bool],
        **others: Any,
    ) -> Request:
        """One call to the model.  A style without a temperature sends none."""
        return Request(
            self.model,
            messages,
            None if self.sampling.temperature is None else temperature,
            max_tokens,
            effort=self.effort,
            extra=self.extra,
            room=self.room,
            reads=reads,
            **others,
        )

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────

    def draft(self, task: Task, requests: Sequence[DraftRequest]) -> DraftBatch:
        """Criteria written from each request's exemplars, or its criteria improved on them."""
        how = self.sampling

        def arrived(_index: int, reply: Reply) -> None:
            if not self.first.any_read:
                self.first.note(written(reply, task.aspect)[1], FIRST_DRAFTS, reply)

        asked = []
        for r in requests:
            shown = [replace(e, item=shown_item(e.item, references=how.references)) for e in r.exemplars]
            messages = draft_messages(task, replace(r, exemplars=tuple(shown)), how.draft_prompt, how.refine_prompt)
            most, sample = max(r.max_tokens, how.max_tokens), r.provenance.sample
            asked.append(self.request(messages, r.temperature, most, _says_something, seed=r.seed, sample=sample))
        replies = self._complete(asked, arrived)
        drafted = []
        for reply, request in zip(replies, requests, strict=True):
            text, problem = written(reply, task.aspect)
            drafted.append(problem or Criteria(text, task.aspect, request.provenance))
        return DraftBatch(tuple(drafted), self._note_sent(replies))

    def write_steps(self, task: Task, criteria: str = "") -> Written:
        """Have the model write evaluation steps that lead from an item to its number (auto-CoT; G-Eval).

        They come from the task and the criteria alone, at temperature 0, and take effect as `Style.steps`.
        """
        replies = self._complete([self.request(steps_messages(task, criteria), 0.0, STEPS_TOKENS, _says_something)])
        text, problem = written(replies[0], task.aspect)
        if len(text) > MOST_STEPS:
            text, problem = "", f"The steps were {len(text):,} characters long; at most {MOST_STEPS:,} are allowed."
        return text, problem, self._note_sent(replies)

    def made_ready(self, task: Task, items: Sequence[Item], *, writes_steps: bool = False) -> tuple[LLMJudge, Prepared]:
        """This judge, with evaluation steps of its model where they are wanted and it has none.

        JudgeError for steps of no use; UsageError if it shall see references and no item has one.
        """
        require_references(self.sampling, task, items)
        if not writes_steps or self.sampling.steps:
            return self, Prepared()
        text, problem, usage = self.write_steps(task)
        if problem:
            raise JudgeError(f"The judge wrote no evaluation steps: {problem} Ask without steps, or give them.")
        return self.with_sampling(replace(self.sampling, steps=text)), Prepared(1, usage)

    # ── the rest of the protocol ─────────────────────────────────────────────────────────────────────────────

    def estimate(self, task: Task, items: Sequence[Item], criteria_words: int) -> CallEstimate:
        """Tokens by length (about 4 characters each) and the price if known."""
        self.require_askable(task)
        criteria = "x" * (criteria_words * CHARACTERS_PER_WORD)
        judged = [shown for item in items if not self.lacking(task, item) for shown in orders_of(task, item)]
        characters = completion = 0
        for (prompt, form), samples in Counter((slot.prompt, slot.form) for slot in self.sampling.slots).items():
            frames = [self._frame(task, item, prompt) for item in judged]
            characters += samples * sum(len(message.content) for each in frames for message in each.messages(criteria))
            completion += samples * len(judged) * REPLY_TOKENS[form]
        tokens = characters // CHARACTERS_PER_TOKEN
        return CallEstimate(len(items), tokens, completion, self.cost_of(tokens, completion))

    def with_sampling(self, sampling: Style) -> LLMJudge:
        """The same model asked in another way, over the same connections."""
        other = copy.copy(self)
        other.sampling, other._without = sampling, set()
        other.first = FirstReplies(f"{self.model} at {self.provider.endpoint}")
        return other

    def asked_again(self, time: int) -> LLMJudge:
        """The same judge asking for samples that no other `time` asks for: a reply store keeps them apart."""
        other = self.with_sampling(self.sampling)
        other.first_sample = time * self.sampling.samples
        return other

    def within(self, dollars: float) -> LLMJudge:
        """As `Judge.within`."""
        if self.cost_of(1, 1) is None:
            raise UsageError(
                f"A budget in dollars needs the price of {self.model}, which is not known. Set it under prices in "
                "endpoints.yaml, or give a budget in calls."
            )
        other = copy.copy(self)
        other.provider = ProviderWithinBudget(self.provider, dollars)
        return other

    def _complete(self, requests: Sequence[Request], on_reply: OnReply | None = None) -> list[Reply]:
        try:
            return self.provider.complete(requests, on_reply=on_reply)
        except BudgetSpentError as error:
            with self._counting:
                self.spent += error.usage
            raise

    def _note_sent(self, replies: Sequence[Reply]) -> Usage:
        """Count what `replies` cost, and keep what they show of the endpoint."""
        usage = total_usage(replies)
        with self._counting:
            self.spent += usage
            for reply in replies:
                if isinstance(reply, Completion):
                    self._without.update(reply.without)
                    self.room = max(self.room, reply.room)
        return usage

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sampling settings that the endpoint refused, one sentence each."""
        how = self.sampling if self.sampling.temperature is not None else replace(self.sampling, temperature=0.0)
        return tuple(f"The endpoint {_NOT_TAKEN[name].format(how)}." for name in _NOT_TAKEN if name in self._without)

    def as_state(self) -> Mapping[str, Any]:
        """What `restore_judge` needs, and what was not sent; the key is not among it."""
        state: dict[str, Any] = {"spec": self.spec, "model": self.model, "sampling": self.sampling.as_state()}
        state |= {name: value for name in ("effort", "extra", "room") if (value := getattr(self, name))}
        return state | ({"sent_without": sorted(self._without)} if self._without else {})

    def close(self) -> None:
        self.provider.close()


def _in_steps(task: Task) -> str:
    step = task.scale.step
    return str(task.scale) if step is None else f"{task.scale} in steps of {step:g}"


def _says_something(reply: Completion) -> bool:
    return not written(reply, "")[1]


ONE_PASS = Style("score_only", weighted=True)


class LocalJudge(LLMJudge):
    """Judges with a causal language model in the process; `sampling` is `ONE_PASS` where none is given."""

    def __init__(self, provider: Provider, model: str, *, spec: str, sampling: Style | None = None) -> None:
        super().__init__(provider, model, spec=spec, sampling=sampling or ONE_PASS, cost_of=lambda _prompt, _reply: 0.0)

    @property
    def notice(self) -> str:
        return f"Scores come from the language model {self.model}, which runs in Concord's own process."

    @property
    def on_gpu(self) -> bool:
        """Whether a model in this process runs on CUDA."""
        from core.repeval.model import choose_device

        return choose_device() == "cuda"

    def require_askable(self, task: Task) -> None:
        if self.sampling.weighted and not whole_numbers(task.scale):
            raise UsageError(
                f"One pass weighs the whole numbers of a scale, {MOST_NUMBERS} at most, and this one is "
                f"{_in_steps(task)}. Take a form with a written rating, such as rate_explain."
            )

    def _asked_besides(self, task: Task) -> dict[str, Any]:
        """A weighed rating is asked for by its numbers."""
        return {"numbers": tuple(map(str, whole_numbers(task.scale)))} if self.sampling.weighted else {}


# ── references ───────────────────────────────────────────────────────────────────────────────────


def require_references(how: Style, task: Task, items: Sequence[Item]) -> None:
    """UsageError if a judge shall see references and there are none to show."""
    if not how.references:
        return
    if task.kind == "pair":
        raise UsageError("A pair is judged without references: leave --with-references out.")
    if not any(item.references for item in items):
        raise UsageError("No item has a reference to show. Leave --with-references out, or add a column 'reference'.")


def references_words(judge: LLMJudge, task: Task, items: Sequence[Item], calls: int) -> str:
    """The cost of references for a judge that sees them, in prompt tokens and unscored items; "" for any other
    judge.
    """
    if not judge.sampling.references or not items:
        return ""
    shown = [item for item in items if item.references]
    without = judge.with_sampling(replace(judge.sampling, references=False))
    tokens = [each.estimate(task, shown, 0).prompt_tokens or 0 for each in (judge, without)]
    added = (tokens[0] - tokens[1]) / max(1, len(shown))
    lacking = len(items) - len(shown)
    left_out = f" {lacking:,} of these {len(items):,} items have none." if lacking else ""
    return (
        f"References add about {added:,.0f} prompt tokens a call ({added * calls:,.0f} in all), "
        f"and the judge scores no item without one.{left_out}"
    )


def shown_words(judge: LLMJudge, task: Task, items: Sequence[Item], calls: int) -> str:
    """What level descriptions and examples cost, in prompt tokens; "" for a judge that shows none."""
    n = judge.sampling.n_examples
    what = " and ".join(filter(None, ["level descriptions" * bool(task.levels), counted(n, "example") if n else ""]))
    if not what or not items:
        return ""
    bare, plain_task = judge.with_sampling(replace(judge.sampling, examples=())), replace(task, levels=())
    tokens = (judge.estimate(task, items, 0).prompt_tokens or 0) - (
        bare.estimate(plain_task, items, 0).prompt_tokens or 0
    )
    return (
        f"{what[0].upper()}{what[1:]} add about {tokens / len(items):,.0f} prompt tokens a call "
        f"({tokens / len(items) * calls:,.0f} in all). Endpoints that cache prefixes charge less for them."
    )


# ── replies → verdict ────────────────────────────────────────────────────────────────────────────────────────


def verdict_of(task: Task, item: Item, replies: Sequence[Reply], *, weighted: bool = False) -> Verdict:
    """The mean rating of the readable `replies` about `item`, or Unscored with the reason of the first.

    A pair is asked about in both orders, the second half of `replies` with its texts exchanged. The verdict is the mean
    of both, and Unscored if either is: one order alone would hold the judge's liking for a side. With `weighted` each
    reply counts with its probability-weighted score, or its stated rating if it came without probabilities.
    """
    if task.kind != "pair":
        return _verdict_in_order(task, item, replies, weighted=weighted)
    half = len(replies) // 2
    orders = (replies[:half], replies[half:])
    first, second = (_verdict_in_order(task, item, each, weighted=weighted) for each in orders)
    if isinstance(first, Unscored):
        return first
    raw = (*first.raw, *second.raw)
    if isinstance(second, Unscored):
        return replace(second, detail=f"The other way round: {second.detail or second.reason}", raw=raw)
    turned = task.scale.low + task.scale.high - second.value
    return Scored(
        item.item_id,
        (first.value + turned) / 2.0,
        "\n\nThe other way round: ".join(filter(None, (first.explanation, second.explanation))),
        raw,
        n_read=first.n_read + second.n_read,
        n_unread=first.n_unread + second.n_unread,
        n_unweighted=first.n_unweighted + second.n_unweighted,
        turned=turned,
    )


def _verdict_in_order(task: Task, item: Item, replies: Sequence[Reply], *, weighted: bool) -> Verdict:
    lines, stated, weights, readings, missing = list[str](), list[str](), list[tuple[float, float]](), [], 0
    for reply in replies:
        reading = reading_of(reply, task)
        if isinstance(reply, Completion) and reading.value is not None:
            lines = lines or [_explained(reply)]
            stated.append(f"{reading.value:g}")
            if weighted and (weight := weighted_rating(reply, reading, task.scale)):
                weights.append(weight)
                reading = Reading(weight[0])
            else:
                missing += weighted
        readings.append(reading)
    if weights:
        value, share = (sum(part) / len(weights) for part in zip(*weights, strict=True))
        said = ", ".join(stated[:5]) + (", …" if len(stated) > 5 else "")
        on_scale = f"{percent(share)} of it on the scale {task.scale}"
        lines.append(f"Weighted by probability: {value:.2f}; {on_scale}. Said: {said}.")
    if missing:
        lines.append(f"Without usable probabilities: {missing} of {len(stated)} replies; the stated rating counts.")
    raw = tuple(reply.text for reply in replies if isinstance(reply, Completion))
    verdict = mean_verdict(item.item_id, readings, explanation="\n".join([*lines, *shortened_parts(item)]), raw=raw)
    return replace(verdict, n_unweighted=missing) if isinstance(verdict, Scored) else verdict


def reading_of(reply: Reply, task: Task) -> Reading:
    """The rating in `reply`, thoughts left aside, or why there is none."""
    if isinstance(reply, Failure):
        return Reading(None, "provider error", detail=reply.message)
    if reply.finish == OFF_SCALE:
        return Reading(None, "no verdict", detail=reply.text)
    reading = read_rating(reply.text, task.scale, task.aspect, reply.finish)
    if reply.finish == "length" and reading.reason == "truncated":
        return replace(reading, detail=_cut_off(reply))
    if reading.reason == "out of range":
        return replace(reading, detail=f"The reply states a number outside {task.scale}.")
    return reading


def _cut_off(reply: Completion) -> str:
    """Why a reply at the token limit says nothing, and what to do."""
    if reply.thinking or not without_thoughts(reply.text).strip():
        return (
            "The reply was cut off while thinking: the token limit was used up before an answer. Raise max_tokens "
            "(CONCORD_MAX_TOKENS; in a judge file judge.sampling.max_tokens), or have the model think less "
            "(CONCORD_REASONING_EFFORT)."
        )
    return "The reply was cut off at the token limit. Raise max_tokens (--max-tokens, or CONCORD_MAX_TOKENS)."


def _explained(reply: Completion) -> str:
    """What a reply gives for its rating: the words of a JSON reply's reasons, else the whole of it."""
    text = without_thoughts(reply.text).strip()
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return text
    reasons = [fields.get(name) for name in ("reasons", "analysis")] if isinstance(fields, dict) else []
    return next((words.strip() for words in reasons if isinstance(words, str) and words.strip()), text)


def total_usage(replies: Sequence[Reply]) -> Usage:
    """The usage of all `replies`, failures included."""
    return sum((reply.usage for reply in replies), Usage())


# ── the probability-weighted score ───────────────────────────────────────────────────────────────────────────

_SPACE_MARKS = "\u2581\u0120\u010a"
"""How tokenizers write a space or a line end in front of a word."""
_SCALE_BEFORE = re.compile(r"(?:[/–-]|\b(?:out )?of|\bto)\s*\Z")
_SCALE_AFTER = re.compile(r"\s*(?:[–-]|to\b)\s*\d")
"""Around the ends of a scale that the reply repeats ("1-5", "4/5", "4 out of 5")."""


def weighted_rating(reply: Completion, reading: Reading, scale: Scale) -> tuple[float, float] | None:
    """The weighted score in the place of the rating that was read, and the share of the probability on the scale.

    None without logprobs, or if the rating read is not a whole rating ("3.5").
    """
    ratings = {str(rating): float(rating) for rating in whole_numbers(scale)}
    text = "".join(place.token for place in reply.logprobs)
    low, high = reading.span if reading.span and reply.text.startswith(text) else (0, len(text))
    end = 0
    for place in reply.logprobs:  # the first token that is the rating; an end of a quoted scale is not meant
        start, end = end, end + len(place.token)
        stated = reading.value is not None and ratings.get(_bare(place.token)) == reading.value
        if not stated or start >= high or end <= low:
            continue
        if _SCALE_BEFORE.search(text[:start]) or _SCALE_AFTER.match(text[end:]):
            continue
        mass = [(ratings[_bare(token)], math.exp(min(0.0, log))) for token, log in place.top if _bare(token) in ratings]
        total = sum(share for _, share in mass)
        return (sum(rating * share for rating, share in mass) / total, min(1.0, total)) if total > 0.0 else None
    return None


def _bare(token: str) -> str:
    return token.strip().strip(_SPACE_MARKS)


# ── the first replies ────────────────────────────────────────────────────────────────────────────────────────

FIRST_RATINGS, FIRST_DRAFTS = 16, 8
"""A run ends if nothing could be read in so many replies at its start."""
_LOOKED_AT, _SHOWN = 2_000, 160
"""Characters of the reply that the message shows."""


class FirstReplies:
    """Stop a run early whose replies cannot be read: asking on would only cost."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._problems: Counter[str] = Counter()
        self._example = ""
        self.any_read = False

    def note(self, problem: str, most: int, reply: Reply) -> None:
        """Count one more reply, with why it could not be read ("" if it could).  JudgeError at the last of `most`."""
        self.any_read = self.any_read or not problem
        if self.any_read:
            return
        self._problems[problem] += 1
        if isinstance(reply, Completion):
            self._example = self._example or reply.text.strip()
        if (n := self._problems.total()) < most:
            return
        reasons = "; ".join(f"{count} × {words}" for words, count in self._problems.most_common(3))
        # on one line, without keys and what a terminal would take for a command
        line = "".join(c if c.isprintable() else " " for c in hide(self._example[:_LOOKED_AT]))
        line = textwrap.shorten(line, _SHOWN, placeholder=" …")
        raise JudgeError(
            f"Stopped early: none of the first {n} replies of {self._who} could be read. {reasons}"
            f"{f' One of them: “{line}”.' if line else ''} No more requests are sent; fix this and start again."
        )


def unread_because(reading: Reading) -> str:
    """Why a reply gave no rating, in words; "" where it gave one."""
    if reading.value is not None:
        return ""
    what = "one that states no rating" if reading.reason == "no verdict" else reading.reason
    return reading.detail or f"The reply was {what}."


# ── what a model writes ───────────────────────────────────────────────────────────────────────────────────────

_FENCED = re.compile(r"\A```\w*\n(?P<inside>.*?)\n?```\Z", re.DOTALL)
_TITLES = ("criteria", "scoring criteria", "steps", "evaluation steps")


def written(reply: Reply, aspect: str) -> tuple[str, str]:
    """(text, "") or ("", why there is none); without thoughts, a code fence, or a first line that only announces."""
    if isinstance(reply, Failure):
        return "", reply.message
    if reply.finish == "length":
        return "", _cut_off(reply)
    if reply.finish == "refusal":
        return "", "The model refused."
    text = without_thoughts(reply.text).strip()
    if fenced := _FENCED.match(text):
        text = fenced["inside"].strip()
    first, _, rest = text.partition("\n")
    title = re.sub(r"[#*_:\s]+", " ", first).strip().lower()
    announces = first.rstrip("* ").endswith(":") and any(word in title for word in ("criteria", "here ", "steps"))
    if rest.strip() and (announces or title in (f"criteria for {aspect.lower()}", *_TITLES)):
        text = rest.strip()
    return (text, "") if text else ("", "The reply was empty.")
