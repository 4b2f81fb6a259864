"""The language of criteria, the writing half: clauses with weights, and criteria texts written from them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from core.judging.offline.concepts import CONCEPTS, KEYS, POSITION
from core.records import FloatArray, ItemKind

LEVELS: dict[float, str] = {2.0: "Above all, ", 1.5: "Strongly ", 1.0: "", 0.5: "To some extent, ", 0.25: "Slightly "}
"""Strength of a clause and how it is said, strongest first."""

_NOUNS: dict[ItemKind, str] = {
    "single": "texts",
    "source_target": "texts",
    "source_context_target": "replies",
    "conversation": "replies",
    "data_text": "texts",
}


@dataclass(frozen=True, slots=True)
class Clause:
    """One concept with a signed weight; `text` is the wording it was read from."""

    key: str
    weight: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What criteria were understood to say.  `whole` is whether the aspect itself counts beside the clauses.

    `ignored` are concepts that are expressly not to matter; `unread` are sentences in which nothing was recognised.
    """

    clauses: tuple[Clause, ...]
    whole: bool
    ignored: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def weights(self, prior: FloatArray) -> FloatArray:
        """(n_concepts,) weights: the prior where the aspect counts as a whole (always, if no clause was read)."""
        total = prior.copy() if self.whole or not self.clauses else np.zeros(len(KEYS))
        for clause in self.clauses:
            total[POSITION[clause.key]] += clause.weight
        for key in self.ignored:
            total[POSITION[key]] = 0.0
        return total


def nearest_level(strength: float) -> float:
    """The level of `LEVELS` closest to a positive strength."""
    return min(LEVELS, key=lambda level: abs(level - strength))


def write(
    clauses: tuple[Clause, ...], aspect: str, kind: ItemKind, *, whole: bool, ignored: tuple[str, ...] = ()
) -> str:
    """Readable criteria: an opening that names the aspect, then a sentence a clause, strongest first.

    Weights must be levels of `LEVELS` with a sign, each concept at most once; `reading.read` gives them back exactly.
    """
    noun = _NOUNS[kind]
    name = " ".join(re.sub(r"[\W_]+", " ", aspect).split()) or "quality"
    opening = (
        f"Judge the {name} of the {_singular(noun)} as a whole, with these points in mind."
        if whole
        else f"Judge the {name} of the {_singular(noun)} by these points only."
    )
    ordered = sorted(clauses, key=lambda c: (-abs(c.weight), POSITION[c.key]))
    switched_off = [f"Ignore whether {noun} {CONCEPTS[POSITION[key]].high}." for key in ignored]
    return " ".join([opening, *(_sentence(clause, noun) for clause in ordered), *switched_off])


def _singular(noun: str) -> str:
    return {"texts": "text", "replies": "reply"}[noun]


def _sentence(clause: Clause, noun: str) -> str:
    concept = CONCEPTS[POSITION[clause.key]]
    penalise = concept.one_way and concept.defect == (clause.weight > 0)
    phrase = concept.high if (clause.weight > 0) != penalise else concept.low
    lead = LEVELS[abs(clause.weight)]
    verb = "penalise" if penalise else "reward"
    return f"{lead}{verb if lead else verb.capitalize()} {noun} that {phrase}."
