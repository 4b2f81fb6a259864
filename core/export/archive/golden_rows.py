"""Golden sets of a project's file: rebuilt from their rows, and their content hash computed again.

A golden set is shared by everybody who has the same content, so nobody may bring one under a hash that is not its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from core.errors import ArchiveError
from core.records import GoldenSet
from core.store.layout import LAYOUT, decode
from core.store.projects import golden_row, item_rows, rebuilt


def checked_golden(row: dict[str, Any], items: Sequence[dict[str, Any]]) -> GoldenSet:
    """The golden set of a row of `goldens` and its rows of `golden_items`, in order, each of the right shape.

    ArchiveError where the rows are no golden set, or not the one whose hash they carry.
    """
    where = f"golden set {row['golden_id'][:24]}"
    if [item["position"] for item in items] != list(range(len(items))):
        raise ArchiveError(f"{where}: its items do not stand at positions 0 to {len(items) - 1}.")
    try:
        stored, bodies = decode(LAYOUT["goldens"], row), [decode(LAYOUT["golden_items"], one)["body"] for one in items]
        golden = rebuilt(stored, bodies)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ArchiveError(f"{where}: its rows cannot be read ({error!r:.80}).") from error
    _check_content(golden, stored, bodies, where)
    return golden


def _check_content(golden: GoldenSet, stored: dict[str, Any], bodies: list[str], where: str) -> None:
    for name, labels in golden.aspects.items():
        if labels.aspect != name or len(labels.values) != len(golden.items):
            raise ArchiveError(f"{where}: the labels of {name[:40]!r} are not one an item.")
    if any(len(values) != len(golden.items) for values in golden.metrics.values()):
        raise ArchiveError(f"{where}: a metric has not one value an item.")
    _check_labels(golden, where)
    if len(set(golden.item_ids)) != len(golden.items):
        raise ArchiveError(f"{where}: two items have the same id.")
    if golden.digest != stored["golden_id"]:
        raise ArchiveError(
            f"{where}: the content has another hash ({golden.digest[:24]}…). The file was damaged or changed."
        )
    ours = golden_row(golden, stored["created_at"])
    texts = ("aspects", "body", "ratings")
    same = all(ours[name] == stored[name] for name in ours if name not in texts)
    same = same and all(json.loads(ours[name]) == json.loads(stored[name]) for name in texts)
    if not same or [json.loads(one["body"]) for one in item_rows(golden)] != [json.loads(one) for one in bodies]:
        raise ArchiveError(f"{where}: its counts are not those of its content.")


def _check_labels(golden: GoldenSet, where: str) -> None:
    """Every label and rating on its scale, every rating of an item and an aspect that are there."""
    for name, labels in golden.aspects.items():
        if not labels.scale.low < labels.scale.high:
            raise ArchiveError(f"{where}: the scale of {name[:40]!r} runs from {labels.scale.low:g} to no higher.")
        given = [value for value in labels.values if value is not None]
        given += [rating.value for rating in golden.ratings if rating.aspect == name]
        stray = next((value for value in given if not labels.scale.holds(value)), None)
        if stray is not None:
            raise ArchiveError(f"{where}: a label of {name[:40]!r} is {stray:g}; the scale is {labels.scale}.")
    if strange := {rating.aspect for rating in golden.ratings} - golden.aspects.keys():
        raise ArchiveError(f"{where}: there are ratings of {min(strange)[:40]!r}, which is none of its aspects.")
    if {rating.item_id for rating in golden.ratings} - set(golden.item_ids):
        raise ArchiveError(f"{where}: there are ratings of items that it does not have.")
