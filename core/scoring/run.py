"""Score a file of any length with a judge file: check it, score batch by batch, keep, resume, finish."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any

from core.data import load_items
from core.errors import ConcordError, JobError, JudgeError, UsageError
from core.files import write_text
from core.judge_files import CalibratedJudge
from core.judge_files.fused_judge import FusedJudge
from core.judge_files.loaded import RowJudge
from core.judge_files.loading import load_judge
from core.judging.judge_protocol import CallEstimate
from core.judging.offline.features import forget_items
from core.progress import SILENT, Progress, Stage
from core.providers.completions import ReplyStore
from core.records import Item
from core.scoring.by_batch import read_results, write_requests
from core.scoring.item_file import ItemFile, check_needs, columns_behind, file_digest, items_of
from core.scoring.output import Batch, Checkpoint, SureColumns, header, verdict_batch
from core.scoring.request import BatchWritten, FusedScores, ScoredFile, ScoreRequest
from core.scoring.scoring_judges import (
    affordable_items,
    batch_size,
    check_unread,
    identity_of,
    model_behind,
    open_judge,
)

SAMPLE = 200
"""Items that stand for all the others in an estimate."""

BATCHES_AHEAD = 64
"""Batches that are asked at the same time, so that a slow reply holds up no others."""

WORTH_PROCESSES, MOST_PROCESSES = 4_000, 16
"""Items from which the offline judge scores in several processes, and the most of them."""

_PROCESSES = multiprocessing.get_context(
    "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
)


def score_file(request: ScoreRequest, *, replies: ReplyStore | None = None, progress: Progress = SILENT) -> ScoredFile:
    """Score a file, or resume an earlier call with the same `out`.

    The file is looked at as a whole before the first call: GoldenError with row and column for what cannot be used.
    `progress` is shown how many rows are read, then how many items are scored.  JobError when what is kept belongs to
    another input, judge file or choice of options; JudgeError and ProviderError as the judge raises them, and
    ConcordError for a full disk: what was scored is kept then.
    """
    started = time.perf_counter()
    with closing(open_judge(request, replies)) as judge:
        request = request.settled(judge)
        sure = SureColumns.of(judge, request)
        items = items_of(request, judge, lambda n: progress.publish(Stage("reading", "reading", n, 0)))
        check_needs(items, judge.needs)
        affordable = affordable_items(request.budget, judge)
        identity = identity_of(request, items, judge)
        with closing(Checkpoint(request.out, identity, header(request), again=request.again)) as checkpoint:
            before = checkpoint.done.items
            batch: Mapping[str, Any] = {}
            if request.batch_read:
                batch = read_results(request, judge, items, start=before, most=affordable, replies=replies)
            _score_rest(request, judge, items, checkpoint, affordable, progress=progress)
            done = checkpoint.done
            if finished := done.items >= items.n_items:
                _check_unchanged(items, done.items)
                checkpoint.finish()
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
        batch,
        judge.spent,
        sure.summed(request) if sure and finished else None,
        judge.remarks,
    )


def write_batch(request: ScoreRequest, path: Path, *, replies: ReplyStore | None = None) -> BatchWritten:
    """Write the requests of a scoring that the reply cache cannot answer into files in the batch form; ask nobody.

    UsageError for a judge without an endpoint, or a place that cannot be written; GoldenError as `score_file`.
    """
    with closing(open_judge(request, replies)) as judge:
        items = items_of(request, judge)
        check_needs(items, judge.needs)
        return write_requests(judge, items, path, replies)


def estimate_scoring(request: ScoreRequest) -> CallEstimate | None:
    """Calls, tokens and price of scoring all items of a file; None for a judge that asks no language model.

    At most: what an earlier call scored, or what the reply cache holds, costs nothing.  Nothing is sent.  Raises what
    `score_file` does for a judge or items that cannot be used.
    """
    with closing(open_judge(request)) as judge:
        model = model_behind(judge)
        if model is None or not model.is_llm or not isinstance(judge, CalibratedJudge):
            return None
        items = items_of(request, judge)
        sample = next(items.batches(SAMPLE), ())
        n_items = min(items.n_items, affordable_items(request.budget, judge) or items.n_items)
        one = judge.estimate(sample)
        return CallEstimate(n_items * judge.calls_an_item, *one.scaled(n_items / max(1, len(sample))))


def score_fused(request: ScoreRequest, *, replies: ReplyStore | None = None) -> FusedScores:
    """Score a file as a whole with the fused judge of `request`; `out` is written at the end.

    `replies` keeps those of a fusion by a language model.
    UsageError for another judge, a budget or intervals, which a fused judge does not take.
    """
    if request.coverage is not None:
        raise UsageError(f"{request.judge_file}: is a fused judge, whose verdicts come without intervals.")
    if request.judge or request.budget is not None:
        raise UsageError(f"{request.judge_file}: is a fused judge, which takes no --judge and no --budget.")
    with closing(load_judge(request.judge_file, replies=replies, accept_edited=request.accept_edited)) as judge:
        assert isinstance(judge, FusedJudge)
        request = request.settled(judge)
        golden = load_items(request.items, mapping=request.mapping, kept=columns_behind(judge))
        verdicts = judge.score(golden.items, metrics=golden.metrics)
    batch = verdict_batch(golden.items, verdicts, judge.marks, request)
    write_text(request.out, header(request) + batch.text)
    used = tuple(part.name for part in judge.parts if part.name not in judge.missing)
    return FusedScores(batch.n_items, batch.n_scored, used, dict(judge.missing), judge.marks)


def score_batch(request: ScoreRequest, judge: RowJudge, items: Sequence[Item]) -> Batch:
    """Score `items` and put them in lines.  An item's line is the same in whatever batch it comes."""
    verdicts = judge.score(items, explain=request.explain, of_more=True, coverage=request.coverage)
    forget_items()  # each item comes once: kept features would only fill the memory
    return verdict_batch(items, verdicts, judge.marks, request, SureColumns.of(judge, request))


