"""The endpoint file of an installation (`endpoints.yaml`), checked: which host is sent what, and what its models cost.

It belongs to whoever runs this installation.  Secrets do not stand in it: it names environment variables, and an error
never repeats what stands where a secret might.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from core.errors import UsageError
from core.providers.endpoints import checked_base_url
from core.providers.prices import Price

MOST_BYTES = 1 << 20
_VARIABLE = re.compile(r"\$(?:\{([A-Z][A-Z0-9_]*)\}|([A-Z][A-Z0-9_]*))")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_OF_THE_TRANSPORT = {"host", "content-length", "content-type", "transfer-encoding", "connection", "content-encoding"}
_OF_THE_JUDGE = {"model", "messages", "stream", "n", "logprobs", "top_logprobs"}
_SECRET_NAME = re.compile(r"authori[sz]ation|cookie|key|token|secret|passw|credential|signature", re.IGNORECASE)
_SECRET_FIELD = re.compile(r"authori[sz]ation|api.?key|access.?token|secret|passw|credential", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"\bsk-|\beyJ|\b(?:bearer|basic)\s+[^$\s]", re.IGNORECASE)
_SHOWN = {"timeout", "retries", "concurrency", "requests_per_minute", "tokens_per_minute"}
_PRICES = {"prompt", "cached", "completion"}


def _base_url(url: str) -> str:
    try:
        return checked_base_url(url)
    except UsageError as error:
        raise ValueError(str(error)) from None


def _header_name(name: str) -> str:
    if not _HEADER.fullmatch(name) or name.lower() in _OF_THE_TRANSPORT:
        raise ValueError(f"{name[:40]!r} is no header that may be set")
    return name


def _headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if any(ord(letter) < 32 or ord(letter) > 126 for letter in value):
            raise ValueError(f"the value of {name} must be plain ASCII on one line")
        if not _VARIABLE.search(value) and (_SECRET_NAME.search(name) or _SECRET_VALUE.search(value)):
            raise ValueError(f"{name} looks like a secret: put it into an environment variable, and write $NAME here")
    if len({name.lower() for name in headers}) < len(headers):
        raise ValueError("a header stands there twice")
    return headers


def _extra_body(body: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(body, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise ValueError("must be what JSON can say") from None
    if taken := sorted(_OF_THE_JUDGE & body.keys()):
        raise ValueError(f"{', '.join(taken)} belongs to the judge, not to the endpoint")
    if any(_SECRET_FIELD.search(name) for name in _names(body)):
        raise ValueError("is kept with the judge, so that no secret may stand in it: send that as a header")
    return body


def _names(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield str(name)
            yield from _names(part)
    elif isinstance(value, list):
        for part in value:
            yield from _names(part)


BaseUrl = Annotated[str, AfterValidator(_base_url)]
Variable = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,99}$")]
Whole = Annotated[int, Field(ge=1)]
_STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)


class EndpointSettings(BaseModel):
    """What stands beneath one base URL; the README has the example."""

    model_config = _STRICT

    key: Variable | None = None
    headers: Annotated[dict[Annotated[str, AfterValidator(_header_name)], str], AfterValidator(_headers)] = {}
    extra_body: Annotated[dict[str, Any], AfterValidator(_extra_body)] = {}
    timeout: Annotated[float, Field(gt=0, le=86_400)] | None = None
    retries: Annotated[int, Field(ge=0, le=100)] | None = None
    concurrency: Whole | None = None
    requests_per_minute: Whole | None = None
    tokens_per_minute: Whole | None = None
    prices: dict[str, Price] = {}


class EndpointFile(BaseModel):
    """The whole file; `endpoints` by base URL in its one spelling."""

    model_config = _STRICT

    endpoints: dict[BaseUrl, EndpointSettings] = {}
    prices: dict[str, Price] = {}


def variables_in(text: str) -> list[str]:
    """The environment variables that a value names."""
    return [braced or bare for braced, bare in _VARIABLE.findall(text)]


def filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with the values of its environment variables."""
    return _VARIABLE.sub(lambda match: values[match[1] or match[2]], text)


def read_endpoint_file(path: Path) -> EndpointFile:
    """The checked file.  UsageError names the key, what is allowed and, where it can be no secret, what came."""
    try:
        stamp = path.stat()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    return _read(path, stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, _changed_ns: int, size: int) -> EndpointFile:
    if size > MOST_BYTES:
        raise UsageError(f"{path} has {size:,} bytes; an endpoint file has {MOST_BYTES:,} at most.")
    try:
        value = yaml.load(path.read_text("utf-8"), Loader=_Loader) or {}  # noqa: S506 - a SafeLoader
        text = json.dumps(value, default=str)
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError, TypeError) as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = f", line {mark.line + 1}" if mark else ""
        words = str(problem or "it cannot be parsed").split("'")[0].strip()  # what is quoted might be a secret
        raise UsageError(f"{path}{where}: is no YAML that is read here: {words}.") from None
    try:
        checked = EndpointFile.model_validate_json(text)
    except ValidationError as error:
        raise UsageError(f"{path}: {_first_fault(error)}") from None
    if len(checked.endpoints) < len(value.get("endpoints", {})):
        raise UsageError(f"{path}: endpoints: two of the base URLs are one in other spellings.")
    return checked


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice, of which the last would count."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(names)) < len(names):
            raise yaml.constructor.ConstructorError(None, None, "a key stands there twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _first_fault(error: ValidationError) -> str:
    """``"endpoints: https://…: timeout: Input should be greater than 0; -3 came."``"""
    faults = sorted(error.errors(include_url=False), key=lambda fault: fault["loc"][-1:] != ("[key]",))
    fault, place = faults[0], faults[0]["loc"]
    of_key = place[-1:] == ("[key]",)
    if of_key:  # the key may hold a secret
        place = place[:-2]
    words = fault["msg"].removeprefix("Value error, ").removesuffix(".")
    if fault["type"] == "extra_forbidden":
        fields = EndpointSettings if len(place) == 3 else EndpointFile
        names = sorted(_PRICES) if "prices" in place else sorted(fields.model_fields)
        words = f"is not known here; known are {', '.join(names)}"
    elif fault["type"] == "string_pattern_mismatch" and place[-1] == "key":
        words = "must be the name of an environment variable in capitals (MY_KEY), never the key itself"
    came = fault["input"]
    shown = isinstance(came, int | float | None) or (place and place[-1] in _SHOWN | _PRICES and isinstance(came, str))
    named = ": ".join(map(str, place)) or "the file"
    return f"{named}: {words}{f'; {str(came)[:40]!r} came' if shown and not of_key else ''}."
