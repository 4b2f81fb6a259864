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
from functools import cached_property, partial
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
            _answer(self.ready, asked, deliver)
        return [replies[index] for index in range(len(requests))]

    def close(self) -> None:
        """Release the weights, unless another judge still uses them."""
        self._model = None


def _answer(model: Ready, requests: Sequence[Request], deliver: OnReply) -> None:
    """Hand the answer to each of distinct requests to `deliver(position, reply)`."""
    loaded, limit, rows = model.loaded, model.loaded.facts.max_tokens, prompt_rows(model.tokenizer, requests)
    weighed: dict[tuple[str, ...], list[int]] = defaultdict(list)
    written: dict[tuple[float | None, float, int], list[int]] = defaultdict(list)
    for k, request in enumerate(requests):
        if len(rows[k]) >= limit:
            words = (
                f"The prompt has {len(rows[k]):,} tokens, and {loaded.facts.name} reads {limit:,} with its answer. "
                "Shorten the item, or choose a model with a longer context."
            )
            deliver(k, Failure(words))
        elif request.numbers:
            weighed[request.numbers].append(k)
        else:
            written[request.temperature, request.top_p, request.max_tokens].append(k)
    for numbers, positions in weighed.items():
        if numbers not in model.numbers:
            model.numbers[numbers] = number_tokens(model.tokenizer, numbers, loaded.facts.name)
        left = dict.fromkeys(positions)
        for place, shares in weigh(model.reader, [rows[k] for k in positions], model.numbers[numbers]):
            del left[positions[place]]
            deliver(positions[place], weighed_reply(numbers, shares, len(rows[positions[place]])))
        for k in left:
            deliver(k, Failure(OVERFLOW))
    for positions in written.values():
        lengths = [len(rows[k]) + requests[k].max_tokens for k in positions]
        compute = partial(_written, model, [requests[k] for k in positions], [rows[k] for k in positions])
        for batch, texts in in_halved_batches(loaded, lengths, WRITING_TOKENS[loaded.device], compute):
            for place, (text, finish, n_tokens) in zip(batch, texts, strict=True):
                usage = _usage(len(rows[positions[place]]), n_tokens)
                deliver(positions[place], Completion(text, finish, usage))


def _written(
    model: Ready, requests: Sequence[Request], rows: Sequence[Sequence[int]], batch: Sequence[int]
) -> list[tuple[str, str, int]]:
    """(text, finish, tokens) of every reply; what is drawn depends on the requests of the batch alone."""
    import torch

    request, loaded, tokenizer = requests[batch[0]], model.loaded, model.tokenizer
    ids, mask = model.reader.filled([np.asarray(rows[k], dtype=np.int64) for k in batch], left=True)
    longest, settings = ids.shape[1], loaded.model.generation_config
    said = getattr(settings, "eos_token_id", None)
    marks = [*(said if isinstance(said, list) else [said]), tokenizer.eos_token_id]
    ends = {int(mark) for mark in marks if mark is not None}
    heat = settings.temperature if request.temperature is None else request.temperature
    drawn = heat is None or heat > 0
    seed = content_digest("draw", [requests[k].key("") for k in batch])
    with torch.random.fork_rng(), torch.inference_mode():
        torch.manual_seed(int(seed.rpartition(":")[2][:15], 16))
        output = loaded.model.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=max(1, min(request.max_tokens, loaded.facts.max_tokens - longest)),
            do_sample=drawn,
            temperature=heat if drawn else None,
            top_p=request.top_p if drawn else None,
            top_k=0 if drawn else None,
            repetition_penalty=1.0,
            pad_token_id=loaded.pad_id,
            eos_token_id=sorted(ends) or None,
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
