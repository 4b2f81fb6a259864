"""`repeval.yaml`: a fitted RepEval score as a portable judge: model, text and states that are read, and directions.

Numbers and texts alone: the directions (for the SVM its support vectors) stand inside as base64, the model is named and
its weights are told apart by a fingerprint.  It is never brought in by the file alone.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from core.errors import JudgeError
from core.judge_files.document_parts import (
    AlignmentEntry,
    Document,
    GoldenEntry,
    Scalar,
    ScoreMap,
    TaskEntry,
    TextsEntry,
)
from core.repeval import Method, RepEvalScorer

# ── what stands in the file: read strictly, nothing else allowed ─────────────────────────────────────────────


class RepEvalDocument(Document):
    """A RepEval score that rates other items: the model whose hidden states are read, from which text and at which
    places, and the directions they are projected on. It never holds a key, a password or weights of a model."""

    format: Literal["concord-repeval"] = Field(description="Says that this is the file of a RepEval score.")
    task: TaskEntry
    method: Method = Field(description="How the directions were fitted.")
    layers: Annotated[list[int], Field(min_length=1, max_length=1000)] = Field(
        description="Layers that were searched: 0 are the embeddings, i is the output of block i."
    )
    tokens: Annotated[list[str], Field(min_length=1, max_length=1000)] = Field(
        description="Tokens that were searched: -1 is the last one; first and mean for encoders."
    )
    scorer: dict[str, Any] = Field(
        description="The score itself: model with revision, fingerprint of its weights and number format, template, "
        "criterion and longest text, and for each cell its layer, token and direction (base64 of float32), or the "
        "support vectors of the SVM."
    )
    isotonic: ScoreMap | None = Field(
        description="Strictly rising map from the score to the human scale. null: scores are used as they come."
    )
    validation: AlignmentEntry = Field(description="On the items that chose layer and token: optimistic.")
    alignment: AlignmentEntry = Field(description="On items that neither directions nor choice have seen.")
    golden: GoldenEntry
    settings: dict[str, Scalar] = Field(description="How it was fitted, by name.")
    warnings: list[str] = Field(description="What whoever uses the judge should know, in sentences.")
    texts: TextsEntry

    @model_validator(mode="after")
    def _scores(self) -> RepEvalDocument:
        try:
            fitted = RepEvalScorer.from_json(self.scorer)
        except JudgeError as error:
            raise ValueError(f"scorer: {error}") from error
        for cell in fitted.cells:
            if cell.layer not in self.layers or cell.token not in self.tokens:
                raise ValueError(
                    f"scorer.cells names layer {cell.layer} at token {cell.token}, which layers and tokens lack."
                )
        return self
