"""Which runs want a GPU, and what a worker says it computes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.errors import UsageError
from core.jobs.worker import capability_of
from core.kept import RunKind
from core.projects import list_runs, list_workers, open_store, run_view
from core.projects.calibration import CalibrationRequest
from core.projects.kinds import wants_of
from core.projects.metrics import MetricsRequest
from core.projects.repeval import RepEvalRequest
from core.records import GoldenSet, Item
from core.repeval.states import ModelSpec, model
from core.settings import Settings
from core.store.codec import pack
from core.store.store import Store


@pytest.fixture
def store(tmp_home: Settings) -> Store:
    return open_store(tmp_home)


def added(store: Store, kind: RunKind, **asked: Any) -> str:
    project = store.projects.add("p")
    golden = store.goldens.add(project, GoldenSet("g", "single", (Item("a", "text"),), {}))
    records: dict[str, Any] = {
        "repeval": RepEvalRequest,
        "metrics": MetricsRequest,
        "calibration": CalibrationRequest,
    }
    request = records[kind](project, golden, "a", **asked)
    return store.runs.add(project, golden, kind, "t", "a", "offline", pack(request).body)


@pytest.mark.parametrize(
    ("kind", "asked", "wants"),
    [
        ("calibration", {}, "any"),
        ("repeval", {}, "any"),  # the embedded encoder is done in seconds anywhere
        ("repeval", {"model": ModelSpec("org/large")}, "gpu"),
        ("repeval", {"model": ModelSpec("org/large", device="cpu")}, "any"),
        ("repeval", {"model": ModelSpec(device="cuda")}, "gpu"),
        ("metrics", {"names": ("rouge1", "similarity", "hf:bleu")}, "any"),
        ("metrics", {"names": ("rouge1", "hf:nli:org/model")}, "gpu"),
    ],
)
def test_runs_that_load_a_large_model_want_a_gpu(store: Store, kind: RunKind, asked: Any, wants: str) -> None:
    run_id = added(store, kind, **asked)
    assert wants_of(store.runs.get(run_id)) == wants


def test_a_run_of_another_version_wants_nothing(store: Store) -> None:
    project = store.projects.add("p")
    golden = store.goldens.add(project, GoldenSet("g", "single", (Item("a", "text"),), {}))
    run_id = store.runs.add(project, golden, "repeval", "t", "a", "", '{"of": "another form"}')
    assert wants_of(store.runs.get(run_id)) == "any"


def test_views_tell_who_has_a_run_and_why_another_waits(store: Store) -> None:
    run_id = added(store, "repeval", model=ModelSpec("org/large"))
    assert list_runs(store)[0].placement == "waiting for a worker"
    store.workers.enter("fast", "there", 1, "cuda")
    assert run_view(store, run_id).placement == "waiting for a GPU worker: fast (cuda) takes it when free"
    store.runs.claim(run_id, 1, "fast")
    taken = run_view(store, run_id)
    assert (taken.capability, taken.placement) == ("cuda", "")
    store.workers.enter("plain", "here", 2, "cpu")
    store.runs.pass_on(run_id, 1)
    store.runs.claim(run_id, 2, "plain")
    assert run_view(store, run_id).placement == "on a worker without a GPU, because none with a GPU was there"
    assert [(one.worker_id, one.capability) for one in list_workers(store)] == [("fast", "cuda"), ("plain", "cpu")]
    store.workers.leave("fast")
    assert [one.worker_id for one in list_workers(store)] == ["plain"]


# ── what a worker can do ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("said", "meant"),
    [("", ""), ("cpu", "cpu"), (" GPU ", "gpu"), ("cpu,cuda", "cuda"), ("gpu, mps", "mps")],
)
def test_the_setting_overrides_what_the_machine_shows(said: str, meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.from_environment({"CONCORD_CAPABILITIES": said})
    assert settings.capability == meant
    monkeypatch.setattr(model, "find_capability", lambda: "found")
    assert capability_of(settings) == (meant or "found")


def test_a_capability_that_is_none_is_named() -> None:
    with pytest.raises(UsageError, match="CONCORD_CAPABILITIES must be one of cuda, mps, gpu, cpu, not 'tpu'"):
        Settings.from_environment({"CONCORD_CAPABILITIES": "tpu"})


def test_the_command_line_overrides_the_setting(tmp_home: Settings, repository: Path) -> None:
    """A word that is none is wrong usage (exit 2) and starts no worker."""
    command = [sys.executable, "-m", "core", "worker", "--capability", "tpu"]
    done = subprocess.run(command, check=False, cwd=repository, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--capability must be one of cuda, mps, gpu, cpu, not 'tpu'" in done.stderr


def test_torch_is_asked_only_where_there_is_a_sign_of_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import torch

    sign = tmp_path / "nvidia0"
    monkeypatch.setattr(model.sys, "platform", "linux")
    monkeypatch.setattr(model, "SIGNS", (str(sign),))
    monkeypatch.setattr(model, "TOOLS", ())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert model.find_capability() == "cpu"
    sign.touch()
    assert model.find_capability() == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert model.find_capability() == "cpu"
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    assert model.find_capability() == "cpu"


def test_a_machine_without_a_gpu_finds_out_without_torch(repository: Path) -> None:
    code = (
        "import sys; from core.repeval.states import model; model.SIGNS = model.TOOLS = (); "
        "model.sys.platform = 'linux'; print(model.find_capability(), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["cpu", "False"]
