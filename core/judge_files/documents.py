"""Read `judge.yaml`, `fused.yaml` and `repeval.yaml` safely, and check what loading and adapters use of them.

A judge file may come from anybody, so reading one must cost little whatever it holds. Size, depth and number of values
are bounded before anything is built. Aliases (with which a few lines unfold into gigabytes), tags and repeated keys are
refused. The result, the card, holds only texts, finite numbers, true, false, null, lists and objects; its digest is
made of it. Pydantic checks it with one frozen dataclass for each kind of file, on reading and on writing. Fields that
are written for people alone (`note`, `split`, `work`, …) are not checked. A field with a default may be absent.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import yaml
from pydantic import AfterValidator, ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError

from core.data.split import KnownTexts
from core.errors import ConcordError, JudgeError
from core.judging.scoring_styles import Style
from core.records import Alignment, Anchor, ItemKind, Scale, Task, content_digest
from core.stats import IsotonicMap
from core.stats.on_scale import VerdictIntervals

if TYPE_CHECKING:
    from core.fusion.stack import Estimator

Kind = Literal["judge", "fusion", "repeval"]
FORMATS: Mapping[Kind, str] = {"judge": "concord-judge", "fusion": "concord-fusion", "repeval": "concord-repeval"}
VERSION = 1
"""Version of judge files. 2 and 3 were used in development, so the next one is 4."""

FAULTS_SHOWN = 3
"""Faults that one error names."""
MOST_BYTES = 16 * 1024 * 1024
MOST_DEPTH = 40
MOST_VALUES = 200_000
LARGEST = 1e300
EXPORT_AGAIN = "Export the judge again."
NO_JUDGE_FILE = "{path} isn't a judge file: its first line must be 'format: concord-judge'. Check the path."
CHANGED = (
    "{path} was changed after the export: its digest doesn't match its content. Export the judge again. If you "
    "trust the change, accept it: accept_edited=True in Python, --accept-edited on the command line."
)

# ── kinds of fields ──────────────────────────────────────────────────────────────────────────────────────────────


def _read_by(read: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Annotate a field that holds the record which `read` makes of a JSON object."""

    def read_object(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("expected an object")
        try:
            return read(value)
        except ValidationError as error:
            fault = error.errors()[0]
            raise ValueError(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from error
        except ConcordError as error:
            raise ValueError(str(error)) from error
        except (AttributeError, TypeError, LookupError) as error:
            raise ValueError("one of its values has the wrong type") from error

    return PlainValidator(read_object)


def _usable_map(body: Mapping[str, Any]) -> IsotonicMap:
    """Apply the map once, since points that lie too close together would overflow."""
    score_map = IsotonicMap.from_json(body)
    if max(map(abs, (*score_map.x, score_map.low, score_map.high))) > 1e9:
        raise ValueError("each point must be between -1e9 and 1e9")
    try:
        with np.errstate(all="raise", under="ignore"):
            score_map.apply([score_map.x[0] - 1.0, *score_map.x, score_map.x[-1] + 1.0])
    except FloatingPointError as error:
        raise ValueError("neighbouring points are too close together (calibrate again)") from error
    return score_map


def alignment_of(body: Mapping[str, Any]) -> Alignment:
    """Read what `Alignment.as_json` wrote.  ValueError for a value of another kind, or a correlation beyond 1."""
    known = {name: body[name] for name in Alignment.__slots__ if body.get(name) is not None} | {"value": body["value"]}
    if ends := known.get("interval"):
        known["interval"] = {"low": ends[0], "high": ends[1], "method": body.get("interval_method") or ""}
    alignment = TypeAdapter(Alignment).validate_json(json.dumps(known), strict=True)
    if abs(alignment.value or 0.0) > 1.000001:
        raise ValueError("value: a correlation must be between -1 and 1")
    return alignment


def _usable_scale(scale: Scale) -> Scale:
    if not -1e9 <= scale.low < scale.high <= 1e9 or not (scale.step is None or 0 < scale.step <= 1e9):
        raise ValueError(f"low must be below high; got {scale.low:g} and {scale.high:g}")
    return scale


ScoreMap = Annotated[IsotonicMap, _read_by(_usable_map)]
Aligned = Annotated[Alignment, _read_by(alignment_of)]
Aspect = Annotated[str, Field(min_length=1, max_length=500)]

# ── parts of files ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class FilePart:
    """An object of a file: each field of its own type, further ones ignored."""

    __pydantic_config__: ClassVar = ConfigDict(extra="ignore", strict=True, arbitrary_types_allowed=True)


@dataclass(frozen=True)
class TaskEntry(FilePart):
    """The judging task; `needs` are the parts that every calibration item had, absent if unknown."""

    aspect: Aspect
    kind: ItemKind
    scale: Annotated[Scale, AfterValidator(_usable_scale)]
    definition: str = ""
    needs: tuple[Literal["target", "source", "context", "references"], ...] = ()
    levels: tuple[Anchor, ...] = ()
    """Descriptions of levels of the scale that the judging prompt shows."""

    def as_task(self) -> Task:
        return Task(self.aspect, self.kind, self.scale, self.definition, self.levels)


@dataclass(frozen=True)
class GoldenEntry(FilePart):
    """The golden set that the judge was made on, by the content hash of its items, labels and ratings.

    `columns` are role → column of its file, where the names differ: another file with these columns is read likewise,
    unless it has a column with the name of the role.  `columns.values` are the answers to what values mean, as JSON.
    """

    name: str
    digest: str
    columns: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FileDocument(FilePart):
    """Fields of every judge file.

    `created` is in ISO 8601 and UTC.  `digest` is the sha256 of the canonical JSON of the rest (keys sorted, no spaces,
    UTF-8, equal numbers written alike, 1.0 as 1).  `warnings` are sentences for users of the judge.  `texts` are those
    that the judge met while it was made: calibration, held_out and only_mapped, whose labels came after the criteria
    and fitted the map alone.  A recheck finds newer labels by these, whatever ids say.  Each is the first 12 hex digits
    of the sha256 of a text's source, context and target.
    """

    digest: str | None
    created: str
    task: TaskEntry
    golden: GoldenEntry
    warnings: tuple[str, ...]
    texts: Annotated[KnownTexts, _read_by(KnownTexts.from_json)]


@dataclass(frozen=True)
class JudgeDescription(FilePart):
    """The judge's own state, which `core.judging.judge_specs.restore_judge` reads; never a key."""

    spec: Annotated[str, Field(min_length=1, max_length=2000)]
    """offline, openai:MODEL[@BASE_URL], hf:ID_OR_PATH, recorded:FILE or scripted[:SEED]."""
    model: str = ""
    revision: str | None = None
    """A commit of the model's weights, or a dated snapshot."""
    sampling: Annotated[Style, _read_by(Style.from_state)] | None = None
    effort: str = ""
    """How long the model was asked to think; empty for its own way."""
    extra: str = ""
    """Further fields of each request, a JSON object; empty for none."""
    room: Annotated[int, Field(ge=0, le=16_384)] = 0
    """Tokens beyond max_tokens that the model was given, since its thoughts had used the limit up."""
    sent_without: tuple[str, ...] = ()
    """Settings that its endpoint refused when the judge was calibrated."""


# ── judge.yaml ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class CriteriaText(FilePart):
    """Scoring rules in full; `id` is c and 12 hex digits of aspect and text.  `weights` as in `Criteria`."""

    id: str
    text: str
    weights: tuple[Annotated[float, Field(ge=0, le=1)], ...] = ()


@dataclass(frozen=True)
class AlignmentsEntry(FilePart):
    """Agreement of the judge with the raters on held-out items, which no choice has seen, and of the baseline."""

    held_out: Aligned
    no_criteria: dict[str, Aligned | None] | None = None


State = Literal["draft", "proposed", "approved", "current", "retired"]


@dataclass(frozen=True, kw_only=True)
class Decision(FilePart):
    """A person's decision on the criteria, or on the whole version."""

    state: State
    by: str = ""
    at: str | None = None


@dataclass(frozen=True)
class JudgeVersionEntry(FilePart):
    """Which version of a project's judge this is; `approvals` are the decisions on it, oldest first."""

    id: str
    number: int
    state: State
    approvals: tuple[Decision, ...] = ()


@dataclass(frozen=True, kw_only=True)
class JudgeDocument(FileDocument):
    """A judge calibrated with Concord."""

    judge: JudgeDescription
    criteria: Annotated[tuple[CriteriaText, ...], Field(min_length=1, max_length=100)]
    """Best first; a score is the mean over them."""
    approved: bool
    approvals: tuple[Decision, ...]
    """The last decision on each of the criteria."""
    judge_version: JudgeVersionEntry | None = None
    isotonic: ScoreMap | None
    """Strictly rising map from the judge's score to the human scale; null: scores are used as they come."""
    intervals: Annotated[VerdictIntervals, _read_by(VerdictIntervals.from_json)] | None = None
    alignment: AlignmentsEntry
    settings: dict[str, str | int | float | bool | None]
    """Of the calibration: with the golden set and the same judge they repeat it."""


# ── fused.yaml ───────────────────────────────────────────────────────────────────────────────────────────────────


def _rate_prompt(name: str) -> str:
    if name != "fusion_rate.v2":
        raise ValueError("Concord no longer supports fusions that rate several aspects per call (fuse again)")
    return name


@dataclass(frozen=True)
class ModelFusionEntry(FilePart):
    """A language model that rates each item by a plan and the parts' numbers; "none" is no plan, or no criteria."""

    prompt: Annotated[str, AfterValidator(_rate_prompt)]
    parts: tuple[str, ...]
    judge: JudgeDescription
    plan: Annotated[str, Field(min_length=1, max_length=8_000)]
    introduced: str
    """Lines that introduce the parts to the model."""
    criteria: Annotated[str, Field(min_length=1, max_length=20_000)]


@dataclass(frozen=True)
class FusedPart(FilePart):
    """One part of a fusion: an `assistant` (a metric by name), a fitted `repeval` score, or a `judge` file's content.

    The scores of a part that is none of them are handed in.
    """

    name: str
    higher_is_better: bool = field(kw_only=True)
    assistant: Annotated[str, Field(max_length=500)] = ""
    repeval: dict[str, Any] | None = None
    judge: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        from core.metrics import fitted_repeval

        if self.repeval is not None:
            try:
                fitted_repeval(self.name, self.repeval)
            except ConcordError as error:
                raise ValueError(str(error)) from error

    @property
    def column(self) -> str:
        """Column with its scores, if they cannot be computed: ``metric_offline_calibrated``."""
        return "metric_" + ("_".join(re.findall(r"[a-z0-9]+", self.name.lower())) or "part")

    @property
    def requirement(self) -> str:
        """What scoring with it requires, in words."""
        if self.judge is not None:
            return f"the judge {self.judge.get('judge', {}).get('spec', 'offline')}, which this file contains"
        if self.repeval is not None:
            return f"the hidden states of {self.repeval['model']} (this file contains the directions)"
        if self.assistant and not self.assistant.startswith("metric_"):
            return f"the metric {self.assistant}"
        return f"a column {self.assistant or f'{self.column} with its scores'}"

    def as_json(self) -> dict[str, Any]:
        """Return the part's entry in the file."""
        whole = {name: getattr(self, name) for name in ("name", "higher_is_better", "assistant", "repeval", "judge")}
        return {name: value for name, value in whole.items() if value not in ("", None)} | {"needs": self.requirement}


def _fusion_of(body: Mapping[str, Any]) -> Estimator | ModelFusionEntry:
    """Read the fitted estimator over the parts, or the model that rates by a plan."""
    from core.fusion.stack import restore_estimator

    if body["method"] == "llm":
        return TypeAdapter(ModelFusionEntry).validate_json(json.dumps(body))
    estimator = restore_estimator({name: value for name, value in body.items() if name != "parts"})
    if len(estimator.weights) != len(body["parts"]):
        raise ValueError(f"it has {len(estimator.weights)} weights for {len(body['parts'])} parts")
    return estimator


@dataclass(frozen=True, kw_only=True)
class FusionDocument(FileDocument):
    """Several judges and metrics joined into one score."""

    fusion: Annotated[Any, _read_by(_fusion_of)]
    parts: Annotated[tuple[FusedPart, ...], Field(min_length=1, max_length=1000)]
    """In the order of the weights."""
    alignment: Aligned


# ── repeval.yaml ─────────────────────────────────────────────────────────────────────────────────────────────────


def _checked_scorer(body: Mapping[str, Any]) -> Any:
    from core.repeval import RepEvalScorer

    return RepEvalScorer.from_json(body)


@dataclass(frozen=True, kw_only=True)
class RepEvalDocument(FileDocument):
    """A RepEval score that rates other items; it holds no weights of a model.

    `scorer` has the model with revision and fingerprint, template and criterion, and for each cell its layer, token and
    direction (base64 of float32).  Layer 0 are the embeddings, i is the output of block i; token -1 is the last one.
    """

    scorer: Annotated[Any, _read_by(_checked_scorer)]
    isotonic: ScoreMap | None = None
    alignment: Aligned


@cache
def _checker(kind: Kind) -> TypeAdapter[Any]:
    return TypeAdapter({"judge": JudgeDocument, "fusion": FusionDocument, "repeval": RepEvalDocument}[kind])


def document_of(card: Mapping[str, Any], kind: Kind = "judge", where: str = "judge file") -> Any:
    """Check a card (plain JSON types), and return its document.

    JudgeError names the file as `where`, the path in it, what was expected, and what came.
    """
    version = card.get("version")
    if type(version) is not int or version != VERSION:
        newer = type(version) is int and version > VERSION
        whose = (
            " is from a newer Concord. Update Concord, or export"
            if newer
            else f" isn't supported (it must be {VERSION}). Export"
        )
        raise JudgeError(f"{where}: version {version!r:.40}{whose} the judge again with this version.")
    try:
        document = _checker(kind).validate_json(json.dumps(card))
    except ValidationError as error:
        faults = []
        for fault in error.errors(include_url=False):
            path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
            words = f"{fault['msg'].removeprefix('Value error, ')}; got {fault['input']!r:.60}."
            faults.append(
                f"{path or 'the file'}: {'this field is missing.' if fault['type'].startswith('missing') else words}"
            )
        more = f" (and {len(faults) - FAULTS_SHOWN} more)" if len(faults) > FAULTS_SHOWN else ""
        raise JudgeError(
            f"{where}: {' '.join(faults[:FAULTS_SHOWN])}{more} Correct it, or export the judge again."
        ) from None
    if kind == "fusion" and [part.name for part in document.parts] != card["fusion"].get("parts"):
        raise JudgeError(
            f"{where}: parts and fusion.parts must list the same parts in the same order. Export the judge again."
        )
    return document


# ── off the disk ─────────────────────────────────────────────────────────────────────────────────────────────────


def read_card(path: Path | str, *, accept_edited: bool = False) -> dict[str, Any]:
    """Read the content of a judge file of any kind, and check it.

    JudgeError says what is wrong and what was expected: file not found, not YAML, another format or version, parts
    missing or of the wrong kind, or (unless `accept_edited`) changed after the export.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise JudgeError(
                f"{path} is larger than {MOST_BYTES // 1024**2} MB, which is too large for a judge "
                "file. Check the path."
            )
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise JudgeError(f"Can't read {path} ({error.strerror}). Check the path of the judge file.") from error
    except UnicodeDecodeError as error:
        raise JudgeError(f"{path} isn't UTF-8 text (at byte {error.start}). {EXPORT_AGAIN}") from error
    card = parsed(text, path)
    if card.get("format") not in FORMATS.values():
        raise JudgeError(NO_JUDGE_FILE.format(path=path))
    document_of(card, kind_of(card), str(path))
    if not accept_edited and not is_as_exported(card):
        raise JudgeError(CHANGED.format(path=path))
    return card


def kind_of(card: Mapping[str, Any]) -> Kind:
    """Return the kind of a file by its content."""
    return next(kind for kind, name in FORMATS.items() if name == card["format"])


def kept_columns(card: Mapping[str, Any]) -> dict[str, str]:
    """Return how the golden set's file was read (`GoldenSet.columns`), as the content of a judge file says."""
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


def parsed(text: str, path: Path | str) -> dict[str, Any]:
    """Return the object in `text`, unchecked.  JudgeError says what is wrong with it and where."""
    try:
        if text.lstrip()[:1] == "{":
            if sum(map(text.count, ",{[")) > MOST_VALUES:  # commas in texts count too: far too many
                raise ValueError(f"more than {MOST_VALUES:,} values, which is too many for a judge file")
            document = json.loads(text, object_pairs_hook=_once)
        else:
            _check_events(text)
            document = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
        with_leaves(document, _check_plain)
        json.dumps(document, ensure_ascii=False).encode()  # half a character (a lone surrogate) cannot be written
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        what = "isn't valid YAML" if isinstance(error, yaml.YAMLError) else "isn't a valid judge file"
        line = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise JudgeError(f"{path} {what} ({line}). {EXPORT_AGAIN}") from error
    if not isinstance(document, dict):
        raise JudgeError(NO_JUDGE_FILE.format(path=path))
    return document


_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_BaseLoader):  # type: ignore[misc]
    """Safe YAML that reads a date as text and refuses repeated keys."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own class attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for key, times in keys.most_common(1):
            if times > 1:
                raise ValueError(f"line {node.start_mark.line + 1} repeats the key {key!r:.60}")
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        for key in mapping:
            if not isinstance(key, str):
                raise ValueError(
                    f"line {node.start_mark.line + 1} has the key {key!r:.60}, but keys must be text (quote it)"
                )
        return mapping


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("an object contains a key twice")
    return mapping


def _check_events(text: str) -> None:
    """Check bounds and aliases while nothing has been built yet."""
    depth = values = 0
    for event in yaml.parse(text, Loader=_BaseLoader):
        if isinstance(event, yaml.AliasEvent):
            line = "" if event.start_mark is None else f" in line {event.start_mark.line + 1}"
            raise ValueError(f"it contains an alias, *{event.anchor}{line}, but judge files can't contain aliases")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        values += isinstance(event, yaml.NodeEvent)
        if depth > MOST_DEPTH or values > MOST_VALUES:
            what = f"{MOST_DEPTH} levels" if depth > MOST_DEPTH else f"{MOST_VALUES:,} values"
            raise ValueError(f"more than {what}, which is too many for a judge file")


def _check_plain(value: Any, path: str) -> None:
    """Raise ValueError, with the path, for a value that JSON cannot hold."""
    where = path or "the file"
    if isinstance(value, int | float) and not abs(value) <= LARGEST:  # NaN and infinity too
        raise ValueError(f"{where} isn't a finite number")
    if not isinstance(value, str | int | float | None):
        what = type(value).__name__
        raise ValueError(
            f"{where} is a {what}, but only text, numbers, true, false, null, lists and objects are allowed"
        )


def with_leaves(value: Any, leaf: Callable[[Any, str], Any], path: str = "", depth: int = 0) -> Any:
    """Copy nested mappings and sequences as objects and lists, each value replaced by `leaf` of it and its path.

    ValueError for more than `MOST_DEPTH` levels.
    """
    if depth > MOST_DEPTH:
        raise ValueError(f"{path} is nested deeper than {MOST_DEPTH} levels")
    if isinstance(value, Mapping):
        return {
            str(key): with_leaves(inner, leaf, f"{path}.{key}".lstrip("."), depth + 1) for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [with_leaves(inner, leaf, f"{path}[{place}]", depth + 1) for place, inner in enumerate(value)]
    return leaf(value, path)