def _score_rest(
    request: ScoreRequest,
    judge: RowJudge,
    items: ItemFile,
    checkpoint: Checkpoint,
    affordable: int | None,
    *,
    progress: Progress,
) -> None:
    """Score what is not done yet, as much of it as the budget pays for; an error says that nothing is lost."""
    first, left = checkpoint.done, items.n_items - checkpoint.done.items
    wanted = left if affordable is None else min(left, affordable)
    batches = _limited(items.batches(batch_size(judge), checkpoint.done.items), wanted)
    progress.publish(Stage("scoring", "scoring", checkpoint.done.items, items.n_items))
    several = judge.spec == "offline" and wanted >= WORTH_PROCESSES
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    n_processes = min(cores, MOST_PROCESSES) if several else 1
    try:
        with closing(scored_batches(request, judge, batches, n_processes)) as scored:
            for batch in scored:
                checkpoint.add(batch, batch.n_items * judge.calls_an_item)
                progress.publish(Stage("scoring", "scoring", checkpoint.done.items, items.n_items, judge.spent))
                check_unread(request, judge, first, checkpoint.done)
    except ConcordError as error:
        n = checkpoint.done.items
        if n and str(checkpoint.part) not in str(error):
            error.add_note(f"{n:,} items are scored and kept in {checkpoint.part}; the same command resumes there.")
        raise


def _limited(batches: Iterator[tuple[Item, ...]], n_items: int) -> Iterator[Sequence[Item]]:
    """The batches' first `n_items` items."""
    while n_items > 0 and (batch := next(batches, None)):
        yield batch[:n_items]
        n_items -= len(batch)


def _check_unchanged(items: ItemFile, n_scored: int) -> None:
    """JobError when the input changed while it was scored: the verdicts would be of two files."""
    if n_scored != items.n_items or file_digest(items.path) != items.digest:
        raise JobError(
            f"{items.path}: has changed while it was scored ({n_scored:,} of {items.n_items:,} items came). Add "
            "--again to score it as it is now."
        )


def scored_batches(
    request: ScoreRequest, judge: RowJudge, batches: Iterator[Sequence[Item]], n_processes: int = 1
) -> Generator[Batch]:
    """Score batches and yield them in their order; several at a time in processes, or if an endpoint answers."""
    pool: Executor
    score: Callable[[Sequence[Item]], Batch]
    if n_processes > 1:
        pool, ahead = ProcessPoolExecutor(n_processes, _PROCESSES, _begin_process), 2 * n_processes
        score = partial(_score_in_process, request)
    elif (model := model_behind(judge)) is not None and model.spec.startswith("openai:"):
        pool, ahead = ThreadPoolExecutor(BATCHES_AHEAD, "concord-score"), BATCHES_AHEAD
        score = partial(score_batch, request, judge)
    else:
        yield from (score_batch(request, judge, batch) for batch in batches)
        return
    waiting = deque[Future[Batch]]()
    try:
        for batch in batches:
            waiting.append(pool.submit(score, batch))
            while waiting and (len(waiting) >= ahead or waiting[0].done()):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise ConcordError("A scoring process ended by itself; perhaps the memory is full. Free some.") from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # closing the judge ends pending requests


def _begin_process() -> None:
    """Leave Ctrl-C to the parent process, and end with it."""

    def end_with_parent() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()


_judge_of_process = cache(open_judge)


def _score_in_process(request: ScoreRequest, items: Sequence[Item]) -> Batch:
    try:
        return score_batch(request, _judge_of_process(request), items)
    except ConcordError as error:
        raise JudgeError(str(error)) from None  # which can be pickled, whatever the error was made of
