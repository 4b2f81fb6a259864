"""Completions from any OpenAI-compatible endpoint.

The SDK does the retries (never wrapped in a second layer).  Requests go out in the order of submission with a
bounded number in flight.  The very first request of each kind goes alone: it shows a wrong key or URL at once, and
which optional parameters the endpoint refuses.
"""

from __future__ import annotations

import asyncio
import logging
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import httpx2
import openai
from openai import AsyncOpenAI, DefaultAioHttpClient

from core.providers.base import Failure, Reply, Request
from core.providers.loop_thread import LoopThread
from core.providers.openai_errors import (
    as_provider_error,
    concerns_everything,
    concerns_one_request,
    refuses_parameter,
)
from core.providers.prices import Price
from core.providers.wire import Capabilities, NotACompletionError, read_completion, request_body

log = logging.getLogger(__name__)

FAILURES_IN_A_ROW = 8
"""So many failed requests with no answer between them mean that the endpoint is down, not that one reply is bad."""

_NO_KEY = "none"
_CONNECT_SECONDS = 10.0

OnReply = Callable[[int, Reply], None]


class OpenAIProvider:
    """Asks the chat completions of `base_url`; thread-safe; connections live until `close`.

    `concurrency` bounds the requests in flight over all threads, `timeout` is in seconds for one attempt,
    `max_retries` are the SDK's (429, 408, 409, 5xx, connection errors, with exponential waits).
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        concurrency: int = 64,
        timeout: float = 120.0,
        max_retries: int = 5,
        prices: Mapping[str, Price] | None = None,
    ) -> None:
        self._endpoint = base_url.rstrip("/")
        self._api_key = api_key
        self.concurrency = concurrency
        self.timeout = timeout
        self.max_retries = max_retries
        self.prices = prices or {}
        self.capabilities = Capabilities()
        self._loop = LoopThread("concord-openai")
        self._session: _Session | None = None

    @property
    def endpoint(self) -> str:
        return self._endpoint

    def __repr__(self) -> str:
        return f"OpenAIProvider({self._endpoint!r})"

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Replies in the order of `requests`; `on_reply` runs in the calling thread as each arrives.

        Raises the `ProviderError` that made going on pointless, or whatever `on_reply` raised; the requests
        not answered by then are cancelled.
        """
        if not requests:
            return []
        batch = _Batch(requests)
        future = self._loop.submit(self._run(batch))
        future.add_done_callback(batch.finished)
        try:
            return batch.gather(on_reply)
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Close the connections and end the thread.  Safe to call twice; a later `complete` opens fresh ones."""
        if self._loop.started:
            self._loop.submit(self._close_session()).result()
            self._loop.stop()

    async def _close_session(self) -> None:
        if self._session is not None:
            await self._session.client.close()
            self._session = None

    async def _run(self, batch: _Batch) -> None:
        session = self._session
        if session is None:
            session = self._session = _Session(self._client(), asyncio.Semaphore(self.concurrency))
        order = iter(enumerate(batch.requests))
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self.concurrency, len(batch.requests))):
                group.create_task(self._work(session, order, batch))

    def _client(self) -> AsyncOpenAI:
        timeout = httpx2.Timeout(self.timeout, connect=min(_CONNECT_SECONDS, self.timeout))
        client = AsyncOpenAI(
            api_key=self._api_key or _NO_KEY,
            base_url=self._endpoint,
            timeout=timeout,
            max_retries=self.max_retries,
            http_client=DefaultAioHttpClient(timeout=timeout),
        )
        client.organization = client.project = (
            None  # the SDK takes them from the environment, which only Settings reads
        )
        return client

    async def _work(self, session: _Session, order: Iterator[tuple[int, Request]], batch: _Batch) -> None:
        for index, request in order:
            async with session.slots:
                reply = await self._answer(session, request, batch)
            if reply is _UNANSWERED:
                return
            batch.arrived(index, reply)

    async def _answer(self, session: _Session, request: Request, batch: _Batch) -> Reply:
        shape = (request.model, request.seed is not None, bool(request.json_schema), request.top_p < 1.0)
        if shape in session.probed:
            return await self._judged(session, request, batch)
        async with session.probing:
            if batch.over:
                return _UNANSWERED
            if shape not in session.probed:
                reply = await self._judged(session, request, batch)
                session.probed.add(shape)
                return reply
        return await self._judged(session, request, batch)

    async def _judged(self, session: _Session, request: Request, batch: _Batch) -> Reply:
        """The reply, or a `Failure` for an error that leaves the rest worth asking; raises for the others."""
        try:
            reply = await self._send(session.client, request)
        except (openai.OpenAIError, NotACompletionError) as error:
            mapped = as_provider_error(
                error, endpoint=self._endpoint, request=request, has_key=self._api_key is not None
            )
            if session.is_fatal(error):
                batch.over = True
                raise mapped from None
            return Failure(str(mapped))
        session.failed_in_a_row = 0
        session.ever_answered = True
        return reply

    async def _send(self, client: AsyncOpenAI, request: Request) -> Reply:
        while True:
            body = request_body(request, self.capabilities)
            try:
                response = await client.post("/chat/completions", body=body, cast_to=httpx2.Response)
            except openai.APIStatusError as error:
                if not refuses_parameter(error) or not self.capabilities.learn(error.message, error.param, body):
                    raise
                refused = ", ".join(sorted(self.capabilities.refused))
                log.warning("%s does not take %s; going on without", self._endpoint, refused)
                continue
            return read_completion(response.content, self.prices.get(request.model))


@dataclass
class _Session:
    """What lives in the event loop: the client, the slots, and what has been learnt of the endpoint."""

    client: AsyncOpenAI
    slots: asyncio.Semaphore
    probing: asyncio.Lock = field(default_factory=asyncio.Lock)
    probed: set[tuple[str, bool, bool, bool]] = field(default_factory=set)
    failed_in_a_row: int = 0
    ever_answered: bool = False

    def is_fatal(self, error: Exception) -> bool:
        if concerns_one_request(error):
            return False
        self.failed_in_a_row += 1
        return concerns_everything(error) or not self.ever_answered or self.failed_in_a_row >= FAILURES_IN_A_ROW


class _Batch:
    """Carries replies from the event loop to the calling thread; `over` once an error has ended it."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.requests = requests
        self.over = False
        self._arrivals: queue.SimpleQueue[tuple[int, Reply] | Future[None]] = queue.SimpleQueue()

    def arrived(self, index: int, reply: Reply) -> None:
        self._arrivals.put((index, reply))

    def finished(self, future: Future[None]) -> None:
        self._arrivals.put(future)

    def gather(self, on_reply: OnReply | None) -> list[Reply]:
        replies: list[Reply] = [_UNANSWERED] * len(self.requests)
        while True:
            arrival = self._arrivals.get()
            if isinstance(arrival, Future):
                _raise_cause(arrival)
                return replies
            index, reply = arrival
            replies[index] = reply
            if on_reply is not None:
                on_reply(index, reply)


_UNANSWERED = Failure("The request was not answered.")


def _raise_cause(future: Future[None]) -> None:
    """Raise what ended the batch: the first error of the task group, without the group around it."""
    try:
        future.result()
    except BaseExceptionGroup as group:
        cause: BaseException = group
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        raise cause from None
