"""The language of criteria, the reading half: the judge's own sentences exactly, people's wording by its words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from core.judging.offline.clauses import LEVELS, Clause, Reading
from core.judging.offline.concepts import CONCEPTS, POSITION, Concept
from core.judging.offline.cues import IGNORE, NEGATION, ONLY, PENALISE, REWARD, STRENGTHS
from core.judging.offline.wordings import poles

MAX_CHARS = 20_000
MAX_WEIGHT = 3.0
NEGATION_REACH = 4
"""Words between a negation and what it negates, at most."""

_PHRASES: dict[str, tuple[str, float]] = {c.high: (c.key, 1.0) for c in CONCEPTS} | {
    c.low: (c.key, -1.0) for c in CONCEPTS
}
_NOUN = r"(?:texts?|repl(?:y|ies)|summar(?:y|ies)|responses?|descriptions?|answers?|outputs?)"
_WRITTEN = re.compile(
    r"(?P<lead>above all,?|strongly|to some extent,?|slightly)?\s*(?P<verb>reward|penali[sz]e)\s+"
    rf"{_NOUN}\s+that\s+(?P<phrase>.+)"
)
_WRITTEN_OFF = re.compile(rf"ignore whether {_NOUN} (?P<phrase>.+)")
_LEADS = {text.strip(" ,").lower(): level for level, text in LEVELS.items()}
_OPENING = re.compile(r"judge the .+ of the \w+ (?:as a whole, with these points in mind|by these points only)")
_SENTENCES = re.compile(r"\s*\n[\s\-*•]*|(?<=[.!?;])\s+(?:[-*•]\s+)?|(?<=;)|^\s*[-*•]\s+")
_PARTS = re.compile(r",\s+|\s+(?=(?:but|while|whereas|however|rather than|instead of)\b)")
_POOR_BEFORE = re.compile(r"\b(?:poor|bad|weak|little|insufficient)\s+$")
_FAULT_AFTER = re.compile(r"\s+(?:error|mistake|problem|issue|flaw|slip|lapse)s?\b")


@dataclass
class _State:
    """What is carried on while sentences are read."""

    clauses: dict[str, list[Clause]] = field(default_factory=dict)
    ignored: dict[str, None] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)

    def add(self, clause: Clause) -> None:
        self.clauses.setdefault(clause.key, []).append(clause)


@lru_cache(maxsize=4096)
def read(text: str) -> Reading:
    """What criteria say.  Sentences in the judge's own wording are read exactly, others by the words in them.

    A part of a sentence names concepts by their words; strength words weigh it; "penalise", "avoid", "not", "without"
    and the like turn it; "ignore" or "does not matter" switches the concept off.  A concept named more than once takes
    the sum, within ±`MAX_WEIGHT`.
    """
    state, whole = _State(), True
    for sentence in filter(None, (part.strip() for part in _SENTENCES.split(text[:MAX_CHARS]))):
        plain = " ".join(sentence.lower().replace("’", "'").split()).rstrip(".!;")
        whole = whole and not ONLY.search(plain)
        if _OPENING.fullmatch(plain):
            continue
        off = _WRITTEN_OFF.fullmatch(plain)
        if off and off["phrase"] in _PHRASES:
            state.ignored[_PHRASES[off["phrase"]][0]] = None
            continue
        exact = _read_written(plain, sentence)
        if exact:
            state.add(exact)
        elif not _read_free(plain, sentence, state) and re.search(r"[^\W\d]", plain):
            state.unread.append(sentence)
    clauses = tuple(_merged(parts) for parts in state.clauses.values())
    return Reading(tuple(c for c in clauses if c.weight), whole, tuple(state.ignored), tuple(state.unread))


def _merged(parts: list[Clause]) -> Clause:
    total = max(-MAX_WEIGHT, min(MAX_WEIGHT, sum(part.weight for part in parts)))
    return Clause(parts[0].key, total, " … ".join(dict.fromkeys(part.text for part in parts)))


def _read_written(plain: str, sentence: str) -> Clause | None:
    match = _WRITTEN.fullmatch(plain)
    if match is None or match["phrase"] not in _PHRASES:
        return None
    key, pole = _PHRASES[match["phrase"]]
    sign = -pole if match["verb"].startswith("penal") else pole
    return Clause(key, sign * _LEADS[(match["lead"] or "").strip(" ,")], sentence)


def _read_free(plain: str, sentence: str, state: _State) -> bool:
    """Read a sentence of somebody's own wording into `state`; whether any concept was named in it."""
    verb, strength, any_named = 0.0, 1.0, False
    for part in filter(None, _PARTS.split(plain)):
        own = next((level for pattern, level in STRENGTHS if pattern.search(part)), None)
        strength = own if own is not None else strength
        found = _named(part)
        verbs = _verbs(part, found)
        for named in found:
            any_named = True
            if IGNORE.search(part):
                state.ignored[named.concept.key] = None
                continue
            sense = _sense(verbs, named.start) or verb
            sign = named.pole * (sense or 1.0) * (-1.0 if _negated(part, named, found, verbs) else 1.0)
            if named.concept.one_way and not sense:
                sign = 1.0
            state.add(Clause(named.concept.key, sign * strength, sentence))
        verb = verbs[-1].sense if verbs else verb
        strength = 1.0 if found else strength
    return any_named


