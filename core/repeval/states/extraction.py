"""From items to States: plan the prompts, compute what the cache lacks batch by batch, put it together.

    plan = plan_states(items, spec, extraction, cache_dir)     tokens counted, nothing computed
    for batch in compute(plan): …                              every batch is in the cache when it is handed on
    states = collect(plan)                                     from the cache (or from the batches, without a cache)

`extract` is all three.  A durable run makes each batch a step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import JudgeError, UsageError
from core.records import FloatArray, IntArray, Item
from core.repeval.states.batching import token_batches
from core.repeval.states.cache import StateCache
from core.repeval.states.model import (
    CodeAllowed,
    LoadedModel,
    ModelFacts,
    ModelSpec,
    choose_device,
    choose_precision,
    describe,
    load_model,
    load_tokenizer,
)
from core.repeval.states.prompts import HYPOTHESIS_ONLY, fit_prompts, item_fields, template_text
from core.repeval.states.reader import StateReader
from core.repeval.states.records import (
    DECODER_TOKENS,
    ENCODER_TOKENS,
    Extraction,
    Grid,
    HalfArray,
    StateBatch,
    States,
    token_offset,
)

BATCH_TOKENS = {"cpu": 512, "mps": 8_192, "cuda": 32_768}
"""Tokens in a batch, padding counted.  On a CPU small batches of like length keep the caches warm."""

Loader = Callable[[], LoadedModel]
OnProgress = Callable[[int, int], None]


@dataclass
class StatePlan:
    """Distinct prompts and which items use them: `uses` (n_items, 1) or, joined, (n_items, 2) source (or
    context) and hypothesis.

    `cache` None keeps the states in memory.  What `compute` measures is added up here; `budget` are the tokens of a
    batch, less once the device ran out of memory; `code` lists the models whose own Python may run.
    """

    spec: ModelSpec
    extraction: Extraction
    facts: ModelFacts
    grid: Grid
    device: str
    precision: str
    prompts: list[list[int]]
    uses: IntArray
    n_truncated: int
    n_short: int
    n_lacking: int
    cache: StateCache | None
    paths: list[Path]
    budget: int
    kept: dict[int, HalfArray] = field(default_factory=dict)
    cached: int = 0
    tokens: int = 0
    seconds: float = 0.0
    n_halved: int = 0
    code: CodeAllowed = ()

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one prompt's states: layers, tokens, dimension."""
        return len(self.grid.layers), len(self.grid.tokens), self.facts.dim

    def missing(self) -> IntArray:
        """Prompts that have no states yet."""
        lacking = [i for i in range(len(self.prompts)) if not self._has(i)]
        return np.array(lacking, dtype=np.intp)

    def keep(self, batch: StateBatch) -> None:
        """Take a computed batch into the cache, or into memory without one."""
        for row, values in zip(batch.rows.tolist(), batch.values, strict=True):
            if self.cache is None:
                self.kept[row] = values
            else:
                self.cache.write(self.paths[row], values)

    def states_of(self, row: int) -> HalfArray:
        """(layers, tokens, dim) of one prompt that is not missing."""
        if self.cache is None:
            return self.kept[row]
        return self.cache.read(self.paths[row], self.shape)

    def _has(self, row: int) -> bool:
        return row in self.kept if self.cache is None else self.paths[row].is_file()


