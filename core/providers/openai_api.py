"""Get completions from any OpenAI-compatible endpoint.

A 429 slows everybody down (`Pace`) and does not end the run. Requests go out in the order of submission with a bounded
number in flight. Samples of one prompt go in one request (`n`) if the endpoint does that. The first request of each
kind goes alone: it shows a wrong key or URL, refused parameters, and whether the endpoint does `n`, logprobs and JSON.
Refusals cost a second request, never the run.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import random
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from core.errors import ProviderError
from core.providers.completions import Completion, Failure, OnReply, Reply, Request
from core.providers.endpoints import Price, RequestLimits, endpoint_name
from core.providers.openai_client import (
    FIRST_WAIT,
    Connection,
    as_provider_error,
    concerns_everything,
    used_up_quota,
    worth_another_try,
)
from core.providers.wire import (
    ROOM_TO_THINK,
    Capabilities,
    Prompt,
    UnansweredError,
    better_reply,
    came_empty,
    charged,
    cut_off_thinking,
    left_out,
    prompts_of,
    read_completions,
    request_body,
    without,
)
from core.records import Usage

log = logging.getLogger(__name__)

FAILURES_IN_A_ROW = 8
"""Failed requests in a row that mean that the endpoint is down, not that one reply is bad."""

_LONGEST_BACKOFF = 8.0
_REFUSES = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|extra|permitted|allowed|cannot|can ?not|can't|must|only|invalid|"
    r"incompatible|deprecated|disabled|not enabled|removed|not accept",
    re.IGNORECASE,
)
_ONE_PROMPT = re.compile(r"context_length_exceeded|content_filter|string_above_max_length|context length")


class _Session:
    """What lives in the event loop: the connection to the endpoint, and what has been tried out there."""

    def __init__(self, connection: Connection, concurrency: int) -> None:
        self.connection, self.places = connection, asyncio.Semaphore(concurrency)
        self.probing, self.probed = asyncio.Lock(), set[tuple[object, ...]]()
        self.failed_in_a_row, self.ever_answered = 0, False
        self.fatal: ProviderError | None = None


class OpenAIProvider:
    """Asks the chat completions of `base_url`; thread-safe; connections live until `close`.

    `headers` and `extra_body` go with every request.  `key_name` is the environment variable of the key, for messages.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        key_name: str = "",
        headers: Mapping[str, str] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        limits: RequestLimits | None = None,
        prices: Mapping[str, Price] | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.extra_body = extra_body or {}
        self.endpoint = endpoint_name(base_url, self.extra_body)
        self.headers = headers or {}
        self._api_key = api_key
        self.key_name = key_name
        self.limits = limits or RequestLimits()
        self.prices = prices or {}
        self._capabilities: dict[str, Capabilities] = {}
        self._session: _Session | None = None
        self._asking: set[Future[None]] = set()

    def __repr__(self) -> str:
        return f"OpenAIProvider({self.endpoint!r})"

    def capabilities(self, model: str) -> Capabilities:
        """What has been learnt of `model` at this endpoint."""
        return self._capabilities.setdefault(model, Capabilities())

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """Replies in the order of `requests`; `on_reply` runs in the calling thread as each arrives.

        Raises the `ProviderError` that made going on pointless, or whatever `on_reply` raised; the requests
        not answered by then are cancelled.
        """
        if not requests:
            return []
        arrivals: queue.SimpleQueue[tuple[int, Reply] | None] = queue.SimpleQueue()
        future = asyncio.run_coroutine_threadsafe(self._run(requests, arrivals), _loop())
        self._asking.add(future)
        future.add_done_callback(lambda _future: arrivals.put(None))
        replies: dict[int, Reply] = {}
        try:
            while (arrival := arrivals.get()) is not None:
                replies[arrival[0]] = arrival[1]
                if on_reply is not None:
                    on_reply(*arrival)
            future.result()
        except BaseException:
            future.cancel()
            raise
        finally:
            self._asking.discard(future)
        return [replies[index] for index in range(len(requests))]

    def close(self) -> None:
        """Give up what is being asked and close the connections.  A later `complete` opens fresh ones."""
        for future in tuple(self._asking):
            future.cancel()  # else each request would be sent again as after a lost connection
        session, self._session = self._session, None
        if session is not None:
            asyncio.run_coroutine_threadsafe(session.connection.close(), _loop()).result()

    async def _run(self, requests: Sequence[Request], arrivals: queue.SimpleQueue[tuple[int, Reply] | None]) -> None:
        """Put every reply into `arrivals`; raises what ended the batch, without the task group around it."""
        if self._session is None:
            connection = Connection(self.base_url, self._api_key, self.headers, self.limits)
            self._session = _Session(connection, self.limits.concurrency)
        session = self._session
        session.fatal = None

        async def ask(prompt: Prompt) -> None:
            async with session.places:
                left = prompt.places
                while left:  # an endpoint may give one sample a request
                    came = (await self._answer(session, Prompt(prompt.request, left)))[: len(left)]
                    for arrival in zip(left, came, strict=False):
                        arrivals.put(arrival)
                    left = left[len(came) :]

        try:
            async with asyncio.TaskGroup() as group:
                for prompt in prompts_of(requests):
                    group.create_task(ask(prompt))
        except BaseExceptionGroup as errors:
            cause: BaseException = errors
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            raise cause from None

    async def _answer(self, session: _Session, prompt: Prompt) -> list[Reply]:
        """Replies to the first samples of `prompt`, at least one; the first request of each shape goes alone."""
        if self._shape(prompt) not in session.probed:
            async with session.probing:
                if session.fatal is not None:
                    raise session.fatal
                if (shape := self._shape(prompt)) not in session.probed:
                    replies = await self._judged(session, prompt)
                    session.probed |= {shape, self._shape(prompt)}  # what was refused just now is left out by now
                    return replies
        return await self._judged(session, prompt)

    def _shape(self, prompt: Prompt) -> tuple[object, ...]:
        """The model and the optional parts that a request sends: what has to be tried out once."""
        body = request_body(prompt.request, self.capabilities(prompt.request.model), len(prompt.places))
        return prompt.request.model, frozenset(body), frozenset(message["role"] for message in body["messages"])

    async def _judged(self, session: _Session, prompt: Prompt) -> list[Reply]:
        """The replies, or a `Failure` each for an error that leaves the rest worth asking; raises for the others."""
        request = prompt.request
        try:
            replies = await self._send(session, prompt)
        except UnansweredError as error:
            has_key, key_name = self._api_key is not None, self.key_name
            mapped = as_provider_error(
                error, endpoint=self.endpoint, request=request, has_key=has_key, key_name=key_name
            )
            if not _concerns_one_prompt(error):
                session.failed_in_a_row += 1
                down = not session.ever_answered or session.failed_in_a_row >= FAILURES_IN_A_ROW
                if down or concerns_everything(error):
                    session.fatal = mapped
                    raise mapped from None
            return [Failure(str(mapped))] * len(prompt.places)
        session.failed_in_a_row, session.ever_answered = 0, True
        names = left_out(request, self.capabilities(request.model))
        return [replace(reply, without=names) if isinstance(reply, Completion) else reply for reply in replies]

    async def _send(self, session: _Session, prompt: Prompt) -> list[Reply]:
        """Ask, and ask again without what the endpoint refuses or has not shown to do."""
        known = self.capabilities(prompt.request.model)
        while True:
            body = request_body(prompt.request, known, len(prompt.places))
            try:
                replies = await self._post(session, body)
            except UnansweredError as error:
                refuses = error.status in (400, 422) and _REFUSES.search(error.told)
                named = known.named_in(error.told, error.param, body) if refuses else None
                extras = known.unproven(body)
                if _concerns_one_prompt(error):
                    raise
                if named:
                    self._go_on_without(prompt.request.model, {named})
                elif error.kind == "timeout" and "n" in body:
                    self._go_on_without(prompt.request.model, {"n"})  # a slow server may do one at a time in time
                elif not extras or error.kind not in ("status", "odd body") or error.status in (401, 402, 403, 429):
                    raise
                else:  # what an answer comes without was the trouble
                    replies = await self._post(session, without(body, extras))
                    self._go_on_without(prompt.request.model, extras)
                    return replies
            else:
                return await self._with_room(session, prompt.request, body, replies)

    async def _with_room(
        self, session: _Session, request: Request, body: dict[str, Any], replies: list[Reply]
    ) -> list[Reply]:
        """Ask again with a higher limit where thoughts used it up; what is needed is kept.  All are counted."""
        known = self.capabilities(request.model)
        limit = "max_tokens" if "max_tokens" in body else "max_completion_tokens"
        used = body[limit] - request.max_tokens
        for room in ROOM_TO_THINK:
            if room <= used or not any(map(cut_off_thinking, replies)):
                continue
            try:
                again = await self._post(session, body | {limit: request.max_tokens + room})
            except UnansweredError as error:
                if error.kind != "status":
                    raise
                break  # more than its context holds: what came is what there is
            used = room
            if room > known.room:
                known.room = room
                log.warning("%s thinks: its replies may take %d tokens more than asked for", request.model, room)
            replies = list(map(better_reply, replies, again))
        return [replace(reply, room=used) if isinstance(reply, Completion) else reply for reply in replies]

    async def _post(self, session: _Session, body: dict[str, Any]) -> list[Reply]:
        """The replies to `body`, sent again where that may help; raises what the last attempt came to."""
        failed, for_nothing, pace = 0, Usage(), session.connection.pace
        while True:
            begun, wait = await pace.begin(), None
            try:
                raw = await session.connection.post({**self.extra_body, **body})
                replies = read_completions(raw, self.prices.get(body["model"]))
                usages = [reply.usage for reply in replies]
                pace.answered(begun, sum(usage.prompt_tokens + usage.completion_tokens for usage in usages))
                if not came_empty(replies) or failed >= self.limits.retries:
                    self.capabilities(body["model"]).learn_from_answer(body, replies)
                    return charged(replies[: body.get("n", 1)], for_nothing)
                for_nothing += replies[0].usage
            except UnansweredError as error:
                if error.status == 429 and not used_up_quota(error) and pace.refused(begun, error.wait):
                    continue
                if failed >= self.limits.retries or not worth_another_try(error, known=session.ever_answered):
                    raise
                wait = error.wait
            finally:
                pace.end()
            await asyncio.sleep(wait or min(_LONGEST_BACKOFF, FIRST_WAIT * 2.0**failed) * random.uniform(0.75, 1.0))
            failed += 1

    def _go_on_without(self, model: str, names: set[str]) -> None:
        if names - self.capabilities(model).refused:
            self.capabilities(model).refused |= names
            log.warning("%s does not take %s; going on without", self.endpoint, ", ".join(sorted(names)))


_loops: dict[int, asyncio.AbstractEventLoop] = {}
_starting = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all connections of this process, in a thread of its own."""
    with _starting:  # threads ask at once, and a lock of asyncio belongs to one loop
        if os.getpid() not in _loops:
            loop = _loops[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="concord-openai", daemon=True).start()
        return _loops[os.getpid()]


def _concerns_one_prompt(error: UnansweredError) -> bool:
    """Whether `error` is about this prompt alone (too long, filtered), so that the others may go on."""
    return error.status in (400, 413, 422) and bool(_ONE_PROMPT.search(error.told))
