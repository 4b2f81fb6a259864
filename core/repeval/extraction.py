"""From items to States: plan the prompts, compute what the cache lacks batch by batch, put it together.

    plan = plan_states(items, spec, extraction, cache_dir)     tokens counted, nothing computed
    for batch in compute(plan): …                              every batch is in the cache when it is handed on
    states = collect(plan)                                     from the cache (or from the batches, without a cache)

The cache holds one float16 .npy file a distinct prompt, named by the content that decides its states.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from core.errors import JudgeError, StoreError, StoreFullError, UsageError
from core.files import FULL, replacing
from core.owner_only import make_private
from core.records import GoldenSet, IntArray, Item, canonical_json
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
from core.repeval.reader import StateReader
from core.repeval.states import (
    Extraction,
    Grid,
    HalfArray,
    StateBatch,
    States,
    fit_prompts,
    parts_in,
    readings,
    token_offset,
)
from core.texts import is_blank

if TYPE_CHECKING:
    from core.repeval.cluster import Cluster

BATCH_TOKENS = {"cpu": 512, "mps": 8_192, "cuda": 32_768}
"""Tokens in a batch, padding counted.  On a CPU small batches of like length keep the caches warm."""

CACHE_VERSION = 1  # raise when the same key would mean other numbers

Loader = Callable[[], LoadedModel]
OnProgress = Callable[[int, int], None]


class StateCache:
    """A folder of states.  `identity` names what decides a state beside the prompt: weights and number format.

    The key of a prompt is the hash of its token ids (template, text and cut are in them), the grid and `identity`.
    """

    def __init__(self, folder: Path, identity: str, grid: Grid) -> None:
        about = canonical_json([CACHE_VERSION, identity, list(grid.layers), list(grid.tokens)])
        self._about = hashlib.sha256(about.encode())
        self.folder = folder / "states" / self._about.hexdigest()[:16]

    def path(self, ids: Sequence[int]) -> Path:
        """Where the states of these token ids lie, or would lie."""
        digest = self._about.copy()
        digest.update(np.asarray(ids, dtype="<i8").tobytes())
        name = digest.hexdigest()
        return self.folder / name[:2] / f"{name[2:34]}.npy"

    def write(self, path: Path, values: HalfArray) -> None:
        """Whole or not at all: a killed writer leaves no half file under the final name."""
        try:
            make_private(path.parent)
            with replacing(path, durable=False) as part, part.open("wb") as file:
                np.save(file, values, allow_pickle=False)
        except OSError as problem:
            if problem.errno in FULL:
                raise StoreFullError(
                    f"The disk is full while hidden states are kept in {self.folder}. Make room and start again: what "
                    "was computed so far is kept."
                ) from problem
            raise StoreError(f"Hidden states cannot be kept in {self.folder}: {problem.strerror}.") from problem

    def read(self, path: Path, shape: tuple[int, ...]) -> HalfArray:
        """States of `shape`; StoreError when the file is damaged."""
        try:
            with path.open("rb") as file:
                values = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as problem:
            raise StoreError(f"The kept states {path} cannot be read ({problem}); delete that file.") from problem
        if values.shape != shape or values.dtype != np.float16:
            raise StoreError(
                f"The kept states {path} are {values.dtype} {values.shape}, not {shape}; delete that file."
            )
        return cast(HalfArray, values)


@dataclass
class StatePlan:
    """Distinct prompts and which items use them: `uses` (n_items, 1 + other texts), the hypothesis last.

    `grid` is picked of every prompt, `cells` are what becomes of it.  `cache` None keeps the states in memory.  What
    `compute` measures is added up here; `budget` are the tokens of a batch, less once the device ran out of memory;
    `code` lists the models whose own Python may run.
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
        rows = range(len(self.prompts))
        have = (row in self.kept if self.cache is None else self.paths[row].is_file() for row in rows)
        return np.array([row for row, has_states in zip(rows, have, strict=True) if not has_states], dtype=np.intp)

    def to_compute(self) -> IntArray:
        """The missing prompts; the others are counted as cached."""
        missing = self.missing()
        self.cached += len(self.prompts) - len(missing)
        return missing

    def batches(self, rows: IntArray) -> list[IntArray]:
        """`rows` in batches of at most `budget` tokens, the longest texts first."""
        return [rows[batch] for batch in token_batches([len(self.prompts[row]) for row in rows], self.budget)]

    def keep(self, rows: IntArray, values: HalfArray, seconds: float) -> StateBatch:
        """Take computed states into the cache, or into memory without one, and count their tokens and seconds."""
        for row, states in zip(rows.tolist(), values, strict=True):
            if self.cache is None:
                self.kept[row] = states
            else:
                self.cache.write(self.paths[row], states)
        self.tokens, self.seconds = self.tokens + sum(len(self.prompts[row]) for row in rows), self.seconds + seconds
        return StateBatch(rows, values)

    def states_of(self, row: int) -> HalfArray:
        """(layers, tokens, dim) of one prompt that is not missing."""
        if self.cache is None:
            return self.kept[row]
        return self.cache.read(self.paths[row], self.shape)


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
    if elsewhere is None:
        device = choose_device(spec.device)
        precision = choose_precision(spec, device)
    else:
        device, precision = elsewhere
    others = extraction.others(items)
    cells = Grid.of(facts, extraction, others)
    grid = cells.read
    limit = min(facts.max_tokens, extraction.max_tokens)
    rows = [fit_prompts(tokenizer, template, fields, limit) for template, fields in readings(items, extraction)]
    places: dict[tuple[int, ...], int] = {}
    # models without special tokens turn an empty text into no token at all; one padding token (0) stands for it
    uses = [[places.setdefault(tuple(ids) or (0,), len(places)) for ids in of_text.ids] for of_text in rows]
    prompts = [list(ids) for ids in places]
    cut = np.array([of_text.cut for of_text in rows], dtype=np.bool_)
    furthest = max((-(token_offset(name) or 0) for name in grid.tokens), default=0)
    short = np.array([len(ids) < furthest for ids in prompts], dtype=np.bool_)
    use = np.array(uses, dtype=np.intp).T.reshape(len(items), len(rows))
    cache = None
    if cache_dir is not None:
        cache = StateCache(cache_dir, f"{facts.fingerprint} {precision}", grid)
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
        n_truncated=int(cut.any(axis=0).sum()) if items else 0,
        n_short=int(short[use].any(axis=1).sum()) if items else 0,
        n_lacking=sum(any(is_blank(getattr(item, part)) for part in others) for item in items),
        cache=cache,
        paths=[cache.path(ids) for ids in prompts] if cache is not None else [],
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
    reader = StateReader((load or (lambda: load_model(plan.spec, plan.code)))(), plan.grid)
    waiting = plan.batches(rows)[::-1]  # to be taken from the end
    while waiting:
        batch = waiting.pop()
        started = time.perf_counter()
        values = unless_memory_ends(partial(reader.read, [plan.prompts[row] for row in batch]))
        if values is None:
            longest = max(len(plan.prompts[row]) for row in batch)
            if len(batch) == 1:
                raise JudgeError(
                    f"The device {plan.device} ran out of memory on a single text of {longest} tokens. Lower "
                    "max_tokens, or use a smaller model or another device."
                )
            plan.n_halved, plan.budget = plan.n_halved + 1, len(batch) * longest // 2
            waiting = plan.batches(np.concatenate([batch, *waiting]))[::-1]
            continue
        yield plan.keep(batch, values, time.perf_counter() - started)


