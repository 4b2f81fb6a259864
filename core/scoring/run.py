"""Score a file of any length with a judge file: check it, score batch by batch, keep, resume, finish."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from core.data import load_items
from core.errors import ConcordError, JobError, JudgeError, UsageError
from core.files import replacing, write_text
from core.judge_files import CalibratedJudge
from core.judge_files.fused_judge import FusedJudge
from core.judge_files.loaded import RowJudge
from core.judge_files.loading import load_judge
from core.judging.judge_protocol import CallEstimate
from core.judging.offline.features import forget_items
from core.progress import SILENT, Progress, Stage
from core.providers.completions import ReplyStore
from core.providers.loop_thread import LoopThread
from core.records import Item, Verdict
from core.scoring import judges
from core.scoring.by_batch import read_results, write_requests
from core.scoring.item_file import ItemFile, check_needs, columns_behind, file_digest, items_of
from core.scoring.judges import (
    affordable_items,
    batch_size,
    calls_an_item,
    check_unread,
    identity_of,
    model_behind,
    open_judge,
)
from core.scoring.output import UNREAD, Batch, Checkpoint, SureColumns, header, lines_and_reasons, verdict_batch
from core.scoring.request import BatchWritten, FusedScores, ScoredFile, ScoreRequest

SAMPLE = 200
"""Items that stand for all the others in an estimate."""

CALLS_AHEAD = 4_096
"""Calls that are taken up after the oldest one without an answer, so that it holds up no others."""

WORTH_PROCESSES = 4_000
"""Items from which starting further processes pays."""

SMALL_ITEM = 250
"""Bytes that even a short item takes in a file."""

MOST_WORKERS = 16


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
        if _may_want_processes(request, judge):
            _start_fork_server()
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
            done, mended = checkpoint.done, Mended(n_scored=checkpoint.done.n_scored, reasons=checkpoint.done.reasons)
            if finished := done.items >= items.n_items:
                _check_unchanged(items, done.items)
                left = None if affordable is None else affordable - (done.items - before)
                if before and not request.keep_unread and not UNREAD.isdisjoint(done.reasons) and left != 0:
                    with replacing(request.out) as place:
                        mended = _mend(request, judge, items, checkpoint.part, place, n_rows=before, most=left)
                    checkpoint.drop()
                else:
                    checkpoint.finish()
    return ScoredFile(
        items.n_items,
        done.items,
        mended.n_scored,
        before,
        done.calls + mended.n_asked * judge.calls_an_item,
        finished,
        time.perf_counter() - started,
        judge.marks,
        dict(mended.reasons.most_common()),
        items.findings,
        mended.n_asked,
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


@dataclass
class Mended:
    """What the lines of an output count up to, after `n_asked` of them were asked again."""

    n_asked: int = 0
    n_scored: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


def _mend(
    request: ScoreRequest, judge: RowJudge, items: ItemFile, old: Path, new: Path, *, n_rows: int, most: int | None
) -> Mended:
    """Write the lines of `old` to `new`, of the first `n_rows` at most `most` that are unread asked again."""
    head, mended = header(request), Mended()
    with (
        old.open(encoding="utf-8", newline="\n") as looked,
        old.open(encoding="utf-8", newline="\n") as lines,
        new.open("w", encoding="utf-8", newline="\n") as file,
    ):
        if any(other.readline() != head for other in (looked, lines) if head):
            raise JobError(f"{old}: does not begin with the header that Concord writes. Add --again to score anew.")
        each = chain.from_iterable(items.batches(judges.BATCH))
        rows = zip(each, islice(lines_and_reasons(looked, request), n_rows), strict=False)
        unread = islice((item for item, (_, reason) in rows if reason in UNREAD), most)
        batches = iter(lambda: tuple(islice(unread, batch_size(judge))), ())
        with closing(scored_batches(request, judge, batches, 0)) as scored:
            fresh = chain.from_iterable(lines_and_reasons(io.StringIO(b.text, newline="\n"), request) for b in scored)
            file.write(head)
            for place, (line, reason) in enumerate(lines_and_reasons(lines, request)):
                if place < n_rows and mended.n_asked != most and reason in UNREAD:
                    mended.n_asked += 1
                    line, reason = next(fresh)  # noqa: PLW2901
                mended.n_scored += not reason
                mended.reasons.update([reason] if reason else ())
                file.write(line)
    return mended


def score_batch(judge: RowJudge, items: Sequence[Item], request: ScoreRequest) -> Batch:
    """Score `items` and put them in lines.  An item's line is the same in whatever batch it comes."""
    batch = _lines(
        judge, items, judge.score(items, explain=request.explain, of_more=True, coverage=request.coverage), request
    )
    forget_items()  # each item comes once: kept features would only fill the memory
    return batch


