"""The LLM judge: asks a language model for ratings and averages them.

The judge sends one request per reply. A probability-weighted score (G-Eval, section 2) is the expected rating: the sum
of p(s) · s over the ratings s of the scale. p(s) is the renormalised probability of the token s at the position of the
rating. Such a score requires ratings that are whole numbers from 0 to 9, because only a single digit is one token with
every tokenizer.
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

from core.errors import JudgeError, UnreadableError, UsageError, hide
from core.judging.clauses import clauses_of, weighted_clauses
from core.judging.judge_protocol import (
    CLAUSES,
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
)
from core.providers.budget import BudgetSpentError, ProviderWithinBudget
from core.providers.completions import OFF_SCALE, Completion, Failure, Message, OnReply, Provider, Reply, Request
from core.records import Criteria, Item, Scale, Scored, Task, Unscored, Usage, Verdict
from core.verdicts import Reading, Scores, mean_verdict
from core.wording import counted

CHARACTERS_PER_TOKEN = 4
CHARACTERS_PER_WORD = 6
CALLS_PER_CHUNK = 2048
"""Number of calls to prepare at once: enough to keep an endpoint busy, few enough to fit in memory."""

STEPS_TOKENS = 512
"""Maximum tokens of evaluation steps that the model writes."""

LOGPROBS = 20
"""Number of top tokens to request. There are at most ten ratings, some of them with several spellings."""

NO_REFERENCES = "The item has no reference, but this judge needs one."

_NOT_TAKEN = {
    "temperature": "uses its own temperature instead of {0.temperature:g}, so repeated runs may give different scores",
    "top_p": "refuses top_p {0.top_p:g}, so the model samples from all tokens",
    "reasoning_effort": "doesn't accept the setting reasoning_effort, so the model decides how long it reasons",
    "logprobs": "doesn't return token probabilities, so the stated ratings are used instead",
    "response_format": "doesn't accept a JSON schema, so its replies are read as text",
}
"""Settings that an endpoint may refuse → message."""

Requests = Iterator[Sequence[Request]]
CostOf = Callable[[int, int], float | None]
"""Function of (prompt tokens, completion tokens) that returns dollars, or None if the price is unknown."""


class LLMJudge(Judge):
    """A judge that asks a language model.

    Attributes:
        spec: The SPEC of the judge, as on the command line.
        sampling: The style of the prompts.
        effort: Reasoning effort, such as "low"; "" for the model's default.
        extra: Additional fields of each request, as a JSON object.
        room: Tokens added to `max_tokens` once reasoning has used up the limit; 0 before.
        spent: Cost of scores and drafts so far.
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
        self.provider, self.model, self.spec = provider, model, spec
        self.sampling = sampling or Style()
        self.effort, self.extra, self.room = effort, extra, 0
        self.cost_of = cost_of or (lambda _prompt, _reply: None)
        self.spent = Usage()
        self._first_sample = 0
        self._first_replies = FirstReplies(f"{model} at {provider.endpoint}")
        self._without: set[str] = set()
        self._counting = threading.Lock()  # several threads send batches of one scoring

    @property
    def is_llm(self) -> bool:
        return not self.spec.startswith("scripted")

    @property
    def notice(self) -> str:
        if self.spec == "scripted:newsroom":
            return "This is the demo's simulated reader: a rule-based program, not a language model."
        if not self.is_llm:
            return "This scripted stand-in for tests and demos is not a language model. Its scores are meaningless."
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
        """Score items on the task's scale. Each criteria text gives each item one verdict.

        With a reply cache, replies that arrived before an error are not requested again.

        Raises:
            ProviderError: The endpoint cannot answer.
            UnreadableError: None of the first replies could be read.
            UsageError: The style does not fit this scale.
        """
        verdicts: list[list[Verdict]] = [[] for _ in criteria]
        usage, samples, n_replies = Usage(), self.sampling.samples * (2 if task.kind == "pair" else 1), 0
        parts = [self._parts(each) for each in criteria]
        n_scores, n_planned = len(items) * len(criteria), len(items) * samples * sum(map(len, parts))

        def arrived(_index: int = 0, reply: Reply | None = None) -> None:
            nonlocal n_replies
            if reply is not None and not self._first_replies.any_read:
                self._first_replies.note(unread_reason(reading_of(reply, task)), FIRST_RATINGS, reply)
            n_replies += 1
            # report when another whole score is complete
            if on_progress is not None and n_replies * n_scores % n_planned < n_scores:
                on_progress(n_replies * n_scores // n_planned, n_scores)

        for cells, requests in self._chunks(task, items, criteria):  # by item: all criteria share the item's prefix
            replies = self._complete(requests, arrived)
            usage += self._note_sent(replies)
            left = iter(replies)
            for column, item, n_requests in cells:
                own, clauses = list(islice(left, n_requests)), parts[column]
                if not own:
                    verdict: Verdict = Unscored(item.item_id, "missing input", self.lacking(task, item))
                elif len(clauses) == 1:
                    verdict = verdict_of(task, item, own, weighted=self.sampling.weighted)
                else:
                    rated = [verdict_of(task, item, own[k : k + samples]) for k in range(0, len(own), samples)]
                    verdict = weighted_clauses(item, clauses, rated, criteria[column].weights)
                verdicts[column].append(verdict)
            n_whole = sum(samples * len(parts[column]) for column, *_ in cells)
            for _ in range(n_whole - len(requests)):  # items that cannot be judged count as done
                arrived()
        return Scores.of(items, criteria, verdicts, usage, explain=explain)

    def _chunks(
        self, task: Task, items: Iterable[Item], criteria: Sequence[Criteria]
    ) -> Iterator[tuple[list[tuple[int, Item, int]], list[Request]]]:
        """Yield chunks: a list of (position of the criteria, item, number of requests), and the requests in order."""
        self.require_askable(task)
        how, besides = self.sampling, self._rating_options(task)

        def reads(reply: Completion) -> bool:
            return reading_of(reply, task).value is not None

        parts = [self._parts(each) for each in criteria]
        cells: list[tuple[int, Item, int]] = []
        requests: list[Request] = []
        for item in items:
            frames = [] if self.lacking(task, item) else [self._frame(task, way) for way in orders_of(task, item)]
            for column, texts in enumerate(parts):
                for messages in (frame.messages(text) for text in texts for frame in frames):
                    requests += [
                        self._request(
                            messages,
                            how.temperature,
                            how.max_tokens,
                            reads,
                            top_p=how.top_p,
                            sample=self._first_sample + k,
                            json_schema=how.schema,
                            **besides,
                        )
                        for k in range(how.samples)
                    ]
                cells.append((column, item, len(texts) * len(frames) * how.samples))
            if len(requests) >= CALLS_PER_CHUNK:
                yield cells, requests
                cells, requests = [], []
        if cells:
            yield cells, requests

    def _parts(self, criteria: Criteria) -> tuple[str, ...]:
        """Return the texts to rate by one at a time: the clauses, or the whole criteria."""
        return clauses_of(criteria.text) if self.sampling.form == "clauses" else (criteria.text,)

    def _rating_options(self, task: Task) -> dict[str, Any]:
        """Return the options of a request for a rating."""
        return {"logprobs": LOGPROBS if self.sampling.weighted else 0}

    def requests(self, task: Task, items: Iterable[Item], criteria: Sequence[Criteria]) -> Requests:
        """Yield the requests that `score` sends, in chunks."""
        return (requests for _, requests in self._chunks(task, items, criteria))

    def require_askable(self, task: Task) -> None:
        """Raise UsageError if the style does not work with the task's scale."""
        how, numbers = self.sampling, whole_numbers(task.scale)
        if how.form == "stars" and not numbers:
            raise UsageError(
                f"Star ratings require a scale of whole numbers, but this scale is {task.scale}. Choose another form."
            )
        if how.weighted and (not numbers or numbers[0] < 0 or numbers[-1] > 9):
            raise UsageError(
                "The probability-weighted score requires a scale of whole numbers from 0 to 9. To use the stated "
                "ratings, turn off weighting."
            )

    def _frame(self, task: Task, item: Item) -> ScoreFrame:
        how, item = self.sampling, shown_item(item, references=self.sampling.references)
        return score_frame(
            task, item, how.prompt, steps=how.steps, persona=how.persona, examples=how.examples, nearest=how.nearest
        )

    def lacking(self, task: Task, item: Item) -> str:
        """Return why an item cannot be judged, or ""."""
        if not has_texts(task, item):
            return NO_TEXT
        return NO_REFERENCES if self.sampling.references and not item.references else ""

    def _request(
        self,
        messages: tuple[Message, ...],
        temperature: float | None,
        max_tokens: int,
        reads: Callable[[Completion], bool],
        **others: Any,
    ) -> Request:
        """Build a request. If the style has no temperature, none is sent."""
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
        """Draft or refine criteria from the exemplars of each request. A failed draft becomes an error message."""
        how = self.sampling

        def arrived(_index: int, reply: Reply) -> None:
            if not self._first_replies.any_read:
                self._first_replies.note(written(reply, task.aspect)[1], FIRST_DRAFTS, reply)

        asked = []
        for r in requests:
            shown = [replace(e, item=shown_item(e.item, references=how.references)) for e in r.exemplars]
            messages = draft_messages(task, replace(r, exemplars=tuple(shown)), how.draft_prompt, how.refine_prompt)
            most, sample = max(r.max_tokens, how.max_tokens), r.provenance.sample
            asked.append(self._request(messages, r.temperature, most, _says_something, seed=r.seed, sample=sample))
        replies = self._complete(asked, arrived)
        drafted = []
        for reply, request in zip(replies, requests, strict=True):
            text, problem = written(reply, task.aspect)
            drafted.append(problem or Criteria(text, task.aspect, request.provenance))
        return DraftBatch(tuple(drafted), self._note_sent(replies))

    def write_steps(self, task: Task, criteria: str = "") -> tuple[str, str, Usage]:
        """Ask the model for evaluation steps that the judge then follows (auto-CoT of G-Eval).

        To use the steps, pass them as `Style.steps`.

        Returns:
            The steps (or ""), an error message (or ""), and the cost.
        """
        replies = self._complete([self._request(steps_messages(task, criteria), 0.0, STEPS_TOKENS, _says_something)])
        text, problem = written(replies[0], task.aspect)
        if len(text) > MOST_STEPS:
            text, problem = "", f"The steps have {len(text):,} characters, but at most {MOST_STEPS:,} are allowed."
        return text, problem, self._note_sent(replies)

    def made_ready(self, task: Task, items: Sequence[Item], *, writes_steps: bool = False) -> tuple[LLMJudge, Prepared]:
        """Return the judge, ready to score, and the cost of preparing it.

        Args:
            writes_steps: Let the model write evaluation steps, unless the style already has steps.

        Raises:
            JudgeError: The written steps are unusable.
            UsageError: The style shows references, but no item has a reference.
        """
        require_references(self.sampling, task, items)
        if not writes_steps or self.sampling.steps:
            return self, Prepared()
        text, problem, usage = self.write_steps(task)
        if problem:
            raise JudgeError(
                f"The judge returned no evaluation steps: {problem} Score without steps, or enter your own steps."
            )
        return self.with_sampling(replace(self.sampling, steps=text)), Prepared(1, usage)

    # ── the rest of the protocol ─────────────────────────────────────────────────────────────────────────────

    def estimate(
        self, task: Task, items: Sequence[Item], criteria_words: int, clauses: float = CLAUSES
    ) -> CallEstimate:
        """Estimate tokens from the length of the texts (about 4 characters per token), and the price if it is known."""
        self.require_askable(task)
        how, asked = self.sampling, clauses if self.sampling.form == "clauses" else 1
        if how.nearest:  # all choices of examples are about equally long
            how = replace(how, examples=how.examples[: how.nearest], nearest=0)
            return self.with_sampling(how).estimate(task, items, criteria_words, clauses)
        criteria, replies = "x" * int(criteria_words * CHARACTERS_PER_WORD / asked), how.samples * asked
        judged = [shown for item in items if not self.lacking(task, item) for shown in orders_of(task, item)]
        prompts = (self._frame(task, item).messages(criteria) for item in judged)
        characters = replies * sum(len(message.content) for prompt in prompts for message in prompt)
        tokens = int(characters // CHARACTERS_PER_TOKEN)
        completion = int(replies * len(judged) * REPLY_TOKENS[how.form])
        return CallEstimate(len(items), tokens, completion, self.cost_of(tokens, completion))

    def with_sampling(self, sampling: Style) -> LLMJudge:
        """Return a judge with the same model and connections, and another style."""
        other = copy.copy(self)
        other.sampling, other._without = sampling, set()
        other._first_replies = FirstReplies(f"{self.model} at {self.provider.endpoint}")
        return other

    def asked_again(self, time: int) -> LLMJudge:
        """Return a copy whose sample numbers differ for each `time` (1, 2, …), so that no cached reply is reused."""
        other = self.with_sampling(self.sampling)
        other._first_sample = time * self.sampling.samples
        return other

    def within(self, dollars: float) -> LLMJudge:
        """Return a copy with a budget in dollars. Raises UsageError if the price of the model is unknown."""
        if self.cost_of(1, 1) is None:
            raise UsageError(
                f"A budget in dollars requires the price of {self.model}, which is unknown. Set the price under "
                "prices in endpoints.yaml, or set a budget in calls."
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
        """Add up the cost of `replies`, and record which settings the endpoint refused."""
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
        """Return the settings that the endpoint refused, one sentence for each."""
        how = self.sampling if self.sampling.temperature is not None else replace(self.sampling, temperature=0.0)
        return tuple(f"The endpoint {_NOT_TAKEN[name].format(how)}." for name in _NOT_TAKEN if name in self._without)

    def as_state(self) -> Mapping[str, Any]:
        """Return the state for `restore_judge`, without the API key but with the settings that the endpoint refused."""
        state: dict[str, Any] = {"spec": self.spec, "model": self.model, "sampling": self.sampling.as_state()}
        state |= {name: value for name in ("effort", "extra", "room") if (value := getattr(self, name))}
        return state | ({"sent_without": sorted(self._without)} if self._without else {})

    def close(self) -> None:
        self.provider.close()


def _says_something(reply: Completion) -> bool:
    return not written(reply, "")[1]


ONE_PASS = Style("score_only", weighted=True)


class LocalJudge(LLMJudge):
    """A judge that runs a causal language model in this process. `sampling` defaults to `ONE_PASS`."""

    def __init__(self, provider: Provider, model: str, *, spec: str, sampling: Style | None = None) -> None:
        super().__init__(provider, model, spec=spec, sampling=sampling or ONE_PASS, cost_of=lambda _prompt, _reply: 0.0)

    @property
    def notice(self) -> str:
        return f"Scores come from the language model {self.model}, which runs in Concord's process."

    @property
    def on_gpu(self) -> bool:
        """Whether local models run on CUDA."""
        from core.repeval.model import choose_device

        return choose_device() == "cuda"

    def require_askable(self, task: Task) -> None:
        if self.sampling.weighted and not whole_numbers(task.scale):
            raise UsageError(
                f"Scoring in one pass requires a scale of at most {MOST_NUMBERS} whole numbers. Choose a form with a "
                "written rating, such as rate_explain."
            )

    def _rating_options(self, task: Task) -> dict[str, Any]:
        return {"numbers": tuple(map(str, whole_numbers(task.scale)))} if self.sampling.weighted else {}


def require_references(how: Style, task: Task, items: Sequence[Item]) -> None:
    """Raise UsageError if the style `how` shows references but no item has any."""
    if not how.references:
        return
    if task.kind == "pair":
        raise UsageError("A judge that compares pairs of texts can't use references. Remove --with-references.")
    if not any(item.references for item in items):
        raise UsageError("No item has a reference. Remove --with-references, or add a 'reference' column.")


def added_prompt_words(judge: LLMJudge, task: Task, items: Sequence[Item], calls: int) -> str:
    """Return a sentence: how many prompt tokens do level descriptions, examples and references add? "" for none."""
    how, shown = judge.sampling, [item for item in items if not judge.lacking(task, item)]
    what = ["level descriptions"] * bool(task.levels) + [counted(how.n_examples, "example")] * bool(how.n_examples)
    what += ["references"] * how.references
    if not what or not shown:
        return ""
    bare, bare_task = judge.with_sampling(replace(how, references=False, examples=())), replace(task, levels=())
    tokens = [one.prompt_tokens or 0 for one in (judge.estimate(task, shown, 0), bare.estimate(bare_task, shown, 0))]
    added, listed = (tokens[0] - tokens[1]) / len(shown), " and ".join(what)
    return (
        f"{listed[0].upper()}{listed[1:]} add about {added:,.0f} prompt tokens per call (total: {added * calls:,.0f})."
    )


# ── replies → verdict ────────────────────────────────────────────────────────────────────────────────────────


def verdict_of(task: Task, item: Item, replies: Sequence[Reply], *, weighted: bool = False) -> Verdict:
    """Return the mean rating of the readable `replies`; Unscored if no reply is readable.

    For a pair, the second half of `replies` has the two texts swapped. The result is then the mean of both orders. If
    one order has no readable reply, the result is Unscored, because the other order alone has position bias.

    Args:
        weighted: Use the probability-weighted score of each reply, if probabilities are available.
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
        return replace(second, detail=f"With the texts in reverse order: {second.detail or second.reason}", raw=raw)
    turned = task.scale.low + task.scale.high - second.value
    return Scored(
        item.item_id,
        (first.value + turned) / 2.0,
        "\n\nWith the texts in reverse order: ".join(filter(None, (first.explanation, second.explanation))),
        raw,
        n_read=first.n_read + second.n_read,
        n_unread=first.n_unread + second.n_unread,
        n_unweighted=first.n_unweighted + second.n_unweighted,
        turned=turned,
    )


def _verdict_in_order(task: Task, item: Item, replies: Sequence[Reply], *, weighted: bool) -> Verdict:
    lines, weighed, readings, missing = list[str](), list[float](), list[Reading](), 0
    for reply in replies:
        reading = reading_of(reply, task)
        if isinstance(reply, Completion) and reading.value is not None:
            lines = lines or [_explained(reply)]
            if weighted and (value := weighted_rating(reply, reading, task.scale)) is not None:
                weighed.append(value)
                reading = Reading(value)
            else:
                missing += weighted
        readings.append(reading)
    if weighed:
        lines.append(f"Weighted by probability: {sum(weighed) / len(weighed):.2f}.")
    if missing:
        n = missing + len(weighed)
        lines.append(f"{missing} of {n} replies have no usable probabilities, so their stated ratings are used.")
    raw = tuple(reply.text for reply in replies if isinstance(reply, Completion))
    verdict = mean_verdict(item.item_id, readings, explanation="\n".join([*lines, *shortened_parts(item)]), raw=raw)
    return replace(verdict, n_unweighted=missing) if isinstance(verdict, Scored) else verdict


def reading_of(reply: Reply, task: Task) -> Reading:
    """Return the rating in `reply`, or the reason why there is none. Reasoning is ignored."""
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
    """Explain why a reply ended at the token limit and how to fix it."""
    if reply.thinking or not without_thoughts(reply.text).strip():
        return (
            "The reply reached the token limit while the model was reasoning. Raise max_tokens (CONCORD_MAX_TOKENS; "
            "in a judge file judge.sampling.max_tokens), or reduce the reasoning effort (CONCORD_REASONING_EFFORT)."
        )
    return "The reply reached the token limit and was cut off. Raise max_tokens (--max-tokens, or CONCORD_MAX_TOKENS)."


def _explained(reply: Completion) -> str:
    """Return the reasons in a JSON reply, or else the whole reply without reasoning."""
    text = without_thoughts(reply.text).strip()
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return text
    reasons = [fields.get(name) for name in ("reasons", "analysis")] if isinstance(fields, dict) else []
    return next((words.strip() for words in reasons if isinstance(words, str) and words.strip()), text)


def total_usage(replies: Sequence[Reply]) -> Usage:
    """Return the total usage of all replies, including failures."""
    return sum((reply.usage for reply in replies), Usage())


# ── the probability-weighted score ───────────────────────────────────────────────────────────────────────────

_SPACE_MARKS = "\u2581\u0120\u010a"
"""How tokenizers mark a space or a line break before a word."""
_SCALE_BEFORE = re.compile(r"(?:[/–-]|\b(?:out )?of|\bto)\s*\Z")
_SCALE_AFTER = re.compile(r"\s*(?:[–-]|to\b)\s*\d")
"""Pattern after a number that belongs to a repeated scale, such as "1-5", "4/5" or "4 out of 5"."""


def weighted_rating(reply: Completion, reading: Reading, scale: Scale) -> float | None:
    """Return the probability-weighted score, from the token probabilities at the rating's position in the reply.

    Returns None without logprobs, or if the rating is not a whole number ("3.5").
    """
    ratings = {str(rating): float(rating) for rating in whole_numbers(scale)}
    text = "".join(place.token for place in reply.logprobs)
    low, high = reading.span if reading.span and reply.text.startswith(text) else (0, len(text))
    end = 0
    for place in reply.logprobs:  # the first token that is the rating and not the end of a repeated scale
        start, end = end, end + len(place.token)
        stated = reading.value is not None and ratings.get(_bare(place.token)) == reading.value
        if not stated or start >= high or end <= low:
            continue
        if _SCALE_BEFORE.search(text[:start]) or _SCALE_AFTER.match(text[end:]):
            continue
        mass = [(ratings[_bare(token)], math.exp(min(0.0, log))) for token, log in place.top if _bare(token) in ratings]
        total = sum(share for _, share in mass)
        return sum(rating * share for rating, share in mass) / total if total > 0.0 else None
    return None


def _bare(token: str) -> str:
    return token.strip().strip(_SPACE_MARKS)


# ── the first replies ────────────────────────────────────────────────────────────────────────────────────────

FIRST_RATINGS, FIRST_DRAFTS = 16, 8
"""Number of replies at the start of a run; if none of them is readable, the run ends."""


class FirstReplies:
    """Records the first replies of a run, and stops the run if none is readable, before it costs more money."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._problems: Counter[str] = Counter()
        self._example = ""
        self.any_read = False

    def note(self, problem: str, most: int, reply: Reply) -> None:
        """Record a reply with its problem ("" if it is readable).

        Raises UnreadableError once `most` replies have arrived and none was readable.
        """
        self.any_read = self.any_read or not problem
        if self.any_read:
            return
        self._problems[problem] += 1
        if isinstance(reply, Completion):
            self._example = self._example or reply.text.strip()
        if (n := self._problems.total()) < most:
            return
        reasons = "; ".join(f"{count} × {words}" for words, count in self._problems.most_common(3))
        # on one line, without keys and terminal control characters
        line = "".join(c if c.isprintable() else " " for c in hide(self._example[:2_000]))
        example = f" Example: “{textwrap.shorten(line, 160, placeholder=' …')}”." if line.strip() else ""
        raise UnreadableError(
            f"Concord stopped early, because it couldn't read any of the first {n} replies from {self._who}. "
            f"{reasons}{example} No more requests are sent. Fix the cause, then start again."
        )


def unread_reason(reading: Reading) -> str:
    """Return why a reply has no rating, or ""."""
    if reading.value is not None:
        return ""
    what = "contains no rating" if reading.reason == "no verdict" else f"was {reading.reason}"
    return reading.detail or f"The reply {what}."


# ── criteria and steps written by a model ─────────────────────────────────────────────────────────────────────

_FENCED = re.compile(r"\A```\w*\n(?P<inside>.*?)\n?```\Z", re.DOTALL)
_TITLES = ("criteria", "scoring criteria", "steps", "evaluation steps")


def written(reply: Reply, aspect: str) -> tuple[str, str]:
    """Return the criteria or steps in a reply as (text, ""), or an error as ("", message).

    Reasoning, code fences and introductions are removed.
    """
    if isinstance(reply, Failure):
        return "", reply.message
    if reply.finish == "length":
        return "", _cut_off(reply)
    if reply.finish == "refusal":
        return "", "The model refused to write this text."
    text = without_thoughts(reply.text).strip()
    if fenced := _FENCED.match(text):
        text = fenced["inside"].strip()
    first, _, rest = text.partition("\n")
    title = re.sub(r"[#*_:\s]+", " ", first).strip().lower()
    announces = first.rstrip("* ").endswith(":") and any(word in title for word in ("criteria", "here ", "steps"))
    if rest.strip() and (announces or title in (f"criteria for {aspect.lower()}", *_TITLES)):
        text = rest.strip()
    return (text, "") if text else ("", "The reply was empty.")
