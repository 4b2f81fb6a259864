"""What `judge.yaml`, `fused.yaml` and `repeval.yaml` hold, field by field, and how such a file is read and checked.

A judge file may come from anybody, so reading one must cost little whatever it holds.  Size, depth and number of values
are bounded before anything is built.  Aliases (with which a few lines unfold into gigabytes), tags and doubled keys are
refused.  What comes back holds texts, finite numbers, true, false, null, lists and objects alone: the card, of which
the digest is made.  Pydantic checks it with one frozen dataclass for each file, on reading and on writing.  Where a
record of the domain reads itself (`IsotonicMap`, `Style`, …), the field is that record.  A field with a default may be
absent.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
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
    from core.metrics import Metric
    from core.repeval import RepEvalScorer

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

# ── kinds of fields ──────────────────────────────────────────────────────────────────────────────────────────────

_PROMPT = r"[a-z0-9_]+\.v[0-9]+(\+[a-z0-9_]+\.v[0-9]+)*"


def _read_by(read: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Annotate a field that is the record that `read` makes of a JSON object."""

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
            raise ValueError("a value in it is not of the expected kind") from error

    return PlainValidator(read_object)


def _usable_map(body: Mapping[str, Any]) -> IsotonicMap:
    """Apply the map once, since points that lie too close together would overflow."""
    score_map = IsotonicMap.from_json(body)
    if max(map(abs, (*score_map.x, score_map.low, score_map.high))) > 1e9:
        raise ValueError("a point lies beyond 1e9")
    try:
        with np.errstate(all="raise", under="ignore"):
            score_map.apply([score_map.x[0] - 1.0, *score_map.x, score_map.x[-1] + 1.0])
    except FloatingPointError as error:
        raise ValueError("neighbouring points lie too close together. Calibrate again.") from error
    return score_map


def _named_sampling(body: Mapping[str, Any]) -> Style:
    """Read how the judge is asked; a prompt is a name with a version, never a path."""
    for name in ("prompt", "draft_prompt", "refine_prompt"):
        if not re.fullmatch(_PROMPT, str(body.get(name, "")) or "a.v1"):
            raise ValueError(f"{name} must be the name and version of a prompt; got {str(body[name])[:60]!r}")
    return Style.from_state(body)


def alignment_of(body: Mapping[str, Any]) -> Alignment:
    """Read what `Alignment.as_json` wrote.  ValueError for a value of another kind, or a correlation beyond 1."""
    known = {name: body[name] for name in Alignment.__slots__ if body.get(name) is not None} | {"value": body["value"]}
    if ends := known.get("interval"):
        known["interval"] = {"low": ends[0], "high": ends[1], "method": body.get("interval_method") or ""}
    alignment = TypeAdapter(Alignment).validate_json(json.dumps(known), strict=True)
    if abs(alignment.value or 0.0) > 1.000001:
        raise ValueError("value: a correlation lies from -1 to 1")
    return alignment


def _scorer_of(body: Mapping[str, Any]) -> RepEvalScorer:
    from core.repeval import RepEvalScorer

    return RepEvalScorer.from_json(body)


def _usable_scale(scale: Scale) -> Scale:
    if not -1e9 <= scale.low < scale.high <= 1e9 or not (scale.step is None or 0 < scale.step <= 1e9):
        raise ValueError(f"low must lie below high; got {scale.low:g} and {scale.high:g}")
    return scale


def _each_once(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) < len(values):
        raise ValueError("a part comes twice")
    return values


ScoreMap = Annotated[IsotonicMap, _read_by(_usable_map)]
Aligned = Annotated[Alignment, _read_by(alignment_of)]
Aspect = Annotated[str, Field(min_length=1, max_length=500)]
Name = Annotated[str, Field(max_length=100)]
Names = Annotated[tuple[str, ...], Field(min_length=1, max_length=1000)]
Prompt = Annotated[str, Field(max_length=200, pattern=f"^{_PROMPT}$")]
Scalars = dict[str, str | int | float | bool | None]

