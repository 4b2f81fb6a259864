"""Words in common: shares found in the source; BLEU and chrF (sacrebleu) and METEOR (nltk) against references."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from core.errors import JudgeError
from core.judging.offline.text import cut
from core.metrics.base import Metric, Need, item_by_item, texts_of
from core.records import Item

MAX_CHARS = 60_000
"""Texts are compared with references up to here (about 10,000 words): chrF counts every run of six characters."""

_WORD = re.compile(r"\w+|[^\w\s]")


# ── with what the target was written from ────────────────────────────────────────────────────────────────────


def overlap(name: str, against: Literal["source", "context"] = "source", *, pairs: bool = False) -> Metric:
    """The share of the target's words (`pairs`: of its pairs of neighbouring words) that occur in `against`.

    Words are compared by their stems; each occurrence in the target counts.  A target of one word has no pair and is
    Unscored there.
    """
    needs: frozenset[Need] = frozenset({against})
    return Metric(
        name=name,
        measures=f"Share of the target's {'pairs of neighbouring words' if pairs else 'words'} found in the {against}.",
        low=0.0,
        high=1.0,
        needs=needs,
        cost="free; about a second for 1,000 items",
        scorer=item_by_item(needs, lambda: _share_found(against, 2 if pairs else 1)),
    )


def _share_found(against: Literal["source", "context"], size: int) -> Callable[[Item], float | str]:
    known: dict[str, frozenset[tuple[str, ...]]] = {}

    def measure(item: Item) -> float | str:
        text = texts_of(item, against)[0]
        if text not in known:
            known[text] = frozenset(_runs(cut(text).stems, size))
        written = _runs(cut(item.target).stems, size)
        if not written:
            return f"The target holds fewer than {size} words."
        return sum(run in known[text] for run in written) / len(written)

    return measure


def _runs(words: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]


# ── with references ──────────────────────────────────────────────────────────────────────────────────────────


def _of_references(
    name: str,
    measures: str,
    high: float,
    prepare: Callable[[], Callable[[Item], float | str]],
    problem: Callable[[], str] = lambda: "",
) -> Metric:
    needs: frozenset[Need] = frozenset({"references"})
    return Metric(
        name=name,
        measures=measures,
        low=0.0,
        high=high,
        needs=needs,
        cost="free; about a second for 1,000 items with one reference",
        scorer=item_by_item(needs, prepare),
        problem=problem,
    )


def bleu(name: str = "bleu") -> Metric:
    """Sentence BLEU (Papineni et al. 2002) of sacrebleu, 0 to 100, with effective order: short targets are not 0 for
    want of 4-grams.  Several references are used together, as BLEU defines it."""

    def prepare() -> Callable[[Item], float | str]:
        from sacrebleu.metrics.bleu import BLEU

        return _sentence_score(BLEU(effective_order=True))

    measures = "Sentence BLEU: runs of up to four words in common with the references."
    return _of_references(name, measures, 100.0, prepare)


def chrf(name: str = "chrf") -> Metric:
    """Sentence chrF (Popović 2015) of sacrebleu, 0 to 100: runs of up to six characters, recall counts twice; the best
    reference.  Works in any script."""

    def prepare() -> Callable[[Item], float | str]:
        from sacrebleu.metrics.chrf import CHRF

        return _sentence_score(CHRF())

    measures = "chrF: runs of up to six characters in common with the best reference."
    return _of_references(name, measures, 100.0, prepare)


def _sentence_score(metric: Any) -> Callable[[Item], float | str]:
    def measure(item: Item) -> float | str:
        references = [text[:MAX_CHARS] for text in texts_of(item, "references")]
        return float(metric.sentence_score(item.target[:MAX_CHARS], references).score)

    return measure


def meteor(name: str = "meteor") -> Metric:
    """METEOR (Banerjee and Lavie 2005) of nltk, 0 to 1, the best reference.  Needs nltk's wordnet, which is not part
    of the installation; `missing` says so where it is not found."""
    measures = "METEOR: words, stems and synonyms in common with the best reference, in a similar order."
    return _of_references(name, measures, 1.0, _meteor, meteor_problem)


def data_folders() -> tuple[Path, ...]:
    """Where nltk looks for its data by default: the home folder, the environment, the system."""
    roots = (Path.home(), Path(sys.prefix), Path(sys.prefix, "share"), Path(sys.prefix, "lib"))
    system = (Path("/usr/share"), Path("/usr/local/share"), Path("/usr/lib"), Path("/usr/local/lib"))
    return tuple(root / "nltk_data" for root in (*roots, *system))


def meteor_problem() -> str:
    """Why METEOR cannot run, "" when wordnet is there.  Looks for the file: nltk itself takes seconds to import."""
    names = ("wordnet.zip", "wordnet")
    if any((folder / "corpora" / name).exists() for folder in data_folders() for name in names):
        return ""
    return (
        "METEOR needs nltk's wordnet data, which is in none of nltk's usual folders; "
        "`python -m nltk.downloader wordnet` brings it"
    )


def _meteor() -> Callable[[Item], float | str]:
    from nltk.corpus import wordnet  # type: ignore[import-untyped]
    from nltk.translate.meteor_score import meteor_score  # type: ignore[import-untyped]

    try:
        wordnet.ensure_loaded()
    except LookupError as error:
        raise JudgeError("nltk's wordnet data cannot be loaded; `python -m nltk.downloader wordnet`.") from error

    def words(text: str) -> list[str]:
        return _WORD.findall(text[:MAX_CHARS])

    def measure(item: Item) -> float | str:
        references = [words(text) for text in texts_of(item, "references")]
        return float(meteor_score(references, words(item.target), wordnet=wordnet))

    return measure
