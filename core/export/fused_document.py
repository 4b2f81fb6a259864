"""What stands in the file of a fused judge, field by field: read strictly, nothing else allowed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from core.errors import UsageError
from core.export.document_parts import AlignmentEntry, Coordinate, Document, GoldenEntry, Part, TaskEntry, TextsEntry
from core.export.faults import InconsistentError
from core.fusion.estimators import restore_estimator

Numbers = Annotated[list[Coordinate], Field(max_length=1000)]


class FusionEntry(Part):
    """The fitted estimator: each part is centred by its mean, divided by its spread, weighted and added up."""

    method: Literal["average", "ridge", "nnls"] = Field(
        description="average: equal weights, no labels used; ridge: shrunken least squares; nnls: least squares "
        "without negative weights."
    )
    parts: list[str] = Field(min_length=1, max_length=1000, description="Names of the parts, in the numbers' order.")
    mean: Numbers = Field(description="Mean of each part on the items it was fitted on; a missing score counts as it.")
    spread: list[Annotated[float, Field(ge=1e-12, le=1e9)]] = Field(description="Spread of each part there.")
    weights: Numbers | None = Field(None, description="Weight of each standardised part; not for average.")
    intercept: Coordinate | None = Field(None, description="Mean label; not for average.")
    penalty: Annotated[float, Field(ge=0, le=1e9)] | None = Field(None, description="Ridge penalty.")

    @model_validator(mode="after")
    def _fits(self) -> FusionEntry:
        try:
            n_weights = restore_estimator(self.model_dump()).weights_.size
        except UsageError as error:
            raise InconsistentError(str(error)) from error
        if n_weights != len(self.parts):
            raise InconsistentError(f"there are {n_weights} weights for {len(self.parts)} parts.")
        return self


class FusedPart(Part):
    """What one part of the fusion is and needs."""

    name: str = Field(description="Its name.")
    needs: str = Field("", description="What scoring with it takes, in words.")
    higher_is_better: bool = Field(description="false: its score is turned round.")
    assistant: str = Field("", max_length=500, description="A metric that Concord computes, by name.")
    repeval: dict[str, Any] | None = Field(None, description="A fitted RepEval score: its model, place and directions.")
    judge: dict[str, Any] | None = Field(None, description="The whole content of a judge file; checked like one.")


class FusionDocument(Document):
    """Several judges and metrics joined into one score: how they are joined, what each is and needs, and how well the
    whole agreed with the people. It never holds a key or a password."""

    format: Literal["concord-fusion"] = Field(description="Says that this is the file of a fused judge.")
    aspect: str = Field(min_length=1, max_length=500, description="The aspect that is rated.")
    task: TaskEntry | None = Field(
        description="Kind of the items and scale of the labels that the weights were fitted on; null when unknown."
    )
    fusion: FusionEntry
    parts: list[FusedPart] = Field(
        min_length=1, max_length=1000, description="What each part is, in the order of the weights."
    )
    alignment: AlignmentEntry = Field(description="On items that neither weights nor choice have seen.")
    told: dict[str, Any] = Field(
        default={}, description="What else was measured: the parts one by one, what was left out and why, notes."
    )
    golden: GoldenEntry
    warnings: list[str] = Field(description="What whoever uses the judge should know, in sentences.")
    texts: TextsEntry

    @model_validator(mode="after")
    def _same_parts(self) -> FusionDocument:
        if [part.name for part in self.parts] != self.fusion.parts:
            raise InconsistentError("parts and fusion.parts do not name the same parts in the same order.")
        return self
