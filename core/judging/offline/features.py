"""Features of items, the concepts that criteria can name, and the grammar of criteria.

*Features* (`features.yaml`) are numbers that describe an item, NaN where a feature does not apply.

*Concepts* (`concepts.yaml`) are groups of features with a direction and phrases. Each single feature is a concept too
(`measures.yaml`). Some concepts have an undisputed good pole, such as saying only what the source says. Others are
matters of taste, such as length: the labels must decide which pole is better.

*Scaling* centres each feature, divides it by its spread and compresses extreme values. `fit` learns the scaling from
calibration items without labels; before that, it is `NEUTRAL`.

*Grammar*:

    Judge the coherence of the text as a whole, with these points in mind.
    Strongly reward texts that tie each sentence to the others.
    Reward texts that use many commas (strength 0.37).

The first sentence says whether the aspect as a whole counts too; "by these points only" excludes it. Each further
sentence is a clause, which names one concept by its phrase. Other lines have no effect.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from core.errors import JudgeError
from core.judging.offline import grounding
from core.judging.offline.text import cut, measure_text, table
from core.records import FloatArray, Item, ItemKind, Task

_FAMILIES: dict[str, dict[str, list[float]]] = table("features")
_MEASURED: dict[ItemKind, tuple[str, ...]] = {
    "single": ("language",),
    "source_target": ("language", "grounding"),
    "source_context_target": ("language", "reply"),
    "conversation": ("language",),
    "data_text": ("language", "data"),
    "pair": ("language", "grounding"),
}
USUAL: dict[str, list[float]] = {name: usual for family in _FAMILIES.values() for name, usual in family.items()}
"""Feature → typical mean and spread over mixed texts."""
FEATURES: tuple[str, ...] = tuple(USUAL)
INDEX: dict[str, int] = {name: i for i, name in enumerate(FEATURES)}
_ABSENT: FloatArray = np.full(len(FEATURES), np.nan)

_VECTORS = 250_000
"""Maximum number of cached vectors (1 KB each), which equals the maximum number of rows of a golden set."""
_source_of = lru_cache(maxsize=256)(grounding.SourceText)
_dialogue_of = lru_cache(maxsize=256)(grounding.Dialogue)
_data_of = lru_cache(maxsize=256)(grounding.Data)


def feature_matrix(items: Sequence[Item], kind: ItemKind) -> FloatArray:
    """Return the features of items, (n_items, n_features); a target without words has a row of NaN.

    The features of a pair are the features of text B minus those of text A.
    """
    if kind == "pair":
        first, second = (replace(item, context="") for item in items), (replace(i, target=i.context) for i in items)
        return feature_matrix([*second], "source_target") - feature_matrix([*first], "source_target")
    rows = [_vector(item, kind) for item in items]
    return np.stack(rows) if rows else np.empty((0, len(FEATURES)))


_vectors: dict[bytes, FloatArray] = {}
forget_items = _vectors.clear
"""Clear the cache of feature vectors, for callers that score each item only once."""


def _vector(item: Item, kind: ItemKind) -> FloatArray:
    """Return the features (n_features,) of an item, cached by a digest of its texts."""
    content = repr((item.target, item.source, item.context, kind)).encode()
    known = _vectors.get(digest := hashlib.blake2b(content, digest_size=16).digest())
    if known is not None:
        return known
    text = cut(item.target)
    features = measure_text(text)
    if kind == "source_context_target":
        features |= grounding.measure_reply(text, _dialogue_of(item.source, item.context))
    elif kind == "data_text" and item.source.strip():
        features |= grounding.measure_data(text, _data_of(item.source))
    elif kind != "data_text":
        features |= grounding.measure(text, _source_of(item.source))
    vector = _ABSENT.copy()
    vector[[INDEX[name] for name in features]] = [*features.values()]
    vector.flags.writeable = False
    if len(_vectors) >= _VECTORS:
        _vectors.clear()
    _vectors[digest] = vector
    return vector


_TABLE: dict[str, Any] = table("concepts")


class Concept(NamedTuple):
    """A concept that criteria can name.

    Attributes:
        features: Maps each feature to its sign. −1 means that the feature lowers the value of the concept.
        high: Phrase for a high value, which completes "texts that …".
        low: Phrase for a low value. Criteria name a defect by its low phrase ("penalise texts that repeat themselves").
    """

    key: str
    kind: Literal["good", "defect", "taste"]
    features: dict[str, float]
    high: str
    low: str

    @property
    def one_way(self) -> bool:
        return self.kind != "taste"


_MEASURES: dict[str, tuple[str, str]] = table("measures")
_GROUPS = [
    Concept(key, kind, {name.lstrip("-"): -1.0 if name[0] == "-" else 1.0 for name in names.split()}, high, low)
    for key, (kind, names, high, low) in ((key, row.values()) for key, row in _TABLE["concepts"].items())
]
GROUPED = len(_GROUPS)
"""Number of grouped concepts, which come first. The others are single features, in the order of `FEATURES`."""
CONCEPTS: tuple[Concept, ...] = (
    *_GROUPS,
    *(Concept(f"{name}.", "taste", {name: 1.0}, *_MEASURES[name]) for name in FEATURES),
)
KEYS: tuple[str, ...] = tuple(concept.key for concept in CONCEPTS)
POSITION: dict[str, int] = {key: i for i, key in enumerate(KEYS)}


def prior(task: Task) -> FloatArray:
    """Return the weights (n_concepts,) that the name and definition of the aspect suggest. Their Euclidean length is 2.

    The baseline (no criteria) uses these weights, and drafts start from them.
    """
    return _prior(f"{task.aspect} {task.definition}".lower(), task.aspect.lower().replace("_", " "), task.kind)


@lru_cache(maxsize=256)
def _prior(words: str, name: str, kind: ItemKind) -> FloatArray:
    expected, named = _TABLE["expected"], []
    for pattern, weights_of_word in expected["by_word"].items():
        strength = 1.0 if re.search(rf"\b(?:{pattern})", name) else 0.0
        strength = strength or (0.4 if re.search(rf"\b(?:{pattern})", words) else 0.0)
        if strength:
            named.append((weights_of_word, strength))
    share = 0.4 if named else 1.0
    weights = np.zeros(len(KEYS))
    for entries, strength in (*named, (expected["always"], share), (expected["by_kind"][kind], share)):
        for key, weight in entries.items():
            weights[POSITION[key]] += strength * weight
    weights *= 2 / np.linalg.norm(weights)
    weights.flags.writeable = False
    return weights


DECIMALS = 6
"""Decimals of learnt numbers, so that states are short and can be restored exactly."""

LEAST = 8
"""Minimum number of items with a feature to learn its scaling."""

MIN_WIDTH = 0.05
"""Minimum spread of a concept, so that one that hardly varies on calibration items has no huge values elsewhere."""

BEND = 3.0
"""Standardised values are compressed to about this many spreads (tanh), so that no outlier decides a score."""


@dataclass(frozen=True)
class Scaling:
    """Mean and spread of the features and concepts.

    Attributes:
        features: Mean and spread of each feature, (n_features, 2).
        groups: Mean and spread of each concept that groups features, (GROUPED, 2).
        n_items: Number of items that the numbers were learnt from; 0 for the values shipped with Concord.
    """

    features: FloatArray
    groups: FloatArray
    n_items: int = 0

    def concepts(self, features: FloatArray) -> FloatArray:
        """Convert features (n, n_features) to concept values (n, n_concepts) with a spread of about 1.

        The value is 0 if none of the concept's features applies.
        """
        (mean, spread), (middle, width) = self.features.T, self.groups.T
        standardised = np.nan_to_num(BEND * np.tanh((features - mean) / spread / BEND))
        n_there = product(np.isfinite(features).astype(np.float64), np.abs(_MEMBERS))
        grouped = (product(standardised, _MEMBERS) / np.maximum(n_there, 1.0) - middle) / width
        return np.concatenate([np.where(n_there > 0, grouped, 0.0), standardised], axis=1)

    def as_state(self) -> dict[str, Any]:
        """Return the mean and spread of each feature and concept by name, as JSON types."""
        return {
            "n_items": self.n_items,
            "features": dict(zip(FEATURES, self.features.tolist(), strict=True)),
            "concepts": dict(zip(KEYS[:GROUPED], self.groups.tolist(), strict=True)),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Scaling:
        """Return the scaling that `as_state` stored. Raises JudgeError if it is damaged or has other features."""
        try:
            known = state["features"].keys() == {*FEATURES} and state["concepts"].keys() == {*KEYS[:GROUPED]}
            rows = [state["features"][name] for name in FEATURES] + [state["concepts"][key] for key in KEYS[:GROUPED]]
            numbers, n_items = np.array(rows, dtype=np.float64).reshape(-1, 2), int(state["n_items"])
        except (AttributeError, KeyError, TypeError, ValueError):
            known = False
        if not known or len(numbers) != len(rows) or not (np.abs(numbers) <= 1e9).all() or (numbers[:, 1] < 1e-9).any():
            raise JudgeError(
                "The stored offline judge is damaged, or its features differ from those of this version of Concord. "
                "Calibrate again."
            )
        return cls(numbers[: len(FEATURES)], numbers[len(FEATURES) :], n_items)


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the matrix product (n, k) × (k, m). Rows of the result don't affect each other, not even by rounding."""
    total = np.zeros((left.shape[0], right.shape[1]))
    for column, row in zip(left.T, right, strict=True):
        total += column[:, None] * row
    return total