def plan_states(
    items: Sequence[Item],
    spec: ModelSpec,
    extraction: Extraction,
    cache_dir: Path | None = None,
    *,
    elsewhere: tuple[str, str] | None = None,
    code: CodeAllowed = (),
) -> StatePlan:
    """Render, tokenise and cut every prompt; no weights are loaded and nothing is computed.

    `elsewhere` is the (device, precision) of other machines that will compute; None means this one.
    """
    facts, tokenizer = describe(spec, code), load_tokenizer(spec, code)
    device, precision = elsewhere or _here(spec)
    grid = _grid(facts, extraction)
    limit = min(facts.max_tokens, extraction.max_tokens)
    read = [fit_prompts(tokenizer, template, fields, limit) for template, fields in _readings(items, extraction)]
    places: dict[tuple[int, ...], int] = {}
    uses = [[places.setdefault(_not_empty(ids), len(places)) for ids in one.ids] for one in read]
    prompts = [list(ids) for ids in places]
    cut = np.array([one.cut for one in read], dtype=np.bool_)
    furthest = max((-(token_offset(name) or 0) for name in grid.tokens), default=0)
    few = np.array([len(ids) < furthest for ids in prompts], dtype=np.bool_)
    use = np.array(uses, dtype=np.intp).T.reshape(len(items), len(read))
    cache = None
    if cache_dir is not None:
        cache = StateCache(cache_dir, f"{facts.fingerprint} {precision}", grid)
    return StatePlan(
        spec=spec,
        extraction=extraction,
        facts=facts,
        grid=grid,
        device=device,
        precision=precision,
        prompts=prompts,
        uses=use,
        n_truncated=int(cut.any(axis=0).sum()) if items else 0,
        n_short=int(few[use].any(axis=1).sum()) if items else 0,
        n_lacking=_n_lacking(items, extraction.beside),
        cache=cache,
        paths=[cache.path(ids) for ids in prompts] if cache is not None else [],
        budget=extraction.batch_tokens or BATCH_TOKENS[device],
        code=code,
    )


def compute(plan: StatePlan, load: Loader | None = None, rows: IntArray | None = None) -> Iterator[StateBatch]:
    """Compute the missing prompts (of `rows` only, where given), longest first; each batch is kept, then handed on.

    When the device runs out of memory the batch is halved, for all that follow too; JudgeError when even one text is
    too much.  `load` gives the model (default: from the plan's spec); it is called only when something is missing.
    """
    wanted = np.arange(len(plan.prompts)) if rows is None else rows
    rows = wanted[np.isin(wanted, plan.missing())]
    plan.cached += len(wanted) - len(rows)
    if not len(rows):
        return
    reader = StateReader((load or (lambda: load_model(plan.spec, plan.code)))(), plan.grid)
    waiting = batches_of(plan, rows)[::-1]  # to be taken from the end
    while waiting:
        batch = waiting.pop()
        started = time.perf_counter()
        values = _read_or_none(reader, [plan.prompts[row] for row in batch])
        if values is None:
            longest = max(len(plan.prompts[row]) for row in batch)
            if len(batch) == 1:
                raise JudgeError(
                    f"The device {plan.device} ran out of memory on a single text of {longest} tokens. Lower "
                    "max_tokens, or use a smaller model or another device."
                )
            plan.n_halved, plan.budget = plan.n_halved + 1, len(batch) * longest // 2
            waiting = batches_of(plan, np.concatenate([batch, *waiting]))[::-1]
            continue
        tokens = sum(len(plan.prompts[row]) for row in batch)
        found = StateBatch(batch, _as_half(values), tokens, time.perf_counter() - started)
        plan.keep(found)
        plan.tokens, plan.seconds = plan.tokens + found.tokens, plan.seconds + found.seconds
        yield found


def _here(spec: ModelSpec) -> tuple[str, str]:
    device = choose_device(spec.device)
    return device, choose_precision(spec, device)


def batches_of(plan: StatePlan, rows: IntArray) -> list[IntArray]:
    """`rows` in batches of at most `plan.budget` tokens, the longest texts first."""
    return [rows[batch] for batch in token_batches([len(plan.prompts[row]) for row in rows], plan.budget)]


