"""Inducing criteria from labelled exemplars (001 §2.3 without a language model).

A concept's evidence is its rank correlation with the labels over the exemplars, shrunk towards what the aspect's name
lets expect; temperature adds seeded noise as large as the evidence is uncertain, so that drafts differ where little is
known and agree where much is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.judging.base import Exemplar
from core.judging.offline.clauses import Clause, nearest_level, write
from core.judging.offline.concepts import CONCEPTS, KEYS
from core.records import FloatArray, Task

PRIOR_SIZE = 20.0
"""How many exemplars the expectation from the aspect's name is worth."""

EXPECTED = 0.3
"""The correlation that the most expected concept is expected to have."""

NOISE = 0.6
"""Standard deviation of the noise at temperature 1, times the root of exemplars plus `PRIOR_SIZE`."""

WHOLE_SHARE = 0.6
"""Share of drafts in which the aspect as a whole counts beside the clauses, before any evidence."""

PEAKS = (2.0, 1.0)
"""Weights the strongest clause may get beside the aspect as a whole: a large one corrects it, a small one trims it."""

MIN_CLAUSES, MAX_CLAUSES = 2, 6


@dataclass(frozen=True)
class Evidence:
    """What a drafter goes by: concept values (n, n_concepts) and labels (n,) of the exemplars, and the prior."""

    values: FloatArray
    labels: FloatArray
    prior: FloatArray
    usable: FloatArray


def ranks(values: FloatArray) -> FloatArray:
    """Average ranks along the first axis, centred and scaled to unit length; 0 throughout for a constant column."""
    columns = values if values.ndim > 1 else values[:, None]
    smaller = (columns[None, :, :] < columns[:, None, :]).sum(axis=1)
    equal = (columns[None, :, :] == columns[:, None, :]).sum(axis=1)
    rank = smaller + equal / 2.0
    rank -= rank.mean(axis=0)
    norm = np.linalg.norm(rank, axis=0)
    scaled = rank / np.where(norm > 0, norm, 1.0)
    return np.asarray(scaled if values.ndim > 1 else scaled[:, 0])


def shrunk(evidence: Evidence) -> FloatArray:
    """(n_concepts,) correlation with the labels, shrunk: (n·r + PRIOR_SIZE·p) / (n + PRIOR_SIZE).

    p is the prior on the scale of a correlation.  Concepts with no doubtful pole are kept from turning negative.
    """
    n = len(evidence.labels)
    r = ranks(evidence.values).T @ ranks(evidence.labels)
    expected = EXPECTED * evidence.prior / max(float(np.abs(evidence.prior).max()), 1e-9)
    return np.asarray((n * r + PRIOR_SIZE * expected) / (n + PRIOR_SIZE) * evidence.usable)


def pick(strength: FloatArray, values: FloatArray, count: int, peak: float) -> list[Clause]:
    """The `count` strongest concepts, each next one discounted by its likeness to those picked.

    Weights are levels in proportion to the strengths; the strongest concept gets `peak`.
    """
    one_way = np.array([concept.one_way for concept in CONCEPTS])
    left = np.where(one_way, np.maximum(strength, 0.0), strength)
    ranked = ranks(values)
    likeness = np.abs(ranked.T @ ranked)
    picked: list[int] = []
    while len(picked) < count:
        discount = likeness[:, picked].max(axis=1) if picked else np.zeros(len(left))
        gain = np.abs(left) * (1 - 0.6 * discount)
        gain[picked] = 0.0
        best = int(gain.argmax())
        if gain[best] <= 0:
            break
        picked.append(best)
    top = max((abs(float(left[i])) for i in picked), default=1.0)
    return [Clause(KEYS[i], float(np.sign(left[i])) * nearest_level(peak * abs(float(left[i])) / top)) for i in picked]


def draft(evidence: Evidence, task: Task, *, temperature: float, seed: int) -> str:
    """Criteria for one request; "" when nothing tells the exemplars apart and nothing is expected."""
    rng = np.random.default_rng([seed, 1])
    n = len(evidence.labels)
    noise = temperature * rng.normal(size=len(KEYS)) * NOISE / np.sqrt(n + PRIOR_SIZE) * evidence.usable
    count = int(rng.integers(MIN_CLAUSES, MAX_CLAUSES + 1))
    whole = bool(rng.random() < whole_share(evidence))
    peak = float(rng.choice(PEAKS)) if whole else max(PEAKS)
    clauses = pick(shrunk(evidence) + noise, evidence.values, count, peak)
    if not clauses:
        return ""
    return write(tuple(clauses), task.aspect, task.kind, whole=whole)


def whole_share(evidence: Evidence) -> float:
    """Chance, in [0.1, 0.9], that the aspect as a whole is let count: higher the better it fits the exemplars."""
    n = len(evidence.labels)
    fit = float(ranks(evidence.values @ (evidence.prior * evidence.usable)) @ ranks(evidence.labels))
    return min(0.9, max(0.1, WHOLE_SHARE + 1.2 * n * fit / (n + PRIOR_SIZE)))


def evidence_of(exemplars: tuple[Exemplar, ...], values: FloatArray, prior: FloatArray, usable: FloatArray) -> Evidence:
    """Exemplars as arrays; `values` (n, n_concepts) belong to them in order."""
    return Evidence(values, np.array([exemplar.label for exemplar in exemplars]), prior, usable)
