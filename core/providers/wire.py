"""Build the JSON bodies of chat completion requests, and parse replies and their cost."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from core.errors import hide_sent
from core.providers.completions import Completion, Failure, Reply, Request, TokenLogprobs
from core.providers.endpoints import Price
from core.records import Usage

T = TypeVar("T")

EXTRAS = frozenset({"response_format", "logprobs"})
"""Parts of a request that many endpoints don't support. A run continues without them."""

OPTIONAL = ("reasoning_effort", "seed", "top_p", "temperature", "max_tokens", *sorted(EXTRAS))

ROOM_TO_THINK = (4096, 16384)
"""Tokens to add to the limit if reasoning uses it up; the second value if the first is not enough."""

CHARACTERS_PER_TOKEN = 4

MOST_CHARACTERS = 100_000
"""Maximum characters of a reply that are read, more than any of our token limits can yield."""

LOGPROB_PLACES = 16
"""Number of tokens whose logprobs are kept. A bare rating is near the start."""


class UnansweredError(Exception):
    """The answer of an endpoint is not a usable completion.

    Attributes:
        kind: "status", "redirect", "timeout", "unreachable", "no HTTP", or "odd body" (the body of a 200 reply is
            unusable).
        words: The server's message, a description of the body, or the target of the redirect.
        status: HTTP status; 0 if there is none.
        told: Text of the response body, for searching.
        param: Parameter of the request that the server names as the cause.
        wait: Seconds that the server asks us to wait; None if it doesn't say.
    """

    def __init__(
        self, kind: str, words: str = "", *, status: int = 0, told: str = "", param: str = "", wait: float | None = None
    ) -> None:
        super().__init__(words or kind)
        self.kind, self.words, self.status, self.told, self.param, self.wait = kind, words, status, told, param, wait


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Capabilities:
    """What an endpoint supports, learnt from its answers.

    A parameter that the endpoint refused is no longer sent. There are two exceptions: `max_tokens` is replaced by
    `max_completion_tokens`, and a system message is prepended to the first user message.

    Attributes:
        refused: Names of refused parameters (from `OPTIONAL`), and "system" for refused system messages.
        proven: Names of the parameters in `EXTRAS` that have worked.
        room: Number of tokens added to the token limit, to leave room for reasoning.
    """

    refused: set[str] = field(default_factory=set)
    proven: set[str] = field(default_factory=set)
    room: int = 0

    def unproven(self, body: Mapping[str, Any]) -> set[str]:
        """Return the extras in `body` that are not known to work."""
        return {name for name in EXTRAS if name in body} - self.proven

    def learn_from_answer(self, body: Mapping[str, Any], reply: Reply) -> None:
        """Record which extras of `body` the endpoint supports, and which it silently ignored."""
        if isinstance(reply, Completion) and reply.text and reply.finish == "stop":
            did = {"logprobs": bool(reply.logprobs), "response_format": reply.text.lstrip().startswith("{")}
            for name in self.unproven(body):
                (self.proven if did[name] else self.refused).add(name)


_SYSTEM = re.compile(r"(?i)system['\"`]? (?:role|message|prompt|instruction)|role[^.]*system|developer instruction")


def refused_part(error: UnansweredError, body: Mapping[str, Any]) -> str | None:
    """Return the optional part of `body` that the server's error is about, or None."""
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
    """Return the roles of the messages in `body`."""
    return frozenset(message["role"] for message in body["messages"])


def request_body(request: Request, capabilities: Capabilities) -> dict[str, Any]:
    """Build the JSON body of `request` without the parts that the endpoint refuses."""
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
    """Return `body` with the named optional parts removed or replaced (see `Capabilities`)."""
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
    """Return the parts of `request` that the endpoint does not support."""
    asked = request_body(request, Capabilities()) if capabilities.refused else None
    return () if asked is None else tuple(sorted(capabilities.refused & (asked.keys() | roles_in(asked))))


# ── replies ──────────────────────────────────────────────────────────────────────────────────────────────────


