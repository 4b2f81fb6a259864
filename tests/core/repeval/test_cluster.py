"""Hidden states on a Ray cluster: without one, and what is refused."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import core.cluster
from core.errors import JobError, JudgeError, UsageError
from core.records import Item
from core.repeval import Extraction, Machines, ModelSpec, StatePlan, cluster, collect, plan_states
from core.repeval.cluster import SHARD_BATCHES, Cluster, cluster_at, compute_on
from core.settings import Settings

SMALL = Extraction(layers=(0, 6), tokens=("-1", "mean"), batch_tokens=40)


# ── without a cluster ────────────────────────────────────────────────────────────────────────────────────────


def items() -> list[Item]:
    return [Item(f"i{k}", "word " * (1 + k % 9) + str(k), f"s{k}") for k in range(60)]


@pytest.fixture
def plan() -> StatePlan:
    return plan_states(items(), ModelSpec(), SMALL, elsewhere=("cpu", "float32"))


class OneTask:
    """Stands in for ray: tasks run when they are waited for, in this process; `lost` is raised by the first."""

    exceptions = SimpleNamespace(RayError=type("RayError", (Exception,), {}))

    def __init__(self, resources: list[dict[str, float]] | None = None, lost: Exception | None = None) -> None:
        self.resources, self.lost = resources or [{"CPU": 4.0}, {"CPU": 9.0}], lost
        self.options: dict[str, Any] = {}
        self.sizes: list[int] = []
        self.cancelled = 0

    def remote(self, **options: Any) -> Any:
        self.options = options

        def made(function: Any) -> Any:
            return SimpleNamespace(remote=lambda *arguments: Waiting(function, arguments))

        return made

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": resource} for resource in self.resources]

    def wait(self, tasks: list[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        return tasks[-1:], tasks[:-1]  # the last first: answers need not come in order

    def get(self, task: Any, timeout: float = math.inf) -> Any:
        if self.lost is not None:
            raise self.lost
        if isinstance(task.arguments[0], StatePlan):
            self.sizes.append(len(task.arguments[0].prompts))
        return task.function(*task.arguments)

    def cancel(self, _: Any) -> None:
        self.cancelled += 1


class Waiting:
    """A task that was not run yet."""

    def __init__(self, function: Any, arguments: tuple[Any, ...]) -> None:
        self.function, self.arguments = function, arguments


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[OneTask]:
    result = OneTask()
    for module in (cluster, core.cluster):
        monkeypatch.setattr(module, "connected", lambda address: result)
    monkeypatch.setitem(sys.modules, "ray", result)
    monkeypatch.setattr(cluster, "this_node", lambda: "10.0.0.2")
    yield result
    cluster._model.cache_clear()


ON_TWO = Cluster(2, "cpu", "float32", 4)


def test_shards_are_whole_batches_and_give_the_states_of_one_process(plan: StatePlan, ray: OneTask) -> None:
    seen = list(compute_on("auto", ON_TWO, plan))
    alone = plan_states(items(), ModelSpec(device="cpu"), SMALL)
    assert sum(1 for _ in Machines(ModelSpec(device="cpu")).compute(alone)) > SHARD_BATCHES
    assert sorted(int(row) for batch in seen for row in batch.rows) == list(range(60))
    assert sum(ray.sizes) == 60
    assert len(ray.sizes) == len(seen) > 1
    assert (plan.tokens, plan.cached) == (alone.tokens, 0)
    assert np.array_equal(collect(plan).values, collect(alone).values)


def test_what_is_kept_is_not_sent_again(plan: StatePlan, ray: OneTask) -> None:
    list(compute_on("auto", ON_TWO, plan, np.arange(20)))
    ray.sizes.clear()
    list(compute_on("auto", ON_TWO, plan))
    assert sum(ray.sizes) == 40
    assert plan.cached == 20
    assert list(compute_on("auto", ON_TWO, plan)) == []


def test_a_run_that_must_stop_takes_its_tasks_back(plan: StatePlan, ray: OneTask) -> None:
    def stop() -> None:
        raise JobError("cancelled")

    with pytest.raises(JobError, match="cancelled"):
        list(compute_on("auto", ON_TWO, plan, None, stop))
    assert ray.cancelled > 1


def test_another_model_on_a_node_is_named_with_the_node(plan: StatePlan, ray: OneTask) -> None:
    plan.facts = replace(plan.facts, fingerprint="another")
    with pytest.raises(JudgeError, match=r"On the node 10\.0\.0\.2: The model minilm is another here"):
        list(compute_on("auto", ON_TWO, plan))


def test_a_cluster_that_fails_for_good_is_told_in_words(plan: StatePlan, ray: OneTask) -> None:
    ray.lost = OneTask.exceptions.RayError("no node left\nlong traceback")
    with pytest.raises(JobError, match=r"The Ray cluster at h:1 failed: no node left\. .*can be resumed"):
        list(compute_on("h:1", ON_TWO, plan))


@pytest.mark.parametrize(
    ("resources", "device", "expected"),
    [
        ([{"CPU": 4}, {"CPU": 9}], "auto", Cluster(3, "cpu", "float32", 4)),  # one task on the first, two on the second
        ([{"CPU": 4}, {"CPU": 8, "GPU": 2}], "auto", Cluster(2, "cuda", "float32", 0)),
        ([{"CPU": 4}, {"CPU": 8, "GPU": 2}], "cpu", Cluster(3, "cpu", "float32", 4)),
    ],
)
def test_a_task_takes_a_gpu_or_the_processors_of_the_smallest_node(
    ray: OneTask, resources: list[dict[str, float]], device: Any, expected: Cluster
) -> None:
    ray.resources = resources
    assert cluster_at("auto", ModelSpec(device=device, precision="float32")) == expected


@pytest.mark.parametrize(
    ("resources", "device", "words"),
    [
        ([{"CPU": 4}], "cuda", "The device cuda was asked for, but the Ray cluster"),
        ([{"CPU": 4, "GPU": 1}], "mps", "The device mps"),
        ([{"memory": 1e9}], "auto", "neither GPUs nor processors"),
    ],
)
def test_a_cluster_that_lacks_the_device_is_refused(
    ray: OneTask, resources: list[dict[str, float]], device: Any, words: str
) -> None:
    ray.resources = resources
    with pytest.raises(JobError, match=words):
        cluster_at("auto", ModelSpec(device=device))


def test_a_missing_ray_is_told_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        JobError, match=r"CONCORD_RAY .* names a cluster \(auto\), but ray is not installed.*pip install"
    ):
        Machines(ModelSpec(), "auto").plan(items(), SMALL, None)


@pytest.mark.parametrize("good", ["", "auto", "127.0.0.1:6379", " head:6379 "])
def test_addresses_of_a_cluster(good: str) -> None:
    assert Settings.from_environment({"CONCORD_RAY": good}).ray == good.strip()


@pytest.mark.parametrize("bad", ["head", "ray://head:10001", "head:", ":6379", "http://head:80"])
def test_what_is_no_address_of_a_cluster_is_refused(bad: str) -> None:
    with pytest.raises(UsageError, match="CONCORD_RAY must be 'auto' or HOST:PORT"):
        Settings.from_environment({"CONCORD_RAY": bad})
