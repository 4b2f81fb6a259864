"""What the files of judges have in common, as strict models: nothing else is allowed in them.

A field with a default may be absent.  Loading pydantic takes a tenth of a second, so these modules are imported late.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from core.errors import JudgeError
from core.export.faults import InconsistentError
from core.records import ItemKind, Level, Scale, Statistic, Task
from core.stats.conformal import VerdictIntervals


def _each_once(values: list[Any]) -> list[Any]:
    if len(set(values)) < len(values):
        raise ValueError("a list without repetitions")
    return values


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float | bool | None):
        raise ValueError("a text, a number, true, false or null")
    return value


Coordinate = Annotated[float, Field(ge=-1e9, le=1e9)]
Coordinates = Annotated[list[Coordinate], Field(max_length=100_000)]
Count = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(max_length=100)]
Text = Annotated[str, Field(max_length=200_000)]
Prompt = Annotated[str, Field(max_length=200, pattern=r"^[a-z0-9_]+\.v[0-9]+(\+[a-z0-9_]+\.v[0-9]+)*$")]
Digests = Annotated[str, Field(pattern=r"^([0-9a-f]{12}([ \n]|$))*$")]
Sha256 = Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]
Scalar = Annotated[
    Any, AfterValidator(_scalar), WithJsonSchema({"type": ["string", "number", "integer", "boolean", "null"]})
]
Share = Annotated[float, Field(gt=0, le=1)]
Correlation = Annotated[float, Field(ge=-1.000001, le=1.000001)]
Ends = Annotated[list[float], Field(min_length=2, max_length=2)]
Spread = Annotated[
    tuple[Coordinate, Annotated[float, Field(ge=1e-9, le=1e9)]],
    Field(strict=False),
]
State = Literal["draft", "proposed", "approved", "current", "retired"]


class Part(BaseModel):
    """An object of the file: exactly these fields, each of its own type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ScaleEntry(Part):
    """The closed range of the rating."""

    low: Coordinate = Field(description="Lowest rating.")
    high: Coordinate = Field(description="Highest rating; above the lowest.")
    step: Annotated[float, Field(gt=0, le=1e9)] | None = Field(
        None, description="Distance of neighbouring ratings; null for a continuous scale."
    )

    @model_validator(mode="after")
    def _rises(self) -> ScaleEntry:
        if not self.low < self.high:
            raise InconsistentError(f"low must lie below high; {self.low:g} and {self.high:g} came.")
        return self


class TaskEntry(Part):
    """What is judged."""

    aspect: str = Field(min_length=1, max_length=500, description="The aspect that is rated.")
    kind: ItemKind = Field(description="What an item is made of.")
    scale: ScaleEntry
    definition: str = Field("", description="The aspect in a sentence, as the judge is told it; may be empty.")
    needs: Annotated[
        list[Literal["target", "source", "context", "references"]],
        AfterValidator(_each_once),
        Field(json_schema_extra={"uniqueItems": True}),
    ] = Field(
        default=[],
        description="Parts that every calibration item had: items without them are not what the judge was calibrated "
        "on. Absent where nobody knows.",
    )

    def as_task(self) -> Task:
        """What a judge is asked."""
        return Task(self.aspect, self.kind, Scale(self.scale.low, self.scale.high, self.scale.step), self.definition)


class AlignmentEntry(Part):
    """Agreement of scores with people."""

    statistic: Statistic = Field(description="The correlation (Kendall: tau-b).")
    level: Level = Field(description="Over all items, averaged over sources, or over the systems' means.")
    value: Correlation | None = Field(description="The correlation; null when it is undefined.")
    n: Count = Field(description="Items used (systems at system level).")
    n_groups: Count | None = Field(None, description="Sources averaged, at sample level.")
    n_left_out: Count | None = Field(None, description="Sources left out there: constant or too few.")
    n_unscored: Count | None = Field(None, description="Labelled items that the judge gave no score.")
    interval: Ends | None = Field(None, description="95 % confidence interval.")
    interval_method: str | None = Field(None, description="How the interval was made.")
    reason: str | None = Field(None, description="Why a value is undefined.")
    no_interval: str | None = Field(None, description="Why a value has no interval, and what to do about it.")


