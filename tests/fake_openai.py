"""A local OpenAI-compatible server for tests and benches: answers as the scripted provider does, or fails on purpose.

    python tests/fake_openai.py --port 8900 --latency-ms 50 --fault 500 --fault-after 100 --log requests.log

It listens on 127.0.0.1 only, prints its base URL as the first line, and writes one line for every request into the
log: the SHA-256 of the body.  `GET /stats` tells how many requests came, how many were answered, and how many were in
flight at once.  Faults: html, garbage (200, no JSON), no-choices, filter, no-number, out-of-scale, truncated, strict
(refuses `seed` and `max_tokens`), long (400, prompt too long), hang, or any status from 400 to 599.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from core.providers.base import Completion, Failure, Message, Request
from core.providers.scripted import ScriptedProvider

MODEL = "fake-judge"
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
    log: Path | None = None
    seed: int = 0
    delays: dict[str, float] = field(default_factory=dict)
    requests: int = 0
    answered: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keep_bodies: bool = False
    keys: set[str] = field(default_factory=set)

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
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            body = json.loads(raw)
            await asyncio.sleep(self._delay(body))
            response = await self._answer(body, self.fault if number > self.fault_after else "")
            self.answered += response.status == 200
            return response
        finally:
            self.in_flight -= 1

    def _note(self, raw: bytes, authorization: str) -> None:
        self.keys.add(authorization)
        if self.keep_bodies:
            self.bodies.append(json.loads(raw))
        if self.log is not None:
            with self.log.open("a", encoding="ascii") as file:
                file.write(hashlib.sha256(raw).hexdigest() + "\n")

    def _delay(self, body: dict[str, Any]) -> float:
        prompt = body["messages"][-1]["content"]
        return next((delay for part, delay in self.delays.items() if part in prompt), self.latency)

    async def _answer(self, body: dict[str, Any], fault: str) -> web.Response:
        if fault.isdecimal():
            return _error(int(fault), "This server answers so on purpose.")
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
            case "strict" if refused := next((name for name in ("seed", "max_tokens") if name in body), None):
                return _error(400, f"Unsupported parameter: '{refused}'.", code="unsupported_parameter", param=refused)
        return web.json_response(self._completion(body, fault))

    def _completion(self, body: dict[str, Any], fault: str) -> dict[str, Any]:
        request = Request(
            model=body["model"],
            messages=tuple(Message(message["role"], message["content"]) for message in body["messages"]),
            temperature=body.get("temperature", 1.0),
            max_tokens=body.get("max_tokens", body.get("max_completion_tokens", 0)),
            seed=body.get("seed"),
        )
        reply = ScriptedProvider(self.seed).answer(request)
        assert not isinstance(reply, Failure)
        finish = {"truncated": "length", "filter": "content_filter"}.get(fault, "stop")
        choice = {
            "index": 0,
            "finish_reason": finish,
            "message": {"role": "assistant", "content": TEXTS.get(fault, reply.text)},
        }
        return {
            "id": "chatcmpl-fake",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [] if fault == "no-choices" else [choice],
            "usage": _usage(reply),
        }


def _usage(reply: Completion) -> dict[str, Any]:
    prompt, completion = reply.usage.prompt_tokens, reply.usage.completion_tokens
    return {
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
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--fault", default="")
    parser.add_argument("--fault-after", type=int, default=0, help="so many requests are answered well first")
    parser.add_argument("--log", type=Path, default=None)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    fake = FakeOpenAI(options.latency_ms / 1000, options.fault, options.fault_after, options.log, options.seed)
    announce = lambda port: print(f"http://127.0.0.1:{port}/v1", flush=True)  # noqa: E731
    try:
        asyncio.run(_serve(fake, options.port, announce, asyncio.Event().wait()))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
