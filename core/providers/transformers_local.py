"""Run a causal language model in this process: weigh ratings in one pass, or write texts token by token.

Requests that name `numbers` are answered by probabilities (`core.providers.one_pass`), all others are written with
`generate`.  The model's chat template is applied if it has one.  Nothing is loaded before the first request.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from core.errors import JudgeError
from core.providers.completions import (
    OFF_SCALE,
    Completion,
    Failure,
    Message,
    OnReply,
    Reply,
    Request,
    TokenLogprobs,
)
from core.providers.one_pass import (
    NextTokens,
    NumberTokens,
    in_halved_batches,
    number_tokens,
    weigh,
)
from core.records import FloatArray, Usage, content_digest
from core.repeval.model import (
    LOADING,
    LoadedModel,
    ModelSpec,
    choose_device,
    choose_precision,
    describe_causal,
    load_causal_model,
)
from core.wording import percent

LEAST_ON_SCALE = 0.5
"""Of the probability in the place of the answer, the least that must lie on the scale's numbers."""

WRITING_TOKENS = {"cpu": 8_192, "mps": 16_384, "cuda": 131_072}
"""Tokens in hand while texts are written: prompts and the longest replies."""

OVERFLOW = "The model's probabilities are no numbers: its weights or number format overflow."

PLAIN_ANSWER = "\n\nNumber:"
"""What a plain prompt ends with where a number is to follow."""


@dataclass(frozen=True, eq=False)
class Ready:
    """A model in memory with all that answers are made with."""

    loaded: LoadedModel
    tokenizer: Any
    reader: NextTokens
    lock: threading.Lock
    numbers: dict[tuple[str, ...], NumberTokens]
    """How the tokenizer writes numbers; finding that out goes over the whole vocabulary."""


_ready: WeakValueDictionary[tuple[ModelSpec, str], Ready] = WeakValueDictionary()
"""Judges of one model share it while any of them is open."""


