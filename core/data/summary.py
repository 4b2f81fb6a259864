"""A golden set in one sentence: how much of it there is, by how many people, and how far their labels spread."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from core.records import GoldenSet
from core.wording import counted


@dataclass(frozen=True, slots=True)
class LevelsUsed:
    """How many of the `n_levels` of its scale the labels of an aspect use; those that single people gave, if known."""

    aspect: str
    n_used: int
    n_levels: int


def sentence(golden: GoldenSet, *, labels: bool = True) -> str:
    """``1,600 items from 16 systems over 100 sources, 3 people each; labels use 4 of 5 levels.``

    `labels` False says nothing of what the labels are, for somebody who is still to give theirs.
    """
    words = counted(len(golden.items), "item")
    words += f" from {counted(golden.n_systems, 'system')}" if golden.n_systems else ""
    words += f" over {counted(golden.n_sources, 'source')}" if golden.n_sources < len(golden.items) else ""
    if not golden.aspects:
        return f"{words}; no labels yet."
    words += f", {people}" if (people := people_each(golden)) else ""
    partly = max(labelled.n_labelled for labelled in golden.aspects.values())
    words += f", {partly:,} of them labelled" if partly < len(golden.items) else ""
    return f"{words}{'; ' + used if labels and (used := _levels_words(golden)) else ''}."


def people_each(golden: GoldenSet) -> str:
    """How many people rated an item, where single ratings are known: ``"3 people each"``; "" where they are not."""
    counts = set(Counter((rating.item_id, rating.aspect) for rating in golden.ratings).values())
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    if low == high:
        return f"{low} {'person' if low == 1 else 'people'} each"
    return f"{low} to {high} people each"


def levels_used(golden: GoldenSet) -> list[LevelsUsed]:
    """Of every aspect whose labels are whole steps of its scale."""
    given: dict[str, set[float]] = {}
    for rating in golden.ratings:
        given.setdefault(rating.aspect, set()).add(rating.value)
    found: list[LevelsUsed] = []
    for aspect, labels in golden.aspects.items():
        scale = labels.scale
        values = given.get(aspect) or {value for value in labels.values if value is not None}
        if scale.step is None or any(abs(_steps(value, scale.low, scale.step)) > 1e-9 for value in values):
            continue  # a scale without levels, or means of several people
        found.append(LevelsUsed(aspect, len(values), round((scale.high - scale.low) / scale.step) + 1))
    return found


def _levels_words(golden: GoldenSet) -> str:
    used = levels_used(golden)
    counts = {(levels.n_used, levels.n_levels) for levels in used}
    if len(counts) == 1 and len(used) == len(golden.aspects):
        ((n_used, n_levels),) = counts
        return f"labels use {'all ' if n_used == n_levels else f'{n_used} of '}{n_levels} levels"
    narrow = [levels for levels in used if levels.n_used < levels.n_levels]
    if not narrow:
        return "labels use every level" if used else ""
    least = min(narrow, key=lambda levels: levels.n_used / levels.n_levels)
    more = f" ({len(narrow) - 1} more aspects leave levels out)" if len(narrow) > 1 else ""
    return f"labels of {least.aspect} use {least.n_used} of {least.n_levels} levels{more}"


def _steps(value: float, low: float, step: float) -> float:
    """How far a value is from the next level, in steps."""
    steps = (value - low) / step
    return steps - round(steps)
