"""`score --ray` on two nodes in a namespace of their own, one of them killed; and clusters that are none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.__main__ import main
from core.cluster import connected
from core.errors import JobError
from core.progress import SILENT
from core.scoring import on_ray
from core.scoring.parts import Plan, Scorer, _row, open_any, why_not_ready


@pytest.mark.slow
def test_a_scoring_outlives_its_driver_and_a_node_and_gives_the_verdicts_of_one_process(
    lone_namespace: list[str], repository: Path, tmp_path: Path
) -> None:
    script = repository / "tests" / "bench" / "bench_ray.py"
    done = subprocess.run(
        [*lone_namespace, sys.executable, str(script), "8000", str(tmp_path), "--kill"],
        cwd=repository,
        env=os.environ | {"PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    body = json.loads(done.stdout.splitlines()[-1])
    assert 0 < body["driver_killed_at_part"] < body["node_killed_at_part"] < 4
    assert body["finished_parts_untouched"]
    assert body["ray"]["said"]["n_scored"] == 8000
    assert body["ray"]["said"]["resumed_from"] >= body["driver_killed_at_part"] * on_ray.PART
    assert body["ray"]["said"]["calls"] == (8000 - body["ray"]["said"]["resumed_from"]) * body["criteria"]
    assert body["again"]["said"]["resumed_from"] == 8000
    assert body["again"]["said"]["calls"] == 0
    assert body["same_order"]
    assert body["largest_gap"] <= 1e-6
    assert body["key_at_large"] == []


def test_what_is_no_address_of_a_cluster_is_refused(
    judge_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["score", str(tmp_path), "--judge-file", str(judge_file), "--out", str(tmp_path / "o"), "--json"]
    assert main([*asked, "--ray", "ray://head:10001"]) == 2
    assert "--ray must be 'auto' or HOST:PORT" in json.loads(capsys.readouterr().out)["error"]["message"]


# ── without a cluster ────────────────────────────────────────────────────────────────────────────────────────


class LostError(Exception):
    """Stands in for any error of Ray."""


class ThreeNodes:
    """Stands in for ray: nodes `dead` are counted as alive until they were asked `noticed` times."""

    exceptions = SimpleNamespace(RayError=LostError)

    def __init__(self, dead: set[str], noticed: int = 10**9) -> None:
        self.dead, self.noticed, self.asked = dead, noticed, 0

    def nodes(self) -> list[dict[str, Any]]:
        gone = self.dead if self.asked >= self.noticed else set()
        about = {"Alive": True, "Resources": {"CPU": 2.0}}
        return [{"NodeID": name, "NodeManagerAddress": name, **about} for name in "abc" if name not in gone]

    def remote(self, **_: Any) -> Any:
        return lambda function: function

    def wait(self, replies: list[str], **_: Any) -> tuple[list[str], list[str]]:
        self.asked += 1
        return replies, []

    def get(self, reply: str) -> None:
        if reply in self.dead:
            raise LostError(reply)


@pytest.fixture
def on_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task answers with the name of the node that it is put on."""
    monkeypatch.setattr(on_ray, "_on", lambda task, node: SimpleNamespace(remote=lambda *_: node["NodeID"]))
    monkeypatch.setattr(on_ray.time, "sleep", lambda seconds: None)


@pytest.mark.usefixtures("on_node")
def test_a_dead_node_is_waited_for_until_the_cluster_has_noticed() -> None:
    ray = ThreeNodes({"b"}, noticed=3)
    nodes, silent = on_ray._answering(ray)
    assert [node["NodeID"] for node in nodes] == ["a", "c"]
    assert silent == []
    assert ray.asked == 4


@pytest.mark.usefixtures("on_node")
def test_a_node_that_never_answers_is_left_out_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "PATIENCE", 0.0)
    nodes, silent = on_ray._answering(ThreeNodes({"b"}))
    assert [node["NodeID"] for node in nodes] == ["a", "c"]
    assert silent == ["b"]
    with pytest.raises(JobError, match="No node of the Ray cluster has answered"):
        on_ray._answering(ThreeNodes({"a", "b", "c"}))


