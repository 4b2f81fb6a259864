"""The language of criteria: clauses with weights, texts written from them, and texts read back.

The judge's own sentences are read exactly, people's wording by the words in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from core.judging.offline.features import CONCEPTS, CUES, GROUPED, KEYS, POSITION, STRENGTHS, Concept
from core.records import FloatArray, ItemKind

LEVELS: dict[float, str] = {2.0: "Above all, ", 1.5: "Strongly ", 1.0: "", 0.5: "To some extent, ", 0.25: "Slightly "}
"""Strength of a clause and how it is said, strongest first."""

MAX_CHARS = 20_000
MAX_WEIGHT = 3.0
"""Of a concept that is named more than once."""
MAX_STRENGTH = 99.99
MOST_IN_PROSE = 8
"""Clauses that make a paragraph; more are a list, a line each."""
NEGATION_REACH = 4
"""Words between a negation and what it negates, at most."""


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


def nearest_level(weight: float) -> float:
    """The level of `LEVELS` closest to a weight other than 0, with its sign."""
    level = min(LEVELS, key=lambda level: abs(level - abs(weight)))
    return level if weight > 0 else -level


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────


def write(
    clauses: tuple[Clause, ...], aspect: str, kind: ItemKind, *, whole: bool, ignored: tuple[str, ...] = ()
) -> str:
    """Readable criteria: an opening that names the aspect, then a sentence a clause, strongest first; many make a list.

    Weights that are no levels of `LEVELS` are written as strengths of two decimals, at most `MAX_STRENGTH`.  With each
    concept at most once, `read` gives the weights back exactly.
    """
    thing, things = ("reply", "replies") if kind in ("source_context_target", "conversation") else ("text", "texts")
    name = " ".join(re.sub(r"[\W_]+", " ", aspect).split()) or "quality"
    points = "as a whole, with these points in mind" if whole else "by these points only"
    ordered = sorted(clauses, key=lambda clause: (-abs(clause.weight), POSITION[clause.key]))
    sentences = [_sentence(clause, things) for clause in ordered]
    switched_off = [f"Ignore whether {things} {CONCEPTS[POSITION[key]].high}." for key in ignored]
    between = " " if len(sentences) <= MOST_IN_PROSE else "\n- "
    return between.join([f"Judge the {name} of the {thing} {points}.", *sentences, *switched_off])


def _sentence(clause: Clause, things: str) -> str:
    concept = CONCEPTS[POSITION[clause.key]]
    penalise = concept.one_way and (concept.kind == "defect") == (clause.weight > 0)
    phrase = concept.high if (clause.weight > 0) != penalise else concept.low
    lead, verb = LEVELS.get(abs(clause.weight), ""), "penalise" if penalise else "reward"
    strength = "" if abs(clause.weight) in LEVELS else f" (strength {abs(clause.weight):.2f})"
    return f"{lead}{verb if lead else verb.capitalize()} {things} that {phrase}{strength}."


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────

_PHRASES: dict[str, tuple[str, float]] = {
    phrase: (c.key, pole) for c in CONCEPTS for phrase, pole in ((c.high, 1.0), (c.low, -1.0))
}
_MEASURES = {
    p: _PHRASES[p] for p in sorted((p for c in CONCEPTS[GROUPED:] for p in (c.high, c.low)), key=len, reverse=True)
}
"""Those of single features, the longest first: one may stand within another."""
_NOUN = r"(?:texts?|repl(?:y|ies)|summar(?:y|ies)|responses?|descriptions?|answers?|outputs?)"
_WRITTEN = re.compile(
    r"(?P<lead>above all,?|strongly|to some extent,?|slightly)?\s*(?P<verb>reward|penali[sz]e)\s+"
    rf"{_NOUN}\s+that\s+(?P<phrase>.+)"
)
_STRENGTH = re.compile(r"\s*\(strength (\d{1,2}(?:\.\d{1,2})?)\)")
_WRITTEN_OFF = re.compile(rf"ignore whether {_NOUN} (?P<phrase>.+)")
_LEADS = {text.strip(" ,").lower(): level for level, text in LEVELS.items()}
_OPENING = re.compile(r"judge the .+ of the \w+ (?:as a whole, with these points in mind|by these points only)")
_SENTENCES = re.compile(r"\s*\n[\s\-*•]*|(?<=[.!?;])\s+(?:[-*•]\s+)?|(?<=;)|^\s*[-*•]\s+")
_PARTS = re.compile(r",\s+|\s+(?=(?:but|while|whereas|however|rather than|instead of)\b)")
_POOR_BEFORE = re.compile(r"\b(?:poor|bad|weak|little|insufficient)\s+$")
_FAULT_AFTER = re.compile(r"\s+(?:error|mistake|problem|issue|flaw|slip|lapse)s?\b")


@dataclass
class _Notes:
    """What is carried on while sentences are read."""

    clauses: dict[str, list[Clause]] = field(default_factory=dict)
    ignored: dict[str, None] = field(default_factory=dict)

    def add(self, clause: Clause) -> None:
        self.clauses.setdefault(clause.key, []).append(clause)


@lru_cache(maxsize=4096)
def read(text: str) -> Reading:
    """What criteria say.  Sentences in the judge's own wording are read exactly, others by the words in them.

    A part of a sentence names concepts by their words; strength words or "(strength 0.37)" weigh it; "penalise",
    "avoid", "not", "without" and the like turn it; "ignore" or "does not matter" switches the concept off. A concept
    named more than once takes the sum, within ±`MAX_WEIGHT`.
    """
    notes, whole, unread = _Notes(), True, []
    for sentence in filter(None, (part.strip() for part in _SENTENCES.split(text[:MAX_CHARS]))):
        plain = " ".join(sentence.lower().replace("’", "'").split()).rstrip(".!;")
        whole = whole and not CUES["only"].search(plain)
        known = _OPENING.fullmatch(plain) or _read_written(plain, sentence, notes) or _read_free(plain, sentence, notes)
        if not known and re.search(r"[^\W\d]", plain):
            unread.append(sentence)
    clauses = (_merged(parts) for parts in notes.clauses.values())
    return Reading(tuple(c for c in clauses if c.weight), whole, tuple(notes.ignored), tuple(unread))


def states_strength(text: str) -> bool:
    """Whether criteria weigh something by a number, as fitted ones do."""
    return _STRENGTH.search(text.lower()) is not None


def _merged(parts: list[Clause]) -> Clause:
    if len(parts) == 1:
        return parts[0]
    total = max(-MAX_WEIGHT, min(MAX_WEIGHT, sum(part.weight for part in parts)))
    return Clause(parts[0].key, total, " … ".join(dict.fromkeys(part.text for part in parts)))


def _read_written(plain: str, sentence: str, notes: _Notes) -> bool:
    """Read a sentence of the judge's own wording into `notes`; whether it is one."""
    stated = _STRENGTH.search(plain)
    plain = _STRENGTH.sub("", plain)
    off, match = _WRITTEN_OFF.fullmatch(plain), _WRITTEN.fullmatch(plain)
    if off and off["phrase"] in _PHRASES:
        notes.ignored[_PHRASES[off["phrase"]][0]] = None
        return True
    if match is None or match["phrase"] not in _PHRASES:
        return False
    key, pole = _PHRASES[match["phrase"]]
    sign = -pole if match["verb"].startswith("penal") else pole
    weight = float(stated[1]) if stated else _LEADS[(match["lead"] or "").strip(" ,")]
    notes.add(Clause(key, sign * weight, sentence))
    return True


