"""Ranks that people gave to the texts of one source, 1 the best, as labels of which a higher one is better.

A rank becomes K + 1 − rank, where K is the most texts that any source has: the best text of every source then stands at
the same end of the scale, however many others it was ranked with.  Texts of one source may share a rank, or the mean of
the places that they share (2.5 and 2.5), and some may have none.
"""

from __future__ import annotations

from collections import Counter, abc

import numpy as np

from core.data.cells import folded
from core.data.columns import Mapping
from core.data.findings import FindingLog
from core.data.items import ItemRows
from core.data.label_cells import AspectCells, Label
from core.data.scale import find_step
from core.records import Scale
from core.wording import counted

_NAMES = frozenset(("rank", "ranks", "ranking", "ranked"))


def sounds_like_ranks(name: str) -> bool:
    """Whether a column or an aspect is called so."""
    return bool(_NAMES & set(folded(name).split("_")))


def turn_ranks(
    aspects: abc.Mapping[str, AspectCells], mapping: Mapping, rows: ItemRows, log: FindingLog
) -> dict[str, Scale]:
    """Turns the ranks among `aspects` round, in place; aspect → its scale.  Those are `mapping.ranks`, else by name.

    An error for every cell that is no rank among the texts of its source.
    """
    sources = [item.source_id for item in rows.items]
    n_texts = Counter(sources)
    most = max(n_texts.values(), default=0)
    scales: dict[str, Scale] = {}
    for aspect, cells in aspects.items():
        if not (sounds_like_ranks(aspect) if mapping.ranks is None else aspect in mapping.ranks):
            continue
        if most < 2:
            message = (
                f"{aspect} holds ranks, which compare the texts of one source, and every source here has one text. Say "
                "which column names the source, or that these are no ranks."
            )
            log.add("error", message, column=cells.column)
            continue
        sound = [label for label in cells.ratings if _is_rank(label, n_texts[sources[label.position]], log)]
        cells.ratings = [_turned(label, most) for label in sound]
        if cells.gold_given:
            cells.gold = [
                _turned(label, most) if label and _is_rank(label, n_texts[sources[label.position]], log) else None
                for label in cells.gold
            ]
        else:
            cells.gold = [None] * len(cells.gold)
            cells.gold_from_ratings()
        values = [label.value for label in cells.ratings] or [value for value in cells.values if value is not None]
        scales[aspect] = Scale(1.0, float(most), find_step(np.array(values), most - 1.0), given=True)
        message = (
            f"{aspect} holds ranks, 1 the best of a source: the label is {most} + 1 − rank, so that higher is better. "
            f"They compare the texts of one source alone{_level_words(cells, sources)}"
        )
        if mapping.ranks is None:
            message += " So its name says; where a higher rank is better, call it otherwise or say so on the screen."
        log.add("warning" if mapping.ranks is None else "note", message, column=cells.column)
    return scales


def _level_words(cells: AspectCells, sources: abc.Sequence[str]) -> str:
    """Which level suits the ranks, by how many texts of a source have one."""
    ranked = Counter(source for source, value in zip(sources, cells.values, strict=True) if value is not None)
    if max(ranked.values(), default=0) >= 3:
        return ": choose sample level."
    return (
        ", and no source has three that were ranked, as sample level needs. Dataset level also compares texts of "
        "different sources, so it shows less agreement than there is."
    )


def _is_rank(label: Label, n_texts: int, log: FindingLog) -> bool:
    """Whether a label can be a rank among so many texts, with an error where not; gold labels may be people's means."""
    if not 1 <= label.value <= n_texts:
        message = (
            f"{label.value:g} is no rank: the source has {counted(n_texts, 'text')}, so 1 to {n_texts} was expected."
        )
    elif label.rater and not (2 * label.value).is_integer():
        message = f"{label.value:g} is no rank: a whole number was expected, or a half where texts share a place."
    else:
        return True
    log.add("error", message, row=label.row, column=label.column, kind="rank")
    return False


def _turned(label: Label, most: int) -> Label:
    return label._replace(value=most + 1 - label.value)
