"""Comparison with references by other people's code: BLEU and chrF (sacrebleu), METEOR (nltk, where its data is)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.errors import JudgeError
from core.fusion.assistants.base import Assistant, Need, item_by_item, texts_of
from core.records import Item

NEEDS: frozenset[Need] = frozenset({"references"})
MAX_CHARS = 60_000
"""Texts are compared up to this length (about 10,000 words); chrF counts every run of six characters."""

_WORD = re.compile(r"\w+|[^\w\s]")


def bleu() -> Assistant:
    """Sentence BLEU (Papineni et al. 2002) of sacrebleu, 0 to 100, with effective order: short targets are not 0 for
    want of 4-grams.  Several references are used together, as BLEU defines it."""
    return Assistant(
        name="bleu",
        measures="Sentence BLEU: runs of up to four words in common with the references.",
        low=0.0,
        high=100.0,
        needs=NEEDS,
        cost="free; about a second for 1,000 items with one reference",
        scorer=item_by_item(NEEDS, _bleu),
    )


def chrf() -> Assistant:
    """Sentence chrF (Popović 2015) of sacrebleu, 0 to 100: runs of up to six characters, recall counts twice; the best
    reference.  Works in any script."""
    return Assistant(
        name="chrf",
        measures="chrF: runs of up to six characters in common with the best reference.",
        low=0.0,
        high=100.0,
        needs=NEEDS,
        cost="free; about a second for 1,000 items with one reference",
        scorer=item_by_item(NEEDS, _chrf),
    )


def meteor() -> Assistant:
    """METEOR (Banerjee and Lavie 2005) of nltk, 0 to 1, the best reference.  Needs nltk's wordnet, which is not part
    of the installation; `missing` says so where it is not found."""
    return Assistant(
        name="meteor",
        measures="METEOR: words, stems and synonyms in common with the best reference, in a similar order.",
        low=0.0,
        high=1.0,
        needs=NEEDS,
        cost="free; about a second for 1,000 items with one reference",
        scorer=item_by_item(NEEDS, _meteor),
        problem=meteor_problem,
    )


def _bleu() -> Callable[[Item], float | str]:
    from sacrebleu.metrics.bleu import BLEU

    return _sentence_score(BLEU(effective_order=True))


def _chrf() -> Callable[[Item], float | str]:
    from sacrebleu.metrics.chrf import CHRF

    return _sentence_score(CHRF())


def _sentence_score(metric: Any) -> Callable[[Item], float | str]:
    def measure(item: Item) -> float | str:
        references = [text[:MAX_CHARS] for text in texts_of(item, "references")]
        return float(metric.sentence_score(item.target[:MAX_CHARS], references).score)

    return measure


# ── METEOR ───────────────────────────────────────────────────────────────────────────────────────────────────


def data_folders() -> tuple[Path, ...]:
    """Where nltk looks for its data by default: the home folder, the environment, the system."""
    roots = (Path.home(), Path(sys.prefix), Path(sys.prefix, "share"), Path(sys.prefix, "lib"))
    system = (Path("/usr/share"), Path("/usr/local/share"), Path("/usr/lib"), Path("/usr/local/lib"))
    return tuple(root / "nltk_data" for root in (*roots, *system))


def meteor_problem() -> str:
    """Why METEOR cannot run, "" when wordnet is there.  Looks for the file: nltk itself takes seconds to import."""
    for folder in data_folders():
        if any((folder / "corpora" / name).exists() for name in ("wordnet.zip", "wordnet")):
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

    def measure(item: Item) -> float | str:
        references = [_words(text) for text in texts_of(item, "references")]
        return float(meteor_score(references, _words(item.target), wordnet=wordnet))

    return measure


def _words(text: str) -> list[str]:
    return _WORD.findall(text[:MAX_CHARS])
