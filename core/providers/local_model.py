"""Run a causal language model in this process: weigh ratings in one pass, or write texts token by token.

A rating need not be written to be known: the probabilities of the scale's numbers in the place of the answer say more
than any one of them, at the price of a single pass (G-Eval's expectation).  So requests that name `numbers` are
answered by probabilities, and prompts that begin alike (one item under several criteria) share the keys and values of
their beginning.  All others are written with `generate`.  The model's chat template is applied if it has one.  Nothing
is loaded before the first request.
"""

from __future__ import annotations

import inspect
import math
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar
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
from core.records import FloatArray, IntArray, Usage, content_digest
from core.repeval.model import (
    LOADING,
    LoadedModel,
    ModelSpec,
    choose_device,
    choose_precision,
    describe_causal,
    is_out_of_memory,
    load_causal_model,
    token_batches,
    unless_memory_ends,
)
from core.wording import percent

LEAST_ON_SCALE = 0.5
"""Of the probability in the place of the answer, the least that must lie on the scale's numbers."""

WEIGHING_TOKENS = {"cpu": 1024, "mps": 8_192, "cuda": 32_768}
"""Tokens in one forward pass, padding counted."""

WRITING_TOKENS = {"cpu": 8_192, "mps": 16_384, "cuda": 131_072}
"""Tokens in hand while texts are written: prompts and the longest replies."""

PROMPTS_IN_HAND = 1024
MOST_NODES = 32
MOST_TOGETHER = 64
PLAIN_ANSWER = "\n\nNumber:"
"""What a plain prompt ends with where a number is to follow."""
_MARKS = "\u2581\u0120\u010a \n"  # how tokenizers write a space or a line end in front of a word

Path = tuple[int, ...]
Value = TypeVar("Value")


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────


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
        with self.ready.lock:
            for number, reply in _answers(self.ready, asked):
                for index in places[asked[number]]:
                    replies[index] = reply
                    if on_reply is not None:
                        on_reply(index, reply)
        return [replies[index] for index in range(len(requests))]

    def close(self) -> None:
        """Release the weights, unless another judge still uses them."""
        self._model = None


