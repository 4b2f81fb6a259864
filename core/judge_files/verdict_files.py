"""Read files of verdicts (`item_id`, `score`; null is unscored) and of replies (`item_id`, `responses`).

Both are read by `core.data.reply_files`, in all its formats and under usual other names.  `read_verdicts` takes
either; `read_replies_file` turns replies into ratings, as the command `read-ratings` does.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from core.data.columns import Codes, pair_in
from core.data.labels import codes_of, meaning_of, off_scale
from core.data.reply_files import (
    BY_ORDER,
    CALIBRATION_ITEM,
    RecordedRow,
    Recording,
    entries,
    given_number,
    load_recording,
    open_recording,
    out_of_range,
    propose_columns,
    score_reading,
    verdict_of,
)
from core.data.reshape import PREFERENCES
from core.errors import GoldenError
from core.files import json_lines, write_text
from core.judging.parse import ends_otherwise, read_rating
from core.records import Scale, Scored, Unscored, Verdict
from core.verdicts import Reading, Verdicts


def verdict_row(verdict: Verdict) -> dict[str, Any]:
    """Return one line of a verdict file; of a pair asked both ways round also the score of each order.

    `CALIBRATION_ITEM` stands in the line only where the item's label chose or fitted the judge.
    """
    row: dict[str, Any] = {"item_id": verdict.item_id}
    if isinstance(verdict, Unscored):
        row |= {"score": None, "reason": verdict.reason, "detail": verdict.detail, "raw": list(verdict.raw)}
    else:
        row |= {
            "score": verdict.value,
            "calibrated": verdict.calibrated,
            "n_read": verdict.n_read,
            "n_unread": verdict.n_unread,
            "explanation": verdict.explanation,
        }
    if verdict.calibration_item:
        row[CALIBRATION_ITEM] = True
    if isinstance(verdict, Scored) and verdict.turned is not None:
        row |= zip(BY_ORDER, (2.0 * verdict.value - verdict.turned, verdict.turned), strict=True)
    return row


def verdict_lines(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Yield the lines of a verdict file, each with its line end."""
    for verdict in verdicts:
        yield json.dumps(verdict_row(verdict), ensure_ascii=False, allow_nan=False) + "\n"


def read_verdicts(
    path: Path | str,
    scale: Scale | None = None,
    aspect: str = "",
    *,
    pairs: bool = False,
    codes: Codes | Literal["scale"] | None = None,
) -> Verdicts:
    """Read verdicts out of a verdict file (`item_id`, `score`) or a replies file (`item_id`, `responses`).

    A replies file needs `scale`; an item's score is the mean of its readable replies.  Where a column `aspect` names
    that of each row, only the rows of `aspect` count.  With a `scale`, codes for "could not be read" and slips off it
    are Unscored ("out of range").  For `pairs` of texts `codes` says what the scores stand for.  GoldenError names the
    row of a missing or doubled id and of a score that is not a number, and the aspects of a file that holds others.
    """
    recording = load_recording(path, max_rows=None)
    columns = propose_columns(recording)
    wanted = aspect if columns.found.get("aspect") == "exact" else ""
    rows: dict[str, list[RecordedRow]] = {}
    readings: list[tuple[str, Reading]] = []
    texts: dict[str, tuple[str, ...]] = {}
    for entry in entries(recording, columns, wanted, once=True):
        name = entry.item_id
        rows.setdefault(name, []).append(entry)
        if entry.replies is not None and (columns.replies_first or not entry.has_score):
            if scale is None:
                raise GoldenError("there are replies, but no scale to read them on", file=recording.name, row=entry.row)
            readings += ((name, read_rating(reply, scale, aspect)) for reply in entry.replies)
            texts[name] = (*texts.get(name, ()), *entry.replies)
        elif not entry.has_score:
            message = "no column is named 'score' or 'responses', or has another usual name"
            raise GoldenError(message, file=recording.name, row=entry.row)
        else:
            reading = score_reading(entry.score, None, sides=pairs)
            if reading.value is None:
                given_number(entry, recording.name)
                reading = Reading(None, "no verdict")
            readings.append((name, reading))
    if wanted and not rows:
        there = sorted({str(row.get(columns.roles["aspect"]) or "") for _, row in recording.numbered()} - {""})
        named = ", ".join(there[:10])[:300] or "nothing"
        raise GoldenError(
            f"no row is about {aspect!r}: the column {columns.roles['aspect']!r} names {named}", file=recording.name
        )
    if pairs and scale == PREFERENCES and "n_read" not in recording.columns:  # our own files hold 1 to 3
        readings = _choices(readings, recording, codes)
    if scale is not None:
        values = np.array([reading.value for _, reading in readings], dtype=np.float64)
        outside = off_scale(values, scale)[0] & ~np.isnan(values)
        readings = [
            (name, out_of_range(value, scale) if off else reading)
            for (name, reading), value, off in zip(readings, values.tolist(), outside.tolist(), strict=True)
        ]
    of_item: dict[str, list[Reading]] = {name: [] for name in rows}
    for name, reading in readings:
        of_item[name].append(reading)
    return Verdicts(verdict_of(rows[name], found, texts.get(name, ())) for name, found in of_item.items())


