"""What a judge SPEC says: the one place that reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from core.errors import UsageError

Kind = Literal["offline", "openai", "recorded", "scripted"]
FORMS = ("offline", "openai:MODEL", "openai:MODEL@BASE_URL", "recorded:FILE", "scripted", "scripted:SEED")
_URL = re.compile("@http", re.IGNORECASE)
_SPEC = re.compile(r"openai:[^\s\"']+")


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    """A spec in its parts.  `base_url` is "" for this installation's usual endpoint; it is not checked here."""

    kind: Kind
    model: str = ""
    base_url: str = ""
    file: str = ""
    seed: int = 0


def parse_spec(spec: str) -> JudgeSpec:
    """The parts of `spec`.  UsageError, without anything that might be a secret, for one of no known form.

    ``@http`` stands once at most: with two, the model's name or the path could pass for another endpoint.
    """
    kind, separator, rest = spec.strip().partition(":")
    if kind == "offline" and not separator:
        return JudgeSpec("offline")
    if kind == "openai" and rest:
        return _openai(rest)
    if kind == "recorded" and rest:
        return JudgeSpec("recorded", file=rest)
    if kind == "scripted" and (rest.isdecimal() or not separator):
        return JudgeSpec("scripted", seed=int(rest or 0))
    raise _bad(f"The judge {shown(spec)} is not of a known form.")


def shown(spec: str) -> str:
    """The spec for a message, without anything that might be a secret in a URL."""
    return repr(spec.split("@", 1)[0][:80])


def specs_in(value: Any) -> Iterator[str]:
    """Every judge spec that asks an endpoint or reads a file, anywhere in parsed JSON.

    Also those that stand within a longer text (a title, the name of a judge), as far as they go.
    """
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            text = value.strip()
            if text.startswith(("openai:", "recorded:")) and _parses(text):
                yield text
            else:
                yield from _SPEC.findall(value)


def _parses(text: str) -> bool:
    try:
        parsed = parse_spec(text)
    except UsageError:
        return False
    return parsed.kind != "openai" or not re.search(r"\s", parsed.base_url)


def _openai(rest: str) -> JudgeSpec:
    """("m", "http://…") of "m@http://…", ("m", "") of "m"; a model's name may itself start with "@"."""
    places = [match.start() for match in _URL.finditer(rest)]
    if len(places) > 1 or 0 in places:
        raise _bad("After openai: comes a model's name and at most one '@http', where the endpoint's URL begins.")
    if not places:
        if "@" in rest[1:]:
            raise _bad("What follows the model's name and '@' must be a URL that starts with http:// or https://.")
        return JudgeSpec("openai", rest)
    model, url = rest[: places[0]], rest[places[0] + 1 :]
    if not url.lower().startswith(("http://", "https://")):
        raise _bad("What follows the model's name and '@' must be a URL that starts with http:// or https://.")
    return JudgeSpec("openai", model, url)


def _bad(what: str) -> UsageError:
    return UsageError(f"{what} Use one of: {', '.join(FORMS)}.")
