"""The files of judges, read and checked: bounded, plain values only, a known version, the schema, the digest.

A judge file may come from anybody, so reading one must cost little whatever it holds: size, depth and number of
values are bounded before anything is built, aliases (with which a few lines unfold into gigabytes), tags and doubled
keys are refused, and what comes back holds texts, finite numbers, true, false, null, lists and objects alone.

`core.judge_files.judge_document` and `core.judge_files.fused_file` say field by field what these files hold, as
pydantic models: the same models check what is written and what is read, and make the JSON Schema.
Loading pydantic takes a tenth of a second, so they are imported late.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import yaml

from core.errors import JudgeError, UsageError
from core.records import content_digest

if TYPE_CHECKING:
    from pydantic import BaseModel

    from core.judge_files.fused_file import FusionDocument
    from core.judge_files.judge_document import JudgeDocument
    from core.judge_files.repeval_file import RepEvalDocument


Document = TypeVar("Document", bound="BaseModel")
Kind = Literal["judge", "fusion", "repeval"]
VERSION = 1
"""Version of the files of judges.  2 and 3 were used in development, so the next one is 4."""

FORMATS: Mapping[Kind, str] = {
    "judge": "concord-judge",
    "fusion": "concord-fusion",
    "repeval": "concord-repeval",
}
FAULTS_SHOWN = 3
"""Faults that one error names."""


def judge_schema(kind: Kind = "judge") -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `judge.yaml`, `fused.yaml` or `repeval.yaml`.  UsageError for another kind."""
    if kind not in FORMATS:
        raise UsageError(f"There are schemas of a judge, of a fusion and of RepEval, not of {kind!r}.")
    schema = _model_of(kind).model_json_schema()
    schema["properties"]["version"] |= {"const": VERSION}
    named = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:concord:{kind}:{VERSION}"}
    return named | schema | {"title": f"Concord file of a {kind}, version {VERSION}"}


def checked(card: Mapping[str, Any], kind: Kind = "judge", where: str = "judge file") -> dict[str, Any]:
    """`card` (plain JSON types) when it holds what the schema says and no more; `where` names the file.

    JudgeError tells the path in the file, what was expected, and what came.
    """
    version = card.get("version")
    if type(version) is not int or version != VERSION:
        newer = type(version) is int and version > VERSION
        whose = ", from a newer Concord. Update Concord, or export" if newer else f"; it must be {VERSION}. Export"
        raise JudgeError(f"{where}: has version {version!r:.40}{whose} the judge again with this one.")
    _parsed(_model_of(kind), card, where)
    return dict(card)


def _model_of(kind: Kind) -> type[BaseModel]:
    match kind:
        case "judge":
            from core.judge_files.judge_document import JudgeDocument

            return JudgeDocument
        case "fusion":
            from core.judge_files.fused_file import FusionDocument

            return FusionDocument
        case "repeval":
            from core.judge_files.repeval_file import RepEvalDocument

            return RepEvalDocument


def judge_document(card: Mapping[str, Any], where: str) -> JudgeDocument:
    """What the card of a judge file in the present version holds; JudgeError as `checked`."""
    from core.judge_files.judge_document import JudgeDocument

    return _parsed(JudgeDocument, card, where)


def fusion_document(card: Mapping[str, Any], where: str) -> FusionDocument:
    """What the card of a fused judge's file holds; JudgeError as `checked`."""
    from core.judge_files.fused_file import FusionDocument

    return _parsed(FusionDocument, card, where)


def repeval_document(card: Mapping[str, Any], where: str) -> RepEvalDocument:
    """What the card of a RepEval file holds; JudgeError as `checked`."""
    from core.judge_files.repeval_file import RepEvalDocument

    return _parsed(RepEvalDocument, card, where)


def _parsed(model: type[Document], card: Mapping[str, Any], where: str) -> Document:
    from pydantic import ValidationError

    try:
        return model.model_validate(dict(card))
    except ValidationError as error:
        faults = []
        for fault in error.errors(include_url=False):
            words = f"{fault['msg'].removeprefix('Value error, ')}; {_shown(fault['input'])} came."
            words = "is missing." if fault["type"] == "missing" else words
            faults.append(f"{_path(fault['loc']) or 'the file'}: {words}")
        more = f" (and {len(faults) - FAULTS_SHOWN} more)" if len(faults) > FAULTS_SHOWN else ""
        raise JudgeError(
            f"{where}: {' '.join(faults[:FAULTS_SHOWN])}{more} Correct it, or export the judge again."
        ) from None


