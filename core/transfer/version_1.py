"""Project files of version 1, whose labels do not say which pass they were given in: brought up on reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from core.store.earlier_passes import JOINED, PASS, KnownPass, known_pass, pass_of

Rows = Iterator[tuple[int, Any]]


def labels_with_passes(rows: Callable[[str], Rows]) -> Rows:
    """The rows of the labels with pass and origin; rows of any other shape stay as they are, to be refused as such.

    `rows` reads a table of the file: (line, parsed JSON) of each row.
    """
    passes = _passes(rows)
    for line, row in rows("labels"):
        try:
            said = (row["rater"], row["item_id"], row["aspect"], row["created_at"])
            pass_id = pass_of(passes.get(row["golden_id"], []), *said)
        except (KeyError, TypeError):
            yield line, row
        else:
            yield line, row | {"pass_id": pass_id, "taken_from": ""}


def _passes(rows: Callable[[str], Rows]) -> dict[str, list[KnownPass]]:
    """Golden set → its passes, oldest first; entries that are none are refused where they are checked."""
    item_ids: dict[str, list[str]] = {}
    passes: dict[str, list[KnownPass]] = {}
    by_id: dict[str, KnownPass] = {}
    try:
        for _, item in rows("golden_items"):
            item_ids.setdefault(item["golden_id"], []).append(item["body"][0])
        for _, event in rows("events"):
            kind, subject = event["kind"], event["subject"]
            if kind == PASS:
                golden_id = event["body"]["golden_id"]
                by_id[subject] = known_pass(subject, event["body"], item_ids[golden_id], event["created_at"])
                passes.setdefault(golden_id, []).append(by_id[subject])
            elif kind == JOINED and subject in by_id:
                by_id[subject].joined.setdefault(event["actor"], event["created_at"])
    except (KeyError, IndexError, TypeError, ValueError, RecursionError):
        return {}
    return passes
