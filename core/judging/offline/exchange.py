"""Features of a reply in a dialogue (last turn, history, given fact) and of a text from structured data (slots)."""

from __future__ import annotations

import itertools
import math
import re

from core.judging.offline.grounding import SourceText, longest_copy
from core.judging.offline.text import FUNCTION_WORDS, PLACEHOLDER_VALUES, Text, cut, mean, stem

Features = dict[str, float]

MAX_SOURCE, MAX_SLOTS = 20_000, 300

_TURN = re.compile(r"[\r\n]+|<br\s*/?>", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|_+")
_SLOT = re.compile(
    r"([\w ]{1,60}?)\s?[=:]\s*(?:'([^']*)'|\"([^\"]*)\"|\[([^\]]*)\]|([^,;()\[\]|]*))|([\w ]{1,60})\[([^\]]*)\]"
)


class Dialogue:
    """A history and a given fact, prepared once for all replies.

    Turns are lines; the last line that is not empty is what the reply answers.
    """

    def __init__(self, history: str, fact: str) -> None:
        turns = [turn for turn in _TURN.split(history) if turn.strip()]
        last = turns[-1] if turns else ""
        self.last, self.last_asks = frozenset(cut(last).content_stems), "?" in last
        self.history, self.fact = SourceText(history), SourceText(fact)


def measure_reply(text: Text, dialogue: Dialogue) -> Features:
    """Use of the fact, of the last turn and of the history; empty for a reply without words."""
    if not text.words:
        return {}
    content, last, total = text.counts, dialogue.last, max(1, len(text.content_stems))
    history, fact = dialogue.history.vocabulary, dialogue.fact.vocabulary
    features = {
        "last_turn_overlap": len(content.keys() & last) / math.sqrt(total * max(1, len(last))),
        "log_last_turn_words": math.log1p(len(content.keys() & last)),
        "history_overlap": sum(n for s, n in content.items() if s in history) / total,
        "log_said_before": math.log1p(longest_copy(text, dialogue.history, 2)),
        "unrelated_words": sum(n for s, n in content.items() if s not in history and s not in fact) / total,
        "log_new_words": math.log1p(sum(s not in history for s in content)),
        "answers_with_question": float(dialogue.last_asks and "?" in text.raw),
    }
    if not fact:
        return features
    shared, salient = [s for s in content if s in fact], dialogue.fact.salient[:8]
    return features | {
        "fact_precision": sum(content[s] for s in shared) / total,
        "log_fact_words": math.log1p(len(shared)),
        "log_fresh_fact_words": math.log1p(sum(s not in history for s in shared)),
        "fact_recall": len(shared) / max(1, len(dialogue.fact.content)),
        "log_fact_copy": math.log1p(longest_copy(text, dialogue.fact, 2)),
        "fact_salience": mean([s in content for s in salient]),
    }


Slot = tuple[str, str]
"""One piece of structured data: its name and value in plain words."""


class Data:
    """The slots of a source, with the stems each must be recognised by and all stems that the data allows."""

    def __init__(self, source: str) -> None:
        self.slots = parse_slots(source[:MAX_SOURCE])[:MAX_SLOTS]
        self.wanted, self.values, names = list[frozenset[str]](), list[tuple[str, ...]](), set[str]()
        for name, value in self.slots:
            # a value that says nothing by itself ("yes", "none", "dont_care") has its name voiced
            empty = not PLACEHOLDER_VALUES.isdisjoint((value.lower(), value.lower().replace(" ", "_")))
            self.wanted.append(_key_stems(name if empty else value))
            self.values.append(() if empty else cut(value).stems)
            names.update(cut(name).stems)
        self.allowed = frozenset(names).union(*self.wanted, *self.values)


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
        slots.append((_plain(name or name2 or ""), _plain(value)))
    return slots or [("", _plain(source))]


def _triples(source: str) -> list[Slot]:
    slots: list[Slot] = []
    subjects: dict[str, None] = {}
    for line in _TURN.split(source):
        parts = [_plain(part) for part in line.split("|")]
        if len(parts) >= 3:
            subjects.setdefault(parts[0])
            slots.append((parts[1], parts[2]))
        elif any(parts):
            slots.append(("", " ".join(parts)))
    return [("", subject) for subject in subjects] + slots


def _plain(text: str) -> str:
    return " ".join(_CAMEL.sub(" ", text).replace('"', " ").split())


def _key_stems(text: str) -> frozenset[str]:
    words = cut(text).words
    return frozenset(map(stem, [word for word in words if word not in FUNCTION_WORDS] or words))


def measure_data(text: Text, data: Data) -> Features:
    """Slots voiced, left out, repeated, in order; words that no slot explains; empty for a text without words."""
    if not text.words:
        return {}
    stems = frozenset(text.stems)
    joined = f" {' '.join(text.stems)} "
    shares = [len(wanted & stems) / len(wanted) for wanted in data.wanted if wanted]
    values = [f" {' '.join(value)} " for value in data.values if value]
    places = [joined.find(f" {_first(wanted, joined)} ") for wanted in data.wanted if wanted and wanted <= stems]
    extra, n = extra_words(text, data), max(1, len(data.slots))
    return {
        "slots_told": mean(shares, 1.0),
        "log_slots_missing": math.log1p(sum(share < 0.5 for share in shares)),
        "slots_exact": mean([value in joined for value in values], 1.0),
        "log_extra_words": math.log1p(len(extra)),
        "extra_share": len(extra) / len(text.words),
        "slots_repeated": math.log1p(sum(max(0, joined.count(value) - 1) for value in set(values))),
        "slots_in_order": mean([b >= a for a, b in itertools.pairwise(places)], 1.0),
        "words_per_slot": math.log1p(len(text.words) / n),
        "slot_names_voiced": mean([bool(_key_stems(name) & stems) for name, _ in data.slots if name]),
        "log_slots": math.log1p(n),
    }


def _first(stems: frozenset[str], joined: str) -> str:
    """The one that comes first; of two at one place the alphabet decides, not the order of the set."""
    return min(stems, key=lambda stem: (joined.find(stem), stem))


def missing_slots(text: Text, data: Data) -> list[str]:
    """Slots of which less than half the words are in the text: name and value."""
    stems, slots = frozenset(text.stems), zip(data.slots, data.wanted, strict=True)
    return [f"{name} {value}".strip() for (name, value), w in slots if w and len(w & stems) < 0.5 * len(w)]


def extra_words(text: Text, data: Data) -> list[str]:
    """Content words that no slot name or value explains, each once."""
    pairs = zip(text.words, text.stems, strict=True)
    return list(dict.fromkeys(w for w, s in pairs if s not in data.allowed and w not in FUNCTION_WORDS))