Weighing = Annotated[tuple[Coordinate, Annotated[float, Field(gt=0, le=1e9)], Coordinate], Field(strict=False)]
Quantile = Annotated[tuple[Share, Annotated[float, Field(ge=0, le=1e9)] | None], Field(strict=False)]
Kept = Annotated[tuple[Share, Coordinate, Coordinate, Coordinate], Field(strict=False)]


class ExpectedErrorEntry(Part):
    """How far a verdict is expected to lie from the people's label: factor times the square of base plus weight times
    (feature minus centre) over width of every feature, from least to most points."""

    base: Coordinate = Field(description="Root of the error of a usual verdict, up to the factor.")
    factor: Annotated[float, Field(ge=0, le=1e18)] = Field(description="What the square is multiplied by.")
    least: Annotated[float, Field(gt=0, le=1e9)] = Field(description="Least error that is expected, in points.")
    most: Annotated[float, Field(gt=0, le=1e9)] = Field(description="Greatest error that is expected, in points.")
    features: dict[str, Weighing] = Field(description="Feature to [centre, width, weight].")


class IntervalsEntry(Part):
    """What the interval around a verdict is made of: cross-fitted errors on calibration, by source."""

    n: Count = Field(description="Items that the errors come from.")
    n_sources: Count = Field(description="Sources of those items.")
    reason: str | None = Field(None, description="Why there are no intervals; null where there are.")
    on_points: bool = Field(description="Whether people's labels lie on the scale's steps; intervals then end there.")
    expected_error: ExpectedErrorEntry | None = Field(description="The model of the error; null for none.")
    quantiles: list[Quantile] = Field(
        max_length=100,
        description="[coverage, times the expected error that the interval reaches to each side]; null where the "
        "sources are too few.",
    )
    kept: list[Kept] = Field(
        max_length=1000,
        description="[share kept, the surest first; largest expected error among them; their mean error; the least "
        "that as many could have].",
    )

    @model_validator(mode="after")
    def _usable(self) -> IntervalsEntry:
        try:
            self.as_intervals()
        except JudgeError as error:
            raise InconsistentError(str(error)) from error
        return self

    def as_intervals(self) -> VerdictIntervals:
        """The intervals.  JudgeError for a model of the error with other features."""
        return VerdictIntervals.from_json(self.model_dump())


class GoldenEntry(Part):
    """The golden set that the judge was made on."""

    name: str = Field(description="Its name.")
    digest: str = Field(
        description="Content hash of its items, labels and ratings: the same golden set gives the same hash."
    )
    columns: dict[str, str] = Field(
        {},
        max_length=1000,
        description="Role to column of its file, where the names differ. Another file with these columns is read "
        "likewise, unless it has a column with the name of the role.",
    )


class TextsEntry(Part):
    """The texts that the judge met while it was made, as digests.

    A recheck tells by these which labels are newer, whatever ids say. Each is the first 12 hex digits of the sha256
    of a text's source, context and target, line ends and Unicode forms made alike. They do not give a text away;
    whoever has a text can tell whether it was among them.
    """

    calibration: Digests = Field(
        description="Of the items that chose criteria or weights: sorted, parted by spaces and line ends."
    )
    held_out: Digests = Field(description="Of the items that the alignment is reported on, and other labelled ones.")
    only_mapped: Digests = Field(
        "",
        description="Of those under `calibration` whose labels came after the criteria: they fitted the map to the "
        "human scale, and no score, so means of systems may rest on them.",
    )


class Document(Part):
    """What every file of a judge begins with."""

    format: str = Field(description="Says what kind of file this is.")
    version: int = Field(description="The version of this format. Files of other versions are refused or brought up.")
    concord: Name = Field(description="The version of Concord that wrote the file.")
    digest: Sha256 | None = Field(
        description="sha256 of the rest of the file: of its canonical JSON (keys sorted, no spaces, UTF-8, equal "
        "numbers written alike: 1.0 as 1) without this key. A file whose digest does not match was changed after the "
        "export."
    )
    created: Name = Field(description="When the file was written: ISO 8601, UTC.")
    note: str = Field("", description="A sentence for whoever opens the file.")
