"""Compare a text with its source: a document, a dialogue with a fact, or structured data.

Coverage and density follow Grusky et al. (2018, Newsroom). They use fragments: the longest passages of the text that
occur in the source, found greedily from left to right.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

from core.judging.offline.text import (
    FUNCTION_WORDS,
    PLACEHOLDER_VALUES,
    Features,
    Text,
    cut,
    mean,
    stem,
)

LEAD_SENTENCES = 3
SALIENT_WORDS = 25
MAX_STARTS = 24
"""Maximum source positions to try for a fragment. Further occurrences of a very frequent pair are ignored."""


class SourceText:
    """A source document, prepared once for all texts about it."""

    def __init__(self, raw: str) -> None:
        text = self.text = cut(raw)
        self.vocabulary = frozenset(text.stems)
        self.known = frozenset(text.words) | self.vocabulary
        """The words and stems of the source."""
        self.pairs: dict[tuple[str, str], list[int]] = {}
        """Pair of adjacent stems → positions."""
        for i, pair in enumerate(text.pairs):
            self.pairs.setdefault(pair, []).append(i)
        self.triples = frozenset(text.triples)
        contents = [sentence.content for sentence in text.sentences]
        self.first = contents[0] if contents else frozenset[str]()
        self.lead = frozenset().union(*contents[:LEAD_SENTENCES])
        size, place = len(text.stems), {each: i for i, each in reversed(list(enumerate(text.stems)))}
        self.weights = {each: math.log1p(n) * (1.6 - place[each] / size) for each, n in text.counts.items()}
        """Content stem → weight, higher for frequent and early stems."""
        self.weight = sum(self.weights.values())
        self.salient = tuple(sorted(self.weights, key=lambda each: (-self.weights[each], each))[:SALIENT_WORDS])


def measure(text: Text, source: SourceText) -> Features:
    """Return the features of a text compared with its source; empty if either has no words."""
    if not text.words or not source.text.words:
        return {}
    return _copying(text, source) | _support(text, source) | _coverage(text, source)


def fragments(stems: Sequence[str], source: SourceText) -> list[int]:
    """Return the lengths in words of the passages that a text shares with the source, left to right.

    Each passage is the longest possible from its first word. A single shared word counts as a passage.
    """
    lengths: list[int] = []
    whole, pairs, vocabulary = source.text.stems, source.pairs, source.vocabulary
    ours = list(itertools.pairwise(stems))
    i, n, n_source = 0, len(stems), len(whole)
    while i < n:
        best = 0
        starts = pairs.get(ours[i], ()) if i + 1 < n else ()
        for start in starts[:MAX_STARTS]:
            size = 2
            while i + size < n and start + size < n_source and stems[i + size] == whole[start + size]:
                size += 1
            best = max(best, size)
        best = best or int(stems[i] in vocabulary)
        if best:
            lengths.append(best)
        i += best or 1
    return lengths


def longest_copy(text: Text, source: SourceText) -> int:
    """Return the number of words in the longest fragment that text and source share; 0 if fewer than two."""
    longest = max(fragments(text.stems, source), default=0)
    return longest if longest > 1 else 0


def _copying(text: Text, source: SourceText) -> Features:
    """Measure how much of the text is copied from the source, and how long the copied pieces are."""
    n, pairs, triples, vocabulary = len(text.stems), text.pairs, text.triples, source.vocabulary
    lengths, known = fragments(text.stems, source), source.pairs
    new = [pair for pair in pairs if pair not in known]
    spliced = sum([a in vocabulary and b in vocabulary for a, b in new])
    longest = max(lengths, default=0)
    return {
        "fragment_coverage": sum(lengths) / n,
        "log_density": math.log1p(sum(length**2 for length in lengths) / n),
        "log_longest_copy": math.log1p(longest),
        "longest_copy_share": longest / n,
        "new_pairs": len(new) / max(1, len(pairs)),
        "new_triples": (len(triples) - sum(map(source.triples.__contains__, triples))) / max(1, len(triples)),
        "splices": spliced / max(1, len(pairs)),
        "log_splices": math.log1p(spliced),
    }


def _support(text: Text, source: SourceText) -> Features:
    """Measure which content words are not in the source."""
    content, vocabulary, known = text.content_stems, source.vocabulary, source.known
    pairs = zip(text.words, text.stems, strict=True)
    unseen = {w for w, s in pairs if s not in vocabulary and w not in FUNCTION_WORDS and w not in known}
    return {
        "known_words": sum(map(vocabulary.__contains__, content)) / max(1, len(content)),
        "log_unseen_words": math.log1p(len(unseen)),
    }


def _coverage(text: Text, source: SourceText) -> Features:
    """Measure how much of the source's important content the text covers: weighted recall, lead, compression."""
    stems, weights = text.counts.keys(), source.weights
    ratio = len(source.text.stems) / len(text.stems)
    return {
        "salient_recall": mean([stem in stems for stem in source.salient]),
        "weighted_recall": sum(weights.get(word, 0.0) for word in text.counts) / max(source.weight, 1e-9),
        "top_words": mean([stem in stems for stem in source.salient[:6]]),
        "lead_recall": len(source.lead & stems) / max(1, len(source.lead)),
        "first_sentence_recall": len(source.first & stems) / max(1, len(source.first)),
        "log_compression": math.log(ratio),
        "length_gap": abs(math.log(ratio)),
    }


