"""Endpoint settings: base URLs, the endpoint file, and which keys and headers go to which host.

The endpoint file (`endpoints.yaml`) belongs to the owner of this installation. The file names environment variables and
never holds secrets. Error messages never repeat text that may be a secret.

`Installation` alone decides which key goes to which host; a judge file or an upload cannot:

- A base URL in the endpoint file gets only the key that the file names for it.
- Any other base URL gets OPENAI_API_KEY, unless the file names this key for an endpoint. In that case only that
  endpoint and the host of OPENAI_BASE_URL get the key.

A URL is refused if two parsers could read different hosts in it. So user names, backslashes, spaces, non-ASCII letters,
and ``%`` in the host are not allowed.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from core.errors import AuthError, UsageError, register_secret
from core.settings import Settings, variable

OPENAI_URL = "https://api.openai.com/v1"
_PORTS = {"http": 80, "https": 443}
_URL = re.compile(
    r"https?://(?:[a-z0-9_][a-z0-9_.-]*|\[[0-9a-f:.]+\])(?::[1-9][0-9]{0,4})?(?:/[!-~]*)?", re.IGNORECASE | re.ASCII
)


class Host(NamedTuple):
    """The server of a URL: scheme, lower-case host without a trailing dot, and port."""

    scheme: str
    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether the host is this machine."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def host_of(url: str) -> Host:
    """Return the server that a request to `url` reaches. Raises UsageError if `url` is invalid or holds a secret."""
    if "@" in url.partition("://")[2].partition("/")[0] or "?" in url or "#" in url:
        raise UsageError(
            "The base URL can't contain a user name, a password, '?' or '#'. Put the key in OPENAI_API_KEY."
        )
    try:
        parts = urlsplit(url if _URL.fullmatch(url) and "\\" not in url else "")
        host, port = (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme, 0)
        if ":" in host:
            ipaddress.IPv6Address(host)
    except ValueError:
        host, port = "", 0
    if not all(0 < len(label) < 64 for label in host.split(".")):
        raise UsageError(
            "The base URL of an endpoint must look like http://127.0.0.1:8000/v1 or https://HOST/v1. Don't use "
            "spaces or backslashes. The host can contain only letters, digits, dots and hyphens."
        )
    return Host(parts.scheme, host, port)


def checked_base_url(url: str) -> str:
    """Normalise a base URL: lower-case scheme and host, no default port, no trailing slash.

    Raises UsageError if the URL is invalid or holds a secret. The message never repeats the URL.
    """
    place = host_of(url)
    host = f"[{place.host}]" if ":" in place.host else place.host
    port = "" if place.port == _PORTS[place.scheme] else f":{place.port}"
    return f"{place.scheme}://{host}{port}{urlsplit(url).path.rstrip('/')}"


def endpoint_name(base_url: str, extra_body: Mapping[str, Any]) -> str:
    """Return the name that cache keys use for an endpoint: its URL, and any extra fields of its requests."""
    name = base_url.rstrip("/")
    return f"{name} with {json.dumps(extra_body, sort_keys=True)}" if extra_body else name


def trusted_with_the_key(base_url: str, usual: str | None) -> bool:
    """Return whether the OpenAI key may be sent to a URL that no user has typed, for example a URL from a file.

    The key may be sent to OpenAI's own endpoint over TLS, to the host of `usual` (the value of `OPENAI_BASE_URL`), and
    to this machine. Raises UsageError if the URL is invalid.
    """
    place = host_of(base_url)
    return place in (host_of(usual or OPENAI_URL), host_of(OPENAI_URL)) or place.loopback


# ── prices and limits ────────────────────────────────────────────────────────────────────────────────────────

PER_MILLION = 1_000_000
_SNAPSHOT = re.compile(r"-(?:\d{8}|\d{4}-\d\d-\d\d)")


_AtLeast0 = Annotated[float, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of a model, in dollars per million tokens. Reasoning tokens cost as much as completion tokens.

    Attributes:
        cached: Price of prompt tokens in the endpoint's own cache; None for the normal price.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}

    prompt: _AtLeast0
    completion: _AtLeast0
    cached: _AtLeast0 | None = None

    def cost(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> float:
        """Return the cost of the tokens in dollars. `cached_tokens` are part of `prompt_tokens`."""
        cheaper = self.prompt if self.cached is None else self.cached
        n_cached = min(cached_tokens, prompt_tokens)
        dollars = (prompt_tokens - n_cached) * self.prompt + n_cached * cheaper + completion_tokens * self.completion
        return dollars / PER_MILLION


def list_price(base_url: str, model: str) -> Price | None:
    """Return the list price of `model` at `base_url`, or None if unknown.

    A dated snapshot costs as much as its model.
    """
    prices = _shipped().get(base_url, {})
    return prices.get(model) or prices.get(_SNAPSHOT.sub("", model))


@cache
def _shipped() -> Mapping[str, Mapping[str, Price]]:
    shipped: dict[str, dict[str, Price]] = {}
    for part in yaml.safe_load(Path(__file__).with_name("prices.yaml").read_text("utf-8")):
        shipped.setdefault(part["url"], {}).update({model: Price(**price) for model, price in part["models"].items()})
    return shipped


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits on requests to an endpoint. None means no limit.

    Attributes:
        timeout: Seconds per attempt.
        retries: Largest number of retries after a lost connection, status 408, 409 or 5xx, or a reply that is not a
            completion.
        patience: If every attempt gets status 429 for this many seconds, the request fails. The number of retries after
            429 is not limited.
    """

    concurrency: int = 64
    timeout: float = 120.0
    retries: int = 5
    patience: float = 600.0
    requests_per_minute: float | None = None


