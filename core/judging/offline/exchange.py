"""Features of a reply in a dialogue (last turn, history, given fact) and of a text from structured data (slots)."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.judging.offline.grounding import Source, fragments, prepare
from core.judging.offline.lexicon import FUNCTION_WORDS, PLACEHOLDER_VALUES
from core.judging.offline.text import Text, cut, stem

Features = dict[str, float]

MAX_SOURCE, MAX_SLOTS = 20_000, 300

_TURN = re.compile(r"[\r\n]+|<br\s*/?>", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|_+")
_SLOT = re.compile(
    r"([\w ]{1,60}?)\s?[=:]\s*(?:'([^']*)'|\"([^\"]*)\"|\[([^\]]*)\]|([^,;()\[\]|]*))|([\w ]{1,60})\[([^\]]*)\]"
)


@dataclass(frozen=True)
class Dialogue:
    """A history and a given fact, prepared once for all replies."""

    history: Source
    last: frozenset[str]
    last_asks: bool
    fact: Source


def prepare_dialogue(history: str, fact: str) -> Dialogue:
    """Turns are lines; the last line that is not empty is what the reply answers."""
    turns = [turn for turn in _TURN.split(history) if turn.strip()]
    last = turns[-1] if turns else ""
    return Dialogue(prepare(history), frozenset(cut(last).content_stems), "?" in last, prepare(fact))


def measure_reply(text: Text, dialogue: Dialogue) -> Features:
    """Use of the fact, of the last turn and of the history; empty for a reply without words."""
    if not text.words:
        return {}
    content = text.counts
    total = max(1, sum(content.values()))
    history, fact = dialogue.history, dialogue.fact
    neither = sum(n for s, n in content.items() if s not in history.vocabulary and s not in fact.vocabulary)
    found = {
        "last_turn_overlap": len(content.keys() & dialogue.last) / math.sqrt(total * max(1, len(dialogue.last))),
        "log_last_turn_words": math.log1p(len(content.keys() & dialogue.last)),
        "history_overlap": sum(n for s, n in content.items() if s in history.vocabulary) / total,
        "log_said_before": math.log1p(_longest(text, history)),
        "unrelated_words": neither / total,
        "log_new_words": math.log1p(len([s for s in content if s not in history.vocabulary])),
        "answers_with_question": float(dialogue.last_asks and "?" in text.raw),
    }
    if fact.text.words:
        shared = [s for s in content if s in fact.vocabulary]
        fresh = [s for s in shared if s not in history.vocabulary]
        found |= {
            "fact_precision": sum(content[s] for s in shared) / total,
            "log_fact_words": math.log1p(len(shared)),
            "log_fresh_fact_words": math.log1p(len(fresh)),
            "fact_recall": len(shared) / max(1, len(fact.content)),
            "log_fact_copy": math.log1p(_longest(text, fact)),
            "fact_salience": sum(s in content for s in fact.salient[:8]) / max(1, len(fact.salient[:8])),
        }
    return found


def _longest(text: Text, source: Source) -> int:
    return max((f.length for f in fragments(text.stems, source) if f.length > 1), default=0)


@dataclass(frozen=True, slots=True)
class Slot:
    """One piece of structured data: its name and value in plain words."""

    name: str
    value: str

    @property
    def is_placeholder(self) -> bool:
        """Whether the value says nothing by itself ("yes", "none", "dont_care"): then the name must be voiced."""
        return self.value.lower().replace(" ", "_") in PLACEHOLDER_VALUES or self.value.lower() in PLACEHOLDER_VALUES


@dataclass(frozen=True)
class Data:
    """Slots of a source, with the stems each must be recognised by and all stems that the data allows."""

    slots: tuple[Slot, ...]
    wanted: tuple[frozenset[str], ...]
    allowed: frozenset[str]
    values: tuple[tuple[str, ...], ...]


def parse_slots(source: str) -> list[Slot]:
    """Slots of ``act(name='value', …)``, ``name[value]``, ``name: value`` and ``subject | relation | object`` data.

    Text in none of these forms is one slot without a name.
    """
    if "|" in source:
        return _triples(source)
    inside = source[source.index("(") + 1 :] if re.match(r"\s*\??\w+\(", source) else source
    slots = []
    for match in _SLOT.finditer(inside):
        name, quoted, double, bracket, bare, name2, bracket2 = match.groups()
        value = next((v for v in (quoted, double, bracket, bare, bracket2) if v is not None), "")
        slots.append(Slot(_plain(name or name2 or ""), _plain(value)))
    return slots or [Slot("", _plain(source))]


def _triples(source: str) -> list[Slot]:
    slots: list[Slot] = []
    subjects: dict[str, None] = {}
    for line in _TURN.split(source):
        parts = [_plain(part) for part in line.split("|")]
        if len(parts) >= 3:
            subjects.setdefault(parts[0])
            slots.append(Slot(parts[1], parts[2]))
        elif any(parts):
            slots.append(Slot("", " ".join(parts)))
    return [Slot("", subject) for subject in subjects] + slots


def _plain(text: str) -> str:
    return " ".join(_CAMEL.sub(" ", text).replace('"', " ").split())


def prepare_data(source: str) -> Data:
    """The slots of a source and the words that voice them."""
    slots = parse_slots(source[:MAX_SOURCE])[:MAX_SLOTS]
    wanted = [_key_stems(slot.name if slot.is_placeholder else slot.value) for slot in slots]
    names = frozenset(s for slot in slots for s in cut(slot.name).stems)
    values = tuple(cut("" if slot.is_placeholder else slot.value).stems for slot in slots)
    return Data(tuple(slots), tuple(wanted), frozenset().union(names, *wanted, *values), values)


def _key_stems(text: str) -> frozenset[str]:
    words = cut(text).words
    content = [word for word in words if word not in FUNCTION_WORDS] or list(words)
    return frozenset(map(stem, content))


def measure_data(text: Text, data: Data) -> Features:
    """Slots told, left out, told twice, in order; words that no slot explains; empty for a text without words."""
    if not text.words:
        return {}
    told = frozenset(text.stems)
    shares = [len(wanted & told) / len(wanted) for wanted in data.wanted if wanted]
    extra = extra_words(text, data)
    joined = f" {' '.join(text.stems)} "
    exact = [f" {' '.join(value)} " in joined for value in data.values if value]
    again = sum(max(0, joined.count(f" {' '.join(value)} ") - 1) for value in set(data.values) if value)
    places = [joined.find(f" {_first(w, joined)} ") for w in data.wanted if w and w <= told]
    steps = [b >= a for a, b in itertools.pairwise(places)]
    n = max(1, len(data.slots))
    return {
        "slots_told": _mean(shares, 1.0),
        "log_slots_missing": math.log1p(sum(share < 0.5 for share in shares)),
        "slots_exact": _mean([float(e) for e in exact], 1.0),
        "log_extra_words": math.log1p(len(extra)),
        "extra_share": len(extra) / len(text.words),
        "slots_repeated": math.log1p(again),
        "slots_in_order": _mean([float(s) for s in steps], 1.0),
        "words_per_slot": math.log1p(len(text.words) / n),
        "slot_names_voiced": _mean([float(bool(_key_stems(s.name) & told)) for s in data.slots if s.name], 0.0),
        "log_slots": math.log1p(n),
    }


def _first(stems: frozenset[str], joined: str) -> str:
    """The one that is found first; of two found at one place the alphabet decides, not the order of the set."""
    return min(stems, key=lambda stem: (joined.find(stem), stem))


def missing_slots(text: Text, data: Data) -> list[Slot]:
    """Slots of which less than half the words are in the text."""
    told = frozenset(text.stems)
    return [s for s, w in zip(data.slots, data.wanted, strict=True) if w and len(w & told) < 0.5 * len(w)]


def extra_words(text: Text, data: Data) -> list[str]:
    """Content words that no slot name or value explains, each once."""
    pairs = zip(text.words, text.stems, strict=True)
    return list(dict.fromkeys(w for w, s in pairs if s not in data.allowed and w not in FUNCTION_WORDS))


def _mean(values: Sequence[float], empty: float) -> float:
    return sum(values) / len(values) if values else empty
