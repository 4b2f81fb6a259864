"""Read and validate `judge.yaml`, `fused.yaml` and `repeval.yaml` safely.

A judge file may come from anybody. Size, depth and number of values are limited, so that reading is always cheap.
Aliases (with which a few lines can expand to gigabytes), tags and repeated keys are refused.

The parsed content of a file is called its *card*: texts, finite numbers, true, false, null, lists and objects. Fields
that are only for people (`note`, `split`, `work`, …) are not validated. Fields with a default are optional.
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
"""Version of judge files. The next one is 4, because 2 and 3 were used in development."""

FAULTS_SHOWN = 3
"""Maximum number of faults in an error message."""
MOST_BYTES = 16 * 1024 * 1024
MOST_DEPTH = 40
MOST_VALUES = 200_000
LARGEST = 1e300
EXPORT_AGAIN = "Export the judge again."
NO_JUDGE_FILE = "{path} isn't a judge file, because its first line isn't 'format: concord-judge'. Check the path."
CHANGED = (
    "{path} was changed after the export: its digest doesn't match its content. Export the judge again. To accept a "
    "change that you trust, use --accept-edited on the command line or accept_edited=True in Python."
)

# ── kinds of fields ──────────────────────────────────────────────────────────────────────────────────────────────


def _read_by(read: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Return an annotation for a field that `read` parses from a JSON object."""

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
    """Parse a map and apply it once, because points that are too close together would overflow."""
    score_map = IsotonicMap.from_json(body)
    if max(map(abs, (*score_map.x, score_map.low, score_map.high))) > 1e9:
        raise ValueError("each point must be between -1e9 and 1e9")
    try:
        with np.errstate(all="raise", under="ignore"):
            score_map.apply([score_map.x[0] - 1.0, *score_map.x, score_map.x[-1] + 1.0])
    except FloatingPointError as error:
        raise ValueError("neighbouring points are too close to each other (calibrate again)") from error
    return score_map


def alignment_of(body: Mapping[str, Any]) -> Alignment:
    """Parse an alignment written by `Alignment.as_json`.

    Raises ValueError if a value has the wrong type, or if a correlation is beyond ±1.
    """
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
    """Base class of the objects in a judge file. Unknown fields are ignored."""

    __pydantic_config__: ClassVar = ConfigDict(extra="ignore", strict=True, arbitrary_types_allowed=True)


@dataclass(frozen=True)
class TaskEntry(FilePart):
    """The judging task in a file.

    `needs` lists the parts that every calibration item had; () if unknown.
    """

    aspect: Aspect
    kind: ItemKind
    scale: Annotated[Scale, AfterValidator(_usable_scale)]
    definition: str = ""
    needs: tuple[Literal["target", "source", "context", "references"], ...] = ()
    levels: tuple[Anchor, ...] = ()
    """Level descriptions in the scoring prompt."""

    def as_task(self) -> Task:
        return Task(self.aspect, self.kind, self.scale, self.definition, self.levels)


@dataclass(frozen=True)
class GoldenEntry(FilePart):
    """The entry in a judge file about the golden set of its calibration.

    Attributes:
        digest: Hash of the content of the golden set.
        columns: Role → its column in the file, if the names differ. Another file with such a column is read in the same
            way, unless it also has a column named after the role. The key "values" is not a role: it holds the
            meanings of values as JSON text.
    """

    name: str
    digest: str
    columns: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FileDocument(FilePart):
    """The fields that all judge files have.

    Attributes:
        digest: SHA-256 of the canonical JSON of all other fields: sorted keys, no spaces, UTF-8, and one spelling for
            equal numbers (1.0 as 1).
        created: Time in ISO 8601 and UTC.
        warnings: Sentences for users of the judge.
        texts: Three lists of digests: `calibration`, `held_out` and `only_mapped`. The digests identify the items of
            the calibration in other files. A digest is the first 12 hex digits of the SHA-256 of source, context and
            target. Texts in `only_mapped` were labelled after the criteria were chosen. Their labels were used only to
            fit the map to the human scale.
    """

    digest: str | None
    created: str
    task: TaskEntry
    golden: GoldenEntry
    warnings: tuple[str, ...]
    texts: Annotated[KnownTexts, _read_by(KnownTexts.from_json)]


