"""Scoring a file of any length with a judge file: looked at, scored batch by batch, kept, resumed, finished."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.api.loading import load_judge
from core.errors import ConcordError, JobError, UsageError
from core.export import CalibratedJudge
from core.judging.offline.features import forget_items
from core.providers.base import ReplyStore
from core.records import Finding, Item
from core.scoring.item_file import ItemFile, check_needs, file_digest, validate_items
from core.scoring.output import Batch, Checkpoint, Done, Form, form_of, header_of, written
from core.scoring.pool import ProcessPool, Scorer, get_ready

BATCH = 400
"""Items scored between two checkpoints, by a judge that computes."""

REMOTE_BATCH = 100
"""The same for a judge that asks an endpoint: what a killed process may have asked for in vain, were there no cache."""

WORTH_A_POOL = 4_000
"""Items from which starting further processes pays."""

SMALL_ITEM = 250
"""Bytes that even a short item takes in a file."""

MOST_WORKERS = 16


@dataclass(frozen=True)
class ScoreRequest:
    """Score the items of `items` with `judge_file` into `out` (JSON lines, or CSV where the name ends in .csv).

    `judge` scores with another judge than the one calibrated with ("" for that one); `accept_edited` takes a judge
    file that was changed after its export.  `budget` is the most calls to make now (one per criteria and item);
    `again` drops what an earlier scoring into `out` left behind.  `workers` None takes all cores for a judge that
    computes.
    """

    items: Path
    judge_file: Path
    out: Path
    judge: str = ""
    accept_edited: bool = False
    explain: bool = False
    budget: int | None = None
    again: bool = False
    workers: int | None = None


@dataclass(frozen=True)
class Pace:
    """How far a scoring is, for whoever watches; `total` None while it is not known."""

    phase: str
    done: int
    total: int | None


OnPace = Callable[[Pace], None]


@dataclass(frozen=True)
class ScoredFile:
    """What a scoring came to.  `finished` False: the budget ended it, and `out` is not there yet.

    `n_before` items were scored by earlier calls; `reasons` count why items are unscored.
    """

    n_items: int
    n_done: int
    n_scored: int
    n_before: int
    calls: int
    finished: bool
    seconds: float
    marks: tuple[str, ...] = ()
    reasons: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def n_unscored(self) -> int:
        return self.n_done - self.n_scored

    @property
    def per_second(self) -> float | None:
        """Items scored a second by this call, from start to end; None where it scored none."""
        fresh = self.n_done - self.n_before
        return fresh / self.seconds if fresh and self.seconds > 0 else None


def score_file(
    request: ScoreRequest, *, replies: ReplyStore | None = None, on_pace: OnPace | None = None
) -> ScoredFile:
    """Score a file, going on where an earlier call with the same `out` stopped.

    The file is looked at as a whole before the first call: GoldenError with row and column for what cannot be used.
    JobError when what is kept belongs to another input, judge file or choice of options; JudgeError and
    ProviderError as the judge raises them, and ConcordError for a full disk: what was scored is kept then.
    """
    started = time.perf_counter()
    watch = on_pace or _watch_nothing
    judge = open_judge(request, replies)
    try:
        if _may_want_a_pool(request, judge):
            get_ready(scorer_of, "pydantic")
        items = validate_items(request.items, lambda n: watch(Pace("reading", n, None)))
        check_needs(items, judge.needs)
        _allowed(request.budget, len(judge.criteria))
        stamp = _stamp(request.items)
        checkpoint = Checkpoint(request.out, _identity(request, items, judge))
        form = form_of(request.out)
        before = checkpoint.open(header_of(form), again=request.again).items
        try:
            with _kept_on_failure(checkpoint):
                _score_rest(request, judge, items, checkpoint, watch)
            finished = checkpoint.done.items >= items.n_items
            if finished:
                _check_unchanged(items, checkpoint.done, stamp)
                checkpoint.finish()
        finally:
            checkpoint.close()
    finally:
        judge.close()
    done = checkpoint.done
    return ScoredFile(
        items.n_items,
        done.items,
        done.n_scored,
        before,
        done.calls,
        finished,
        time.perf_counter() - started,
        judge.marks,
        dict(done.reasons.most_common()),
        items.findings,
    )


def open_judge(request: ScoreRequest, replies: ReplyStore | None = None) -> CalibratedJudge:
    """The judge that a request asks for."""
    judge = load_judge(
        request.judge_file, judge=request.judge or None, replies=replies, accept_edited=request.accept_edited
    )
    if not isinstance(judge, CalibratedJudge):
        raise UsageError(f"{request.judge_file}: holds a fused judge, which scores a file as a whole.")
    return judge


def scorer_of(request: ScoreRequest) -> Scorer:
    """A scorer with a judge of its own, for another process."""
    return _scorer(open_judge(request), request)


def score_batch(judge: CalibratedJudge, items: Sequence[Item], *, explain: bool, form: Form) -> Batch:
    """Score `items` and write them.  An item's line is the same in whatever batch it comes."""
    return written(judge.score(items, explain=explain, of_more=True), judge.marks, form)