def _lines(judge: RowJudge, items: Sequence[Item], verdicts: Sequence[Verdict], request: ScoreRequest) -> Batch:
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
    try:
        with closing(scored_batches(request, judge, batches, wanted)) as scored:
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


# ── batches under way, taken in their order ──────────────────────────────────────────────────────────────────

_Submit = Callable[[Sequence[Item]], "Future[Batch | str]"]


def scored_batches(
    request: ScoreRequest, judge: RowJudge, batches: Iterator[Sequence[Item]], n_items: int
) -> Generator[Batch]:
    """The scored batches of `n_items` items in their order, however long one takes."""
    n_processes = _n_processes(request.workers, n_items) if judge.spec == "offline" else 1
    if n_processes > 1:
        with _processes(request, n_processes) as submit:
            yield from _in_order(batches, submit, 2 * n_processes)  # each works on one while the next lies ready
    elif (model := model_behind(judge)) is not None and model.awaits:
        with _loop(request, judge) as submit:
            yield from _in_order(batches, submit, max(2, CALLS_AHEAD // (batch_size(judge) * calls_an_item(judge))))
    else:
        yield from (score_batch(judge, batch, request) for batch in batches)


def _in_order(batches: Iterator[Sequence[Item]], submit: _Submit, ahead: int) -> Iterator[Batch]:
    """What comes of the batches, of which at most `ahead` are under way or wait for an earlier one."""
    waiting = deque[Future[Batch | str]]()
    for batch in batches:
        waiting.append(submit(batch))
        while waiting and (len(waiting) >= ahead or waiting[0].done()):
            yield _result(waiting.popleft())
    while waiting:
        yield _result(waiting.popleft())


@contextmanager
def _loop(request: ScoreRequest, judge: RowJudge) -> Iterator[_Submit]:
    """An event loop in a thread of its own, whatever the caller's does; what is under way at the end is cancelled."""
    loop = LoopThread("concord-score")

    async def score(items: Sequence[Item]) -> Batch | str:
        verdicts = await judge.score_async(items, explain=request.explain, of_more=True, coverage=request.coverage)
        return _lines(judge, items, verdicts, request)

    try:
        yield lambda batch: loop.submit(score(batch))
    finally:
        loop.stop()


# ── several processes, for a judge that computes: one that waits for an endpoint needs no second core ─────────

_CONTEXT: Any = multiprocessing.get_context(
    "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
)


def _start_fork_server() -> None:
    """Let the server that processes are copied from import while this process does something else."""
    if _CONTEXT.get_start_method() == "forkserver":
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload([__name__, "pydantic"])  # the second is imported with a judge file, late
        forkserver.ensure_running()


@contextmanager
def _processes(request: ScoreRequest, n: int) -> Iterator[_Submit]:
    with ProcessPoolExecutor(n, _CONTEXT, _begin) as pool:
        try:
            yield lambda batch: pool.submit(_score_there, request, batch)
        finally:
            pool.shutdown(cancel_futures=True)


def _result(future: Future[Batch | str]) -> Batch:
    try:
        answer = future.result()
    except BrokenProcessPool as error:
        raise ConcordError(
            "A scoring process ended by itself (out of memory, perhaps). What is scored is kept: run the same command "
            "again, with --workers 1 where it happens again."
        ) from error
    if isinstance(answer, str):
        raise JudgeError(answer)
    return answer


def _begin() -> None:
    """In each process: it leaves Ctrl-C to the one that started it, and does not outlive that one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
    os._exit(1)


def _score_there(request: ScoreRequest, items: Sequence[Item]) -> Batch | str:
    """Score with this process's own judge; the words of an error, which would lose its parts on the way."""
    try:
        return score_batch(_judge_here(request), items, request)
    except ConcordError as error:
        return str(error)


_judge_here = cache(open_judge)


def _may_want_processes(request: ScoreRequest, judge: RowJudge) -> bool:
    """Whether a look at the size of the file says that several processes will score it."""
    size = request.items.stat().st_size if request.items.is_file() else 0  # what is none is told by the first look
    several = size >= WORTH_PROCESSES * SMALL_ITEM and _n_processes(request.workers, WORTH_PROCESSES) > 1
    return judge.spec == "offline" and several


def _n_processes(workers: int | None, n_items: int) -> int:
    if workers is not None:
        return max(1, min(workers, MOST_WORKERS))
    if n_items < WORTH_PROCESSES:
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_WORKERS)
