"""What an earlier call left unread among the lines of an output, and the lines with what came when it was asked again.

The output is read as a stream, beside the items that it was made of; every other line stays as it is.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from core.errors import JobError, JudgeError
from core.export import CalibratedJudge
from core.export.fused_judge import FusedJudge
from core.export.loaded import LoadedJudge
from core.judging.llm import LLMJudge
from core.records import Item
from core.scoring.output import Done, columns
from core.scoring.request import ScoreRequest
from core.spreadsheets import csv_line, original_cell
from core.wording import percent

UNREAD = frozenset(("no verdict", "out of range", "refused", "empty", "truncated", "provider error"))
"""Reasons that another answer may take away; a missing input stays missing."""


class Row(NamedTuple):
    """A line of an output; `reason` is "" where it holds a score."""

    text: str
    item_id: str
    reason: str


ENOUGH_ITEMS = 50
"""Items from which the share of unread ones stops a scoring."""


@dataclass
class Mended:
    """What the lines of an output count up to, after `n_asked` of them were asked again."""

    n_asked: int = 0
    n_items: int = 0
    n_scored: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def count(self, row: Row) -> None:
        """One more item, by its row."""
        self.n_items += 1
        self.n_scored += not row.reason
        self.reasons.update([row.reason] if row.reason else ())


def rows_of(lines: Iterable[str], *, as_csv: bool, more: Sequence[str] = ()) -> Iterator[Row]:
    """The verdicts in `lines` (CSV without its header, `more` columns behind the usual).  JobError for what is none."""
    try:
        if as_csv:
            for escaped in csv.reader(lines):
                cells = [original_cell(cell) for cell in escaped]
                row = dict(zip(columns(more), cells, strict=True))
                yield Row(csv_line(cells), row["item_id"], "" if row["score"] else row["reason"] or "no verdict")
        else:
            for line in lines:
                body = json.loads(line)
                reason = "" if body["score"] is not None else str(body.get("reason") or "no verdict")
                yield Row(line, str(body["item_id"]), reason)
    except (ValueError, KeyError, TypeError) as error:
        raise JobError(f"The output holds a line that is no verdict ({error}). Add --again to score anew.") from error


def unread_items(items: Iterable[Item], rows: Iterable[Row]) -> Iterator[Item]:
    """The items with an unread row.  JobError where an item and the row in its place are not the same."""
    for item, row in zip(items, rows, strict=False):
        if row.item_id != item.item_id:
            raise JobError(
                f"The output has item {row.item_id!r} where the input has {item.item_id!r}: it was made of other "
                "items. Add --again to score anew."
            )
        if row.reason in UNREAD:
            yield item


def model_behind(judge: LoadedJudge) -> LLMJudge | None:
    """The language model that the judge asks, None for one that computes."""
    return judge.judge if isinstance(judge, CalibratedJudge) and isinstance(judge.judge, LLMJudge) else None


def models_behind(judge: LoadedJudge) -> tuple[LLMJudge, ...]:
    """All language models that the judge asks."""
    if isinstance(judge, FusedJudge):
        return judge.models
    asked = model_behind(judge)
    return () if asked is None else (asked,)


def check_unread(request: ScoreRequest, judge: LoadedJudge, first: Done, now: Done) -> None:
    """JudgeError when too many of the items since `first` came back unread."""
    n, reasons = now.items - first.items, now.reasons - first.reasons
    unread = sum(count for reason, count in reasons.items() if reason in UNREAD)
    if not models_behind(judge) or n < ENOUGH_ITEMS or unread <= request.most_unread * n:
        return
    words = ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common() if reason in UNREAD)
    raise JudgeError(
        f"{judge.spec}: {unread:,} of the first {n:,} items came back unread ({words}); at most "
        f'{percent(request.most_unread)} may. Look at the replies ("raw" in the output), mend the endpoint or the '
        "judge's settings, and run the same command again: it asks those again at the end. --most-unread sets the "
        "limit."
    )
