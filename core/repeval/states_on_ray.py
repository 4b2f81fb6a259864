"""Read hidden states on a Ray cluster.

Each GPU holds a copy of the model; without GPUs, each node holds a copy. Batches are the same as in a single process,
so the states are the same. If a node is lost, another node reads its batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from socket import gethostname
from typing import Any

import numpy as np

from core.cluster import connected, plain_errors
from core.errors import ConcordError, JobError, JudgeError
from core.records import IntArray
from core.repeval.model import LoadedModel, ModelSpec, choose_precision, load_model
from core.repeval.states import Computed, HalfArray, compute

LONGEST_STEP = 1800.0
"""Timeout in seconds for a step that may load a model."""


def cluster_at(address: str, spec: ModelSpec) -> tuple[int, str, str, dict[str, float]]:
    """Connect to a Ray cluster, and find its resources for a model.

    Args:
        address: "auto" or HOST:PORT.

    Returns:
        Number of copies of the model, their device, their precision, and the resources of each copy.

    Raises:
        JobError: Ray is not installed, the cluster cannot be reached, or it has no GPUs or CPUs.
    """
    ray = connected(address)
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if gpus := int(sum(node.get("GPU", 0) for node in nodes)):
        on_gpu = ray.remote(num_gpus=1, num_cpus=0)(choose_precision)
        with plain_errors(address):
            precision = ray.get(on_gpu.remote(spec, "cuda"), timeout=LONGEST_STEP)
        return gpus, "cuda", precision, {"num_gpus": 1, "num_cpus": 0}
    cpus = [node["CPU"] for node in nodes if node.get("CPU", 0) >= 1]
    if not cpus:
        raise JobError(f"The Ray cluster at {address} has no GPUs or CPUs. Start nodes that have GPUs or CPUs.")
    # enough of a node that it gets no second copy of the model, with room for the task that distributes batches
    return len(cpus), "cpu", choose_precision(spec, "cpu"), {"num_cpus": max(0.5, min(cpus) - 0.2)}


def compute_on(
    address: str,
    cluster: tuple[int, str, str, dict[str, float]],
    actor: tuple[Any, ...],
    prompts: Sequence[Sequence[int]],
    batches: Sequence[IntArray],
) -> Iterator[Computed]:
    """Yield the hidden states of `batches` of prompts, read by Ray actors. Raises JobError if the cluster fails."""
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
                    raise JudgeError(part["problem"])
                values = np.frombuffer(part["values"], dtype=np.float16).reshape(part["shape"])
                yield np.array(part["rows"], dtype=np.intp), values


class StateActor:
    """A Ray actor that reads the hidden states of prompts at `cells` (layers, tokens).

    It loads the model when the first prompts arrive. The weights must match `fingerprint`.
    """

    def __init__(self, spec: ModelSpec, fingerprint: str, cells: tuple[Sequence[int], Sequence[str]]) -> None:
        self.spec, self.fingerprint, self.cells = spec, fingerprint, cells

    @cached_property
    def model(self) -> LoadedModel:
        loaded = load_model(self.spec)
        if loaded.facts.fingerprint != self.fingerprint:
            raise JudgeError(
                f"The model {loaded.facts.name} on the node {gethostname()} differs from the model on the machine "
                "that started the job. Copy the same files to every node, or set the revision to a commit of the "
                "model's repository."
            )
        return loaded

    def __call__(self, table: Any) -> Any:
        import pyarrow as arrow

        answers = []
        for asked in table.to_pylist():
            prompts, read, problem = asked["prompts"], dict[int, HalfArray](), ""
            whole = len(prompts) * max(map(len, prompts))
            try:
                for rows, states in compute(self.model, self.cells, prompts, np.arange(len(prompts)), whole):
                    read.update(zip(rows.tolist(), states, strict=True))
            except ConcordError as error:  # returned as text, so that Ray neither retries nor wraps it
                problem = str(error)
            values = np.array([] if problem else [read[row] for row in range(len(prompts))], dtype=np.float16)
            answer = {"rows": asked["rows"], "values": values.tobytes(), "shape": [*values.shape], "problem": problem}
            answers.append(answer)
        return arrow.Table.from_pylist(answers)
