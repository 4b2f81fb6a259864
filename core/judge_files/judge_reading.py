"""Read and check the files of judges: bounded, plain values only, a known version, the schema, the digest.

A judge file may come from anybody, so reading one must cost little whatever it holds.  Size, depth and number of values
are bounded before anything is built.  Aliases (with which a few lines unfold into gigabytes), tags and doubled keys are
refused.  What comes back holds texts, finite numbers, true, false, null, lists and objects alone.

`core.judge_files.documents` holds every field of these files.  The same classes check what is written and what is read,
and make the JSON Schema.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import yaml

from core.errors import JudgeError, UsageError
from core.records import content_digest

Kind = Literal["judge", "fusion", "repeval"]
FORMATS: Mapping[Kind, str] = {"judge": "concord-judge", "fusion": "concord-fusion", "repeval": "concord-repeval"}
VERSION = 1
"""Version of the files of judges.  2 and 3 were used in development, so the next one is 4."""

FAULTS_SHOWN = 3
"""Faults that one error names."""
MOST_BYTES = 16 * 1024 * 1024
MOST_DEPTH = 40
MOST_VALUES = 200_000
LARGEST = 1e300
EXPORT_AGAIN = "Export the judge again."
CHANGED = (
    "{where}: was changed after the export: its digest does not match its content. Export the judge again; or, if you "
    "know who changed what, accept it: accept_edited=True in Python, --accept-edited on the command line."
)


def judge_schema(kind: Kind = "judge") -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of `judge.yaml`, `fused.yaml` or `repeval.yaml`.

    UsageError for another kind.
    """
    from pydantic import TypeAdapter

    from core.judge_files.documents import DOCUMENTS, FileDocument

    if kind not in FORMATS:
        raise UsageError(f"There are schemas of a judge, of a fusion and of RepEval, not of {kind!r}.")
    schema, properties = DOCUMENTS[kind].json_schema(), TypeAdapter(FileDocument).json_schema()["properties"]
    for name, shared in properties.items():  # pydantic loses the docstrings of inherited fields
        schema["properties"][name] = shared | schema["properties"][name]
    schema["properties"]["version"] |= {"const": VERSION}
    named = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:concord:{kind}:{VERSION}"}
    return named | schema | {"title": f"Concord file of a {kind}, version {VERSION}"}


def document_of(card: Mapping[str, Any], kind: Kind = "judge", where: str = "judge file") -> Any:
    """Return the record of `core.judge_files.documents` that `card` (plain JSON types) holds.

    JudgeError, naming the file as `where`, tells the path in it, what was expected, and what came.
    """
    from pydantic import ValidationError

    from core.judge_files.documents import DOCUMENTS

    version = card.get("version")
    if type(version) is not int or version != VERSION:
        newer = type(version) is int and version > VERSION
        whose = ", from a newer Concord. Update Concord, or export" if newer else f"; it must be {VERSION}. Export"
        raise JudgeError(f"{where}: has version {version!r:.40}{whose} the judge again with this one.")
    try:
        return DOCUMENTS[kind].validate_json(json.dumps(card))
    except ValidationError as error:
        faults = []
        for fault in error.errors(include_url=False):
            path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
            words = f"{fault['msg'].removeprefix('Value error, ')}; {fault['input']!r:.60} came."
            faults.append(f"{path or 'the file'}: {'is missing.' if fault['type'].startswith('missing') else words}")
        more = f" (and {len(faults) - FAULTS_SHOWN} more)" if len(faults) > FAULTS_SHOWN else ""
        raise JudgeError(
            f"{where}: {' '.join(faults[:FAULTS_SHOWN])}{more} Correct it, or export the judge again."
        ) from None


# ── off the disk ─────────────────────────────────────────────────────────────────────────────────────────────


def read_card(path: Path | str, kind: Kind | None = None, *, accept_edited: bool = False) -> dict[str, Any]:
    """Return the checked content of a file of `kind`, or of any kind.

    JudgeError tells what is wrong and what was expected: file not found, not YAML, another format or version, parts
    missing or of the wrong kind, or (unless `accept_edited`) changed after the export.
    """
    return card_of_text(_text(Path(path)), path, kind, accept_edited=accept_edited)


