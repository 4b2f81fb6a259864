"""Words in common: shares found in the source; ROUGE, and BLEU and chrF of sacrebleu.

ROUGE-N and ROUGE-L (Lin 2004) have rouge_score's tokens, stems and counts; every text is tokenised once.

Of several references the score is the *mean*, which is what ROUGE-1.5.5 does and the papers' SummEval rows (11
references) show.  Words are stemmed (Porter), as `ROUGE-1.5.5 -m`.  The original tokenizer keeps a-z and 0-9 only.
Here words of other scripts count too, and each character of a script without spaces is a word.

ROUGE-L is that of the whole text.  (ROUGE-1.5.5 on texts split into sentences unites the matches of each sentence,
which rouge_score calls rougeLsum: another number.)  Its longest common subsequence is our own, a bit-parallel one
(Hyyrö 2004): rouge_score's table takes seconds for one long source, and two long uploads would hold a worker for hours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from core.judging.offline.text import cut
from core.metrics.base import Field, Metric, Need, item_by_item, texts_of
from core.records import Item, with_spaces, words_of

if TYPE_CHECKING:
    from rouge_score.scoring import Score

MAX_CHARS = 60_000
"""Texts are compared with references up to here (about 10,000 words): chrF counts every run of six characters."""

_APOSTROPHE = re.compile("['’]")
_NO_WORDS = "The {} holds no words."


def _of_words(
    name: str,
    measures: str,
    against: Field,
    prepare: Callable[[], Callable[[Item], float | str]],
) -> Metric:
    needs: frozenset[Need] = frozenset({against})
    cost = "free; about a second for 1,000 items with one reference"
    return Metric(name, measures, needs, cost, item_by_item(needs, prepare))


def overlap(name: str, *, pairs: bool = False) -> Metric:
    """The share of the target's words (`pairs`: of its pairs of neighbouring words) that occur in the source.

    Words are compared by their stems; each occurrence in the target counts.  A target of one word has no pair and is
    Unscored there.
    """
    size = 2 if pairs else 1

    def runs(text: str) -> list[tuple[str, ...]]:
        words = cut(text).stems
        return [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]

    def prepare() -> Callable[[Item], float | str]:
        known = cache(lambda text: frozenset(runs(text)))  # a source is that of many items

        def measure(item: Item) -> float | str:
            there, written = known(texts_of(item, "source")[0]), runs(item.target)
            if not written:
                return f"The target holds fewer than {size} words."
            return sum(run in there for run in written) / len(written)

        return measure

    counted = "pairs of neighbouring words" if pairs else "words"
    return _of_words(name, f"Share of the target's {counted} found in the source.", "source", prepare)


# ── with references ──────────────────────────────────────────────────────────────────────────────────────────


def bleu(name: str = "bleu") -> Metric:
    """Sentence BLEU (Papineni et al. 2002) of sacrebleu, 0 to 100, with effective order: short targets are not 0 for
    want of 4-grams.  Several references are used together, as BLEU defines it."""

    def prepare() -> Callable[[Item], float | str]:
        from sacrebleu.metrics.bleu import BLEU

        return _sentence_score(BLEU(effective_order=True), with_spaces)

    measures = "Sentence BLEU: runs of up to four words in common with the references."
    return _of_words(name, measures, "references", prepare)


def chrf(name: str = "chrf") -> Metric:
    """Sentence chrF (Popović 2015) of sacrebleu, 0 to 100: runs of up to six characters, recall counts twice; the best
    reference.  Works in any script."""

    def prepare() -> Callable[[Item], float | str]:
        from sacrebleu.metrics.chrf import CHRF

        return _sentence_score(CHRF())

    measures = "chrF: runs of up to six characters in common with the best reference."
    return _of_words(name, measures, "references", prepare)


def _sentence_score(metric: Any, separate: Callable[[str], str] = str) -> Callable[[Item], float | str]:
    def measure(item: Item) -> float | str:
        references = [separate(text[:MAX_CHARS]) for text in texts_of(item, "references")]
        return float(metric.sentence_score(separate(item.target[:MAX_CHARS]), references).score)

    return measure


# ── ROUGE ────────────────────────────────────────────────────────────────────────────────────────────────────


def rouge(name: str, kind: str, *, source: bool = False) -> Metric:
    """ROUGE of `kind` "1", "2" or "L": F1 against the references; precision against the `source`."""
    against: Field = "source" if source else "references"
    what = {"L": "longest common subsequence of words", "1": "words"}.get(kind, f"runs of {kind} words")
    named, over = ("precision", "") if source else ("F1", ", mean over the references")

    def prepare() -> Callable[[Item], float | str]:
        from rouge_score.rouge_scorer import RougeScorer

        tokens = Tokens()
        scorer = None if kind == "L" else RougeScorer([f"rouge{kind}"], tokenizer=tokens)

        def compared(target: str, reference: str) -> float:
            if scorer is None:
                score = lcs_score(tokens.tokenize(reference), tokens.tokenize(target))
            else:
                score = scorer.score(reference, target)[f"rouge{kind}"]
            return float(score.precision if source else score.fmeasure)

        def measure(item: Item) -> float | str:
            if not tokens.tokenize(item.target):
                return _NO_WORDS.format("target")
            texts = [text for text in texts_of(item, against) if tokens.tokenize(text)]
            if not texts:
                return _NO_WORDS.format("source" if source else "reference")
            return sum(compared(item.target, text) for text in texts) / len(texts)

        return measure

    return _of_words(name, f"ROUGE-{kind} {named} against the {against}: {what} in common{over}.", against, prepare)


class Tokens:
    """ROUGE's tokenizer for any script, with a memory for texts (sources and references are shared by many items).

    Lower-case words, the English ones stemmed (Porter) from four letters on; characters in scripts without spaces.  In
    ASCII these are the tokens of rouge_score.
    """

    def __init__(self) -> None:
        from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped]
        from rouge_score import tokenize

        self.stem = lru_cache(maxsize=100_000)(PorterStemmer().stem)
        self._cut = tokenize.tokenize
        self._known: dict[str, list[str]] = {}

    def tokenize(self, text: str) -> list[str]:
        if text not in self._known:
            if text.isascii():
                self._known[text] = self._cut(text, self)
            else:
                words = [part for word in words_of(text) for part in _APOSTROPHE.split(word.lower())]
                self._known[text] = [self.stem(word) if word.isascii() and len(word) > 3 else word for word in words]
        return self._known[text]


def lcs_score(reference: list[str], target: list[str]) -> Score:
    """ROUGE-L of two token lists: precision, recall and F1 of the longest common subsequence; 0 for an empty list."""
    from rouge_score import scoring

    if not reference or not target:
        return scoring.Score(precision=0.0, recall=0.0, fmeasure=0.0)
    length = lcs_length(reference, target)
    precision, recall = length / len(target), length / len(reference)
    return scoring.Score(precision=precision, recall=recall, fmeasure=scoring.fmeasure(precision, recall))


def lcs_length(first: list[str], second: list[str]) -> int:
    """Length of the longest common subsequence: one addition of long integers for each word of the longer list.

    Bits of `rows` are words of the shorter list; a zero bit is a step up of the length in the usual table.
    """
    short, long = sorted((first, second), key=len)
    where: dict[str, int] = {}
    for position, word in enumerate(short):
        where[word] = where.get(word, 0) | (1 << position)
    full = (1 << len(short)) - 1
    rows = full
    for word in long:
        if places := where.get(word):
            matched = rows & places
            rows = ((rows + matched) | (rows - matched)) & full
    return len(short) - rows.bit_count()
