"""Features of a text against its source: overlap, copied fragments, what is new, what is covered, where it comes from.

Coverage and density are those of Grusky et al. (2018, Newsroom): the text is cut greedily into the longest fragments
that stand in the source.  Divergence is Jensen-Shannon between word distributions (Louis and Nenkova 2013).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from core.judging.offline.lexicon import FUNCTION_WORDS, NEGATIONS, NUMBER_WORDS
from core.judging.offline.text import Sentence, Text, cut, names, numbers

Features = dict[str, float]

LEAD_SENTENCES = 3
SALIENT_WORDS = 25
MAX_STARTS = 24
"""Source positions tried for a fragment; later ones of a very frequent pair are left out."""


class Weighed(NamedTuple):
    """A content stem of a source: how much it matters, its share of the content words, its first sentence."""

    weight: float
    share: float
    sentence: int


@dataclass(frozen=True)
class Source:
    """A source, prepared once for all texts written from it."""

    text: Text
    vocabulary: frozenset[str]
    known: frozenset[str]
    spelt: frozenset[str]
    pairs: dict[tuple[str, str], list[int]]
    triples: frozenset[tuple[str, str, str]]
    first_at: dict[str, int]
    content: dict[str, Weighed]
    weight: float
    salient: tuple[str, ...]
    contents: tuple[frozenset[str], ...]
    lead: frozenset[str]
    sentences_of: dict[str, list[int]]
    bounds: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.text.stems)


def prepare(raw: str) -> Source:
    """Everything about a source that does not depend on the text."""
    text = cut(raw)
    stems = text.stems
    pairs: dict[tuple[str, str], list[int]] = {}
    for i, pair in enumerate(itertools.pairwise(stems)):
        pairs.setdefault(pair, []).append(i)
    first_at: dict[str, int] = {}
    for i, stem in enumerate(stems):
        first_at.setdefault(stem, i)
    contents = tuple(sentence.content for sentence in text.sentences)
    sentences_of: dict[str, list[int]] = {}
    for i, content in enumerate(contents):
        for stem in content:
            sentences_of.setdefault(stem, []).append(i)
    counts = Counter(text.content_stems)
    size = max(1, len(stems))
    weights = {stem: math.log1p(n) * (1.6 - first_at[stem] / size) for stem, n in counts.items()}
    bounds, total = [], 0
    for sentence in text.sentences:
        bounds.append(total)
        total += len(sentence.words)
    n_content = sum(counts.values())
    known = frozenset(text.words) | frozenset(stems)
    return Source(
        text=text,
        vocabulary=frozenset(stems),
        known=known,
        spelt=frozenset(NUMBER_WORDS[word] for word in known & NUMBER_WORDS.keys()),
        pairs=pairs,
        triples=frozenset(zip(stems, stems[1:], stems[2:], strict=False)),
        first_at=first_at,
        content={stem: Weighed(weights[stem], n / n_content, sentences_of[stem][0]) for stem, n in counts.items()},
        weight=sum(weights.values()),
        salient=tuple(sorted(weights, key=lambda stem: (-weights[stem], stem))[:SALIENT_WORDS]),
        contents=contents,
        lead=frozenset().union(*contents[:LEAD_SENTENCES]),
        sentences_of=sentences_of,
        bounds=tuple(bounds),
    )


class Fragment(NamedTuple):
    """`length` words of the text from `start` that stand at `source_start` in the source."""

    start: int
    length: int
    source_start: int


def fragments(stems: Sequence[str], source: Source) -> list[Fragment]:
    """The greedy longest matches, left to right; single words count as fragments of length 1."""
    found, i, n = [], 0, len(stems)
    whole, pairs, first_at = source.text.stems, source.pairs, source.first_at
    ours = list(itertools.pairwise(stems))
    size_of_source = len(whole)
    while i < n:
        best, where = 0, -1
        starts = pairs.get(ours[i], ()) if i + 1 < n else ()
        for start in starts if len(starts) <= MAX_STARTS else starts[:MAX_STARTS]:
            size = 2
            while i + size < n and start + size < size_of_source and stems[i + size] == whole[start + size]:
                size += 1
            if size > best:
                best, where = size, start
        if not best:
            where = first_at.get(stems[i], -1)
            best = int(where >= 0)
        if best:
            found.append(Fragment(i, best, where))
        i += best or 1
    return found


def copying(text: Text, source: Source) -> Features:
    """Fragments and n-grams: how much is taken over, in how long pieces, from where and in which order."""
    stems, n = text.stems, len(text.stems)
    parts = fragments(stems, source)
    pieces = [part for part in parts if part.length > 1]
    pairs, triples = text.pairs, text.triples
    places = [part.source_start / max(1, source.size) for part in pieces]
    steps = [b >= a for a, b in itertools.pairwise(places)]
    known = source.pairs
    new = [pair for pair in pairs if pair not in known]
    vocabulary = source.vocabulary
    spliced = sum([a in vocabulary and b in vocabulary for a, b in new])
    longest = max((part.length for part in parts), default=0)
    return {
        "fragment_coverage": sum(part.length for part in parts) / n,
        "log_density": math.log1p(sum(part.length**2 for part in parts) / n),
        "log_longest_copy": math.log1p(longest),
        "longest_copy_share": longest / n,
        "new_pairs": len(new) / max(1, len(pairs)),
        "new_triples": (len(triples) - sum(map(source.triples.__contains__, triples))) / max(1, len(triples)),
        "splices": spliced / max(1, len(pairs)),
        "log_splices": math.log1p(spliced),
        "place": _mean(places, 0.5),
        "last_place": max(places, default=0.5),
        "source_order": sum(steps) / len(steps) if steps else 1.0,
        "jumps": _mean([abs(b - a) for a, b in itertools.pairwise(places)], 0.0),
    }


def unseen_numbers(text: Text, source: Source) -> list[str]:
    """Numbers of the text that the source does not hold; "three" and "3" count as the same."""
    return [n for n in numbers(text) if n not in source.known and n not in source.spelt]


def unseen_names(text: Text, source: Source) -> list[str]:
    """Capitalised words inside sentences of the text that the source does not hold."""
    return [name for name in names(text) if not _holds(source, name)]


def unseen_words(text: Text, source: Source) -> list[str]:
    """Content words of the text whose stem the source does not hold, each once, in order."""
    vocabulary, known = source.vocabulary, source.known
    seen = dict.fromkeys(
        [
            word
            for word, stem in zip(text.words, text.stems, strict=True)
            if stem not in vocabulary and word not in FUNCTION_WORDS and word not in known
        ]
    )
    return list(seen)


def _holds(source: Source, word: str) -> bool:
    return word in source.known or word.removesuffix("'s") in source.known


def support(text: Text, source: Source) -> Features:
    """Whether each statement can stand on the source: unseen words, names and numbers; the best matching sentence."""
    content = text.content_stems
    unseen = unseen_words(text, source)
    aligned = [align(sentence, source) for sentence in text.sentences if sentence.content]
    return {
        "known_words": sum(map(source.vocabulary.__contains__, content)) / max(1, len(content)),
        "log_unseen_words": math.log1p(len(unseen)),
        "log_unseen_names": math.log1p(len(unseen_names(text, source))),
        "log_unseen_numbers": math.log1p(len(unseen_numbers(text, source))),
        "sentence_support": _mean([a.share for a in aligned], 0.0),
        "weakest_support": min((a.share for a in aligned), default=0.0),
        "pair_support": _mean([a.pair_share for a in aligned], 0.0),
        "misplaced": math.log1p(sum(a.misplaced for a in aligned)),
        "negation_mismatch": math.log1p(sum(a.negation_mismatch for a in aligned)),
        "jump_between_sentences": _jump(aligned, source),
    }


class Aligned(NamedTuple):
    """A sentence beside the source sentence (and its neighbours) that shares most content with it.

    `misplaced` counts its names and numbers that stand elsewhere in the source but not there.
    """

    best: int
    share: float
    pair_share: float
    misplaced: int
    negation_mismatch: int


def align(sentence: Sentence, source: Source) -> Aligned:
    """The best source sentence for a sentence with content words."""
    content = sentence.content
    votes: dict[int, int] = {}
    vote = votes.get
    for places in filter(None, map(source.sentences_of.get, content)):
        for i in places:
            votes[i] = vote(i, 0) + 1
    if not votes:
        return Aligned(0, 0.0, 0.0, 0, 0)
    shared = max(votes.values())
    best = min([i for i, n in votes.items() if n == shared])
    pairs = list(zip(sentence.stems, sentence.stems[1:], strict=False))
    negated = not NEGATIONS.isdisjoint(sentence.words)
    source_negated = not NEGATIONS.isdisjoint(source.text.sentences[best].words)
    return Aligned(
        best=best,
        share=shared / len(content),
        pair_share=sum(map(source.pairs.__contains__, pairs)) / max(1, len(pairs)),
        misplaced=_misplaced(sentence, source, best),
        negation_mismatch=int(negated != source_negated and shared >= 0.4 * len(content)),
    )


def _misplaced(sentence: Sentence, source: Source, best: int) -> int:
    """Names and numbers of the sentence that the source holds, but not its sentence `best` or a neighbour of it."""
    stems, surface, content, vocabulary = sentence.stems, sentence.surface, sentence.content, source.vocabulary
    marked = {
        stem
        for at in sentence.marked
        if (stem := stems[at]) in content and stem in vocabulary and (at or surface[0][0].isdigit())
    }
    return len(marked.difference(*source.contents[max(0, best - 1) : best + 2])) if marked else 0


def _jump(aligned: list[Aligned], source: Source) -> float:
    steps = [abs(b.best - a.best) for a, b in itertools.pairwise(aligned)]
    return math.log1p(_mean([float(step) for step in steps], 0.0)) if source.contents else 0.0


def coverage(text: Text, source: Source) -> Features:
    """How much of what matters in the source is told: weighted recall, the lead, divergence, compression."""
    content, told, total = text.counts, text.counts.keys(), len(text.content_stems)
    known = source.content
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
        divergence += p * _log2(p / middle) + q * _log2(q / middle)
        met += q
    return {
        "salient_recall": sum([stem in told for stem in source.salient]) / max(1, len(source.salient)),
        "weighted_recall": recall / max(source.weight, 1e-9),
        "top_words": sum([stem in told for stem in source.salient[:6]]) / max(1, len(source.salient[:6])),
        "salience": salience / max(1, total),
        "lead_share": in_lead / max(1, total),
        "lead_recall": len(source.lead & told) / max(1, len(source.lead)),
        "first_sentence_recall": _recall(source.contents[:1], told),
        "divergence": (divergence + (1 - met)) / 2,
        "log_compression": math.log(source.size / max(1, len(text.stems))) if source.size else 0.0,
        "length_gap": abs(math.log(max(1, source.size) / max(1, len(text.stems)))),
        "source_sentences_used": math.log1p(len(used)),
    }


_log2 = math.log2


def _recall(contents: Sequence[frozenset[str]], told: AbstractSet[str]) -> float:
    wanted = frozenset().union(*contents)
    return len(wanted & told) / len(wanted) if wanted else 0.0


def _mean(values: Sequence[float], empty: float) -> float:
    return sum(values) / len(values) if values else empty


def measure(text: Text, source: Source) -> Features:
    """All features of a text against its source; empty where either has no words."""
    if not text.words or not source.text.words:
        return {}
    return copying(text, source) | support(text, source) | coverage(text, source)