_MEMBERS: FloatArray = np.array([[concept.features.get(name, 0.0) for concept in _GROUPS] for name in FEATURES])
"""Signs (n_features, GROUPED) of the features in each grouped concept: +1, −1, or 0 if not in it."""


@lru_cache(maxsize=8)
def applicable(kind: ItemKind) -> FloatArray:
    """Return an array (n_concepts,): 1.0 for each concept that applies to items of this kind, 0.0 for the others."""
    there = {name for family in _MEASURED[kind] for name in _FAMILIES[family]}
    return np.array([float(not there.isdisjoint(concept.features)) for concept in CONCEPTS])


NEUTRAL = Scaling(np.array([*USUAL.values()]), np.tile([0.0, 0.7], (GROUPED, 1)))


def fit(items: Sequence[Item], kind: ItemKind) -> Scaling:
    """Learn the scaling from items. A feature measured on fewer than `LEAST` items keeps its shipped scaling."""
    features = feature_matrix(items, kind)
    if kind == "pair":  # the order of the two texts has no meaning
        features = np.concatenate([features, -features])
    learnt = NEUTRAL.features.copy()
    for column, (_, usual) in enumerate(NEUTRAL.features):
        values = features[np.isfinite(features[:, column]), column]
        if len(values) >= LEAST:
            deviation = float(values.std().round(DECIMALS))
            learnt[column] = values.mean().round(DECIMALS), deviation if deviation > 0 else max(usual, 1e-3)
    written = features[np.isfinite(features).any(axis=1)]
    if len(written) < LEAST:
        return Scaling(learnt, NEUTRAL.groups, len(items))
    values = Scaling(learnt, np.tile([0.0, 1.0], (GROUPED, 1))).concepts(written)[:, :GROUPED]
    groups = np.stack([values.mean(axis=0), np.maximum(values.std(axis=0), MIN_WIDTH)], axis=1).round(DECIMALS)
    return Scaling(learnt, groups, len(items))


