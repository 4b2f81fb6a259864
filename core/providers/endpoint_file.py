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


class Entry(BaseModel):
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

    endpoints: dict[BaseUrl, Entry] = {}
    prices: dict[str, Price] = {}


def variables_in(text: str) -> list[str]:
    """The environment variables that a value names."""
    return [braced or bare for braced, bare in _VARIABLE.findall(text)]


def filled(text: str, values: Mapping[str, str]) -> str:
    """`text` with the values of its environment variables."""
    return _VARIABLE.sub(lambda match: values[match[1] or match[2]], text)


def read_endpoint_file(path: Path) -> EndpointFile:
    """The checked file.  UsageError says line and key, what is allowed and, where it can be no secret, what came."""
    try:
        stamp = path.stat()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    return _read(path, stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, _changed_ns: int, size: int) -> EndpointFile:
    if size > MOST_BYTES:
        raise UsageError(f"{path} has {size:,} bytes; an endpoint file has {MOST_BYTES:,} at most.")
    lines: dict[tuple[str | int, ...], int] = {}
    try:
        node = yaml.compose(path.read_text("utf-8"), Loader=_Loader)
        value = {} if node is None else _plain(node, (), lines)
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise UsageError(f"{path}{where}: is no YAML that is read here: {_problem(error)}.") from None
    try:
        checked = EndpointFile.model_validate_json(json.dumps(value, default=str))
    except ValidationError as error:
        raise UsageError(f"{path}{_first_fault(error, lines)}") from None
    if len(checked.endpoints) < len(value.get("endpoints", {})):
        raise UsageError(f"{path}: endpoints: two of the base URLs are one in other spellings.")
    return checked


def _problem(error: Exception) -> str:
    """Without the text around it, which might hold a secret."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return "it is nested too deeply" if isinstance(error, RecursionError) else "it holds what is no text"
    return str(error.problem or error.context or "it cannot be parsed").split("'")[0].strip()


def _first_fault(error: ValidationError, lines: Mapping[tuple[str | int, ...], int]) -> str:
    """``", line 7: endpoints: https://…: timeout: Input should be greater than 0; -3 came."``"""
    faults = sorted(error.errors(include_url=False), key=lambda fault: fault["loc"][-1:] != ("[key]",))
    fault = faults[0]
    of_key = fault["loc"][-1] == "[key]" if fault["loc"] else False
    place = fault["loc"][:-1] if of_key else fault["loc"]
    known = [place[:n] for n in range(len(place), 0, -1) if place[:n] in lines]
    line = f", line {lines[known[0]]}" if known else ""
    words = fault["msg"].removeprefix("Value error, ").removesuffix(".")
    if fault["type"] == "extra_forbidden":
        fields = Entry if len(place) == 3 else EndpointFile
        names = sorted(_PRICES) if "prices" in place else sorted(fields.model_fields)
        words = f"is not known here; known are {', '.join(names)}"
    elif fault["type"] == "string_pattern_mismatch" and place[-1] == "key":
        words = "must be the name of an environment variable in capitals (MY_KEY), never the key itself"
    named = ": ".join(str(part) for part in (place[:-1] if of_key else place))
    came = fault["input"]
    shown = isinstance(came, int | float | None) or (place and place[-1] in _SHOWN | _PRICES and isinstance(came, str))
    return f"{line}: {named or 'the file'}: {words}{f'; {str(came)[:40]!r} came' if shown and not of_key else ''}."


class _Loader(yaml.SafeLoader):
    """Safe, without dates (a version of an API looks like one) and without aliases."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own class attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not read here", mark)
        return super().compose_node(parent, index)


def _plain(node: yaml.Node, place: tuple[str | int, ...], lines: dict[tuple[str | int, ...], int]) -> Any:
    """The value of a node; `lines` is filled with the line of every key.  YAMLError for a key that stands twice."""
    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(part, (*place, k), lines) for k, part in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        return _Loader("").construct_object(node)
    value: dict[str, Any] = {}
    for key, part in node.value:
        name = str(key.value) if isinstance(key, yaml.ScalarNode) else ""
        if not name or name in value:
            problem = "a key stands there twice" if name else "a key must be a word"
            raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
        lines[*place, name] = key.start_mark.line + 1
        value[name] = _plain(part, (*place, name), lines)
    return value
