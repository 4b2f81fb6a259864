"""Read hidden states on a Ray cluster with Ray Data: an actor with the model on each GPU, or on each node without one.

The states come back to the caller, who keeps them in the cache: what a cluster has read, a single machine finds.
Batches are cut as one process cuts them, so the states are the same.  Where a node is lost, Ray reads its batches on
another.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from core.cluster import connected, plain_errors
from core.errors import ConcordError, JobError, JudgeError
from core.repeval.model import Device, ModelSpec, Precision, choose_precision, load_model
from core.repeval.state_plan import StateBatch, StatePlan, compute

LONGEST_STEP = 1800.0
"""Seconds for what may load much before the cluster is given up."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a cluster offers for one model: `slots` actors on `device` in `precision`; `needs` is what one takes."""

    slots: int
    device: str
    precision: str
    needs: dict[str, float]


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
        on_gpu = ray.remote(num_gpus=1, num_cpus=0)(choose_precision)
        with plain_errors(address):
            precision = ray.get(on_gpu.remote(spec, "cuda"), timeout=LONGEST_STEP)
        return Cluster(gpus, "cuda", precision, {"num_gpus": 1, "num_cpus": 0})
    cpus = [node["CPU"] for node in nodes if node.get("CPU", 0) >= 1]
    if not cpus:
        raise JobError(f"The Ray cluster at {address} has neither GPUs nor processors to offer; start nodes with some.")
    # as much of a node that no other holds the model twice, and room for the task that hands out batches
    return Cluster(len(cpus), "cpu", choose_precision(spec, "cpu"), {"num_cpus": max(0.5, min(cpus) - 0.2)})


def compute_on(address: str, cluster: Cluster, plan: StatePlan) -> Iterator[StateBatch]:
    """Compute the missing prompts on the cluster; like `compute`, a batch at a time.

    Raises what `compute` raises, with the node's name, and JobError when the cluster fails for good.
    """
    missing = plan.to_compute()
    if not len(missing):
        return
    connected(address)
    since = time.perf_counter()
    from ray import data

    prompts = [
        {"rows": batch.tolist(), "prompts": [plan.prompts[row] for row in batch]} for batch in plan.batches(missing)
    ]
    bare = replace(plan, prompts=[], uses=np.empty((0, 1), dtype=np.intp), paths=[], kept={}, cached=0)
    read = data.from_items(prompts, override_num_blocks=len(prompts)).map_batches(
        StateActor,
        fn_constructor_args=(bare,),
        batch_size=1,
        batch_format="pyarrow",
        compute=data.ActorPoolStrategy(size=cluster.slots),
        **cluster.needs,
    )
    with plain_errors(address):
        for table in read.iter_batches(batch_size=None, batch_format="pyarrow"):
            for part in table.to_pylist():
                if part["problem"]:
                    raise JudgeError(f"On the node {part['node']}: {part['problem']}")
                values = np.frombuffer(part["values"], dtype=np.float16).reshape(len(part["rows"]), *plan.shape)
                now = time.perf_counter()
                batch = plan.keep(np.array(part["rows"], dtype=np.intp), values, now - since)
                plan.n_halved, plan.budget = plan.n_halved + part["n_halved"], min(plan.budget, part["budget"])
                since = now
                yield batch


class StateActor:
    """An actor that holds the model of a plan and reads the prompts it is given."""

    def __init__(self, plan: StatePlan) -> None:
        self.plan = plan
        self.loaded: Any = None

    def __call__(self, table: Any) -> Any:
        import pyarrow as arrow
        import ray

        parts = []
        for asked in table.to_pylist():
            part = replace(self.plan, prompts=asked["prompts"], kept={}, n_halved=0)
            answer = {"rows": asked["rows"], "values": b"", "n_halved": 0, "budget": 0, "problem": "", "node": ""}
            try:
                values = np.empty((len(part.prompts), *part.shape), dtype=np.float16)
                for batch in compute(part, partial(self._model, part)):
                    values[batch.rows] = batch.values
                answer |= {"values": values.tobytes(), "n_halved": part.n_halved, "budget": part.budget}
            except ConcordError as error:
                answer |= {"problem": str(error), "node": str(ray.util.get_node_ip_address())}
            parts.append(answer)
        return arrow.Table.from_pylist(parts)

    def _model(self, plan: StatePlan) -> Any:
        if self.loaded is None:
            there = replace(plan.spec, device=cast(Device, plan.device), precision=cast(Precision, plan.precision))
            self.loaded = load_model(there, plan.code)
            if self.loaded.facts.fingerprint != plan.facts.fingerprint:
                raise JudgeError(
                    f"The model {plan.facts.name} is another here than on the host that asked. Bring the same files to "
                    "every node, or name a commit of its repository as the revision."
                )
        return self.loaded