def _path(parts: Sequence[str | int]) -> str:
    """``task.scale.low``, ``criteria[0].text``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")


# ── off the disk ─────────────────────────────────────────────────────────────────────────────────────────────

MOST_BYTES = 16 * 1024 * 1024
MOST_DEPTH = 40
MOST_VALUES = 200_000
LARGEST = 1e300
EXPORT_AGAIN = "Export the judge again."
EDITED = (
    "{where}: was changed after the export: its digest does not match its content. Export the judge again; or, if you "
    "know who changed what, accept it: accept_edited=True in Python, --accept-edited on the command line."
)


def read_document(path: Path | str) -> dict[str, Any]:
    """The object in the file at `path`.  JudgeError says what is wrong with it and where."""
    return _document(_text(Path(path)), path)


def _document(text: str, path: Path | str) -> dict[str, Any]:
    try:
        document = _json(text) if text.lstrip()[:1] == "{" else _yaml(text)
    except yaml.YAMLError as error:
        raise JudgeError(f"{path}: is not YAML ({_first_line(error)}). {EXPORT_AGAIN}") from error
    except RecursionError as error:
        raise JudgeError(f"{path}: is nested too deeply for a judge file. {EXPORT_AGAIN}") from error
    except ValueError as error:
        raise JudgeError(f"{path}: cannot be read ({_first_line(error)}). {EXPORT_AGAIN}") from error
    if not isinstance(document, dict):
        raise JudgeError(f"{path}: is no judge file; its first line should read 'format: concord-judge'.")
    try:
        _check_plain(document)
    except ValueError as error:
        raise JudgeError(f"{path}: {error} {EXPORT_AGAIN}") from error
    return document


@dataclass(frozen=True)
class JudgeFile:
    """A checked card; `edited`: its digest did not match, and the caller accepted that."""

    card: dict[str, Any]
    edited: bool


def open_file(path: Path | str, kind: Kind = "judge", *, accept_edited: bool = False) -> JudgeFile:
    """The checked content of a file.

    JudgeError tells what is wrong and what was expected: no such file, not YAML, another format or version, parts
    missing or of the wrong kind, or (unless `accept_edited`) changed after the export.
    """
    return open_text(_text(Path(path)), path, kind, accept_edited=accept_edited)


def open_text(text: str, path: Path | str, kind: Kind = "judge", *, accept_edited: bool = False) -> JudgeFile:
    """As `open_file`, of a file's text; `path` names it."""
    written = _document(text, path)
    if written.get("format") != FORMATS[kind]:
        raise JudgeError(f"{path}: is no judge file; its first line should read 'format: {FORMATS[kind]}'.")
    card = checked(written, kind, str(path))
    edited = not is_as_exported(written)
    if edited and not accept_edited:
        raise JudgeError(EDITED.format(where=path))
    return JudgeFile(card, edited)


def read_card(path: Path | str, *, accept_edited: bool = False) -> dict[str, Any]:
    """The checked content of a judge file.  JudgeError as `open_file`."""
    return open_file(path, accept_edited=accept_edited).card


def columns_of_file(path: Path | str, *, accept_edited: bool = False) -> dict[str, str]:
    """Role → column of the golden set's file, as a judge file keeps it.  JudgeError as `open_file`."""
    return kept_columns(open_file(path, kind_of_file(path), accept_edited=accept_edited).card)


def kept_columns(card: Mapping[str, Any]) -> dict[str, str]:
    """Role → column of the golden set's file, where the content of a judge file has any."""
    return dict(card.get("golden", {}).get("columns", {}))


def kind_of_file(path: Path | str) -> Kind:
    """What kind of file it says it is; "judge" for one that says nothing of the sort, or cannot be read."""
    kinds = {name: kind for kind, name in FORMATS.items()}
    try:
        with Path(path).open(encoding="utf-8") as file:
            first = file.readline(200).strip().removeprefix("format: ")
        return kinds[first] if first in kinds else kinds.get(str(read_document(path).get("format")), "judge")
    except (OSError, UnicodeDecodeError, JudgeError):
        return "judge"


