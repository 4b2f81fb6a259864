"""`score --ray` on two nodes in a namespace of their own, one of them killed; and clusters that are none."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from core import cluster
from core.__main__ import main
from core.cluster import connected, plain_errors
from core.errors import JobError
from core.progress import SILENT
from core.scoring import crew as crews
from core.scoring import on_ray
from core.scoring.crew import Crew
from core.scoring.parts import Outcome, Plan, Scorer, open_any


@pytest.mark.slow
def test_a_scoring_outlives_its_driver_and_a_node_and_gives_the_verdicts_of_one_process(
    lone_namespace: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    n, part = 3200, 400
    body = lone_namespace("tests/bench/bench_ray.py", n, tmp_path, "--part", part, "--kill", "driver", "node")
    assert 0 < body["driver_killed_at_part"] < body["node_killed_at_part"] < n // part
    assert body["finished_parts_untouched"]
    assert body["ray"]["said"]["n_scored"] == n
    assert body["ray"]["said"]["resumed_from"] >= body["driver_killed_at_part"] * part
    assert body["ray"]["said"]["calls"] == (n - body["ray"]["said"]["resumed_from"]) * body["criteria"]
    assert body["processor_ms"]["actors"] > 0
    assert body["again"]["said"]["resumed_from"] == n
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
    """Stands in for ray: actors on `dead` nodes are lost, those on `silent` ones do not answer.

    `mute` nodes can be called and do not reach this host: what they stream never comes.
    """

    exceptions = SimpleNamespace(RayError=LostError)
    util = SimpleNamespace(get_node_ip_address=lambda: "10.0.0.1")

    def __init__(self, dead: str = "", silent: str = "", lacking: str = "", mute: str = "") -> None:
        self.dead, self.silent, self.lacking, self.mute, self.begun = dead, silent, lacking, mute, 0

    def nodes(self) -> list[dict[str, Any]]:
        about = {"Alive": True, "Resources": {"CPU": 1.0}}
        return [{"NodeID": name, "NodeManagerAddress": name, **about} for name in "abc"]

    def remote(self, scheduling_strategy: str, **_: Any) -> Any:
        return lambda _kind: SimpleNamespace(remote=lambda *_: OnNode(self, scheduling_strategy))

    def wait(self, replies: list[Reply], *, timeout: float, **_: Any) -> Any:
        late = [each for each in replies if each.node in self.silent or (each.streamed and each.node in self.mute)]
        return [each for each in replies if each not in late], late

    def get(self, reply: Reply, *, timeout: float) -> str:
        node, method = reply.node, reply.method
        if node in self.dead:
            raise LostError(node)
        if node in self.silent:
            raise TimeoutError(node)
        return "The model tiny is not there." if method == "why_not_ready" and node in self.lacking else ""

    def kill(self, actor: OnNode) -> None:
        """It is gone anyway."""


@dataclass(eq=False)
class Reply:
    """What a call gives, streamed or not."""

    node: str
    method: str
    streamed: bool = False

    def __next__(self) -> Reply:
        return self

    def options(self, num_returns: str = "", concurrency_group: str = "") -> Any:
        return SimpleNamespace(remote=lambda: replace(self, streamed=num_returns == "streaming"))

    def remote(self, *_: Any) -> Reply:
        return self


class OnNode:
    """An actor: a call gives its node and the method."""

    def __init__(self, ray: ThreeNodes, node: str) -> None:
        self.ray, self.node = ray, node

    def __getattr__(self, method: str) -> Any:
        self.ray.begun += method == "begin"
        return Reply(self.node, method)


FIND_HEAD = cluster._find_head


@pytest.fixture
def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@pytest.fixture(autouse=True)
def on_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "_on", lambda node: node["NodeID"])
    monkeypatch.setattr(cluster, "_find_head", lambda address: None)
    monkeypatch.setattr(cluster, "_check_token", lambda address: None)


def test_a_node_that_does_not_answer_is_left_out_with_its_name() -> None:
    crew = Crew.of(ThreeNodes(dead="c", silent="b"), Scorer, each="cpu")
    crew.wait_for_all()
    assert ([node["NodeID"] for node in crew.actors.values()], crew.silent) == (["a"], ["b", "c"])
    with pytest.raises(JobError, match="No node of the Ray cluster has answered this host"):
        Crew.of(ThreeNodes(silent="abc"), Scorer, each="cpu").wait_for_all()


def test_nodes_that_can_be_called_but_do_not_reach_this_host_are_left_out() -> None:
    crew = Crew.of(ThreeNodes(mute="b"), Scorer, each="cpu")
    crew.wait_for_all()
    assert crew.silent == ["b"]
    with pytest.raises(JobError, match=r"answered this host \(10\.0\.0\.1 to Ray\) within 60 s.*open connections"):
        Crew.of(ThreeNodes(mute="abc"), Scorer, each="cpu").wait_for_all()


def test_no_wait_for_a_node_is_without_an_end(plan: Plan) -> None:
    """The stand-in takes no `get` and no `wait` without a timeout."""
    scoring = on_ray._Scoring(ThreeNodes(silent="a"), plan, open_any(plan.request), SILENT)
    with pytest.raises(TimeoutError):
        scoring.check_ready()


class Streams(ThreeNodes):
    """Stands in for ray: a task brings `parts` of its own after so many looks each, and then an end."""

    def __init__(self, *looks: int) -> None:
        super().__init__()
        self.looks, self.on, self.cancelled = list(looks), list[str](), list[Any]()

    def remote(self, scheduling_strategy: str, **_: Any) -> Any:
        self.on.append(scheduling_strategy)
        return lambda task: SimpleNamespace(remote=task)

    def wait(self, several: list[Any], *, timeout: float, **_: Any) -> Any:
        if self.looks and self.looks[0]:
            self.looks[0] -= 1
            return [], several
        self.looks = self.looks[1:]
        return several, []

    def cancel(self, task: Any) -> None:
        self.cancelled.append(task)


def on_nodes(ray: Any, *names: str) -> Crew:
    return Crew(ray, {name: {"NodeID": name, "NodeManagerAddress": name} for name in names})


def test_what_tasks_stream_comes_in_turn_from_nodes_of_the_crew_and_waiting_is_told() -> None:
    ray = Streams(0, 2, 0)
    came = list(on_nodes(ray, "b").streamed(lambda *parts: iter(parts), [("a0", "a1"), ("b0",)]))
    assert came == ["a0", None, None, "b0", "a1"]
    assert ray.on == ["b", "b"]
    assert len(ray.cancelled) == 2


def test_a_task_that_streams_nothing_for_too_long_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crews, "LONGEST_STEP", 90.0)
    with pytest.raises(JobError, match="read nothing for 2 minutes"):
        list(on_nodes(Streams(10**6), "a").streamed(lambda: iter(()), [()]))


def test_a_head_that_hangs_on_the_way_is_noticed_within_the_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, free = Streams(10**6), threading.Event()
    ray.nodes = free.wait  # type: ignore[assignment, method-assign]
    monkeypatch.setattr(cluster, "PING", 0.01)
    monkeypatch.setattr(cluster, "_hangs", threading.Event())
    waited = 0
    with pytest.raises(JobError, match=r"head .*does not answer any more.*goes on"):
        for _ in on_nodes(ray, "a").streamed(lambda: iter(()), [()]):
            waited += 1
    free.set()
    assert waited * cluster.POLL_SECONDS <= crews.PATIENCE


def test_what_hangs_at_the_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, free = ThreeNodes(), threading.Event()
    ray.kill = lambda actor: free.wait()  # type: ignore[method-assign]
    monkeypatch.setattr(cluster, "PING", 0.01)
    monkeypatch.setattr(cluster, "_hangs", threading.Event())
    Crew.of(ray, Scorer, each="cpu").close()
    free.set()
    assert cluster._hangs.is_set()


def test_after_a_loss_actors_that_are_there_or_at_work_stay() -> None:
    ray = ThreeNodes()
    crew = Crew.of(ray, Scorer, each="node")
    ray.dead, ray.silent = "b", "c"
    assert crew.left_after_a_loss() == 2
    assert [node["NodeID"] for node in crew.actors.values()] == ["a", "c"]


class Pool:
    """Stands in for Ray's ActorPool: an actor answers at once, and one named "lost" is lost."""

    def __init__(self, actors: list[Any]) -> None:
        self.idle, self.given = list(actors), list[tuple[Any, Any]]()

    def has_free(self) -> bool:
        return bool(self.idle)

    def has_next(self) -> bool:
        return bool(self.given)

    def submit(self, _do: Any, task: Any) -> None:
        self.given.append((self.idle.pop(0), task))

    def get_next_unordered(self, timeout: float) -> Any:
        actor, task = self.given.pop(0)
        if actor == "lost":
            raise LostError(task)
        return task


