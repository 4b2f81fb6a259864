"""`fused.yaml`: a fused judge as a portable file: how the parts are joined, and what each is and needs.

Parts are assistants (computed from the texts), calibrated judges (their whole judge file stands inside), fitted RepEval
scores (their directions stand inside), or numbers that have to be handed in as a column.  A part that cannot be
computed on new items counts as its mean and is named.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from core.errors import UsageError
from core.fusion.estimators import restore_estimator
from core.fusion.fusion_criteria import AspectCriteria, FusionCriteria
from core.judge_files.document_parts import (
    AlignmentEntry,
    Coordinate,
    Document,
    GoldenEntry,
    Part,
    TaskEntry,
    TextsEntry,
)
from core.judge_files.judge_document import JudgeDescription
from core.metrics import Metric, fitted_repeval, make_metric

# ── what stands in the file: read strictly, nothing else allowed ─────────────────────────────────────────────

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
            raise ValueError(str(error)) from error
        if n_weights != len(self.parts):
            raise ValueError(f"there are {n_weights} weights for {len(self.parts)} parts.")
        return self


class FusionCriteriaEntry(Part):
    """The criteria of one aspect."""

    aspect: str = Field(min_length=1, max_length=500, description="The aspect that is rated by them.")
    text: str = Field(max_length=20_000, description="The criteria in full; empty: the aspect is rated without.")
    origin: Literal["model", "person", "calibrated"] = Field(
        description="model: written by the model; person: given; calibrated: those of a calibrated judge."
    )


class ModelFusionEntry(Part):
    """A language model that rates each item by a plan, with the parts' numbers beside it, all aspects in one call."""

    method: Literal["llm"] = Field(description="llm: a language model rates by the plan.")
    parts: list[str] = Field(min_length=1, max_length=1000, description="Names of the parts.")
    judge: JudgeDescription = Field(description="The model that rates.")
    prompt: Literal["evaluate.v1", "evaluate_unplanned.v1"] = Field(description="Name and version of the prompt.")
    plan: str = Field(min_length=1, max_length=8_000, description="Which part serves which aspect, and how.")
    introduced: str = Field(max_length=100_000, description="The parts as the model is told of them, a line each.")
    aspects: list[TaskEntry] = Field(min_length=1, max_length=50, description="What each call rates.")
    criteria: list[FusionCriteriaEntry] = Field(
        default=[], max_length=50, description="By what each aspect is rated; aspects that are not there: without."
    )

    def as_criteria(self) -> FusionCriteria:
        """The criteria as the prompt shows them."""
        entries = (AspectCriteria(entry.aspect, entry.text, entry.origin) for entry in self.criteria)
        return FusionCriteria(tuple(entries))


class FusedPart(Part):
    """What one part of the fusion is and needs."""

    name: str = Field(description="Its name.")
    needs: str = Field(default="", description="What scoring with it takes, in words.")
    higher_is_better: bool = Field(description="false: its score is turned round.")
    assistant: str = Field(default="", max_length=500, description="A metric that Concord computes, by name.")
    repeval: dict[str, Any] | None = Field(
        default=None, description="A fitted RepEval score: its model, place and directions."
    )
    judge: dict[str, Any] | None = Field(
        default=None, description="The whole content of a judge file; checked like one."
    )

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
            spec = str(self.judge.get("judge", {}).get("spec", "offline"))
            return f"the judge {spec}, which stands in this file"
        if self.fitted is not None and self.repeval is not None:
            beside = "".join(f", {need}" for need in sorted(self.fitted.needs - {"model"}))
            whose = f"the model {self.repeval['model']}" if "model" in self.fitted.needs else "the embedded encoder"
            return f"computed from the target{beside} with {whose}; its directions stand in this file"
        if self.assistant.startswith("metric_"):
            return f"a column {self.assistant}"
        if self.assistant:
            needs = sorted(make_metric(self.assistant).needs)
            return f"computed from the target{''.join(f', {one}' for one in needs)}"
        return f"a column {self.column} with its scores"

    def as_json(self) -> dict[str, Any]:
        """The part's entry in the file."""
        return self.model_copy(update={"needs": self.requirement}).model_dump(exclude_defaults=True)


class FusionDocument(Document):
    """Several judges and metrics joined into one score: how they are joined, what each is and needs, and how well the
    whole agreed with the people. It never holds a key or a password."""

    format: Literal["concord-fusion"] = Field(description="Says that this is the file of a fused judge.")
    aspect: str = Field(min_length=1, max_length=500, description="The aspect that is rated.")
    task: TaskEntry | None = Field(
        description="Kind of the items and scale of the labels that the weights were fitted on; null when unknown."
    )
    fusion: Annotated[FusionEntry | ModelFusionEntry, Field(discriminator="method")]
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
            raise ValueError("parts and fusion.parts do not name the same parts in the same order.")
        return self
