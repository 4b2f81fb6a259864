"""What `judge.yaml`, `fused.yaml` and `repeval.yaml` hold, field by field: one frozen dataclass for each file.

Pydantic checks files with these classes and makes the JSON Schema of them.  Where a record of the domain reads itself
(`IsotonicMap.from_json`, `Style.from_state`, …), the field is that record.  A field with a default may be absent.
Code passes the content of a file on as plain JSON types (a card), since its digest is made of them.
Loading pydantic takes a tenth of a second, so import this module late.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field, PlainValidator, TypeAdapter, WithJsonSchema

from core.data.split import KnownTexts
from core.errors import ConcordError
from core.fusion.plan import AspectCriteria
from core.fusion.stack import restore_estimator
from core.judging.scoring_styles import Style
from core.metrics import Metric, fitted_repeval, make_metric
from core.records import ItemKind, Level, Scale, Statistic, Task
from core.repeval import Method, RepEvalScorer
from core.stats import IsotonicMap
from core.stats.on_scale import VerdictIntervals

# ── kinds of fields ──────────────────────────────────────────────────────────────────────────────────────────────

_PROMPT = r"[a-z0-9_]+\.v[0-9]+(\+[a-z0-9_]+\.v[0-9]+)*"


def _read_by(read: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Annotate a field that is the record that `read` makes of a JSON object."""

    def read_object(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("expected an object")
        try:
            return read(value)
        except ConcordError as error:
            raise ValueError(str(error)) from error
        except (AttributeError, TypeError, KeyError) as error:
            raise ValueError("a value in it is not of the expected kind") from error

    return PlainValidator(read_object, json_schema_input_type=dict[str, Any])


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
            raise ValueError(f"{name} must be the name and version of a prompt; {str(body[name])[:60]!r} came")
    return Style.from_state(body)


def _each_once(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) < len(values):
        raise ValueError("a part comes twice")
    return values


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float | bool | None):
        raise ValueError("expected a text, a number, true, false or null")
    return value


ScoreMap = Annotated[IsotonicMap, _read_by(_usable_map)]
Coordinate = Annotated[float, Field(ge=-1e9, le=1e9)]
Numbers = Annotated[tuple[Coordinate, ...], Field(max_length=1000)]
Count = Annotated[int, Field(ge=0)]
Aspect = Annotated[str, Field(min_length=1, max_length=500)]
Name = Annotated[str, Field(max_length=100)]
Names = Annotated[tuple[str, ...], Field(min_length=1, max_length=1000)]
Prompt = Annotated[str, Field(max_length=200, pattern=f"^{_PROMPT}$")]
Scalars = dict[
    str,
    Annotated[
        Any, AfterValidator(_scalar), WithJsonSchema({"type": ["string", "number", "integer", "boolean", "null"]})
    ],
]
State = Literal["draft", "proposed", "approved", "current", "retired"]

# ── parts of files ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class FilePart:
    """An object of a file: exactly these fields, each of its own type."""

    __pydantic_config__: ClassVar = ConfigDict(
        extra="forbid", strict=True, use_attribute_docstrings=True, arbitrary_types_allowed=True
    )


@dataclass(frozen=True)
class ScaleEntry(FilePart):
    """The closed range of the rating."""

    low: Coordinate
    """Lowest rating."""
    high: Coordinate
    """Highest rating; above the lowest."""
    step: Annotated[float, Field(gt=0, le=1e9)] | None = None
    """Distance of neighbouring ratings; null for a continuous scale."""

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"low must lie below high; {self.low:g} and {self.high:g} came")


@dataclass(frozen=True)
class TaskEntry(FilePart):
    """What is judged."""

    aspect: Aspect
    """The aspect that is rated."""
    kind: ItemKind
    """What an item is made of."""
    scale: ScaleEntry
    definition: str = ""
    """The aspect in a sentence, as the judge reads it; may be empty."""
    needs: Annotated[tuple[Literal["target", "source", "context", "references"], ...], AfterValidator(_each_once)] = ()
    """Parts that every calibration item had: items without them are not what the judge was calibrated on.

    Absent where nobody knows."""

    def as_task(self) -> Task:
        """Return what a judge is asked."""
        return Task(self.aspect, self.kind, Scale(self.scale.low, self.scale.high, self.scale.step), self.definition)


@dataclass(frozen=True)
class AlignmentEntry(FilePart):
    """Agreement of scores with raters."""

    statistic: Statistic
    """The correlation (Kendall: tau-b)."""
    level: Level
    """Over all items, averaged over sources, or over the systems' means."""
    value: Annotated[float, Field(ge=-1.000001, le=1.000001)] | None
    """The correlation; null when it is undefined."""
    n: Count
    """Items used (systems at system level)."""
    n_groups: Count | None = None
    """Sources averaged, at sample level."""
    n_left_out: Count | None = None
    """Sources left out there: constant or too few."""
    n_unscored: Count | None = None
    """Labelled items that the judge gave no score."""
    interval: tuple[float, float] | None = None
    """95 % confidence interval."""
    interval_method: str | None = None
    """How the interval was made."""
    reason: str | None = None
    """Why a value is undefined."""
    no_interval: str | None = None
    """Why a value has no interval, and what to do about it."""


