"""The files of batch endpoints: requests as lines, results as lines (OpenAI's form, which `vllm run-batch` takes too).

A line asks for all samples of one prompt at once, with the body that a direct request would have; its `custom_id` is
the reply-cache key of the first of them.  So a result tells by itself which request it answers, in whatever order
results come, and a result of another judge is known to nobody.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any, Final, Literal, NamedTuple, Protocol

from core.providers.base import Completion, Failure, OnReply, Reply, ReplyStore, Request, RunAnswers
from core.providers.cached import failure_to_json, reply_to_json
from core.providers.prices import Price
from core.providers.wire import (
    MOST_AT_ONCE,
    Capabilities,
    NotACompletionError,
    came_empty,
    cut_off_thinking,
    left_out,
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
"""How lines end that a batch never came to; a new batch may."""

_LONGEST_LINE = 32_000_000
_KEPT_TOGETHER = 500

Rest = Literal["batch", "direct", "leave"]
"""What is done with requests that a batch ended without: a new batch, direct requests, nothing."""

Wait = Callable[[int, int, float], None]
"""(answered, of so many, seconds): wait so long, or raise to be called again later."""

Walk = Callable[[], Iterable[Sequence[Request]]]
"""All requests that are asked for, some at a time and in the same order at every call."""


# ── how far batches are ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Part:
    """One batch: `mark` and `digest` of its file are noted before it is uploaded, the ids when the endpoint has it.

    `left` of its `n` lines were neither answered nor failed by themselves when it was read.
    """

    mark: str
    digest: str
    n: int
    file_id: str = ""
    batch_id: str = ""
    read: bool = False
    left: int = 0


@dataclass(frozen=True)
class BatchNotes:
    """How far requests are on their way through batches; `settled`: no batch is waited for or made any more.

    `begun` is when the latest batches were made, in seconds since 1970; `without` names what the endpoint refuses and
    was not sent.
    """

    begun: float
    parts: tuple[Part, ...] = ()
    without: tuple[str, ...] = ()
    settled: bool = False


class NotesStore(Protocol):
    """Where notes outlive the process."""

    def load(self) -> BatchNotes | None: ...
    def save(self, notes: BatchNotes) -> None:
        """Durable when this returns."""
        ...


# ── lines that ask ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Asked:
    """The requests of one scoring or one step of a calibration, and which of them have no answer yet.

    `samples` maps the key of every request to itself and those samples of its prompt that come after it, where there
    are any; `waiting` holds the keys without an answer as of the last `lines`; `reads` is that of the requests.
    """

    walk: Walk
    endpoint: str
    replies: ReplyStore
    samples: dict[str, tuple[str, ...]] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    without: tuple[str, ...] = ()
    reads: Callable[[Completion], bool] | None = None

    def lines(self, known: Capabilities, skipped: Iterable[str] = ()) -> Iterator[tuple[tuple[Request, ...], bytes]]:
        """(samples of one prompt, line) for all without an answer, those that begin with a `skipped` key left out."""
        skip = frozenset(skipped)
        for keyed, missing in self._looked(several="n" not in known.refused):
            for group in _groups(
                {key: keyed[key] for key in keyed if key in missing}, several="n" not in known.refused
            ):
                if group[0] in skip:
                    continue
                request = keyed[group[0]]
                self.without = left_out(request, known)
                body = request_body(request, known, len(group))
                line = {"custom_id": group[0], "method": "POST", "url": URL, "body": body}
                text = json.dumps(line)  # ASCII: whatever splits lines, splits them here
                yield tuple(keyed[key] for key in group), text.encode() + b"\n"

    def look(self) -> None:
        """Find out which requests there are, and which of them have no answer yet."""
        for _ in self._looked():
            pass

    def _looked(self, *, several: bool = True) -> Iterator[tuple[dict[str, Request], set[str]]]:
        self.samples.clear()
        self.waiting.clear()
        for requests in self.walk():
            keyed = {request.key(self.endpoint): request for request in requests}
            self.reads = next((request.reads for request in requests), self.reads)
            missing = self._missing(list(keyed))
            self.waiting |= missing
            for group in _groups(keyed, several=several):
                self.samples.update((key, group[k:]) for k, key in enumerate(group))
            yield keyed, missing

    def _missing(self, keys: Sequence[str]) -> set[str]:
        own = self.replies.answered(keys) if isinstance(self.replies, RunAnswers) else {}
        rest = [key for key in keys if key not in own]
        return set(rest) - self.replies.get_replies(rest).keys()


def _groups(keyed: Mapping[str, Request], *, several: bool) -> Iterator[tuple[str, ...]]:
    """The keys of the samples of each prompt, as direct requests would ask for them."""
    prompts: dict[Request, list[str]] = {}
    for key, request in keyed.items():
        prompts.setdefault(request.prompt, []).append(key)
    for prompt, keys in prompts.items():
        size = MOST_AT_ONCE if several and prompt.temperature != 0.0 else 1
        yield from (tuple(keys[start : start + size]) for start in range(0, len(keys), size))


class PartFile:
    """Lines on their way into one file, until it is `full`."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.n, self.size = file, 0, 0
        self._sha = hashlib.sha256()

    def full(self, line: bytes) -> bool:
        """Whether `line` belongs into the next file."""
        return self.n >= MOST_REQUESTS or (self.n > 0 and self.size + len(line) > MOST_BYTES)

    def add(self, line: bytes) -> None:
        self.file.write(line)
        self._sha.update(line)
        self.n, self.size = self.n + 1, self.size + len(line)

    @property
    def digest(self) -> str:
        return f"sha256:{self._sha.hexdigest()}"


