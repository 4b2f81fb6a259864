"""Read hidden states: from the cache, by a model on this machine, or on a Ray cluster.

The cache holds one float16 .npy file a distinct prompt, named by the content that decides its states: weights, number
format, cells, and token ids (template, text and cut are in them).  Every batch is in the cache before the next is read.

On a cluster, Ray Data gives each GPU an actor with the model, or each node without one.  Batches are cut as one process
cuts them, so the states are the same.  Where a node is lost, Ray reads its batches on another.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from core.cluster import connected, plain_errors
from core.errors import ConcordError, JobError, JudgeError, StoreError, StoreFullError
from core.files import FULL, make_private, replacing
from core.records import GoldenSet, IntArray, Item, canonical_json
from core.repeval.model import (
    CodeAllowed,
    Device,
    LoadedModel,
    ModelSpec,
    Precision,
    choose_device,
    choose_precision,
    describe,
    load_model,
    load_tokenizer,
    token_batches,
    token_ids,
    unless_memory_ends,
)
from core.repeval.states import FIELDS, Extraction, HalfArray, States, cells_of, n_lacking, readings, render

OnProgress = Callable[[int, int], None]
Computed = tuple[IntArray, HalfArray, int]
"""Numbers (b,) of prompts, their states (b, n_layers, n_tokens, dim), and how often memory ended before they came."""

BATCH_TOKENS = {"cpu": 512, "mps": 8_192, "cuda": 16_384}
"""Tokens in a batch, padding counted.  On a CPU small batches of like length keep the caches warm."""
CACHE_VERSION = 1  # raise when the same key would mean other numbers
LONGEST_STEP = 1800.0
"""Seconds for what may load much before a cluster is given up."""


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
    """Read the states of every item of `golden`; what `cache_dir` holds already is not computed again.

    Args:
        golden: The items.
        spec: The model; None is the embedded encoder.
        extraction: Which states are read from which text.
        cache_dir: Folder of the cache, None for none.
        on_progress: Called with (done, total) distinct prompts.
        ray: Address of a cluster to compute on ("auto" or HOST:PORT), "" computes here.
        code: Models whose own Python may run.

    Raises:
        ModelNotFoundError, JudgeError: About the model.
        UsageError: About the template.
        StoreError: About the cache.
        JobError: The cluster failed.
    """
    reader = StateReader(spec or ModelSpec(), ray, code)
    return reader.read(golden.items, extraction or Extraction(), cache_dir, on_progress)


class StateReader:
    """A model that is loaded with the first texts and held; arguments as of `extract`."""

    def __init__(self, spec: ModelSpec, ray: str = "", code: CodeAllowed = ()) -> None:
        self._spec, self._ray, self._code = spec, ray, code

    @cached_property
    def _model(self) -> LoadedModel:
        return load_model(self._spec, self._code)

    @cached_property
    def _cluster(self) -> tuple[int, str, str, dict[str, float]]:
        return cluster_at(self._ray, self._spec)

    def read(
        self,
        items: Sequence[Item],
        extraction: Extraction,
        cache_dir: Path | None = None,
        on_progress: OnProgress | None = None,
    ) -> States:
        """Return the states of `items`; raises as `extract`.

        A cell behind a part, such as "source:mean", is |u−v|: how far the two texts lie apart in each dimension.
        """
        facts, tokenizer = describe(self._spec, self._code), load_tokenizer(self._spec, self._code)
        if self._ray:
            device, precision = self._cluster[1:3]
        else:
            device = choose_device(self._spec.device)
            precision = choose_precision(self._spec, device)
        others = extraction.others(items)
        layers, cells = cells_of(facts, extraction, others)
        named = [name.rpartition(":") for name in cells]
        tokens = tuple(dict.fromkeys(token for _, _, token in named))
        prompts, uses, cut = prompts_of(tokenizer, items, extraction, min(facts.max_tokens, extraction.max_tokens))
        about = canonical_json([CACHE_VERSION, f"{facts.fingerprint} {precision}", [*layers], [*tokens]])
        kept = StateCache(cache_dir, about, prompts, (len(layers), len(tokens), facts.dim))
        missing = np.array([row for row in range(len(prompts)) if row not in kept], dtype=np.intp)
        done, n_halved, seconds = len(prompts) - missing.size, 0, 0.0
        if on_progress is not None:
            on_progress(done, len(prompts))
        if missing.size:
            budget = extraction.batch_tokens or BATCH_TOKENS[device]
            if self._ray:
                there = replace(self._spec, device=cast(Device, device), precision=cast(Precision, precision))
                actor = (there, self._code, facts.fingerprint, (layers, tokens))
                read = compute_on(self._ray, self._cluster, actor, prompts, token_rows(prompts, missing, budget))
            else:
                read = compute(self._model, (layers, tokens), prompts, missing, budget)
            started = time.perf_counter()
            for rows, states, halved in read:
                for row, values in zip(rows.tolist(), states, strict=True):
                    kept.put(row, values)
                done, n_halved, seconds = done + len(rows), n_halved + halved, time.perf_counter() - started
                if on_progress is not None:
                    on_progress(done, len(prompts))
        own = [tokens.index(token) for _, _, token in named]
        gaps = [(cell, list[str](others).index(part)) for cell, (part, _, _) in enumerate(named) if part]
        values = np.empty((len(items), len(layers), len(cells), facts.dim), dtype=np.float16)
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinite leaves its cell undefined
            for item in np.argsort(uses[:, 0], kind="stable"):
                *of_others, text = (kept.get(int(row))[:, own].astype(np.float32) for row in uses[item])
                for cell, other in gaps:
                    text[:, cell] = np.abs(of_others[other][:, cell] - text[:, cell])
                values[item] = text.astype(np.float16)
        furthest = max((-_offset(name) for name in tokens), default=0)
        short = np.array([len(ids) < furthest for ids in prompts], dtype=np.bool_)
        return States(
            values=values,
            layers=layers,
            token_names=cells,
            model=facts.name,
            revision=facts.revision,
            extraction=extraction,
            device=device,
            precision=precision,
            n_truncated=int(cut.sum()),
            n_short=int(short[uses].any(axis=1).sum()),
            n_lacking=n_lacking(items, *others),
            n_halved=n_halved,
            prompts=len(prompts),
            cached=len(prompts) - missing.size,
            tokens=sum(len(prompts[row]) for row in missing),
            seconds=seconds,
            fingerprint=facts.fingerprint,
        )


class StateCache:
    """States of `prompts`, each of `shape` (n_layers, n_tokens, dim): files below `folder`, or in memory without one.

    `about` is what decides the states next to the token ids.
    """

    def __init__(
        self, folder: Path | None, about: str, prompts: Sequence[Sequence[int]], shape: tuple[int, int, int]
    ) -> None:
        self._shape, self._memory, self._files = shape, dict[int, HalfArray](), list[Path]()
        if folder is not None:
            whole = hashlib.sha256(about.encode())
            self._place = folder / "states" / whole.hexdigest()[:16]
            for ids in prompts:
                digest = whole.copy()
                digest.update(np.asarray(ids, dtype="<i8").tobytes())
                name = digest.hexdigest()
                self._files.append(self._place / name[:2] / f"{name[2:34]}.npy")

    def __contains__(self, row: int) -> bool:
        return self._files[row].is_file() if self._files else row in self._memory

    def get(self, row: int) -> HalfArray:
        """Return states that are there; StoreError when their file is damaged."""
        if not self._files:
            return self._memory[row]
        path = self._files[row]
        try:
            with path.open("rb") as file:
                values = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as problem:
            raise StoreError(f"The cached states {path} cannot be read ({problem}); delete that file.") from problem
        if values.shape != self._shape or values.dtype != np.float16:
            raise StoreError(
                f"The cached states {path} are {values.dtype} {values.shape}, not {self._shape}; delete that file."
            )
        return cast(HalfArray, values)

    def put(self, row: int, values: HalfArray) -> None:
        """Write whole or not at all: a killed writer leaves no half file under the final name."""
        if not self._files:
            self._memory[row] = values
            return
        try:
            make_private(self._files[row].parent)
            with replacing(self._files[row], durable=False) as part, part.open("wb") as file:
                np.save(file, values, allow_pickle=False)
        except OSError as problem:
            if problem.errno in FULL:
                raise StoreFullError(
                    f"The disk is full while hidden states are cached in {self._place}. Make room and start again: "
                    "what was computed so far is kept."
                ) from problem
            raise StoreError(f"Hidden states cannot be cached in {self._place}: {problem.strerror}.") from problem


# ── the prompts ──────────────────────────────────────────────────────────────────────────────────────────────────


def prompts_of(
    tokenizer: Any, items: Sequence[Item], extraction: Extraction, limit: int
) -> tuple[list[list[int]], IntArray, IntArray]:
    """Return distinct prompts (token ids), which of them each item uses (n_items, other texts + 1), and who was cut.

    The hypothesis comes last in the second.  The third is (n_items,) of booleans.
    """
    fitted = [fit_prompts(tokenizer, template, fields, limit) for template, fields in readings(items, extraction)]
    places: dict[tuple[int, ...], int] = {}
    # models without special tokens turn an empty text into no token at all; one padding token (0) stands for it
    uses = [[places.setdefault(tuple(row) or (0,), len(places)) for row in ids] for ids, _ in fitted]
    cut = np.any([cut for _, cut in fitted], axis=0)
    return [list(ids) for ids in places], np.array(uses, dtype=np.intp).T.reshape(len(items), len(fitted)), cut


def fit_prompts(
    tokenizer: Any, template: str, fields: Sequence[Mapping[str, str]], limit: int
) -> tuple[list[list[int]], list[bool]]:
    """Return token ids of `template` filled with each of `fields`, and whether each was cut to `limit` tokens.

    What is too long loses the *beginning* of its source first, then of its context, and only then of the hypothesis
    itself, because states are read at the end.  What is asked alike (one source for many texts, say) is tokenised once.
    JudgeError when the template alone is longer than `limit`.
    """
    used = [name for name in FIELDS if f"{{{name}}}" in template]
    asked = [tuple(texts[name] for name in used) for texts in fields]
    distinct = dict(zip(asked, fields, strict=True))
    whole = token_ids(tokenizer, [render(template, texts) for texts in distinct.values()])
    rows = dict(zip(distinct, whole, strict=True))
    too_long = {key for key, ids in rows.items() if len(ids) > limit}
    for key in too_long:
        texts, ids = dict(distinct[key]), rows[key]
        for name in ("source", "context", "hypothesis"):
            while len(ids) > limit and texts[name] and name in used:
                own = max(1, len(token_ids(tokenizer, [texts[name]])[0]))
                characters = math.ceil(len(texts[name]) * min(1.0, (len(ids) - limit) / own))
                space = re.compile(r"\s\S").search(texts[name], max(characters - 1, 0))  # from the next word on
                texts[name] = texts[name][space.start() + 1 if space else characters :]
                ids = token_ids(tokenizer, [render(template, texts)])[0]
        if len(ids) > limit:
            raise JudgeError(
                f"The template alone takes {len(ids)} tokens, but only {limit} are allowed (by the model or "
                "`max_tokens`). Shorten the template."
            )
        rows[key] = ids
    return [rows[key] for key in asked], [key in too_long for key in asked]


# ── the forward pass ─────────────────────────────────────────────────────────────────────────────────────────────


def read_batch(
    model: LoadedModel, layers: Sequence[int], tokens: Sequence[str], prompts: Sequence[Sequence[int]]
) -> HalfArray:
    """Return (n, n_layers, n_tokens, dim) float16 states of `prompts` (token ids without padding, none empty).

    Layers are `hidden_states` of transformers: 0 the embeddings as the first block gets them, i the output of block i,
    the last one after the final norm where a model has one.  What is too large for float16 becomes infinite.
    """
    import torch

    inputs = model.pad(prompts)
    mask = inputs["attention_mask"]
    counts, rows = mask.sum(dim=1), torch.arange(len(mask), device=mask.device)
    with torch.inference_mode():
        backbone = getattr(model.model, "base_model", model.model)
        hidden = backbone(**inputs, output_hidden_states=True).hidden_states
        read = []
        for layer in layers:
            for name in tokens:
                if name == "mean":
                    real = hidden[layer].masked_fill(mask.unsqueeze(-1) == 0, 0)
                    read.append(real.sum(dim=1, dtype=torch.float32) / counts.unsqueeze(-1))
                else:  # "first" is place 0
                    places = (counts + _offset(name)).clamp(min=0) if _offset(name) else torch.zeros_like(counts)
                    read.append(hidden[layer][rows, places].float())
        states = torch.stack(read, dim=1).half().cpu().numpy()
    return cast(HalfArray, states.reshape(len(prompts), len(layers), len(tokens), -1))


def _offset(name: str) -> int:
    """Return -k for the token "-k", else 0."""
    return int(name) if name.startswith("-") else 0


def token_rows(prompts: Sequence[Sequence[int]], rows: IntArray, budget: int) -> list[IntArray]:
    """Return the numbers `rows` of prompts in batches of at most `budget` tokens, the longest first."""
    return [rows[batch] for batch in token_batches([len(prompts[row]) for row in rows], budget)]


def compute(
    model: LoadedModel,
    cells: tuple[Sequence[int], Sequence[str]],
    prompts: Sequence[Sequence[int]],
    rows: IntArray,
    budget: int,
) -> Iterator[Computed]:
    """Read `cells` (layers, tokens) of the prompts numbered `rows`, in batches of `budget` tokens, longest first.

    When the device runs out of memory the batch is halved, for all that follow too; JudgeError when even one text is
    too much.
    """
    waiting, halved = token_rows(prompts, rows, budget)[::-1], 0  # to be taken from the end
    while waiting:
        batch = waiting.pop()
        values = unless_memory_ends(partial(read_batch, model, *cells, [prompts[row] for row in batch]))
        if values is not None:
            yield batch, values, halved
            halved = 0
            continue
        longest = max(len(prompts[row]) for row in batch)
        if len(batch) == 1:
            raise JudgeError(
                f"The device {model.device} ran out of memory on a single text of {longest} tokens. Lower max_tokens, "
                "or use a smaller model or another device."
            )
        halved += 1
        waiting = token_rows(prompts, np.concatenate([batch, *waiting]), len(batch) * longest // 2)[::-1]


# ── on a cluster ─────────────────────────────────────────────────────────────────────────────────────────────────


def cluster_at(address: str, spec: ModelSpec) -> tuple[int, str, str, dict[str, float]]:
    """Connect to the cluster at `address` ("auto" or HOST:PORT) and find out what it offers for `spec`.

    Returns how many actors it has room for, their device and number format, and what one of them takes.  JobError when
    ray is not installed, the cluster cannot be reached, or it has not the device asked for.
    """
    ray = connected(address)
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = int(sum(node.get("GPU", 0) for node in nodes))
    if spec.device == "mps" or (spec.device == "cuda" and not gpus):
        raise JobError(f"The device {spec.device} was asked for, but the Ray cluster at {address} has none. Use auto.")
    if gpus and spec.device != "cpu":
        on_gpu = ray.remote(num_gpus=1, num_cpus=0)(choose_precision)
        with plain_errors(address):
            precision = ray.get(on_gpu.remote(spec, "cuda"), timeout=LONGEST_STEP)
        return gpus, "cuda", precision, {"num_gpus": 1, "num_cpus": 0}
    cpus = [node["CPU"] for node in nodes if node.get("CPU", 0) >= 1]
    if not cpus:
        raise JobError(f"The Ray cluster at {address} has neither GPUs nor processors to offer; start nodes with some.")
    # as much of a node that no other holds the model twice, and room for the task that hands out batches
    return len(cpus), "cpu", choose_precision(spec, "cpu"), {"num_cpus": max(0.5, min(cpus) - 0.2)}


def compute_on(
    address: str,
    cluster: tuple[int, str, str, dict[str, float]],
    actor: tuple[Any, ...],
    prompts: Sequence[Sequence[int]],
    batches: Sequence[IntArray],
) -> Iterator[Computed]:
    """Read `batches` of prompts by actors made with the arguments `actor`; as `compute`, errors name the node.

    JobError when the cluster fails for good.
    """
    connected(address)
    from ray import data

    slots, _, _, needs = cluster
    asked = [{"rows": batch.tolist(), "prompts": [prompts[row] for row in batch]} for batch in batches]
    read = data.from_items(asked, override_num_blocks=len(asked)).map_batches(
        StateActor,
        fn_constructor_args=actor,
        batch_size=1,
        batch_format="pyarrow",
        compute=data.ActorPoolStrategy(size=slots),
        **needs,
    )
    with plain_errors(address):
        for table in read.iter_batches(batch_size=None, batch_format="pyarrow"):
            for part in table.to_pylist():
                if part["problem"]:
                    raise JudgeError(f"On the node {part['node']}: {part['problem']}")
                values = np.frombuffer(part["values"], dtype=np.float16).reshape(part["shape"])
                yield np.array(part["rows"], dtype=np.intp), values, part["n_halved"]


class StateActor:
    """An actor that holds the model of `spec`, with the weights that `fingerprint` names, and reads prompts."""

    def __init__(
        self, spec: ModelSpec, code: CodeAllowed, fingerprint: str, cells: tuple[Sequence[int], Sequence[str]]
    ) -> None:
        self.spec, self.code, self.fingerprint, self.cells = spec, code, fingerprint, cells

    @cached_property
    def model(self) -> LoadedModel:
        """The model, loaded with the first prompts.  JudgeError where its weights are others than `fingerprint`."""
        loaded = load_model(self.spec, self.code)
        if loaded.facts.fingerprint != self.fingerprint:
            raise JudgeError(
                f"The model {loaded.facts.name} is another here than on the host that asked. Bring the same files to "
                "every node, or name a commit of its repository as the revision."
            )
        return loaded

    def __call__(self, table: Any) -> Any:
        import pyarrow as arrow
        import ray

        answers = []
        for asked in table.to_pylist():
            prompts, n_halved = asked["prompts"], 0
            answer = {"rows": asked["rows"], "values": b"", "shape": [0], "n_halved": 0, "problem": "", "node": ""}
            try:
                read = dict[int, HalfArray]()
                whole = len(prompts) * max(map(len, prompts))
                for rows, states, halved in compute(self.model, self.cells, prompts, np.arange(len(prompts)), whole):
                    read.update(zip(rows.tolist(), states, strict=True))
                    n_halved += halved
                values = np.stack([read[row] for row in range(len(prompts))])
                answer |= {"values": values.tobytes(), "shape": [*values.shape], "n_halved": n_halved}
            except ConcordError as error:
                answer |= {"problem": str(error), "node": str(ray.util.get_node_ip_address())}
            answers.append(answer)
        return arrow.Table.from_pylist(answers)
