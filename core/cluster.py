"""The connection to a Ray cluster, and its errors in plain words.

Ray is installed apart (`pip install "ray==2.60.0"`) and imported when a cluster is named.  The host that asks must be a
node of the cluster (``ray start``); nodes need the same Python and requirements, Concord's own code is sent along.  A
key is not: every node has its own in the environment that it was started with.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any, Literal, NoReturn

from core.errors import JobError

RAY = "2.60.0"
"""The version that was tested with the other requirements."""

ANSWER_SECONDS = 5.0
"""Within which the head must take a connection; Ray itself would try for many minutes."""

_connecting, _hangs = threading.Lock(), threading.Event()


def connected(address: str) -> Any:
    """The ray module, connected once a process to the cluster at `address` ("auto" or HOST:PORT).

    JobError says why it cannot be.
    """
    try:
        import ray
    except ImportError as error:
        raise JobError(
            f"CONCORD_RAY or --ray names a cluster ({address}), but ray is not installed here. Install it on every "
            f'node (pip install "ray=={RAY}"), or name none to compute on this machine alone.'
        ) from error
    with _connecting:
        if not ray.is_initialized():
            _find_head(address)
            code = str(Path(__file__).resolve().parent)  # the package core itself
            logging.getLogger("ray").setLevel(logging.ERROR)
            with plain_errors(address):
                _check_token(address)
                ray.init(
                    address=address, log_to_driver=False, configure_logging=False, runtime_env={"py_modules": [code]}
                )
    return ray


def _find_head(address: str) -> None:
    """JobError where nothing takes a connection at HOST:PORT."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise JobError(
            f"No Ray cluster answers at {address} ({error}). Look whether its head runs there (ray start --head "
            f"--node-ip-address=HEAD --port={port}), whether this host may reach it, and whether the address is right."
        ) from error


def _check_token(address: str) -> None:
    """Ray's AuthenticationError at once where the cluster takes no token of this process; ``init`` tries for 20 s."""
    import ray
    from ray._private.authentication import authentication_token_setup as token
    from ray._private.services import canonicalize_bootstrap_address_or_die

    token.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
    token.ensure_token_if_auth_enabled(create_token_if_missing=False)  # as `init` does first
    raylet: Any = ray._raylet  # its stub leaves the client out
    raylet.GcsClient(address=canonicalize_bootstrap_address_or_die(address))


@contextmanager
def output_kept_clean() -> Iterator[None]:
    """Let what Ray writes to standard output go to standard error, and end the connection with the block."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        if (ray := sys.modules.get("ray")) is not None:
            _leave(ray)
        os.dup2(kept, 1)
        os.close(kept)


def _leave(ray: Any) -> None:
    """End the connection, and do not wait for a head that hangs: Ray would for ever."""
    leaving = threading.Thread(target=ray.shutdown, daemon=True)
    leaving.start()
    leaving.join(PING)
    if leaving.is_alive():
        _hangs.set()


def end_process(code: int) -> NoReturn:
    """As ``sys.exit``; at once where a head hangs, for which Ray would wait at the end, too."""
    if _hangs.is_set():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


@contextmanager
def plain_errors(address: str) -> Iterator[None]:
    """Ray's errors in plain words; its own, with the reason, goes to the log as the cause."""
    import ray

    try:
        yield
    except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        if type(error).__name__ == "AuthenticationError":
            raise JobError(
                f"The Ray cluster at {address} lets this host in with its own token alone "
                f"({words_of(error).partition('. ')[0]}). Set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH here as on "
                "its nodes, to the same token."
            ) from error
        raise JobError(f"The Ray cluster at {address} failed: {words_of(error)}. {_way_out(error, address)}") from error


def words_of(error: Exception) -> str:
    """What an error of Ray says, in one line without its traceback."""
    error = getattr(error, "cause", None) or error  # what a task raised stands behind its traceback
    lines = [line.strip() for line in str(error).strip().split("\n")]
    if lines[0].startswith("Version mismatch"):
        return " ".join(lines)[:300].rstrip(".")
    return lines[0][:300].rstrip(".") or type(error).__name__


def _way_out(error: Exception, address: str) -> str:
    if str(error).startswith("Version mismatch"):
        return f"Install the same Python and ray=={RAY} on every node, and start them anew."
    if type(error).__name__ == "GetTimeoutError":
        return (
            "What was asked did not come in time: its nodes may be busy with other work (`ray status` says so), or "
            f"hang. {REACH}"
        )
    if type(error).__name__ == "OutOfMemoryError":
        return "A node ran out of memory: give it fewer processors (ray start --num-cpus) or more memory."
    if type(error).__name__ in ("ActorDiedError", "WorkerCrashedError", "NodeDiedError"):
        return (
            "Its nodes or processes end before they finish anything: look at their memory (ray start --num-cpus gives "
            "fewer processes more of it) and their logs. What is done is kept; run it again."
        )
    return (
        f"This host must be a node of it (ray start --address={'HOST:PORT' if address == 'auto' else address}), and "
        "RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH must be set here as there, to the same token; what is done so far is "
        "kept, so the run can be resumed."
    )


