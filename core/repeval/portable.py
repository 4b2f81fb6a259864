"""A fitted RepEval score that rates other items: its cells, and which model reads what.

The score goes into a file as JSON and comes back checked.  A file may come from anybody, and a model's own code never
runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import MaxLen, MinLen

from core.errors import ConcordError, JudgeError
from core.records import FloatArray, Item
from core.repeval.extraction import OnProgress, StateReader
from core.repeval.model import EMBEDDED, CodeAllowed, ModelSpec, describe
from core.repeval.projection import STRICT, KernelCell, ScorerCell
from core.repeval.states import Extraction, HalfArray, template_text

LONGEST_TEXT = 20_000
TOGETHER = 2048
"""Items whose states are held at once, which bounds the memory."""
DAMAGED = "the RepEval score in the file is damaged"
_COMMIT = re.compile("[0-9a-f]{40}")
AnyCell = ScorerCell | KernelCell


@dataclass(frozen=True)
class RepEvalScorer:
    """The mean over `cells` of their parts, on the states that `extraction` reads with a model.

    `fingerprint` changes with the model's weights, `precision` is the number format its states were read in.
    """

    __pydantic_config__ = STRICT

    model: Annotated[str, MinLen(1), MaxLen(500)]
    revision: Annotated[str, MaxLen(200)]
    fingerprint: Annotated[str, MinLen(1), MaxLen(200)]
    precision: Literal["float32", "bfloat16", "float16"]
    extraction: Extraction
    cells: Annotated[tuple[AnyCell, ...], MinLen(1), MaxLen(64)]

    def __post_init__(self) -> None:
        if len({(cell.layer, cell.token) for cell in self.cells}) < len(self.cells):
            raise ValueError("two cells are of the same layer and token")
        if len({cell.dim for cell in self.cells}) > 1:
            raise ValueError("its directions have different dimensions")

    @property
    def embedded(self) -> bool:
        """Whether the model comes with the installation."""
        return self.model == EMBEDDED

    @property
    def dim(self) -> int:
        """The dimension of the states that it rates."""
        return self.cells[0].dim

    def as_json(self) -> dict[str, Any]:
        """Return JSON types; directions are base64 of little-endian float32."""
        from pydantic import TypeAdapter

        extraction = self.extraction
        return {
            "model": self.model,
            "revision": self.revision,
            "fingerprint": self.fingerprint,
            "precision": self.precision,
            "texts": extraction.texts,
            "template": template_text(extraction.template),
            "criterion": extraction.criterion,
            "max_tokens": extraction.max_tokens,
            "dim": self.dim,
            "cells": TypeAdapter(tuple[AnyCell, ...]).dump_python(self.cells, mode="json"),
        }

    @classmethod
    def from_json(cls, body: Any) -> RepEvalScorer:
        """Read what `as_json` wrote.  JudgeError, in words, for anything else; nothing is loaded."""
        from pydantic import TypeAdapter, ValidationError

        try:
            kept = dict(body)
            dim, cells = kept.pop("dim"), kept["cells"]
            how = {name: kept.pop(name) for name in ("texts", "template", "criterion", "max_tokens")}
            for name, axis in (("layers", "layer"), ("tokens", "token")):
                how[name] = list(dict.fromkeys(cell[axis] for cell in cells))
            if max(len(how["template"]), len(how["criterion"])) > LONGEST_TEXT or how["max_tokens"] > 1_000_000:
                raise ValueError("its template, criterion or longest text is too long")
            template_text(how["template"])
            scorer = TypeAdapter(cls).validate_json(json.dumps(kept | {"extraction": how}), strict=True)
            if type(dim) is not int or scorer.dim != dim:
                raise ValueError(f"its directions have {scorer.dim} dimensions, not {str(dim)[:20]}")
        except ValidationError as error:
            # of a cell that is neither kind the fault of its own kind, not the parts that the other kind lacks
            faults = error.errors(include_url=False)
            fault = min(faults, key=lambda one: one["type"] in ("missing", "unexpected_keyword_argument"))
            place = ".".join(str(part) for part in fault["loc"])
            raise JudgeError(f"{DAMAGED}: {place}: {fault['msg'].removeprefix('Value error, ')}") from error
        except (ConcordError, KeyError, TypeError, ValueError) as error:
            raise JudgeError(f"{DAMAGED}: {error}") from error
        return scorer

    def score(self, states: HalfArray, layers: Sequence[int], tokens: Sequence[str]) -> FloatArray:
        """Return (n_items,) of `states` (n_items, n_layers, n_tokens, dim); higher is better.

        JudgeError when they have not as many dimensions as the directions.
        """
        if states.shape[-1] != self.dim:
            raise JudgeError(
                f"{DAMAGED}: its directions have {self.dim} dimensions, the states of {self.model} have "
                f"{states.shape[-1]}."
            )
        total = np.zeros(len(states))
        for cell in self.cells:
            own = states[:, layers.index(cell.layer), tokens.index(cell.token)].astype(np.float64)
            total += cell.score(own)
        return np.where(np.isfinite(total), total / len(self.cells), np.nan)


class ScorerWithModel:
    """A scorer that reads texts itself; the model is loaded with the first item and held.

    `ray` is the address of a cluster to read on, "" for here; `code` lists the models whose own Python may run.
    """

    def __init__(self, scorer: RepEvalScorer, ray: str = "", code: CodeAllowed = ()) -> None:
        commit = scorer.fingerprint if _COMMIT.fullmatch(scorer.fingerprint) else scorer.revision
        self._spec = ModelSpec(scorer.model, commit or None, precision=scorer.precision)
        self._scorer, self._code, self._reader = scorer, code, StateReader(self._spec, ray, code)

    def score(self, items: Sequence[Item], on_progress: OnProgress = lambda _done, _of: None) -> FloatArray:
        """Return (n_items,), NaN where a state is not a finite number; on the fitted items equal to the run's scores.

        `on_progress(done, asked)` counts items.  ModelNotFoundError when the model is not there, JudgeError when it is
        another one than the score was fitted on.
        """
        scorer, scores = self._scorer, np.empty(len(items))
        here = describe(self._spec, self._code).fingerprint
        if here != scorer.fingerprint:
            raise JudgeError(
                f"The model {scorer.model} here is another revision, or has other weights, than the one that this "
                f"score was fitted on (then {scorer.fingerprint[:12]}, here {here[:12]}); its states mean something "
                "else. Take the same version of the model, or fit RepEval again."
            )
        for start in range(0, len(items), TOGETHER):
            chunk = items[start : start + TOGETHER]

            def count(done: int, of: int, before: int = start, n: int = len(chunk)) -> None:
                on_progress(before + done * n // of, len(items))

            states = self._reader.read(chunk, scorer.extraction, None, count)
            scores[start : start + len(chunk)] = scorer.score(states.values, states.layers, states.token_names)
        return scores
