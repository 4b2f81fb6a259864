"""A recording beside a golden set: what matches, what is read, what a person has to decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from core.data.verdict_files.columns import Columns, propose_columns
from core.data.verdict_files.preview import (
    MOST_SHOWN,
    Doubled,
    ImportChoices,
    ImportPreview,
    Use,
    findings_of,
    same_ends,
)
from core.data.verdict_files.reading import Reader
from core.data.verdict_files.recording import Entry, Recording, doubled_rows, entries
from core.errors import AspectError
from core.records import FloatArray, GoldenSet, Scale, Unscored


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
    rows = _gathered(recording, columns, aspect, golden)
    scale = golden.aspects[aspect].scale
    reader = Reader(use, chosen, scale, aspect, keep_replies="replies" in columns.roles)
    read = _read(rows, golden, reader)
    on_scale = _is_on_scale(chosen, use, scale)
    preview = ImportPreview(
        file=recording.name,
        shape=recording.shape,
        columns=columns,
        golden_id=golden.digest,
        aspect=aspect,
        scale=scale,
        choices=chosen,
        use=use,
        n_rows=rows.n_rows,
        n_items=len(golden.items),
        n_matched=len(rows.by_item),
        unknown=tuple(rows.unknown)[:MOST_SHOWN],
        n_unknown=len(rows.unknown),
        without_row=tuple(rows.without_row[:MOST_SHOWN]),
        n_without_row=len(rows.without_row),
        doubled=tuple(rows.doubled[:MOST_SHOWN]),
        n_doubled=len(rows.doubled),
        n_replies=reader.tally.n,
        unread=dict(reader.tally.unread.most_common()),
        examples={reason: tuple(found) for reason, found in reader.tally.examples.items()},
        observed=reader.tally.ends,
        suggested=reader.suggested(),
        aspects=_aspects_in(recording, columns),
        findings=(),
        values=read.values,
        unscored=tuple(read.unscored),
        replies=read.replies,
        on_scale=on_scale,
        note=_note(recording, chosen, use, scale, on_scale=on_scale),
    )
    return findings_of(preview, recording, words=reader.tally.words)


@dataclass
class _Rows:
    """Rows by item of the golden set, in its order, and the ids that did not match."""

    n_rows: int = 0
    by_item: dict[str, list[Entry]] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)
    without_row: list[str] = field(default_factory=list)
    doubled: list[Doubled] = field(default_factory=list)


def _gathered(recording: Recording, columns: Columns, aspect: str, golden: GoldenSet) -> _Rows:
    rows, found = _Rows(), dict[str, list[Entry]]()
    ids = frozenset(golden.item_ids)
    for entry in entries(recording, columns, aspect):
        rows.n_rows += 1
        if entry.item_id in ids:
            found.setdefault(entry.item_id, []).append(entry)
        else:
            rows.unknown[entry.item_id] = None
    for item_id in golden.item_ids:
        if item_id in found:
            rows.by_item[item_id] = found[item_id]
            if twice := doubled_rows(found[item_id]):
                rows.doubled.append(Doubled(item_id, twice))
        else:
            rows.without_row.append(item_id)
    return rows


def _default_use(columns: Columns) -> Use:
    """Replies where they are named plainly or alone, else the scores."""
    exact = columns.found.get("replies") in ("exact", "corrected")
    return "replies" if "score" not in columns.roles or exact else "scores"


@dataclass
class _Read:
    values: FloatArray
    unscored: list[Unscored] = field(default_factory=list)
    replies: dict[str, tuple[str, ...]] = field(default_factory=dict)


def _read(rows: _Rows, golden: GoldenSet, reader: Reader) -> _Read:
    read = _Read(np.full(len(golden.items), np.nan))
    for position, item_id in enumerate(golden.item_ids):
        if item_id not in rows.by_item:
            continue
        result = reader.read(item_id, rows.by_item[item_id])
        if isinstance(result, Unscored):
            read.unscored.append(result)
        else:
            read.values[position] = result
        if words := reader.words(rows.by_item[item_id]):
            read.replies[item_id] = words
    return read


def _aspects_in(recording: Recording, columns: Columns) -> tuple[str, ...]:
    """Aspects that the file holds scores of, each in a column or in rows of its own."""
    rated = columns.roles.get("aspect")
    if rated is None:
        return tuple(columns.of_aspect)
    said: Mapping[str, None] = {str(row[rated])[:80]: None for row in recording.rows if row.get(rated)}
    return tuple(said)[:50]


def _is_on_scale(chosen: ImportChoices, use: Use, scale: Scale) -> bool:
    if chosen.scale is None:
        return chosen.take == "map" or use == "replies"
    return chosen.take == "map" or same_ends(chosen.scale, scale)


def _note(recording: Recording, chosen: ImportChoices, use: Use, scale: Scale, *, on_scale: bool) -> str:
    """One sentence on what the judge is; the same file with the same choices gives the same."""
    what = f"{'Replies' if use == 'replies' else 'Scores'} recorded in {recording.name[:80]}"
    if not on_scale:
        told = "as they are, on a scale of their own" if chosen.scale is None else f"on their own scale {chosen.scale}"
    elif chosen.scale is not None and not same_ends(chosen.scale, scale):
        told = f"on {chosen.scale}, mapped linearly to {scale}"
    else:
        told = f"on {scale}"
    letters = ", letters with A for the low end" if chosen.letters else ""
    return f"{what}, {told}{letters}{'' if chosen.higher_is_better else '; lower is better'}."
