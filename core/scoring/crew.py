"""Actors on the nodes of a Ray cluster, each with its node, and what they and tasks beside them are asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import Any, Literal

from core.cluster import LONGEST_STEP, PING, POLL_SECONDS, REACH, comes_back
from core.errors import JobError

TASKS_AHEAD = 2
"""Tasks that an actor has, one of them at work, unless it does several at once."""

PATIENCE = 60.0
"""Seconds that new actors get to answer before they are left out; then, that no answer comes before all are looked at,
and that a sign of life may take."""

LIFE = "life"
"""A thread of an actor that does nothing but give a sign of life, whatever the others are at.

Only where there are several: one that computes takes a seventh longer in a thread than alone in its process.
"""

Each = Literal["cpu", "gpu", "node", "gpu node", "whole node"]
"""What has one actor: it computes on it, or waits for somebody else there ("node", or "gpu node", which has some)."""


@dataclass
class Crew:
    """Actors on the nodes of a cluster, with the node that each was put on.

    Their class has ``answer``, which yields once: streamed results come by a connection that the node opens to this
    host, so whoever answers can also send, and not just be called; and ``alive``, which does nothing.
    `silent` are the addresses of nodes that did not answer and were left out.  An actor that is lost leaves the crew.
    Each does `at_once` tasks at once, in threads of its own.
    """

    ray: Any
    actors: dict[Any, Mapping[str, Any]]
    silent: list[str] = field(default_factory=list)
    at_once: int = 1

    @classmethod
    def of(cls, ray: Any, kind: type, *arguments: Any, each: Each, most: int | None = None, at_once: int = 1) -> Crew:
        """An actor of `kind` for `each` processor, GPU or node, `most` at most; they start in the background.

        JobError where no node has any.
        """
        settled: dict[str, Any] = {"max_restarts": 0, "max_task_retries": 0}  # what is lost is told, not waited for
        if at_once > 1:
            settled |= {"max_concurrency": at_once, "concurrency_groups": {LIFE: 1}}
        actors = {}
        for node in seats(ray, each)[:most]:
            actor = ray.remote(scheduling_strategy=_on(node), **_needs(node, each), **settled)(kind).remote(*arguments)
            actors[actor] = node
        return cls(ray, actors, at_once=at_once)

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
        for told in [getattr(actor, method).remote(*arguments) for actor in self.actors]:
            with suppress(self.ray.exceptions.RayError):  # of one that is lost: what it is asked next says so
                self.ray.get(told, timeout=LONGEST_STEP)

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
                    waited += POLL_SECONDS
                    self._check_patience(waited)
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
        is lost, once what the others had at hand has come.
        """
        from ray.util import ActorPool

        pool, waited = ActorPool([*self.actors] * max(TASKS_AHEAD, self.at_once)), 0.0

        def next_answer(patience: float = POLL_SECONDS) -> Any | None:
            nonlocal waited
            try:
                answer = pool.get_next_unordered(timeout=patience)
            except TimeoutError as error:
                if isinstance(error, self.ray.exceptions.RayError):  # of an actor
                    raise
                waited += patience
                if waited >= PATIENCE:
                    self._end_frozen()
                    waited = 0.0
                return None
            waited = 0.0
            return answer

        try:
            for task in tasks:
                if task is None:
                    yield next_answer(0.0) if pool.has_next() else None
                    continue
                while not pool.has_free():
                    yield next_answer()
                pool.submit(lambda actor, given: getattr(actor, method).remote(given), task)
            while pool.has_next():
                yield next_answer()
        except self.ray.exceptions.RayError:
            while pool.has_next():  # it would be done again
                with suppress(self.ray.exceptions.RayError):
                    yield next_answer()
            raise

    def close(self) -> None:
        """End the actors, whatever they do; those of a head that hangs end with the connection."""
        while self.actors and comes_back(partial(self.ray.kill, self.actors.popitem()[0])):
            pass

    def _end_frozen(self) -> None:
        """End the actors of several threads that give no sign of life; Ray says then that their tasks are lost."""
        if self.at_once == 1:
            return
        waiting = {actor.alive.options(concurrency_group=LIFE).remote(): actor for actor in self.actors}
        for reply in self.ray.wait(list(waiting), num_returns=len(waiting), timeout=PATIENCE)[1]:
            comes_back(partial(self.ray.kill, waiting[reply]))

    def _asked_to_answer(self) -> dict[Any, Any]:
        """What each actor streams → the actor."""
        return {actor.answer.options(num_returns="streaming").remote(): actor for actor in self.actors}

    def _check_patience(self, waited: float) -> None:
        """JobError after so many seconds in which a node read nothing: at once where the head does not answer."""
        if waited > LONGEST_STEP:
            raise JobError(f"A node has read nothing for {waited / 60:.0f} minutes. {REACH}")
        if waited % PATIENCE < POLL_SECONDS <= waited and not comes_back(self.ray.nodes):
            raise JobError(
                "The head of the Ray cluster does not answer any more. Look at its host and its logs; what is done so "
                "far is kept, and the same command goes on once it is there again."
            )

    def _came(self, reply: Any) -> bool:
        try:
            self.ray.get(next(reply), timeout=PING)
        except self.ray.exceptions.RayError:
            return False
        return True

    def _leaves(self, actor: Any) -> str:
        comes_back(partial(self.ray.kill, actor))
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
    n = int(node["Resources"].get("GPU" if each in ("gpu", "gpu node") else "CPU", 0))
    return n if each in ("cpu", "gpu") else min(n, 1)


def _needs(node: Mapping[str, Any], each: Each) -> dict[str, float]:
    """What an actor takes of its node; Ray gives it as many threads as processors."""
    if each == "gpu":
        return {"num_gpus": 1, "num_cpus": 0}
    return {"num_cpus": {"cpu": 1, "node": 0, "gpu node": 0, "whole node": node["Resources"].get("CPU", 0)}[each]}


def _address(node: Mapping[str, Any]) -> str:
    return str(node["NodeManagerAddress"])


def _on(node: Mapping[str, Any]) -> Any:
    """To be done on this node and no other."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)


def has_gpus(ray: Any) -> bool:
    """Whether any node has one."""
    return any(node["Resources"].get("GPU", 0) >= 1 for node in ray.nodes() if node["Alive"])
