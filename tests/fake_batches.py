"""The files and batches of the fake endpoint: `/v1/files`, `/v1/batches`, and `run_batch`, which needs neither.

A batch ends at its `polls`-th look.  `faults` (a test may change them while it runs): expired (and cancelled: half of
the lines came by then), partly (half of the lines came, and it counts as completed), twice (every line comes twice),
foreign (as many lines of another judge), backwards (last line first), errors (every third line failed, in the file of
errors), failed (refused as a whole), bare (no metadata is kept), cut (the answer to the making of a batch is lost).
`away` says how many looks at a batch ("look") or its results ("content") are answered 503 first.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from tests.fake_openai import FakeOpenAI

ENDED_EARLY = {"expired": "expired", "cancelled": "cancelled", "partly": "completed"}


@dataclass
class FakeBatches:
    """What was uploaded and asked; `asked` counts every prompt that any batch was made of."""

    polls: int = 2
    faults: set[str] = field(default_factory=set)
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    looks: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    away: Counter[str] = field(default_factory=Counter)

    def add_routes(self, app: web.Application, fake: FakeOpenAI) -> None:
        async def create(request: web.Request) -> web.Response:
            return await self._create(request, fake)

        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{id}/content", self._content)
        app.router.add_post("/v1/batches", create)
        app.router.add_get("/v1/batches", self._list)
        app.router.add_get("/v1/batches/{id}", self._look)

    @property
    def n_asked(self) -> int:
        return self.asked.total()

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        upload = form["file"]
        assert isinstance(upload, web.FileField) and form["purpose"] == "batch"
        return web.json_response({"id": self._keep(upload.file.read()), "object": "file", "filename": upload.filename})

    def _keep(self, content: bytes) -> str:
        file_id = f"file-{len(self.files) + 1}"
        self.files[file_id] = content
        return file_id

    async def _content(self, request: web.Request) -> web.Response:
        if (overloaded := self._overloaded("content")) is not None:
            return overloaded
        content = self.files.get(request.match_info["id"])
        return (
            web.json_response({"error": {"message": "no such file"}}, status=404)
            if content is None
            else (web.Response(body=content, content_type="application/octet-stream"))
        )

    async def _create(self, request: web.Request, fake: FakeOpenAI) -> web.Response:
        body = await request.json()
        lines = self.files[body["input_file_id"]].splitlines()
        self.asked.update(json.loads(line)["custom_id"] for line in lines)
        batch = {
            **{"id": f"batch_{len(self.batches) + 1}", "object": "batch", "endpoint": body["endpoint"]},
            **{"input_file_id": body["input_file_id"], "completion_window": "24h", "status": "validating"},
            **{"created_at": int(time.time()), "metadata": None if "bare" in self.faults else body.get("metadata")},
            **{"request_counts": {"total": len(lines), "completed": 0, "failed": 0}},
            **{"output_file_id": None, "error_file_id": "", "errors": None},
        }
        if "failed" in self.faults:
            error = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached.", "line": None}
            batch |= {"status": "failed", "errors": {"object": "list", "data": [error]}}
        self.batches[batch["id"]] = batch
        batch["_results"] = [] if "failed" in self.faults else results(fake, lines)
        if "cut" in self.faults:
            self.faults.discard("cut")
            assert request.transport is not None
            request.transport.close()
            await asyncio.sleep(0)
        return web.json_response(_shown(batch))

    def _overloaded(self, request: str) -> web.Response | None:
        if self.away[request] <= 0:
            return None
        self.away[request] -= 1
        return web.json_response({"error": {"message": "overloaded"}}, status=503)

    async def _list(self, request: web.Request) -> web.Response:
        newest = list(reversed(self.batches.values()))
        after = next((k + 1 for k, b in enumerate(newest) if b["id"] == request.query.get("after")), 0)
        page = newest[after : after + 2]  # pages of two, so that they are turned
        listed = {"object": "list", "data": list(map(_shown, page)), "has_more": after + 2 < len(newest)}
        return web.json_response(listed | {"last_id": page[-1]["id"] if page else None})

    async def _look(self, request: web.Request) -> web.Response:
        if (overloaded := self._overloaded("look")) is not None:
            return overloaded
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return web.json_response({"error": {"message": "no such batch"}}, status=404)
        self.looks[batch["id"]] += 1
        if batch["status"] == "validating":
            batch["status"] = "in_progress"
        if batch["status"] == "in_progress" and self.looks[batch["id"]] >= self.polls:
            self._end(batch)
        return web.json_response(_shown(batch))

    def _end(self, batch: dict[str, Any]) -> None:
        lines, errors = batch["_results"], []
        early = next((name for name in ENDED_EARLY if name in self.faults), "")
        batch["status"] = ENDED_EARLY.get(early, "completed")
        if early:
            late = lines[len(lines) // 2 :] if "nothing" not in self.faults else lines
            lines = lines[: len(lines) - len(late)]
            expired = {"code": "batch_expired", "message": "This request could not be executed in time."}
            errors = (
                []
                if early == "partly"
                else [
                    json.dumps({"custom_id": json.loads(line)["custom_id"], "response": None, "error": expired})
                    for line in late
                ]
            )
        if "errors" in self.faults:
            failed, lines = lines[::3], [line for k, line in enumerate(lines) if k % 3]
            errors += [_failed(line) for line in failed]
        if "twice" in self.faults:
            lines = [line for line in lines for _ in range(2)]
        if "foreign" in self.faults:
            lines = [other for line in lines for other in (line, line.replace('"reply:', '"reply:f00'))]
        if "backwards" in self.faults:
            lines = lines[::-1]
        batch["request_counts"] |= {"completed": len(lines), "failed": len(errors)}
        batch["output_file_id"] = self._keep("\n".join(lines).encode()) if lines else None
        batch["error_file_id"] = self._keep("\n".join(errors).encode()) if errors else ""


def _shown(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in batch.items() if not name.startswith("_")}


def _failed(line: str) -> str:
    body = {"error": {"message": "The server had an error.", "type": "server_error"}}
    response = {"status_code": 500, "request_id": "r", "body": body}
    return json.dumps({"custom_id": json.loads(line)["custom_id"], "response": response, "error": None})


def results(fake: FakeOpenAI, lines: list[bytes]) -> list[str]:
    """The lines of results of the lines of requests, in their order."""
    return [_result(fake, json.loads(line)) for line in lines]


def _result(fake: FakeOpenAI, line: dict[str, Any]) -> str:
    assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
    response = {"status_code": 200, "request_id": "r", "body": fake._completion(line["body"], fake.fault)}
    return json.dumps({"id": "batch_req", "custom_id": line["custom_id"], "response": response, "error": None})


def run_batch(fake: FakeOpenAI, requests: Path, answers: Path) -> None:
    """As `vllm run-batch -i requests -o answers`: a file of requests answered into a file of results."""
    answers.write_text("\n".join(results(fake, requests.read_bytes().splitlines())), "utf-8")