@dataclass(frozen=True)
class JudgeDescription(FilePart):
    """The judge's settings, from which `restore_judge` opens the judge again. They contain no key."""

    spec: Annotated[str, Field(min_length=1, max_length=2000)]
    """offline, openai:MODEL[@BASE_URL], hf:ID_OR_PATH, recorded:FILE or scripted[:SEED]."""
    model: str = ""
    revision: str | None = None
    """Commit of the model's weights, or dated snapshot."""
    sampling: Annotated[Style, _read_by(Style.from_state)] | None = None
    effort: str = ""
    """Reasoning effort, such as "low"; empty for the model's default."""
    extra: str = ""
    """Additional fields of each request, as a JSON object; empty for none."""
    room: Annotated[int, Field(ge=0, le=16_384)] = 0
    """Tokens for reasoning in addition to max_tokens, because reasoning had used up the limit."""
    sent_without: tuple[str, ...] = ()
    """Settings that the endpoint refused during the calibration."""


# ── judge.yaml ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class CriteriaText(FilePart):
    """Criteria in a file. `id` is their `Criteria.criteria_id`, and `weights` are explained in `Criteria`."""

    id: str
    text: str
    weights: tuple[Annotated[float, Field(ge=0, le=1)], ...] = ()


@dataclass(frozen=True)
class AlignmentsEntry(FilePart):
    """Agreement with the raters on held-out items, for the judge and the baseline."""

    held_out: Aligned
    no_criteria: dict[str, Aligned | None] | None = None


State = Literal["draft", "proposed", "approved", "current", "retired"]


@dataclass(frozen=True, kw_only=True)
class Decision(FilePart):
    """A user's decision on criteria, or on a whole version."""

    state: State
    by: str = ""
    at: str | None = None


@dataclass(frozen=True)
class JudgeVersionEntry(FilePart):
    """The version of the judge that the file contains.

    `approvals` lists the decisions about it, oldest first.
    """

    id: str
    number: int
    state: State
    approvals: tuple[Decision, ...] = ()


@dataclass(frozen=True, kw_only=True)
class JudgeDocument(FileDocument):
    """The content of `judge.yaml`."""

    judge: JudgeDescription
    criteria: Annotated[tuple[CriteriaText, ...], Field(min_length=1, max_length=100)]
    """Criteria, best first. The score is the mean over them."""
    approved: bool
    approvals: tuple[Decision, ...]
    """The last decision on each criteria text."""
    judge_version: JudgeVersionEntry | None = None
    isotonic: ScoreMap | None
    """Strictly increasing map from the judge's score to the human scale; null uses the scores unchanged."""
    intervals: Annotated[VerdictIntervals, _read_by(VerdictIntervals.from_json)] | None = None
    alignment: AlignmentsEntry
    settings: dict[str, str | int | float | bool | None]
    """Settings of the calibration. With the same golden set and judge they reproduce it."""


# ── fused.yaml ───────────────────────────────────────────────────────────────────────────────────────────────────


def _rate_prompt(name: str) -> str:
    if name != "fusion_rate.v2":
        raise ValueError("Concord no longer supports fusions that rate several aspects per call (fuse again)")
    return name


@dataclass(frozen=True)
class ModelFusionEntry(FilePart):
    """A language model that rates each item, based on a plan and the scores of the parts.

    `plan` and `criteria` are texts. "none" means that the prompt has no plan or no criteria.
    """

    prompt: Annotated[str, AfterValidator(_rate_prompt)]
    parts: tuple[str, ...]
    judge: JudgeDescription
    plan: Annotated[str, Field(min_length=1, max_length=8_000)]
    introduced: str
    """Lines of the prompt that introduce the parts."""
    criteria: Annotated[str, Field(min_length=1, max_length=20_000)]


