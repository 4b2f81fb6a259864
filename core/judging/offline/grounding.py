"""Features of a text against what it was written from: a source, a dialogue and a fact, or structured data.

Against a source: overlap, copied fragments, what is new, what is covered, where it comes from.

Coverage and density are those of Grusky et al. (2018, Newsroom): the text is cut greedily into the longest fragments
that stand in the source.  Divergence is Jensen-Shannon between word distributions (Louis and Nenkova 2013).
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence

from core.judging.offline.text import (
    FUNCTION_WORDS,
    NEGATIONS,
    NUMBER_WORDS,
    PLACEHOLDER_VALUES,
    Sentence,
    Text,
    cut,
    mean,
    names,
    numbers,
    stem,
)

Features = dict[str, float]

LEAD_SENTENCES = 3
SALIENT_WORDS = 25
MAX_STARTS = 24
"""Source positions tried for a fragment; later ones of a very frequent pair are left out."""


class SourceText:
    """A source, prepared once for all texts written from it: everything that does not depend on the text."""

    def __init__(self, raw: str) -> None:
        text = self.text = cut(raw)
        stems = text.stems
        self.size = len(stems)
        self.vocabulary = frozenset(stems)
        self.known = frozenset(text.words) | self.vocabulary
        """Words and stems."""
        self.spelt = frozenset(NUMBER_WORDS[word] for word in self.known & NUMBER_WORDS.keys())
        """Digits of the numbers that stand in words."""
        self.first_at: dict[str, int] = {}
        for i, each in enumerate(stems):
            self.first_at.setdefault(each, i)
        self.pairs: dict[tuple[str, str], list[int]] = {}
        """Where each pair of neighbouring stems stands."""
        for i, pair in enumerate(text.pairs):
            self.pairs.setdefault(pair, []).append(i)
        self.triples = frozenset(text.triples)
        self.contents = tuple(sentence.content for sentence in text.sentences)
        self.lead = frozenset().union(*self.contents[:LEAD_SENTENCES])
        self.sentences_of: dict[str, list[int]] = {}
        """Content stem → the sentences that hold it, in order."""
        for i, content in enumerate(self.contents):
            for each in content:
                self.sentences_of.setdefault(each, []).append(i)
        weights = {s: math.log1p(n) * (1.6 - self.first_at[s] / self.size) for s, n in text.counts.items()}
        n_content = len(text.content_stems)
        self.content = {s: (weights[s], n / n_content, self.sentences_of[s][0]) for s, n in text.counts.items()}
        """Content stem → how much it matters, its share of the content words, its first sentence."""
        self.weight = sum(weights.values())
        self.salient = tuple(sorted(weights, key=lambda stem: (-weights[stem], stem))[:SALIENT_WORDS])


def measure(text: Text, source: SourceText) -> Features:
    """All features of a text against its source; empty where either has no words."""
    if not text.words or not source.text.words:
        return {}
    return _copying(text, source) | _support(text, source) | _coverage(text, source)


# ── what is taken over ───────────────────────────────────────────────────────────────────────────────────────


def fragments(stems: Sequence[str], source: SourceText) -> list[tuple[int, int]]:
    """(length in words, start in the source) of the greedy longest matches, left to right, single words among them."""
    matches: list[tuple[int, int]] = []
    whole, pairs, first_at = source.text.stems, source.pairs, source.first_at
    ours = list(itertools.pairwise(stems))
    i, n, n_source = 0, len(stems), source.size
    while i < n:
        best, where = 0, -1
        starts = pairs.get(ours[i], ()) if i + 1 < n else ()
        for start in starts if len(starts) <= MAX_STARTS else starts[:MAX_STARTS]:
            size = 2
            while i + size < n and start + size < n_source and stems[i + size] == whole[start + size]:
                size += 1
            if size > best:
                best, where = size, start
        if not best:
            where = first_at.get(stems[i], -1)
            best = int(where >= 0)
        if best:
            matches.append((best, where))
        i += best or 1
    return matches


def longest_copy(text: Text, source: SourceText, least: int = 1) -> int:
    """Words in the longest fragment of at least `least` words; 0 without any."""
    return max((length for length, _ in fragments(text.stems, source) if length >= least), default=0)


def _copying(text: Text, source: SourceText) -> Features:
    """Fragments and n-grams: how much is taken over, in how long pieces, from where and in which order."""
    n, pairs, triples, vocabulary = len(text.stems), text.pairs, text.triples, source.vocabulary
    parts = fragments(text.stems, source)
    lengths, places = [length for length, _ in parts], [start / source.size for length, start in parts if length > 1]
    known = source.pairs
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
        "place": mean(places, 0.5),
        "last_place": max(places, default=0.5),
        "source_order": mean([b >= a for a, b in itertools.pairwise(places)], 1.0),
        "jumps": mean([abs(b - a) for a, b in itertools.pairwise(places)]),
    }


# ── what stands on the source ────────────────────────────────────────────────────────────────────────────────


def unseen_numbers(text: Text, source: SourceText) -> list[str]:
    """Numbers of the text that the source does not hold; "three" and "3" count as the same."""
    return [n for n in numbers(text) if n not in source.known and n not in source.spelt]


def unseen_names(text: Text, source: SourceText) -> list[str]:
    """Capitalised words inside sentences of the text that the source does not hold."""
    return [name for name in names(text) if name not in source.known and name.removesuffix("'s") not in source.known]


def unseen_words(text: Text, source: SourceText) -> list[str]:
    """Content words of the text whose stem the source does not hold, each once, in order."""
    vocabulary, known = source.vocabulary, source.known
    pairs = zip(text.words, text.stems, strict=True)
    unseen = [w for w, s in pairs if s not in vocabulary and w not in FUNCTION_WORDS and w not in known]
    return list(dict.fromkeys(unseen))


def align(sentence: Sentence, source: SourceText) -> tuple[int, float, float, int, int]:
    """The source sentence that shares most content with a sentence: its place, and what the two have in common.

    Shares of the content and of the pairs; how many names and numbers stand elsewhere in the source, but not in that
    sentence or its neighbours; 1 for a negation in only one of the two.
    """
    content = sentence.content
    votes = Counter(i for each in content for i in source.sentences_of.get(each, ()))
    if not votes:
        return 0, 0.0, 0.0, 0, 0
    shared = max(votes.values())
    best = min([i for i, n in votes.items() if n == shared])
    pairs = list(itertools.pairwise(sentence.stems))
    negated = not NEGATIONS.isdisjoint(sentence.words)
    source_negated = not NEGATIONS.isdisjoint(source.text.sentences[best].words)
    marked = {
        stem
        for at in sentence.marked
        if (stem := sentence.stems[at]) in content
        and stem in source.vocabulary
        and (at or sentence.surface[0][0].isdigit())
    }
    return (
        best,
        shared / len(content),
        sum(map(source.pairs.__contains__, pairs)) / max(1, len(pairs)),
        len(marked.difference(*source.contents[max(0, best - 1) : best + 2])) if marked else 0,
        int(negated != source_negated and shared >= 0.4 * len(content)),
    )


def _support(text: Text, source: SourceText) -> Features:
    """Whether each statement can stand on the source: unseen words, names and numbers; the best matching sentence."""
    content = text.content_stems
    aligned = [align(sentence, source) for sentence in text.sentences if sentence.content]
    best, shares, pair_shares, misplaced, negated = zip(*aligned, strict=True) if aligned else ((), (), (), (), ())
    steps = [float(abs(b - a)) for a, b in itertools.pairwise(best)]
    return {
        "known_words": sum(map(source.vocabulary.__contains__, content)) / max(1, len(content)),
        "log_unseen_words": math.log1p(len(unseen_words(text, source))),
        "log_unseen_names": math.log1p(len(unseen_names(text, source))),
        "log_unseen_numbers": math.log1p(len(unseen_numbers(text, source))),
        "sentence_support": mean(shares),
        "weakest_support": min(shares, default=0.0),
        "pair_support": mean(pair_shares),
        "misplaced": math.log1p(sum(misplaced)),
        "negation_mismatch": math.log1p(sum(negated)),
        "jump_between_sentences": math.log1p(mean(steps)),
    }


# ── what is covered ──────────────────────────────────────────────────────────────────────────────────────────


def _coverage(text: Text, source: SourceText) -> Features:
    """How much of what matters in the source the text tells: weighted recall, the lead, divergence, compression."""
    content, stems, total = text.counts, text.counts.keys(), max(1, len(text.content_stems))
    known, log2 = source.content, math.log2
    recall, salience, in_lead, used = 0.0, 0.0, 0, set[int]()
    divergence, met = 0.0, 0.0  # Jensen-Shannon in bits; words of the source alone add what `met` lacks to 1
    for word, n in content.items():
        weighed, p = known.get(word), n / total
        if weighed is None:
            divergence += p
            continue
        weight, q, sentence = weighed
        recall += weight
        salience += weight * n
        in_lead += n if sentence < LEAD_SENTENCES else 0
        used.add(sentence)
        middle = (p + q) / 2
        divergence += p * log2(p / middle) + q * log2(q / middle)
        met += q
    first, ratio = source.contents[0], source.size / len(text.stems)
    return {
        "salient_recall": mean([stem in stems for stem in source.salient]),
        "weighted_recall": recall / max(source.weight, 1e-9),
        "top_words": mean([stem in stems for stem in source.salient[:6]]),
        "salience": salience / total,
        "lead_share": in_lead / total,
        "lead_recall": len(source.lead & stems) / max(1, len(source.lead)),
        "first_sentence_recall": len(first & stems) / max(1, len(first)),
        "divergence": (divergence + (1 - met)) / 2,
        "log_compression": math.log(ratio),
        "length_gap": abs(math.log(ratio)),
        "source_sentences_used": math.log1p(len(used)),
    }


# ── a reply in a dialogue ────────────────────────────────────────────────────────────────────────────────────

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
