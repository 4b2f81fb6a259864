"""The judge that comes back out of a `judge.yaml`: fixed criteria, joined, mapped to the human scale."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.calibration.candidate_pool import ensemble_scores
from core.errors import AuthError, GoldenError
from core.judge_files.judge_reading import judge_document
from core.judge_files.loaded import LoadedJudge, Metrics
from core.judging.judge_protocol import CallEstimate, Judge, OnProgress, parts_read
from core.judging.llm_judge import LLMJudge, Requests
from core.judging.reply_verdicts import NO_TEXT, has_texts
from core.records import Criteria, FloatArray, Item, ItemKind, Provenance, Scale, Scored, Task, Unscored, Usage, Verdict
from core.stats import IsotonicMap
from core.stats.conformal import VerdictIntervals
from core.texts import is_blank
from core.verdicts import Scores, Verdicts

BEFORE_INTERVALS = "the judge file was written before judges kept what an interval takes; calibrate again for that"
NEEDED: Mapping[ItemKind, tuple[str, ...]] = {
    "single": (),
    "source_target": ("source",),
    "source_context_target": ("source",),
    "conversation": (),
    "data_text": ("source",),
    "pair": ("context",),
}
"""Parts beside the target that items of a kind cannot be without; a judge file may name more (`task.needs`)."""


@dataclass(frozen=True)
class CalibratedJudge(LoadedJudge):
    """A judge out of a file: fixed criteria, joined by their mean, mapped to the human scale.

    `Scored.value` is the judge's own score, on which the file's alignments were measured; `Scored.calibrated` is
    that score on the human scale by the isotonic map (None when the file has none).  Ranks are the same.  `marks` say
    e.g. that another model scores than the one calibrated with, or that the file was edited.  `hint` is added to an
    endpoint's refusal of the key.  `intervals` are what an interval around a verdict is made of; None in files written
    before there were any.
    """

    card: Mapping[str, Any]
    task: Task
    criteria: tuple[Criteria, ...]
    judge: Judge
    isotonic: IsotonicMap | None
    marks: tuple[str, ...] = ()
    hint: str = ""
    intervals: VerdictIntervals | None = None

    @classmethod
    def of(
        cls,
        card: Mapping[str, Any],
        judge: Judge,
        *,
        where: str = "judge file",
        marks: Sequence[str] = (),
        hint: str = "",
    ) -> CalibratedJudge:
        """The judge of a card whose own judge was restored by the caller.  JudgeError for a damaged card."""
        document = judge_document(card, where)
        task = document.task.as_task()
        criteria = tuple(Criteria(entry.text, task.aspect, Provenance("given")) for entry in document.criteria)
        return cls(card, task, criteria, judge, document.isotonic, tuple(marks), hint, document.intervals)

    @property
    def spec(self) -> str:
        return self.judge.spec

    @property
    def calls_an_item(self) -> int:
        return len(self.criteria)

    @property
    def spent(self) -> Usage:
        """What the replies have cost since it was loaded; nothing for a judge that asks nobody."""
        return self.judge.spent if isinstance(self.judge, LLMJudge) else Usage()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What has to be known of how its scores came about, in sentences.  Ask after scoring."""
        return self.judge.remarks

    @property
    def needs(self) -> tuple[str, ...]:
        """Parts that an item must have beside its target: those that the file names and the judge reads."""
        named = self.card["task"].get("needs")
        expected = NEEDED[self.task.kind] if named is None else named
        references = isinstance(self.judge, LLMJudge) and self.judge.sampling.references
        read = parts_read(self.spec, references=references)
        return tuple(part for part in expected if part in read)

    def score(
        self,
        items: Sequence[Item],
        *,
        explain: bool = False,
        of_more: bool = False,
        on_progress: OnProgress | None = None,
        metrics: Metrics | None = None,
        coverage: float | None = None,
    ) -> Verdicts:
        """One verdict per item, in order.  `explain` adds the reasons of the best of the criteria.

        `coverage` adds intervals that hold so large a share of people's labels (.5 to .99), where the judge has them.

        An item without a part that the judge needs is Unscored ("missing input"); where no item has it, the column
        was left out, and GoldenError says so, unless the items are a batch `of_more`.  `metrics` play no part.
        """
        lacking = lacking_parts(items, self.needs, self.task, of_more=of_more)
        usable = [item for item in items if item.item_id not in lacking]
        with self.asked():
            matrix = (
                self.judge.score(self.task, usable, self.criteria, explain=explain, on_progress=on_progress)
                if usable
                else None
            )
        return self.marked(items, in_order(items, self.joined(matrix, usable, coverage), lacking))

    async def score_async(
        self, items: Sequence[Item], *, explain: bool = False, of_more: bool = False, coverage: float | None = None
    ) -> Verdicts:
        """As `score`, without holding up the event loop.

        A judge behind an endpoint awaits its replies, so that any number of calls may be under way at once; any
        other scores in a thread.
        """
        judge = self.judge
        if not isinstance(judge, LLMJudge) or not judge.awaits:
            return await asyncio.to_thread(self.score, items, explain=explain, of_more=of_more, coverage=coverage)
        lacking = lacking_parts(items, self.needs, self.task, of_more=of_more)
        usable = [item for item in items if item.item_id not in lacking]
        with self.asked():
            matrix = await judge.score_async(self.task, usable, self.criteria, explain=explain) if usable else None
        return self.marked(items, in_order(items, self.joined(matrix, usable, coverage), lacking))

    def usable(self, items: Sequence[Item]) -> list[Item]:
        """Those of a batch of more items that have all parts, which alone are asked about."""
        lacking = lacking_parts(items, self.needs, self.task, of_more=True)
        return [item for item in items if item.item_id not in lacking]

    def close(self) -> None:
        """Release the judge's connections."""
        self.judge.close()

    def why_no_intervals(self, coverage: float) -> str:
        """Why verdicts come without intervals of that coverage; "" where they come with them."""
        return BEFORE_INTERVALS if self.intervals is None else self.intervals.why_none(coverage)

    def requests(self, items: Sequence[Item]) -> Requests:
        """What the language model behind it is asked about a batch of more items, some at a time."""
        assert isinstance(self.judge, LLMJudge), "only such a judge asks"
        return self.judge.requests(self.task, self.usable(items), self.criteria)

    def estimate(self, items: Sequence[Item]) -> CallEstimate:
        """Calls, tokens and price of scoring `items`, a part of more."""
        words = sum(len(each.text.split()) for each in self.criteria) // len(self.criteria)
        calls = len(items) * len(self.criteria)
        one = self.judge.estimate(self.task, items, words)
        return CallEstimate(calls, *one.scaled(calls / max(1, one.calls)))

    def joined(self, scores: Scores | None, items: Sequence[Item], coverage: float | None) -> Verdicts:
        """The verdict on each of `items` out of the `scores` of all criteria, None for no items."""
        if scores is None:
            return Verdicts()
        unread = {unscored.item_id: unscored for rows in scores.unscored.values() for unscored in rows}
        verdicts = joined_verdicts(scores.item_ids, scores.values, self.isotonic, unread, scores.turned)
        if coverage is not None and self.intervals is not None:
            verdicts = with_intervals(verdicts, self.intervals, self.task.scale, coverage)
        return with_reasons(verdicts, scores.explained, scores.values) if scores.explained else verdicts

    @contextmanager
    def asked(self) -> Iterator[None]:
        """While its endpoint is asked: a refused key comes with this judge's hint."""
        try:
            yield
        except AuthError as error:
            if not self.hint:
                raise
            raise AuthError(str(error), hint=self.hint) from error


