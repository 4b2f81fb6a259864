"""What the files of judges have in common, as strict models: nothing else is allowed in them.

Where a record of the domain reads itself (`IsotonicMap.from_json`, `Style.from_state`, …), the field is that record.
A field with a default may be absent.  Loading pydantic takes a tenth of a second, so these modules are imported late.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from core.errors import JudgeError, UsageError
from core.judging.scoring_styles import Style
from core.records import ItemKind, Level, Scale, Statistic, Task
from core.stats import IsotonicMap
from core.stats.conformal import VerdictIntervals


def _each_once(values: list[Any]) -> list[Any]:
    if len(set(values)) < len(values):
        raise ValueError("a part stands in the list twice")
    return values


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float | bool | None):
        raise ValueError("expected a text, a number, true, false or null")
    return value


def _read_by(read: Callable[[Mapping[str, Any]], Any]) -> PlainValidator:
    """A field that is the record that `read` makes of an object."""

    def read_object(value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("expected an object")
        try:
            return read(value)
        except (JudgeError, UsageError) as error:
            raise ValueError(str(error)) from error

    return PlainValidator(read_object)


def _usable_map(body: Mapping[str, Any]) -> IsotonicMap:
    """The map, applied once: points that lie too close together would overflow."""
    score_map = IsotonicMap.from_json(body)
    ends = [score_map.x[0] - 1.0, score_map.x[0], score_map.x[-1], score_map.x[-1] + 1.0]
    try:
        with np.errstate(all="raise", under="ignore"):
            score_map.apply([*ends, *score_map.x])
    except FloatingPointError as error:
        raise ValueError("neighbouring points lie too close together. Calibrate again.") from error
    if max(map(abs, (*score_map.x, score_map.low, score_map.high))) > 1e9:
        raise ValueError("a point lies beyond 1e9")
    return score_map


def _named_sampling(body: Mapping[str, Any]) -> Style:
    """How the judge is asked; a prompt is a name with a version, never a path."""
    for name in ("prompt", "draft_prompt", "refine_prompt"):
        if not re.fullmatch(_PROMPT, str(body.get(name, "")) or "a.v1"):
            raise ValueError(f"{name} must be the name and version of a prompt; {str(body[name])[:60]!r} came")
    return Style.from_state(body)


_PROMPT = r"[a-z0-9_]+\.v[0-9]+(\+[a-z0-9_]+\.v[0-9]+)*"
_OBJECT = WithJsonSchema({"type": "object"})
ScoreMap = Annotated[IsotonicMap, _read_by(_usable_map), _OBJECT]
Intervals = Annotated[VerdictIntervals, _read_by(VerdictIntervals.from_json), _OBJECT]
HowAsked = Annotated[Style, _read_by(_named_sampling), _OBJECT]
Coordinate = Annotated[float, Field(ge=-1e9, le=1e9)]
Count = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(max_length=100)]
Text = Annotated[str, Field(max_length=200_000)]
Prompt = Annotated[str, Field(max_length=200, pattern=f"^{_PROMPT}$")]
Digests = Annotated[str, Field(pattern=r"^([0-9a-f]{12}([ \n]|$))*$")]
Sha256 = Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]
Scalar = Annotated[
    Any, AfterValidator(_scalar), WithJsonSchema({"type": ["string", "number", "integer", "boolean", "null"]})
]
State = Literal["draft", "proposed", "approved", "current", "retired"]


class Part(BaseModel):
    """An object of the file: exactly these fields, each of its own type."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True, arbitrary_types_allowed=True)


class ScaleEntry(Part):
    """The closed range of the rating."""

    low: Coordinate
    """Lowest rating."""
    high: Coordinate
    """Highest rating; above the lowest."""
    step: Annotated[float, Field(gt=0, le=1e9)] | None = None
    """Distance of neighbouring ratings; null for a continuous scale."""

    @model_validator(mode="after")
    def _rises(self) -> ScaleEntry:
        if not self.low < self.high:
            raise ValueError(f"low must lie below high; {self.low:g} and {self.high:g} came")
        return self


class TaskEntry(Part):
    """What is judged."""

    aspect: str = Field(min_length=1, max_length=500)
    """The aspect that is rated."""
    kind: ItemKind
    """What an item is made of."""
    scale: ScaleEntry
    definition: str = ""
    """The aspect in a sentence, as the judge is told it; may be empty."""
    needs: Annotated[list[Literal["target", "source", "context", "references"]], AfterValidator(_each_once)] = Field([])
    """Parts that every calibration item had: items without them are not what the judge was calibrated on.

    Absent where nobody knows."""

    def as_task(self) -> Task:
        """What a judge is asked."""
        return Task(self.aspect, self.kind, Scale(self.scale.low, self.scale.high, self.scale.step), self.definition)


class AlignmentEntry(Part):
    """Agreement of scores with people."""

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
    interval: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    """95 % confidence interval."""
    interval_method: str | None = None
    """How the interval was made."""
    reason: str | None = None
    """Why a value is undefined."""
    no_interval: str | None = None
    """Why a value has no interval, and what to do about it."""


class GoldenEntry(Part):
    """The golden set that the judge was made on."""

    name: str
    """Its name."""
    digest: str
    """Content hash of its items, labels and ratings: the same golden set gives the same hash."""
    columns: dict[str, str] = Field({}, max_length=1000)
    """Role to column of its file, where the names differ.

    Another file with these columns is read likewise, unless it has a column with the name of the role."""


class TextsEntry(Part):
    """The texts that the judge met while it was made, as digests.

    A recheck tells by these which labels are newer, whatever ids say. Each is the first 12 hex digits of the sha256
    of a text's source, context and target, line ends and Unicode forms made alike. They do not give a text away;
    whoever has a text can tell whether it was among them.
    """

    calibration: Digests
    """Of the items that chose criteria or weights: sorted, parted by spaces and line ends."""
    held_out: Digests
    """Of the items that the alignment is reported on, and other labelled ones."""
    only_mapped: Digests = ""
    """Of those under `calibration` whose labels came after the criteria.

    They fitted the map to the human scale, and no score, so means of systems may rest on them."""


class Document(Part):
    """What every file of a judge begins with."""

    format: str
    """Says what kind of file this is."""
    version: int
    """The version of this format. Files of other versions are refused."""
    concord: Name
    """The version of Concord that wrote the file."""
    digest: Sha256 | None
    """sha256 of the rest of the file: of its canonical JSON without this key.

    Canonical: keys sorted, no spaces, UTF-8, equal numbers written alike (1.0 as 1). A file whose digest does not match
    was changed after the export."""
    created: Name
    """When the file was written: ISO 8601, UTC."""
    note: str = ""
    """A sentence for whoever opens the file."""