LEVELS: dict[float, str] = {2.0: "Above all, ", 1.5: "Strongly ", 1.0: "", 0.5: "To some extent, ", 0.25: "Slightly "}
"""Strength of a clause → wording, strongest first."""

MAX_CHARS = 20_000
MAX_WEIGHT = 3.0
"""Maximum weight of a concept that is named more than once."""
MAX_STRENGTH = 99.99
MOST_IN_PROSE = 8
"""Maximum number of clauses in a paragraph. More are written as a list."""


class Clause(NamedTuple):
    """A concept with a signed weight."""

    key: str
    weight: float


@dataclass(frozen=True, slots=True)
class CriteriaReading:
    """Criteria as parsed by the offline judge.

    `whole` is true if the aspect as a whole counts in addition to the clauses. `unread` contains the lines that have no
    effect.
    """

    clauses: tuple[Clause, ...]
    whole: bool
    unread: tuple[str, ...] = ()

    def weights(self, prior: FloatArray) -> FloatArray:
        """Return the weights of the concepts, (n_concepts,).

        `prior` is added if the aspect as a whole counts, or if there are no clauses.
        """
        total = prior.copy() if self.whole or not self.clauses else np.zeros(len(KEYS))
        for clause in self.clauses:
            total[POSITION[clause.key]] += clause.weight
        return total