# ── lines that answer ────────────────────────────────────────────────────────────────────────────────────────


class Result(NamedTuple):
    """One line of results: its replies, or () with the `problem` in a word or two."""

    custom_id: str
    replies: tuple[Reply, ...]
    problem: str = ""


@dataclass
class Came:
    """What results came to, counted in lines.

    `answered` and `failed` hold the custom ids; `untried` lines were not come to in time, `repeated` ones answered once
    more, `foreign` ones answer requests that nobody here made (of another judge, say), `unusable` ones are no results.
    """

    answered: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    untried: int = 0
    repeated: int = 0
    foreign: int = 0
    unusable: int = 0

    def as_json(self) -> dict[str, Any]:
        """The counts, and why lines failed."""
        counts = {"answered": len(self.answered), "failed": dict(Counter(self.failed.values()))}
        return counts | {
            "untried": self.untried,
            "repeated": self.repeated,
            "foreign": self.foreign,
            "unusable": self.unusable,
        }


def read_results(
    file: IO[bytes], asked: Asked, price: Price | None, *, came: Came, without: Sequence[str] = (), last: bool = False
) -> None:
    """Store the replies of a file of results under the keys of the requests that they answer.

    A reply whose thoughts used up the token limit counts as failed, for a direct request asks again with more room;
    unless nobody asks again after this (`last`).  What is answered already stays as it is.
    """
    batch: list[tuple[str, Reply]] = []
    while line := file.readline(_LONGEST_LINE):
        if not line.strip():
            continue
        result = read_result(line, price)
        keys = () if result is None else asked.samples.get(result.custom_id, ())
        if result is None:
            came.unusable += 1
        elif not keys:
            came.foreign += 1
        elif result.custom_id in came.answered:
            came.repeated += 1
        elif result.custom_id not in asked.waiting:  # kept already, before a kill
            came.answered.add(result.custom_id)
        elif result.problem in UNTRIED:
            came.untried += 1
        elif result.problem or (not last and any(map(cut_off_thinking, result.replies))):
            came.failed[result.custom_id] = result.problem or "cut off while thinking"
        else:
            came.answered.add(result.custom_id)
            came.failed.pop(result.custom_id, None)
            replies = (_sent(reply, without) for reply in result.replies)
            batch += zip(keys, replies, strict=False)
        if len(batch) >= _KEPT_TOGETHER:
            _keep(asked, batch)
            batch = []
    _keep(asked, batch)


