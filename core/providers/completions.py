"""The `Provider` protocol: requests for completions, and their replies.

A provider answers a batch of requests concurrently and in order of submission, so that a server's prefix cache works.
One bad reply is a `Failure` in its place. `ProviderError` ends the batch: a refused key, an unknown model, an endpoint
that is down.
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

    Requests of a batch that differ only in `sample` repeat one prompt (see `prompt`).

    Attributes:
        temperature: None leaves it to the model.
        sample: The number of the sample, if one prompt is sampled several times.
        json_schema: The JSON text of a schema for the reply, "" for none.
        logprobs: Number of likeliest tokens to return for each token.  An endpoint may leave them out.
        effort: How long a model thinks, "" leaves it to the model.
        numbers: Ask a model in the process for the probabilities of these answers instead of a written reply.
        extra: Further fields of the request's body, a JSON object.
        room: Tokens for the model's thoughts, in addition to `max_tokens`.
        reads: Whether a reply can be read.  An unreadable reply is not reused by other runs.
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
        """Return this request as sample 0, which is equal for all samples of one prompt."""
        return self if self.sample == 0 else replace(self, sample=0)

    def key(self, endpoint: str) -> str:
        """Content hash of everything that can change the answer, with the endpoint's URL, without key and time-out."""
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
        later = ("logprobs", "effort", "numbers", "extra")  # requests without these keep their old keys
        parts += [{name: value} for name in later if (value := getattr(self, name))]
        return content_digest("reply", parts)


OFF_SCALE = "off_scale"
"""The finish of a weighed reply with too little probability on the numbers; its text explains it."""


class TokenLogprobs(NamedTuple):
    """A token of a reply, and the likeliest tokens in its place with natural logarithms of their probabilities."""

    token: str
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply of a language model.

    Attributes:
        finish: "stop", "length" (truncated), "refusal" or `OFF_SCALE`.
        cached: Whether it came from the store.
        logprobs: The first tokens of the reply, if requested and given.
        thinking: Tokens of thoughts; the usage includes them.
        without: Parts of the request that were not sent, because the endpoint refuses or ignores them.
        room: Tokens by which the limit was raised, because thoughts used it up.
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
    """The failure of a single request (content filter, malformed reply).

    `usage` is its cost, since an endpoint may charge for a withheld reply.
    """

    message: str
    usage: Usage = field(default_factory=Usage)


Reply = Completion | Failure
OnReply = Callable[[int, Reply], None]
"""Called with a request's position in its batch and its reply; may raise to end the batch."""


class ReplyStore(Protocol):
    """A cache of replies by request key, implemented by the store."""

    def get_replies(self, keys: Sequence[str]) -> dict[str, str]:
        """Key → stored JSON text, for the stored ones of `keys`."""
        ...

    def put_replies(self, replies: Sequence[tuple[str, str]]) -> None:
        """Store (key, JSON text) pairs; committed when this returns; storing a key twice keeps the first."""
        ...


@runtime_checkable
class RunAnswers(ReplyStore, Protocol):
    """The reply store of one run (`core.store.runs.RunReplies`), which keeps all of the run's answers."""

    counted: set[str]
    """Keys whose answer has counted since the run started or resumed; repeated answers cost nothing."""

    def answered(self, keys: Sequence[str]) -> dict[str, tuple[str, bool]]:
        """Key → (stored JSON text, whether the run paid for it), for the answered ones of `keys`."""
        ...

    def put_failures(self, new: Sequence[tuple[str, str]]) -> None:
        """Store (key, JSON text) pairs of failed requests."""
        ...


class Provider(Protocol):
    @property
    def endpoint(self) -> str:
        """URL or name for the cache key, without secrets."""
        ...

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Replies in the order of `requests`; calls `on_reply(index, reply)` as each arrives."""
        ...

    def close(self) -> None: ...


class ClosedProvider:
    """A provider that returns cached replies of an endpoint and never sends a request."""

    def __init__(self, endpoint: str, why: ConsentError) -> None:
        self.endpoint, self.why = endpoint, why

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Raise ConsentError for any request."""
        if requests:
            raise ConsentError(str(self.why), self.endpoint)
        return []

    def close(self) -> None:
        """Nothing to release."""
