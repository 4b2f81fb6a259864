"""A scoring whose requests go by batch: asked ahead, written into files, or read back out of files.

::

    verdicts.jsonl.batch.json       the batches under way, until the scoring is finished
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core.errors import JobError, UsageError
from core.export import CalibratedJudge
from core.export.aspect_judges import AspectJudges
from core.judging.by_batch import BatchAsker, NotesFile, require_batches, sleeping
from core.judging.llm import LLMJudge
from core.progress import SILENT, Progress
from core.providers.base import ReplyStore, Request
from core.scoring.item_file import ItemFile
from core.scoring.request import BatchWritten, RowJudge, ScoreRequest

WALKED = 400
"""Items looked at together."""


def ask_ahead(
    request: ScoreRequest,
    judge: RowJudge,
    items: ItemFile,
    *,
    start: int,
    most: int | None,
    identity: Any,
    replies: ReplyStore | None,
    progress: Progress,
) -> dict[str, Any]:
    """Have the requests about the items after `start`, at most `most` of them, answered as `request` says.

    Counts of the lines that were asked and came; {} where nothing goes by batch.
    """
    notes = NotesFile(request.out.with_name(f"{request.out.name}.batch.json"), identity)
    if request.again:
        notes.drop()
    if not request.batch and not request.batch_read:
        if (kept := notes.load()) is not None and not kept.settled and kept.parts:
            raise JobError(
                f"{notes.path}: a batch is under way for this scoring, and asking directly would ask it twice. Add "
                "--batch to go on with it, or --again to leave it alone."
            )
        return {}
    asked, model = _asked(judge)
    asker, walk = _asker(notes, replies, request, progress), lambda: _requests(asked, items, start, most)
    if request.batch_read:
        return asker.read(model, walk, request.batch_read).as_json()
    outcome = asker.ask(model, walk, request.out.name)
    return {"asked": outcome.asked} | outcome.came.as_json()


def drop_notes(request: ScoreRequest) -> None:
    """The scoring is finished: its batches are done with."""
    NotesFile(request.out.with_name(f"{request.out.name}.batch.json")).drop()


def write_ahead(
    request: ScoreRequest, judge: RowJudge, items: ItemFile, path: Path, replies: ReplyStore | None
) -> BatchWritten:
    """Write what the reply cache does not answer about `items` into files in the batch form, `path` the first."""
    asked, model = _asked(judge)
    files, n = _asker(NotesFile(path), replies, request, SILENT).write(
        model, lambda: _requests(asked, items, 0, None), path
    )
    return BatchWritten(items.n_items, n, tuple(files))


def _asked(judge: RowJudge) -> tuple[CalibratedJudge | AspectJudges, LLMJudge]:
    """The judge and the model behind it.  UsageError for what no batch can be asked."""
    if isinstance(judge, AspectJudges):
        if judge.together is None:
            raise UsageError("By batch several aspects are asked together (--together); else score with each alone.")
        return judge, require_batches(judge.together.llm)
    if not isinstance(judge, CalibratedJudge):
        raise UsageError("Only a judge behind an endpoint can be asked by batch; this one reads hidden states.")
    return judge, require_batches(judge.judge)


def _asker(notes: NotesFile, replies: ReplyStore | None, request: ScoreRequest, progress: Progress) -> BatchAsker:
    if replies is None:
        raise UsageError("What comes by batch is kept in a reply cache: give one as `replies`.")
    return BatchAsker(replies, lambda name: notes, sleeping(progress), request.batch_rest)


def _requests(
    judge: CalibratedJudge | AspectJudges, items: ItemFile, start: int, most: int | None
) -> Iterator[Sequence[Request]]:
    left = most
    for batch in items.batches(WALKED, start):
        yield from judge.requests(batch[:left])
        left = None if left is None else left - len(batch)
        if left is not None and left <= 0:
            return