def _answers(model: Ready, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
    """(position, answer) of each of distinct requests."""
    loaded, limit, rows = model.loaded, model.loaded.facts.max_tokens, prompt_rows(model.tokenizer, requests)
    weighed: dict[tuple[str, ...], list[int]] = defaultdict(list)
    written: dict[tuple[float | None, float, int], list[int]] = defaultdict(list)
    for k, request in enumerate(requests):
        if len(rows[k]) >= limit:
            words = (
                f"The prompt has {len(rows[k]):,} tokens, but {loaded.facts.name} reads at most {limit:,}, "
                "including its answer. "
                "Shorten the item, or choose a model with a longer context."
            )
            yield k, Failure(words)
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
            yield positions[place], weighed_reply(numbers, shares, len(rows[positions[place]]))
        for k in left:
            yield k, Failure("The model's probabilities are not numbers: its weights or number format overflow.")
    for positions in written.values():
        lengths = [len(rows[k]) + requests[k].max_tokens for k in positions]
        compute = partial(_written, model, [requests[k] for k in positions], [rows[k] for k in positions])
        for batch, texts in in_halved_batches(loaded, lengths, WRITING_TOKENS[loaded.device], compute):
            for place, (text, finish, n_tokens) in zip(batch, texts, strict=True):
                usage = _usage(len(rows[positions[place]]), n_tokens)
                yield positions[place], Completion(text, finish, usage)


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
            f"Only {percent(total, digits=1)} of the answer's probability lay on the numbers "
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
    marks = {str(mark) for mark in tokenizer.all_special_tokens}
    marks |= {str(mark) for mark in getattr(tokenizer, "added_tokens_decoder", {}).values()}
    longest_first = sorted((mark for mark in marks if len(mark.strip()) > 1), key=len, reverse=True)
    special = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")  # the model's marks, which none may forge
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
    # a template brings its special tokens itself
    encoded = tokenizer(texts, add_special_tokens=not has_template, padding=False, truncation=False, verbose=False)
    rows = [list(row) for row in encoded["input_ids"]]
    if not has_template and tokenizer.eos_token_id is not None:  # some tokenizers end every text
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
            return filled([Message("user", "\n\n".join(message.content for message in messages))])
        raise JudgeError(f"The model's chat template cannot be filled in: {str(problem)[:200]}") from problem


# ── numbers as tokens ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class NumberTokens:
    """`paths` are, for each of the numbers, the token sequences that write it, with and without a space in front.

    `nodes` are the beginnings after which the model is asked for the next token, the shortest first; a single one, (),
    where every number is one token.  `columns` are the tokens of all paths.
    """

    paths: tuple[tuple[Path, ...], ...]
    nodes: tuple[Path, ...]
    columns: tuple[int, ...]

    def weigh(self, table: FloatArray) -> FloatArray:
        """(n_numbers,) probabilities out of (n_nodes, n_columns): of each column's token after each node.

        A number that others begin with ("1" and "10") counts as far as none of these goes on.
        """
        written = {path for paths in self.paths for path in paths}
        row = {node: k for k, node in enumerate(self.nodes)}
        column = {token: k for k, token in enumerate(self.columns)}
        follows = {path[: n + 1] for path in written for n in range(len(path))}

        def of(path: Path) -> float:
            steps = [table[row[path[:n]], column[token]] for n, token in enumerate(path)]
            goes_on = sum(table[row[path], column[longer[-1]]] for longer in sorted(follows) if longer[:-1] == path)
            return float(np.prod(steps) * max(0.0, 1.0 - goes_on))

        return np.array([sum(of(path) for path in paths) for paths in self.paths])


def number_tokens(tokenizer: Any, numbers: Sequence[str], name: str) -> NumberTokens:
    """How the tokenizer of the model `name` writes `numbers`.  JudgeError where it cannot, or only in too many ways."""
    spelt: dict[str, list[int]] = defaultdict(list)
    for token, index in tokenizer.get_vocab().items():
        spelt[token.strip(_MARKS)].append(index)
    paths: list[tuple[Path, ...]] = []
    for number in numbers:
        if number in spelt:
            paths.append(tuple((index,) for index in sorted(spelt[number])))
            continue
        tokens = tokenizer.convert_ids_to_tokens(tokenizer(number, add_special_tokens=False)["input_ids"])
        parts = [part for token in tokens if (part := token.strip(_MARKS))]
        if "".join(parts) != number or not all(part in spelt for part in parts):
            raise JudgeError(
                f"The tokenizer of {name} has no tokens for the number {number}: its probability cannot be read. Ask "
                "for a written rating (weighted off), or choose another model."
            )
        inner = tokenizer.convert_tokens_to_ids(parts[1:])
        paths.append(tuple((first, *inner) for first in sorted(spelt[parts[0]])))
    every = [path for several in paths for path in several]
    nodes = sorted({path[:n] for path in every for n in range(len(path))}, key=lambda node: (len(node), node))
    if len(nodes) > MOST_NODES:
        raise JudgeError(
            f"The tokenizer of {name} writes the numbers {numbers[0]} to {numbers[-1]} with {len(nodes)} "
            f"beginnings; one pass weighs {MOST_NODES} at most. Ask for a written rating (weighted off)."
        )
    return NumberTokens(tuple(paths), tuple(nodes), tuple(sorted({token for path in every for token in path})))


# ── the pass ─────────────────────────────────────────────────────────────────────────────────────────────────


def weigh(reader: NextTokens, rows: Sequence[Sequence[int]], numbers: NumberTokens) -> Iterator[tuple[int, FloatArray]]:
    """(position, (n_numbers,) probabilities) of each prompt as they are known; none where they are no numbers.

    JudgeError as `NextTokens.read`.
    """
    nodes = numbers.nodes
    for start in range(0, len(rows), PROMPTS_IN_HAND):
        asked = [[*row, *node] for row in rows[start : start + PROMPTS_IN_HAND] for node in nodes]
        tables = np.full((len(asked) // len(nodes), len(nodes), len(numbers.columns)), math.nan)
        for positions, values in reader.read(asked, numbers.columns):
            prompt, node = np.divmod(positions, len(nodes))
            tables[prompt, node] = values
            for k in np.unique(prompt):
                if not np.isnan(tables[k]).any():
                    yield start + int(k), numbers.weigh(tables[k])


def together(rows: Sequence[IntArray]) -> list[tuple[IntArray, int]]:
    """(positions, n tokens in common) of neighbouring prompts that have at least half of their tokens in common.

    Every prompt keeps a token of its own; one that stands alone shares 0.
    """
    groups: list[tuple[IntArray, int]] = []
    start, shared = 0, 0
    for k in range(1, len(rows) + 1):
        if k < len(rows) and k - start < MOST_TOGETHER:
            first, row = rows[start], rows[k]
            n = min(len(first), len(row), shared or len(first))
            other = np.flatnonzero(first[:n] != row[:n])
            common = min(int(other[0]) if other.size else n, len(first) - 1, len(row) - 1)
            if 2 * common >= max(len(first), len(row)):
                shared = common
                continue
        groups.append((np.arange(start, k), shared))
        start, shared = k, 0
    return groups


class NextTokens:
    """Probabilities of next tokens by one model.

    `shares` turns False, for good, when the model's cache cannot be shared: what it gives for the first group of
    prompts is compared with separate passes.
    """

    def __init__(self, loaded: LoadedModel, budget: int = 0) -> None:
        self.loaded, self.budget = loaded, budget or WEIGHING_TOKENS[loaded.device]
        self.shares, self._checked = True, False
        self._takes = set(inspect.signature(loaded.model.forward).parameters)

    def read(self, rows: Sequence[Sequence[int]], columns: Sequence[int]) -> Iterator[tuple[IntArray, FloatArray]]:
        """(positions, (n, n_columns) probabilities of the tokens `columns` after each of these rows), batch by batch.

        Prompts that share a beginning go together, the others and groups too large for memory in batches of their own.
        JudgeError when memory does not suffice for a single row.
        """
        arrays, wanted = [np.asarray(row, dtype=np.int64) for row in rows], list(columns)
        alone = list[int]()
        for members, shared in together(arrays):
            own, values = [arrays[k] for k in members], None
            if shared and self.shares and not self._checked:
                unless_memory_ends(partial(self._check, own, shared, wanted))
            if shared and self.shares:
                values = unless_memory_ends(partial(self._values, own, wanted, shared))
            if values is None:
                alone += members.tolist()
            else:
                yield members, values
        lengths = [len(arrays[k]) for k in alone]
        for batch, values in in_halved_batches(
            self.loaded, lengths, self.budget, lambda batch: self._values([arrays[alone[k]] for k in batch], wanted)
        ):
            yield np.array([alone[k] for k in batch], dtype=np.intp), values

    def _check(self, rows: list[IntArray], shared: int, columns: list[int]) -> None:
        """See on two prompts whether the model gives the same with and without a shared cache."""
        try:
            right = np.concatenate([self._values([row], columns) for row in rows[:2]])
            found = self._values(rows[:2], columns, shared)
        except (AttributeError, NotImplementedError, TypeError, ValueError, IndexError, RuntimeError) as problem:
            if is_out_of_memory(problem):
                raise
            self.shares = False
        else:
            exact = next(self.loaded.model.parameters()).element_size() >= 4
            self.shares = bool(np.abs(found - right).max(initial=0.0) <= (1e-4 if exact else 0.1))
        self._checked = True

    def _values(self, rows: Sequence[IntArray], columns: list[int], shared: int = 0) -> FloatArray:
        """(n, n_columns) in one pass over the endings of the rows, after one over the `shared` tokens they begin with.

        Endings are filled on the right: what a causal model gives for a token depends on none behind it.
        """
        import torch
        from transformers import DynamicCache

        ids, mask = self.filled([row[shared:] for row in rows])
        n, device = len(rows), ids.device
        last, place = torch.unique(mask.sum(dim=1) - 1, return_inverse=True)
        positions = (shared + torch.arange(ids.shape[1], device=device)).expand(n, -1)
        options: dict[str, Any] = {"use_cache": False}
        if shared:
            cache = DynamicCache(config=self.loaded.model.config)
            begin, every = self.filled([rows[0][:shared]])
            options = {"past_key_values": cache, "use_cache": True}
            self.logits(begin, every, torch.arange(shared, device=device)[None], last.new_zeros(1), **options)
            first: Any = torch.zeros(n, dtype=torch.long, device=device)
            cache.reorder_cache(first)
            mask = torch.cat([every.expand(n, -1), mask], dim=1)
        logits = self.logits(ids, mask, positions, last, **options)
        logits = logits[torch.arange(n, device=logits.device), place.to(logits.device)]
        values: FloatArray = logits.float().softmax(dim=-1)[:, columns].double().cpu().numpy()
        return values

    def logits(self, ids: Any, mask: Any, positions: Any, keep: Any, **options: Any) -> Any:
        """(n, len(keep), vocabulary) at the places in `keep`."""
        if "position_ids" in self._takes:
            options["position_ids"] = positions
        if kept := "logits_to_keep" in self._takes:
            options["logits_to_keep"] = keep
        logits = self.loaded.model(input_ids=ids, attention_mask=mask, **options).logits
        return logits if kept else logits[:, keep]

    def filled(self, rows: Sequence[IntArray], *, left: bool = False) -> tuple[Any, Any]:
        """Token ids and mask (n, longest) on the device."""
        import torch

        lengths = np.array([len(row) for row in rows])[:, None]
        places = np.arange(lengths.max())[None, :]
        mask = places >= lengths.max() - lengths if left else places < lengths
        ids = np.full(mask.shape, self.loaded.pad_id, dtype=np.int64)
        ids[mask] = np.concatenate(rows)
        device = self.loaded.model.device
        return torch.from_numpy(ids).to(device), torch.from_numpy(mask.astype(np.int64)).to(device)


def in_halved_batches(
    loaded: LoadedModel, lengths: Sequence[int], budget: int, compute: Callable[[list[int]], Value]
) -> Iterator[tuple[list[int], Value]]:
    """(positions, what `compute` gives for them), the longest of `lengths` (tokens, padding counted) first.

    A batch that memory does not suffice for is halved, and so are all after it; JudgeError when it holds one row.
    """
    waiting = token_batches(lengths, budget)[::-1]
    while waiting:
        batch = waiting.pop()
        value = unless_memory_ends(partial(compute, batch.tolist()))
        if value is not None:
            yield batch.tolist(), value
            continue
        longest = max(lengths[k] for k in batch)
        if len(batch) == 1:
            raise JudgeError(
                f"The device {loaded.device} ran out of memory on a single prompt of {longest} tokens. Use a smaller "
                "model or another device."
            )
        left = np.concatenate([batch, *waiting[::-1]])
        waiting = [left[part] for part in token_batches([lengths[k] for k in left], len(batch) * longest // 2)][::-1]