@dataclass(frozen=True)
class GoldenEntry(FilePart):
    """The golden set that the judge was made on."""

    name: str
    """Its name."""
    digest: str
    """Content hash of its items, labels and ratings: the same golden set gives the same hash."""
    columns: Annotated[dict[str, str], Field(max_length=1000)] = field(default_factory=dict)
    """Role to column of its file, where the names differ.

    Another file with these columns is read likewise, unless it has a column with the name of the role."""


@dataclass(frozen=True, kw_only=True)
class FileDocument(FilePart):
    """What every file of a judge begins with."""

    version: int
    """The version of this format. Files of other versions are refused."""
    concord: Name
    """The version of Concord that wrote the file."""
    digest: Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")] | None
    """sha256 of the rest of the file: of its canonical JSON without this key.

    Canonical: keys sorted, no spaces, UTF-8, equal numbers written alike (1.0 as 1). A file whose digest does not match
    was changed after the export."""
    created: Name
    """When the file was written: ISO 8601, UTC."""
    note: str = ""
    """A sentence for whoever opens the file."""
    golden: GoldenEntry
    warnings: tuple[str, ...]
    """What users of the judge should know, in sentences.

    Few or skewed labels, criteria without approval, a run that stopped early."""
    texts: Annotated[KnownTexts, _read_by(KnownTexts.from_json)]
    """The texts that the judge met while it was made, as digests: calibration, held_out and only_mapped.

    A recheck finds newer labels by these, whatever ids say. Each is the first 12 hex digits of the sha256 of a text's
    source, context and target, line ends and Unicode forms made alike; sorted, separated by spaces and line ends. They
    do not give a text away; whoever has a text can find out whether it was among them. Labels of those under
    only_mapped came after the criteria: they fitted the map to the human scale, and no score.
    """


# ── judge.yaml ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class JudgeDescription(FilePart):
    """The judge's own state, out of which it is made again: the offline judge keeps the scaling of its features, one
    behind an endpoint its model and how it is asked."""

    spec: Annotated[str, Field(min_length=1, max_length=2000)]
    """offline, openai:MODEL[@BASE_URL], hf:ID_OR_PATH, recorded:FILE or scripted[:SEED].

    Without user name, password or key."""
    notice: str = ""
    """What this judge is, in a sentence."""
    model: str = ""
    """The model's name at its endpoint."""
    revision: Annotated[str, Field(max_length=200)] | None = None
    """Which revision of the model: a commit of its weights or a dated snapshot."""
    sampling: Annotated[Style, _read_by(_named_sampling)] | None = None
    """How a score is asked for: output (form of the reply), samples, temperature, top_p, max_tokens, names and versions
    of the prompts, persona, steps, weighted, structured, references."""
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
    """Scoring rules in natural language."""

    id: str
    """c and 12 hex digits of aspect and text: equal texts, equal id."""
    text: Annotated[str, Field(max_length=200_000)]
    """The rules, in full."""
    provenance: dict[str, Any] = field(default_factory=dict)
    """Where the criteria came from; what is empty is left out."""


BothParts = dict[Literal["calibration", "held_out"], AlignmentEntry | None]


@dataclass(frozen=True)
class AlignmentsEntry(FilePart):
    """How well the judge agreed with the raters."""

    calibration: AlignmentEntry
    """On the items that chose the criteria: optimistic."""
    held_out: AlignmentEntry
    """On the items that no choice has seen: the figure to quote."""
    best_single: BothParts | None = None
    """The best of the criteria alone, on both parts."""
    no_criteria: BothParts | None = None
    """The same judge without criteria: the baseline of the calibration."""
    gain: dict[str, Any] | None = None
    """The calibrated judge minus the baseline on held-out items: what the criteria add."""


@dataclass(frozen=True, kw_only=True)
class Decision(FilePart):
    """A person's decision on a version of the judge."""

    criteria: str = ""
    """Id of the criteria that it is about; empty for the whole version."""
    state: State
    """What the version became."""
    by: str = ""
    """Who decided; empty for nobody."""
    at: str | None = None
    """When: ISO 8601."""
    reason: str = ""
    """Why, in the person's words."""
    evidence: dict[str, Any] | None = None
    """The measurement that the decision rests on: run, side, alignment."""


