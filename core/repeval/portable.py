"""A fitted RepEval score that rates other items: the cells, their directions and how they are standardised.

The SVM of 003 has no direction: its cell keeps the support vectors.

It goes into a file as JSON and comes back checked: a file may come from anybody, so every length is held against what
was stated before a number is read, and a model's own code never runs.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.errors import JudgeError, UsageError
from core.records import FloatArray, Item
from core.repeval.extraction import Machines, OnProgress, collect
from core.repeval.model import EMBEDDED, PRECISIONS, CodeAllowed, ModelSpec, describe
from core.repeval.states import TEXT_MODES, Extraction, HalfArray, template_text

MOST_CELLS = 64
MOST_BYTES = 8 << 20
"""Of all directions together: 64 cells of 32,768 dimensions."""
MOST_SUPPORT = 10_000
LONGEST_TEXT = 20_000
MOST_TOKENS = 1_000_000
TOGETHER = 2048
"""Items whose states are held at once, which bounds the memory."""
_COMMIT = re.compile("[0-9a-f]{40}")
_NAMES = frozenset("model revision fingerprint precision texts template criterion max_tokens dim cells".split())
_PLACE = ("layer", "token")
_LINEAR = frozenset([*_PLACE, "direction", "centre", "spread"])
_KERNEL = frozenset([*_PLACE, "support", "weights", "intercept", "gamma", "slope", "offset"])
DAMAGED = "the RepEval score in the file is damaged"


@dataclass(frozen=True)
class ScorerCell:
    """One cell's part of the score: (state · `direction` − `centre`) / `spread`; `direction` is (dim,)."""

    layer: int
    token: str
    direction: FloatArray
    centre: float
    spread: float

    @property
    def dim(self) -> int:
        return int(self.direction.size)

    def score(self, states: FloatArray) -> FloatArray:
        """(n,) of `states` (n, dim); equal ones alike, which the sums of a library's product need not be."""
        return np.asarray(((states * self.direction).sum(axis=1) - self.centre) / self.spread)

    def as_json(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "token": self.token,
            "centre": self.centre,
            "spread": self.spread,
            "direction": _coded(self.direction),
        }


@dataclass(frozen=True)
class KernelCell:
    """One cell's P(good) by a support vector machine with an RBF kernel (003 equation 5).

    With f = Σ weights · exp(−gamma · |state − support|²) + intercept it is 1 / (1 + exp(slope · f + offset)), Platt's
    sigmoid; `support` is (m, dim), `weights` (m,).
    """

    layer: int
    token: str
    support: FloatArray
    weights: FloatArray
    intercept: float
    gamma: float
    slope: float
    offset: float

    @property
    def dim(self) -> int:
        return int(self.support.shape[1])

    def score(self, states: FloatArray) -> FloatArray:
        """(n,) of `states` (n, dim); NaN where a state is no finite number."""
        from scipy.spatial.distance import cdist
        from scipy.special import expit

        near = np.exp(-self.gamma * cdist(states, self.support, "sqeuclidean"))
        decision = (near * self.weights).sum(axis=1) + self.intercept  # equal states alike, as above
        good = expit(-(self.slope * decision + self.offset))
        return np.where(np.isfinite(states).all(axis=1), good, np.nan)

    def as_json(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "token": self.token,
            "weights": self.weights.tolist(),
            "intercept": self.intercept,
            "gamma": self.gamma,
            "slope": self.slope,
            "offset": self.offset,
            "support": _coded(self.support),
        }


AnyCell = ScorerCell | KernelCell


