"""What the offline judge can be told to look at (`concepts.yaml`): groups of features with a direction, and words.

A concept's value is positive at its *high* pole.  One-way concepts have a good pole that nobody doubts (say only what
the source says); the others are matters of taste (long or short) that the labels must decide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from core.judging.offline.features import INDEX
from core.judging.offline.lexicon import table
from core.records import FloatArray, ItemKind, Task

_TABLE: dict[str, Any] = table("concepts")


@dataclass(frozen=True, slots=True)
class Concept:
    """`features` are names with a sign (−1 lowers the value).  `high` and `low` complete "texts that …".

    `high_words` and `low_words` find the words by which people name the poles.  A defect is worded by its low pole
    ("penalise texts that repeat themselves").
    """

    key: str
    kind: Literal["good", "defect", "taste"]
    features: dict[str, float]
    high: str
    low: str
    high_words: re.Pattern[str]
    low_words: re.Pattern[str]

    @property
    def one_way(self) -> bool:
        return self.kind != "taste"


def expression(words: str) -> re.Pattern[str]:
    """An expression for any of some comma-separated words, whole words only, "*" for any ending; longest first."""
    parts = sorted((part.strip() for part in words.split(",")), key=len, reverse=True)
    body = "|".join(re.escape(p.rstrip("*")).replace("\\ ", r"\s") + (r"\w*" if p.endswith("*") else "") for p in parts)
    return re.compile(rf"(?<![\w-])(?:{body})(?!\w)")


def _concept(key: str, kind: Literal["good", "defect", "taste"], features: str, **poles: str) -> Concept:
    signed = {name.lstrip("-"): -1.0 if name.startswith("-") else 1.0 for name in features.split()}
    if unknown := signed.keys() - INDEX.keys():
        raise ValueError(f"concepts.yaml, {key}: unknown features {sorted(unknown)}.")
    words = {name: expression(poles[name]) for name in ("high_words", "low_words")}
    return Concept(key, kind, signed, poles["high"], poles["low"], **words)


CONCEPTS: tuple[Concept, ...] = tuple(_concept(key, **row) for key, row in _TABLE["concepts"].items())
KEYS: tuple[str, ...] = tuple(concept.key for concept in CONCEPTS)
POSITION: dict[str, int] = {key: i for i, key in enumerate(KEYS)}
CUES: dict[str, re.Pattern[str]] = {name: expression(words) for name, words in _TABLE["cues"].items()}
"""Words that turn ("penalise", "reward", "negation"), switch off ("ignore") or let count alone ("only") a clause."""
STRENGTHS: dict[float, re.Pattern[str]] = {weight: expression(words) for weight, words in _TABLE["strengths"].items()}
"""Weight → the words that give it; the first that fits counts, 1.0 without any."""


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