# ── parts of files ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class FilePart:
    """An object of a file: exactly these fields, each of its own type."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


@dataclass(frozen=True)
class TaskEntry(FilePart):
    """The judging task; `needs` are the parts that every calibration item had, absent if unknown."""

    aspect: Aspect
    kind: ItemKind
    scale: Annotated[Scale, AfterValidator(_usable_scale)]
    definition: str = ""
    needs: Annotated[tuple[Literal["target", "source", "context", "references"], ...], AfterValidator(_each_once)] = ()
    levels: Annotated[tuple[Anchor, ...], Field(max_length=100)] = ()
    """What levels of the scale mean, as the judging prompt shows them; absent for a judge that is not shown any."""

    def as_task(self) -> Task:
        """Return what a judge is asked."""
        return Task(self.aspect, self.kind, self.scale, self.definition, self.levels)


@dataclass(frozen=True)
class GoldenEntry(FilePart):
    """The golden set that the judge was made on, by the content hash of its items, labels and ratings.

    `columns` are role → column of its file, where the names differ: another file with these columns is read likewise,
    unless it has a column with the name of the role.  `columns.values` are the answers to what values mean, as JSON.
    """

    name: str
    digest: str
    columns: Annotated[dict[str, str], Field(max_length=1000)] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FileDocument(FilePart):
    """Fields at the start of every judge file.

    `concord` is the version that wrote it; `created` is when, in ISO 8601 and UTC.  `digest` is the sha256 of the
    canonical JSON of the rest (keys sorted, no spaces, UTF-8, equal numbers written alike, 1.0 as 1).  `warnings` are
    sentences for users of the judge.  `texts` are those that the judge met while it was made: calibration, held_out and
    only_mapped, whose labels came after the criteria and fitted the map alone.  A recheck finds newer labels by these,
    whatever ids say.  Each is the first 12 hex digits of the sha256 of a text's source, context and target.
    """

    version: int
    concord: Name
    digest: Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")] | None
    created: Name
    note: str = ""
    golden: GoldenEntry
    warnings: tuple[str, ...]
    texts: Annotated[KnownTexts, _read_by(KnownTexts.from_json)]


# ── judge.yaml ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class JudgeDescription(FilePart):
    """The judge's own state, out of which it is made again."""

    spec: Annotated[str, Field(min_length=1, max_length=2000)]
    """offline, openai:MODEL[@BASE_URL], hf:ID_OR_PATH, recorded:FILE or scripted[:SEED], without any key."""
    notice: str = ""
    model: str = ""
    revision: Annotated[str, Field(max_length=200)] | None = None
    """A commit of the model's weights, or a dated snapshot."""
    sampling: Annotated[Style, _read_by(_named_sampling)] | None = None
    effort: Annotated[str, Field(max_length=20)] = ""
    """How long the model was asked to think; empty for its own way."""
    extra: Annotated[str, Field(max_length=4000)] = ""
    """Further fields of each request, a JSON object; empty for none."""
    room: Annotated[int, Field(ge=0, le=16_384)] = 0
    """Tokens beyond max_tokens that the model was given, since its thoughts had used the limit up."""
    sent_without: tuple[str, ...] = ()
    """What of the sampling was not sent when the judge was calibrated: its endpoint did not take it."""
    scaling: dict[str, Any] | None = None
    """Of the offline judge: centre and spread of each text feature and concept, learnt without labels."""


@dataclass(frozen=True)
class CriteriaText(FilePart):
    """Scoring rules in full; `id` is c and 12 hex digits of aspect and text."""

    id: str
    text: Annotated[str, Field(max_length=200_000)]
    provenance: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AlignmentsEntry(FilePart):
    """How well the judge agreed with the raters; `held_out`, which no choice has seen, is the figure to quote.

    `best_single` (the best of the criteria alone) and `no_criteria` (the baseline) are measured on both parts; `gain`
    is the calibrated judge minus the baseline on held-out items.
    """

    calibration: Aligned
    held_out: Aligned
    best_single: dict[str, Aligned | None] | None = None
    no_criteria: dict[str, Aligned | None] | None = None
    gain: dict[str, Any] | None = None


State = Literal["draft", "proposed", "approved", "current", "retired"]


@dataclass(frozen=True, kw_only=True)
class Decision(FilePart):
    """A person's decision: on the criteria of this id, or on the whole version, with the measurement it rests on."""

    criteria: str = ""
    state: State
    by: str = ""
    at: str | None = None
    reason: str = ""
    evidence: dict[str, Any] | None = None


@dataclass(frozen=True)
class JudgeVersionEntry(FilePart):
    """Which version of a project's judge this is; `approvals` are the decisions on it, oldest first."""

    id: Name
    number: Annotated[int, Field(ge=1)]
    state: State
    parent: Name | None = None
    author: str = ""
    note: str = ""
    approvals: tuple[Decision, ...] = ()