def collect(plan: StatePlan) -> States:
    """The States of all items; UsageError when prompts are still missing."""
    lacking = len(plan.missing())
    if lacking:
        raise UsageError(f"{lacking} of {len(plan.prompts)} prompts have no states yet: compute them first.")
    layers, _, dim = plan.shape
    is_joined = bool(plan.extraction.beside)
    values = np.empty((len(plan.uses), layers, len(plan.cells.tokens), 3 * dim if is_joined else dim), dtype=np.float16)
    put_together = joined if is_joined else Compared(plan.grid.tokens, plan.cells.tokens)
    for item in np.argsort(plan.uses[:, 0], kind="stable") if len(plan.uses) else ():
        values[item] = as_half(put_together([plan.states_of(int(row)) for row in plan.uses[item]]))
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


def joined(texts: Sequence[HalfArray]) -> Any:
    """(layers, tokens, 3 dim) of the states u of the other text and v of the hypothesis: [u−v, |u−v|, u·v]."""
    u, v = (text.astype(np.float64) for text in texts)
    return np.concatenate([u - v, np.abs(u - v), u * v], axis=-1)


class Compared:
    """Makes the `cells` (token names, some behind "source:" or "context:") out of states `read` at each token."""

    def __init__(self, read: Sequence[str], cells: Sequence[str]) -> None:
        others, named = list[str](parts_in(cells)), [name.rpartition(":") for name in cells]
        self._own = [read.index(token) for _, _, token in named]
        self._gaps = [(cell, others.index(part)) for cell, (part, _, _) in enumerate(named) if part]

    def __call__(self, texts: Sequence[HalfArray]) -> Any:
        """(layers, cells, dim) of the states (layers, tokens read, dim) of the other texts and, last, the hypothesis.

        A cell behind a part is |u−v|: how far the two texts lie apart in each dimension.
        """
        cells = texts[-1][:, self._own].astype(np.float32)
        with np.errstate(invalid="ignore"):  # what is infinite leaves its cell undefined
            for cell, other in self._gaps:
                cells[:, cell] = np.abs(texts[other][:, self._own[cell]].astype(np.float32) - cells[:, cell])
        return cells