def cut_off_thinking(reply: Reply) -> bool:
    """Return whether reasoning used up the token limit, so that the answer is missing or truncated."""
    return isinstance(reply, Completion) and reply.finish == "length" and bool(reply.thinking or not reply.text)


def read_completion(body: bytes, price: Price | None) -> Reply:
    """Parse the first choice of a 200 reply. A choice without text becomes a `Failure` with its cost.

    Raises UnansweredError if the body is not a completion.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        start = body[:200].lstrip()
        shape = "text that isn't JSON" if start else "an empty body"
        raise UnansweredError("odd body", "an HTML page" if start.startswith(b"<") else shape) from None
    choices = json_field(answer, "choices", list)
    if choices is None:
        raise UnansweredError("odd body", "JSON without the field 'choices'")
    usage = read_usage(answer.get("usage"), price)
    choice = choices[0] if choices else None
    message = json_field(choice, "message", dict)
    if message is None:
        return Failure(f"The endpoint sent a completion without {'a message' if choices else 'choices'}.", usage)
    finish, text = json_field(choice, "finish_reason", str), message.get("content")
    if finish == "content_filter":
        return Failure("The endpoint's content filter blocked the reply.", usage)
    if refusal := json_field(message, "refusal", str):
        return Completion(hide_sent(_encodable(refusal)[:MOST_CHARACTERS]), "refusal", usage)
    if text is not None and not isinstance(text, str):
        return Failure("The endpoint sent a completion with content that isn't text.", usage)
    text = hide_sent(_encodable(text or "")[:MOST_CHARACTERS])
    inline = "<think" in text[:20].lower()
    logprobs = () if inline else _logprobs(json_field(json_field(choice, "logprobs", dict), "content", list) or [])
    thoughts = (
        text if inline else json_field(message, "reasoning", str) or json_field(message, "reasoning_content", str) or ""
    )
    counted = _count(json_field(answer.get("usage"), "completion_tokens_details", dict), "reasoning_tokens")
    thinking = counted or -(-len(thoughts) // CHARACTERS_PER_TOKEN)
    return Completion(text, "length" if finish == "length" else "stop", usage, logprobs=logprobs, thinking=thinking)


def _logprobs(content: Sequence[object]) -> tuple[TokenLogprobs, ...]:
    """Parse the logprobs of the first tokens; empty if they are missing or malformed."""
    places = []
    for place in content[:LOGPROB_PLACES]:
        token = json_field(place, "token", str)
        if token is None:
            return ()
        top = []
        for entry in json_field(place, "top_logprobs", list) or []:
            other, logprob = json_field(entry, "token", str), json_field(entry, "logprob", float)
            if other is not None and logprob is not None and math.isfinite(logprob):
                top.append((_encodable(other), logprob))
        places.append(TokenLogprobs(_encodable(token), tuple(top)))
    return tuple(places) if any(place.top for place in places) else ()


def read_usage(raw: object, price: Price | None) -> Usage:
    """Parse the usage of a request. Tokens are 0 and the cost is None if the endpoint does not report them.

    Reasoning tokens count as completion tokens, even if only the total includes them.
    """
    if not isinstance(raw, dict):
        return Usage(requests=1)
    prompt = _count(raw, "prompt_tokens")
    completion = max(_count(raw, "completion_tokens"), _count(raw, "total_tokens") - prompt)
    cached = min(prompt, _count(raw.get("prompt_tokens_details"), "cached_tokens"))
    cost = None if price is None else price.cost(prompt, completion, cached)
    return Usage(1, 0, prompt, completion, cost, cached)


def json_field(value: object, name: str, kind: type[T]) -> T | None:
    """Return the field `name` of a JSON object; None if it is missing or has another type."""
    part = value.get(name) if isinstance(value, dict) else None
    if kind is float and isinstance(part, int):
        part = float(part)
    return part if isinstance(part, kind) else None


def _count(value: object, name: str) -> int:
    return max(0, json_field(value, name, int) or 0)


def _encodable(text: str) -> str:
    """Replace lone surrogates, which JSON allows but files and databases don't."""
    return text.encode("utf-8", "replace").decode("utf-8")
