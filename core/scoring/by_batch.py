"""Write the requests of a scoring for a batch endpoint, and read its results back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.errors import JobError, UsageError
from core.judge_files import CalibratedJudge
from core.judge_files.loaded import RowJudge
from core.judging.llm_judge import LLMJudge
from core.providers.batch_file import BatchResults, request_lines, write_lines
from core.providers.cached import CachedProvider
from core.providers.completions import ReplyStore, Request
from core.providers.wire import Capabilities
from core.scoring.item_file import ItemFile
from core.scoring.request import BatchWritten, ScoreRequest

WALKED = 400
"""Items looked at together."""


def write_requests(judge: RowJudge, items: ItemFile, path: Path, replies: ReplyStore | None) -> BatchWritten:
    """Write what the reply cache does not answer about `items` into files in the batch form, `path` the first.

    Asks nobody.  Leaves out what the endpoint refused when the judge was calibrated.
    """
    asked, llm, cache = _asked(judge, replies)
    known = Capabilities(set(llm.refused_before))
    files, n = write_lines(
        request_lines(_requests(asked, items, 0, None), llm.provider.endpoint, known, cache),
        path,
    )
    return BatchWritten(items.n_items, n, tuple(files))


def read_results(
    request: ScoreRequest,
    judge: RowJudge,
    items: ItemFile,
    *,
    start: int,
    most: int | None,
    replies: ReplyStore | None,
) -> Mapping[str, Any]:
    """Let the judge answer from the files of results alone; returns counts of their lines.

    JobError where no line answers a request about the items after `start`, at most `most` of them.
    """
    asked, llm, cache = _asked(judge, replies)
    inner = llm.provider.inner if isinstance(llm.provider, CachedProvider) else llm.provider
    endpoint = inner.endpoint
    wanted = {each.key(endpoint) for requests in _requests(asked, items, start, most) for each in requests}
    price = getattr(inner, "prices", {}).get(llm.model)
    results = BatchResults(endpoint, price, tuple(sorted(llm.refused_before)))
    for path in request.batch_read:
        results.add(path, wanted)
    counts = results.counts
    if not counts["answered"] and (n_others := results.foreign + results.unusable):
        raise JobError(
            f"None of the {n_others:,} lines answers a request of this judge about these items: the results are of "
            "another judge, of other items, or of another endpoint. Score with the judge file, --judge and items that "
            "the requests were written with."
        )
    llm.provider = CachedProvider(results, cache)
    return counts


def _asked(judge: RowJudge, replies: ReplyStore | None) -> tuple[CalibratedJudge, LLMJudge, ReplyStore]:
    """The judge, the model behind it, and the cache.  UsageError for what no batch can be asked."""
    if not isinstance(judge, CalibratedJudge):
        raise UsageError("Only a judge behind an endpoint can be asked by batch; this one reads hidden states.")
    llm = judge.judge
    if not isinstance(llm, LLMJudge) or not llm.spec.startswith("openai:"):
        raise UsageError(
            f"The judge {llm.spec} asks no endpoint, and batches are for endpoints: name openai:MODEL[@BASE_URL], or "
            "leave out the batch."
        )
    if replies is None:
        raise UsageError("What comes by batch is kept in a reply cache: give one as `replies`.")
    return judge, llm, replies


def _requests(judge: CalibratedJudge, items: ItemFile, start: int, most: int | None) -> Iterator[Sequence[Request]]:
    left = most
    for batch in items.batches(WALKED, start):
        yield from judge.requests(batch[:left])
        left = None if left is None else left - len(batch)
        if left is not None and left <= 0:
            return
