"""Score a file of any length with a judge file: check it, then score, save and resume batch by batch."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Container, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.data import load_items
from core.errors import ConcordError, GoldenError, JobError, JudgeError, UsageError
from core.files import file_digest
from core.judge_files import CalibratedJudge
from core.judge_files.fused_judge import FusedJudge
from core.judge_files.loaded import LoadedJudge, RowJudge, load_judge
from core.judging.judge_protocol import CallEstimate
from core.judging.llm_judge import LocalJudge
from core.judging.offline.features import forget_items
from core.progress import SILENT, Progress, Stage
from core.providers.budget import BudgetSpentError
from core.providers.completions import ReplyStore
from core.records import Item
from core.scoring.batch_files import answer_from_files, write_requests
from core.scoring.item_file import ItemFile, stored_columns, validate_items
from core.scoring.output import UNREAD, Output, ScoredFile, ScoreRequest, abstention_of, verdict_rows
from core.wording import percent

SAMPLE = 200
"""Items that an estimate extrapolates from."""

BATCH, REMOTE_BATCH = 400, 32
"""Items between two checkpoints for a judge that computes; calls for a judge that asks a model."""

LOCAL_BATCHES = 7
"""Batches that a model in this process gets at once, since a single one leaves most of a GPU idle."""

BATCHES_AHEAD = 64
"""Batches that are requested at the same time, so that a slow reply doesn't delay others."""

ENOUGH_ITEMS, MOST_UNREAD = 50, 0.5
"""Scoring stops if, after this many items, a larger share than this is unread."""

DOLLAR_BATCH = 16
"""Items of a batch under a budget in dollars, which may stop in the middle of a batch."""


def score_file(request: ScoreRequest, *, replies: ReplyStore | None = None, progress: Progress = SILENT) -> ScoredFile:
    """Score a file. With the same `out`, a later call continues an interrupted scoring.

    Scored items are saved, whatever error follows. A fused judge is the exception: it scores the file as a whole.

    Args:
        progress: Receives the number of rows read, then the number of items scored.

    Raises:
        GoldenError: A row is unusable; raised before the first call. The message names row and column.
        JobError: The existing output belongs to another input, judge file or options.
        ConcordError: The disk is full.
        JudgeError, ProviderError: The judge failed.
    """
    started = time.perf_counter()
    with closing(open_judge(request, replies)) as judge:
        if isinstance(judge, FusedJudge):
            return _score_fused(request, judge, started)
        assert isinstance(judge, RowJudge)
        items = _items(request, judge, progress)
        most = affordable_items(request.budget, judge)
        identity = identity_of(request, [items.digest, items.n_items], judge)
        with closing(Output(request.out, identity)) as output:
            n_before = output.counts.total()
            batch = answer_from_files(judge, items, request.batch_read, replies) if request.batch_read else {}
            _score_rest(request, judge, items, output, most, progress=progress)
            sure = {}
            if output.counts.total() >= items.n_items:
                if output.counts.total() > items.n_items or file_digest(items.path) != items.digest:
                    raise JobError(
                        f"{items.path} changed during scoring. Delete {output.part}, then score the file again."
                    )
                sure = output.sure(request, judge)
                output.finish(request, judge)
    return ScoredFile(
        items.n_items,
        output.counts,
        n_before,
        calls=output.counts.total() * judge.calls_an_item,
        seconds=time.perf_counter() - started,
        marks=judge.marks,
        findings=items.findings,
        batch=batch,
        usage=judge.spent,
        sure=sure,
        remarks=judge.remarks,
    )


def _score_fused(request: ScoreRequest, judge: FusedJudge, started: float) -> ScoredFile:
    golden = load_items(request.items, mapping=request.mapping, kept=stored_columns(judge))
    verdicts = judge.score(golden.items, metrics=golden.metrics)
    with closing(Output(request.out)) as output:
        output.add(verdict_rows(golden.items, verdicts, judge, request))
        output.finish(request, judge)
    used = tuple(part.name for part in judge.parts if part.name not in judge.missing)
    seconds = time.perf_counter() - started
    return ScoredFile(len(verdicts), output.counts, 0, 0, seconds, judge.marks, used=used, missing=dict(judge.missing))


