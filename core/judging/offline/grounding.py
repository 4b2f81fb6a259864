"""Features of a text against its source: overlap, copied fragments, what is new, what is covered, where it comes from.

Coverage and density are those of Grusky et al. (2018, Newsroom): the text is cut greedily into the longest fragments
that stand in the source.  Divergence is Jensen-Shannon between word distributions (Louis and Nenkova 2013).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from core.judging.offline.text import FUNCTION_WORDS, NEGATIONS, NUMBER_WORDS, Sentence, Text, cut, mean, names, numbers

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
        for i, stem in enumerate(stems):
            self.first_at.setdefault(stem, i)
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
            for stem in content:
                self.sentences_of.setdefault(stem, []).append(i)
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
    votes: dict[int, int] = {}
    vote = votes.get
    for places in filter(None, map(source.sentences_of.get, content)):
        for i in places:
            votes[i] = vote(i, 0) + 1
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
    for stem, n in content.items():
        weighed, p = known.get(stem), n / total
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
