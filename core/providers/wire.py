"""The JSON of chat completions: bodies of requests, replies with their cost, and batch files of both.

Batch files have OpenAI's form, which `vllm run-batch` takes too. A line holds the body of a direct request. Its
`custom_id` is the request's key in the reply cache, so results may come in any order.
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
"""Parts of a request that many endpoints don't support; a run continues without them."""

OPTIONAL = ("reasoning_effort", "seed", "top_p", "temperature", "max_tokens", *sorted(EXTRAS))

ROOM_TO_THINK = (4096, 16384)
"""Tokens added to the limit if a model's thoughts use it up; the second if the first are not enough."""

CHARACTERS_PER_TOKEN = 4

MOST_CHARACTERS = 100_000
"""Characters of a reply that are read; more than any token limit of ours gives."""

LOGPROB_PLACES = 16
"""Tokens of a reply whose logprobs are kept: a bare rating is near the start."""


class UnansweredError(Exception):
    """The endpoint's answer is not a usable completion.

    Attributes:
        kind: "status", "redirect", "timeout", "unreachable", "no HTTP", or "odd body" of a 200 reply.
        words: The server's own message, a description of the body, or the target of the redirect.
        status: The HTTP status, 0 without one.
        told: The text of the server's answer, to search in.
        param: The parameter that the server names.
        wait: The seconds that the server wants us to wait.
    """

    def __init__(
        self, kind: str, words: str = "", *, status: int = 0, told: str = "", param: str = "", wait: float | None = None
    ) -> None:
        super().__init__(words or kind)
        self.kind, self.words, self.status, self.told, self.param, self.wait = kind, words, status, told, param, wait


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Capabilities:
    """What an endpoint supports, learnt from its first answers.

    A refused part is not sent again. Instead of `max_tokens` goes `max_completion_tokens`, and a system message becomes
    the beginning of the first user message.

    Attributes:
        refused: Names of `OPTIONAL`, and "system" for messages of that role.
        proven: Names of `EXTRAS` that worked.
        room: Tokens added to the limit for a model that thinks.
    """

    refused: set[str] = field(default_factory=set)
    proven: set[str] = field(default_factory=set)
    room: int = 0

    def unproven(self, body: Mapping[str, Any]) -> set[str]:
        """The extras in `body` that have not worked yet."""
        return {name for name in EXTRAS if name in body} - self.proven

    def learn_from_answer(self, body: Mapping[str, Any], reply: Reply) -> None:
        """Note which extras of `body` the endpoint supports, and which it silently ignored."""
        if isinstance(reply, Completion) and reply.text and reply.finish == "stop":
            did = {"logprobs": bool(reply.logprobs), "response_format": reply.text.lstrip().startswith("{")}
            for name in self.unproven(body):
                (self.proven if did[name] else self.refused).add(name)


_SYSTEM = re.compile(r"(?i)system['\"`]? (?:role|message|prompt|instruction)|role[^.]*system|developer instruction")


def refused_part(error: UnansweredError, body: Mapping[str, Any]) -> str | None:
    """Name the optional part of `body` that the server's error is about, if any."""
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
    """The JSON body of `request`, without the parts that the endpoint refuses."""
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
    """`body` without these optional parts, or with their substitutes."""
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
    asked = request_body(request, Capabilities()) if capabilities.refused else None
    return () if asked is None else tuple(sorted(capabilities.refused & (asked.keys() | roles_in(asked))))


# ── replies ──────────────────────────────────────────────────────────────────────────────────────────────────


def cut_off_thinking(reply: Reply) -> bool:
    """Whether thoughts used up the token limit, so that the answer is missing or cut."""
    return isinstance(reply, Completion) and reply.finish == "length" and bool(reply.thinking or not reply.text)


