"""Run a causal language model in this process, to generate replies or read the probabilities of ratings.

If a request has `numbers`, the reply is the probability of each number as the next token. The expected score computed
from these probabilities (G-Eval) is more informative than one generated rating. Any other request generates text.

The model is loaded with the first request. Prompts with a common prefix, such as those for one item under
several criteria, are computed together.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from core.errors import JudgeError
from core.providers.completions import OFF_SCALE, Completion, Failure, Message, OnReply, Reply, Request, TokenLogprobs
from core.records import FloatArray, Usage, content_digest
from core.repeval.model import (
    LOADING,
    LoadedModel,
    ModelSpec,
    choose_device,
    choose_precision,
    describe_causal,
    in_halved_batches,
    load_causal_model,
    none_if_out_of_memory,
)
from core.wording import percent

LEAST_ON_SCALE = 0.5
"""Minimum total probability of the numbers of the scale."""

WEIGHING_TOKENS = {"cpu": 1024, "mps": 8_192, "cuda": 32_768}
"""Maximum tokens of a forward pass, including padding."""

WRITING_TOKENS = {"cpu": 8_192, "mps": 16_384, "cuda": 131_072}
"""Maximum tokens of a generated batch: prompts plus the longest replies."""

MOST_TOGETHER = 64
PLAIN_ANSWER = "\n\nNumber:"
"""Ending of a prompt that asks for a number, for models without a chat template."""
_MARKS = "\u2581\u0120\u010a \n"  # how tokenizers mark a space or a line break before a word


@dataclass(frozen=True, eq=False)
class Ready:
    """A loaded model, which answers one batch at a time."""

    loaded: LoadedModel
    tokenizer: Any
    lock: threading.Lock

    @cached_property
    def token_ids(self) -> Mapping[str, list[int]]:
        """Maps each word to its token ids in the vocabulary, with and without a leading space."""
        tokens = defaultdict(list)
        for token, index in self.tokenizer.get_vocab().items():
            tokens[token.strip(_MARKS)].append(index)
        return tokens


_ready: WeakValueDictionary[tuple[ModelSpec, str], Ready] = WeakValueDictionary()
"""Loaded models. Judges with the same model share it."""


class LocalProvider:
    """A provider that runs a local model. The first request loads it, and `close` releases it."""

    def __init__(self, spec: ModelSpec) -> None:
        self.spec = spec
        self._model: Ready | None = None

    @cached_property
    def endpoint(self) -> str:
        """Fingerprint and precision of the weights, for the cache key.

        Raises the same errors as `load_causal_model`.
        """
        precision = choose_precision(self.spec, choose_device())
        return f"hf:{describe_causal(self.spec).fingerprint}:{precision}"

    @property
    def ready(self) -> Ready:
        """The loaded model. It is loaded once, even if several threads ask for it."""
        with LOADING:
            if self._model is None:
                key = (self.spec, self.endpoint)
                self._model = _ready.get(key)
                if self._model is None:
                    self._model = _ready[key] = Ready(*load_causal_model(self.spec), threading.Lock())
            return self._model

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Return the replies in the order of `requests`.

        Equal requests are computed once, and so are all samples of a prompt at temperature 0.
        """
        if not requests:
            return []
        places: dict[Request, list[int]] = defaultdict(list)
        for index, request in enumerate(requests):
            fixed = request.numbers or request.temperature == 0.0
            places[request.prompt if fixed else request].append(index)
        replies: dict[int, Reply] = {}
        with self.ready.lock:
            for asked, reply in _answers(self.ready, list(places)):
                for index in places[asked]:
                    replies[index] = reply
                    if on_reply is not None:
                        on_reply(index, reply)
        return [replies[index] for index in range(len(requests))]

    def close(self) -> None:
        """Release the model, unless another judge still uses it."""
        self._model = None


def _answers(model: Ready, requests: Sequence[Request]) -> Iterator[tuple[Request, Reply]]:
    """Answer distinct requests, in batches with the same settings."""
    loaded, limit = model.loaded, model.loaded.facts.max_tokens
    weighed: dict[tuple[str, ...], list[Request]] = defaultdict(list)
    written: dict[tuple[float | None, float, int], list[Request]] = defaultdict(list)
    rows = dict(zip(requests, prompt_rows(model.tokenizer, requests), strict=True))
    for request, row in rows.items():
        if len(row) >= limit:
            words = (
                f"The prompt has {len(row):,} tokens, but {loaded.facts.name} accepts at most {limit:,}, including "
                "the reply. Shorten the item, or choose a model with a longer context."
            )
            yield request, Failure(words)
        elif request.numbers:
            weighed[request.numbers].append(request)
        else:
            written[request.temperature, request.top_p, request.max_tokens].append(request)
    for numbers, asked in weighed.items():
        tokens = number_tokens(model, numbers)
        columns, starts = [index for several in tokens for index in several], np.cumsum([0, *map(len, tokens[:-1])])
        for batch, values in next_tokens(loaded, [rows[request] for request in asked], columns):
            for k, shares in zip(batch, np.add.reduceat(values, starts, axis=1), strict=True):
                yield asked[k], weighed_reply(numbers, shares, len(rows[asked[k]]))
    for asked in written.values():
        prompts = [rows[request] for request in asked]
        lengths = [len(prompt) + asked[0].max_tokens for prompt in prompts]
        compute = partial(_written, model, asked, prompts)
        for batch, replies in in_halved_batches(loaded, lengths, WRITING_TOKENS[loaded.device], compute):
            yield from zip([asked[k] for k in batch], replies, strict=True)


