"""The JSON of chat completions: from a `Request` to a body, from a body to a reply with its cost; and files of both.

Files of batch endpoints have OpenAI's form, which `vllm run-batch` takes too.  A line holds the body that a direct
request would have.  Its `custom_id` is the request's key in the reply cache, so results may come in any order.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from core.errors import UsageError, hide_sent
from core.files import saving
from core.providers.completions import Completion, Failure, OnReply, Reply, ReplyStore, Request, TokenLogprobs
from core.providers.endpoints import Price
from core.records import Usage

T = TypeVar("T")

EXTRAS = frozenset({"response_format", "logprobs"})
"""What many endpoints do not do; a run continues without them."""

OPTIONAL = ("reasoning_effort", "seed", "top_p", "temperature", "max_tokens", *sorted(EXTRAS))

ROOM_TO_THINK = (4096, 16384)
"""Tokens added to the limit if a model's thoughts use it up; the second if the first are not enough."""

CHARACTERS_PER_TOKEN = 4

MOST_CHARACTERS = 100_000
"""Characters of a reply that are read; more than any token limit of ours gives."""

LOGPROB_PLACES = 16
"""Tokens of a reply whose logprobs are kept: a bare rating stands near the start."""

NO_CHOICES = "The endpoint sent a completion without choices."


class UnansweredError(Exception):
    """The endpoint's answer is not a usable completion.

    Attributes:
        kind: "status", "redirect", "timeout", "unreachable", "no TLS", "no HTTP", or "odd body" of a 200 reply.
        words: The server's own message, what the body looks like, or where the redirect leads.
        status: The HTTP status, 0 without one.
        told: All that the server said, to search in.
        param: The parameter that it names.
        wait: The seconds that it asks to wait.
    """

    def __init__(
        self, kind: str, words: str = "", *, status: int = 0, told: str = "", param: str = "", wait: float | None = None
    ) -> None:
        super().__init__(words or kind)
        self.kind, self.words, self.status, self.told, self.param, self.wait = kind, words, status, told, param, wait


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Capabilities:
    """What an endpoint supports, learnt from the first calls.

    What is refused is not sent again. `max_tokens` is then sent as `max_completion_tokens`, and a system message is put
    before the first user message. Without a schema the reply is read as text, without logprobs the stated rating
    counts.

    Attributes:
        refused: Names of `OPTIONAL`, and "system" for messages of that role.
        proven: Names of `EXTRAS` that an answer has shown to work.
        room: Tokens added to the limit for a model that thinks.
    """

    refused: set[str] = field(default_factory=set)
    proven: set[str] = field(default_factory=set)
    room: int = 0

    def unproven(self, body: Mapping[str, Any]) -> set[str]:
        """The extras in `body` of which it is not known yet whether the endpoint does them."""
        return {name for name in EXTRAS if name in body} - self.proven

    def learn_from_answer(self, body: Mapping[str, Any], reply: Reply) -> None:
        """Note which extras of `body` the endpoint did, and which it silently ignored."""
        if isinstance(reply, Completion) and reply.text and reply.finish == "stop":
            did = {"logprobs": bool(reply.logprobs), "response_format": reply.text.lstrip().startswith("{")}
            for name in self.unproven(body):
                (self.proven if did[name] else self.refused).add(name)


_SYSTEM = re.compile(r"(?i)system['\"`]? (?:role|message|prompt|instruction)|role[^.]*system|developer instruction")


def refused_part(error: UnansweredError, body: Mapping[str, Any]) -> str | None:
    """The optional part of `body` that an error about it names; None if sending less makes no sense."""
    sent = [name for name in OPTIONAL if name in body]
    if "system" in roles_in(body):
        sent.insert(0, "system")
    param = error.param.removeprefix("top_") if error.param == "top_logprobs" else error.param
    if param in sent:
        return param
    for name in sent:
        mention = _SYSTEM if name == "system" else rf"(?<!\w){'(?:top_)?' * (name == 'logprobs')}{name}(?!\w)"
        if re.search(mention, error.told):
            return name
    return None


def roles_in(body: Mapping[str, Any]) -> frozenset[str]:
    """The roles of the messages in a body."""
    return frozenset(message["role"] for message in body["messages"])