def read_completion(body: bytes, price: Price | None) -> Reply:
    """Read the first choice of a 200 reply; one without text is a `Failure` with its cost.

    UnansweredError if the body is not a completion.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        start = body[:200].lstrip()
        shape = "text that is not JSON" if start else "an empty body"
        raise UnansweredError("odd body", "an HTML page" if start.startswith(b"<") else shape) from None
    choices = _part(answer, "choices", list)
    if choices is None:
        raise UnansweredError("odd body", "JSON without the field 'choices'")
    usage = read_usage(answer.get("usage"), price)
    choice = choices[0] if choices else None
    message = _part(choice, "message", dict)
    if message is None:
        return Failure(f"The endpoint sent a completion without {'a message' if choices else 'choices'}.", usage)
    finish, text = _part(choice, "finish_reason", str), message.get("content")
    if finish == "content_filter":
        return Failure("The endpoint's content filter withheld the reply.", usage)
    if refusal := _part(message, "refusal", str):
        return Completion(hide_sent(_encodable(refusal)[:MOST_CHARACTERS]), "refusal", usage)
    if text is not None and not isinstance(text, str):
        return Failure("The endpoint sent a completion whose content is not text.", usage)
    text = hide_sent(_encodable(text or "")[:MOST_CHARACTERS])
    inline = "<think" in text[:20].lower()
    logprobs = () if inline else _logprobs(_part(_part(choice, "logprobs", dict), "content", list) or [])
    thoughts = text if inline else _part(message, "reasoning", str) or _part(message, "reasoning_content", str) or ""
    counted = _count(_part(answer.get("usage"), "completion_tokens_details", dict), "reasoning_tokens")
    thinking = counted or -(-len(thoughts) // CHARACTERS_PER_TOKEN)
    return Completion(text, "length" if finish == "length" else "stop", usage, logprobs=logprobs, thinking=thinking)


def _logprobs(content: Sequence[object]) -> tuple[TokenLogprobs, ...]:
    """The first tokens with their alternatives; nothing if they are missing or not of the usual form."""
    places = []
    for place in content[:LOGPROB_PLACES]:
        token = _part(place, "token", str)
        if token is None:
            return ()
        top = []
        for entry in _part(place, "top_logprobs", list) or []:
            other, logprob = _part(entry, "token", str), _part(entry, "logprob", float)
            if other is not None and logprob is not None and math.isfinite(logprob):
                top.append((_encodable(other), logprob))
        places.append(TokenLogprobs(_encodable(token), tuple(top)))
    return tuple(places) if any(place.top for place in places) else ()


def read_usage(raw: object, price: Price | None) -> Usage:
    """`Usage` of one request; tokens are 0 and the cost None if the endpoint does not report them.

    Thoughts cost as much as replies; if only the total counts them, they are taken from there.
    """
    if not isinstance(raw, dict):
        return Usage(requests=1)
    prompt = _count(raw, "prompt_tokens")
    completion = max(_count(raw, "completion_tokens"), _count(raw, "total_tokens") - prompt)
    cached = min(prompt, _count(raw.get("prompt_tokens_details"), "cached_tokens"))
    cost = None if price is None else price.cost(prompt, completion, cached)
    return Usage(1, 0, prompt, completion, cost, cached)


def _part(value: object, name: str, kind: type[T]) -> T | None:
    """The field `name` of a JSON object; None if it is missing or of another kind."""
    part = value.get(name) if isinstance(value, dict) else None
    if kind is float and isinstance(part, int):
        part = float(part)
    return part if isinstance(part, kind) else None


def _count(value: object, name: str) -> int:
    return max(0, _part(value, name, int) or 0)


def _encodable(text: str) -> str:
    """`text` without lone surrogates, which JSON may carry but no file or database takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


# ── batch files ──────────────────────────────────────────────────────────────────────────────────────────────

MOST_REQUESTS, MOST_BYTES = 50_000, 200_000_000
"""Lines and bytes of a file of requests; OpenAI's limits."""

HALF = 0.5
"""Price of a batch compared with direct requests."""

_LONGEST_LINE = 32_000_000


def request_lines(
    walk: Iterable[Sequence[Request]], endpoint: str, known: Capabilities, replies: ReplyStore
) -> Iterator[bytes]:
    """Yield the line of each request of `walk` without a reply in `replies`; `known` limits what is sent."""
    for requests in walk:
        keyed = {request.key(endpoint): request for request in requests}
        answered = replies.get_replies(list(keyed))
        for key in [key for key in keyed if key not in answered]:
            body = request_body(keyed[key], known)
            line = {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body}
            yield json.dumps(line).encode() + b"\n"  # ASCII, so no other character ends a line


def write_lines(lines: Iterable[bytes], path: Path) -> tuple[list[Path], int]:
    """Write `lines` into files of an accepted size: `path`, then `NAME-2`, …  Returns the files and n lines.

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
    """(custom_id, the reply at half the price or the problem in a word or two); None for any other line."""
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
    cost = None if reply.usage.cost is None else reply.usage.cost * HALF
    return custom_id, replace(reply, usage=replace(reply.usage, cost=cost))


class BatchResults:
    """A provider that answers from files of results; a request without a result is a failure.

    `without` is what the requests did not send.
    """

    def __init__(self, endpoint: str, price: Price | None = None, without: tuple[str, ...] = ()) -> None:
        self.endpoint, self.price, self.without = endpoint, price, without
        self._replies, self._failed, self._foreign = dict[str, Reply](), dict[str, str](), 0

    def add(self, path: Path, wanted: set[str]) -> None:
        """Read the lines of a file with a key of `wanted`.  UsageError for a file that cannot be read."""
        try:
            with path.open("rb") as file:
                while line := file.readline(_LONGEST_LINE):
                    custom_id, reply = read_result(line, self.price) or ("", "")
                    if custom_id not in wanted:
                        self._foreign += bool(line.strip())
                    elif isinstance(reply, str):
                        self._failed[custom_id] = reply
                    else:
                        self._replies.setdefault(custom_id, reply)
        except OSError as error:
            raise UsageError(f"--batch-read: {path} cannot be read ({error.strerror}).") from error

    @property
    def counts(self) -> Mapping[str, Any]:
        """Requests "answered", those "failed" by reason, and "foreign" lines, which answer none of the requests."""
        failed = [reason for key, reason in self._failed.items() if key not in self._replies]
        return {"answered": len(self._replies), "failed": dict(Counter(failed)), "foreign": self._foreign}

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """As `Provider.complete`."""
        replies = list[Reply]()
        for index, request in enumerate(requests):
            reply = self._replies.get(request.key(self.endpoint))
            if isinstance(reply, Completion):
                reply = replace(reply, without=self.without)
            replies.append(reply or Failure("No result that was read answers this request."))
            if on_reply is not None:
                on_reply(index, replies[-1])
        return replies

    def close(self) -> None:
        """Nothing to release."""
