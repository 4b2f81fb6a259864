"""The endpoint file of an installation (`endpoints.yaml`): what each host is sent, and what its models cost.

It belongs to whoever runs this installation.  Secrets do not stand in it: it names environment variables, and an error
never repeats what stands where a secret might.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from core.errors import UsageError
from core.providers.endpoints import checked_base_url
from core.providers.prices import Price

MOST_BYTES = 1 << 20
VARIABLE = re.compile(r"\$(?:\{([A-Z][A-Z0-9_]*)\}|([A-Z][A-Z0-9_]*))")
"""An environment variable in the value of a header."""
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_OF_THE_TRANSPORT = {"host", "content-length", "content-type", "transfer-encoding", "connection", "content-encoding"}
_OF_THE_JUDGE = {"model", "messages", "stream", "n", "logprobs", "top_logprobs"}
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
        raise ValueError("must be the name of an environment variable in capitals (MY_KEY), never the key itself")
    return name


def _headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or name.lower() in _OF_THE_TRANSPORT:
            raise ValueError(f"{name[:40]!r} is not a header that may be set")
        if not (value.isascii() and value.isprintable()):
            raise ValueError(f"the value of {name} must be plain ASCII on one line")
        if not VARIABLE.search(value) and (_SECRET_NAME.search(name) or _SECRET_VALUE.search(value)):
            raise ValueError(f"{name} looks like a secret: put it into an environment variable, and write $NAME here")
    if len({name.lower() for name in headers}) < len(headers):
        raise ValueError("a header stands there twice")
    return headers


def _extra_body(body: dict[str, Any]) -> dict[str, Any]:
    if taken := sorted(_OF_THE_JUDGE & body.keys()):
        raise ValueError(f"{', '.join(taken)} belongs to the judge, not to the endpoint")
    if _SECRET_FIELD.search(json.dumps(body)):
        raise ValueError("is kept with the judge, so no secret may stand in it: send that as a header")
    return body


Whole = Annotated[int, Field(ge=1)]
_STRICT = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class EndpointSettings(BaseModel):
    """What the file says of one base URL; the README has the example."""

    model_config = _STRICT

    key: Annotated[str, AfterValidator(_variable)] | None = None
    headers: Annotated[dict[str, str], AfterValidator(_headers)] = {}
    extra_body: Annotated[dict[str, JsonValue], AfterValidator(_extra_body)] = {}
    timeout: Annotated[float, Field(gt=0, le=86_400)] | None = None
    retries: Annotated[int, Field(ge=0, le=100)] | None = None
    concurrency: Whole | None = None
    requests_per_minute: Whole | None = None
    tokens_per_minute: Whole | None = None
    prices: dict[str, Price] = {}


class EndpointFile(BaseModel):
    """The whole file; `endpoints` by base URL in its one spelling."""

    model_config = _STRICT

    endpoints: dict[Annotated[str, AfterValidator(_base_url)], EndpointSettings] = {}
    prices: dict[str, Price] = {}


def read_endpoint_file(path: Path) -> EndpointFile:
    """The checked file.  UsageError names the place and what is allowed there."""
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
        text = json.dumps(value, default=str)  # of JSON, strict takes an object as a record
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError, TypeError) as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = f", line {mark.line + 1}" if mark else ""
        words = str(problem or "it cannot be parsed").split("'")[0].strip()  # what is quoted might be a secret
        raise UsageError(f"{path}{where}: is no YAML that is read here: {words}.") from None
    try:
        checked = EndpointFile.model_validate_json(text)
    except ValidationError as error:
        faults = sorted(error.errors(), key=lambda fault: fault["loc"][-1:] != ("[key]",))
        place = list(map(str, faults[0]["loc"]))
        if place[-1:] == ["[key]"]:  # the key may hold a secret
            place = place[:-2]
        words = faults[0]["msg"].removeprefix("Value error, ").removesuffix(".")
        raise UsageError(f"{path}: {': '.join(place) or 'the file'}: {words}.") from None
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