def lacking_parts(
    items: Sequence[Item], needs: Sequence[str], task: Task, *, of_more: bool = False
) -> dict[str, Unscored]:
    """Item id → why it cannot be scored, of the items without a text or without a part that is needed.

    GoldenError when no item has the part and there are no more items: a column was left out or not found.
    """
    lacking = {
        item.item_id: Unscored(item.item_id, "missing input", NO_TEXT) for item in items if not has_texts(task, item)
    }
    for part in needs:
        without = [item.item_id for item in items if not _filled(getattr(item, part))]
        if without and len(without) == len(items) and not of_more:
            shown = ", ".join(without[:3]) + (f" and {len(without) - 3:,} more" if len(without) > 3 else "")
            raise GoldenError(
                f"the judge of {task.aspect} rates each item with its {part}, and no item has one ({shown}). "
                f"Add a column {part!r}, or name the one that holds it.",
                column=part,
            )
        for item_id in without:
            detail = f"The item has no {part}; this judge was calibrated on items that have one."
            lacking.setdefault(item_id, Unscored(item_id, "missing input", detail))
    return lacking


def _filled(part: str | tuple[str, ...]) -> bool:
    return not is_blank(part) if isinstance(part, str) else bool(part)


def in_order(items: Sequence[Item], verdicts: Sequence[Verdict], lacking: Mapping[str, Unscored]) -> Verdicts:
    """`verdicts` of the items that are not `lacking`, with those that are, in the order of `items`."""
    judged = iter(verdicts)
    return Verdicts(lacking[item.item_id] if item.item_id in lacking else next(judged) for item in items)