def card_of_text(
    text: str, path: Path | str, kind: Kind | None = None, *, accept_edited: bool = False
) -> dict[str, Any]:
    """Return the checked content of a file's text; `path` names it.  JudgeError as `read_card`."""
    card = parsed(text, path)
    if card.get("format") not in ([FORMATS[kind]] if kind else FORMATS.values()):
        wanted = FORMATS[kind or "judge"]
        raise JudgeError(f"{path}: is not a judge file; its first line should read 'format: {wanted}'.")
    document_of(card, kind_of(card), str(path))
    if not accept_edited and not is_as_exported(card):
        raise JudgeError(CHANGED.format(where=path))
    return card


def kind_of(card: Mapping[str, Any]) -> Kind:
    """Return the kind of a file by its content."""
    return next(kind for kind, name in FORMATS.items() if name == card["format"])


def kept_columns(card: Mapping[str, Any]) -> dict[str, str]:
    """Return role → column of the golden set's file, where the content of a judge file has any."""
    return dict(card.get("golden", {}).get("columns", {}))


def digest_of(card: Mapping[str, Any]) -> str:
    """Return ``"sha256:" + hex`` of the canonical JSON of `card` without its key `digest`.

    Numbers that are equal have equal text there (1.0 as 1), so that another tool may write the file anew.
    """

    def settled(value: Any, _: str) -> Any:
        return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value

    return content_digest("sha256", with_leaves({key: card[key] for key in card if key != "digest"}, settled))


def is_as_exported(card: Mapping[str, Any]) -> bool:
    """Whether the content of a file matches the digest in it."""
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


def parsed(text: str, path: Path | str) -> dict[str, Any]:
    """Return the object in `text`, unchecked.  JudgeError says what is wrong with it and where."""
    try:
        if text.lstrip()[:1] == "{":
            if sum(map(text.count, ",{[")) > MOST_VALUES:  # commas in texts count too: far too many
                raise ValueError(f"more than {MOST_VALUES:,} values; a judge file has far fewer")
            document = json.loads(text, object_pairs_hook=_once)
        else:
            _check_events(text)
            document = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
        with_leaves(document, _check_plain)
        json.dumps(document, ensure_ascii=False).encode()  # half a character (a lone surrogate) cannot be written
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        what = "is not YAML" if isinstance(error, yaml.YAMLError) else "cannot be read"
        line = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise JudgeError(f"{path}: {what} ({line}). {EXPORT_AGAIN}") from error
    if not isinstance(document, dict):
        raise JudgeError(f"{path}: is not a judge file; its first line should read 'format: concord-judge'.")
    return document


_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_BaseLoader):  # type: ignore[misc]
    """Safe YAML in which a date is the text it is written as, and a key stands once."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own class attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for key, times in keys.most_common(1):
            if times > 1:
                raise ValueError(f"line {node.start_mark.line + 1}: the key {key!r:.60} comes twice")
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        for key in mapping:
            if not isinstance(key, str):
                raise ValueError(f"line {node.start_mark.line + 1} has the key {key!r:.60}; keys are texts (quote it)")
        return mapping


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a key comes twice in one object")
    return mapping


def _check_events(text: str) -> None:
    """Check bounds and aliases while nothing has been built yet."""
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


def _check_plain(value: Any, path: str) -> None:
    """Raise ValueError, with the path, for what JSON has no place for."""
    where = path or "the file"
    if isinstance(value, int | float) and not abs(value) <= LARGEST:  # NaN and infinity too
        raise ValueError(f"{where} is not a finite number.")
    if not isinstance(value, str | int | float | None):
        what = type(value).__name__
        raise ValueError(f"{where} is a {what}; only texts, numbers, true, false, null, lists and objects go.")


def with_leaves(value: Any, leaf: Callable[[Any, str], Any], path: str = "", depth: int = 0) -> Any:
    """Turn mappings and sequences into objects and lists, each value in them into `leaf` of it and of its path.

    ValueError for more than `MOST_DEPTH` levels.
    """
    if depth > MOST_DEPTH:
        raise ValueError(f"{path} is nested deeper than {MOST_DEPTH} levels.")
    if isinstance(value, Mapping):
        return {
            str(key): with_leaves(inner, leaf, f"{path}.{key}".lstrip("."), depth + 1) for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [with_leaves(inner, leaf, f"{path}[{place}]", depth + 1) for place, inner in enumerate(value)]
    return leaf(value, path)
