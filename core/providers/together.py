"""Requests that go out together: samples of one prompt in one, and the replies of a batch as they arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.providers.base import Failure, OnReply, Reply, Request
from core.providers.wire import MOST_AT_ONCE

UNANSWERED = Failure("The request was not answered.")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request and the places in its batch that wait for a sample of it."""

    request: Request
    places: tuple[int, ...]


def prompts_of(requests: Sequence[Request]) -> list[Prompt]:
    """The requests in order of first appearance, samples of one prompt together.

    `MOST_AT_ONCE` at most, and one by one at temperature 0, where several are all the same and some servers refuse.
    """
    places: dict[Request, list[int]] = {}
    for index, request in enumerate(requests):
        places.setdefault(request.prompt, []).append(index)
    sizes = {request: MOST_AT_ONCE if request.temperature != 0 else 1 for request in places}
    return [
        Prompt(request, tuple(own[start : start + sizes[request]]))
        for request, own in places.items()
        for start in range(0, len(own), sizes[request])
    ]


@dataclass
class Arriving:
    """The replies so far, in the event loop's thread; `over` once an error has ended the batch."""

    replies: list[Reply]
    on_reply: OnReply | None
    over: bool = False
    workers: int = 0

    def arrived(self, index: int, reply: Reply) -> None:
        self.replies[index] = reply
        if self.on_reply is not None:
            self.on_reply(index, reply)
