"""Requests to language models, their replies, and the `Provider` protocol.

A provider sends requests concurrently. It starts them in the order of the batch, so that a server's prefix cache works.
An unusable reply becomes a `Failure` in the results. A `ProviderError` ends the whole batch, for example if the key is
refused, the model is unknown, or the endpoint is down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

from core.errors import ConsentError
from core.records import Usage, content_digest


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """A request for one completion from a language model.

    Requests that differ only in `sample` are repeated samples of the same prompt.

    Attributes:
        temperature: None uses the model's default.
        sample: Number of the sample, from 0, if a prompt is sampled several times.
        json_schema: JSON schema of the reply as text, "" for none.
        logprobs: Number of most likely tokens to return for each position in the reply. An endpoint may ignore it.
        effort: Reasoning effort, such as "low"; "" uses the model's default.
        numbers: Possible answers. If set, a local model returns the probability of each answer, and generates no text.
        extra: Additional fields of the request body, as a JSON object.
        room: Tokens for reasoning, in addition to `max_tokens`.
        reads: Function that returns whether a reply can be parsed. An unreadable reply isn't reused by other runs.
    """

    model: str
    messages: tuple[Message, ...]
    temperature: float | None
    max_tokens: int
    top_p: float = 1.0
    seed: int | None = None
    sample: int = 0
    json_schema: str = ""
    logprobs: int = 0
    effort: str = ""
    numbers: tuple[str, ...] = ()
    extra: str = ""
    room: int = 0
    reads: Callable[[Completion], bool] | None = field(default=None, compare=False, repr=False)

    @property
    def prompt(self) -> Request:
        """This request with `sample` set to 0, which is the same for all samples of a prompt."""
        return self if self.sample == 0 else replace(self, sample=0)

    def key(self, endpoint: str) -> str:
        """Return the cache key: a hash of everything that can change the reply, including the endpoint.

        The API key is not part of it.
        """
        parts: list[Any] = [
            endpoint,
            self.model,
            [[m.role, m.content] for m in self.messages],
            self.temperature,
            self.max_tokens,
            self.top_p,
            self.seed,
            self.sample,
            self.json_schema,
        ]
        later = ("logprobs", "effort", "numbers", "extra")  # left out if unset: earlier replies keep their keys
        parts += [{name: value} for name in later if (value := getattr(self, name))]
        return content_digest("reply", parts)


OFF_SCALE = "off_scale"
"""`Completion.finish` if the numbers of the scale have too little probability; the text explains it."""


class TokenLogprobs(NamedTuple):
    """A token of a reply, and the most likely tokens at its position with their log probabilities.

    Log probabilities are natural logarithms.
    """

    token: str
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply of a language model.

    Attributes:
        finish: How the reply ended: "stop", "length" (truncated), "refusal" or `OFF_SCALE`.
        cached: Whether the reply came from the cache.
        logprobs: Log probabilities of the first tokens, if requested and returned.
        thinking: Number of reasoning tokens, which are included in `usage`.
        without: Fields of the request that were not sent, because the endpoint refuses or ignores them.
        room: Tokens that were added to the limit because reasoning had used it up.
    """

    text: str
    finish: str
    usage: Usage
    cached: bool = False
    logprobs: tuple[TokenLogprobs, ...] = ()
    thinking: int = 0
    without: tuple[str, ...] = ()
    room: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of a single request, for example because of a content filter or a malformed reply.

    `usage` is what the request cost: an endpoint may charge for a withheld reply.
    """

    message: str
    usage: Usage = field(default_factory=Usage)


Reply = Completion | Failure
OnReply = Callable[[int, Reply], None]
"""Callback that takes the request's position in its batch and the reply; it may raise to end the batch."""


class ReplyStore(Protocol):
    """A cache of replies by request key."""

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the stored JSON text by key. Keys without a reply are left out."""
        ...

    def put_replies(self, replies: Sequence[tuple[str, str]]) -> None:
        """Store and commit (key, JSON text) pairs. If a key already has a reply, that reply is kept."""
        ...


@runtime_checkable
class RunAnswers(ReplyStore, Protocol):
    """A cache with all replies and failures of a run, implemented by `core.store.runs.RunReplies`."""

    counted: set[str]
    """Keys that were counted since the run started or resumed. Repeated answers cost nothing."""

    def answered(self, keys: Sequence[str]) -> dict[str, tuple[str, bool]]:
        """Return a dict from key to (JSON text, whether the run paid for it), without keys that have no reply."""
        ...

    def put_failures(self, new: Sequence[tuple[str, str]]) -> None:
        """Store (key, JSON text) pairs of failed requests."""
        ...


class Provider(Protocol):
    """A source of completions, such as an endpoint, a local model or a recording."""

    @property
    def endpoint(self) -> str:
        """URL or name of the endpoint, as used in cache keys. It contains no secrets."""
        ...

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Return the replies in the order of `requests`. Call `on_reply(index, reply)` as each reply arrives."""
        ...

    def close(self) -> None: ...


class ClosedProvider:
    """A provider that refuses all requests. Only cached replies of the endpoint can be used."""

    def __init__(self, endpoint: str, why: ConsentError) -> None:
        self.endpoint, self.why = endpoint, why

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Raise ConsentError unless `requests` is empty."""
        if requests:
            raise ConsentError(str(self.why), self.endpoint)
        return []

    def close(self) -> None:
        """Do nothing, because no connection is open."""