def _written(model: Ready, asked: Sequence[Request], prompts: Sequence[list[int]], batch: list[int]) -> list[Reply]:
    """Generate the replies of a batch. The random seed depends only on its requests."""
    import torch

    request, loaded, tokenizer = asked[batch[0]], model.loaded, model.tokenizer
    padded = loaded.pad([prompts[k][::-1] for k in batch])  # reversed twice, so that the padding is on the left
    padded = {name: values.flip(1) for name, values in padded.items()}
    longest, settings = padded["input_ids"].shape[1], loaded.model.generation_config
    own_ends = getattr(settings, "eos_token_id", None)
    ends = {*(own_ends if isinstance(own_ends, list) else [own_ends]), tokenizer.eos_token_id} - {None}
    heat = settings.temperature if request.temperature is None else request.temperature
    drawn = heat is None or heat > 0
    seed = content_digest("draw", [asked[k].key("") for k in batch])
    with torch.random.fork_rng():
        torch.manual_seed(int(seed.rpartition(":")[2][:15], 16))
        output = loaded.model.generate(
            **padded,
            max_new_tokens=max(1, min(request.max_tokens, loaded.facts.max_tokens - longest)),
            do_sample=drawn,
            temperature=heat if drawn else None,
            top_p=request.top_p if drawn else None,
            top_k=0 if drawn else None,
            repetition_penalty=1.0,
            pad_token_id=loaded.pad_id,
            eos_token_id=sorted(ends) or None,
        )
    replies = list[Reply]()
    for k, tokens in zip(batch, output[:, longest:].tolist(), strict=True):
        stop = next((n for n, token in enumerate(tokens) if token in ends), len(tokens))
        text = tokenizer.decode(tokens[:stop], skip_special_tokens=True).strip()
        usage = _usage(len(prompts[k]), min(stop + 1, len(tokens)))
        replies.append(Completion(text, "stop" if stop < len(tokens) else "length", usage))
    return replies


def weighed_reply(numbers: Sequence[str], shares: FloatArray, n_tokens: int) -> Reply:
    """Return the most likely of `numbers` as a reply, with the probabilities of all numbers (`shares`).

    The reply is `OFF_SCALE` if the total probability is too small, and a Failure if the probabilities are invalid.
    """
    usage, total = _usage(n_tokens, 1), float(shares.sum())
    if not np.isfinite(total):
        return Failure("The model returned invalid probabilities: its weights are damaged, or its numbers overflowed.")
    if total < LEAST_ON_SCALE:
        words = (
            f"Only {percent(total, digits=1)} of the answer's probability is on the numbers {numbers[0]} to "
            f"{numbers[-1]}; at least {percent(LEAST_ON_SCALE)} is needed. Ask for a written rating without "
            "weighting, or choose a model that follows instructions."
        )
        return Completion(words, OFF_SCALE, usage)
    best = numbers[int(shares.argmax())]
    logs = np.log(np.maximum(shares, 1e-30))
    place = TokenLogprobs(best, tuple(zip(numbers, logs.tolist(), strict=True)))
    return Completion(best, "stop", usage, logprobs=(place,))


def _usage(prompt: int, completion: int) -> Usage:
    return Usage(requests=1, prompt_tokens=prompt, completion_tokens=completion, cost=0.0)


# ── prompts and numbers as tokens ────────────────────────────────────────────────────────────────────────────


def prompt_rows(tokenizer: Any, requests: Sequence[Request]) -> list[list[int]]:
    """Tokenize the prompt of each request. Special tokens inside a message are broken up, so they have no effect."""
    marks = {str(mark) for mark in tokenizer.all_special_tokens}
    marks |= {str(mark) for mark in getattr(tokenizer, "added_tokens_decoder", {}).values()}
    longest_first = sorted((mark for mark in marks if len(mark.strip()) > 1), key=len, reverse=True)
    special = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
    has_template = bool(getattr(tokenizer, "chat_template", None))
    texts = []
    for request in requests:
        messages = [
            Message(m.role, special.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", m.content))
            for m in request.messages
        ]
        if has_template:
            texts.append(_chat(tokenizer, messages))
        else:
            texts.append("\n\n".join(m.content for m in messages) + (PLAIN_ANSWER if request.numbers else "\n\n"))
    # a chat template adds its own special tokens
    encoded = tokenizer(texts, add_special_tokens=not has_template, padding=False, truncation=False, verbose=False)
    rows = [list(row) for row in encoded["input_ids"]]
    if not has_template and tokenizer.eos_token_id is not None:  # some tokenizers append an end token
        rows = [row[:-1] if row and row[-1] == tokenizer.eos_token_id else row for row in rows]
    return rows


def _chat(tokenizer: Any, messages: Sequence[Message]) -> str:
    """Apply the chat template. If it refuses a system message, prepend that message to the user's."""
    from jinja2 import TemplateError

    joined = [Message("user", "\n\n".join(message.content for message in messages))]
    for turns in (messages, joined):
        said = [{"role": turn.role, "content": turn.content} for turn in turns]
        try:
            return str(
                tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True, enable_thinking=False)
            )
        except TemplateError as error:
            problem = error
    raise JudgeError(f"Concord can't fill in the model's chat template: {str(problem)[:200]}") from problem