def request_body(request: Request, capabilities: Capabilities) -> dict[str, Any]:
    """The JSON body that asks for a reply to `request`, without what the endpoint refuses."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
    }
    if request.temperature is not None:
        body["temperature"] = request.temperature
    body["max_tokens"] = request.max_tokens + max(capabilities.room, request.room)
    if request.top_p < 1.0:
        body["top_p"] = request.top_p
    if request.effort:
        body["reasoning_effort"] = request.effort
    if request.seed is not None:
        body["seed"] = request.seed
    if request.json_schema:
        schema = {"name": "reply", "schema": json.loads(request.json_schema), "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.logprobs:
        body |= {"logprobs": True, "top_logprobs": request.logprobs}
    if request.extra:
        body |= json.loads(request.extra)
    return without(body, capabilities.refused)


def without(body: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    """`body` without these optional parts, or with what stands for them in their place."""
    dropped = names | {"top_logprobs"} if "logprobs" in names else names
    left = {name: value for name, value in body.items() if name not in dropped}
    if "max_tokens" in names and "max_tokens" in body:
        left["max_completion_tokens"] = body["max_tokens"]
    if "system" in names:
        system = [part["content"].strip() for part in body["messages"] if part["role"] == "system"]
        left["messages"] = others = [dict(part) for part in body["messages"] if part["role"] != "system"]
        for part in [part for part in others if part["role"] == "user" and system][:1]:
            part["content"] = "\n\n".join([*system, part["content"]])
    return left


def left_out(request: Request, capabilities: Capabilities) -> tuple[str, ...]:
    """The parts of `request` that the endpoint does not support."""
    if not capabilities.refused:
        return ()
    asked = request_body(request, Capabilities())
    return tuple(sorted(capabilities.refused & (asked.keys() | roles_in(asked))))


# ── replies ──────────────────────────────────────────────────────────────────────────────────────────────────


def cut_off_thinking(reply: Reply) -> bool:
    """Whether thoughts used up the token limit, so that there is no answer, or only the beginning of one."""
    return isinstance(reply, Completion) and reply.finish == "length" and bool(reply.thinking or not reply.text)


def better_reply(before: Reply, after: Reply) -> Reply:
    """The reply that was not cut off, with what both have cost."""
    first = isinstance(before, Completion) and (not isinstance(after, Completion) or not cut_off_thinking(before))
    return replace(before if first else after, usage=before.usage + after.usage)


def is_empty(reply: Reply) -> bool:
    """Whether a 200 reply held no choices, which may be no more than a hiccup."""
    return isinstance(reply, Failure) and reply.message == NO_CHOICES


def read_completion(body: bytes, price: Price | None) -> Reply:
    """The first choice of a 200 reply; one without text (content filter, say) is a `Failure`, paid for like any other.

    UnansweredError if the body is something else altogether.
    """
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        raise UnansweredError("odd body", _looks_like(body)) from None
    choices = _part(told, "choices", list)
    if choices is None:
        raise UnansweredError("odd body", "JSON without the field 'choices'")
    usage = read_usage(told.get("usage"), price)
    if not choices:
        return Failure(NO_CHOICES, usage)
    choice, message = choices[0], _part(choices[0], "message", dict)
    if message is None:
        return Failure("The endpoint sent a completion without a message.", usage)
    finish, text = _part(choice, "finish_reason", str), message.get("content")
    if finish == "content_filter":
        return Failure("The endpoint's content filter withheld the reply.", usage)
    if refusal := _part(message, "refusal", str):
        return Completion(hide_sent(_encodable(refusal)[:MOST_CHARACTERS]), "refusal", usage)
    if text is not None and not isinstance(text, str):
        return Failure("The endpoint sent a completion whose content is not text.", usage)
    text = hide_sent(_encodable(text or "")[:MOST_CHARACTERS])
    inline = _THOUGHT in text[:_OPENING].lower()
    logprobs = () if inline else _logprobs(_part(_part(choice, "logprobs", dict), "content", list) or [])
    thoughts = text if inline else _part(message, "reasoning", str) or _part(message, "reasoning_content", str) or ""
    counted = _count(_part(told.get("usage"), "completion_tokens_details", dict), "reasoning_tokens")
    thinking = counted or -(-len(thoughts) // CHARACTERS_PER_TOKEN)
    return Completion(text, "length" if finish == "length" else "stop", usage, logprobs=logprobs, thinking=thinking)


_THOUGHT, _OPENING = "<think", 20


def _logprobs(content: Sequence[object]) -> tuple[TokenLogprobs, ...]:
    """The first tokens with their alternatives; nothing if they are missing or not of the usual form."""
    places = []
    for place in content[:LOGPROB_PLACES]:
        token = _part(place, "token", str)
        if token is None:
            return ()
        top = [
            (_encodable(other), float(logprob))
            for entry in _part(place, "top_logprobs", list) or []
            if isinstance(entry, dict)
            and (other := _part(entry, "token", str)) is not None
            and isinstance(logprob := entry.get("logprob"), int | float)
            and math.isfinite(logprob)
        ]
        places.append(TokenLogprobs(_encodable(token), tuple(top)))
    return tuple(places) if any(place.top for place in places) else ()


def read_usage(raw: object, price: Price | None) -> Usage:
    """`Usage` of one request; tokens are 0 and the cost None if the endpoint does not report them.

    Thoughts are paid for as replies are; if only the total holds them, they are taken from there.
    """
    if not isinstance(raw, dict):
        return Usage(requests=1)
    prompt = _count(raw, "prompt_tokens")
    completion = max(_count(raw, "completion_tokens"), _count(raw, "total_tokens") - prompt)
    cached = min(prompt, _count(raw.get("prompt_tokens_details"), "cached_tokens"))
    cost = None if price is None else price.cost(prompt, completion, cached)
    return Usage(1, 0, prompt, completion, cost, cached)


def _part(value: object, name: str, kind: type[T]) -> T | None:
    """What stands under `name` in an object of the JSON; None where it is missing or of another kind."""
    part = value.get(name) if isinstance(value, dict) else None
    return part if isinstance(part, kind) else None


def _count(value: object, name: str) -> int:
    return max(0, _part(value, name, int) or 0)


def _encodable(text: str) -> str:
    """`text` without lone surrogates, which JSON may carry but no file or database takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _looks_like(body: bytes) -> str:
    start = body[:200].lstrip()
    if not start:
        return "an empty body"
    return "an HTML page" if start.startswith(b"<") else "text that is not JSON"


