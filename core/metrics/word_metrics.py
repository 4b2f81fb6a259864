"""Compute metrics of word overlap: overlap with the source, ROUGE, and BLEU and chrF from sacrebleu.

ROUGE-N and ROUGE-L (Lin 2004) use the tokens, stems and counts of rouge_score. With several references, the score is
the *mean*, as in ROUGE-1.5.5 and in published SummEval results (11 references). Words are stemmed (Porter), as in
`ROUGE-1.5.5 -m`. rouge_score keeps only a-z and 0-9. Here, words of other scripts count too, and each character of a
script without spaces is a word.

ROUGE-L is computed on the whole text, unlike rougeLsum, which joins the matches of each sentence. The longest common
subsequence is computed by a bit-parallel algorithm (Hyyrö 2004), because the table of rouge_score takes seconds for a
long source.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from core.judging.offline.text import cut
from core.metrics.base import Field, Metric, Need, item_by_item, texts_of
from core.records import Item, with_spaces, words_of

MAX_CHARS = 60_000
"""Longest text compared with references (about 10,000 words): chrF counts every sequence of six characters."""

_APOSTROPHE = re.compile("['’]")


def _of_words(
    name: str,
    measures: str,
    against: Field,
    prepare: Callable[[], Callable[[Item], float | str]],
) -> Metric:
    needs: frozenset[Need] = frozenset({against})
    cost = "free; about a second for 1,000 items with one reference each"
    return Metric(name, measures, needs, cost, item_by_item(needs, prepare))


def overlap(name: str, *, pairs: bool = False) -> Metric:
    """Return the metric `name`: the share of the target's words that occur in the source, from 0 to 1.

    With `pairs`, the metric is the share of the target's pairs of adjacent words. Words are compared by their stems. A
    word that is repeated in the target counts each time. A target without words is Unscored. With `pairs`,
    a target with only one word is Unscored too.
    """
    size = 2 if pairs else 1

    def runs(text: str) -> list[tuple[str, ...]]:
        words = cut(text).stems
        return [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]

    def prepare() -> Callable[[Item], float | str]:
        known = cache(lambda text: frozenset(runs(text)))  # many items share a source

        def measure(item: Item) -> float | str:
            there, written = known(texts_of(item, "source")[0]), runs(item.target)
            if not written:
                return "The target has too few words."
            return sum(run in there for run in written) / len(written)

        return measure

    counted = "pairs of neighbouring words" if pairs else "words"
    return _of_words(name, f"Share of the target's {counted} found in the source.", "source", prepare)


# ── with references ──────────────────────────────────────────────────────────────────────────────────────────


def sacrebleu(name: str) -> Metric:
    """Return the sacrebleu metric "bleu" or "chrf" at sentence level, from 0 to 100.

    - BLEU (Papineni et al. 2002) compares a target with all references at once. With effective order, targets of fewer
      than four words do not score 0.
    - chrF (Popović 2015) gives recall twice the importance of precision, and takes the best reference. It works in any
      script.
    """

    def prepare() -> Callable[[Item], float | str]:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

        metric: Any = BLEU(effective_order=True) if name == "bleu" else CHRF()

        def measure(item: Item) -> float | str:
            texts = [text[:MAX_CHARS] for text in (item.target, *texts_of(item, "references"))]
            target, *references = map(with_spaces, texts) if name == "bleu" else texts
            return float(metric.sentence_score(target, references).score)

        return measure

    runs = {
        "bleu": "Sentence BLEU: sequences of up to four words shared with the references.",
        "chrf": "chrF: sequences of up to six characters shared with the best reference.",
    }
    return _of_words(name, runs[name], "references", prepare)


# ── ROUGE ────────────────────────────────────────────────────────────────────────────────────────────────────


def rouge(name: str, kind: str, *, source: bool = False) -> Metric:
    """Return the ROUGE metric of `kind` "1", "2" or "L".

    It is F1 against the references. If `source` is true, it is precision against the source instead.
    """
    against: Field = "source" if source else "references"
    what = {"L": "longest common subsequence of words", "1": "shared words"}.get(
        kind, f"shared sequences of {kind} words"
    )
    named, over = ("precision", "") if source else ("F1", ", averaged over the references")

    def prepare() -> Callable[[Item], float | str]:
        from rouge_score.rouge_scorer import RougeScorer
        from rouge_score.scoring import fmeasure

        tokens = Tokens()
        scorer = RougeScorer([f"rouge{kind}"], tokenizer=tokens)

        def compared(target: str, reference: str) -> float:
            if kind != "L":
                score = scorer.score(reference, target)[f"rouge{kind}"]
                return float(score.precision if source else score.fmeasure)
            words, theirs = tokens.tokenize(target), tokens.tokenize(reference)
            length = lcs_length(words, theirs)
            precision = length / len(words)
            return precision if source else float(fmeasure(precision, length / len(theirs)))

        def measure(item: Item) -> float | str:
            if not tokens.tokenize(item.target):
                return "The target has no words."
            texts = [text for text in texts_of(item, against) if tokens.tokenize(text)]
            if not texts:
                return f"The {'source' if source else 'reference'} has no words."
            return sum(compared(item.target, text) for text in texts) / len(texts)

        return measure

    return _of_words(name, f"ROUGE-{kind} {named} against the {against}: {what}{over}.", against, prepare)


class Tokens:
    """ROUGE tokenizer for any script, with a cache, since items share sources and references.

    Words are lower-case. English words of four or more letters are stemmed (Porter). Each character of a script without
    spaces is a word. For ASCII text, the tokens are those of rouge_score.
    """

    def __init__(self) -> None:
        from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped]

        self.stem = lru_cache(maxsize=100_000)(PorterStemmer().stem)
        self._known: dict[str, list[str]] = {}

    def tokenize(self, text: str) -> list[str]:
        from rouge_score import tokenize

        if text not in self._known:
            if text.isascii():
                self._known[text] = tokenize.tokenize(text, self)
            else:
                words = [part for word in words_of(text) for part in _APOSTROPHE.split(word.lower())]
                self._known[text] = [self.stem(word) if word.isascii() and len(word) > 3 else word for word in words]
        return self._known[text]


def lcs_length(first: list[str], second: list[str]) -> int:
    """Return the length of the longest common subsequence of two lists of words."""
    short, long = sorted((first, second), key=len)
    where: dict[str, int] = {}
    for position, word in enumerate(short):
        where[word] = where.get(word, 0) | (1 << position)
    full = (1 << len(short)) - 1
    # bit-parallel: each bit is a word of `short`; a zero bit marks where the length increases in the usual table
    rows = full
    for word in long:
        if places := where.get(word):
            matched = rows & places
            rows = ((rows + matched) | (rows - matched)) & full
    return len(short) - rows.bit_count()