# ── work in shards ───────────────────────────────────────────────────────────────────────────────────────────

RETRIES = 10
"""How often a shard is done again where its node is lost."""

POLL_SECONDS = 0.5
"""Between two looks whether whoever waits must stop."""


def shared_out(
    address: str,
    work: Callable[..., Any],
    shards: Sequence[tuple[Any, ...]],
    needs: Mapping[str, float],
    on_wait: Callable[[], None] = lambda: None,
) -> Generator[tuple[int, Any]]:
    """(place, ``work(*shard)``) of every shard as it is done, on the cluster at `address`; `needs` is what one takes.

    A lost node costs its unfinished shards, which Ray gives to another.  `on_wait` is called about twice a second and
    may raise; what runs on the cluster is cancelled then.  JobError when the cluster fails for good.
    """
    ray = connected(address)
    task = ray.remote(max_retries=RETRIES, scheduling_strategy="SPREAD", **needs)(work)
    waiting = {task.remote(*shard): place for place, shard in enumerate(shards)}
    try:
        while waiting:
            on_wait()
            ready, _ = ray.wait(list(waiting), num_returns=1, timeout=POLL_SECONDS)
            for done in ready:
                with plain_errors(address):
                    answer = ray.get(done)
                yield waiting.pop(done), answer
    finally:
        for shard in waiting:
            ray.cancel(shard)


def this_node() -> str:
    """The address of the node that a shard is done on."""
    import ray

    return str(ray.util.get_node_ip_address())


# ── actors on the nodes ──────────────────────────────────────────────────────────────────────────────────────

TASKS_AHEAD = 2
"""Tasks that an actor has, one of them at work."""

PATIENCE, PING = 60.0, 20.0
"""Seconds that new actors get to answer before they are left out; those that may be at work, after a loss."""

LONGEST_STEP = 1800.0
"""Seconds for what may fetch or load much, a model or a file of the input, before the cluster is given up."""

REACH = "All hosts of a cluster must be able to open connections to one another, on any port."

Each = Literal["cpu", "gpu", "node", "whole node"]
"""What has one actor: it computes on it, or waits for somebody else there ("node")."""