class LocalProvider:
    """The model of `spec` behind the `Provider` protocol; loaded for the first request and released by `close`."""

    def __init__(self, spec: ModelSpec) -> None:
        self.spec = spec
        self._model: Ready | None = None

    @cached_property
    def endpoint(self) -> str:
        """What decides an answer next to the request: weights and number format.  Errors as `load_causal_model`."""
        precision = choose_precision(self.spec, choose_device(self.spec.device))
        return f"hf:{describe_causal(self.spec).fingerprint}:{precision}"

    @property
    def ready(self) -> Ready:
        """The model, loaded now if it is not yet: once, however many threads ask for it."""
        with LOADING:
            if self._model is None:
                key = (self.spec, self.endpoint)
                self._model = _ready.get(key)
                if self._model is None:
                    loaded, tokenizer = load_causal_model(self.spec)
                    self._model = Ready(loaded, tokenizer, NextTokens(loaded), threading.Lock(), {})
                    _ready[key] = self._model
            return self._model

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Replies in the order of `requests`; equal requests, and samples at temperature 0, are answered once."""
        if not requests:
            return []
        places: dict[Request, list[int]] = defaultdict(list)
        for index, request in enumerate(requests):
            fixed = request.numbers or request.temperature == 0.0
            places[request.prompt if fixed else request].append(index)
        replies: dict[int, Reply] = {}
        asked = list(places)

        def deliver(number: int, reply: Reply) -> None:
            for index in places[asked[number]]:
                replies[index] = reply
                if on_reply is not None:
                    on_reply(index, reply)

        with self.ready.lock:
            _Answers(self.ready, asked, deliver).all()
        return [replies[index] for index in range(len(requests))]

    def close(self) -> None:
        """Release the weights, unless another judge still uses them."""
        self._model = None


class _Answers:
    """The answers to distinct requests, each handed to `deliver(position, reply)` once."""

    def __init__(self, model: Ready, requests: Sequence[Request], deliver: OnReply) -> None:
        self.model, self.requests, self.deliver = model, requests, deliver
        self.rows = prompt_rows(model.tokenizer, requests)
        self.limit = model.loaded.facts.max_tokens

    def all(self) -> None:
        weighed: dict[tuple[str, ...], list[int]] = defaultdict(list)
        written: dict[tuple[float | None, float, int], list[int]] = defaultdict(list)
        for k, request in enumerate(self.requests):
            n_tokens = len(self.rows[k])
            if n_tokens >= self.limit:
                words = (
                    f"The prompt has {n_tokens:,} tokens, and {self.model.loaded.facts.name} reads {self.limit:,} "
                    "with its answer. Shorten the item, or choose a model with a longer context."
                )
                self.deliver(k, Failure(words))
            elif request.numbers:
                weighed[request.numbers].append(k)
            else:
                written[request.temperature, request.top_p, request.max_tokens].append(k)
        for numbers, positions in weighed.items():
            if numbers not in (known := self.model.numbers):
                known[numbers] = number_tokens(self.model.tokenizer, numbers, self.model.loaded.facts.name)
            self._weigh(known[numbers], positions)
        for positions in written.values():
            self._write(positions)

    def _weigh(self, numbers: NumberTokens, positions: list[int]) -> None:
        left = set(positions)

        def on_row(row: int, shares: FloatArray) -> None:
            left.discard(positions[row])
            self.deliver(positions[row], weighed_reply(numbers.numbers, shares, len(self.rows[positions[row]])))

        weigh(self.model.reader, [self.rows[k] for k in positions], numbers, on_row)
        for k in sorted(left):
            self.deliver(k, Failure(OVERFLOW))

    def _write(self, positions: list[int]) -> None:
        loaded = self.model.loaded
        lengths = [len(self.rows[k]) + self.requests[k].max_tokens for k in positions]

        def compute(batch: list[int]) -> list[tuple[str, str, int]]:
            return self._written([positions[place] for place in batch])

        for batch, texts in in_halved_batches(loaded, lengths, WRITING_TOKENS[loaded.device], compute):
            for place, (text, finish, n_tokens) in zip(batch, texts, strict=True):
                k = positions[place]
                self.deliver(k, Completion(text, finish, _usage(len(self.rows[k]), n_tokens)))

    def _written(self, batch: list[int]) -> list[tuple[str, str, int]]:
        """(text, finish, tokens) of every reply; what is drawn depends on the requests of the batch alone."""
        import torch

        request, loaded, tokenizer = self.requests[batch[0]], self.model.loaded, self.model.tokenizer
        rows = [np.asarray(self.rows[k], dtype=np.int64) for k in batch]
        longest = max(len(row) for row in rows)
        ids, mask = self.model.reader.filled(rows, left=True)
        ends = _end_tokens(loaded.model, tokenizer)
        heat = loaded.model.generation_config.temperature if request.temperature is None else request.temperature
        drawn = {"temperature": heat, "top_p": request.top_p} if heat is None or heat > 0 else {}
        seed = content_digest("draw", [self.requests[k].key("") for k in batch])
        with torch.random.fork_rng(), torch.inference_mode():
            torch.manual_seed(int(seed.rpartition(":")[2][:15], 16))
            output = loaded.model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=max(1, min(request.max_tokens, self.limit - longest)),
                do_sample=bool(drawn),
                top_k=0 if drawn else None,
                repetition_penalty=1.0,
                pad_token_id=loaded.pad_id,
                eos_token_id=sorted(ends) or None,
                **({"temperature": None, "top_p": None} | drawn),
            )
        replies = []
        for tokens in output[:, longest:].tolist():
            stop = next((n for n, token in enumerate(tokens) if token in ends), len(tokens))
            text = tokenizer.decode(tokens[:stop], skip_special_tokens=True).strip()
            replies.append((text, "stop" if stop < len(tokens) else "length", min(stop + 1, len(tokens))))
        return replies


def weighed_reply(numbers: Sequence[str], shares: FloatArray, n_tokens: int) -> Completion:
    """The likeliest of `numbers` with all their probabilities, or `OFF_SCALE` where they are too small a share."""
    usage, total = _usage(n_tokens, 1), float(shares.sum())
    if total < LEAST_ON_SCALE:
        words = (
            f"Only {percent(total, digits=1)} of the probability in the place of the answer lay on the numbers "
            f"{numbers[0]} to {numbers[-1]}; {percent(LEAST_ON_SCALE)} are needed. Ask for a written rating (weighted "
            "off), or choose a model that follows instructions."
        )
        return Completion(words, OFF_SCALE, usage)
    best = numbers[int(shares.argmax())]
    logs = np.log(np.maximum(shares, 1e-30))
    place = TokenLogprobs(best, tuple(zip(numbers, logs.tolist(), strict=True)))
    return Completion(best, "stop", usage, logprobs=(place,))


def _usage(prompt: int, completion: int) -> Usage:
    return Usage(requests=1, prompt_tokens=prompt, completion_tokens=completion, cost=0.0)


def _end_tokens(model: Any, tokenizer: Any) -> set[int]:
    said = getattr(model.generation_config, "eos_token_id", None)
    ends = said if isinstance(said, list) else [said]
    return {int(end) for end in (*ends, tokenizer.eos_token_id) if end is not None}


# ── prompts ──────────────────────────────────────────────────────────────────────────────────────────────────


def prompt_rows(tokenizer: Any, requests: Sequence[Request]) -> list[list[int]]:
    """Token ids of each request up to the place of its answer."""
    special = _special(tokenizer)
    messages = [[Message(m.role, special.sub(_broken, m.content)) for m in request.messages] for request in requests]
    if getattr(tokenizer, "chat_template", None):
        texts = [_chat(tokenizer, each) for each in messages]
    else:
        endings = [PLAIN_ANSWER if request.numbers else "\n\n" for request in requests]
        texts = ["\n\n".join(m.content for m in each) + ending for each, ending in zip(messages, endings, strict=True)]
    own = not getattr(tokenizer, "chat_template", None)  # a template brings its special tokens itself
    encoded = tokenizer(texts, add_special_tokens=own, padding=False, truncation=False, verbose=False)
    rows = [list(row) for row in encoded["input_ids"]]
    if own and tokenizer.eos_token_id is not None:  # some tokenizers end every text
        rows = [row[:-1] if row and row[-1] == tokenizer.eos_token_id else row for row in rows]
    return rows


def _chat(tokenizer: Any, messages: Sequence[Message]) -> str:
    """The template filled in; templates that know no system message get it before the person's words."""
    from jinja2 import TemplateError

    def filled(turns: Sequence[Message]) -> str:
        said = [{"role": turn.role, "content": turn.content} for turn in turns]
        text: str = tokenizer.apply_chat_template(
            said, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        return text

    try:
        return filled(messages)
    except TemplateError as problem:
        if messages[0].role == "system":
            joined = "\n\n".join(message.content for message in messages)
            return filled([Message("user", joined)])
        raise JudgeError(f"The model's chat template cannot be filled in: {str(problem)[:200]}") from problem


def _special(tokenizer: Any) -> re.Pattern[str]:
    """The tokenizer's own marks, which no text may forge."""
    marks = {str(mark) for mark in tokenizer.all_special_tokens}
    marks |= {str(mark) for mark in getattr(tokenizer, "added_tokens_decoder", {}).values()}
    marks = {mark for mark in marks if len(mark.strip()) > 1}
    longest_first = sorted(marks, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def _broken(mark: re.Match[str]) -> str:
    return f"{mark[0][0]} {mark[0][1:]}"
