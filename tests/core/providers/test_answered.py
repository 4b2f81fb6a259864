"""A run that is taken up again reads what it was answered: same replies, same cost, nothing asked twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from core.providers.cached import with_cache
from core.providers.completions import Completion, Failure, Message, Reply, Request
from core.records import GoldenSet, Item, Usage
from core.store.store import Store

OnReply = Callable[[int, Reply], None] | None


class Endpoint:
    """One request in ten fails, one in ten is cut off; it breaks down after `lives` replies."""

    endpoint = "http://test/v1"

    def __init__(self, asked: Counter[str], lives: int = 1000) -> None:
        self.asked, self.lives = asked, lives

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply = None) -> list[Reply]:
        replies: list[Reply] = []
        for index, request in enumerate(requests):
            if self.lives == 0:
                raise KeyboardInterrupt
            self.lives -= 1
            text = request.messages[0].content
            self.asked[text] += 1
            number = int(text.split()[1])
            usage = Usage(requests=1, prompt_tokens=number, cost=0.01 * number)
            finish = "length" if number % 10 == 4 else "stop"
            replies.append(
                Failure("filtered", usage) if number % 10 == 3 else Completion(f"reply {number}", finish, usage)
            )
            if on_reply is not None:
                on_reply(index, replies[-1])
        return replies

    def close(self) -> None:
        """Nothing is held."""


def request(number: int) -> Request:
    return Request("m", (Message("user", f"item {number}"),), 0.0, 10)


def new_run(store: Store) -> tuple[str, str]:
    project = store.projects.add("p")
    golden_id = store.goldens.add(project, GoldenSet("g", "single", (Item("a", "text"),), {}))
    return store.runs.add(project, golden_id, "calibration", "t", "a", "s", "{}"), project


def work(store: Store, run: tuple[str, str], endpoint: Endpoint) -> tuple[list[str], Usage]:
    """What one run does: some requests, all of them and some others, then the first again."""
    provider = with_cache(endpoint, store.replies.of_run(run[0]))
    texts, usage = [], Usage()
    for batch in (range(15), range(5, 30), range(3)):
        for reply in provider.complete([request(number) for number in batch]):
            texts.append(reply.text if isinstance(reply, Completion) else reply.message)
            usage = usage + reply.usage
    return texts, usage


@pytest.mark.parametrize("lives", [1, 4, 5, 14, 17, 29])
def test_taken_up_again_it_goes_the_same_way(store: Store, tmp_path: Path, lives: int) -> None:
    with Store(f"sqlite:///{tmp_path / 'undisturbed.sqlite'}") as other:
        undisturbed = work(other, new_run(other), Endpoint(Counter()))
    asked, run = Counter[str](), new_run(store)
    with pytest.raises(KeyboardInterrupt):
        work(store, run, Endpoint(asked, lives))
    assert work(store, run, Endpoint(asked)) == undisturbed
    assert set(asked.values()) == {1}
    assert len(asked) == 30
    assert undisturbed[1].cost == pytest.approx(0.01 * sum(range(30)))


def test_a_new_run_asks_anew_what_failed_or_was_cut_off(store: Store) -> None:
    asked = Counter[str]()
    first = work(store, new_run(store), Endpoint(asked))
    asked.clear()
    second = work(store, new_run(store), Endpoint(asked))
    assert second[0] == first[0]
    assert set(asked) == {f"item {n}" for n in range(30) if n % 10 in (3, 4)}
    assert second[1].cached > first[1].cached
