"""Get completions from any OpenAI-compatible endpoint.

Retries are made here and nowhere else (the SDK's are off), so that a 429 slows everybody down (`pace`) and does not end
the run. Requests go out in the order of submission with a bounded number in flight. Samples of one prompt go in one
request (`n`) if the endpoint does that. The first request of each kind goes alone: it shows a wrong key or URL, refused
parameters, and whether the endpoint does `n`, logprobs and JSON. Refusals cost a second request, never the run.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import random
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import openai
from openai import AsyncOpenAI

from core.errors import ProviderError
from core.providers.completions import Completion, Failure, OnReply, Reply, Request
from core.providers.endpoints import endpoint_name, place_of
from core.providers.openai_client import (
    LoopThread,
    TooLargeError,
    as_provider_error,
    client_of,
    concerns_everything,
    concerns_one_request,
    foreign_errors_hidden,
    may_be_about_extras,
    refuses_parameter,
    used_up_quota,
    worth_another_try,
)
from core.providers.pace import FIRST_WAIT, Pace, RequestLimits, wait_asked_for
from core.providers.prices import Price
from core.providers.wire import (
    ROOM_TO_THINK,
    Capabilities,
    NotACompletionError,
    Prompt,
    better_reply,
    came_empty,
    charged,
    cut_off_thinking,
    left_out,
    prompts_of,
    read_completions,
    request_body,
)
from core.records import Usage

log = logging.getLogger(__name__)

FAILURES_IN_A_ROW = 8
"""Failed requests in a row that mean that the endpoint is down, not that one reply is bad."""

_NEWER_LIMIT = "max_completion_tokens"
_LONGEST_BACKOFF = 8.0


_UNANSWERED = Failure("The request was not answered.")


class OpenAIProvider:
    """Asks the chat completions of `base_url`; thread-safe; connections live until `close`.

    `headers` and `extra_body` go with every request.  `key_name` is the environment variable of the key, for messages.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        key_name: str = "OPENAI_API_KEY",
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
        self._loop = LoopThread("concord-openai")
        self._session: _Session | None = None

    def __repr__(self) -> str:
        return f"OpenAIProvider({self.endpoint!r})"

    @property
    def on_this_host(self) -> bool:
        """Whether whoever is asked runs on this machine."""
        return place_of(self.base_url).loopback

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
        future = self._loop.submit(self._run(requests, lambda index, reply: arrivals.put((index, reply))))
        future.add_done_callback(lambda _future: arrivals.put(None))
        try:
            while (arrival := arrivals.get()) is not None:
                if on_reply is not None:
                    on_reply(*arrival)
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Close the connections and end the thread.  Safe to call twice; a later `complete` opens fresh ones."""
        if not self._loop.started:
            return
        session, self._session = self._session, None
        if session is not None:
            self._loop.submit(session.client.close()).result()
        self._loop.stop()

    async def _run(self, requests: Sequence[Request], on_reply: OnReply | None) -> list[Reply]:
        """The replies; raises what ended the batch, without the task group around it."""
        if self._session is None:
            client = client_of(self.base_url, self._api_key, self.headers, self.limits.timeout)
            self._session = _Session(client, Pace(self.limits))
        session, waiting = self._session, deque(prompts_of(requests))
        session.fatal = None
        replies: list[Reply] = [_UNANSWERED] * len(requests)
        idle = self.limits.concurrency

        def start_workers() -> None:
            nonlocal idle
            for _ in range(min(idle, len(waiting))):
                idle -= 1
                group.create_task(work())

        async def work() -> None:
            nonlocal idle
            while waiting:
                prompt = waiting.popleft()
                came = await self._answer(session, prompt)
                for place, reply in zip(prompt.places, came, strict=False):
                    replies[place] = reply
                    if on_reply is not None:
                        on_reply(place, reply)
                if left := prompt.places[len(came) :]:  # the endpoint gives one sample a request: ask for each
                    waiting.extendleft(Prompt(prompt.request, (place,)) for place in reversed(left))
                    start_workers()
            idle += 1

        try:
            async with asyncio.TaskGroup() as group:
                start_workers()
        except BaseExceptionGroup as errors:
            cause: BaseException = errors
            while isinstance(cause, BaseExceptionGroup):
                cause = cause.exceptions[0]
            raise cause from None
        return replies

    async def _answer(self, session: _Session, prompt: Prompt) -> list[Reply]:
        """Replies to the first samples of `prompt`, at least one; the first request of each shape goes alone."""
        if self._shape(prompt) in session.probed:
            return await self._judged(session, prompt)
        async with session.probing:
            if session.fatal is not None:
                raise session.fatal
            if (shape := self._shape(prompt)) not in session.probed:
                replies = await self._judged(session, prompt)
                session.probed.add(shape)
                known = self.capabilities(prompt.request.model)
                if not known.unproven(request_body(prompt.request, known)):
                    session.probed.add(self._shape(prompt))  # what was refused just now was left out and answered
                return replies
        return await self._judged(session, prompt)

    def _shape(self, prompt: Prompt) -> tuple[object, ...]:
        """The model and the optional parts that a request sends: what has to be tried out once."""
        body = request_body(prompt.request, self.capabilities(prompt.request.model), len(prompt.places))
        roles = {message["role"] for message in body["messages"]}
        return prompt.request.model, frozenset(body), frozenset(roles)

    async def _judged(self, session: _Session, prompt: Prompt) -> list[Reply]:
        """The replies, or a `Failure` each for an error that leaves the rest worth asking; raises for the others."""
        try:
            replies = await self._send(session, prompt)
        except (openai.OpenAIError, NotACompletionError) as error:
            mapped = as_provider_error(
                error,
                endpoint=self.endpoint,
                request=prompt.request,
                has_key=self._api_key is not None,
                key_name=self.key_name,
            )
            if session.is_fatal(error):
                session.fatal = mapped
                raise mapped from None
            return [Failure(str(mapped))] * len(prompt.places)
        if names := left_out(prompt.request, self.capabilities(prompt.request.model)):
            replies = [replace(reply, without=names) if isinstance(reply, Completion) else reply for reply in replies]
        session.failed_in_a_row = 0
        session.ever_answered = True
        return replies

    async def _send(self, session: _Session, prompt: Prompt) -> list[Reply]:
        model = prompt.request.model
        known = self.capabilities(model)
        while True:
            body = request_body(prompt.request, known, len(prompt.places))
            try:
                return await self._with_room(session, prompt.request, body, await self._post(session, body))
            except openai.APIStatusError as error:
                named = refuses_parameter(error) and known.named_in(error.message, error.param, body)
                if named:
                    self._go_on_without(model, {named})
                    continue
                if not may_be_about_extras(error) or not known.unproven(body):
                    raise
            except openai.APITimeoutError:
                if "n" not in body:
                    raise
                self._go_on_without(model, {"n"})  # a slow server may do one at a time in time
                continue
            except NotACompletionError:
                if not known.unproven(body):
                    raise
            return await self._with_less(session, body)

    async def _with_room(
        self, session: _Session, request: Request, body: dict[str, Any], replies: list[Reply]
    ) -> list[Reply]:
        """Ask again with a higher limit where thoughts used it up; what is needed is kept.  All are counted."""
        known, limit = self.capabilities(request.model), "max_tokens" if "max_tokens" in body else _NEWER_LIMIT
        used = body[limit] - request.max_tokens
        for room in ROOM_TO_THINK:
            if request.max_tokens + room <= body[limit] or not any(map(cut_off_thinking, replies)):
                continue
            try:
                again = await self._post(session, body | {limit: request.max_tokens + room})
            except openai.APIStatusError:  # more than its context holds: what came is what there is
                break
            used = room
            if room > known.room:
                known.room = room
                log.warning("%s thinks: its replies may take %d tokens more than asked for", request.model, room)
            replies = list(map(better_reply, replies, again))
        return [replace(reply, room=used) if isinstance(reply, Completion) else reply for reply in replies]

    async def _with_less(self, session: _Session, body: dict[str, Any]) -> list[Reply]:
        """Ask again without what the endpoint has not shown to do; what an answer comes without was the trouble."""
        tries = self.capabilities(body["model"]).lesser(body)
        for missing, lesser in tries:
            try:
                replies = await self._post(session, lesser)
            except (openai.APIStatusError, NotACompletionError):
                if missing == tries[-1][0]:
                    raise
                continue
            self._go_on_without(body["model"], missing)
            return replies
        raise AssertionError("there is an extra to leave out")

    async def _post(self, session: _Session, body: dict[str, Any]) -> list[Reply]:
        """The replies to `body`, sent again where that may help; raises what the last attempt came to."""
        failed, for_nothing = 0, Usage()
        while True:
            try:
                replies = await self._once(session, body)
                if not came_empty(replies) or failed >= self.limits.retries:
                    self.capabilities(body["model"]).learn_from_answer(body, replies)
                    return charged(replies[: body.get("n", 1)], for_nothing)
                for_nothing, asked = for_nothing + replies[0].usage, None
            except _TooFastError:
                continue
            except (openai.APIStatusError, openai.APIConnectionError, NotACompletionError) as error:
                if failed >= self.limits.retries or not worth_another_try(error, known=session.ever_answered):
                    raise
                asked = wait_asked_for(error.response.headers) if isinstance(error, openai.APIStatusError) else None
            await asyncio.sleep(asked or min(_LONGEST_BACKOFF, FIRST_WAIT * 2.0**failed) * random.uniform(0.75, 1.0))
            failed += 1

    async def _once(self, session: _Session, body: dict[str, Any]) -> list[Reply]:
        """_TooFastError for a 429 after which the same may be asked again."""
        begun = await session.pace.begin()
        try:
            with foreign_errors_hidden(self.base_url):
                response = await session.client.post(
                    "/chat/completions", body={**self.extra_body, **body}, cast_to=httpx2.Response
                )
        except openai.RateLimitError as error:
            if used_up_quota(error) or not session.pace.refused(begun, wait_asked_for(error.response.headers)):
                raise
            raise _TooFastError from None
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, TooLargeError):
                raise NotACompletionError(str(error.__cause__)) from None
            raise
        else:
            replies = read_completions(response.content, self.prices.get(body["model"]))
            tokens = sum(reply.usage.prompt_tokens + reply.usage.completion_tokens for reply in replies)
            session.pace.answered(begun, tokens)
            return replies
        finally:
            session.pace.end()

    def _go_on_without(self, model: str, names: set[str]) -> None:
        if names - self.capabilities(model).refused:
            self.capabilities(model).refused |= names
            log.warning("%s does not take %s; going on without", self.endpoint, ", ".join(sorted(names)))


class _TooFastError(Exception):
    """The endpoint wants requests to come more slowly, which its pace has taken note of: ask again."""


@dataclass
class _Session:
    """What lives in the event loop: the connections to the endpoint, and what has been tried out there."""

    client: AsyncOpenAI
    pace: Pace
    probing: asyncio.Lock = field(default_factory=asyncio.Lock)
    probed: set[tuple[object, ...]] = field(default_factory=set)
    failed_in_a_row: int = 0
    ever_answered: bool = False
    fatal: ProviderError | None = None

    def is_fatal(self, error: Exception) -> bool:
        if concerns_one_request(error):
            return False
        self.failed_in_a_row += 1
        return concerns_everything(error) or not self.ever_answered or self.failed_in_a_row >= FAILURES_IN_A_ROW
