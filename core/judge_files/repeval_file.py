"""`repeval.yaml`: a fitted RepEval score as a portable judge: model, text and states that are read, and directions.

Numbers and texts alone: the directions (for the SVM its support vectors) stand inside as base64, the model is named and
its weights are told apart by a fingerprint.  It is never brought in by the file alone.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from core.data.split import KnownTexts
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
from core.judge_files.judge_reading import FORMATS, VERSION
from core.judge_files.judge_writing import golden_entry, label_warnings, written
from core.records import GoldenSet
from core.repeval import Method, RepEvalResult, RepEvalScorer
from core.stats import fit_isotonic
from core.version import VERSION as CONCORD

NOTE = (
    "A judge that reads text quality out of a model's hidden states (RepEval), fitted with Concord. Its directions "
    "belong to the data they were fitted on: on other data check the alignment again before trusting the scores."
)


def repeval_card(
    golden: GoldenSet,
    result: RepEvalResult,
    *,
    created: dt.datetime | None = None,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """The content of the file of a score fitted on `golden`, with its digest; `yaml_text` makes text of it.

    The map to the people's scale is fitted on the validation items, scored by directions that have not seen them.
    """
    aspect, parts, how = result.aspect, result.parts, result.settings
    assert result.scorer is not None
    scale, rule = golden.aspects[aspect].scale, how.pair_rule
    on = list(parts.validation)
    fitted = fit_isotonic(result.scores[on], golden.labels(aspect)[on], scale)
    seen = np.union1d(parts.train, parts.validation).astype(int).tolist()
    settings = {
        "statistic": how.statistic,
        "level": how.level,
        "seed": how.seed,
        "n_train": len(parts.train),
        "n_validation": len(parts.validation),
        **({"pairs": result.n_pairs, "within_source": rule.within_source} if how.uses_pairs else {}),
    }
    body = {
        "format": FORMATS["repeval"],
        "version": VERSION,
        "concord": CONCORD,
        "digest": None,
        "created": (created or dt.datetime.now(dt.UTC)).isoformat(timespec="seconds"),
        "note": NOTE,
        "task": {
            "aspect": aspect,
            "kind": golden.kind,
            "scale": {"low": scale.low, "high": scale.high, "step": scale.step},
            "definition": "",
        },
        "method": how.method,
        "layers": list(result.layers),
        "tokens": list(result.tokens),
        "scorer": result.scorer.as_json(),
        "isotonic": None if fitted.map is None else fitted.map.as_json(),
        "validation": result.validation.as_json(),
        "alignment": result.test.as_json(),
        "golden": golden_entry(golden.name, golden.digest, golden.columns),
        "settings": settings,
        "warnings": [
            *result.warnings,
            *label_warnings(golden, aspect),
            *([fitted.reason] if fitted.reason else []),
            *warnings,
        ],
        "texts": KnownTexts.of(golden, seen, parts.test).as_json(),
    }
    return written(body, "repeval")


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
