"""From items to comparable numbers: features, the concepts that criteria can name, and the grammar that names them.

*Features* (`features.yaml`): one float64 vector an item, NaN where one does not apply; `text` and `grounding`
measure them.  Work on a source is done once for all its texts; vectors are kept in a bounded cache by the
content of the item, so that scoring sixty sets of criteria measures each item once.

*Concepts* (`concepts.yaml`): groups of features with a direction, and the phrases that name them; after them each
feature by itself (`measures.yaml`).  A concept's value is positive at its *high* pole.  One-way concepts have a good
pole that nobody doubts (say only what the source says); the others are matters of taste (long or short) that the labels
must decide.

*Scaling*, without labels: each feature is centred, divided by its spread and bent at the ends.  Learnt by `fit` on
calibration items, shipped as `NEUTRAL` for a judge that was not prepared.  Scaling one item never depends on the others
in its batch.

*Grammar*:

    Judge the coherence of the text as a whole, with these points in mind.
    Strongly reward texts that tie each sentence to the others.
    Reward texts that use many commas (strength 0.37).

An opening says whether the aspect itself counts next to the clauses ("by these points only" leaves it out).  Each
clause names one concept by its phrase.  Other lines have no effect; `read` lists them.
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
"""Feature → its mean and spread over mixed texts."""
FEATURES: tuple[str, ...] = tuple(USUAL)
INDEX: dict[str, int] = {name: i for i, name in enumerate(FEATURES)}
_ABSENT: FloatArray = np.full(len(FEATURES), np.nan)

_VECTORS = 250_000
"""As many as a golden set may have rows, of 1.2 KB each: a calibration goes over all of its items a dozen times."""
_SOURCES = 256
source_of = lru_cache(maxsize=_SOURCES)(grounding.SourceText)
dialogue_of = lru_cache(maxsize=_SOURCES)(grounding.Dialogue)
data_of = lru_cache(maxsize=_SOURCES)(grounding.Data)


def features_of(kind: ItemKind) -> frozenset[str]:
    """The features that items of this kind can have."""
    return frozenset(name for family in _MEASURED[kind] for name in _FAMILIES[family])


def feature_matrix(items: Sequence[Item], kind: ItemKind) -> FloatArray:
    """(n_items, n_features) float64; a row of NaN for an item whose target holds no words.

    Those of a pair are text B's less text A's.
    """
    if kind == "pair":
        first, second = (replace(item, context="") for item in items), (replace(i, target=i.context) for i in items)
        return feature_matrix([*second], "source_target") - feature_matrix([*first], "source_target")
    rows = [_vector(item, kind) for item in items]
    return np.stack(rows) if rows else np.empty((0, len(FEATURES)))


_vectors: dict[bytes, FloatArray] = {}
forget_items = _vectors.clear
"""Empty the cache of items, for callers to whom no item comes twice."""


def _vector(item: Item, kind: ItemKind) -> FloatArray:
    """(n_features,) of one item, found in the cache by a digest of its texts, so that no texts are kept alive."""
    content = repr((item.target, item.source, item.context, kind)).encode()
    known = _vectors.get(digest := hashlib.blake2b(content, digest_size=16).digest())
    if known is not None:
        return known
    text = cut(item.target)
    features = measure_text(text)
    if kind == "source_context_target":
        features |= grounding.measure_reply(text, dialogue_of(item.source, item.context))
    elif kind == "data_text" and item.source.strip():
        features |= grounding.measure_data(text, data_of(item.source))
    elif kind != "data_text":
        features |= grounding.measure(text, source_of(item.source))
    vector = _ABSENT.copy()
    vector[[INDEX[name] for name in features]] = [*features.values()]
    vector.flags.writeable = False
    if len(_vectors) >= _VECTORS:
        _vectors.clear()
    _vectors[digest] = vector
    return vector


_TABLE: dict[str, Any] = table("concepts")


class Concept(NamedTuple):
    """A concept that criteria can name. `features` have a sign (−1 lowers the value); `high` and `low` complete
    "texts that …".

    A defect is worded by its low pole ("penalise texts that repeat themselves").
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
"""Concepts of several features; the first ones.  The others are single features, in the order of `FEATURES`."""
CONCEPTS: tuple[Concept, ...] = (
    *_GROUPS,
    *(Concept(f"{name}.", "taste", {name: 1.0}, *_MEASURES[name]) for name in FEATURES),
)
KEYS: tuple[str, ...] = tuple(concept.key for concept in CONCEPTS)
POSITION: dict[str, int] = {key: i for i, key in enumerate(KEYS)}