@dataclass
class Crew:
    """Actors on the nodes of a cluster, with the node that each was put on.

    Their class has ``answer``, which yields once: streamed results come by a connection that the node opens to this
    host, so whoever answers can also send, and not just be called.
    `silent` are the addresses of nodes that did not answer and were left out.  An actor that is lost leaves the crew.
    """

    ray: Any
    actors: dict[Any, Mapping[str, Any]]
    silent: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, ray: Any, kind: type, *arguments: Any, each: Each, most: int | None = None) -> Crew:
        """An actor of `kind` for `each` processor, GPU or node, `most` at most; they start in the background.

        JobError where no node has any.
        """
        settled = {"max_restarts": 0, "max_task_retries": 0}  # what is lost is told, not waited for
        actors = {}
        for node in seats(ray, each)[:most]:
            actor = ray.remote(scheduling_strategy=_on(node), **_needs(node, each), **settled)(kind).remote(*arguments)
            actors[actor] = node
        return cls(ray, actors)

    def wait_for_all(self, patience: float = PATIENCE) -> None:
        """Leave those out that do not answer, and with them their nodes; JobError when none does."""
        waiting = self._asked_to_answer()
        ready, late = self.ray.wait(list(waiting), num_returns=len(waiting), timeout=patience)
        for reply in (*late, *(each for each in ready if not self._came(each))):
            self.silent.append(self._leaves(waiting[reply]))
        if not self.actors:
            here = self.ray.util.get_node_ip_address()
            raise JobError(
                f"No node of the Ray cluster has answered this host ({here} to Ray) within {patience:.0f} seconds. "
                f"They may be busy with other work (`ray status` says so), hang, or not reach it. {REACH}"
            )

    def left_after_a_loss(self, patience: float = PING) -> int:
        """How many actors there still are.  One that does not answer at once may be at work: Ray will tell."""
        waiting = self._asked_to_answer()
        ready, _ = self.ray.wait(list(waiting), num_returns=len(waiting), timeout=patience)
        for reply in ready:
            if not self._came(reply):
                self._leaves(waiting[reply])
        return len(self.actors)

    def tell(self, method: str, *arguments: Any) -> None:
        """Have every actor do this before anything that is asked later."""
        for actor in self.actors:
            getattr(actor, method).remote(*arguments)

    def each(self, method: str, *arguments: Any) -> list[tuple[str, Any]]:
        """(address, answer) of every actor that is asked."""
        asked = [(_address(node), getattr(actor, method).remote(*arguments)) for actor, node in self.actors.items()]
        return [(address, self.ray.get(reply, timeout=LONGEST_STEP)) for address, reply in asked]

    def streamed(self, task: Callable[..., Iterator[Any]], several: Iterable[tuple[Any, ...]]) -> Generator[Any | None]:
        """What ``task(*each)`` of `several` yields, one after the other in turn; None where nothing came for a while.

        They run ahead by a part an actor, on nodes that have one.  JobError where nothing comes for too long.
        """
        ahead = {"num_returns": "streaming", "_generator_backpressure_num_objects": len(self.actors) + 1}
        settled = {"num_cpus": 0, "max_retries": 0, **ahead}
        started = [
            self.ray.remote(scheduling_strategy=_on(node), **settled)(task).remote(*each)
            for each, node in zip(several, cycle(self.actors.values()), strict=False)
        ]
        left, waited = deque(started), 0.0
        try:
            while left:
                if not self.ray.wait([left[0]], timeout=POLL_SECONDS, fetch_local=False)[0]:
                    if (waited := waited + POLL_SECONDS) > LONGEST_STEP:
                        raise JobError(f"A node has read nothing for {waited / 60:.0f} minutes. {REACH}")
                    yield None
                    continue
                waited = 0.0
                with suppress(StopIteration):
                    yield next(left[0])
                    left.append(left[0])
                left.popleft()
        finally:
            for one in started:
                self.ray.cancel(one)

    def answers(self, method: str, tasks: Iterable[Any | None]) -> Generator[Any | None]:
        """What the actors answer to `tasks`, as it comes; None where nothing came for a while.

        A task None says that the next one is not there yet.  Raises what an actor raised, and Ray's errors when one
        is lost.
        """
        from ray.util import ActorPool

        pool = ActorPool([*self.actors] * TASKS_AHEAD)

        def next_answer(patience: float = POLL_SECONDS) -> Any | None:
            try:
                return pool.get_next_unordered(timeout=patience)
            except TimeoutError as error:
                if isinstance(error, self.ray.exceptions.RayError):  # of an actor
                    raise
                return None

        for task in tasks:
            if task is None:
                yield next_answer(0.0) if pool.has_next() else None
                continue
            while not pool.has_free():
                yield next_answer()
            pool.submit(lambda actor, given: getattr(actor, method).remote(given), task)
        while pool.has_next():
            yield next_answer()

    def close(self) -> None:
        """End the actors, whatever they do."""
        while self.actors:
            self.ray.kill(self.actors.popitem()[0])

    def _asked_to_answer(self) -> dict[Any, Any]:
        """What each actor streams → the actor."""
        return {actor.answer.options(num_returns="streaming").remote(): actor for actor in self.actors}

    def _came(self, reply: Any) -> bool:
        try:
            self.ray.get(next(reply), timeout=PING)
        except self.ray.exceptions.RayError:
            return False
        return True

    def _leaves(self, actor: Any) -> str:
        self.ray.kill(actor)
        return _address(self.actors.pop(actor))


def seats(ray: Any, each: Each) -> list[Mapping[str, Any]]:
    """The nodes that are there, each as often as it has what an actor takes: one from every node first."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    room = [_room(node, each) for node in nodes]
    found = [node for turn in range(max(room, default=0)) for node, n in zip(nodes, room, strict=True) if turn < n]
    if not found:
        raise JobError("The Ray cluster has no processors to offer; start nodes with some (ray start --num-cpus).")
    return found


def _room(node: Mapping[str, Any], each: Each) -> int:
    if each == "node":
        return 1
    n = int(node["Resources"].get("GPU" if each == "gpu" else "CPU", 0))
    return min(n, 1) if each == "whole node" else n


def _needs(node: Mapping[str, Any], each: Each) -> dict[str, float]:
    """What an actor takes of its node; Ray gives it as many threads as processors."""
    if each == "gpu":
        return {"num_gpus": 1, "num_cpus": 0}
    return {"num_cpus": {"cpu": 1, "node": 0, "whole node": node["Resources"].get("CPU", 0)}[each]}


def _address(node: Mapping[str, Any]) -> str:
    return str(node["NodeManagerAddress"])


def _on(node: Mapping[str, Any]) -> Any:
    """To be done on this node and no other."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)


def has_gpus(ray: Any) -> bool:
    """Whether any node has one."""
    return any(node["Resources"].get("GPU", 0) >= 1 for node in ray.nodes() if node["Alive"])
