"""Changing criteria so that misaligned items come closer (001 §2.5 without a language model).

Each misaligned item says in which direction its score should move; each concept says by how much a change of its
weight would move it.  One operation is drawn per request: add a clause (what others call "add"), strengthen, weaken,
flip or drop one ("modify"), or let the aspect as a whole count or not ("calibrate").  There is no paraphrasing: this
judge reads meanings, so another wording of a clause would give every item the same score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.judging.base import OPERATIONS, Operation
from core.judging.offline.clauses import LEVELS, Clause, Reading, nearest_level, write
from core.judging.offline.concepts import CONCEPTS, POSITION
from core.records import FloatArray, Task

MAX_CLAUSES = 8


@dataclass(frozen=True)
class Pull:
    """(n_concepts,) mean move of the misaligned items towards their labels per unit of weight."""

    towards: FloatArray

    def of(self, key: str) -> float:
        return float(self.towards[POSITION[key]])


def pull(values: FloatArray, gaps: FloatArray) -> Pull:
    """From concept values (n, n_concepts) and gaps label − score (n,) of the misaligned items."""
    share = gaps / max(float(np.abs(gaps).max()), 1e-9)
    return Pull(np.asarray(share @ values / len(gaps)))


@dataclass(frozen=True, slots=True)
class Change:
    """A proposal: the clauses after one operation, how much it should help, and which operation it was."""

    clauses: tuple[Clause, ...]
    whole: bool
    promise: float
    operation: Operation


def changes(reading: Reading, pulls: Pull, usable: FloatArray, prior: FloatArray) -> list[Change]:
    """Every single operation that moves the misaligned items towards their labels, best first."""
    found = _additions(reading, pulls, usable)
    for i, clause in enumerate(reading.clauses):
        for weight in _other_weights(clause):
            gain = (weight - clause.weight) * pulls.of(clause.key)
            rest = (*reading.clauses[:i], *([Clause(clause.key, weight)] if weight else []), *reading.clauses[i + 1 :])
            if gain > 0 and (rest or not reading.whole):
                found.append(Change(rest, reading.whole, gain, "modify"))
    swing = float(prior @ pulls.towards) * (-1.0 if reading.whole else 1.0)
    if swing > 0 and reading.clauses:
        found.append(Change(reading.clauses, not reading.whole, swing, "calibrate"))
    return sorted((change for change in found if change.clauses), key=lambda change: -change.promise)


def _additions(reading: Reading, pulls: Pull, usable: FloatArray) -> list[Change]:
    used = {clause.key for clause in reading.clauses} | set(reading.ignored)
    if len(reading.clauses) >= MAX_CLAUSES:
        return []
    found = []
    for concept, allowed in zip(CONCEPTS, usable, strict=True):
        direction = float(np.sign(pulls.of(concept.key)))
        if concept.key in used or not allowed or not direction or (concept.one_way and direction < 0):
            continue
        for weight in (1.0, 0.5):
            added = (*reading.clauses, Clause(concept.key, direction * weight))
            found.append(Change(added, reading.whole, abs(pulls.of(concept.key)) * weight, "add"))
    return found


def _other_weights(clause: Clause) -> list[float]:
    """The next level up and down, none at all, and the opposite sign for matters of taste."""
    levels = sorted(LEVELS)
    at = levels.index(nearest_level(abs(clause.weight)))
    sign = 1.0 if clause.weight > 0 else -1.0
    near = [sign * levels[i] for i in (at - 1, at + 1) if 0 <= i < len(levels)]
    two_way = not CONCEPTS[POSITION[clause.key]].one_way
    return [*near, 0.0, *([-sign * levels[at]] if two_way or sign < 0 else [])]


def refine(
    reading: Reading,
    pulls: Pull,
    task: Task,
    *,
    prior: FloatArray,
    usable: FloatArray,
    temperature: float,
    seed: int,
    operations: Sequence[Operation] = OPERATIONS,
) -> str:
    """One changed criteria text; "" when none of `operations` helps.  Temperature 0 takes the most promising change."""
    levelled = as_levels(reading)
    options = [one for one in changes(levelled, pulls, usable, prior) if one.operation in operations]
    if not options:
        return ""
    promise = np.array([option.promise for option in options])
    rng = np.random.default_rng([seed, 2])
    if temperature <= 0:
        choice = options[0]
    else:
        odds = (promise / promise.max()) ** (1 / temperature)
        choice = options[int(rng.choice(len(options), p=odds / odds.sum()))]
    return write(choice.clauses, task.aspect, task.kind, whole=choice.whole, ignored=levelled.ignored)


def as_levels(reading: Reading) -> Reading:
    """Weights moved to the nearest level that can be written, each concept once."""
    clauses = tuple(
        Clause(c.key, (1.0 if c.weight > 0 else -1.0) * nearest_level(abs(c.weight)), c.text) for c in reading.clauses
    )
    return Reading(clauses, reading.whole, reading.ignored, reading.unread)