def test_after_a_loss_what_the_others_have_at_hand_still_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray.util", SimpleNamespace(ActorPool=Pool))
    answers, came = Crew(ThreeNodes(), {"lost": {}, "a": {}}, at_once=3).answers("score", range(9)), list[Any]()
    with pytest.raises(LostError, match="0"):
        for each in answers:
            came.append(each)
    assert came == [1, 3, 5]  # six were at hand, those of the lost one are not done


class Frozen(Pool):
    """Stands in for Ray's ActorPool: the actor "b" answers nothing until it is ended."""

    ended: ClassVar[list[str]] = []

    def get_next_unordered(self, timeout: float) -> Any:
        for place, (actor, task) in enumerate(self.given):
            if actor.node != "b" or self.ended:
                del self.given[place]
                if actor.node == "b":
                    raise LostError(task)
                return task
        raise TimeoutError


def test_an_actor_that_is_frozen_is_ended_and_one_that_is_slow_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray.util", SimpleNamespace(ActorPool=Frozen))
    monkeypatch.setattr(Frozen, "ended", [])
    monkeypatch.setattr(crews, "PATIENCE", 4 * crews.POLL_SECONDS)
    ray = ThreeNodes(silent="b")
    ray.kill = lambda actor: Frozen.ended.append(actor.node)  # type: ignore[method-assign]
    crew, came = Crew.of(ray, Scorer, each="node", at_once=2), list[Any]()
    with pytest.raises(LostError):
        for each in crew.answers("score", range(6)):
            came.append(each)
    assert [each for each in came if each is not None] == [0, 2, 3, 5]
    assert came.count(None) == 4
    assert Frozen.ended == ["b"]


