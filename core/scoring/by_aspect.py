"""Several aspects in one output: a line for each item and aspect, from the judges of a file each.

What the other modules of scoring need to know of it stands here: which judges are opened, what items must have, the
lines of a batch, and what a finished output comes to aspect by aspect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.api.loading import load_judges
from core.api.together import check_together
from core.data import load_golden
from core.errors import UsageError
from core.export.aspect_judges import NO_INTERVALS, AspectJudges
from core.export.sureness import Sureness, sureness_of
from core.providers.base import ReplyStore
from core.records import Item, Verdict
from core.scoring.item_file import ItemFile, check_needs
from core.scoring.output import (
    ASPECT,
    TOGETHER,
    Batch,
    batch_of,
    lines_of,
    sure_scores,
    verdict_batch,
    verdict_rows,
)
from core.scoring.request import AspectCounts, RowJudge, ScoreRequest
from core.verdicts import Verdicts

Judged = Verdicts | dict[str, Verdicts]
"""The verdicts of one judge, or of several by aspect."""


def n_aspects_of(judge: RowJudge) -> int:
    """Lines that an item has in the output."""
    return len(judge.aspects) if isinstance(judge, AspectJudges) else 1


def open_judges(request: ScoreRequest, replies: ReplyStore | None = None) -> AspectJudges:
    """The judges of several aspects, measured asked together where `request` has a golden set to check that on.

    UsageError as `load_judges` and `check_together`, and for a check of judges that are asked alone.
    """
    how: dict[str, Any] = {"judge": request.judge or None, "replies": replies, "accept_edited": request.accept_edited}
    if request.check is None:
        return load_judges(request.judge_files, together=request.together, **how)
    if not request.together:
        raise UsageError("--check measures what asking together changes: give it with --together.")
    if request.budget is not None:
        raise UsageError(
            "--check asks beyond a --budget, which counts the calls of the scoring: leave out one of them."
        )
    if request.batch_read:
        raise UsageError("--check asks the judges at once: leave it out with --batch-read, which asks nobody.")
    return check_together(load_golden(request.check), request.judge_files, **how)


def check_parts(items: ItemFile, judge: RowJudge) -> None:
    """GoldenError when not one item has a part that a judge needs, naming the aspect where there are several."""
    if not isinstance(judge, AspectJudges):
        check_needs(items, judge.needs)
        return
    for each in judge.judges:
        check_needs(items, each.needs, f"The judge of {each.task.aspect}")


def sureness_told(judge: RowJudge, request: ScoreRequest) -> Sureness | None:
    """What is told of the verdicts of one judge; None without intervals, and where aspects each have their own.

    Raises as `sureness_of`, before anybody is asked.
    """
    if isinstance(judge, AspectJudges):
        surenesses_of(judge, request)
        return None
    return sureness_of(judge, request.coverage, request.abstain_over)


def judged_batch(items: Sequence[Item], verdicts: Judged, judge: RowJudge, request: ScoreRequest) -> Batch:
    """`verdicts` of `judge` on `items` as lines of the output, with all that was asked for."""
    if isinstance(judge, AspectJudges):
        assert isinstance(verdicts, dict)
        return aspect_batch(items, verdicts, judge, request)
    assert isinstance(verdicts, Verdicts)
    sure = sureness_of(judge, request.coverage, request.abstain_over)
    return verdict_batch(items, verdicts, judge.marks, request, sure)


def surenesses_of(judges: AspectJudges, request: ScoreRequest) -> dict[str, Sureness]:
    """Aspect → what is told of its verdicts beside their score; {} without intervals.  Raises as `sureness_of`."""
    if request.coverage is None:
        return {}
    if judges.together and not judges.measured:
        raise UsageError(NO_INTERVALS)
    told = {each.task.aspect: sureness_of(each, request.coverage, request.abstain_over) for each in judges.judges}
    return {aspect: sure for aspect, sure in told.items() if sure is not None}


def aspect_counts(out: Path, judges: AspectJudges, request: ScoreRequest) -> dict[str, AspectCounts]:
    """What the lines of a finished output come to, aspect by aspect."""
    sure, by_aspect = surenesses_of(judges, request), {}
    for aspect in judges.aspects:
        own = [row for row in lines_of(out) if row[ASPECT] == aspect]
        unread = Counter(str(row["reason"]) for row in own if row["score"] in (None, ""))
        widths = sure_scores(own, sure[aspect]) if aspect in sure else None
        by_aspect[aspect] = AspectCounts(len(own) - unread.total(), dict(unread.most_common()), widths)
    return by_aspect


def aspect_batch(
    items: Sequence[Item], verdicts: Mapping[str, Sequence[Verdict]], judges: AspectJudges, request: ScoreRequest
) -> Batch:
    """As `verdict_batch`, with a line for each item and aspect: item by item, in the order of the judges.

    "together" says how many aspects the call behind a line asked for, its own counted; 0 where nobody was asked.
    """
    sure, counts = surenesses_of(judges, request), judges.n_together(items)
    columns = [
        [
            {"item_id": row["item_id"], ASPECT: aspect} | row | {TOGETHER: n}
            for row, n in zip(
                verdict_rows(items, verdicts[aspect], marks, sure.get(aspect)), counts[aspect], strict=True
            )
        ]
        for aspect, marks in judges.marks_of.items()
    ]
    rows = [row for of_item in zip(*columns, strict=True) for row in of_item]
    return batch_of(len(items), rows, [each for own in verdicts.values() for each in own], request)


def told_by_aspect(request: ScoreRequest, judge: RowJudge, n_items: int, *, finished: bool) -> dict[str, Any]:
    """What a scoring tells of each aspect, where there are several."""
    if not isinstance(judge, AspectJudges):
        return {}
    counts = aspect_counts(request.out, judge, request) if finished else {}
    alone = judge.calls_alone * n_items if judge.together else None
    return {"aspects": counts, "n_aspects": len(judge.aspects), "calls_alone": alone, "measured": judge.measured}