# ── the endpoint file ────────────────────────────────────────────────────────────────────────────────────────

VARIABLE = re.compile(r"\$([A-Z][A-Z0-9_]*)")
"""Pattern of an environment variable in a header value, such as $MY_KEY."""
_SECRET_NAME = re.compile(r"authori[sz]ation|cookie|key|token|secret|passw|credential|signature", re.IGNORECASE)
_SECRET_FIELD = re.compile(
    r'"[^"]*(?:authori[sz]ation|api.?key|access.?token|secret|passw|credential)[^"]*":', re.IGNORECASE
)
_SECRET_VALUE = re.compile(r"\bsk-|\beyJ|\b(?:bearer|basic)\s+[^$\s]", re.IGNORECASE)


def _base_url(url: str) -> str:
    try:
        return checked_base_url(url)
    except UsageError as error:
        raise ValueError(str(error)) from None


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Z0-9_]{0,99}", name):
        raise ValueError("must be the name of an environment variable in capitals (MY_KEY), not the key itself")
    return name


def _headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"the value of {name} must be plain ASCII on one line")
        if not VARIABLE.search(value) and (_SECRET_NAME.search(name) or _SECRET_VALUE.search(value)):
            raise ValueError(
                f"{name} looks like a secret. Put the secret in an environment variable, and write $NAME here"
            )
    return headers


def _extra_body(body: dict[str, Any]) -> dict[str, Any]:
    if _SECRET_FIELD.search(json.dumps(body)):
        raise ValueError("must not contain a secret, because extra_body is saved with the judge; use a header instead")
    return body


_Positive = Annotated[int, Field(ge=1)]


class EndpointSettings(BaseModel):
    """Settings for one base URL, from the endpoint file. The README has an example."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    key: Annotated[str, AfterValidator(_variable)] = ""
    headers: Annotated[dict[str, str], AfterValidator(_headers)] = {}
    extra_body: Annotated[dict[str, JsonValue], AfterValidator(_extra_body)] = {}
    timeout: Annotated[float, Field(gt=0, le=86_400)] | None = None
    concurrency: _Positive | None = None
    requests_per_minute: _Positive | None = None
    prices: dict[str, Price] = {}


class EndpointFile(BaseModel):
    """The content of the endpoint file. The keys of `endpoints` are normalised base URLs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    endpoints: dict[Annotated[str, AfterValidator(_base_url)], EndpointSettings] = {}


