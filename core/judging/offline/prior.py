"""What an aspect's name and definition already say, before any label is seen: weights over concepts.

These are plain expectations (fluency is about grammar, finished sentences and clean punctuation), set by hand and
fitted to no labels; they are the judge without criteria and the drafter's starting point.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np

from core.judging.offline.concepts import KEYS, POSITION
from core.records import FloatArray, ItemKind, Task

_BASE: dict[str, float] = {
    "repetition": 0.4,
    "finished": 0.5,
    "clean": 0.5,
    "grammar": 0.5,
    "sentences": 0.4,
    "committed": 0.3,
    "length": 0.15,
    "moderate": 0.3,
    "variety": 0.2,
}
_BY_KIND: dict[ItemKind, dict[str, float]] = {
    "single": {},
    "source_target": {"faithful": 0.4, "names": 0.3, "splices": 0.3, "copying": 0.3, "coverage": 0.4},
    "source_context_target": {"responsive": 0.4, "uses_fact": 0.5, "fresh": 0.3, "on_topic": 0.3},
    "conversation": {"responsive": 0.4, "fresh": 0.3},
    "data_text": {"slots_told": 0.7, "slots_extra": 0.3, "slots_once": 0.3},
}
_BY_WORD: tuple[tuple[str, dict[str, float]], ...] = (
    (
        r"coheren|cohesi|structur|organi[sz]|flow",
        {"linked": 0.7, "repetition": 0.8, "stands_alone": 0.6, "order": 0.6, "splices": 0.4, "focus": 0.4}
        | {"responsive": 1.0, "on_topic": 0.6, "variety": 0.4, "connectives": 0.3, "lead": 0.3},
    ),
    (
        r"consisten|faithful|factual|fact\b|support|hallucinat|accura|truth|correct|meaning|adequa|semantic",
        {"faithful": 1.2, "names": 0.9, "splices": 0.9, "copying": 0.7, "denial": 0.4}
        | {"slots_told": 1.5, "slots_extra": 0.7, "uses_fact": 1.0, "coverage": 0.5},
    ),
    (
        r"fluen|gramma|natural|readab|quality of language|well[- ]?formed|understand|clarity|clear",
        {
            "grammar": 1.0,
            "sentences": 0.8,
            "finished": 1.0,
            "clean": 1.0,
            "repetition": 0.7,
            "capitals": 0.3,
            "splices": 0.5,
        }
        | {"variety": 0.3},
    ),
    (
        r"relevan|informati|coverage|content|importan|recall|complete|salien",
        {"coverage": 1.4, "lead": 0.5, "faithful": 0.4, "length": 0.4, "slots_told": 1.5, "uses_fact": 0.6},
    ),
    (
        r"engag|interest|specific|sensib",
        {
            "uses_fact": 0.8,
            "fresh": 0.8,
            "specific": 0.5,
            "length": 0.6,
            "feeling": 0.4,
            "questions": 0.3,
            "committed": 0.6,
        },
    ),
    (r"ground|knowledge|uses? fact", {"uses_fact": 1.8, "on_topic": 0.6, "faithful": 0.8, "committed": 0.3}),
    (r"simpl|easy|plain", {"readability": 0.9, "sentence_length": -0.5, "grammar": 0.4, "length": -0.2}),
    (r"concis|brief|compress", {"length": -1.2, "repetition": 0.8, "focus": 0.5}),
    (r"redundan|repetit", {"repetition": 2.0, "variety": 0.6, "slots_once": 1.0}),
)


def prior(task: Task) -> FloatArray:
    """(n_concepts,) weights expected for the task's aspect, of Euclidean length 2."""
    return _prior(f"{task.aspect} {task.definition}".lower(), task.aspect.lower(), task.kind)


@lru_cache(maxsize=256)
def _prior(words: str, name: str, kind: ItemKind) -> FloatArray:
    weights = np.zeros(len(KEYS))
    matched = False
    for pattern, entries in _BY_WORD:
        strength = 1.0 if re.search(rf"\b(?:{pattern})", name.replace("_", " ")) else 0.0
        strength = strength or (0.4 if re.search(rf"\b(?:{pattern})", words) else 0.0)
        if strength:
            matched = True
            _add(weights, entries, strength)
    share = 0.4 if matched else 1.0
    _add(weights, _BASE, share)
    _add(weights, _BY_KIND[kind], share)
    weights *= 2 / np.linalg.norm(weights)
    weights.flags.writeable = False
    return weights


def _add(weights: FloatArray, entries: dict[str, float], share: float) -> None:
    for key, weight in entries.items():
        weights[POSITION[key]] += share * weight