class _Named(NamedTuple):
    """A concept named in a part of a sentence: at which pole (±1) and where the naming words stand."""

    concept: Concept
    pole: float
    start: int
    end: int


class _Verb(NamedTuple):
    """A word that says reward (+1) or penalise (−1), turned where a negation stands right before it."""

    sense: float
    start: int
    negation: int


def _named(part: str) -> list[_Named]:
    """Concepts named in a part.

    Where words of both poles occur the low pole counts ("miss key facts"); "poor grammar" and "grammar mistakes"
    name the low pole of grammar.
    """
    found = []
    for key, (high, low) in poles().items():
        ups, downs = list(high.finditer(part)), list(low.finditer(part))
        downs = [d for d in downs if not any(u.start() <= d.start() and d.end() <= u.end() for u in ups)]
        if ups or downs:
            match = (downs or ups)[0]
            poor = _POOR_BEFORE.search(part[: match.start()])
            low_pole = bool(downs) or poor is not None or _FAULT_AFTER.match(part, match.end()) is not None
            start = poor.start() if poor else match.start()
            found.append(_Named(CONCEPTS[POSITION[key]], -1.0 if low_pole else 1.0, start, match.end()))
    return found


def _verbs(part: str, found: list[_Named]) -> list[_Verb]:
    """The reward and penalise words of a part in order, those inside naming words left out."""
    taken = [range(named.start, named.end) for named in found]
    verbs = []
    for sense, pattern in ((-1.0, PENALISE), (1.0, REWARD)):
        for match in pattern.finditer(part):
            if any(match.start() in span for span in taken):
                continue
            before = [m for m in NEGATION.finditer(part[: match.start()]) if _gap(part, m.end(), match.start()) <= 1]
            turned = bool(before) and not any(before[-1].start() in span for span in taken)
            verbs.append(_Verb(-sense if turned else sense, match.start(), before[-1].start() if turned else -1))
    return sorted(verbs, key=lambda verb: verb.start)


def _sense(verbs: list[_Verb], start: int) -> float:
    """The sense of the last verb before `start`, else of the first one after it, else 0."""
    before = [verb.sense for verb in verbs if verb.start <= start]
    return before[-1] if before else verbs[0].sense if verbs else 0.0


def _negated(part: str, named: _Named, found: list[_Named], verbs: list[_Verb]) -> bool:
    """Whether an odd number of negations stands within reach before the naming words."""
    taken = [range(other.start, other.end) for other in found]
    used = {verb.negation for verb in verbs}
    reach = [
        m
        for m in NEGATION.finditer(part[: named.start])
        if m.start() not in used
        and not any(m.start() in span for span in taken)
        and _gap(part, m.end(), named.start) <= NEGATION_REACH
    ]
    return len(reach) % 2 == 1


def _gap(part: str, end: int, start: int) -> int:
    return len(part[end:start].split())
