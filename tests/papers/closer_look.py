"""A Closer Look, Tables 1 to 6, next to the paper's own replies on Topical-Chat, read and aligned here.

    python tests/papers/closer_look.py [--data ../shared/data] [--sets Topical-Chat]

Ratings are read twice: with the paper's parser (lower-case, the first digit after the last "rating:") and with ours.
There are no replies for SummEval, for the runs without evaluation steps that only score, and for free text.
"""

from __future__ import annotations

import argparse
import re
import sys
from functools import cache, partial
from math import nan
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import core
from core.data.judge_results import read_replies
from core.judging.parse import read_rating
from core.records import GoldenSet, Measure, Scale
from core.stats import LabelledItems, align
from core.verdicts import Reading
from tests.papers.printed import FILES, Column, Ours, run

REPLIES = {
    "ChatGPT score only, auto-CoT": "geval",
    "ChatGPT rate-explain": "rate_explain",
    "ChatGPT analyze-rate": "analyze_rate",
}
"""Name of a row in Tables 2 and 4 → files with its replies."""


Parser = Literal["paper", "concord"]


@cache
def scores(data: Path, parser: Parser, replies: str, aspect: str) -> dict[str, float]:
    """Mean of each item's readable replies."""
    file = data / "topical_chat_responses" / f"{aspect}_{replies}.jsonl.gz"
    scale = Scale(0, 1) if aspect == "groundedness" else Scale(1, 3)
    rows = read_replies(
        file, read_rating_as_paper if parser == "paper" else partial(read_rating, scale=scale, aspect=aspect)
    )
    return {row["item_id"]: row["score"] for row in rows if row["score"] is not None}


def read_rating_as_paper(reply: str) -> Reading:
    """Read the digit that the paper's tables are built on.

    The paper does not print its method. These steps match its Tables 2 to 4 to the last digit: lower case, drop every
    "1-3", take the text after the last "rating:", then its first digit. So "2.5" is 2, and the digit may be one of a
    year. No scale is checked.
    """
    digit = re.search("[0-9]", reply.lower().replace("1-3", "").rpartition("rating:")[2])
    return Reading(None, "no verdict" if reply.strip() else "empty") if digit is None else Reading(float(digit[0]))


def aligned(data: Path, golden: GoldenSet, parser: Parser, replies: str, column: Column) -> float | None:
    """Alignment of the means, also of those off the scale, which the paper's parser lets through."""
    own = scores(data, parser, replies, column.aspect)
    values = [own.get(item_id, nan) for item_id in golden.item_ids]
    statistic, level = column.measure.split()
    measure = Measure(statistic, level)  # type: ignore[arg-type]
    return align(values, LabelledItems.of(golden, column.aspect), measure).value


def ours(data: Path, dataset: str, columns: list[Column], _: argparse.Namespace) -> Ours:
    if dataset != "Topical-Chat":
        return {}
    golden = core.load_golden(data / f"{FILES[dataset]}.jsonl.gz")
    parsers: tuple[Parser, ...] = ("paper", "concord")
    return {
        f"{judge}, {parser} parser": {column: aligned(data, golden, parser, replies, column) for column in columns}
        for judge, replies in REPLIES.items()
        for parser in parsers
    }


if __name__ == "__main__":
    run("A Closer Look", __doc__, ours)
