"""Read what a causal model would say next, for many prompts in one forward pass.

A rating need not be written to be known: the probabilities of the scale's numbers in the place of the answer say more
than any one of them, at the price of a single pass (G-Eval's expectation).  `NumberTokens` holds the tokens by which a
tokenizer writes the numbers, `NextTokens` reads their probabilities.  Prompts that begin alike (one item under several
criteria) share the keys and values of their beginning.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from core.errors import JudgeError
from core.records import FloatArray, IntArray
from core.repeval.model import LoadedModel, is_out_of_memory, token_batches, unless_memory_ends

BATCH_TOKENS = {"cpu": 1024, "mps": 8_192, "cuda": 32_768}
"""Tokens in one forward pass, padding counted."""

MOST_NODES = 32
MOST_TOGETHER = 64
_MARKS = "\u2581\u0120\u010a \n"  # how tokenizers write a space or a line end in front of a word

Path = tuple[int, ...]
Value = TypeVar("Value")


# ── numbers as tokens ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class NumberTokens:
    """`paths` are, for each of the numbers, the token sequences that write it.

    With and without a space in front, as the vocabulary has them.  `nodes` are the beginnings after which the model is
    asked for the next token; a single one, (), where every number is one token.
    """

    numbers: tuple[str, ...]
    paths: tuple[tuple[Path, ...], ...]

    @cached_property
    def nodes(self) -> tuple[Path, ...]:
        """The proper beginnings of all paths, the shortest first."""
        beginnings = {path[:n] for paths in self.paths for path in paths for n in range(len(path))}
        return tuple(sorted(beginnings, key=lambda node: (len(node), node)))

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """Every token of a path."""
        return tuple(sorted({token for paths in self.paths for path in paths for token in path}))

    def weigh(self, table: FloatArray) -> FloatArray:
        """(n_numbers,) probabilities out of (n_nodes, n_columns): of each column's token after each node.

        A number that others begin with ("1" and "10") counts as far as none of these goes on.
        """
        row = {node: k for k, node in enumerate(self.nodes)}
        column = {token: k for k, token in enumerate(self.columns)}
        follows: dict[Path, set[int]] = {}
        for path in (path for paths in self.paths for path in paths):
            for n, token in enumerate(path):
                follows.setdefault(path[:n], set()).add(token)

        def of(path: Path) -> float:
            steps = [table[row[path[:n]], column[token]] for n, token in enumerate(path)]
            goes_on = sum(table[row[path], column[token]] for token in follows.get(path, ()))
            return float(np.prod(steps) * max(0.0, 1.0 - goes_on))

        return np.array([sum(of(path) for path in paths) for paths in self.paths])


def number_tokens(tokenizer: Any, numbers: Sequence[str], name: str) -> NumberTokens:
    """How the tokenizer of the model `name` writes `numbers`.  JudgeError where it cannot, or only in too many ways."""
    spelt: dict[str, list[int]] = {}
    for token, index in tokenizer.get_vocab().items():
        spelt.setdefault(token.strip(_MARKS), []).append(index)
    built = NumberTokens(tuple(numbers), tuple(_paths(tokenizer, spelt, number, name) for number in numbers))
    if len(built.nodes) > MOST_NODES:
        raise JudgeError(
            f"The tokenizer of {name} writes the numbers {numbers[0]} to {numbers[-1]} with {len(built.nodes)} "
            f"beginnings; one pass weighs {MOST_NODES} at most. Ask for a written rating (weighted off)."
        )
    return built


def _paths(tokenizer: Any, spelt: dict[str, list[int]], number: str, name: str) -> tuple[Path, ...]:
    if whole := spelt.get(number):
        return tuple((index,) for index in sorted(whole))
    tokens = tokenizer.convert_ids_to_tokens(tokenizer(number, add_special_tokens=False)["input_ids"])
    parts = [part for token in tokens if (part := token.strip(_MARKS))]
    if "".join(parts) != number or not all(part in spelt for part in parts):
        raise JudgeError(
            f"The tokenizer of {name} has no tokens for the number {number}: its probability cannot be read. Ask for a "
            "written rating (weighted off), or choose another model."
        )
    inner = tokenizer.convert_tokens_to_ids(parts[1:])
    return tuple((first, *inner) for first in sorted(spelt[parts[0]]))


# ── the pass ─────────────────────────────────────────────────────────────────────────────────────────────────


class SharedPrefix(NamedTuple):
    """Prompts (their positions) whose first `shared` tokens are the same; 0 for one that stands alone."""

    members: IntArray
    shared: int


def together(rows: Sequence[IntArray]) -> list[SharedPrefix]:
    """Neighbouring prompts that have at least half of their tokens in common; every prompt keeps a token of its own."""
    groups: list[SharedPrefix] = []
    start, shared = 0, 0
    for k in range(1, len(rows) + 1):
        if k < len(rows) and k - start < MOST_TOGETHER:
            first, row = rows[start], rows[k]
            n = min(len(first), len(row), *([shared] if shared else []))
            other = np.flatnonzero(first[:n] != row[:n])
            common = min(int(other[0]) if other.size else n, len(first) - 1, len(row) - 1)
            if 2 * common >= max(len(first), len(row)):
                shared = common
                continue
        groups.append(SharedPrefix(np.arange(start, k), shared))
        start, shared = k, 0
    return groups


class NextTokens:
    """Probabilities of next tokens by one model.

    `shares` turns False, for good, when the model's cache cannot be shared: what it gives for the first group of
    prompts is compared with separate passes.
    """

    def __init__(self, loaded: LoadedModel, budget: int = 0) -> None:
        self.loaded, self.budget = loaded, budget or BATCH_TOKENS[loaded.device]
        self.shares = True
        self._checked = False
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
            if shared and self.shares:
                values = unless_memory_ends(partial(self._group, own, shared, wanted))
            if values is None:
                alone += members.tolist()
            else:
                yield members, values
        lengths = [len(arrays[k]) for k in alone]
        for batch, values in in_halved_batches(
            self.loaded, lengths, self.budget, lambda batch: self._apart([arrays[alone[k]] for k in batch], wanted)
        ):
            yield np.array([alone[k] for k in batch], dtype=np.intp), values

    def _group(self, rows: list[IntArray], shared: int, columns: list[int]) -> FloatArray:
        """A group of prompts; the first group by separate passes too, which show whether the cache can be shared."""
        if self._checked:
            return self._shared(rows, shared, columns)
        right = np.concatenate([self._apart([row], columns) for row in rows])
        try:
            values = self._shared(rows, shared, columns)
        except (AttributeError, NotImplementedError, TypeError, ValueError, IndexError, RuntimeError) as problem:
            if is_out_of_memory(problem):
                raise
            values = np.full(right.shape, math.nan)
        self._checked = True
        exact = next(self.loaded.model.parameters()).element_size() >= 4
        self.shares = bool(np.abs(values - right).max(initial=0.0) <= (1e-4 if exact else 0.1))
        return values if self.shares else right

    def _apart(self, rows: Sequence[IntArray], columns: list[int]) -> FloatArray:
        """One pass over whole prompts, filled on the left."""
        ids, mask = self.filled(rows, left=True)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        logits = self.logits(ids, mask, positions, 1, use_cache=False)
        return _probabilities(logits[:, -1], columns)

    def _shared(self, rows: Sequence[IntArray], shared: int, columns: list[int]) -> FloatArray:
        """The beginning first, once; then every ending, filled on the right, after it."""
        import torch
        from transformers import DynamicCache

        ids, mask = self.filled([rows[0][:shared]], left=True)
        device, n = ids.device, len(rows)
        cache = DynamicCache(config=self.loaded.model.config)
        positions = torch.arange(shared, device=device)[None]
        self.logits(ids, mask, positions, 1, past_key_values=cache, use_cache=True)
        every: Any = torch.zeros(n, dtype=torch.long, device=device)
        cache.reorder_cache(every)
        ids, own = self.filled([row[shared:] for row in rows], left=False)
        positions = (shared + torch.arange(ids.shape[1], device=device)).expand(n, -1)
        last, place = torch.unique(own.sum(dim=1) - 1, return_inverse=True)
        mask = torch.cat([mask.expand(n, -1), own], dim=1)
        logits = self.logits(ids, mask, positions, last, past_key_values=cache, use_cache=True)
        return _probabilities(logits[torch.arange(n, device=logits.device), place.to(logits.device)], columns)

    def logits(self, ids: Any, mask: Any, positions: Any, keep: Any, **options: Any) -> Any:
        """(n, kept, vocabulary): at the last token where `keep` is 1, else at the places that it lists."""
        if "position_ids" in self._takes:
            options["position_ids"] = positions
        kept = "logits_to_keep" in self._takes
        if kept:
            options["logits_to_keep"] = keep
        logits = self.loaded.model(input_ids=ids, attention_mask=mask, **options).logits
        return logits if kept or isinstance(keep, int) else logits[:, keep]

    def filled(self, rows: Sequence[IntArray], *, left: bool) -> tuple[Any, Any]:
        """Token ids and mask (n, longest) on the device."""
        import torch

        longest = max(len(row) for row in rows)
        lengths = np.array([len(row) for row in rows])[:, None]
        places = np.arange(longest)[None, :]
        mask = places >= longest - lengths if left else places < lengths
        ids = np.full(mask.shape, self.loaded.pad_id, dtype=np.int64)
        ids[mask] = np.concatenate(rows)
        device = self.loaded.model.device
        return torch.from_numpy(ids).to(device), torch.from_numpy(mask.astype(np.int64)).to(device)


def _probabilities(logits: Any, columns: list[int]) -> FloatArray:
    values: FloatArray = logits.float().softmax(dim=-1)[:, columns].double().cpu().numpy()
    return values


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


def weigh(
    reader: NextTokens, rows: Sequence[Sequence[int]], numbers: NumberTokens, block: int = 1024
) -> Iterator[tuple[int, FloatArray]]:
    """(position, (n_numbers,) probabilities) of each prompt as they are known; none where they are no numbers.

    JudgeError as `NextTokens.read`.  `block` prompts are in hand at a time.
    """
    nodes = numbers.nodes
    for start in range(0, len(rows), block):
        asked = [[*row, *node] for row in rows[start : start + block] for node in nodes]
        tables = np.full((len(asked) // len(nodes), len(nodes), len(numbers.columns)), math.nan)
        for positions, values in reader.read(asked, numbers.columns):
            prompt, node = np.divmod(positions, len(nodes))
            tables[prompt, node] = values
            for k in np.unique(prompt):
                if not np.isnan(tables[k]).any():
                    yield start + int(k), numbers.weigh(tables[k])