@dataclass(frozen=True)
class RepEvalScorer:
    """The mean over `cells` of their parts, on the states that `extraction` reads with a model.

    `fingerprint` changes with the model's weights, `precision` is the number format its states were read in.
    """

    model: str
    revision: str
    fingerprint: str
    precision: str
    extraction: Extraction
    cells: tuple[AnyCell, ...]

    @property
    def embedded(self) -> bool:
        """Whether the model comes with the installation."""
        return self.model == EMBEDDED

    def as_json(self) -> dict[str, Any]:
        """JSON types; directions are base64 of little-endian float32."""
        return {
            "model": self.model,
            "revision": self.revision,
            "fingerprint": self.fingerprint,
            "precision": self.precision,
            "texts": self.extraction.texts,
            "template": template_text(self.extraction.template),
            "criterion": self.extraction.criterion,
            "max_tokens": self.extraction.max_tokens,
            "dim": self.cells[0].dim,
            "cells": [cell.as_json() for cell in self.cells],
        }

    @classmethod
    def from_json(cls, body: Any) -> RepEvalScorer:
        """The scorer that `as_json` wrote.  JudgeError, in words, for anything else; nothing is loaded."""
        kept = _named(_mapping(body, "it"), _NAMES, "it")
        dim, listed = _whole(kept, "dim", 1, MOST_BYTES // 4), kept.get("cells")
        if not isinstance(listed, list) or not 1 <= len(listed) <= MOST_CELLS:
            raise JudgeError(f"{DAMAGED}: cells must be a list of 1 to {MOST_CELLS}.")
        maps = [_mapping(cell, f"cell {k}") for k, cell in enumerate(listed, start=1)]
        vectors = sum(_n_vectors(cell) for cell in maps)
        if 4 * dim * vectors > MOST_BYTES:
            raise JudgeError(f"{DAMAGED}: {vectors} vectors of {dim:,} dimensions are more than {MOST_BYTES:,} bytes.")
        cells = tuple(_kernel(cell, dim) if "support" in cell else _cell(cell, dim) for cell in maps)
        if len({(cell.layer, cell.token) for cell in cells}) < len(cells):
            raise JudgeError(f"{DAMAGED}: two cells are of the same layer and token.")
        precision = _text(kept, "precision", 20)
        if precision not in PRECISIONS:
            raise JudgeError(f"{DAMAGED}: precision must be one of {', '.join(PRECISIONS)}, not {precision!r}.")
        return cls(
            model=_text(kept, "model", 500, needed=True),
            revision=_text(kept, "revision", 200),
            fingerprint=_text(kept, "fingerprint", 200, needed=True),
            precision=precision,
            extraction=_extraction(kept, cells),
            cells=cells,
        )

    def score(self, states: HalfArray, layers: Sequence[int], tokens: Sequence[str]) -> FloatArray:
        """(n_items,) of `states` (n_items, n_layers, n_tokens, dim); higher is better.

        JudgeError when they have not as many dimensions as the directions.
        """
        dim = self.cells[0].dim
        if states.shape[-1] != dim:
            raise JudgeError(f"{DAMAGED}: its directions have {dim} dimensions, the states of {self.model} have "
                             f"{states.shape[-1]}.")  # fmt: skip
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
        self._scorer = scorer
        commit = scorer.fingerprint if _COMMIT.fullmatch(scorer.fingerprint) else scorer.revision
        self._spec = ModelSpec(scorer.model, commit or None, precision=scorer.precision)  # type: ignore[arg-type]
        self._code, self._same_model = code, False
        self._machine = Machines(self._spec, ray, code)

    def score(self, items: Sequence[Item], on_progress: OnProgress | None = None) -> FloatArray:
        """(n_items,), NaN where a state is no finite number; equal on the items it was fitted on to the run's scores.

        `on_progress(done, asked)` counts items.  ModelNotFoundError when the model is not there, JudgeError when it is
        another one than the score was fitted on, UsageError when no item has the text that is read beside the target.
        """
        scores = np.empty(len(items))
        for start in range(0, len(items), TOGETHER):
            chunk = items[start : start + TOGETHER]
            scores[start : start + len(chunk)] = self._score_chunk(chunk, start, len(items), on_progress)
        return scores

    def _check_model(self) -> None:
        """Once, ahead of the plan: another model may not even have the layers that are read."""
        if self._same_model:
            return
        here = describe(self._spec, self._code)
        if here.fingerprint != self._scorer.fingerprint:
            raise JudgeError(
                f"The model {self._scorer.model} here is another revision, or has other weights, than the one that "
                f"this score was fitted on (then {self._scorer.fingerprint[:12]}, here {here.fingerprint[:12]}); its "
                "states mean something else. Take the same version of the model, or fit RepEval again."
            )
        if beyond := [cell.layer for cell in self._scorer.cells if cell.layer >= here.n_layers]:
            raise JudgeError(
                f"{DAMAGED}: a cell is of layer {beyond[0]}, and {self._scorer.model} has the layers 0 to "
                f"{here.n_layers - 1}."
            )
        self._same_model = True

    def _score_chunk(
        self, items: Sequence[Item], before: int, expected: int, on_progress: OnProgress | None
    ) -> FloatArray:
        scorer = self._scorer
        self._check_model()
        plan = self._machine.plan(items, scorer.extraction, None)
        done, prompts = 0, len(plan.prompts)
        for batch in self._machine.compute(plan):
            done += len(batch.rows)
            if on_progress is not None:
                on_progress(before + done * len(items) // prompts, expected)
        states = collect(plan)
        return scorer.score(states.values, states.layers, states.token_names)


# ── reading a file ───────────────────────────────────────────────────────────────────────────────────────────


def _coded(numbers: FloatArray) -> str:
    return base64.b64encode(numbers.astype("<f4").tobytes()).decode("ascii")


def _n_vectors(kept: Mapping[str, Any]) -> int:
    weights = kept.get("weights")
    return len(weights) if isinstance(weights, list) else 1


def _cell(kept: Mapping[str, Any], dim: int) -> ScorerCell:
    direction = _vectors(_named(kept, _LINEAR, "a cell"), "direction", 1, dim)[0]
    centre, spread = (_number(kept, name) for name in ("centre", "spread"))
    if spread <= 0:
        raise JudgeError(f"{DAMAGED}: a spread must be above 0, not {spread:g}.")
    return ScorerCell(*_place(kept), direction, centre, spread)


def _kernel(kept: Mapping[str, Any], dim: int) -> KernelCell:
    weights = _named(kept, _KERNEL, "a cell").get("weights")
    if not isinstance(weights, list) or not 1 <= len(weights) <= MOST_SUPPORT:
        raise JudgeError(f"{DAMAGED}: weights must be a list of 1 to {MOST_SUPPORT:,} numbers.")
    numbers = np.array([_number({"a weight": weight}, "a weight") for weight in weights])
    intercept, gamma, slope, offset = (_number(kept, name) for name in ("intercept", "gamma", "slope", "offset"))
    if gamma <= 0:
        raise JudgeError(f"{DAMAGED}: gamma must be above 0, not {gamma:g}.")
    support = _vectors(kept, "support", len(weights), dim)
    return KernelCell(*_place(kept), support, numbers, intercept, gamma, slope, offset)


def _place(kept: Mapping[str, Any]) -> tuple[int, str]:
    return _whole(kept, "layer", 0, 100_000), _text(kept, "token", 20, needed=True)


def _vectors(kept: Mapping[str, Any], name: str, n: int, dim: int) -> FloatArray:
    """(n, dim) numbers out of base64."""
    coded, size = kept.get(name), 4 * dim * n
    if not isinstance(coded, str) or len(coded) != 4 * math.ceil(size / 3):
        raise JudgeError(f"{DAMAGED}: a {name} must be base64 of {n * dim} float32 numbers.")
    try:
        raw = base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise JudgeError(f"{DAMAGED}: a {name} is no base64 ({error}).") from error
    if len(raw) != size:
        raise JudgeError(f"{DAMAGED}: a {name} has {len(raw)} bytes instead of {size}.")
    numbers = np.frombuffer(raw, dtype="<f4").astype(np.float64).reshape(n, dim)
    if not np.isfinite(numbers).all():
        raise JudgeError(f"{DAMAGED}: a {name} holds what is no finite number.")
    return numbers


def _extraction(kept: Mapping[str, Any], cells: Sequence[AnyCell]) -> Extraction:
    texts = _text(kept, "texts", 20)
    if texts not in TEXT_MODES:
        raise JudgeError(f"{DAMAGED}: texts must be one of {', '.join(TEXT_MODES)}, not {texts!r}.")
    template = _text(kept, "template", LONGEST_TEXT)
    try:
        template_text(template)
        return Extraction(
            template=template,
            criterion=_text(kept, "criterion", LONGEST_TEXT),
            texts=next(mode for mode in TEXT_MODES if mode == texts),
            tokens=tuple(dict.fromkeys(cell.token for cell in cells)),
            layers=tuple(dict.fromkeys(cell.layer for cell in cells)),
            max_tokens=_whole(kept, "max_tokens", 1, MOST_TOKENS),
        )
    except UsageError as error:
        raise JudgeError(f"{DAMAGED}: {error}") from error


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise JudgeError(f"{DAMAGED}: {what} must hold names and values, not a {type(value).__name__}.")
    return value


def _named(kept: Mapping[str, Any], names: frozenset[str], what: str) -> Mapping[str, Any]:
    """`kept`, which has no name but `names`."""
    if unknown := [str(name)[:40] for name in kept if name not in names]:
        raise JudgeError(f"{DAMAGED}: {what} may hold {', '.join(sorted(names))}, not {unknown[0]!r}.")
    return kept


def _text(kept: Mapping[str, Any], name: str, longest: int, *, needed: bool = False) -> str:
    value = kept.get(name)
    if not isinstance(value, str) or len(value) > longest or (needed and not value.strip()):
        raise JudgeError(f"{DAMAGED}: {name} must be text of {int(needed)} to {longest:,} characters.")
    return value


def _number(kept: Mapping[str, Any], name: str) -> float:
    value = kept.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise JudgeError(f"{DAMAGED}: {name} must be a finite number.")
    return float(value)


def _whole(kept: Mapping[str, Any], name: str, low: int, high: int) -> int:
    value = kept.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise JudgeError(f"{DAMAGED}: {name} must be a whole number from {low} to {high:,}.")
    return value
