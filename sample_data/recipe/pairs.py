"""Pairs of summaries of one article, and which of the two each simulated annotator prefers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, groupby
from random import Random
from typing import Any

PAIRS_AN_ARTICLE = 9
INDIFFERENT = 1
"""Points, over all aspects together, up to which an annotator calls two summaries a tie."""

_A_BETTER, _TIE, _B_BETTER = 1, 2, 3
_WINNER = {_A_BETTER: "A", _TIE: "tie", _B_BETTER: "B"}


def build(summaries: Sequence[Mapping[str, Any]], seed: int) -> list[dict[str, object]]:
    """Pairs drawn from the rows of `summaries.jsonl`, `PAIRS_AN_ARTICLE` of each article, either text first."""
    rng, rows = Random(f"pairs-{seed}"), []
    for source_id, own in groupby(summaries, key=lambda row: row["source_id"]):
        for pair in rng.sample(list(combinations(own, 2)), PAIRS_AN_ARTICLE):
            a, b = rng.sample(pair, 2)
            votes = [_preferred(totals) for totals in zip(_totals(a), _totals(b), strict=True)]
            rows.append(
                {
                    "item_id": f"{source_id}/{a['system_id']}-{b['system_id']}",
                    "source_id": source_id,
                    "source": a["source"],
                    "model_a": a["system_id"],
                    "model_b": b["system_id"],
                    "text_a": a["target"],
                    "text_b": b["target"],
                    "winner": _WINNER[_majority(votes)],
                    "ann_preference": votes,
                }
            )
    return rows


def _totals(row: Mapping[str, Any]) -> list[int]:
    """What each annotator gives a summary, all aspects together."""
    return [sum(given) for given in zip(*(row[name] for name in row if name.startswith("ann_")), strict=True)]


def _preferred(totals: tuple[int, int]) -> int:
    ahead = totals[0] - totals[1]
    return _TIE if abs(ahead) <= INDIFFERENT else _A_BETTER if ahead > 0 else _B_BETTER


def _majority(votes: Sequence[int]) -> int:
    """What at least two of three say; a tie where all differ."""
    return next((vote for vote in _WINNER if votes.count(vote) >= 2), _TIE)