@dataclass(frozen=True)
class JudgeVersionEntry(FilePart):
    """Which version of the judge this is: its model, prompt, sampling and criteria as they were kept together."""

    id: Name
    """Id of the version where it is kept."""
    number: Annotated[int, Field(ge=1)]
    """Versions of the judge of this aspect, counted from 1."""
    state: State
    """Where it stands: draft, proposed, approved, current or retired."""
    parent: Name | None = None
    """Id of the version that it was made of; null for the first."""
    author: str = ""
    """Who made it; empty for a calibration."""
    note: str = ""
    """What changed, in a sentence."""
    approvals: tuple[Decision, ...] = ()
    """Decisions on it, oldest first."""


@dataclass(frozen=True, kw_only=True)
class JudgeDocument(FileDocument):
    """A judge calibrated with Concord: all that scoring needs and all that trust in it needs.

    Written as YAML (JSON is read too). It never holds a key or a password.
    """

    format: Literal["concord-judge"]
    """Says that this is a judge file."""
    task: TaskEntry
    judge: JudgeDescription
    prompts: dict[str, Prompt]
    """Purpose (score, draft, refine, persona) to the name and version of the prompt text that Concord ships.

    Empty for a judge that is asked nothing in words (the offline one)."""
    parser: Name | None
    """Name and version of what reads a score out of a reply; null for a judge whose scores are computed."""
    join: Literal["mean"]
    """How the scores of several criteria become one: their mean."""
    criteria: Annotated[tuple[CriteriaText, ...], Field(min_length=1, max_length=100)]
    """The criteria of the judge; several are an ensemble, best first."""
    approved: bool
    """Whether every one of the criteria was approved by a person."""
    approvals: tuple[Decision, ...]
    """The last decision on each of the criteria."""
    judge_version: JudgeVersionEntry | None = None
    isotonic: ScoreMap | None
    """Strictly rising map from the judge's score to the human scale, by its corners: x, y, low, high.

    null: scores are used as they come."""
    intervals: Annotated[VerdictIntervals, _read_by(VerdictIntervals.from_json)] | None = None
    """What the interval around a verdict is made of: cross-fitted errors on calibration, by source."""
    alignment: AlignmentsEntry
    ceiling: AlignmentEntry | None
    """How well one rater agrees with the mean of the others, at the statistic and level of the held-out alignment.

    About the best that can be hoped for. null when unknown, e.g. without single ratings."""
    split: dict[str, Any]
    """How the golden set was divided: kind, seed, n_calibration, n_held_out."""
    held_out_opened: Count | None
    """How often anybody's run looked at the held-out items of this aspect up to the export.

    The more often, the less they are unseen. null when nobody counted (the command line)."""
    people: Scalars = field(default_factory=dict)
    """Counts of what people did: edits, votes, comments and the like."""
    settings: Scalars
    """Settings of the calibration, by name: with the golden set and the same judge they repeat it."""
    calls: Count | None = None
    """Calls that the calibration made."""
    work: dict[str, Any]
    """What was asked for and what was done; a budget may have cut it."""


# ── fused.yaml ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class FusionEntry(FilePart):
    """The fitted estimator: each part is centred by its mean, divided by its spread, weighted and added up."""

    method: Literal["average", "ridge", "nnls"]
    """average: equal weights, no labels used; ridge: shrunken least squares; nnls: least squares without negative
    weights."""
    parts: Names
    """Names of the parts, in the numbers' order."""
    mean: Numbers
    """Mean of each part on the items it was fitted on; a missing score counts as it."""
    spread: tuple[Annotated[float, Field(ge=1e-12, le=1e9)], ...]
    """Spread of each part there."""
    weights: Numbers | None = None
    """Weight of each standardised part; not for average."""
    intercept: Coordinate | None = None
    """Mean label; not for average."""
    penalty: Annotated[float, Field(ge=0, le=1e9)] | None = None
    """Ridge penalty."""

    def __post_init__(self) -> None:
        try:
            state = {name: list(one) if isinstance(one, tuple) else one for name, one in vars(self).items()}
            n_weights = len(restore_estimator(state).weights)
        except ConcordError as error:
            raise ValueError(str(error)) from error
        if n_weights != len(self.parts):
            raise ValueError(f"there are {n_weights} weights for {len(self.parts)} parts.")


@dataclass(frozen=True)
class ModelFusionEntry(FilePart):
    """A language model that rates each item by a plan and the parts' numbers, all aspects in one call."""

    method: Literal["llm"]
    """llm: a language model rates by the plan."""
    parts: Names
    """Names of the parts."""
    judge: JudgeDescription
    """The model that rates."""
    prompt: Literal["evaluate.v1", "evaluate_unplanned.v1"]
    """Name and version of the prompt."""
    plan: Annotated[str, Field(min_length=1, max_length=8_000)]
    """Which part serves which aspect, and how."""
    introduced: Annotated[str, Field(max_length=100_000)]
    """The parts as the model reads of them, a line each."""
    aspects: Annotated[tuple[TaskEntry, ...], Field(min_length=1, max_length=50)]
    """What each call rates."""
    criteria: Annotated[tuple[AspectCriteria, ...], Field(max_length=50)] = ()
    """By what each aspect is rated; an aspect that is not listed has no criteria."""


