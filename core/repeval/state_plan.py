"""From items to States: plan the prompts, compute what the cache lacks batch by batch, put it together.

    plan = plan_states(items, spec, extraction, cache_dir)     tokens counted, nothing computed
    for batch in compute(plan): …                              every batch is in the cache when it is handed on
    states = collect(plan)                                     from the cache (or from the batches, without a cache)

The cache holds one float16 .npy file a distinct prompt, named by the content that decides its states: weights, number
format, cells, and token ids (template, text and cut are in them).

Blocks are watched with hooks.  Each hook picks the wanted tokens out of the block's output on the device and drops the
rest, so that memory does not grow with the number of layers.  A model whose blocks cannot be watched one by one (shared
layers, other shapes) gives all its hidden states for one batch at a time instead; the numbers are the same.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from core.errors import JudgeError, StoreError, StoreFullError, UsageError
from core.files import FULL, replacing
from core.owner_only import make_private
from core.records import IntArray, Item, canonical_json
from core.repeval.model import (
    CodeAllowed,
    LoadedModel,
    ModelFacts,
    ModelSpec,
    choose_device,
    choose_precision,
    describe,
    load_model,
    load_tokenizer,
    token_batches,
    unless_memory_ends,
)
from core.repeval.states import Extraction, Grid, HalfArray, States, fit_prompts, n_lacking, parts_in, readings

if TYPE_CHECKING:
    import torch


def token_offset(name: str) -> int | None:
    """Return -k for the name "-k", else None."""
    return int(name) if name.startswith("-") else None


class StateReader:
    """Reads the cells of `grid` for batches of token ids; `blocks` are watched, None where they cannot be."""

    def __init__(self, loaded: LoadedModel, grid: Grid) -> None:
        import torch

        self.loaded, self.grid = loaded, grid
        lists = (module for module in loaded.model.modules() if isinstance(module, torch.nn.ModuleList))
        n_blocks = loaded.facts.n_layers - 1
        self.blocks: Any = next((blocks for blocks in lists if len(blocks) == n_blocks), None)
        self._backbone = getattr(loaded.model, "base_model", loaded.model)

    def read(self, rows: Sequence[Sequence[int]]) -> HalfArray:
        """Return (n, n_layers, n_tokens, dim) float16 states of `rows` (token ids without padding, none empty).

        Layer 0 are the embeddings as the first block gets them, layer i the output of block i; of the last block
        the final norm is taken too, where a model has one: `hidden_states` of transformers.  What is too large for
        float16 becomes infinite.
        """
        import torch

        inputs = self.loaded.pad(rows)
        pick = _Picker(inputs["attention_mask"], self.grid.tokens)
        with torch.inference_mode():
            layers = self._watched(pick, lambda: self._backbone(**inputs)) if self.blocks is not None else None
            if layers is None:
                self.blocks = None
                hidden = self._backbone(**inputs, output_hidden_states=True).hidden_states
                layers = [pick(hidden[number]) for number in self.grid.layers]
            together = torch.stack([layer.to(layers[0].device) for layer in layers], dim=1)  # may be on several GPUs
            states: HalfArray = together.half().cpu().numpy()
            return states

    def _watched(self, pick: _Picker, run: Callable[[], object]) -> list[torch.Tensor] | None:
        """Return the picked states of each layer, or None when a block was passed twice, or in another shape."""
        last, wanted = self.loaded.facts.n_layers - 1, set(self.grid.layers)
        picked: dict[int, torch.Tensor | None] = {}

        def keep(number: int, hidden: Any) -> None:
            fits = getattr(hidden, "ndim", 0) == 3 and tuple(hidden.shape[:2]) == pick.shape
            picked[number] = pick(hidden) if fits and number not in picked else None

        def embeddings(_: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
            keep(0, arguments[0] if arguments else named.get("hidden_states"))

        def output_of(number: int) -> Callable[..., None]:
            return lambda _, __, output: keep(number, output[0] if isinstance(output, tuple) else output)

        with ExitStack() as hooks:
            for number, block in enumerate(self.blocks):
                if number == 0 and 0 in wanted:
                    hooks.callback(block.register_forward_pre_hook(embeddings, with_kwargs=True).remove)
                if number + 1 < last and number + 1 in wanted:
                    hooks.callback(block.register_forward_hook(output_of(number + 1)).remove)
            if last in wanted:
                final = self._backbone.register_forward_hook(lambda _, __, output: keep(last, output.last_hidden_state))
                hooks.callback(final.remove)
            run()
        layers = [states for number in self.grid.layers if (states := picked.get(number)) is not None]
        return layers if len(layers) == len(self.grid.layers) else None


class _Picker:
    """Picks the wanted tokens of a batch, filled on the right, out of (n, length, dim)."""

    def __init__(self, mask: torch.Tensor, tokens: Sequence[str]) -> None:
        import torch

        self.shape, self.tokens = tuple(mask.shape), tokens
        self.mask, self.counts = mask, mask.sum(dim=1)
        self.rows = torch.arange(len(mask), device=mask.device)

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return (n, n_tokens, dim) float32."""
        import torch

        counts, found = self.counts.to(hidden.device), []
        for name in self.tokens:
            if name == "mean":
                real = hidden.masked_fill(self.mask.to(hidden.device).unsqueeze(-1) == 0, 0)
                found.append(real.sum(dim=1, dtype=torch.float32) / counts.unsqueeze(-1))
            else:  # "first" is place 0
                offset = token_offset(name)
                places = (counts + offset).clamp(min=0) if offset else torch.zeros_like(counts)
                found.append(hidden[self.rows.to(hidden.device), places].float())
        return torch.stack(found, dim=1)