# ── a reply in a dialogue ────────────────────────────────────────────────────────────────────────────────────

MAX_SOURCE, MAX_SLOTS = 20_000, 300

_TURN = re.compile(r"[\r\n]+|<br\s*/?>", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|_+")
_SLOT = re.compile(
    r"([\w ]{1,60}?)\s?[=:]\s*(?:'([^']*)'|\"([^\"]*)\"|\[([^\]]*)\]|([^,;()\[\]|]*))|([\w ]{1,60})\[([^\]]*)\]"
)


class Dialogue:
    """A dialogue history and a fact, prepared once for all replies to the dialogue.

    Each line of the history is a turn. A reply answers the last non-empty line.
    """

    def __init__(self, history: str, fact: str) -> None:
        turns = [turn for turn in _TURN.split(history) if turn.strip()]
        self.last = frozenset(cut(turns[-1]).content_stems) if turns else frozenset[str]()
        self.history, self.fact = SourceText(history), SourceText(fact)


def measure_reply(text: Text, dialogue: Dialogue) -> Features:
    """Return how a reply uses the fact, the last turn and the history, as features. Empty if it has no words."""
    if not text.words:
        return {}
    content, last, total = text.counts, dialogue.last, max(1, len(text.content_stems))
    history, fact = dialogue.history.vocabulary, dialogue.fact.vocabulary
    features = {
        "last_turn_overlap": len(content.keys() & last) / math.sqrt(total * max(1, len(last))),
        "log_last_turn_words": math.log1p(len(content.keys() & last)),
        "history_overlap": sum(n for s, n in content.items() if s in history) / total,
        "log_said_before": math.log1p(longest_copy(text, dialogue.history)),
        "unrelated_words": sum(n for s, n in content.items() if s not in history and s not in fact) / total,
        "log_new_words": math.log1p(sum(s not in history for s in content)),
    }
    if not fact:
        return features
    shared, salient = [s for s in content if s in fact], dialogue.fact.salient[:8]
    return features | {
        "fact_precision": sum(content[s] for s in shared) / total,
        "log_fact_words": math.log1p(len(shared)),
        "log_fresh_fact_words": math.log1p(sum(s not in history for s in shared)),
        "fact_recall": len(shared) / max(1, len(dialogue.fact.weights)),
        "log_fact_copy": math.log1p(longest_copy(text, dialogue.fact)),
        "fact_salience": mean([s in content for s in salient]),
    }


# ── structured data ──────────────────────────────────────────────────────────────────────────────────────────

Slot = tuple[str, str]
"""(name, value) of a piece of structured data, in plain words."""


class Data:
    """Structured data to write about: the slots, the word stems of each slot, and all stems that a text may use."""

    def __init__(self, source: str) -> None:
        self.slots = parse_slots(source[:MAX_SOURCE])[:MAX_SLOTS]
        self.wanted, self.values, names = list[frozenset[str]](), list[tuple[str, ...]](), set[str]()
        for name, value in self.slots:
            # for a value without meaning of its own ("yes", "none", "dont_care"), the text mentions the name
            empty = not PLACEHOLDER_VALUES.isdisjoint((value.lower(), value.lower().replace(" ", "_")))
            self.wanted.append(_key_stems(name if empty else value))
            self.values.append(() if empty else cut(value).stems)
            names.update(cut(name).stems)
        self.allowed = frozenset(names).union(*self.wanted, *self.values)


def parse_slots(source: str) -> list[Slot]:
    """Read ``act(name='value', …)``, ``name[value]``, ``name: value`` and ``subject | relation | object`` data.

    Any other text becomes one slot without a name.
    """
    is_act = re.match(r"\s*\??\w+\(", source) is not None
    if "|" in source and not is_act:
        return _triples(source)
    inside = source[source.index("(") + 1 :] if is_act else source
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
    """Return the features of a text about data: which slots it mentions, and which of its words come from no slot.

    Empty for a text without words.
    """
    if not text.words:
        return {}
    stems, joined = frozenset(text.stems), f" {' '.join(text.stems)} "
    shares = [len(wanted & stems) / len(wanted) for wanted in data.wanted if wanted]
    values = [f" {' '.join(value)} " for value in data.values if value]
    pairs = zip(text.words, text.stems, strict=True)
    extra = {w for w, s in pairs if s not in data.allowed and w not in FUNCTION_WORDS}
    return {
        "slots_told": mean(shares, 1.0),
        "log_slots_missing": math.log1p(sum(share < 0.5 for share in shares)),
        "slots_exact": mean([value in joined for value in values], 1.0),
        "log_extra_words": math.log1p(len(extra)),
        "extra_share": len(extra) / len(text.words),
    }
