"""Read and write the files of batch endpoints: requests as lines, results as lines.

This is OpenAI's form, which `vllm run-batch` takes too.  A line asks for all samples of one prompt at once, with the
body that a direct request would have.  Its `custom_id` is the reply-cache key of the first of them, so a result tells
by itself which request it answers, in whatever order results come.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from core.errors import UsageError
from core.files import saving
from core.providers.completions import Completion, Failure, OnReply, Reply, ReplyStore, Request
from core.providers.endpoints import Price
from core.providers.wire import (
    MOST_AT_ONCE,
    Capabilities,
    UnansweredError,
    came_empty,
    prompts_of,
    read_completions,
    request_body,
)

URL: Final = "/v1/chat/completions"
MOST_REQUESTS = 50_000
"""Lines of a file; OpenAI's limit."""

MOST_BYTES = 200_000_000
HALF = 0.5
"""What a batch costs of the price of direct requests."""

UNTRIED = frozenset(("batch_expired", "batch_cancelled"))
"""How lines end that a batch never came to."""

_LONGEST_LINE = 32_000_000


def request_lines(
    walk: Iterable[Sequence[Request]], endpoint: str, known: Capabilities, replies: ReplyStore
) -> Iterator[bytes]:
    """The lines that ask for all requests of `walk` that `replies` does not answer; `known` says what may be sent."""
    for requests in walk:
        keyed = {request.key(endpoint): request for request in requests}
        answered = replies.get_replies(list(keyed))
        missing = [request for key, request in keyed.items() if key not in answered]
        for prompt in prompts_of(missing, several="n" not in known.refused):
            first = missing[prompt.places[0]]
            body = request_body(first, known, len(prompt.places))
            line = {"custom_id": first.key(endpoint), "method": "POST", "url": URL, "body": body}
            yield json.dumps(line).encode() + b"\n"  # ASCII: whatever splits lines, splits them here


def write_lines(lines: Iterable[bytes], path: Path) -> tuple[list[Path], int]:
    """Write `lines` into files of a size that endpoints take: `path`, then `NAME-2`, …  Returns the files and n lines.

    UsageError for a place that cannot be written.
    """
    left = iter(lines)
    line, paths, n = next(left, None), list[Path](), 0
    while line is not None:
        paths.append(path if not paths else path.with_name(f"{path.stem}-{len(paths) + 1}{path.suffix}"))
        with saving(paths[-1]) as place, place.open("wb") as file:
            n_here = size = 0
            while line is not None and n_here < MOST_REQUESTS and (n_here == 0 or size + len(line) <= MOST_BYTES):
                file.write(line)
                n_here, size = n_here + 1, size + len(line)
                line = next(left, None)
        n += n_here
    return paths, n


def read_result(line: bytes, price: Price | None) -> tuple[str, tuple[Reply, ...], str] | None:
    """(custom_id, replies at half the price, the problem in a word or two) of a line; None for no line of results."""
    try:
        body = json.loads(line)
        custom_id = body["custom_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(custom_id, str):
        return None
    response, error = body.get("response"), body.get("error")
    if not isinstance(response, dict):
        code = error.get("code") if isinstance(error, dict) else None
        return custom_id, (), str(code)[:40] if isinstance(code, str | int) else "no response"
    status = response.get("status_code", 200)
    if status != 200:
        return custom_id, (), f"status {status}" if isinstance(status, int) else "no status"
    try:
        replies = read_completions(json.dumps(response.get("body", response)).encode(), price)
    except UnansweredError:
        return custom_id, (), "no completion"
    if came_empty(replies):
        return custom_id, (), "no choices"
    costs = [None if reply.usage.cost is None else reply.usage.cost * HALF for reply in replies]
    halved = (replace(reply, usage=replace(reply.usage, cost=cost)) for reply, cost in zip(replies, costs, strict=True))
    return custom_id, tuple(halved), ""


class BatchResults:
    """A provider that answers from files of results and asks nobody; what no line answers is a failure.

    A line counts once.  `without` is what the requests did not send.
    """

    def __init__(self, endpoint: str, price: Price | None = None, without: tuple[str, ...] = ()) -> None:
        self.endpoint, self.price, self.without = endpoint, price, without
        self._lines = Counter[str]()
        self._failed = dict[str, str]()
        self._replies = dict[str, tuple[Reply, ...]]()

    def add(self, path: Path, wanted: set[str]) -> None:
        """Read the lines of a file with a key of `wanted`.  UsageError for a file that cannot be read."""
        try:
            with path.open("rb") as file:
                while line := file.readline(_LONGEST_LINE):
                    if line.strip():
                        self._add(line, wanted)
        except OSError as error:
            raise UsageError(f"--batch-read: {path} cannot be read ({error.strerror}).") from error

    def _add(self, line: bytes, wanted: set[str]) -> None:
        if (result := read_result(line, self.price)) is None:
            self._lines["unusable"] += 1
            return
        custom_id, replies, problem = result
        if custom_id not in wanted:
            self._lines["foreign"] += 1
        elif custom_id in self._replies:
            self._lines["repeated"] += 1
        elif problem in UNTRIED:
            self._lines["untried"] += 1
        elif problem:
            self._failed[custom_id] = problem
        else:
            self._replies[custom_id] = replies
            self._failed.pop(custom_id, None)

    @property
    def counts(self) -> Mapping[str, Any]:
        """How many lines came to what.

        "untried": lines that the batch never came to; "repeated": that answer once more; "foreign": that answer a
        request that nobody here made; "unusable": that are not results.
        """
        counts = {name: self._lines[name] for name in ("untried", "repeated", "foreign", "unusable")}
        return {"answered": len(self._replies), "failed": dict(Counter(self._failed.values()))} | counts

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """As `Provider.complete`."""
        replies = list[Reply]()
        for index, request in enumerate(requests):
            reply: Reply = Failure("No result that was read answers this request.")
            for back in range(min(request.sample, MOST_AT_ONCE - 1) + 1):  # an earlier sample's line may hold this one
                key = replace(request, sample=request.sample - back).key(self.endpoint)
                if back < len(found := self._replies.get(key, ())):
                    reply = found[back]
                    break
            replies.append(replace(reply, without=self.without) if isinstance(reply, Completion) else reply)
            if on_reply is not None:
                on_reply(index, replies[-1])
        return replies

    def close(self) -> None:
        """Nothing to release."""