def as_half(values: Any) -> HalfArray:
    """float16; what is too large for it becomes infinite, and its cell undefined."""
    with np.errstate(over="ignore"):
        return cast(HalfArray, values.astype(np.float16))


class Machines:
    """One model on this machine (`address` "") or on the cluster at `address` ("auto" or HOST:PORT of its head).

    `code` lists the models whose own Python may run.
    """

    def __init__(self, spec: ModelSpec, address: str = "", code: CodeAllowed = ()) -> None:
        self._spec, self._address, self._code = spec, address, code
        self._loaded: LoadedModel | None = None

    def plan(self, items: Sequence[Item], extraction: Extraction, cache_dir: Path | None) -> StatePlan:
        """`plan_states` for where it will be computed: device and number format are those of the cluster's nodes."""
        elsewhere = (self._cluster.device, self._cluster.precision) if self._address else None
        return plan_states(items, self._spec, extraction, cache_dir, elsewhere=elsewhere, code=self._code)

    def compute(self, plan: StatePlan) -> Iterator[StateBatch]:
        """`compute` here, with the model kept in memory, or `compute_on` the cluster."""
        if not self._address:
            return compute(plan, self._load)
        from core.repeval.cluster import compute_on

        return compute_on(self._address, self._cluster, plan)

    def _load(self) -> LoadedModel:
        if self._loaded is None:
            self._loaded = load_model(self._spec, self._code)
        return self._loaded

    @cached_property
    def _cluster(self) -> Cluster:
        from core.repeval.cluster import cluster_at

        return cluster_at(self._address, self._spec)


def extract(
    golden: GoldenSet,
    spec: ModelSpec | None = None,
    extraction: Extraction | None = None,
    cache_dir: Path | None = None,
    on_progress: OnProgress | None = None,
    *,
    ray: str = "",
    code: CodeAllowed = (),
) -> States:
    """The states of every item of `golden` (003 section 3.1); what `cache_dir` holds already is not computed again.

    `on_progress(done, total)` counts distinct prompts.  ModelNotFoundError and JudgeError about the model, UsageError
    about the template, StoreError about the cache.  `ray` is the address of a cluster to compute on ("auto" or
    HOST:PORT), "" computes here; JobError when the cluster fails.  `code` lists the
    models whose own Python may run.
    """
    machines = Machines(spec or ModelSpec(), ray, code)
    plan = machines.plan(golden.items, extraction or Extraction(), cache_dir)
    report: OnProgress = on_progress or (lambda _done, _total: None)
    total = len(plan.prompts)
    done = total - len(plan.missing())
    report(done, total)
    for batch in machines.compute(plan):
        done += len(batch.rows)
        report(done, total)
    return collect(plan)
