"""The JSON of chat completions: from a `Request` to a body, from a body to replies with their cost."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from core.errors import hide_sent
from core.providers.completions import Completion, Failure, Reply, Request, TokenLogprobs
from core.providers.endpoints import Price
from core.records import Usage

T = TypeVar("T")

EXTRAS = ("response_format", "logprobs", "n")
"""What many endpoints do not do; a run continues without each of them."""

OPTIONAL = ("reasoning_effort", "seed", "top_p", "temperature", "max_tokens", *EXTRAS)
MOST_AT_ONCE = 20
"""Samples asked for in one request at most."""

ROOM_TO_THINK = (4096, 16384)
"""Tokens added to the limit if a model's thoughts use it up; the second if the first are not enough."""

CHARACTERS_PER_TOKEN = 4

MOST_CHARACTERS = 100_000
"""Characters of a reply that are read; more than any token limit of ours gives."""

LOGPROB_PLACES = 16
"""Tokens of a reply whose logprobs are kept: a bare rating stands near the start."""


NO_CHOICES = "The endpoint sent a completion without choices."


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request and the places in its batch that wait for a sample of it."""

    request: Request
    places: tuple[int, ...]


def prompts_of(requests: Sequence[Request], *, several: bool = True) -> list[Prompt]:
    """The requests in order of first appearance, up to `MOST_AT_ONCE` samples of one prompt together.

    Samples go one by one if an endpoint does not take `several`, and at temperature 0, where all are the same.
    """
    places: dict[Request, list[int]] = {}
    for index, request in enumerate(requests):
        places.setdefault(request.prompt, []).append(index)
    prompts = []
    for request, own in places.items():
        size = MOST_AT_ONCE if several and request.temperature != 0 else 1
        prompts += [Prompt(request, tuple(own[start : start + size])) for start in range(0, len(own), size)]
    return prompts


class UnansweredError(Exception):
    """What came instead of a completion.

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