@dataclass(frozen=True)
class FusedPart(FilePart):
    """What one part of the fusion is and needs."""

    name: str
    """Its name."""
    needs: str = ""
    """What scoring with it takes, in words."""
    higher_is_better: bool = field(kw_only=True)
    """false: its score is turned round."""
    assistant: Annotated[str, Field(max_length=500)] = ""
    """A metric that Concord computes, by name."""
    repeval: dict[str, Any] | None = None
    """A fitted RepEval score: its model, place and directions."""
    judge: dict[str, Any] | None = None
    """The whole content of a judge file; checked like one."""

    def __post_init__(self) -> None:
        try:
            _ = self.fitted
        except ConcordError as error:
            raise ValueError(str(error)) from error

    @cached_property
    def fitted(self) -> Metric | None:
        """The fitted RepEval score, which holds its model from the first items on.  JudgeError for a damaged one."""
        return None if self.repeval is None else fitted_repeval(self.name, self.repeval)

    @property
    def column(self) -> str:
        """E.g. ``metric_offline_calibrated``: where the score is looked for when it cannot be computed."""
        return "metric_" + ("_".join(re.findall(r"[a-z0-9]+", self.name.lower())) or "part")

    @property
    def requirement(self) -> str:
        """What scoring with it takes, in words: `needs` of the part as it is now, whatever the file says."""
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
        entry: dict[str, Any] = TypeAdapter(FusedPart).dump_python(
            replace(self, needs=self.requirement), exclude_defaults=True
        )
        return entry


@dataclass(frozen=True, kw_only=True)
class FusionDocument(FileDocument):
    """Several judges and metrics joined into one score: how they are joined, what each is and needs, and how well the
    whole agreed with the raters. It never holds a key or a password."""

    format: Literal["concord-fusion"]
    """Says that this is the file of a fused judge."""
    aspect: Aspect
    """The aspect that is rated."""
    task: TaskEntry
    """Kind of the items and scale of the labels that the weights were fitted on."""
    fusion: Annotated[FusionEntry | ModelFusionEntry, Field(discriminator="method")]
    parts: Annotated[tuple[FusedPart, ...], Field(min_length=1, max_length=1000)]
    """What each part is, in the order of the weights."""
    alignment: AlignmentEntry
    """On items that neither weights nor choice have seen."""
    told: dict[str, Any] = field(default_factory=dict)
    """What else was measured: the parts one by one, what was left out and why, notes."""

    def __post_init__(self) -> None:
        if tuple(part.name for part in self.parts) != self.fusion.parts:
            raise ValueError("parts and fusion.parts do not name the same parts in the same order.")


# ── repeval.yaml ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, kw_only=True)
class RepEvalDocument(FileDocument):
    """A RepEval score that rates other items: the model whose hidden states are read, from which text and at which
    places, and the directions they are projected on. It never holds a key, a password or weights of a model."""

    format: Literal["concord-repeval"]
    """Says that this is the file of a RepEval score."""
    task: TaskEntry
    method: Method
    """How the directions were fitted."""
    layers: Annotated[tuple[int, ...], Field(min_length=1, max_length=1000)]
    """Layers that were searched: 0 are the embeddings, i is the output of block i."""
    tokens: Names
    """Tokens that were searched: -1 is the last one; first and mean for encoders."""
    scorer: Annotated[RepEvalScorer, _read_by(RepEvalScorer.from_json)]
    """The score itself: model with revision, fingerprint of its weights and number format, template, criterion and
    longest text, and for each cell its layer, token and direction (base64 of float32), or the support vectors of the
    SVM."""
    isotonic: ScoreMap | None = None
    """Strictly rising map from the score to the human scale. null: scores are used as they come."""
    validation: AlignmentEntry
    """On the items that chose layer and token: optimistic."""
    alignment: AlignmentEntry
    """On items that neither directions nor choice have seen."""
    settings: Scalars
    """How it was fitted, by name."""

    def __post_init__(self) -> None:
        for cell in self.scorer.cells:
            if cell.layer not in self.layers or cell.token not in self.tokens:
                raise ValueError(
                    f"scorer.cells names layer {cell.layer} at token {cell.token}, which layers and tokens lack."
                )


DOCUMENTS: Mapping[str, TypeAdapter[Any]] = {
    "judge": TypeAdapter(JudgeDocument),
    "fusion": TypeAdapter(FusionDocument),
    "repeval": TypeAdapter(RepEvalDocument),
}
