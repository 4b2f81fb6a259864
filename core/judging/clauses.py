"""Score an item by each clause of the criteria separately, and average the ratings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from core.judging.scoring_styles import shortened_parts
from core.records import Item, Scored, Unscored, Verdict

_MARK = re.compile(r"\A(?:#+|[-*•–—]|\(?(?:\d{1,2}|[a-zA-Z])[.)])\s+")
"""Pattern of the heading mark, bullet or number at the start of a line."""
_NEXT_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\Wa-z_])")


def clauses_of(criteria: str) -> tuple[str, ...]:
    """Split criteria into clauses: one per line, or one per sentence if there is only one line.

    Bullets are removed. A heading, or a line that ends with a colon, is not a clause. It is put in front of each clause
    that follows. Criteria without clauses are returned unchanged.
    """
    lines = [line.strip() for line in criteria.splitlines() if line.strip()]
    if len(lines) == 1:
        lines = _NEXT_SENTENCE.split(_MARK.sub("", lines[0]))
    lead, clauses = "", list[str]()
    for line in lines:
        text = _MARK.sub("", line)
        if line.startswith("#") or line.rstrip("*_ ").endswith(":"):
            lead = f"{text.strip('*_: ')}: "
        else:
            clauses.append(lead + text)
    return tuple(clauses) or (criteria,)


def weighted_clauses(item: Item, clauses: Sequence[str], rated: Sequence[Verdict], weights: Sequence[float]) -> Verdict:
    """Combine the verdicts on the clauses of criteria into one verdict: the weighted mean.

    If a clause is unscored, the result is the first unscored verdict with its reason.

    Args:
        rated: A verdict on each clause.
        weights: A weight for each clause. If there are more or fewer weights than clauses, or if the weights add up
            to 0, all clauses count equally.
    """
    raw = tuple(text for verdict in rated for text in verdict.raw)
    read = list[Scored]()
    for clause, verdict in zip(clauses, rated, strict=True):
        if isinstance(verdict, Unscored):
            return replace(verdict, detail=f"On the clause “{clause}”: {verdict.detail or verdict.reason}", raw=raw)
        read.append(verdict)
    if len(weights) != len(clauses) or not sum(weights) > 0:
        weights = [1.0] * len(clauses)
    ratings = np.array([(each.value, each.turned) for each in read], dtype=np.float64)
    value, turned = np.average(ratings, axis=0, weights=weights).tolist()
    lines = [
        f"{each.value:.4g} (weight {weight / sum(weights):.2f}): {clause}"
        for each, weight, clause in zip(read, weights, clauses, strict=True)
    ]
    return Scored(
        item.item_id,
        value,
        "\n".join([*lines, *shortened_parts(item)]),
        raw,
        n_read=sum(each.n_read for each in read),
        n_unread=sum(each.n_unread for each in read),
        turned=None if np.isnan(turned) else turned,
        clauses=tuple((each.value, each.turned) for each in read),
    )
