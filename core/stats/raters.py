"""The ratings of single people as a matrix, and which people stand behind the gold labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import AspectError
from core.records import FloatArray, GoldenSet, IntArray, Rating

NEAR = 1e-6
"""Gold labels this near to a panel's means (in points) are those means, written with rounding."""


@dataclass(frozen=True)
class RaterTable:
    """values: (n_raters, n_items) in the order of `raters` and `GoldenSet.items`, NaN = not rated."""

    raters: tuple[str, ...]
    values: FloatArray
    panel: str = ""


def rater_table(golden: GoldenSet, aspect: str, panel: str | None = None) -> RaterTable:
    """Individual ratings on `aspect`; slots (r1, r2, …) count as raters where raters are not named.

    `panel` keeps the raters of one panel ("expert": expert1, expert2, …).  None keeps all, unless there are several
    panels and the gold labels are the means of exactly one: then that one, being whom judges are measured against.
    AspectError when nobody's single ratings are there, or no such panel.
    """
    ratings = [rating for rating in golden.ratings if rating.aspect == aspect]
    if not ratings:
        raise AspectError(_nobody(golden, aspect), file=golden.name)
    table = _matrix(golden, ratings)
    panels = _panels(table.raters)
    if panel is None:
        panel = _panel_of_gold(table, panels, golden.labels(aspect)) if len(panels) > 1 else ""
    elif panel not in panels:
        known = ", ".join(panels) or "none"
        raise AspectError(f"there is no panel {panel!r} of raters on {aspect!r}; panels: {known}.", file=golden.name)
    if not panel:
        return table
    rows = panels[panel]
    return RaterTable(tuple(table.raters[row] for row in rows), table.values[rows], panel)


def _nobody(golden: GoldenSet, aspect: str) -> str:
    others = sorted({rating.aspect for rating in golden.ratings})
    there = f" Single ratings are there for {', '.join(others)}." if others else ""
    return (
        f"{aspect!r} has only one label an item, so how well people agree cannot be told. Add the single ratings: a "
        f"column ann_{aspect} with a list an item, or one row a rating with the rater in annotator_id.{there}"
    )


def _matrix(golden: GoldenSet, ratings: Sequence[Rating]) -> RaterTable:
    position = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    row = {rater: k for k, rater in enumerate(sorted({rating.rater_id for rating in ratings}, key=_natural))}
    values = np.full((len(row), len(position)), np.nan)
    for rating in ratings:
        values[row[rating.rater_id], position[rating.item_id]] = rating.value
    return RaterTable(tuple(row), values)


def _natural(rater: str) -> tuple[str, int, str]:
    """Sort key: r2 before r10."""
    found = re.fullmatch(r"(.*?)(\d{1,9})", rater, flags=re.DOTALL)
    return (found[1], int(found[2]), rater) if found else (rater, -1, rater)


def _panels(raters: Sequence[str]) -> dict[str, IntArray]:
    """Name → rows of the raters called name1, name2, …, at least two of them."""
    row = {rater: k for k, rater in enumerate(raters)}
    panels = {}
    for first in raters:
        name = first.removesuffix("1")
        if name == first or not name or name[-1].isdigit() or f"{name}2" not in row:
            continue
        size = next(k for k in range(2, len(raters) + 2) if f"{name}{k}" not in row) - 1
        panels[name] = np.array([row[f"{name}{k}"] for k in range(1, size + 1)], dtype=np.intp)
    return panels


def _panel_of_gold(table: RaterTable, panels: dict[str, IntArray], labels: FloatArray) -> str:
    """The panel whose means are the labels; "" when none is, or several are."""
    fitting = [name for name, rows in panels.items() if _means_are(table.values[rows], labels)]
    return fitting[0] if len(fitting) == 1 else ""


def _means_are(values: FloatArray, labels: FloatArray) -> bool:
    counts = (~np.isnan(values)).sum(axis=0)
    both = (counts > 0) & ~np.isnan(labels)
    means = np.nan_to_num(values).sum(axis=0)[both] / counts[both]
    return bool(both.any() and (np.abs(means - labels[both]) <= NEAR).all())