def _score_rest(
    request: ScoreRequest, judge: RowJudge, items: ItemFile, output: Output, most: int | None, *, progress: Progress
) -> None:
    """Score the remaining items within the budget; errors say where finished items are saved."""
    before = output.counts.copy()
    start, left = before.total(), items.n_items if most is None else most

    def batches() -> Iterator[Sequence[Item]]:
        n = 0
        size = batch_size(judge) if request.budget_usd is None else min(batch_size(judge), DOLLAR_BATCH)
        for batch in items.batches(size, start):
            if n >= left:
                return
            yield batch[: left - n]
            n += len(batch)

    progress.publish(Stage("scoring", "scoring", start, items.n_items))
    try:
        with closing(scored_batches(request, judge, batches(), progress)) as scored:
            for rows in scored:
                output.add(rows)
                progress.publish(Stage("scoring", "scoring", output.counts.total(), items.n_items, judge.spent))
                check_unread(judge, output.counts - before)
    except BudgetSpentError:
        return  # replies for unfinished items are cached, so running the same command resumes
    except ConcordError as error:
        if (n := output.counts.total()) and str(output.part) not in str(error):
            error.add_note(f"{n:,} items are scored and saved in {output.part}. Run the same command again to resume.")
        raise


def scored_batches(
    request: ScoreRequest, judge: RowJudge, batches: Iterator[Sequence[Item]], progress: Progress = SILENT
) -> Generator[list[dict[str, Any]]]:
    """Score batches and yield their output lines in order; an endpoint receives several batches at a time.

    An item's line doesn't depend on its batch.
    """
    each = judge.calls_an_item

    def score(items: Sequence[Item], on_progress: Callable[[int, int], None] | None = None) -> list[dict[str, Any]]:
        verdicts = judge.score(
            items,
            explain=request.explain,
            of_more=True,
            intervals=request.coverage is not None,
            on_progress=on_progress,
        )
        forget_items()  # each item comes once, so cached features only fill the memory
        return verdict_rows(items, verdicts, judge, request)

    # no parallel batches with a budget in dollars: when it runs out, they would all fail
    if not judge.spec.startswith("openai:") or request.budget_usd is not None:
        for batch in batches:
            yield score(batch, lambda done, of: progress.advance(done // each, of // each))
        return
    waiting = deque[Future[list[dict[str, Any]]]]()
    pool = ThreadPoolExecutor(BATCHES_AHEAD, "concord-score")
    try:
        for batch in batches:
            waiting.append(pool.submit(score, batch))
            while waiting and (len(waiting) >= BATCHES_AHEAD or waiting[0].done()):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # closing the judge ends pending requests


def estimate_scoring(request: ScoreRequest) -> CallEstimate | None:
    """Return the maximum calls, tokens and price for scoring a file; None if the judge calls no language model.

    No request is sent. Replies in the cache and items scored in earlier calls are not subtracted. Raises the errors of
    `score_file` for an unusable judge or file.
    """
    with closing(open_judge(request)) as judge:
        if not isinstance(judge, CalibratedJudge) or not any(model.is_llm for model in judge.models):
            return None
        items = _items(request, judge)
        sample = next(items.batches(SAMPLE), ())
        n_items = min(items.n_items, affordable_items(request.budget, judge) or items.n_items)
        one = judge.estimate(sample)
        return CallEstimate(n_items * judge.calls_an_item, *one.scaled(n_items / max(1, len(sample))))


def write_batch(request: ScoreRequest, *, replies: ReplyStore | None = None) -> tuple[int, list[Path]]:
    """Write the requests that score a file to batch files, the first at `request.batch_write`; send nothing.

    Returns:
        The number of requests, and the paths of the files.

    Raises:
        UsageError: The judge has no endpoint.
        GoldenError: A row is unusable.
    """
    with closing(open_judge(request, replies)) as judge:
        assert isinstance(judge, RowJudge) and request.batch_write is not None
        return write_requests(judge, _items(request, judge), request.batch_write, replies)


# ── the judge ────────────────────────────────────────────────────────────────────────────────────────────────


def open_judge(request: ScoreRequest, replies: ReplyStore | None = None, *, alone: bool = False) -> LoadedJudge:
    """Open the judge of a request; `alone` means the same as in `load_judge`.

    Raises UsageError or JudgeError for options that this judge doesn't support.
    """
    judge = load_judge(
        request.judge_file,
        judge=request.judge or None,
        replies=replies,
        accept_edited=request.accept_edited,
        alone=alone,
    )
    abstention_of(judge, request)
    budgeted = request.budget is not None or request.budget_usd is not None
    if isinstance(judge, FusedJudge) and (budgeted or request.batch_write or request.batch_read):
        raise UsageError(
            f"A fused judge ({request.judge_file}) doesn't support budgets or batches. Remove these options."
        )
    if isinstance(judge, CalibratedJudge) and request.budget_usd is not None:
        return replace(judge, judge=judge.judge.within(request.budget_usd))
    return judge


def _items(request: ScoreRequest, judge: RowJudge, progress: Progress = SILENT) -> ItemFile:
    """Check the items of a request, with its own column mapping or that of the judge file."""
    items = validate_items(
        request.items,
        lambda n: progress.publish(Stage("reading", "reading", n, 0)),
        request.mapping,
        stored_columns(judge),
    )
    require_parts(judge.needs, items.filled, items.columns, items.path.name)
    return items


def require_parts(needs: Sequence[str], there: Container[str], columns: Sequence[str], file_name: str) -> None:
    """Raise GoldenError if all items lack the same part (source, context, references) that the judge needs."""
    if lacking := [part for part in needs if part not in there]:
        raise GoldenError(
            f"All items lack the {' and '.join(lacking)} that the judge needs. The columns are: "
            f"{', '.join(columns)[:500]}. Add a {lacking[0]!r} column, or rename the column that contains this text.",
            file=file_name,
        )


def batch_size(judge: RowJudge) -> int:
    """Return the number of items between two checkpoints."""
    if not judge.models:
        return BATCH
    calls = judge.calls_an_item * judge.models[0].sampling.samples
    return max(1, REMOTE_BATCH // calls) * (LOCAL_BATCHES if isinstance(judge.models[0], LocalJudge) else 1)


def affordable_items(budget: int | None, judge: RowJudge) -> int | None:
    """Return the number of items that a budget of calls pays for; None means no limit.

    Raises UsageError if the budget doesn't cover one item.
    """
    each = judge.calls_an_item
    if budget is not None and budget < each:
        raise UsageError(f"--budget {budget} doesn't cover one item, which takes {each} calls. Increase the budget.")
    return None if budget is None else budget // each


def identity_of(request: ScoreRequest, the_input: Sequence[Any], judge: LoadedJudge) -> dict[str, Any]:
    """Return the input and options that must stay the same when a run is resumed, under the names that users know."""
    return {
        "the input": the_input,
        "the judge file": file_digest(request.judge_file),
        "--judge": judge.spec,
        "--explain": request.explain,
        "--intervals": request.coverage,
        "--abstain-over": request.abstain_over,
        "--map": dict(request.mapping),
    }


def check_unread(judge: LoadedJudge, counts: Counter[str]) -> None:
    """Raise JudgeError if too many replies couldn't be read; `counts` is the result of `tally`."""
    n, reasons = counts.total(), [(reason, count) for reason, count in counts.most_common() if reason in UNREAD]
    unread = sum(count for _, count in reasons)
    if not judge.models or n < ENOUGH_ITEMS or unread <= MOST_UNREAD * n:
        return
    words = ", ".join(f"{count:,} {reason}" for reason, count in reasons)
    raise JudgeError(
        f"{judge.spec}: replies to {unread:,} of the first {n:,} items couldn't be read ({words}); at most "
        f'{percent(MOST_UNREAD)} is allowed. Check the replies ("raw" in the output) and fix the cause. Then delete '
        "the output and run the same command again; cached replies cost nothing."
    )