def number_tokens(model: Ready, numbers: Sequence[str]) -> list[list[int]]:
    """Return the ids of all tokens that stand for each number, such as "5" with and without a leading space.

    Raises JudgeError if no single token stands for a number.
    """
    if several := [number for number in numbers if number not in model.token_ids]:
        raise JudgeError(
            f"The tokenizer of {model.loaded.facts.name} splits {several[0]} into several tokens, so Concord can't "
            "read its probability in one pass. Choose a form with a written rating, such as --form rate_explain."
        )
    return [sorted(model.token_ids[number]) for number in numbers]


# ── the forward pass ─────────────────────────────────────────────────────────────────────────────────────────


def next_tokens(
    loaded: LoadedModel, rows: Sequence[list[int]], columns: Sequence[int], budget: int = 0
) -> Iterator[tuple[list[int], FloatArray]]:
    """Yield batches of (positions in `rows`, probabilities that each token in `columns` comes next).

    Probabilities have the shape (n positions, n columns). Prompts with a common prefix are computed together, if memory
    allows. The other prompts are computed in batches of at most `budget` tokens; 0 means the default for the device.
    Raises JudgeError if memory is too small for a single prompt.
    """
    alone = list[int]()
    can_share = "past_key_values" in inspect.signature(loaded.model.forward).parameters
    for members, shared in together(rows):
        own, values = [rows[k] for k in members], None
        if shared and can_share:
            values = none_if_out_of_memory(partial(probabilities, loaded, own, columns, shared))
        if values is None:
            alone += members
        else:
            yield members, values

    def compute(batch: list[int]) -> FloatArray:
        return probabilities(loaded, [rows[alone[k]] for k in batch], columns)

    lengths = [len(rows[k]) for k in alone]
    for batch, values in in_halved_batches(loaded, lengths, budget or WEIGHING_TOKENS[loaded.device], compute):
        yield [alone[k] for k in batch], values


def together(rows: Sequence[list[int]]) -> list[tuple[list[int], int]]:
    """Group adjacent prompts that start with the same tokens, for about half of their length or more.

    Returns (positions, number of shared tokens) for each group. At least one token of each prompt is not shared. A
    group of one prompt shares 0 tokens.
    """
    groups: list[tuple[list[int], int]] = []
    for k, row in enumerate(rows):
        if groups and len(groups[-1][0]) < MOST_TOGETHER:
            members, shared = groups[-1]
            first = rows[members[0]]
            most = min(shared or len(first), len(first) - 1, len(row) - 1)
            common = next((n for n in range(most) if first[n] != row[n]), most)
            if 2 * common >= max(len(first), len(row)):
                groups[-1] = ([*members, k], common)
                continue
        groups.append(([k], 0))
    return groups


def probabilities(
    loaded: LoadedModel, rows: Sequence[list[int]], columns: Sequence[int], shared: int = 0
) -> FloatArray:
    """Return the probabilities (n rows, n columns) that each token in `columns` comes next after each of `rows`.

    `shared` is the number of tokens at the start that are the same in all rows, and are computed only once.
    """
    import torch
    from transformers import DynamicCache

    def logits_of(padded: dict[str, Any], keep: Any, **options: Any) -> Any:
        if can_keep := "logits_to_keep" in takes:
            options["logits_to_keep"] = keep
        logits = loaded.model(**padded, **options).logits
        return logits if can_keep else logits[:, keep]

    takes = inspect.signature(loaded.model.forward).parameters
    n, padded = len(rows), loaded.pad([row[shared:] for row in rows])
    mask = padded["attention_mask"]
    last, place = torch.unique(mask.sum(dim=1) - 1, return_inverse=True)
    options: dict[str, Any] = {"use_cache": False}
    if shared:
        cache = DynamicCache(config=loaded.model.config)
        options = {"use_cache": True, "past_key_values": cache}
        logits_of(loaded.pad([rows[0][:shared]]), last.new_zeros(1), **options)
        every_row: Any = torch.zeros(n, dtype=torch.long, device=mask.device)
        cache.reorder_cache(every_row)
        padded["attention_mask"] = torch.cat([mask.new_ones(n, shared), mask], dim=1)
    if "position_ids" in takes:
        options["position_ids"] = (shared + torch.arange(mask.shape[1], device=mask.device)).expand(n, -1)
    logits = logits_of(padded, last, **options)
    logits = logits[torch.arange(n, device=logits.device), place.to(logits.device)]
    values: FloatArray = logits.float().softmax(dim=-1)[:, list(columns)].double().cpu().numpy()
    return values