def _read_free(plain: str, sentence: str, notes: _Notes) -> bool:
    """Read a sentence of somebody's own wording into `notes`; whether any concept was named in it."""
    stated = _STRENGTH.search(plain)
    sense, strength, any_named = 0.0, 1.0, False  # those of the part before hold on
    for text in filter(None, _PARTS.split(_STRENGTH.sub("", plain))):
        strength = next((weight for weight, words in STRENGTHS.items() if words.search(text)), strength)
        strength = float(stated[1]) if stated else strength
        part = _Part(text)
        for named in part.named:
            any_named = True
            if CUES["ignore"].search(text):
                notes.ignored[named.concept.key] = None
                continue
            own = part.sense(named) or sense
            sign = named.pole * (own or 1.0) * (-1.0 if part.negates(named) else 1.0)
            if named.concept.one_way and not own:
                sign = 1.0
            notes.add(Clause(named.concept.key, sign * strength, sentence))
        sense = part.verbs[-1].sense if part.verbs else sense
        strength = 1.0 if part.named else strength
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


class _Part:
    """A part of a sentence: the concepts it names and the verbs that say what to do about them, in order."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.named = list(self._find_named())
        self.verbs = sorted(self._find_verbs(), key=lambda verb: verb.start)

    def sense(self, named: _Named) -> float:
        """The sense of the last verb before the naming words, else of the first one after them, else 0."""
        before = [verb.sense for verb in self.verbs if verb.start <= named.start]
        return before[-1] if before else self.verbs[0].sense if self.verbs else 0.0

    def negates(self, named: _Named) -> bool:
        """Whether an odd number of negations, not taken by a verb, stands within reach before the naming words."""
        used = {verb.negation for verb in self.verbs}
        reach = self._negations(named.start, NEGATION_REACH)
        return sum(start not in used and not self._names(start) for start in reach) % 2 == 1

    def _find_named(self) -> Iterator[_Named]:
        """Where words of both poles occur the low pole counts ("miss key facts").

        "Poor grammar" and "grammar mistakes" name the low pole of grammar.
        """
        text = self.text
        for phrase, (key, pole) in _MEASURES.items():
            if (at := text.find(phrase)) >= 0:  # what stands in it names nothing else
                yield _Named(CONCEPTS[POSITION[key]], pole, at, at + len(phrase))
                text = text.replace(phrase, " " * len(phrase))
        for concept in CONCEPTS[:GROUPED]:
            highs = list(concept.high_words.finditer(text))
            lows = list(concept.low_words.finditer(text))
            lows = [low for low in lows if not any(h.start() <= low.start() and low.end() <= h.end() for h in highs)]
            if not highs and not lows:
                continue
            match = (lows or highs)[0]
            poor = _POOR_BEFORE.search(self.text[: match.start()])
            low_pole = bool(lows) or poor is not None or _FAULT_AFTER.match(self.text, match.end()) is not None
            yield _Named(concept, -1.0 if low_pole else 1.0, (poor or match).start(), match.end())

    def _find_verbs(self) -> Iterator[_Verb]:
        """The reward and penalise words, those inside naming words left out."""
        for sense, words in ((-1.0, CUES["penalise"]), (1.0, CUES["reward"])):
            for match in words.finditer(self.text):
                if self._names(match.start()):
                    continue
                before = self._negations(match.start(), 1)
                turned = bool(before) and not self._names(before[-1])
                yield _Verb(-sense if turned else sense, match.start(), before[-1] if turned else -1)

    def _names(self, at: int) -> bool:
        """Whether the character at `at` belongs to words that name a concept."""
        return any(named.start <= at < named.end for named in self.named)

    def _negations(self, start: int, reach: int) -> list[int]:
        """Where the negations begin that end at most `reach` words before `start`."""
        before = self.text[:start]
        return [m.start() for m in CUES["negation"].finditer(before) if len(before[m.end() :].split()) <= reach]
