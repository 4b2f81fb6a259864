"""The JSON of chat completions: bodies of requests, and replies with their cost."""

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
        return Failure("The endpoint sent a completion whose content isn't text.", usage)
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
    """The first tokens with their alternatives; nothing if they are missing or not of the usual form."""
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


def json_field(value: object, name: str, kind: type[T]) -> T | None:
    """The field `name` of a JSON object; None if it is missing or of another kind."""
    part = value.get(name) if isinstance(value, dict) else None
    if kind is float and isinstance(part, int):
        part = float(part)
    return part if isinstance(part, kind) else None


def _count(value: object, name: str) -> int:
    return max(0, json_field(value, name, int) or 0)


def _encodable(text: str) -> str:
    """`text` without lone surrogates, which JSON may carry but no file or database takes."""
    return text.encode("utf-8", "replace").decode("utf-8")
