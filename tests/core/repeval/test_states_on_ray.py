"""Hidden states on a Ray cluster: without one, and what is refused."""

from __future__ import annotations

import sys
from socket import gethostname
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as arrow
import pytest

from core.errors import JobError, UsageError
from core.records import GoldenSet, Item
from core.repeval import Extraction, ModelSpec, describe, extract, states_on_ray
from core.repeval.model import load_tokenizer
from core.repeval.states import prompts_of
from core.repeval.states_on_ray import StateActor, cluster_at
from core.settings import Settings

SMALL = Extraction(layers=(0, 6), tokens=("-1", "mean"))


class Nodes:
    """Stands in for ray: nodes with these resources."""

    def __init__(self, resources: list[dict[str, float]]) -> None:
        self.resources = resources
        self.exceptions = SimpleNamespace(RayError=type("RayError", (Exception,), {}))

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": resource} for resource in self.resources]

    def remote(self, **_: Any) -> Any:
        return lambda function: SimpleNamespace(remote=function)

    def get(self, answer: Any, timeout: float = 0) -> Any:
        return answer


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Nodes:
    result = Nodes([{"CPU": 4.0}])
    monkeypatch.setattr(states_on_ray, "connected", lambda address: result)
    monkeypatch.setitem(sys.modules, "ray", result)
    return result


GOLDEN = GoldenSet(
    "texts", "single", tuple(Item(f"i{k}", "word " * (1 + k % 9) + str(k), f"s{k}") for k in range(60)), {}
)


def test_an_actor_reads_the_states_of_one_process() -> None:
    spec = ModelSpec(precision="float32")
    prompts, uses, _ = prompts_of(load_tokenizer(spec), GOLDEN.items, SMALL, 512)
    cells = (SMALL.layers, SMALL.tokens)
    actor, expected = StateActor(spec, describe(spec).fingerprint, cells), extract(GOLDEN, spec, SMALL).values
    for batch in ([3, 11, 40], [0, 1]):  # the second must not be taken for a part of the first
        asked = arrow.Table.from_pylist([{"rows": batch, "prompts": [prompts[row] for row in batch]}])
        (answer,) = actor(asked).to_pylist()
        assert (answer["rows"], answer["problem"]) == (batch, "")
        values = np.frombuffer(answer["values"], dtype=np.float16).reshape(answer["shape"])
        there = expected[[np.flatnonzero(uses[:, 0] == row)[0] for row in batch]]
        np.testing.assert_allclose(values.astype(float), there.astype(float), atol=2e-3)


def test_another_model_on_a_node_is_named_with_the_node() -> None:
    actor = StateActor(ModelSpec(), "another", (SMALL.layers, SMALL.tokens))
    (answer,) = actor(arrow.Table.from_pylist([{"rows": [0], "prompts": [[1, 2]]}])).to_pylist()
    assert answer["problem"].startswith(f"The model minilm on the node {gethostname()} differs")


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{"CPU": 4}, {"CPU": 9}], (2, "cpu", "float32", {"num_cpus": 3.8})),
        ([{"CPU": 4}, {"CPU": 8, "GPU": 2}], (2, "cuda", "float32", {"num_gpus": 1, "num_cpus": 0})),
    ],
)
def test_an_actor_takes_a_gpu_or_a_node(ray: Nodes, resources: list[dict[str, float]], expected: object) -> None:
    ray.resources = resources
    assert cluster_at("auto", ModelSpec(precision="float32")) == expected


def test_a_cluster_without_processors_is_refused(ray: Nodes) -> None:
    ray.resources = [{"memory": 1e9}]
    with pytest.raises(JobError, match="no GPUs or CPUs"):
        cluster_at("auto", ModelSpec())


def test_a_missing_ray_is_told_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        JobError, match=r"CONCORD_RAY .* specifies a cluster \(auto\), but Ray isn't installed.*pip install"
    ):
        extract(GOLDEN, None, SMALL, ray="auto")


@pytest.mark.parametrize("bad", ["head", "ray://head:10001", ":6379"])
def test_what_is_no_address_of_a_cluster_is_refused(bad: str) -> None:
    assert Settings.from_environment({"CONCORD_RAY": " head:6379 "}).ray == "head:6379"
    with pytest.raises(UsageError, match="CONCORD_RAY must be 'auto' or the HOST:PORT"):
        Settings.from_environment({"CONCORD_RAY": bad})