@dataclass(frozen=True, kw_only=True)
class JudgeDocument(FileDocument):
    """A judge calibrated with Concord: all that scoring needs and all that trust in it needs; never a key."""

    format: Literal["concord-judge"]
    task: TaskEntry
    judge: JudgeDescription
    prompts: dict[str, Prompt]
    """Purpose (score, draft, refine, persona) to the prompt text that Concord ships; empty for the offline judge."""
    parser: Name | None
    """What reads a score out of a reply; null for a judge whose scores are computed."""
    join: Literal["mean"]
    criteria: Annotated[tuple[CriteriaText, ...], Field(min_length=1, max_length=100)]
    """Several are an ensemble, best first."""
    approved: bool
    approvals: tuple[Decision, ...]
    """The last decision on each of the criteria."""
    judge_version: JudgeVersionEntry | None = None
    isotonic: ScoreMap | None
    """Strictly rising map from the judge's score to the human scale; null: scores are used as they come."""
    intervals: Annotated[VerdictIntervals, _read_by(VerdictIntervals.from_json)] | None = None
    alignment: AlignmentsEntry
    ceiling: Aligned | None
    """One rater compared with the mean of the others, at the statistic and level of the held-out alignment."""
    split: dict[str, Any]
    held_out_opened: int | None
    """How often anybody's run looked at the held-out items up to the export; null when nobody counted."""
    people: Scalars = field(default_factory=dict)
    settings: Scalars
    """Of the calibration: with the golden set and the same judge they repeat it."""
    calls: int | None = None
    work: dict[str, Any]


# ── fused.yaml ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class FusionEntry(FilePart):
    """The fitted `core.fusion.stack.Estimator` over `parts`."""

    method: Literal["average", "ridge", "nnls"]
    parts: Names
    mean: tuple[float, ...]
    spread: tuple[float, ...]
    weights: tuple[float, ...] | None = None
    intercept: float | None = None
    penalty: float | None = None

    def __post_init__(self) -> None:
        from core.fusion.stack import restore_estimator

        try:
            state = {name: list(one) if isinstance(one, tuple) else one for name, one in vars(self).items()}
            n_weights = len(restore_estimator(state).weights)
        except ConcordError as error:
            raise ValueError(str(error)) from error
        if n_weights != len(self.parts):
            raise ValueError(f"there are {n_weights} weights for {len(self.parts)} parts.")


def _rate_prompt(name: str) -> str:
    if name != "fusion_rate.v2":
        raise ValueError("this fusion rates several aspects per call, which Concord no longer does; fuse again")
    return name


@dataclass(frozen=True)
class ModelFusionEntry(FilePart):
    """A language model that rates each item by a plan and the parts' numbers; "none" is no plan, or no criteria."""

    method: Literal["llm"]
    prompt: Annotated[str, AfterValidator(_rate_prompt)]
    parts: Names
    judge: JudgeDescription
    plan: Annotated[str, Field(min_length=1, max_length=8_000)]
    introduced: Annotated[str, Field(max_length=100_000)]
    """The parts as the model reads of them, a line each."""
    criteria: Annotated[str, Field(min_length=1, max_length=20_000)]