@pytest.mark.parametrize(("spec", "at_once"), [("openai:m@http://127.0.0.1:9/v1", 4), ("offline", 1)])
def test_parts_that_wait_for_replies_are_asked_side_by_side(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, spec: str, at_once: int
) -> None:
    threads, remote = list[int](), ThreeNodes.remote

    def with_threads(self: ThreeNodes, max_concurrency: int = 1, **how: Any) -> Any:
        threads.append(max_concurrency)
        return remote(self, **how)

    monkeypatch.setattr(ThreeNodes, "remote", with_threads)
    with closing(open_any(replace(plan.request, judge=spec))) as judge:
        scoring = on_ray._Scoring(ThreeNodes(), plan, judge, SILENT)
    assert (set(threads), scoring.crew.at_once) == ({at_once}, at_once)


def test_what_a_node_lacks_is_told_with_its_name_before_the_start(plan: Plan) -> None:
    scoring = on_ray._Scoring(ThreeNodes(lacking="b"), plan, open_any(plan.request), SILENT)
    with pytest.raises(JobError, match=r"Nothing was started\. On b: The model tiny is not there\."):
        scoring.check_ready()


@pytest.mark.parametrize(
    ("spec", "gpus", "on"),
    [
        ("openai:m@http://127.0.0.1:9/v1", "b", "b"),  # a server on each node that has GPUs
        ("openai:m@http://127.0.0.1:9/v1", "", "abc"),
        ("openai:m@http://models.example/v1", "b", "abc"),
        ("offline", "b", "abc"),
    ],
)
def test_actors_are_where_their_models_are(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, spec: str, gpus: str, on: str
) -> None:
    nodes = [
        {**node, "Resources": {"CPU": 1.0, "GPU": 2.0 * (node["NodeID"] in gpus)}} for node in ThreeNodes().nodes()
    ]
    monkeypatch.setattr(ThreeNodes, "nodes", lambda self: nodes)
    with closing(open_any(replace(plan.request, judge=spec))) as judge:
        scoring = on_ray._Scoring(ThreeNodes(), plan, judge, SILENT)
    assert "".join(node["NodeID"] for node in scoring.crew.actors.values()) == on


