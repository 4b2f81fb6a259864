"""Write requests for batch endpoints, and read their results.

The files have OpenAI's format, which `vllm run-batch` also reads. Results may come in any order and in any number of
files, because each line has a `custom_id`: the key of the request in the reply cache.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.errors import JobError, UsageError
from core.files import saving
from core.judge_files import CalibratedJudge
from core.judge_files.loaded import LoadedJudge
from core.judging.llm_judge import LLMJudge
from core.providers.cached import CachedProvider
from core.providers.completions import Failure, OnReply, Reply, ReplyStore, Request
from core.providers.endpoints import Price
from core.providers.wire import Capabilities, UnansweredError, read_completion, request_body
from core.scoring.item_file import ItemFile

MOST_REQUESTS, MOST_BYTES = 50_000, 200_000_000
"""Lines and bytes of a file of requests; OpenAI's limits."""
HALF = 0.5
"""Price of a batch compared with direct requests."""
WALKED = 400
"""Items whose requests are created together."""


def write_requests(
    judge: LoadedJudge, items: ItemFile, path: Path, replies: ReplyStore | None
) -> tuple[int, list[Path]]:
    """Write all requests that have no cached reply. The files are `path`, then `NAME-2`, `NAME-3`, …

    A new file begins when a file reaches the size limit of batch endpoints.

    Returns:
        The number of requests, and the paths of the files.

    Raises:
        UsageError: The judge has no endpoint, or a file can't be written.
    """
    model, cache = _endpoint_of(judge, replies)
    lines = _lines(_requests(judge, items), model.provider.endpoint, cache)
    line, paths, n = next(lines, None), list[Path](), 0
    while line is not None:
        paths.append(path if not paths else path.with_name(f"{path.stem}-{len(paths) + 1}{path.suffix}"))
        with saving(paths[-1]) as place, place.open("wb") as file:
            n_here = size = 0
            while line is not None and n_here < MOST_REQUESTS and (n_here == 0 or size + len(line) <= MOST_BYTES):
                file.write(line)
                n_here, size = n_here + 1, size + len(line)
                line = next(lines, None)
        n += n_here
    return n, paths


def answer_from_files(
    judge: LoadedJudge, items: ItemFile, files: Sequence[Path], replies: ReplyStore | None
) -> dict[str, Any]:
    """Let `judge` take its replies from batch results in `files` instead of its endpoint, so that nothing is sent.

    Returns:
        A dict. "answered" is the number of answered requests, and "failed" has the number of failed requests by reason.
            "foreign" is the number of lines that match no request for `items`.

    Raises:
        JobError: At least one line is foreign, and no request was answered.
        UsageError: A file can't be read.
    """
    model, cache = _endpoint_of(judge, replies)
    inner = model.provider.inner if isinstance(model.provider, CachedProvider) else model.provider
    wanted = {each.key(inner.endpoint) for requests in _requests(judge, items) for each in requests}
    price = getattr(inner, "prices", {}).get(model.model)
    found, failed, foreign = dict[str, Reply](), dict[str, str](), 0
    for path in files:
        try:
            with path.open("rb") as file:
                for line in file:
                    custom_id, reply = read_result(line, price) or ("", "")
                    if custom_id not in wanted:
                        foreign += bool(line.strip())
                    elif isinstance(reply, str):
                        failed[custom_id] = reply
                    else:
                        found.setdefault(custom_id, reply)
        except OSError as error:
            raise UsageError(f"--batch-read: {path} can't be read ({error.strerror}). Check the path.") from error
    if foreign and not found:
        raise JobError(
            f"None of the {foreign:,} lines in the batch results matches a request from this judge. Use the same "
            "judge file, --judge and items as when you wrote the requests."
        )
    model.provider = CachedProvider(_Results(inner.endpoint, found), cache)
    reasons = Counter(reason for key, reason in failed.items() if key not in found)
    return {"answered": len(found), "failed": dict(reasons), "foreign": foreign}


def read_result(line: bytes, price: Price | None) -> tuple[str, Reply | str] | None:
    """Parse a result line into (custom_id, reply) or (custom_id, problem); None for any other line.

    The cost of the reply is half the usual cost.
    """
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or not isinstance(custom_id := body.get("custom_id"), str):
        return None
    if not isinstance(response := body.get("response"), dict):
        error = body.get("error")
        return custom_id, str((isinstance(error, dict) and error.get("code")) or "no response")[:40]
    if (status := response.get("status_code", 200)) != 200:
        return custom_id, f"status {status}" if isinstance(status, int) else "no status"
    try:
        reply = read_completion(json.dumps(response.get("body", response)).encode(), price)
    except UnansweredError:
        return custom_id, "no completion"
    cost = None if reply.usage.cost is None else reply.usage.cost * HALF
    return custom_id, replace(reply, usage=replace(reply.usage, cost=cost))


class _Results:
    """A provider that answers from batch results; a request without a result fails."""

    def __init__(self, endpoint: str, found: dict[str, Reply]) -> None:
        self.endpoint, self.found = endpoint, found

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Implement `Provider.complete`."""
        missing = Failure("The batch results contain no reply to this request.")
        replies = [self.found.get(request.key(self.endpoint), missing) for request in requests]
        for index, reply in enumerate(replies):
            if on_reply is not None:
                on_reply(index, reply)
        return replies

    def close(self) -> None:
        """Do nothing, because batch results need no connection."""


def _lines(walk: Iterator[Sequence[Request]], endpoint: str, cache: ReplyStore) -> Iterator[bytes]:
    """Yield one line for each request without a cached reply."""
    known = Capabilities()
    for requests in walk:
        keyed = {request.key(endpoint): request for request in requests}
        answered = cache.get_replies(list(keyed))
        for key in [key for key in keyed if key not in answered]:
            body = request_body(keyed[key], known)
            line = {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": body}
            yield json.dumps(line).encode() + b"\n"  # ASCII, so that no Unicode separator ends a line


def _requests(judge: LoadedJudge, items: ItemFile) -> Iterator[Sequence[Request]]:
    assert isinstance(judge, CalibratedJudge)
    for batch in items.batches(WALKED, 0):
        yield from judge.models[0].requests(judge.task, judge.divided(batch)[0], judge.criteria)


def _endpoint_of(judge: LoadedJudge, replies: ReplyStore | None) -> tuple[LLMJudge, ReplyStore]:
    """Return the judge's model and the reply cache. Raises UsageError if the judge has no endpoint."""
    if not isinstance(judge, CalibratedJudge) or not judge.spec.startswith("openai:") or replies is None:
        raise UsageError(
            f"A batch requires an endpoint, but {judge.spec} doesn't use one. Use --judge openai:MODEL[@BASE_URL]."
        )
    return judge.models[0], replies