def collect(plan: StatePlan) -> States:
    """The States of all items; UsageError when prompts are still missing."""
    lacking = len(plan.missing())
    if lacking:
        raise UsageError(f"{lacking} of {len(plan.prompts)} prompts have no states yet: compute them first.")
    layers, tokens, dim = plan.shape
    joined = bool(plan.extraction.beside)
    values = np.empty((len(plan.uses), layers, tokens, 3 * dim if joined else dim), dtype=np.float16)
    for item in np.argsort(plan.uses[:, 0], kind="stable") if len(plan.uses) else ():
        parts = [plan.states_of(int(row)) for row in plan.uses[item]]
        values[item] = _join(*(part.astype(np.float64) for part in parts)) if joined else parts[0]
    return States(
        values=values,
        grid=plan.grid,
        model=plan.facts.name,
        revision=plan.facts.revision,
        extraction=plan.extraction,
        encoder=plan.facts.encoder,
        device=plan.device,
        precision=plan.precision,
        n_truncated=plan.n_truncated,
        n_short=plan.n_short,
        n_lacking=plan.n_lacking,
        n_halved=plan.n_halved,
        prompts=len(plan.prompts),
        cached=plan.cached,
        tokens=plan.tokens,
        seconds=plan.seconds,
        fingerprint=plan.facts.fingerprint,
    )


def _readings(items: Sequence[Item], extraction: Extraction) -> list[tuple[str, list[dict[str, str]]]]:
    """What is read for every item: one (template, fields of each item), or, joined, the two texts apart."""
    fields = [item_fields(item, extraction.criterion) for item in items]
    if not extraction.beside:
        return [(template_text(extraction.template), fields)]
    if problem := lacks_other_text(items, extraction):
        raise UsageError(problem)
    others = [one | {"hypothesis": one[extraction.beside]} for one in fields]
    return [(HYPOTHESIS_ONLY, others), (HYPOTHESIS_ONLY, fields)]


def lacks_other_text(items: Sequence[Item], extraction: Extraction) -> str:
    """Why `items` cannot be read joined, in words; "" when they can, or need not be."""
    part = extraction.beside
    if not part or not items or _n_lacking(items, part) < len(items):
        return ""
    other = {"source": "context", "context": "source"}[part]
    return (
        f"Joined states need a {part} beside each hypothesis, and no item has one. Read the hypothesis alone (texts "
        f"'prompt'), join it with the {other} where there is one, or bring in the {part}."
    )


def _n_lacking(items: Sequence[Item], part: str) -> int:
    return sum(not getattr(item, part).strip() for item in items) if part else 0


def _join(u: FloatArray, v: FloatArray) -> HalfArray:
    """[u−v, |u−v|, u·v] along the last axis."""
    return _as_half(np.concatenate([u - v, np.abs(u - v), u * v], axis=-1))


def _as_half(values: Any) -> HalfArray:
    """float16; what is too large for it becomes infinite, and its cell undefined."""
    with np.errstate(over="ignore"):
        half: HalfArray = values.astype(np.float16)
    return half


def _not_empty(ids: Sequence[int]) -> tuple[int, ...]:
    """Models without special tokens turn an empty text into no token at all; one padding token stands for it."""
    return tuple(ids) or (0,)


def _grid(facts: ModelFacts, extraction: Extraction) -> Grid:
    layers = extraction.layers or tuple(range(facts.n_layers))
    beyond = [number for number in layers if not 0 <= number < facts.n_layers]
    if beyond:
        raise UsageError(
            f"{facts.name} has the layers 0 (embeddings) to {facts.n_layers - 1}; layer {beyond[0]} was asked for."
        )
    tokens = extraction.tokens or (ENCODER_TOKENS if facts.encoder else DECODER_TOKENS)
    return Grid(tuple(dict.fromkeys(layers)), tuple(dict.fromkeys(tokens)))


def _read_or_none(reader: StateReader, rows: list[list[int]]) -> Any:
    """The states, or None when the device has too little memory for the batch.

    The error is dropped before the caller tries again, and with it the tensors that its traceback holds.
    """
    import torch

    try:
        return reader.read(rows)
    except (RuntimeError, MemoryError) as problem:  # torch has one class for CUDA; CPU and MPS tell by wording
        told = str(problem).lower()
        if not isinstance(problem, torch.OutOfMemoryError | MemoryError) and not any(
            words in told for words in ("out of memory", "not enough memory", "can't allocate memory")
        ):
            raise
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None