def with_reasons(verdicts: Sequence[Verdict], explained: Sequence[Verdict], members: FloatArray) -> Verdicts:
    """`verdicts` (means over `members`, one row a criterion) with the reasons and replies of those in `explained`.

    Each is that of the first criterion that could be read; where several are averaged, it says which one that is.
    """
    first_read = (~np.isnan(members)).argmax(axis=0).tolist()
    return Verdicts(
        replace(verdict, explanation=_of_which(reason.explanation, k, len(members)), raw=reason.raw)
        if isinstance(verdict, Scored) and isinstance(reason, Scored)
        else verdict
        for verdict, reason, k in zip(verdicts, explained, first_read, strict=True)
    )


def _of_which(explanation: str, k: int, n_criteria: int) -> str:
    if n_criteria == 1 or not explanation:
        return explanation
    which = f"The best of the {n_criteria}" if k == 0 else f"Number {k + 1} of the {n_criteria}"
    return f"{which} averaged criteria: {explanation}"


def with_intervals(verdicts: Sequence[Verdict], intervals: VerdictIntervals, scale: Scale, coverage: float) -> Verdicts:
    """`verdicts` with an interval where they are calibrated."""
    if not intervals.expected:
        return Verdicts(verdicts)
    known = (verdict.calibrated if isinstance(verdict, Scored) else None for verdict in verdicts)
    calibrated = np.array([np.nan if value is None else value for value in known], dtype=np.float64)
    numbers = np.vstack([intervals.around(calibrated, scale, coverage), intervals.expected_errors(calibrated)])
    return Verdicts(
        replace(verdict, low=_known(low), high=_known(high), expected_error=_known(error))
        if isinstance(verdict, Scored)
        else verdict
        for verdict, (low, high, error) in zip(verdicts, numbers.T.tolist(), strict=True)
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def joined_verdicts(
    item_ids: Sequence[str],
    members: FloatArray,
    isotonic: IsotonicMap | None,
    unread: Mapping[str, Unscored],
    turned: FloatArray | None = None,
) -> Verdicts:
    """Verdicts of the mean over `members` (n_criteria, n_items), NaN = unscored; `unread` tells why there is none.

    `turned`, of the same shape, is what they gave pairs the other way round.
    """
    joined = ensemble_scores(members)
    unknown = [None] * len(item_ids)
    mapped = unknown if isotonic is None else np.asarray(isotonic.apply(joined)).tolist()
    backwards = unknown if turned is None else [_known(value) for value in ensemble_scores(turned).tolist()]
    read = (~np.isnan(members)).sum(axis=0).tolist()
    rows = zip(item_ids, joined.tolist(), mapped, read, backwards, strict=True)
    return Verdicts(
        unread.get(item_id, Unscored(item_id, "no verdict"))
        if math.isnan(value)
        else Scored(item_id, value, n_read=n, n_unread=len(members) - n, calibrated=calibrated, turned=other)
        for item_id, value, calibrated, n, other in rows
    )