def nearest_level(weight: float) -> float:
    """Round a nonzero weight to the closest of `LEVELS`, and keep its sign."""
    level = min(LEVELS, key=lambda level: abs(level - abs(weight)))
    return level if weight > 0 else -level


def write(clauses: Sequence[Clause], aspect: str, kind: ItemKind, *, whole: bool) -> str:
    """Write criteria as text: a first sentence that names the aspect, then one sentence per clause, strongest first.

    A weight that is not in `LEVELS` is written as a strength with two decimals. `read` restores the weights, if no
    concept occurs twice.
    """
    thing, things = ("reply", "replies") if kind in ("source_context_target", "conversation") else ("text", "texts")
    name = " ".join(re.sub(r"[\W_]+", " ", aspect).split()) or "quality"
    points = "as a whole, with these points in mind" if whole else "by these points only"
    sentences = [f"Judge the {name} of the {thing} {points}."]
    for key, weight in sorted(clauses, key=lambda clause: (-abs(clause.weight), POSITION[clause.key])):
        concept = CONCEPTS[POSITION[key]]
        penalise = concept.one_way and (concept.kind == "defect") == (weight > 0)
        phrase = concept.high if (weight > 0) != penalise else concept.low
        lead, verb = LEVELS.get(abs(weight), ""), "penalise" if penalise else "reward"
        strength = "" if abs(weight) in LEVELS else f" (strength {abs(weight):.2f})"
        sentences.append(f"{lead}{verb if lead else verb.capitalize()} {things} that {phrase}{strength}.")
    return (" " if len(clauses) <= MOST_IN_PROSE else "\n- ").join(sentences)


_PHRASES: dict[str, tuple[str, float]] = {
    phrase.lower(): (c.key, pole) for c in CONCEPTS for phrase, pole in ((c.high, 1.0), (c.low, -1.0))
}
_PHRASES |= {phrase: _PHRASES[same] for phrase, same in _TABLE["also"].items()}
_LEADS = {text.strip().lower(): level for level, text in LEVELS.items()}
_OPENING = re.compile(
    r"judge the .+ of the (?:text|reply) (?:as a whole, with these points in mind|(?P<only>by these points only))"
)
_CLAUSE = re.compile(
    rf"(?P<lead>{'|'.join(filter(None, _LEADS))}|)\s?(?P<verb>reward|penalise) (?:texts|replies) that "
    r"(?P<no>(?:do not |don[’']t )?)(?P<phrase>.+?)"
    r"(?: \(strength (?P<strength>\d{1,2}(?:\.\d{1,2})?)\))?"
)
_SENTENCES = re.compile(r"\n|(?<=\.)\s+")


@lru_cache(maxsize=4096)
def read(text: str) -> CriteriaReading:
    """Parse criteria that are written as prose or as a list. Case and white space don't matter.

    If a concept is named more than once, its weights are added up, limited to ±`MAX_WEIGHT`.
    """
    weights: dict[str, list[float]] = {}
    whole, unread = True, []
    for sentence in filter(None, (part.strip(" \t\r-*•") for part in _SENTENCES.split(text[:MAX_CHARS]))):
        plain = " ".join(sentence.lower().split()).rstrip(".")
        opening, clause = _OPENING.fullmatch(plain), _CLAUSE.fullmatch(plain)
        if opening:
            whole = whole and not opening["only"]
        elif clause and clause["phrase"] in _PHRASES:
            key, pole = _PHRASES[clause["phrase"]]
            turns = bool(clause["no"]) != (clause["verb"] == "penalise")  # to penalise texts that don't is to reward
            pole *= float(clause["strength"] or _LEADS[clause["lead"]])
            weights.setdefault(key, []).append(-pole if turns else pole)
        else:
            unread.append(sentence)
    sums = (
        Clause(key, each[0] if len(each) == 1 else max(-MAX_WEIGHT, min(MAX_WEIGHT, sum(each))))
        for key, each in weights.items()
    )
    return CriteriaReading(tuple(clause for clause in sums if clause.weight), whole, tuple(unread))


def states_strength(text: str) -> bool:
    """Return whether criteria state a strength as a number, as fitted criteria do."""
    return "(strength " in text.lower()