# ── files of batch endpoints ─────────────────────────────────────────────────────────────────────────────────

MOST_REQUESTS, MOST_BYTES = 50_000, 200_000_000
"""Lines and bytes of a file of requests; OpenAI's limits."""

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
        for key in [key for key in keyed if key not in answered]:
            body = request_body(keyed[key], known)
            line = {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body}
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


def read_result(line: bytes, price: Price | None) -> tuple[str, Reply | str] | None:
    """(custom_id, the reply at half the price, or the problem in a word or two); None for no line of results."""
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        return None
    custom_id, response = _part(body, "custom_id", str), _part(body, "response", dict)
    if custom_id is None:
        return None
    if response is None:
        error = _part(body, "error", dict) or {}
        return custom_id, str(error.get("code") or "no response")[:40]
    if (status := response.get("status_code", 200)) != 200:
        return custom_id, f"status {status}" if isinstance(status, int) else "no status"
    try:
        reply = read_completion(json.dumps(response.get("body", response)).encode(), price)
    except UnansweredError:
        return custom_id, "no completion"
    if is_empty(reply):
        return custom_id, "no choices"
    cost = None if reply.usage.cost is None else reply.usage.cost * HALF
    return custom_id, replace(reply, usage=replace(reply.usage, cost=cost))


class BatchResults:
    """A provider that answers from files of results and asks nobody; what no line answers is a failure.

    A line counts once.  `without` is what the requests did not send.
    """

    def __init__(self, endpoint: str, price: Price | None = None, without: tuple[str, ...] = ()) -> None:
        self.endpoint, self.price, self.without = endpoint, price, without
        self._lines = Counter[str]()
        self._failed = dict[str, str]()
        self._replies = dict[str, Reply]()

    def add(self, path: Path, wanted: set[str]) -> None:
        """Read the lines of a file with a key of `wanted`.  UsageError for a file that cannot be read."""
        try:
            with path.open("rb") as file:
                while line := file.readline(_LONGEST_LINE):
                    if line.strip():
                        self._add(read_result(line, self.price), wanted)
        except OSError as error:
            raise UsageError(f"--batch-read: {path} cannot be read ({error.strerror}).") from error

    def _add(self, result: tuple[str, Reply | str] | None, wanted: set[str]) -> None:
        custom_id, reply = result or ("", "")
        if result is None:
            self._lines["unusable"] += 1
        elif custom_id not in wanted:
            self._lines["foreign"] += 1
        elif custom_id in self._replies:
            self._lines["repeated"] += 1
        elif reply in UNTRIED:
            self._lines["untried"] += 1
        elif isinstance(reply, str):
            self._failed[custom_id] = reply
        else:
            self._replies[custom_id] = reply
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
            reply = self._replies.get(request.key(self.endpoint)) or Failure(
                "No result that was read answers this request."
            )
            replies.append(replace(reply, without=self.without) if isinstance(reply, Completion) else reply)
            if on_reply is not None:
                on_reply(index, replies[-1])
        return replies

    def close(self) -> None:
        """Nothing to release."""