def _choices(
    rows: list[tuple[str, Reading]], recording: Recording, codes: Codes | Literal["scale"] | None
) -> list[tuple[str, Reading]]:
    """Return scores of pairs as 1, 2 and 3.  GoldenError where nothing says what they stand for."""
    numbers = sorted({row.value for _, row in rows if row.value is not None})
    pair = pair_in(recording.columns)
    sides = pair and pair[1]
    if codes is None:
        codes = codes_of(numbers, sides) if numbers and sides in (("1", "2"), ("0", "1")) else "scale"
        if codes is None or (codes == "scale" and numbers and set(numbers) <= {-1, 0, 0.5, 1, 1.5, 2}):
            listed = ", ".join(f"{number:g}" for number in numbers)
            raise GoldenError(
                f"the scores are {listed}, and none is 3, which prefers the second text. Say which number is the first "
                "text, the second and a tie, such as --values verdicts=1/2/0, or write A, B and tie",
                file=recording.name,
            )
    if codes == "scale":
        return rows

    def choice(reading: Reading) -> Reading:
        if reading.value is None:
            return reading
        if (meant := meaning_of(reading.value, codes)) is not None:
            return Reading(meant)
        return Reading(
            None, "out of range", detail=f"The score {reading.value:g} is not one of the numbers for a choice."
        )

    return [(name, choice(reading)) for name, reading in rows]


# ── replies → ratings ────────────────────────────────────────────────────────────────────────────────────────


def read_replies_file(
    path: Path | str, scale: Scale, out: Path | str | None = None, *, aspect: str = ""
) -> dict[str, Any]:
    """Read every reply in `path`; write one line an item to `out`, whole or not at all; return the counts.

    `aspect` is that of `read_rating`.  Returns ``{"n_items", "n_replies", "n_read", "n_unread", "reasons": {reason:
    count}, "n_contradicting"}``; the last are replies that end with another rating than the one that was read.
    GoldenError names the row that cannot be used.
    """
    n_contradicting = 0

    def read(reply: str) -> Reading:
        nonlocal n_contradicting
        reading = read_rating(reply, scale, aspect)
        n_contradicting += reading.value is not None and ends_otherwise(reply, reading.value, scale, aspect)
        return reading

    rows = read_replies(path, read)
    if out is not None:
        write_text(Path(out), json_lines(rows))
    n_read, reasons = sum(row["n_read"] for row in rows), Counter(reason for row in rows for reason in row["unread"])
    return {
        "n_items": len(rows),
        "n_replies": n_read + reasons.total(),
        "n_read": n_read,
        "n_unread": reasons.total(),
        "reasons": dict(reasons.most_common()),
        "n_contradicting": n_contradicting,
    }


def read_replies(path: Path | str, read: Callable[[str], Reading]) -> list[dict[str, Any]]:
    """Return a line of the ratings file for each item of a replies file, in the order of their first rows.

    ``score`` is the mean of the readable replies, None where there is none; ``unread`` has the reasons of the others.
    """
    recording = open_recording(Path(path))
    columns = propose_columns(recording)
    readings: dict[str, list[Reading]] = {}
    for entry in entries(recording, columns, once=True):
        if entry.replies is None:
            column = columns.roles.get("replies", "responses")
            raise GoldenError("expected a list of texts", file=recording.name, row=entry.row, column=column)
        of_item = readings.setdefault(entry.item_id, [])
        of_item += map(read, entry.replies)
    rows = []
    for item_id, of_item in readings.items():
        values = [reading.value for reading in of_item if reading.value is not None]
        unread = [reading.reason or "no verdict" for reading in of_item if reading.value is None]
        mean = sum(values) / len(values) if values else None
        rows.append(
            {"item_id": item_id, "score": mean, "n_read": len(values), "n_unread": len(unread), "unread": unread}
        )
    return rows