@dataclass(frozen=True)
class FusedPart(FilePart):
    """A part of a fusion: a metric, a fitted RepEval score, or a judge.

    One of the following attributes says how to compute the scores. If none is set, the caller provides the scores.

    Attributes:
        assistant: Name of a metric.
        repeval: Content of a fitted RepEval score.
        judge: Content of a judge file.
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
        """Name of the input column with the part's scores, for parts that cannot be computed.

        For example, ``metric_offline_calibrated``.
        """
        return "metric_" + ("_".join(re.findall(r"[a-z0-9]+", self.name.lower())) or "part")

    @property
    def requirement(self) -> str:
        """Phrase that says what scoring with this part requires."""
        if self.judge is not None:
            return f"the judge {self.judge.get('judge', {}).get('spec', 'offline')}, which this file contains"
        if self.repeval is not None:
            return f"the hidden states of {self.repeval['model']} (the fitted directions are in this file)"
        if self.assistant and not self.assistant.startswith("metric_"):
            return f"the metric {self.assistant}"
        return f"a column {self.assistant or f'{self.column} with its scores'}"

    def as_json(self) -> dict[str, Any]:
        """Return the part's entry in the file."""
        whole = {name: getattr(self, name) for name in ("name", "higher_is_better", "assistant", "repeval", "judge")}
        return {name: value for name, value in whole.items() if value not in ("", None)} | {"needs": self.requirement}


def _fusion_of(body: Mapping[str, Any]) -> Estimator | ModelFusionEntry:
    """Parse the fitted estimator over the parts, or the language model that rates by a plan."""
    from core.fusion.stack import restore_estimator

    if body["method"] == "llm":
        return TypeAdapter(ModelFusionEntry).validate_json(json.dumps(body))
    estimator = restore_estimator({name: value for name, value in body.items() if name != "parts"})
    if len(estimator.weights) != len(body["parts"]):
        raise ValueError(f"the file has {len(estimator.weights)} weights for {len(body['parts'])} parts")
    return estimator


@dataclass(frozen=True, kw_only=True)
class FusionDocument(FileDocument):
    """The content of `fused.yaml`: several judges and metrics combined into one score."""

    fusion: Annotated[Any, _read_by(_fusion_of)]
    parts: Annotated[tuple[FusedPart, ...], Field(min_length=1, max_length=1000)]
    """The parts, in the order of the weights."""
    alignment: Aligned


# ── repeval.yaml ─────────────────────────────────────────────────────────────────────────────────────────────────


def _checked_scorer(body: Mapping[str, Any]) -> Any:
    from core.repeval import RepEvalScorer

    return RepEvalScorer.from_json(body)


@dataclass(frozen=True, kw_only=True)
class RepEvalDocument(FileDocument):
    """The content of `repeval.yaml`: a fitted RepEval score, ready to be used on new items.

    The file does not contain the weights of the model that the score uses.

    `scorer` has the model's name, revision and fingerprint, the template, the criterion, and the fitted directions.
    Each direction (base64 of float32) belongs to a layer and a token. Layer 0 means the embeddings, layer i the output
    of block i, and token -1 the last token.
    """

    scorer: Annotated[Any, _read_by(_checked_scorer)]
    isotonic: ScoreMap | None = None
    alignment: Aligned


@cache
def _checker(kind: Kind) -> TypeAdapter[Any]:
    return TypeAdapter({"judge": JudgeDocument, "fusion": FusionDocument, "repeval": RepEvalDocument}[kind])


def document_of(card: Mapping[str, Any], kind: Kind = "judge", where: str = "judge file") -> Any:
    """Validate a card (the content of a judge file) and return it as a document.

    Raises JudgeError, which names the file (`where`) and the field, and says what is wrong.
    """
    version = card.get("version")
    if type(version) is not int or version != VERSION:
        newer = type(version) is int and version > VERSION
        whose = (
            " is from a newer version of Concord. Update Concord, or export"
            if newer
            else f" isn't supported (the version must be {VERSION}). Export"
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
            f"{where}: {' '.join(faults[:FAULTS_SHOWN])}{more} Correct the file, or export the judge again."
        ) from None
    if kind == "fusion" and [part.name for part in document.parts] != card["fusion"].get("parts"):
        raise JudgeError(
            f"{where}: parts and fusion.parts must list the same parts in the same order. Export the judge again."
        )
    return document


# ── reading files ────────────────────────────────────────────────────────────────────────────────────────────────


