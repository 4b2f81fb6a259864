"""Which runs want a GPU, which worker takes a run, what people are told of it, and what a worker computes on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from core.jobs.queue import takes
from core.project_records import RunKind, Worker
from core.projects.calibration import CalibrationRequest
from core.projects.method_runs import RepEvalRequest
from core.projects.project_judges import MetricsRequest
from core.projects.run_kinds import wants_of
from core.records import GoldenSet, Item
from core.repeval import ModelSpec, RepEvalSettings
from core.store.codec import pack
from core.store.store import Store

REQUESTS: dict[str, Any] = {"repeval": RepEvalRequest, "metrics": MetricsRequest, "calibration": CalibrationRequest}


def added(store: Store, kind: RunKind, **options: Any) -> str:
    project = store.projects.add("p")
    golden = store.goldens.add(project, GoldenSet("g", "single", (Item("a", "text"),), {}))
    body = options.pop("body", "") or pack(REQUESTS[kind](project, golden, "a", **options)).body
    return store.runs.add(project, golden, kind, "t", "a", "offline", body)


@pytest.mark.parametrize(
    ("kind", "options", "wants"),
    [
        ("repeval", {}, "any"),  # the embedded encoder is done in seconds anywhere
        ("repeval", {"settings": RepEvalSettings(model=ModelSpec("org/large"))}, "gpu"),
        ("repeval", {"settings": RepEvalSettings(model=ModelSpec("org/large", device="cpu"))}, "any"),
        ("metrics", {"names": ("rouge1", "similarity", "hf:bleu")}, "any"),
        ("metrics", {"names": ("rouge1", "nli:org/model")}, "gpu"),
        ("repeval", {"body": '{"of": "another version"}'}, "any"),
    ],
)
def test_runs_that_load_a_large_model_want_a_gpu(store: Store, kind: RunKind, options: Any, wants: str) -> None:
    assert wants_of(store.runs.get(added(store, kind, **options))) == wants


def worker(name: str, capability: str, seconds_ago: float) -> Worker:
    """A worker whose last sign of life was so long ago."""
    return Worker(name, "here", 1, datetime.now(UTC), seconds_ago, capability)


@pytest.mark.parametrize(
    ("workers", "taken"),
    [
        ([], True),
        ([worker("c", "cpu", 1), worker("g", "cuda", 1)], False),
        ([worker("g", "gpu", 59)], False),  # lost, but it may come back within the minute
        ([worker("g", "mps", 61)], True),
        ([replace(worker("g", "cuda", 1), silent_for=None)], True),  # signed off
    ],
)
def test_a_run_that_wants_a_gpu_waits_where_one_is_expected(workers: list[Worker], taken: bool) -> None:
    assert takes("cpu", "gpu", workers) == taken
    assert takes("cpu", "any", workers)
    for capability in ("cuda", "mps", "gpu"):
        assert takes(capability, "gpu", workers)
        assert takes(capability, "any", workers)