def digest_of(card: Mapping[str, Any]) -> str:
    """``"sha256:" + hex`` of the canonical JSON of `card` without its key `digest`.

    Numbers that are equal have equal text there (1.0 as 1), so that another tool may write the file anew.
    """
    rest = {key: value for key, value in card.items() if key != "digest"}
    return content_digest("sha256", with_leaves(rest, _settled))


def is_as_exported(card: Mapping[str, Any]) -> bool:
    """Whether the content of a file off the disk matches the digest that stands in it."""
    return card.get("digest") == digest_of(card)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise JudgeError(f"{path}: cannot be read ({error.strerror}). Give the path of a judge.yaml.") from error
    if len(data) > MOST_BYTES:
        raise JudgeError(f"{path}: is larger than {MOST_BYTES // 1024**2} MB, as no judge file is. Name another file.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise JudgeError(f"{path}: is not UTF-8 text (at byte {error.start}). {EXPORT_AGAIN}") from error


_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_BaseLoader):  # type: ignore[misc]
    """Safe YAML in which a date is the text it is written as, and a key stands once."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own class attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) < len(keys):
            twice = Counter(keys).most_common(1)[0][0]
            raise ValueError(f"line {node.start_mark.line + 1}: the key {_shown(twice)} stands twice")
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def _yaml(text: str) -> Any:
    _check_events(text)
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader


def _json(text: str) -> Any:
    if text.count(",") + text.count("{") + text.count("[") > MOST_VALUES:  # commas in texts count too: far too many
        raise ValueError(f"more than {MOST_VALUES:,} values; a judge file has far fewer")
    return json.loads(text, object_pairs_hook=_once)


def _check_events(text: str) -> None:
    """Bounds and aliases, while nothing has been built yet."""
    depth = values = 0
    for event in yaml.parse(text, Loader=_BaseLoader):
        if isinstance(event, yaml.AliasEvent):
            line = "" if event.start_mark is None else f" in line {event.start_mark.line + 1}"
            raise ValueError(f"it holds an alias, *{event.anchor}{line}; judge files have none")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        values += isinstance(event, yaml.NodeEvent)
        if depth > MOST_DEPTH or values > MOST_VALUES:
            what = f"{MOST_DEPTH} levels" if depth > MOST_DEPTH else f"{MOST_VALUES:,} values"
            raise ValueError(f"more than {what}; a judge file has far fewer")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return mapping


def _check_plain(value: Any, path: str = "", depth: int = 0) -> None:
    """ValueError for what JSON has no place for, with the path to it."""
    where = path or "the file"
    if depth > MOST_DEPTH:
        raise ValueError(f"{where} is nested deeper than {MOST_DEPTH} levels.")
    match value:
        case dict():
            for key, inner in value.items():
                if not isinstance(key, str):
                    raise ValueError(f"{where} has the key {_shown(key)}; keys are texts (quote it).")
                _check_text(key, where)
                _check_plain(inner, f"{path}.{key}" if path else key, depth + 1)
        case list():
            for place, inner in enumerate(value):
                _check_plain(inner, f"{path}[{place}]", depth + 1)
        case str():
            _check_text(value, where)
        case bool() | None:
            return
        case int() | float():
            if not abs(value) <= LARGEST:  # NaN and infinity too
                raise ValueError(f"{where} is no finite number.")
        case _:
            raise ValueError(
                f"{where} is a {type(value).__name__}; only texts, numbers, true, false, null, lists and objects go."
            )


def _check_text(text: str, where: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{where} holds half a character (a lone surrogate).") from None


def with_leaves(value: Any, leaf: Callable[[Any, str], Any], path: str = "") -> Any:
    """Mappings and sequences as objects and lists, each value in them as `leaf` of it and of its path gives it."""
    if isinstance(value, Mapping):
        inner = ((str(key), inside, f"{path}.{key}" if path else str(key)) for key, inside in value.items())
        return {key: with_leaves(inside, leaf, below) for key, inside, below in inner}
    if isinstance(value, list | tuple):
        return [with_leaves(inside, leaf, f"{path}[{place}]") for place, inside in enumerate(value)]
    return leaf(value, path)


def _settled(value: Any, _: str) -> Any:
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _shown(value: object) -> str:
    return repr(value)[:60]