def read_card(path: Path | str, *, accept_edited: bool = False) -> dict[str, Any]:
    """Read and validate a judge file of any kind, and return its content (the card).

    Args:
        accept_edited: Accept a file that was edited after its export.

    Raises:
        JudgeError: The file is missing or invalid, has an unknown format or version, or was edited.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise JudgeError(f"{path} is too large for a judge file (over {MOST_BYTES // 1024**2} MB). Check the path.")
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise JudgeError(f"Concord can't read {path} ({error.strerror}). Check the path of the judge file.") from error
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
    """Return the kind of judge file, given its content (`card`)."""
    return next(kind for kind, name in FORMATS.items() if name == card["format"])


def kept_columns(card: Mapping[str, Any]) -> dict[str, str]:
    """Return the column mapping of the golden set (`GoldenSet.columns`) from the content of a judge file."""
    return dict(card.get("golden", {}).get("columns", {}))


def digest_of(card: Mapping[str, Any]) -> str:
    """Return ``"sha256:" + hex`` of the canonical JSON of `card` without its key `digest`.

    Equal numbers have one spelling (1.0 as 1), so the digest still matches if another tool rewrites the file.
    """

    def settled(value: Any, _: str) -> Any:
        return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value

    return content_digest("sha256", with_leaves({key: card[key] for key in card if key != "digest"}, settled))


def is_as_exported(card: Mapping[str, Any]) -> bool:
    """Return whether the content of a file matches its digest."""
    return card.get("digest") == digest_of(card)


def parsed(text: str, path: Path | str) -> dict[str, Any]:
    """Parse `text` as YAML without validating it. Raises JudgeError with the problem and its line."""
    try:
        if text.lstrip()[:1] == "{":
            if sum(map(text.count, ",{[")) > MOST_VALUES:  # commas in texts count too, but no valid file comes close
                raise ValueError(f"more than {MOST_VALUES:,} values, which is too many for a judge file")
            document = json.loads(text, object_pairs_hook=_once)
        else:
            _check_events(text)
            document = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
        with_leaves(document, _check_plain)
        json.dumps(document, ensure_ascii=False).encode()  # fails for lone surrogates, which cannot be written
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        what = "isn't valid YAML" if isinstance(error, yaml.YAMLError) else "isn't a valid judge file"
        line = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise JudgeError(f"{path} {what} ({line}). {EXPORT_AGAIN}") from error
    if not isinstance(document, dict):
        raise JudgeError(NO_JUDGE_FILE.format(path=path))
    return document


_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_BaseLoader):  # type: ignore[misc]
    """A safe YAML loader that keeps dates as text and refuses repeated keys."""

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
                    f"line {node.start_mark.line + 1} has the key {key!r:.60}, but keys must be text (put quotation "
                    "marks around the key)"
                )
        return mapping


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("an object contains the same key twice")
    return mapping


def _check_events(text: str) -> None:
    """Check limits and aliases before anything is built."""
    depth = values = 0
    for event in yaml.parse(text, Loader=_BaseLoader):
        if isinstance(event, yaml.AliasEvent):
            line = "" if event.start_mark is None else f" in line {event.start_mark.line + 1}"
            raise ValueError(
                f"the file contains the alias *{event.anchor}{line}, but judge files can't contain aliases"
            )
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        values += isinstance(event, yaml.NodeEvent)
        if depth > MOST_DEPTH or values > MOST_VALUES:
            what = f"{MOST_DEPTH} levels" if depth > MOST_DEPTH else f"{MOST_VALUES:,} values"
            raise ValueError(f"more than {what}, which is too many for a judge file")


def _check_plain(value: Any, path: str) -> None:
    """Raise ValueError, with the path, for a value that JSON cannot represent."""
    where = path or "the file"
    if isinstance(value, int | float) and not abs(value) <= LARGEST:  # NaN and infinity too
        raise ValueError(f"{where} isn't a finite number")
    if not isinstance(value, str | int | float | None):
        what = type(value).__name__
        raise ValueError(
            f"{where} is a {what}, but only text, numbers, true, false, null, lists and objects are allowed"
        )


def with_leaves(value: Any, leaf: Callable[[Any, str], Any], path: str = "", depth: int = 0) -> Any:
    """Copy nested mappings and sequences, and replace each leaf with `leaf(value, path)`.

    Raises ValueError if there are more than `MOST_DEPTH` levels.
    """
    if depth > MOST_DEPTH:
        raise ValueError(f"{path} is nested more than {MOST_DEPTH} levels deep")
    if isinstance(value, Mapping):
        return {
            str(key): with_leaves(inner, leaf, f"{path}.{key}".lstrip("."), depth + 1) for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [with_leaves(inner, leaf, f"{path}[{place}]", depth + 1) for place, inner in enumerate(value)]
    return leaf(value, path)
