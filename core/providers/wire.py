"""The JSON of chat completions: a `Request` to a body, a body to a `Completion` or a `Failure`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.providers.base import Completion, Failure, Reply, Request
from core.providers.prices import Price
from core.records import Usage

OPTIONAL = ("seed", "response_format", "top_p", "temperature", "max_tokens")


class NotACompletionError(ValueError):
    """The body of a 200 reply is not the JSON of a chat completion (a proxy's HTML page, say)."""


@dataclass
class Capabilities:
    """What the endpoint was found to refuse, so that it is not sent again; filled while the first calls are made.

    `refused` holds names of `OPTIONAL`.  A refused `max_tokens` is sent as `max_completion_tokens` (newer OpenAI
    models want that); a refused `response_format` leaves the reply to the free-text reader.
    """

    refused: set[str] = field(default_factory=set)

    def learn(self, message: str, param: str | None, body: Mapping[str, Any]) -> bool:
        """Note the optional parameter that an error about `body` names; whether sending again makes sense."""
        sent = [name for name in OPTIONAL if name in body]
        named = next((name for name in sent if name == param), None) or next(
            (name for name in sent if name in message), None
        )
        if named is not None:
            self.refused.add(named)
        return named is not None


def request_body(request: Request, capabilities: Capabilities) -> dict[str, Any]:
    """The JSON body of `request`, without what the endpoint refuses."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
    }
    if request.top_p < 1.0:
        body["top_p"] = request.top_p
    if request.seed is not None:
        body["seed"] = request.seed
    if request.json_schema:
        schema = {"name": "reply", "schema": json.loads(request.json_schema), "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    for name in capabilities.refused:
        refused = body.pop(name, None)
        if name == "max_tokens" and refused is not None:
            body["max_completion_tokens"] = refused
    return body


def read_completion(body: bytes, price: Price | None) -> Reply:
    """The first choice of a 200 reply.

    `Failure` when the endpoint answered but gave no text (content filter, no choices); `NotACompletionError` when
    the body is something else altogether.
    """
    try:
        reply = json.loads(body)
    except ValueError:
        raise NotACompletionError(_looks_like(body)) from None
    if not isinstance(reply, dict) or not isinstance(reply.get("choices"), list):
        raise NotACompletionError("JSON without the field 'choices'")
    if not reply["choices"]:
        return Failure("The endpoint sent a completion without choices.")
    choice = reply["choices"][0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        return Failure("The endpoint sent a completion without a message.")
    return _completion(choice, message, read_usage(reply.get("usage"), price))


def _completion(choice: Mapping[str, Any], message: Mapping[str, Any], usage: Usage) -> Reply:
    finish = choice.get("finish_reason")
    if finish == "content_filter":
        return Failure("The endpoint's content filter withheld the reply.")
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        return Completion(_encodable(refusal), "refusal", usage)
    text = message.get("content")
    if text is not None and not isinstance(text, str):
        return Failure("The endpoint sent a completion whose content is not text.")
    return Completion(_encodable(text or ""), "length" if finish == "length" else "stop", usage)


def read_usage(raw: object, price: Price | None) -> Usage:
    """`Usage` of one request; tokens are 0 and the cost None when the endpoint does not tell them."""
    if not isinstance(raw, dict):
        return Usage(requests=1)
    details = raw.get("prompt_tokens_details")
    prompt, completion = _count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens"))
    return Usage(
        requests=1,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cost=None if price is None else price.cost(prompt, completion),
        cached_prompt_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else 0,
    )


def _encodable(text: str) -> str:
    """`text` without lone surrogates, which JSON may carry but no file or database takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _looks_like(body: bytes) -> str:
    start = body[:200].lstrip().lower()
    if not start:
        return "an empty body"
    return "an HTML page" if start.startswith((b"<!doctype", b"<html", b"<")) else "text that is no JSON"