def read_result(line: bytes, price: Price | None) -> Result | None:
    """A line of results, at half the price; None for what is none."""
    try:
        body = json.loads(line)
        custom_id = body["custom_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(custom_id, str):
        return None
    response = body.get("response")
    if not isinstance(response, dict):
        return Result(custom_id, (), _code(body.get("error")))
    status, completion = response.get("status_code", 200), response.get("body", response)
    if status != 200:
        return Result(custom_id, (), f"status {status}" if isinstance(status, int) else "no status")
    try:
        replies = read_completions(json.dumps(completion).encode(), price)
    except NotACompletionError:
        return Result(custom_id, (), "no completion")
    if came_empty(replies):
        return Result(custom_id, (), "no choices")
    return Result(custom_id, tuple(map(_at_half, replies)))


def _code(error: object) -> str:
    code = error.get("code") if isinstance(error, dict) else None
    return str(code)[:40] if isinstance(code, str | int) else "no response"


def _at_half(reply: Reply) -> Reply:
    if reply.usage.cost is None:
        return reply
    return replace(reply, usage=replace(reply.usage, cost=reply.usage.cost * HALF))


def _sent(reply: Reply, without: Sequence[str]) -> Reply:
    return replace(reply, without=tuple(without)) if without and isinstance(reply, Completion) else reply


def keep_replies(asked: Asked, requests: Sequence[Request], replies: Sequence[Reply]) -> None:
    """Store the replies to `requests`, which were asked directly."""
    _keep(asked, [(request.key(asked.endpoint), reply) for request, reply in zip(requests, replies, strict=True)])


def _keep(asked: Asked, answers: Sequence[tuple[str, Reply]]) -> None:
    """What says nothing is marked as unread: it serves who asked, and nobody else."""
    store, reads = asked.replies, asked.reads
    kept = [(key, reply) for key, reply in answers if isinstance(reply, Completion)]
    store.put_replies([(k, reply_to_json(r, unread=reads is not None and not reads(r))) for k, r in kept])
    failures = [(key, failure_to_json(reply)) for key, reply in answers if isinstance(reply, Failure)]
    if failures and isinstance(store, RunAnswers):
        store.put_failures(failures)


@dataclass(frozen=True)
class BatchOutcome:
    """What came of it: lines asked for in batches by this call or an earlier one, and what the results were."""

    asked: int = 0
    came: Came = field(default_factory=Came)


class BatchReplies:
    """The replies of a command that asks by batch: a store for everybody, and what serves nobody else beside it.

    As `RunAnswers`, in memory: what came unread in a batch is not asked for once more by the same call, and what was
    paid counts with its cost.
    """

    def __init__(self, shared: ReplyStore) -> None:
        self.shared = shared
        self.counted: set[str] = set()
        self._paid: set[str] = set()
        self._own: dict[str, str] = {}

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        """As `ReplyStore`."""
        return self.shared.get_replies(keys)

    def put_replies(self, replies: Sequence[tuple[str, str]]) -> None:
        """As `ReplyStore`."""
        self.shared.put_replies(replies)
        kept = self.shared.get_replies([key for key, _ in replies])
        self._own |= {key: text for key, text in replies if kept.get(key) != text}
        self._paid |= {key for key, _ in replies}

    def put_failures(self, new: Sequence[tuple[str, str]]) -> None:
        """As `RunAnswers`."""
        self._own |= dict(new)
        self._paid |= {key for key, _ in new}

    def answered(self, keys: Sequence[str]) -> dict[str, tuple[str, bool]]:
        """As `RunAnswers`."""
        mine = [key for key in keys if key in self._paid]
        texts = self.shared.get_replies([key for key in mine if key not in self._own]) if mine else {}
        texts |= {key: self._own[key] for key in mine if key in self._own}
        return {key: (text, True) for key, text in texts.items()}


@dataclass(frozen=True)
class Unasked:
    """Stands where an endpoint is not asked: what no result has answered stays without an answer."""

    endpoint: str

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """A failure for each."""
        failure = Failure("No result that was read answers this request.")
        for index in range(len(requests)):
            if on_reply is not None:
                on_reply(index, failure)
        return [failure for _ in requests]

    def close(self) -> None:
        """Nothing to release."""