def _scorer(judge: CalibratedJudge, request: ScoreRequest) -> Scorer:
    form = form_of(request.out)

    def score(items: Sequence[Item]) -> Batch:
        batch = score_batch(judge, items, explain=request.explain, form=form)
        forget_items()  # each item comes once: kept features would only fill the memory
        return batch

    return score


def _score_rest(
    request: ScoreRequest, judge: CalibratedJudge, items: ItemFile, checkpoint: Checkpoint, watch: OnPace
) -> None:
    """Score what is not done yet, as much of it as the budget pays for."""
    before = checkpoint.done.items
    left, allowed = items.n_items - before, _allowed(request.budget, len(judge.criteria))
    wanted = left if allowed is None else min(left, allowed)
    computes = not judge.judge.is_llm
    batches = _limited(items.batches(BATCH if computes else REMOTE_BATCH, before), wanted)
    workers = _workers(request.workers, wanted) if computes and judge.judge.spec == "offline" else 1
    watch(Pace("scoring", before, items.n_items))
    with _scored(request, judge, batches, workers) as answers:
        for answer in answers:
            checkpoint.add(answer, answer.n_items * len(judge.criteria))
            watch(Pace("scoring", checkpoint.done.items, items.n_items))


@contextmanager
def _scored(
    request: ScoreRequest, judge: CalibratedJudge, batches: Iterator[Sequence[Item]], workers: int
) -> Iterator[Iterator[Batch]]:
    if workers < 2:
        yield map(_scorer(judge, request), batches)
        return
    pool = ProcessPool(workers, scorer_of, request)
    try:
        yield pool.map(batches)
    finally:
        pool.close()


def _limited(batches: Iterator[tuple[Item, ...]], n_items: int) -> Iterator[Sequence[Item]]:
    """The batches' first `n_items` items."""
    while n_items > 0 and (batch := next(batches, None)):
        yield batch[:n_items]
        n_items -= len(batch)


def _allowed(budget: int | None, n_criteria: int) -> int | None:
    """How many items a budget pays for; UsageError for one that does not pay for a single item."""
    if budget is None:
        return None
    if budget < n_criteria:
        raise UsageError(
            f"--budget {budget} pays for no item: each takes {n_criteria} calls, one for each of the judge's criteria."
        )
    return budget // n_criteria


def _may_want_a_pool(request: ScoreRequest, judge: CalibratedJudge) -> bool:
    """Whether a look at the size of the file says that several processes will score it."""
    try:
        size = request.items.stat().st_size
    except OSError:  # the first look says it in words
        return False
    return (
        judge.judge.spec == "offline"
        and size >= WORTH_A_POOL * SMALL_ITEM
        and _workers(request.workers, WORTH_A_POOL) > 1
    )


def _workers(asked: int | None, n_items: int) -> int:
    if asked is not None:
        return max(1, min(asked, MOST_WORKERS))
    if n_items < WORTH_A_POOL:
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_WORKERS)


def _identity(request: ScoreRequest, items: ItemFile, judge: CalibratedJudge) -> dict[str, Any]:
    """What a scoring must have in common with the one that it goes on from."""
    return {
        "input": {"digest": items.digest, "n_items": items.n_items},
        "judge": {"digest": file_digest(request.judge_file)},
        "options": {
            "judge": judge.judge.spec,
            "explain": request.explain,
            "form": form_of(request.out),
            "marks": list(judge.marks),
        },
    }


def _stamp(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def _check_unchanged(items: ItemFile, done: Done, stamp: tuple[int, int]) -> None:
    """JobError when the input changed while it was scored: the verdicts would be of two files."""
    same = _stamp(items.path) == stamp or file_digest(items.path) == items.digest
    if not same or done.items != items.n_items:
        raise JobError(
            f"{items.path}: has changed while it was scored ({done.items:,} of {items.n_items:,} items came). Add "
            "--again to score it as it is now."
        )


@contextmanager
def _kept_on_failure(checkpoint: Checkpoint) -> Iterator[None]:
    """Adds to a judge's error that nothing is lost."""
    try:
        yield
    except ConcordError as error:
        n = checkpoint.done.items
        if n and str(checkpoint.part) not in str(error):
            error.add_note(
                f"{n:,} items are scored and kept in {checkpoint.part}; the same command goes on from there."
            )
        raise


def _watch_nothing(_: Pace) -> None:
    """Nobody watches."""
