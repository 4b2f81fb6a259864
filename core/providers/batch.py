"""Requests answered by the batch endpoint of an OpenAI-compatible API: half the price, within a day.

::

    intent stored ──▶ file uploaded ──▶ batch made ──▶ … waiting … ──▶ results read ──▶ settled
     (mark, digest)     (its id stored)  (its id stored)                (replies stored)

Whoever is killed on the way calls `answer_by_batch` again with the same requests and notes.  An intent without a batch
is looked for at the endpoint by its mark, which the batch carries among its metadata, before anything is uploaded
again; what is at the endpoint is waited for, never asked twice.  Replies lie under the keys of direct requests: what
a batch leaves without an answer is missing there, and the judge asks for it directly.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
import uuid
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, Any, TypeVar

import openai
from openai import AsyncOpenAI
from openai.types import Batch

from core.errors import EndpointDownError, ProviderError, RateLimitError
from core.providers.base import Request
from core.providers.batch_file import (
    URL,
    Asked,
    BatchNotes,
    BatchOutcome,
    Came,
    NotesStore,
    Part,
    PartFile,
    Rest,
    Wait,
    keep_replies,
    read_results,
)
from core.providers.openai_api import OpenAIProvider
from core.providers.openai_errors import as_provider_error
from core.providers.pace import FIRST_WAIT

T = TypeVar("T")

MARK = "concord_batch"
ENDED = frozenset(("completed", "failed", "expired", "cancelled"))
FIRST_PAUSE, LONGEST_PAUSE = 5.0, 600.0
TRIES = 4
_DAY = 86_400.0
_CHUNK = 1 << 20
_WORDS = 200


def answer_by_batch(
    provider: OpenAIProvider, asked: Asked, model: str, notes: NotesStore, wait: Wait, *, rest: Rest = "batch"
) -> BatchOutcome:
    """Have all requests of `asked` that have no answer yet answered in batches, and store the replies.

    Returns when nothing is left for a batch; what failed one by one is then without an answer.  ProviderError where the
    endpoint has no batches, refuses one, or ended one with no answer at all; whatever `wait` raises.
    """
    return _Errand(provider, asked, model, notes, wait, rest, notes.load() or BatchNotes(0.0)).run()


@dataclass
class _Errand:
    provider: OpenAIProvider
    asked: Asked
    model: str
    store: NotesStore
    wait: Wait
    rest: Rest
    notes: BatchNotes
    came: Came = field(default_factory=Came)
    n_asked: int = 0
    last_words: str = ""

    def run(self) -> BatchOutcome:
        while not self.notes.settled:
            self._find_lost()
            if self._open():
                self.asked.look()
            else:
                self._submit()
            if not self._open():
                break
            answered = len(self.came.answered)
            statuses = self._read_all()
            left = sum(part.left for part in self.notes.parts)
            if not self.notes.settled and (len(self.came.answered) == answered or "cancelled" in statuses):
                raise self._ended_without(left, statuses)
        if not self.notes.settled:
            self._note(settled=True)
        return BatchOutcome(self.n_asked, self.came)

    # ── notes ────────────────────────────────────────────────────────────────────────────────────────────────

    def _open(self) -> list[Part]:
        return [part for part in self.notes.parts if not part.read]

    def _note(self, **changes: Any) -> None:
        self.notes = replace(self.notes, **changes)
        self.store.save(self.notes)

    def _put(self, part: Part, **changes: Any) -> Part:
        """Note what has become of a part; it stays in its place, or comes last."""
        now, others = replace(part, **changes), {each.mark: each for each in self.notes.parts}
        self._note(parts=tuple((others | {part.mark: now}).values()))
        return now

    # ── towards the endpoint ─────────────────────────────────────────────────────────────────────────────────

    def _find_lost(self) -> None:
        """A part that was noted and whose batch is not: it is at the endpoint, or was never asked."""
        for part in self._open():
            if not part.batch_id:
                begun = self.notes.begun
                if batch_id := self._asked(partial(_find, part=part, begun=begun)):
                    self._put(part, batch_id=batch_id)
                elif part.file_id:
                    self._put(part, batch_id=self._asked(partial(_create, part=part, begun=begun)))
                else:
                    self._note(parts=tuple(each for each in self.notes.parts if each.mark != part.mark))

    def _submit(self) -> None:
        """Make batches of all that has no answer; the first prompt is asked directly, which shows what may be sent."""
        known = self.provider.capabilities(self.model)
        first = next(self.asked.lines(known, self.came.failed), None)
        if first is None:
            return
        keep_replies(self.asked, first[0], self.provider.complete(first[0]))
        self.notes = BatchNotes(time.time())
        lines = (line for _, line in self.asked.lines(known, self.came.failed))
        line = next(lines, None)
        while line is not None:
            with tempfile.TemporaryFile() as file:
                part = PartFile(file)
                while line is not None and not part.full(line):
                    part.add(line)
                    line = next(lines, None)
                self._send(part)

    def _send(self, file: PartFile) -> None:
        self.notes = replace(self.notes, without=self.asked.without)
        part = self._put(Part(uuid.uuid4().hex, file.digest, file.n))
        part = self._put(part, file_id=self._asked(partial(_upload, mark=part.mark, file=file.file)))
        self._put(part, batch_id=self._asked(partial(_create, part=part, begun=self.notes.begun)))

    def _asked(self, do: Callable[[AsyncOpenAI], Coroutine[Any, Any, T]]) -> T:
        try:
            return self.provider.call(do)
        except (openai.NotFoundError, openai.APIStatusError) as error:
            if error.status_code in (404, 405, 501):
                raise ProviderError(
                    f"{self.provider.endpoint} knows no such batch or file, or has no batches at all "
                    f"({error.status_code}).",
                    hint="Write the requests into a file (--batch-write), or ask directly (--again, without --batch).",
                ) from error
            raise self._in_our_words(error) from error
        except openai.APIConnectionError as error:
            raise self._in_our_words(error) from error

    def _in_our_words(self, error: Exception) -> ProviderError:
        about = Request(self.model, (), 0.0, 1)
        return as_provider_error(error, endpoint=self.provider.endpoint, request=about, has_key=self.provider.has_key)

    # ── and back ─────────────────────────────────────────────────────────────────────────────────────────────

    def _read_all(self) -> set[str]:
        """Wait for every open part and read it; how they ended."""
        parts, statuses = self._open(), set[str]()
        self.n_asked += sum(part.n for part in parts)
        while unread := self._open():
            done = sum(part.n for part in self.notes.parts if part.read)
            for part in unread:
                try:
                    batch = self._asked(partial(_retrieve, batch_id=part.batch_id))
                    done += self._n_done(batch)
                    if batch.status in ENDED:
                        self._read(part, batch)
                        statuses.add(batch.status)
                except (EndpointDownError, RateLimitError):  # waited out, as a slow batch is
                    if time.time() > self.notes.begun + 2 * _DAY:
                        raise
            if self._open():
                self.wait(done, sum(part.n for part in self.notes.parts), self._pause())
        return statuses

    def _pause(self) -> float:
        return min(LONGEST_PAUSE, max(FIRST_PAUSE, (time.time() - self.notes.begun) / 10))

    def _n_done(self, batch: Batch) -> int:
        """Lines that are done; what the endpoint says of a batch that it refused is remembered."""
        if errors := getattr(batch.errors, "data", None):
            self.last_words = " ".join(f"{errors[0].code or ''}: {errors[0].message or ''}".split())[:_WORDS]
        counts = batch.request_counts
        return 0 if counts is None else (counts.completed or 0) + (counts.failed or 0)

    def _read(self, part: Part, batch: Batch) -> None:
        price, before = self.provider.prices.get(self.model), len(self.came.answered) + len(self.came.failed)
        with ExitStack() as opened:
            files = []
            for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):  # None, and "" at some endpoints
                files.append(opened.enter_context(tempfile.TemporaryFile()))
                self._asked(partial(_download, file_id=file_id, file=files[-1]))
            for file in files:
                file.seek(0)
                read_results(file, self.asked, price, came=self.came, without=self.notes.without)
        left = part.n - (len(self.came.answered) + len(self.came.failed) - before)
        others = [each for each in self.notes.parts if each.mark != part.mark]
        over = all(each.read for each in others) and (self.rest != "batch" or not sum(p.left for p in others) + left)
        self.notes = replace(self.notes, settled=over)
        self._put(part, read=True, left=left)

    def _ended_without(self, left: int, statuses: set[str]) -> ProviderError:
        ended = " and ".join(sorted(statuses))
        words = f" It says: {self.last_words}" if self.last_words else ""
        return ProviderError(
            f"{self.provider.endpoint}: the batch is over ({ended}) with {left:,} requests unanswered; what came is "
            f"kept.{words}",
            hint="Start again for a new batch with the rest, or let the rest be asked directly.",
        )


# ── requests to the endpoint, in its event loop ──────────────────────────────────────────────────────────────


async def _upload(client: AsyncOpenAI, mark: str, file: IO[bytes]) -> str:
    file.seek(0)
    name = f"concord-{mark}.jsonl"
    kept = await client.with_options(max_retries=TRIES).files.create(file=(name, file), purpose="batch")
    return kept.id


async def _create(client: AsyncOpenAI, part: Part, begun: float) -> str:
    """Make the batch; after an answer that was lost it is looked for first, so that it is made once."""
    for attempt in range(TRIES + 1):
        try:
            batch = await client.batches.create(
                completion_window="24h", endpoint=URL, input_file_id=part.file_id, metadata={MARK: part.mark}
            )
        except (openai.APIConnectionError, openai.InternalServerError, openai.RateLimitError):
            if attempt == TRIES:
                raise
            await asyncio.sleep(FIRST_WAIT * 2.0**attempt)
            if batch_id := await _find(client, part, begun):
                return batch_id
        else:
            return batch.id
    raise AssertionError("the last attempt returns or raises")


async def _find(client: AsyncOpenAI, part: Part, begun: float) -> str:
    """The id of the batch that carries the part's mark, "" for none among those since a day before `begun`."""
    patient = client.with_options(max_retries=TRIES)
    async for batch in patient.batches.list(limit=100):
        if (batch.metadata or {}).get(MARK) == part.mark or (part.file_id and batch.input_file_id == part.file_id):
            return batch.id
        if batch.created_at and batch.created_at < begun - _DAY:
            break
    return ""


async def _retrieve(client: AsyncOpenAI, batch_id: str) -> Batch:
    return await client.batches.retrieve(batch_id)


async def _download(client: AsyncOpenAI, file_id: str, file: IO[bytes]) -> None:
    patient = client.with_options(max_retries=TRIES)
    async with patient.files.with_streaming_response.content(file_id) as response:
        async for chunk in response.iter_bytes(_CHUNK):
            file.write(chunk)