def test_a_cluster_without_processors_is_refused(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThreeNodes, "nodes", lambda self: [{"Alive": True, "Resources": {"memory": 1e9}}])
    with pytest.raises(JobError, match="no processors to offer"):
        on_ray._Scoring(ThreeNodes(), plan, open_any(plan.request), SILENT)


class Rounds:
    """Stands in for the pipeline: each round gives so many parts of one item and is lost then, the last is not."""

    def __init__(self, *parts: int, loss: type[Exception] | None = None) -> None:
        self.parts, self.counted = list(parts), list[set[str]]()
        self.loss = loss or OutOfMemoryError

    def __call__(self, _files: Any, counted: set[str]) -> Iterator[Outcome | None]:
        self.counted.append(set(counted))
        n, first = self.parts.pop(0), len(counted)
        yield None
        for k in range(n):
            yield Outcome(f"part-{first + k}", 1, 1, calls=2)
        if self.parts:
            raise self.loss("Task was killed due to the node running low on memory.")


class OutOfMemoryError(LostError):
    """As Ray's is called."""


class ActorDiedError(LostError):
    """As Ray's is called."""


def scored(rounds: Rounds, plan: Plan, n_items: int, ray: ThreeNodes | None = None) -> on_ray._Total:
    scoring = on_ray._Scoring(ray or ThreeNodes(), plan, open_any(plan.request), SILENT)
    scoring._outcomes = rounds  # type: ignore[method-assign]
    return scoring.score_all([], n_items)


def test_a_head_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    free, ended = threading.Event(), list[int]()
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(shutdown=free.wait))
    monkeypatch.setattr(cluster, "PING", 0.01)
    monkeypatch.setattr(cluster, "_hangs", threading.Event())
    monkeypatch.setattr(cluster.os, "_exit", ended.append)
    with cluster.output_kept_clean():
        pass
    free.set()
    with pytest.raises(SystemExit):  # the stand-in comes back
        cluster.end_process(1)
    assert ended == [1]


def test_what_was_counted_is_not_looked_at_again_after_a_loss(plan: Plan) -> None:
    rounds, ray = Rounds(2, 0, 0, 1, 0, 0, 3), ThreeNodes(dead="b")  # three losses in a row, twice, are lived with
    total = scored(rounds, plan, 6, ray)
    assert (total.done.items, total.done.calls, total.n_losses) == (6, 12, 6)
    assert rounds.counted[-1] == {"part-0", "part-1", "part-2"}
    assert ray.begun == 6 * 2  # each time the two that are left


@pytest.mark.parametrize(
    ("loss", "way_out"),
    [
        (OutOfMemoryError, "ran out of memory.*--num-cpus"),
        (ActorDiedError, "memory .*logs. What is done is kept"),
    ],
)
def test_a_cluster_that_finishes_nothing_is_given_up_with_what_to_do(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, loss: type[Exception], way_out: str
) -> None:
    monkeypatch.setitem(sys.modules, "ray", ThreeNodes())
    words = rf"The Ray cluster at h:1 failed: Task was killed.*{way_out}"
    with pytest.raises(JobError, match=words), plain_errors("h:1"):
        scored(Rounds(1, 0, 0, 0, 0, 5, loss=loss), plan, 6)


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


def test_where_no_head_listens_is_told_at_once(free_port: int) -> None:
    with pytest.raises(
        JobError, match=rf"No Ray cluster answers at 127\.0\.0\.1:{free_port} .*refused.*ray start --head"
    ):
        FIND_HEAD(f"127.0.0.1:{free_port}")


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
    for sent in (settings, judged, Scorer):
        assert b"sk-never-in-ray" not in cloudpickle.dumps(sent)