@dataclass(frozen=True)
class FusedPart(FilePart):
    """What one part of the fusion is: an `assistant` (a metric by name), a fitted `repeval` score, or a `judge` file's
    content.  `higher_is_better` false turns its score round; `needs` is what scoring with it takes, in words."""

    name: str
    needs: str = ""
    higher_is_better: bool = field(kw_only=True)
    assistant: Annotated[str, Field(max_length=500)] = ""
    repeval: dict[str, Any] | None = None
    judge: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        try:
            _ = self.fitted
        except ConcordError as error:
            raise ValueError(str(error)) from error

    @cached_property
    def fitted(self) -> Metric | None:
        """The fitted RepEval score, which holds its model from the first items on.  JudgeError for a damaged one."""
        from core.metrics import fitted_repeval

        return None if self.repeval is None else fitted_repeval(self.name, self.repeval)

    @property
    def column(self) -> str:
        """E.g. ``metric_offline_calibrated``: where the score is looked for when it cannot be computed."""
        return "metric_" + ("_".join(re.findall(r"[a-z0-9]+", self.name.lower())) or "part")

    @property
    def requirement(self) -> str:
        """What scoring with it takes, in words: `needs` of the part as it is now, whatever the file says."""
        from core.metrics import make_metric

        if self.judge is not None:
            return f"the judge {self.judge.get('judge', {}).get('spec', 'offline')}, which this file holds"
        if self.repeval is None and (not self.assistant or self.assistant.startswith("metric_")):
            return f"a column {self.assistant or f'{self.column} with its scores'}"
        metric = self.fitted or make_metric(self.assistant)
        texts = ", ".join(["the target", *sorted(metric.needs - ({"model"} if self.fitted else set()))])
        if self.repeval is None:
            return f"computed from {texts}"
        model = f"the model {self.repeval['model']}" if "model" in metric.needs else "the embedded encoder"
        return f"computed from {texts} with {model}; this file holds its directions"

    def as_json(self) -> dict[str, Any]:
        """Return the part's entry in the file."""
        whole = {name: getattr(self, name) for name in ("name", "higher_is_better", "assistant", "repeval", "judge")}
        return {name: value for name, value in whole.items() if value not in ("", None)} | {"needs": self.requirement}


@dataclass(frozen=True, kw_only=True)
class FusionDocument(FileDocument):
    """Several judges and metrics joined into one score; `told` is what else was measured."""

    format: Literal["concord-fusion"]
    aspect: Aspect
    task: TaskEntry
    fusion: Annotated[FusionEntry | ModelFusionEntry, Field(discriminator="method")]
    parts: Annotated[tuple[FusedPart, ...], Field(min_length=1, max_length=1000)]
    """In the order of the weights."""
    alignment: Aligned
    told: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if tuple(part.name for part in self.parts) != self.fusion.parts:
            raise ValueError("parts and fusion.parts do not name the same parts in the same order.")


# ── repeval.yaml ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class RepEvalDocument(FileDocument):
    """A RepEval score that rates other items; it holds no weights of a model.

    `scorer` has the model with revision and fingerprint, template and criterion, and for each cell its layer, token and
    direction (base64 of float32).  Layer 0 are the embeddings, i is the output of block i; token -1 is the last one.
    `validation` is the alignment on the items that chose layer and token: optimistic.
    """

    format: Literal["concord-repeval"]
    task: TaskEntry
    method: Literal["ridge", "paper-pca", "paper-svm"]
    layers: Annotated[tuple[int, ...], Field(min_length=1, max_length=1000)]
    tokens: Names
    scorer: Annotated[Any, _read_by(_scorer_of)]
    isotonic: ScoreMap | None = None
    validation: Aligned
    alignment: Aligned
    settings: Scalars

    def __post_init__(self) -> None:
        for cell in self.scorer.cells:
            if cell.layer not in self.layers or cell.token not in self.tokens:
                raise ValueError(
                    f"scorer.cells names layer {cell.layer} at token {cell.token}, which layers and tokens lack."
                )


@cache
def _checker(kind: Kind) -> TypeAdapter[Any]:
    return TypeAdapter({"judge": JudgeDocument, "fusion": FusionDocument, "repeval": RepEvalDocument}[kind])


def document_of(card: Mapping[str, Any], kind: Kind = "judge", where: str = "judge file") -> Any:
    """Return the document that `card` (plain JSON types) holds.

    JudgeError, naming the file as `where`, tells the path in it, what was expected, and what came.
    """
    version = card.get("version")
    if type(version) is not int or version != VERSION:
        newer = type(version) is int and version > VERSION
        whose = ", from a newer Concord. Update Concord, or export" if newer else f"; it must be {VERSION}. Export"
        raise JudgeError(f"{where}: has version {version!r:.40}{whose} the judge again with this one.")
    try:
        return _checker(kind).validate_json(json.dumps(card))
    except ValidationError as error:
        faults = []
        for fault in error.errors(include_url=False):
            path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
            words = f"{fault['msg'].removeprefix('Value error, ')}; got {fault['input']!r:.60}."
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


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise JudgeError(f"{path}: cannot be read ({error.strerror}). Give the path of a judge.yaml.") from error
    if len(data) > MOST_BYTES:
        raise JudgeError(
            f"{path}: is larger than {MOST_BYTES // 1024**2} MB, too large for a judge file. Name another file."
        )
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
        raise ValueError(f"{where} is a {what}; only texts, numbers, true, false, null, lists and objects are allowed.")


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