BATCH_TOKENS = {"cpu": 512, "mps": 8_192, "cuda": 32_768}
"""Tokens in a batch, padding counted.  On a CPU small batches of like length keep the caches warm."""

CACHE_VERSION = 1  # raise when the same key would mean other numbers

Loader = Callable[[], LoadedModel]


@dataclass(frozen=True)
class StateBatch:
    """States of some prompts as they were computed: `rows` (b,) into the plan's prompts, `values` (b, L, P, D)."""

    rows: IntArray
    values: HalfArray


@dataclass
class StatePlan:
    """Distinct prompts and which items use them: `uses` (n_items, other texts + 1), the hypothesis last.

    `grid` is picked of every prompt, `cells` are what becomes of it.  `paths` are the cache's files, none without a
    cache: the states then stay in memory, in `kept`.  What `compute` measures is added up here; `budget` are the tokens
    of a batch, less once the device ran out of memory; `code` lists the models whose own Python may run.
    """

    spec: ModelSpec
    extraction: Extraction
    facts: ModelFacts
    grid: Grid
    cells: Grid
    device: str
    precision: str
    prompts: list[list[int]]
    uses: IntArray
    n_truncated: int
    n_short: int
    n_lacking: int
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
        """Return the prompts that have no states yet."""
        have = [path.is_file() for path in self.paths] or [row in self.kept for row in range(len(self.prompts))]
        return np.flatnonzero(~np.array(have, dtype=np.bool_))

    def to_compute(self) -> IntArray:
        """Return the missing prompts; the others are counted as cached."""
        missing = self.missing()
        self.cached += len(self.prompts) - len(missing)
        return missing

    def batches(self, rows: IntArray) -> list[IntArray]:
        """Return `rows` in batches of at most `budget` tokens, the longest texts first."""
        return [rows[batch] for batch in token_batches([len(self.prompts[row]) for row in rows], self.budget)]

    def keep(self, rows: IntArray, values: HalfArray, seconds: float) -> StateBatch:
        """Take computed states into the cache, or into memory without one, and count their tokens and seconds."""
        for row, states in zip(rows.tolist(), values, strict=True):
            if self.paths:
                _write(self.paths[row], states)
            else:
                self.kept[row] = states
        self.tokens, self.seconds = self.tokens + sum(len(self.prompts[row]) for row in rows), self.seconds + seconds
        return StateBatch(rows, values)

    def states_of(self, row: int) -> HalfArray:
        """Return (layers, tokens, dim) of one prompt that is not missing; StoreError when its file is damaged."""
        if not self.paths:
            return self.kept[row]
        path = self.paths[row]
        try:
            with path.open("rb") as file:
                values = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as problem:
            raise StoreError(f"The cached states {path} cannot be read ({problem}); delete that file.") from problem
        if values.shape != self.shape or values.dtype != np.float16:
            raise StoreError(
                f"The cached states {path} are {values.dtype} {values.shape}, not {self.shape}; delete that file."
            )
        return cast(HalfArray, values)