def prior(task: Task) -> FloatArray:
    """(n_concepts,) weights that the task's aspect lets expect, of Euclidean length 2.

    They are the judge without criteria and the drafter's starting point.
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
"""Decimals kept of what is learnt: states stay short and come back exactly."""

LEAST = 8
"""Items that must show a feature before its scaling is learnt."""

MIN_WIDTH = 0.05
"""Least spread of a concept: keeps one that hardly varies on calibration items from exploding elsewhere."""

BEND = 3.0
"""Standardised values beyond about this many spreads are bent towards it (tanh): no single freak decides."""


@dataclass(frozen=True)
class Scaling:
    """`centre` and `spread` (n_features,) of the features; `middle` and `width` (GROUPED,) of the grouped concepts.

    `n_items` says on how many items it was learnt (0: shipped values).
    """

    centre: FloatArray
    spread: FloatArray
    middle: FloatArray
    width: FloatArray
    n_items: int = 0

    def concepts(self, features: FloatArray) -> FloatArray:
        """(n, n_features) → (n, n_concepts) with about unit spread; 0 where none of a concept's features is there."""
        standardised = np.nan_to_num(BEND * np.tanh((features - self.centre) / self.spread / BEND))
        n_there = product(np.isfinite(features).astype(np.float64), np.abs(_MEMBERS))
        grouped = (product(standardised, _MEMBERS) / np.maximum(n_there, 1.0) - self.middle) / self.width
        return np.concatenate([np.where(n_there > 0, grouped, 0.0), standardised], axis=1)

    def as_state(self) -> dict[str, Any]:
        """JSON-able: feature and concept names with their two numbers each."""
        features, concepts = np.stack([self.centre, self.spread], 1), np.stack([self.middle, self.width], 1)
        return {
            "n_items": self.n_items,
            "features": dict(zip(FEATURES, features.tolist(), strict=True)),
            "concepts": dict(zip(KEYS[:GROUPED], concepts.tolist(), strict=True)),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Scaling:
        """What `as_state` gave.  JudgeError for a damaged state, and for one of a version with other features."""
        try:
            rows = [state["features"][name] for name in FEATURES] + [state["concepts"][key] for key in KEYS[:GROUPED]]
            numbers, n_items = np.array(rows, dtype=np.float64), int(state["n_items"])
            known = len(state["features"]) + len(state["concepts"]) == len(rows) and numbers.shape == (len(rows), 2)
        except (KeyError, TypeError, ValueError):
            known = False
        if not known or not (np.abs(numbers) <= 1e9).all() or (numbers[:, 1] < 1e-9).any():
            raise JudgeError(
                "The offline judge's state is damaged, or was written by another version with other features. "
                "Calibrate again."
            )
        features, concepts = np.split(numbers, [len(FEATURES)])
        return cls(features[:, 0], features[:, 1], concepts[:, 0], concepts[:, 1], n_items)


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """The matrix product (n, k) × (k, m), every element summed in the order of k.

    A library product sums in an order that depends on the shapes: an item's last bits would depend on its batch.
    """
    total = np.zeros((left.shape[0], right.shape[1]))
    for column, row in zip(left.T, right, strict=True):
        total += column[:, None] * row
    return total


_MEMBERS: FloatArray = np.array([[concept.features.get(name, 0.0) for concept in _GROUPS] for name in FEATURES])
"""(n_features, GROUPED) +1 or −1 where a feature makes up a grouped concept."""


@lru_cache(maxsize=8)
def applicable(kind: ItemKind) -> FloatArray:
    """(n_concepts,) 1 where items of this kind have at least one of the concept's features, else 0."""
    return np.array([float(not features_of(kind).isdisjoint(concept.features)) for concept in CONCEPTS])


def fit(items: Sequence[Item], kind: ItemKind) -> Scaling:
    """Scaling from items without labels; shipped values where fewer than `LEAST` items show a feature."""
    features = feature_matrix(items, kind)
    if kind == "pair":  # neither side comes first
        features = np.concatenate([features, -features])
    centre, spread = NEUTRAL.centre.copy(), NEUTRAL.spread.copy()
    for column in range(features.shape[1]):
        values = features[np.isfinite(features[:, column]), column]
        if len(values) >= LEAST:
            centre[column] = values.mean().round(DECIMALS)
            deviation = float(values.std().round(DECIMALS))
            spread[column] = deviation if deviation > 0 else max(NEUTRAL.spread[column], 1e-3)
    written = features[np.isfinite(features).any(axis=1)]
    if len(written) < LEAST:
        return Scaling(centre, spread, NEUTRAL.middle, NEUTRAL.width, len(items))
    values = Scaling(centre, spread, np.zeros(GROUPED), np.ones(GROUPED)).concepts(written)[:, :GROUPED]
    middle, width = values.mean(axis=0).round(DECIMALS), np.maximum(values.std(axis=0), MIN_WIDTH).round(DECIMALS)
    return Scaling(centre, spread, middle, width, len(items))


_MEANS, _SPREADS = np.array([*USUAL.values()]).T
NEUTRAL = Scaling(_MEANS, _SPREADS, np.zeros(GROUPED), np.full(GROUPED, 0.7))


LEVELS: dict[float, str] = {2.0: "Above all, ", 1.5: "Strongly ", 1.0: "", 0.5: "To some extent, ", 0.25: "Slightly "}
"""Strength of a clause and how it is said, strongest first."""

MAX_CHARS = 20_000
MAX_WEIGHT = 3.0
"""Of a concept that is named more than once."""
MAX_STRENGTH = 99.99
MOST_IN_PROSE = 8
"""Clauses that make a paragraph; more are a list, a line each."""


class Clause(NamedTuple):
    """One concept with a signed weight."""

    key: str
    weight: float


@dataclass(frozen=True, slots=True)
class CriteriaReading:
    """Criteria as the offline judge reads them. `whole` is whether the aspect itself counts next to the clauses;
    `unread` has no effect.
    """

    clauses: tuple[Clause, ...]
    whole: bool
    unread: tuple[str, ...] = ()

    def weights(self, prior: FloatArray) -> FloatArray:
        """(n_concepts,) weights: the prior where the aspect counts as a whole (always, if no clause was read)."""
        total = prior.copy() if self.whole or not self.clauses else np.zeros(len(KEYS))
        for clause in self.clauses:
            total[POSITION[clause.key]] += clause.weight
        return total


def nearest_level(weight: float) -> float:
    """The level of `LEVELS` closest to a weight other than 0, with its sign."""
    level = min(LEVELS, key=lambda level: abs(level - abs(weight)))
    return level if weight > 0 else -level


def write(clauses: Sequence[Clause], aspect: str, kind: ItemKind, *, whole: bool) -> str:
    """Readable criteria: an opening that names the aspect, then a sentence for each clause, strongest first.

    Weights that are no levels of `LEVELS` are written as strengths of two decimals, at most `MAX_STRENGTH`.  With each
    concept at most once, `read` gives the weights back exactly.
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
_LEADS = {text.strip().lower(): level for level, text in LEVELS.items()}
_OPENING = re.compile(
    r"judge the .+ of the (?:text|reply) (?:as a whole, with these points in mind|(?P<only>by these points only))"
)
_CLAUSE = re.compile(
    rf"(?P<lead>{'|'.join(filter(None, _LEADS))}|)\s?(?P<verb>reward|penalise) (?:texts|replies) that (?P<phrase>.+?)"
    r"(?: \(strength (?P<strength>\d{1,2}(?:\.\d{1,2})?)\))?"
)
_SENTENCES = re.compile(r"\n|(?<=\.)\s+")


@lru_cache(maxsize=4096)
def read(text: str) -> CriteriaReading:
    """Parse criteria written as prose or as a list, ignoring case and white space.

    A concept named more than once takes the sum, within ±`MAX_WEIGHT`.
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
            strength = float(clause["strength"] or _LEADS[clause["lead"]])
            weights.setdefault(key, []).append(-pole * strength if clause["verb"] == "penalise" else pole * strength)
        else:
            unread.append(sentence)
    sums = (
        Clause(key, each[0] if len(each) == 1 else max(-MAX_WEIGHT, min(MAX_WEIGHT, sum(each))))
        for key, each in weights.items()
    )
    return CriteriaReading(tuple(clause for clause in sums if clause.weight), whole, tuple(unread))


def states_strength(text: str) -> bool:
    """Whether criteria weigh something by a number, as fitted ones do."""
    return "(strength " in text.lower()