@dataclass
class Capabilities:
    """What an endpoint does and refuses, learnt from the first calls.

    What is refused is not sent again. `max_tokens` is then sent as `max_completion_tokens`, and a system message is put
    before the first user message. Without a schema the reply is read as text, without logprobs the stated rating
    counts, and without `n` every sample is a request of its own.

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

    def named_in(self, message: str, param: str, body: Mapping[str, Any]) -> str | None:
        """The optional part of `body` that an error about it names; None if sending less makes no sense."""
        sent = [name for name in OPTIONAL if name in body]
        if any(part["role"] == "system" for part in body.get("messages", ())):
            sent.insert(0, "system")
        param = "logprobs" if param == "top_logprobs" else param
        if param in sent:
            return param
        patterns = ((name, _MENTION.get(name, rf"(?<!\w){name}(?!\w)")) for name in sent)
        return next((name for name, pattern in patterns if re.search(pattern, message)), None)

    def learn_from_answer(self, body: Mapping[str, Any], replies: Sequence[Reply]) -> None:
        """Note which extras of `body` the endpoint did, and which it silently ignored."""
        if len(replies) < body.get("n", 1):
            self.refused.add("n")
        first = next((reply for reply in replies if isinstance(reply, Completion) and reply.text), None)
        if first is not None and first.finish == "stop":
            ignored = {"logprobs"} if not first.logprobs else set()
            ignored |= {"response_format"} if not first.text.lstrip().startswith("{") else set()
            self.refused |= ignored & self.unproven(body)
            self.proven |= self.unproven(body) - self.refused


_MENTION = {"system": r"(?i)system['\"`]? (?:role|message|prompt|instruction)|role[^.]*system|[Dd]eveloper instruction"}
_MENTION |= {"logprobs": r"(?<!\w)(?:top_)?logprobs(?!\w)", "n": r"(?<![\w\\])n(?!\w)"}


def request_body(request: Request, capabilities: Capabilities, samples: int = 1) -> dict[str, Any]:
    """The JSON body that asks for `samples` replies to `request`, without what the endpoint refuses."""
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
        body["logprobs"] = True
        body["top_logprobs"] = request.logprobs
    if samples > 1:
        body["n"] = samples
    if request.extra:
        body |= json.loads(request.extra)
    return without(body, capabilities.refused)


def left_out(request: Request, capabilities: Capabilities) -> tuple[str, ...]:
    """What `request` asks for and the endpoint does not take; `n` is no loss, each sample is asked for by itself."""
    if not capabilities.refused:
        return ()
    asked = request_body(request, Capabilities())
    asked |= dict.fromkeys(message["role"] for message in asked["messages"])
    return tuple(sorted(capabilities.refused & asked.keys()))


def cut_off_thinking(reply: Reply) -> bool:
    """Whether thoughts used up the token limit, so that there is no answer, or only the beginning of one."""
    return isinstance(reply, Completion) and reply.finish == "length" and bool(reply.thinking or not reply.text)


def better_reply(before: Reply, after: Reply) -> Reply:
    """The reply that was not cut off, with what both have cost."""
    first = isinstance(before, Completion) and (not isinstance(after, Completion) or not cut_off_thinking(before))
    return replace(before if first else after, usage=before.usage + after.usage)


def came_empty(replies: Sequence[Reply]) -> bool:
    """Whether a 200 reply held no choices, which may be no more than a hiccup."""
    return isinstance(replies[0], Failure) and replies[0].message == NO_CHOICES


def charged(replies: list[Reply], usage: Usage) -> list[Reply]:
    """`replies`, the first of which carries `usage` too: what earlier attempts have cost."""
    return replies if usage == Usage() else [replace(replies[0], usage=replies[0].usage + usage), *replies[1:]]


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


def read_completions(body: bytes, price: Price | None) -> list[Reply]:
    """The choices of a 200 reply, at least one; the first carries the usage of all.

    A choice without text (content filter, say) is a `Failure`, paid for like any other.  UnansweredError if the
    body is something else altogether.
    """
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        raise UnansweredError("odd body", _looks_like(body)) from None
    choices = _part(reply, "choices", list)
    if choices is None:
        raise UnansweredError("odd body", "JSON without the field 'choices'")
    usage = read_usage(reply.get("usage"), price)
    if not choices:
        return [Failure(NO_CHOICES, usage)]
    thinking = _count(_part(reply.get("usage"), "completion_tokens_details", dict), "reasoning_tokens") // len(choices)
    rest = Usage(cost=None if usage.cost is None else 0.0)
    return [_completion(choice, rest if k else usage, thinking) for k, choice in enumerate(choices)]


def _part(value: object, name: str, kind: type[T]) -> T | None:
    """What stands under `name` in an object of the JSON; None where it is missing or of another kind."""
    part = value.get(name) if isinstance(value, dict) else None
    return part if isinstance(part, kind) else None


def _completion(choice: object, usage: Usage, thinking: int) -> Reply:
    message = _part(choice, "message", dict)
    if message is None:
        return Failure("The endpoint sent a completion without a message.", usage)
    finish = _part(choice, "finish_reason", str)
    if finish == "content_filter":
        return Failure("The endpoint's content filter withheld the reply.", usage)
    if refusal := _part(message, "refusal", str):
        return Completion(hide_sent(_encodable(refusal)[:MOST_CHARACTERS]), "refusal", usage)
    text = message.get("content")
    if text is not None and not isinstance(text, str):
        return Failure("The endpoint sent a completion whose content is not text.", usage)
    text = hide_sent(_encodable(text or "")[:MOST_CHARACTERS])
    inline = _THOUGHT in text[:_OPENING].lower()
    logprobs = () if inline else _logprobs(_part(_part(choice, "logprobs", dict), "content", list) or [])
    thoughts = text if inline else _part(message, "reasoning", str) or _part(message, "reasoning_content", str) or ""
    thinking = thinking or -(-len(thoughts) // CHARACTERS_PER_TOKEN)
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
    return Usage(
        requests=1,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost=None if price is None else price.cost(prompt, completion, cached),
        cached_prompt_tokens=cached,
    )


def _count(value: object, name: str) -> int:
    return max(0, _part(value, name, int) or 0)


def _encodable(text: str) -> str:
    """`text` without lone surrogates, which JSON may carry but no file or database takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _looks_like(body: bytes) -> str:
    start = body[:200].lstrip().lower()
    if not start:
        return "an empty body"
    return "an HTML page" if start.startswith((b"<!doctype", b"<html", b"<")) else "text that is not JSON"
