"""A local OpenAI-compatible server for tests and benches: answers as the scripted provider does, or fails on purpose.

    python tests/fake_openai.py --latency-ms 50

It listens on 127.0.0.1 only, on a free port, and prints its base URL.  `GET /stats` tells how many requests came, how
many were answered, and how many were in flight at once.  It does `n`, logprobs (a made-up distribution) and JSON
schemas.  A test sets what it does otherwise: `refuse` answers 400 to a request with one of these (n, logprobs,
response_format, system, temperature, top_p, seed, max_tokens), `ignore` leaves them aside, `choke` answers 500, `hang`
does not answer.  `thinks` spends so many hidden tokens first, out of the limit of the request; `per_second` answers 429
to more than that, with `retry_after` or without.  Faults: html, garbage (200, no JSON), no-choices, filter, no-number,
out-of-scale, truncated, strict (refuses `seed` and `max_tokens`), quota (429), long (400, prompt too long), hang, or
any status from 400 to 599.
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import hashlib
import json
import math
import re
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aiohttp import web

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from core.providers.completions import Completion, Failure, Message, Request, TokenLogprobs
from core.providers.scripted import ScriptedProvider

MODEL = "fake-judge"
REFUSABLE = frozenset({"logprobs", "response_format", "temperature", "top_p", "seed", "max_tokens"})
TEXTS = {
    "no-number": "A text with merits and faults.",
    "out-of-scale": "Score: 11\nFar above.",
    "truncated": "Score: 3",
}


@dataclass
class FakeOpenAI:
    """The server's settings, which a test may change while it runs, and what it has seen."""

    latency: float = 0.0
    fault: str = ""
    fault_after: int = 0
    seed: int = 0
    delays: dict[str, float] = field(default_factory=dict)
    requests: int = 0
    answered: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keep_bodies: bool = False
    keys: set[str] = field(default_factory=set)
    refuse: frozenset[str] = frozenset()
    ignore: frozenset[str] = frozenset()
    choke: frozenset[str] = frozenset()
    hang: frozenset[str] = frozenset()
    most_logprobs: int = 20
    most_tokens: int = 10_000_000
    thinks: int = 0
    thinks_in: str = "reasoning"
    per_second: float = 0.0
    retry_after: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    fault_every: int = 1
    too_fast: int = 0
    admitted: deque[float] = field(default_factory=deque)
    repeats: Counter[str] = field(default_factory=Counter)
    billed: list[dict[str, Any]] = field(default_factory=list)
    redirect: str = ""
    caches_prefixes: bool = False
    prefixes: list[str] = field(default_factory=list)
    seen: list[web.Request] = field(default_factory=list)
    ready: Callable[[], bool] = lambda: True
    """Whether to answer more than the first request, by which a client finds out what the endpoint does.

    So what is in flight at once does not depend on how fast a machine is.
    """

    def application(self) -> web.Application:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/stats", self._stats)
        return app

    async def _models(self, _request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    async def _stats(self, _request: web.Request) -> web.Response:
        seen = {"requests": self.requests, "answered": self.answered, "most_in_flight": self.most_in_flight}
        return web.json_response(seen)

    async def _complete(self, request: web.Request) -> web.Response:
        raw = await request.read()
        self.requests += 1
        number = self.requests
        self._note(raw, request.headers.get("Authorization", ""))
        if self.keep_bodies:
            self.seen.append(request)
        if self.redirect:
            raise web.HTTPTemporaryRedirect(self.redirect)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            body = json.loads(raw)
            await asyncio.sleep(self._delay(body))
            while number > 1 and not self.ready():
                await asyncio.sleep(0.005)
            faulty = number > self.fault_after and number % self.fault_every == 0
            response = self._too_fast() or await self._answer(body, self.fault if faulty else "")
            self.answered += response.status == 200
            return response
        finally:
            self.in_flight -= 1

    def _too_fast(self) -> web.Response | None:
        """429 beyond `per_second` requests in a second."""
        now = time.monotonic()
        while self.admitted and self.admitted[0] <= now - 1.0:
            self.admitted.popleft()
        if self.per_second and len(self.admitted) >= self.per_second:
            self.too_fast += 1
            refused = _error(429, "Rate limit reached for requests.", code="rate_limit_exceeded")
            if self.retry_after:
                refused.headers["retry-after"] = self.retry_after
            return refused
        self.admitted.append(now)
        return None

    def _note(self, raw: bytes, authorization: str) -> None:
        self.keys.add(authorization)
        if self.keep_bodies:
            self.bodies.append(json.loads(raw))

    def _delay(self, body: dict[str, Any]) -> float:
        prompt = body["messages"][-1]["content"]
        return next((delay for part, delay in self.delays.items() if part in prompt), self.latency)

    async def _answer(self, body: dict[str, Any], fault: str) -> web.Response:
        if fault.isdecimal():
            refused = _error(int(fault), "This server answers so on purpose.")
            if self.retry_after:
                refused.headers["retry-after"] = self.retry_after
            return refused
        match fault:
            case "hang":
                await asyncio.sleep(3600)
            case "html":
                return web.Response(text="<!doctype html><html><body>Sign in</body></html>", content_type="text/html")
            case "garbage":
                return web.Response(text="{'choices': oops", content_type="application/json")
            case "long":
                return _error(
                    400, "This model's maximum context length is 4096 tokens.", code="context_length_exceeded"
                )
            case "quota":
                return _error(429, "You exceeded your current quota, please check your plan.", "insufficient_quota")
            case "strict" if refused := next((name for name in ("seed", "max_tokens") if name in body), None):
                return _error(400, f"Unsupported parameter: '{refused}'.", code="unsupported_parameter", param=refused)
        if self.hang & _extras(body):
            await asyncio.sleep(3600)
        if (refused := self._refused(body)) is not None:
            return refused
        return web.json_response(self._completion(body, fault), headers=self.headers)

    def _refused(self, body: dict[str, Any]) -> web.Response | None:
        asked = _extras(body)
        if self.choke & asked:
            return _error(500, "Internal server error.")
        if "system" in self.refuse & asked:
            return _error(400, "System role not supported")
        if names := sorted(self.refuse & asked):
            return _error(400, f"Unsupported parameter: '{names[0]}'.", code="unsupported_parameter", param=names[0])
        if body.get("max_tokens", body.get("max_completion_tokens", 0)) > self.most_tokens:
            return _error(400, f"max_tokens is too large. This model has a context length of {self.most_tokens}.")
        if body.get("top_logprobs", 0) > self.most_logprobs and "logprobs" not in self.ignore:
            return _error(400, f"Invalid value: top_logprobs must be at most {self.most_logprobs}.")
        return None

    def _completion(self, body: dict[str, Any], fault: str) -> dict[str, Any]:
        body = {name: value for name, value in body.items() if name not in self.ignore}
        replies = [self._reply(body, self._sample(body))]
        choices = [_choice(index, reply, fault) for index, reply in enumerate(replies)]
        limit = body.get("max_completion_tokens", body.get("max_tokens", self.thinks))
        for choice in choices if self.thinks else ():
            _think(choice, self.thinks_in, cut_off=limit <= self.thinks)
        self.billed.append(_usage(replies, min(limit, self.thinks)) | self._cached(body, replies[0]))
        return {
            "id": "chatcmpl-fake",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [] if fault == "no-choices" else choices,
            "usage": self.billed[-1],
        }

    def _cached(self, body: dict[str, Any], reply: Completion) -> dict[str, Any]:
        """With `caches_prefixes`: the prompt's tokens that an earlier prompt began with, in blocks of 16, as vLLM."""
        if not self.caches_prefixes:
            return {}
        prompt = "\n".join(message["content"] for message in body["messages"])
        at = bisect.bisect(self.prefixes, prompt)  # the longest common prefix is that with a neighbour in order
        shared = max((_common(prompt, near) for near in self.prefixes[max(0, at - 1) : at + 1]), default=0)
        self.prefixes.insert(at, prompt)
        cached = min(shared // 4 // 16 * 16, reply.usage.prompt_tokens)
        return {"prompt_tokens_details": {"cached_tokens": cached}}

    def _sample(self, body: dict[str, Any]) -> int:
        """Which sample of a prompt to give: the next one where chance has a say, else the first again."""
        same = hashlib.sha256(json.dumps(body).encode()).hexdigest()
        sample = self.repeats[same] if body.get("temperature", 1.0) > 0 and "seed" not in body else 0
        self.repeats[same] += 1
        return sample

    def _reply(self, body: dict[str, Any], sample: int) -> Completion:
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        request = Request(
            model=body["model"],
            messages=tuple(Message(message["role"], message["content"]) for message in body["messages"]),
            temperature=float(body.get("temperature", 1.0)),
            max_tokens=body.get("max_tokens", body.get("max_completion_tokens", 0)),
            seed=body.get("seed"),
            sample=sample,
            json_schema=json.dumps(schema) if schema else "",
            logprobs=body.get("top_logprobs", 0) if body.get("logprobs") else 0,
        )
        reply = ScriptedProvider(self.seed).answer(request)
        assert not isinstance(reply, Failure)
        return replace(reply, logprobs=_logprobs(reply.text, request.logprobs)) if request.logprobs else reply


def _logprobs(text: str, most: int) -> tuple[TokenLogprobs, ...]:
    """A made-up distribution over the ratings 1 to 5 at the first digit, the stated one the likeliest."""
    stated, places = re.search(r"\d", text), []
    for token in re.finditer(r"\d|[^\W\d_]+|\s+|[\W_]", text):
        shares = {token[0]: 1.0}
        if stated and token.start() == stated.start():
            shares = {str(k): 0.5 ** abs(k - int(token[0])) for k in range(1, 6)} | {"The": 0.1}
        likely = sorted(shares, key=lambda word: -shares[word])[:most]
        total = sum(shares.values())
        places.append(TokenLogprobs(token[0], tuple((word, math.log(shares[word] / total)) for word in likely)))
    return tuple(places)


def _common(one: str, other: str) -> int:
    return next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _extras(body: dict[str, Any]) -> set[str]:
    """What `body` asks for that not every endpoint does."""
    system = {"system"} if any(message["role"] == "system" for message in body["messages"]) else set()
    return system | (body.keys() & REFUSABLE)


def _think(choice: dict[str, Any], place: str, *, cut_off: bool) -> None:
    """Put thoughts with numbers that are no verdict into the reply; nothing else is left where they are cut off."""
    message, thoughts = choice["message"], "A 1 at first sight. Score: 1? Rating: 2."
    if cut_off:
        choice["finish_reason"], message["content"] = "length", ""
    if place == "inline":
        message["content"] = f"<think>{thoughts}" + ("" if cut_off else f"</think>{message['content']}")
    elif place:
        message[place] = thoughts


def _choice(index: int, reply: Completion, fault: str) -> dict[str, Any]:
    choice: dict[str, Any] = {
        "index": index,
        "finish_reason": {"truncated": "length", "filter": "content_filter"}.get(fault, "stop"),
        "message": {"role": "assistant", "content": TEXTS.get(fault, reply.text)},
    }
    if reply.logprobs:
        choice["logprobs"] = {
            "content": [
                {
                    "token": place.token,
                    "logprob": place.top[0][1],
                    "bytes": list(place.token.encode()),
                    "top_logprobs": [{"token": token, "logprob": logprob} for token, logprob in place.top],
                }
                for place in reply.logprobs
            ]
        }
    return choice


def _usage(replies: list[Completion], thought: int) -> dict[str, Any]:
    prompt = replies[0].usage.prompt_tokens
    completion = sum(reply.usage.completion_tokens + thought for reply in replies)
    return {
        "completion_tokens_details": {"reasoning_tokens": thought * len(replies)},
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": prompt // 2},
    }


def _error(status: int, message: str, code: str | None = None, param: str | None = None) -> web.Response:
    return web.json_response(
        {"error": {"message": message, "type": "fake", "code": code, "param": param}}, status=status
    )


async def _serve(fake: FakeOpenAI, port: int, started: Callable[[int], None], ended: Awaitable[object]) -> None:
    runner = web.AppRunner(fake.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=512)
    await site.start()
    started(runner.addresses[0][1])
    try:
        await ended
    finally:
        await runner.cleanup()


class RunningServer:
    """The server in a thread of this process, for tests; `base_url` is known once made."""

    def __init__(self, fake: FakeOpenAI) -> None:
        self.fake = fake
        self.port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._main(),), daemon=True)
        self._thread.start()
        self._ready.wait()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    async def _main(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        await _serve(self.fake, 0, self._started, self._end.wait())

    def _started(self, port: int) -> None:
        self.port = port
        self._ready.set()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    fake = FakeOpenAI(parser.parse_args().latency_ms / 1000)
    announce = lambda port: print(f"http://127.0.0.1:{port}/v1", flush=True)  # noqa: E731
    try:
        asyncio.run(_serve(fake, 0, announce, asyncio.Event().wait()))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