def read_endpoint_file(path: Path) -> EndpointFile:
    """Read and validate an endpoint file. Raises UsageError, which names the invalid field and says what is wrong."""
    try:
        return EndpointFile.model_validate(yaml.safe_load(path.read_text("utf-8")) or {})
    except OSError as error:
        raise UsageError(f"Concord can't read {path}: {error.strerror}.") from error
    except ValidationError as error:
        faults = sorted(error.errors(), key=lambda fault: fault["loc"][-1:] != ("[key]",))
        place = list(map(str, faults[0]["loc"]))
        if place[-1:] == ["[key]"]:  # the key may hold a secret
            place = place[:-2]
        words = faults[0]["msg"].removeprefix("Value error, ").removesuffix(".")
        raise UsageError(f"{path}: {': '.join(place) or 'the file'}: {words}.") from None
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)  # PyYAML's message may quote a secret
        where = f", line {mark.line + 1}" if mark else ""
        raise UsageError(f"{path}{where}: the file isn't valid YAML.") from None


OPENAI_KEY = "OPENAI_API_KEY"
_NAMED_LIMITS = {"timeout", "concurrency", "requests_per_minute"}


@dataclass(frozen=True)
class Installation:
    """Endpoint settings of this installation, from the environment and the endpoint file."""

    settings: Settings
    file: EndpointFile = field(default_factory=EndpointFile)

    @classmethod
    def of(cls, settings: Settings) -> Installation:
        """Read the endpoint file named by `CONCORD_ENDPOINTS`, or else the one in `CONCORD_HOME`, if any.

        Raises UsageError if the file is invalid.
        """
        path = settings.endpoints or settings.home / "endpoints.yaml"
        there = settings.endpoints is not None or path.is_file()
        return cls(settings, read_endpoint_file(path)) if there else cls(settings)

    def entry(self, base_url: str) -> EndpointSettings:
        """Return the endpoint file's settings for `base_url`, or the defaults."""
        return self.file.endpoints.get(base_url) or EndpointSettings()

    def trusts(self, base_url: str) -> bool:
        """Return whether keys may be sent to `base_url` even if it comes from a file and no user has typed it."""
        return base_url in self.file.endpoints or trusted_with_the_key(base_url, self.settings.openai_base_url)

    def key_name(self, base_url: str) -> str:
        """Return the name of the environment variable with the key for `base_url`; "" for no key."""
        if name := self.entry(base_url).key:
            return name
        usual = OPENAI_KEY if self.settings.openai_api_key else ""
        given_away = any(entry.key == OPENAI_KEY for entry in self.file.endpoints.values())
        if base_url not in self.file.endpoints and not given_away:
            return usual
        return usual if host_of(base_url) == host_of(self.settings.openai_base_url or OPENAI_URL) else ""

    def key(self, base_url: str) -> str | None:
        """Return the key for `base_url`; None if `key_name` gives no name.

        Raises AuthError if the key's environment variable is not set.
        """
        name = self.key_name(base_url)
        return self._value(name, base_url) if name else None

    def headers(self, base_url: str) -> Mapping[str, str]:
        """Return the headers for `base_url` with variables filled in. Raises AuthError if a variable is not set."""
        return {
            name: VARIABLE.sub(lambda match: self._value(match[1], base_url), text)
            for name, text in self.entry(base_url).headers.items()
        }

    def extra_body(self, base_url: str) -> Mapping[str, Any]:
        """Return the extra fields of every request to `base_url`."""
        return self.entry(base_url).extra_body

    def limits(self, base_url: str) -> RequestLimits:
        named = self.entry(base_url).model_dump(include=_NAMED_LIMITS, exclude_none=True)
        return RequestLimits(**{"concurrency": self.settings.concurrency} | named)

    def price(self, base_url: str, model: str) -> Price | None:
        """Return the price of `model` at `base_url`; None if unknown."""
        return self.entry(base_url).prices.get(model) or list_price(base_url, model)

    def _value(self, name: str, base_url: str) -> str:
        """Read an environment variable for a header. The value must be one line of ASCII."""
        value = (self.settings.openai_api_key or "") if name == OPENAI_KEY else variable(name)
        register_secret(value)
        if not value:
            raise AuthError(
                f"The endpoint file uses the environment variable {name} for {base_url}, but it isn't set.",
                hint=f"Set {name} in the environment of Concord and of its worker.",
            )
        if not (value.isascii() and value.isprintable()):
            raise UsageError(
                f"Concord can't send the environment variable {name} in a header, because its value isn't plain ASCII."
            )
        return value