def _write(path: Path, values: HalfArray) -> None:
    """Write whole or not at all: a killed writer leaves no half file under the final name."""
    try:
        make_private(path.parent)
        with replacing(path, durable=False) as part, part.open("wb") as file:
            np.save(file, values, allow_pickle=False)
    except OSError as problem:
        where = path.parent.parent
        if problem.errno in FULL:
            raise StoreFullError(
                f"The disk is full while hidden states are cached in {where}. Make room and start again: what was "
                "computed so far is kept."
            ) from problem
        raise StoreError(f"Hidden states cannot be cached in {where}: {problem.strerror}.") from problem


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
    device, precision = elsewhere or (choose_device(spec.device), "")
    precision = precision or choose_precision(spec, device)
    others = extraction.others(items)
    cells = Grid.of(facts, extraction, others)
    grid, limit = cells.read, min(facts.max_tokens, extraction.max_tokens)
    fitted = [fit_prompts(tokenizer, template, fields, limit) for template, fields in readings(items, extraction)]
    places: dict[tuple[int, ...], int] = {}
    # models without special tokens turn an empty text into no token at all; one padding token (0) stands for it
    uses = [[places.setdefault(tuple(row) or (0,), len(places)) for row in ids] for ids, _ in fitted]
    prompts, use = [list(ids) for ids in places], np.array(uses, dtype=np.intp).T.reshape(len(items), len(fitted))
    furthest = max((-(token_offset(name) or 0) for name in grid.tokens), default=0)
    short = np.array([len(ids) < furthest for ids in prompts], dtype=np.bool_)
    paths = []
    if cache_dir is not None:
        identity = f"{facts.fingerprint} {precision}"
        about = hashlib.sha256(canonical_json([CACHE_VERSION, identity, [*grid.layers], [*grid.tokens]]).encode())
        for ids in prompts:
            digest = about.copy()
            digest.update(np.asarray(ids, dtype="<i8").tobytes())
            name = digest.hexdigest()
            paths.append(cache_dir / "states" / about.hexdigest()[:16] / name[:2] / f"{name[2:34]}.npy")
    return StatePlan(
        spec=spec,
        extraction=extraction,
        facts=facts,
        grid=grid,
        cells=cells,
        device=device,
        precision=precision,
        prompts=prompts,
        uses=use,
        n_truncated=int(np.any([cut for _, cut in fitted], axis=0).sum()),
        n_short=int(short[use].any(axis=1).sum()),
        n_lacking=n_lacking(items, *others),
        paths=paths,
        budget=extraction.batch_tokens or BATCH_TOKENS[device],
        code=code,
    )


def compute(plan: StatePlan, load: Loader | None = None) -> Iterator[StateBatch]:
    """Compute the missing prompts, longest first; each batch is kept, then handed on.

    When the device runs out of memory the batch is halved, for all that follow too; JudgeError when even one text is
    too much.  `load` gives the model (default: from the plan's spec); it is called only when something is missing.
    """
    rows = plan.to_compute()
    if not len(rows):
        return
    reader = StateReader(load() if load else load_model(plan.spec, plan.code), plan.grid)
    waiting = plan.batches(rows)[::-1]  # to be taken from the end
    while waiting:
        batch = waiting.pop()
        started = time.perf_counter()
        values = unless_memory_ends(partial(reader.read, [plan.prompts[row] for row in batch]))
        if values is not None:
            yield plan.keep(batch, values, time.perf_counter() - started)
            continue
        longest = max(len(plan.prompts[row]) for row in batch)
        if len(batch) == 1:
            raise JudgeError(
                f"The device {plan.device} ran out of memory on a single text of {longest} tokens. Lower max_tokens, "
                "or use a smaller model or another device."
            )
        plan.n_halved, plan.budget = plan.n_halved + 1, len(batch) * longest // 2
        waiting = plan.batches(np.concatenate([batch, *waiting]))[::-1]


def collect(plan: StatePlan) -> States:
    """Return the States of all items; UsageError when prompts are still missing.

    A cell behind a part, such as "source:mean", is |u−v|: how far the two texts lie apart in each dimension.
    """
    if lacking := len(plan.missing()):
        raise UsageError(f"{lacking} of {len(plan.prompts)} prompts have no states yet: compute them first.")
    others, named = parts_in(plan.cells.tokens), [name.rpartition(":") for name in plan.cells.tokens]
    own = [plan.grid.tokens.index(token) for _, _, token in named]
    gaps = [(cell, others.index(part)) for cell, (part, _, _) in enumerate(named) if part]
    values = np.empty((len(plan.uses), len(plan.grid.layers), len(own), plan.facts.dim), dtype=np.float16)
    with np.errstate(over="ignore", invalid="ignore"):  # what is infinite leaves its cell undefined
        for item in np.argsort(plan.uses[:, 0], kind="stable"):
            *of_others, text = (plan.states_of(int(row))[:, own].astype(np.float32) for row in plan.uses[item])
            for cell, other in gaps:
                text[:, cell] = np.abs(of_others[other][:, cell] - text[:, cell])
            values[item] = text.astype(np.float16)
    return States(
        values=values,
        grid=plan.cells,
        model=plan.facts.name,
        revision=plan.facts.revision,
        extraction=plan.extraction,
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
