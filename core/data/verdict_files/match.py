"""A recording beside a golden set: what matches, what is read, what a person has to decide."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from core.data.verdict_files.columns import Columns, propose_columns
from core.data.verdict_files.preview import (
    ImportChoices,
    ImportPreview,
    Use,
    findings_of,
)
from core.data.verdict_files.reading import Reader
from core.data.verdict_files.recording import Entry, Recording, doubled_rows, entries
from core.errors import AspectError
from core.records import GoldenSet, Unscored


def match(recording: Recording, golden: GoldenSet, aspect: str, choices: ImportChoices | None = None) -> ImportPreview:
    """What `recording` says about the items of `golden` on `aspect`, and everything a person should know about it.

    Linear in the rows; only replies to items of the golden set are read.  AspectError for an aspect that the golden
    set does not have, GoldenError for a row without a usable item id, UsageError for a choice that cannot be.
    """
    if aspect not in golden.aspects:
        known = ", ".join(golden.aspects) or "none"
        raise AspectError(f"there is no aspect {aspect!r}; it has {known}.", file=golden.name)
    chosen = choices or ImportChoices()
    columns = propose_columns(recording, aspect, tuple(golden.aspects)).corrected(chosen.columns)
    use = chosen.use or _default_use(columns)
    by_item, unknown, n_rows = _by_item(recording, columns, aspect, golden)
    scale = golden.aspects[aspect].scale
    reader = Reader(use, chosen, scale, aspect, keep_replies="replies" in columns.roles)
    values, unscored, replies = np.full(len(golden.items), np.nan), list[Unscored](), dict[str, tuple[str, ...]]()
    for position, item_id in enumerate(golden.item_ids):
        if (rows := by_item.get(item_id)) is None:
            continue
        result = reader.read(item_id, rows)
        if isinstance(result, Unscored):
            unscored.append(result)
        else:
            values[position] = result
        if words := reader.words(rows):
            replies[item_id] = words
    preview = ImportPreview(
        file=recording.name,
        shape=recording.shape,
        columns=columns,
        golden_id=golden.digest,
        aspect=aspect,
        scale=scale,
        choices=chosen,
        use=use,
        n_rows=n_rows,
        n_items=len(golden.items),
        n_matched=len(by_item),
        unknown=unknown,
        without_row=tuple(item_id for item_id in golden.item_ids if item_id not in by_item),
        doubled={item_id: twice for item_id, rows in by_item.items() if (twice := doubled_rows(rows))},
        n_replies=reader.tally.n,
        unread=dict(reader.tally.unread.most_common()),
        examples={reason: tuple(kept) for reason, kept in reader.tally.examples.items()},
        observed=reader.tally.ends,
        suggested=reader.suggested(),
        aspects=_aspects_in(recording, columns),
        findings=(),
        values=values,
        unscored=tuple(unscored),
        replies=replies,
    )
    return findings_of(preview, recording, words=reader.tally.words)


def _by_item(
    recording: Recording, columns: Columns, aspect: str, golden: GoldenSet
) -> tuple[dict[str, list[Entry]], tuple[str, ...], int]:
    """Rows by item of the golden set, in its order; the ids that are none of its items; how many rows there are."""
    rows: dict[str, list[Entry]] = {item_id: [] for item_id in golden.item_ids}
    unknown: dict[str, None] = {}
    n_rows = 0
    for entry in entries(recording, columns, aspect):
        n_rows += 1
        if entry.item_id in rows:
            rows[entry.item_id].append(entry)
        else:
            unknown[entry.item_id] = None
    return {item_id: claims for item_id, claims in rows.items() if claims}, tuple(unknown), n_rows


def _default_use(columns: Columns) -> Use:
    """Replies where they are named plainly or alone, else the scores."""
    exact = columns.found.get("replies") in ("exact", "corrected")
    return "replies" if "score" not in columns.roles or exact else "scores"


def _aspects_in(recording: Recording, columns: Columns) -> tuple[str, ...]:
    """Aspects that the file holds scores of, each in a column or in rows of its own."""
    rated = columns.roles.get("aspect")
    if rated is None:
        return tuple(columns.of_aspect)
    said: Mapping[str, None] = {str(row[rated])[:80]: None for row in recording.rows if row.get(rated)}
    return tuple(said)[:50]
