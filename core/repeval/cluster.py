"""Hidden states computed in shards on a Ray cluster.

Shards are whole batches, cut as one process would cut them, so the states are the
same, and they come back to the caller, who keeps them in his cache: what a cluster has read, a single machine finds.

A node that is lost costs its unfinished shards, which Ray gives to another.  A GPU that runs out of memory halves the
batch as in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np

from core.cluster import LONGEST_STEP, RETRIES, connected, plain_errors, shared_out, this_node
from core.errors import ConcordError, JobError, JudgeError
from core.records import IntArray
from core.repeval.extraction import StatePlan, compute
from core.repeval.model import CodeAllowed, Device, LoadedModel, ModelSpec, Precision, choose_precision, load_model
from core.repeval.states import HalfArray, StateBatch

SHARD_BATCHES = 4


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a cluster offers for one model: `slots` tasks at a time on `device` in `precision`.

    A task takes one GPU, or `cpus` processors: all of the smallest node, so that no node holds the model twice over.
    """

    slots: int
    device: str
    precision: str
    cpus: int

    @property
    def needs(self) -> dict[str, float]:
        """What a task takes of its node."""
        return {"num_gpus": 1, "num_cpus": 0} if self.device == "cuda" else {"num_cpus": self.cpus}


@dataclass(frozen=True)
class _Answer:
    """What a shard brings back: states (n, layers, tokens, dim) of its prompts in their order, or a `problem`."""

    values: HalfArray | None = None
    n_halved: int = 0
    budget: int = 0
    problem: str = ""
    node: str = ""


def cluster_at(address: str, spec: ModelSpec) -> Cluster:
    """Connect to the cluster at `address` ("auto" or HOST:PORT) and find out what it offers for `spec`.

    JobError when ray is not installed, the cluster cannot be reached, or it has not the device asked for.
    """
    ray = connected(address)
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = int(sum(node.get("GPU", 0) for node in nodes))
    if spec.device == "mps" or (spec.device == "cuda" and not gpus):
        raise JobError(f"The device {spec.device} was asked for, but the Ray cluster at {address} has none. Use auto.")
    if gpus and spec.device != "cpu":
        on_gpu = ray.remote(num_gpus=1, num_cpus=0, max_retries=RETRIES)(choose_precision)
        with plain_errors(address):
            return Cluster(gpus, "cuda", ray.get(on_gpu.remote(spec, "cuda"), timeout=LONGEST_STEP), 0)
    cpus_of_nodes = [int(node["CPU"]) for node in nodes if node.get("CPU", 0) >= 1]
    if not cpus_of_nodes:
        raise JobError(f"The Ray cluster at {address} has neither GPUs nor processors to offer; start nodes with some.")
    cpus = min(cpus_of_nodes)
    return Cluster(sum(count // cpus for count in cpus_of_nodes), "cpu", choose_precision(spec, "cpu"), cpus)


def compute_on(
    address: str,
    cluster: Cluster,
    plan: StatePlan,
    rows: IntArray | None = None,
    on_wait: Callable[[], None] = lambda: None,
) -> Iterator[StateBatch]:
    """Compute the missing prompts (of `rows` only, where given) on the cluster; like `compute`, a shard at a time.

    `seconds` of a batch are those since the last one, so that they add up to the time it took, not to that of all
    nodes.  `on_wait` is called about twice a second and may raise; what runs on the cluster is cancelled then.
    Raises what `compute` raises, with the node's name, and JobError when the cluster fails for good.
    """
    missing = plan.to_compute(rows)
    if not len(missing):
        return
    shards, since = _shards(plan, missing), time.perf_counter()
    plans = [(_shard_plan(plan, rows),) for rows in shards]
    with closing(shared_out(address, _read_shard, plans, cluster.needs, on_wait)) as answers:
        for place, answer in answers:
            if answer.problem or answer.values is None:
                raise JudgeError(f"On the node {answer.node}: {answer.problem}")
            now = time.perf_counter()
            batch = plan.keep(shards[place], answer.values, now - since)
            plan.n_halved, plan.budget = plan.n_halved + answer.n_halved, min(plan.budget, answer.budget)
            since = now
            yield batch


def _shards(plan: StatePlan, rows: IntArray) -> list[IntArray]:
    """`rows` in runs of whole batches, the longest texts first."""
    batches = plan.batches(rows)
    return [np.concatenate(batches[k : k + SHARD_BATCHES]) for k in range(0, len(batches), SHARD_BATCHES)]


def _shard_plan(plan: StatePlan, rows: IntArray) -> StatePlan:
    """The plan of one shard: its prompts, nothing kept."""
    return replace(
        plan,
        prompts=[plan.prompts[row] for row in rows],
        uses=np.empty((0, 1), dtype=np.intp),
        cache=None,
        paths=[],
        kept={},
        cached=0,
        tokens=0,
        seconds=0.0,
        n_halved=0,
    )


# ── on the nodes ─────────────────────────────────────────────────────────────────────────────────────────────


def _read_shard(part: StatePlan) -> _Answer:
    """The states of every prompt of `part`; our own errors come back as words, all others are Ray's to repeat."""
    try:
        there = replace(part.spec, device=cast(Device, part.device), precision=cast(Precision, part.precision))
        loaded = _model(there, part.code)
        if loaded.facts.fingerprint != part.facts.fingerprint:
            raise JudgeError(
                f"The model {part.facts.name} is another here than on the host that asked. Bring the same files to "
                "every node, or name a commit of its repository as the revision."
            )
        values = np.empty((len(part.prompts), *part.shape), dtype=np.float16)
        for batch in compute(part, lambda: loaded):
            values[batch.rows] = batch.values
        return _Answer(values, part.n_halved, part.budget)
    except ConcordError as error:
        return _Answer(problem=str(error), node=this_node())


@lru_cache(maxsize=1)
def _model(spec: ModelSpec, code: CodeAllowed) -> LoadedModel:
    """The model, kept by a node's process from shard to shard."""
    return load_model(spec, code)
