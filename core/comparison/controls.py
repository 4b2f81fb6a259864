"""Negative controls: texts spoiled on purpose, judged next to their originals.

A judge that prefers a text with changed numbers, or the answer to another question, does not read the texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from core.errors import GoldenError
from core.judging.offline.text import split_sentences
from core.records import GoldenSet, Interval, Item, Scored, Verdict, json_fields
from core.stats.intervals import CONFIDENCE, LEAST_SOURCES, TOO_FEW, clustered_error, t_quantile

ControlKind = Literal["another source's text", "a sentence deleted", "numbers changed", "the text repeated"]
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Control:
    """How often a judge prefers spoiled texts to the originals.

    Attributes:
        kind: The way of spoiling.
        n: Number of pairs (original, spoiled text) in which both texts have a score.
        n_sources: Number of sources of the scored pairs.
        n_unscored: Number of pairs without both scores.
        preferred: Share of the scored pairs in which the spoiled text scores higher, from 0 to 1. Equal scores count
            half. None if there are no scored pairs.
        interval: Interval of `preferred`; None for fewer than `LEAST_SOURCES` sources.
        reason: Why `preferred` or `interval` is None.
    """

    kind: ControlKind
    n: int
    n_sources: int
    n_unscored: int
    preferred: float | None
    interval: Interval | None
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        return json_fields(self)


def spoiled(kind: ControlKind, item: Item, others: Sequence[Item], generator: np.random.Generator) -> Item | None:
    """Return `item` with its text spoiled in the given way (`kind`); None if impossible.

    `others` are items of other sources.
    """
    text = item.target
    if kind == "another source's text":
        if not others:
            return None
        text = others[int(generator.integers(len(others)))].target
    elif kind == "a sentence deleted":
        sentences = split_sentences(text)
        if len(sentences) < 2:
            return None
        del sentences[int(generator.integers(len(sentences)))]
        text = " ".join(sentences)
    elif kind == "numbers changed":
        # append a digit, so that every number changes
        text = _NUMBER.sub(lambda number: number[0] + str(generator.integers(1, 10)), text)
    else:
        text = f"{text}\n\n{text}"
    return None if text == item.target else replace(item, item_id=f"{item.item_id}|{kind}", target=text)


def spoiled_pairs(
    golden: GoldenSet, aspect: str, positions: Sequence[int], *, n: int = 30, seed: int = 0
) -> list[tuple[ControlKind, Item, Item]]:
    """Draw up to `n` items, and spoil the text of each in every possible way.

    Args:
        golden: Items of single texts, with labels of `aspect`.
        positions: Items to draw from, such as those that the judge was calibrated on. Only the better half by label is
            drawn, because a bad text can hardly become worse.
        seed: Seed of the draw and of the changes.

    Returns:
        A list of (way of spoiling, original, spoiled item).

    Raises:
        GoldenError: There are pairs instead of single texts, or no labelled item among `positions`.
    """
    labels, generator = golden.labels(aspect), np.random.default_rng(seed)
    usable = np.asarray([place for place in positions if not np.isnan(labels[place])], dtype=np.intp)
    if golden.kind == "pair":
        raise GoldenError(
            "The golden set contains pairs. Spoiled texts can only be made from single texts.", file=golden.name
        )
    if not usable.size:
        raise GoldenError(
            "No labelled item here was used to calibrate this judge. Use the golden set that it was calibrated on.",
            file=golden.name,
        )
    good = usable[labels[usable] >= np.median(labels[usable])]
    drawn = [golden.items[int(place)] for place in generator.permutation(good)[:n]]
    pairs: list[tuple[ControlKind, Item, Item]] = []
    for kind in get_args(ControlKind):
        for item in drawn:
            others = [other for other in drawn if other.source_id != item.source_id]
            if (worse := spoiled(kind, item, others, generator)) is not None:
                pairs.append((kind, item, worse))
    return pairs


def items_of(pairs: Sequence[tuple[ControlKind, Item, Item]]) -> list[Item]:
    """List the distinct originals and spoiled texts of `pairs`, for the judge to score."""
    return list({item.item_id: item for _, original, worse in pairs for item in (original, worse)}.values())


def negative_controls(
    golden: GoldenSet,
    aspect: str,
    score: Callable[[Sequence[Item]], Sequence[Verdict]],
    positions: Sequence[int],
    *,
    n: int = 30,
    seed: int = 0,
) -> tuple[Control, ...]:
    """Return a `Control` for each way of spoiling texts: how often the judge prefers the spoiled text.

    `score` is the judge's scoring function, which is called once with all original and spoiled items. The other
    arguments and the errors are those of `spoiled_pairs`.
    """
    pairs = spoiled_pairs(golden, aspect, positions, n=n, seed=seed)
    scores = {verdict.item_id: verdict.value for verdict in score(items_of(pairs)) if isinstance(verdict, Scored)}
    return tuple(
        _control(kind, [pair[1:] for pair in pairs if pair[0] == kind], scores) for kind in get_args(ControlKind)
    )


def _control(kind: ControlKind, pairs: Sequence[tuple[Item, Item]], scores: dict[str, float]) -> Control:
    both = [(a, b) for a, b in pairs if a.item_id in scores and b.item_id in scores]
    gaps = np.array([scores[worse.item_id] - scores[item.item_id] for item, worse in both])
    wins = (np.sign(gaps) + 1.0) / 2.0
    sources = np.unique([item.source_id or item.item_id for item, _ in both], return_inverse=True)[1]
    n_sources, lost = len(set(sources.tolist())), len(pairs) - len(both)
    if not both:
        return Control(kind, 0, 0, lost, None, None, "no text could be both spoiled in this way and scored")
    share = float(wins.mean())
    if n_sources < LEAST_SOURCES:
        return Control(kind, len(both), n_sources, lost, share, None, TOO_FEW)
    # Wilson's interval (1927) at the effective number of independent pairs, from the spread over sources;
    # if all pairs agree there is no spread, and each source counts once
    error = clustered_error((wins - share) / len(both), sources)
    n = min(share * (1.0 - share) / error**2, len(both)) if error > 0 else n_sources
    t = t_quantile(n_sources - 1)
    middle = (share + t**2 / (2.0 * n)) / (1.0 + t**2 / n)
    half = t * np.sqrt(share * (1.0 - share) / n + t**2 / (4.0 * n**2)) / (1.0 + t**2 / n)
    method = f"Wilson over {n_sources:,} sources"
    ends = Interval(max(float(middle - half), 0.0), min(float(middle + half), 1.0), CONFIDENCE, method, n_sources)
    return Control(kind, len(both), n_sources, lost, share, ends)
