"""A fitted RepEval score that rates other items: the cells, their directions and how they are standardised.

The SVM has no direction: its cell keeps the support vectors.

The score goes into a file as JSON and comes back checked.  A file may come from anybody, and a model's own code never
runs.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Gt, Le, MaxLen, MinLen

from core.errors import ConcordError, JudgeError
from core.records import FloatArray, Item
from core.repeval.extraction import Machines, OnProgress
from core.repeval.model import EMBEDDED, CodeAllowed, ModelSpec, describe
from core.repeval.state_plan import collect
from core.repeval.states import Extraction, HalfArray, template_text

LONGEST_TEXT = 20_000
TOGETHER = 2048
"""Items whose states are held at once, which bounds the memory."""
DAMAGED = "the RepEval score in the file is damaged"
_COMMIT = re.compile("[0-9a-f]{40}")
_STRICT = {"extra": "forbid", "allow_inf_nan": False}


@dataclass(frozen=True)
class _Numbers:
    """Let pydantic read and write an array: as base64 of little-endian float32 (`coded`), or as a list."""

    coded: bool

    def __get_pydantic_core_schema__(self, *_: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            self._read, serialization=core_schema.plain_serializer_function_ser_schema(self._written)
        )

    def _read(self, value: Any) -> FloatArray:
        if self.coded:
            if not isinstance(value, str):
                raise ValueError("must be base64 of float32 numbers")
            numbers = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4").astype(np.float64)
        else:
            if not isinstance(value, list) or not {type(number) for number in value} <= {int, float}:
                raise ValueError("must be a list of numbers")
            numbers = np.array(value, dtype=np.float64)
        if not numbers.size > 0 or not np.isfinite(numbers).all():
            raise ValueError("holds no number, or one that is not finite")
        return numbers

    def _written(self, numbers: FloatArray) -> str | list[float]:
        return base64.b64encode(numbers.astype("<f4").tobytes()).decode("ascii") if self.coded else numbers.tolist()


Layer = Annotated[int, Ge(0), Le(100_000)]
Token = Annotated[str, MinLen(1), MaxLen(20)]


@dataclass(frozen=True)
class ScorerCell:
    """One cell's part of the score: (state · `direction` − `centre`) / `spread`; `direction` is (dim,)."""

    __pydantic_config__ = _STRICT

    layer: Layer
    token: Token
    centre: float
    spread: Annotated[float, Gt(0)]
    direction: Annotated[FloatArray, _Numbers(coded=True)]

    @property
    def dim(self) -> int:
        return int(self.direction.size)

    def score(self, states: FloatArray) -> FloatArray:
        """Return (n,) of `states` (n, dim); equal ones alike, which the sums of a library's product need not be."""
        return np.asarray(((states * self.direction).sum(axis=1) - self.centre) / self.spread)


@dataclass(frozen=True)
class KernelCell:
    """One cell's P(good) by a support vector machine with an RBF kernel.

    With f = Σ weights · exp(−gamma · |state − support|²) + intercept it is 1 / (1 + exp(slope · f + offset)), Platt's
    sigmoid; `support` is (m, dim), `weights` (m,).
    """

    __pydantic_config__ = _STRICT

    layer: Layer
    token: Token
    weights: Annotated[FloatArray, _Numbers(coded=False)]
    intercept: float
    gamma: Annotated[float, Gt(0)]
    slope: float
    offset: float
    support: Annotated[FloatArray, _Numbers(coded=True)]

    def __post_init__(self) -> None:
        if self.support.size % len(self.weights):
            raise ValueError("support must hold as many vectors as there are weights")
        object.__setattr__(self, "support", self.support.reshape(len(self.weights), -1))

    @property
    def dim(self) -> int:
        return int(self.support.shape[1])

    def score(self, states: FloatArray) -> FloatArray:
        """Return (n,) of `states` (n, dim); NaN where a state is not a finite number."""
        from scipy.spatial.distance import cdist
        from scipy.special import expit

        near = np.exp(-self.gamma * cdist(states, self.support, "sqeuclidean"))
        decision = (near * self.weights).sum(axis=1) + self.intercept  # equal states alike, as above
        good = expit(-(self.slope * decision + self.offset))
        return np.where(np.isfinite(states).all(axis=1), good, np.nan)


AnyCell = ScorerCell | KernelCell


@dataclass(frozen=True)
class RepEvalScorer:
    """The mean over `cells` of their parts, on the states that `extraction` reads with a model.

    `fingerprint` changes with the model's weights, `precision` is the number format its states were read in.
    """

    __pydantic_config__ = _STRICT

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
        self._scorer, self._code, self._same_model = scorer, code, False
        self._machine = Machines(self._spec, ray, code)

    def score(self, items: Sequence[Item], on_progress: OnProgress | None = None) -> FloatArray:
        """Return (n_items,), NaN where a state is not a finite number; on the fitted items equal to the run's scores.

        `on_progress(done, asked)` counts items.  ModelNotFoundError when the model is not there, JudgeError when it is
        another one than the score was fitted on.
        """
        scorer, scores = self._scorer, np.empty(len(items))
        for start in range(0, len(items), TOGETHER):
            self._check_model()
            chunk, done = items[start : start + TOGETHER], 0
            plan = self._machine.plan(chunk, scorer.extraction, None)
            for batch in self._machine.compute(plan):
                done += len(batch.rows)
                if on_progress is not None:
                    on_progress(start + done * len(chunk) // len(plan.prompts), len(items))
            states = collect(plan)
            scores[start : start + len(chunk)] = scorer.score(states.values, states.layers, states.token_names)
        return scores

    def _check_model(self) -> None:
        """Once, ahead of the plan: another model may not even have the layers that are read."""
        if self._same_model:
            return
        here, then = describe(self._spec, self._code), self._scorer.fingerprint
        if here.fingerprint != then:
            raise JudgeError(
                f"The model {self._scorer.model} here is another revision, or has other weights, than the one that "
                f"this score was fitted on (then {then[:12]}, here {here.fingerprint[:12]}); its states mean something "
                "else. Take the same version of the model, or fit RepEval again."
            )
        if beyond := [cell.layer for cell in self._scorer.cells if cell.layer >= here.n_layers]:
            raise JudgeError(
                f"{DAMAGED}: a cell is of layer {beyond[0]}, and {self._scorer.model} has the layers 0 to "
                f"{here.n_layers - 1}."
            )
        self._same_model = True
