"""The grammar of criteria that the offline judge writes and reads.

    Judge the coherence of the text as a whole, with these points in mind.
    Strongly reward texts that tie each sentence to the others.
    Reward texts that use many commas (strength 0.37).

An opening says whether the aspect itself counts next to the clauses ("by these points only" leaves it out).  Each
clause names one concept of `concepts.yaml` or `measures.yaml` by its phrase.  Other lines have no effect; `read` lists
them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from core.judging.offline.features import CONCEPTS, KEYS, POSITION
from core.records import FloatArray, ItemKind

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
    """What criteria say.  `whole` is whether the aspect itself counts next to the clauses; `unread` has no effect."""

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
    """What criteria say, whatever their case and white space, as prose or as a list.

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