@pytest.mark.usefixtures("on_node")
def test_what_a_node_lacks_is_told_with_its_name_before_the_start(
    plan: Plan, judge_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = ThreeNodes(set())
    monkeypatch.setattr(ray, "get", lambda node: "The model tiny is not there." if node == "b" else "")
    with pytest.raises(JobError, match=r"Nothing was started\. On b: The model tiny is not there\."):
        on_ray._manned(ray, plan, open_any(plan.request), first=True)


class Rounds:
    """Stands in for the pipeline: each round gives so many parts of one item and is lost then, the last is not."""

    def __init__(self, *parts: int) -> None:
        self.parts, self.plans = list(parts), list[Plan]()

    def __call__(self, plan: Plan, *_: Any) -> Iterator[dict[str, Any]]:
        self.plans.append(plan)
        n = self.parts.pop(0)
        for k in range(n):
            yield _row(f"part-{len(plan.counted) + k}", n_items=1, n_scored=1, calls=2)
        if self.parts:
            raise OutOfMemoryError("Task was killed due to the node running low on memory.")


class OutOfMemoryError(LostError):
    """As Ray's is called."""


def scored(
    rounds: Rounds, plan: Plan, monkeypatch: pytest.MonkeyPatch, n_items: int
) -> tuple[on_ray._Total, ThreeNodes]:
    ray = ThreeNodes(set())
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(on_ray, "_scored_parts", rounds)
    judge = open_any(plan.request)
    return on_ray._score_all(ray, "h:1", (plan, {}), [], n_items=n_items, judge=judge, progress=SILENT), ray


@pytest.mark.usefixtures("on_node")
def test_what_was_counted_is_not_looked_at_again_after_a_loss(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds(2, 0, 0, 1, 0, 0, 3)  # three losses in a row, twice, are lived with
    total, ray = scored(rounds, plan, monkeypatch, 6)
    assert (total.done.items, total.done.calls, total.n_losses) == (6, 12, 6)
    assert rounds.plans[-1].counted == {"part-0", "part-1", "part-2"}
    assert ray.asked == 6


@pytest.mark.usefixtures("on_node")
def test_a_cluster_that_finishes_nothing_is_given_up_with_what_to_do(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(JobError, match=r"The Ray cluster at h:1 failed: Task was killed.*--num-cpus"):
        scored(Rounds(1, 0, 0, 0, 0, 5), plan, monkeypatch, 6)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionError("Failed to connect to Ray cluster at h:1."), r"h:1 failed: .*must be a node of it"),
        (
            RuntimeError(
                "Version mismatch: The cluster was started with:\n  Ray: 2.50.0\nThis process:\n  Ray: 2.60.0"
            ),
            r"Version mismatch.*2\.50\.0.*2\.60\.0.*ray==",
        ),
    ],
)
def test_a_cluster_that_is_away_or_of_another_version_is_told_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def init(**_: Any) -> None:
        raise error

    monkeypatch.setitem(
        sys.modules,
        "ray",
        SimpleNamespace(is_initialized=lambda: False, init=init, exceptions=ThreeNodes.exceptions),
    )
    with pytest.raises(JobError, match=words):
        connected("h:1")


def test_the_key_is_neither_in_the_job_settings_nor_in_what_nodes_are_sent(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloudpickle = pytest.importorskip("ray.cloudpickle")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-in-ray-4711")
    settings = dict[str, Any]()
    ray = SimpleNamespace(is_initialized=lambda: False, init=lambda **given: settings.update(given))
    monkeypatch.setitem(sys.modules, "ray", ray)
    connected("h:1")
    judged = replace(plan, request=replace(plan.request, judge="openai:m@http://127.0.0.1:9/v1"))
    assert open_any(judged.request).judge.provider.has_key
    assert list(settings["runtime_env"]) == ["py_modules"]
    for sent in (settings, judged, (why_not_ready, Scorer)):
        assert b"sk-never-in-ray" not in cloudpickle.dumps(sent)
