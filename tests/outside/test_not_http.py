"""Servers that answer something other than HTTP, or too much of it: one plain sentence, and never a key."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from core.errors import ProviderError
from core.providers.completions import Completion, Failure, Message, Request
from core.providers.endpoints import RequestLimits
from core.providers.openai_api import MOST_BYTES, OpenAIProvider

KEY, GATEWAY = "canary-key-4f1d9a", "canary-gateway-77b2"
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
ANSWERS = {
    "tls alert": b"\x15\x03\x01\x00\x02\x02\x46",
    "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
    "redis": b"-ERR unknown command 'POST'\r\n",
    "http2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80",
    "smtp": b"220 mail.example.org ESMTP\r\n",
    "bad header": OK + b"no colon here\r\n\r\n{}",
    "nul in header": OK + b"x-odd: a\x00b\r\n\r\n{}",
    "long header": OK + b"x-long: " + b"a" * 20_000 + b"\r\n\r\n{}",
    "bad status": b"HTTP/1.1 abc OK\r\n\r\n",
    "bad version": b"HTTP/9.9 200 OK\r\n\r\n",
    "odd reason": b"HTTP/1.1 200 \xff\xfe\r\ncontent-length: 2\r\n\r\n{}",
    "bad length": OK + b"content-length: -5\r\n\r\n{}",
    "two lengths": OK + b"content-length: 5\r\ncontent-length: 9\r\n\r\n{}",
    "bad chunks": OK + b"transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "short body": OK + b"content-length: 500\r\n\r\n{}",
    "false gzip": OK + b"content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}",
    "unknown coding": OK + b"content-encoding: br\r\ncontent-length: 2\r\n\r\n{}",
    "bad redirect": b"HTTP/1.1 302 Found\r\nlocation: http://[::1\r\ncontent-length: 0\r\n\r\n",
    "odd charset": b"HTTP/1.1 400 Bad\r\ncontent-type: text/plain; charset=rot13\r\ncontent-length: 2\r\n\r\n{}",
    "redirect to itself": b"HTTP/1.1 307 Found\r\nlocation: /v1/chat/completions\r\ncontent-length: 0\r\n\r\n",
    "echo": b"HTTP/1.1 400 " + KEY.encode() + b"\r\ncontent-length: 0\r\n\r\n",
    "nothing": b"",
}


def completion(text: str) -> bytes:
    body = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()
    return OK + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body) + body


@contextmanager
def answering(*answers: bytes, endless: bytes = b"") -> Iterator[tuple[int, list[int]]]:
    """A raw server that gives the answers one connection each, the last one for good: its port, and the bytes sent."""
    listener = socket.create_server(("127.0.0.1", 0))
    sent: list[int] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.settimeout(5)
                    connection.recv(65536)
                    answer = answers[min(len(sent), len(answers) - 1)]
                    sent.append(len(answer))
                    connection.sendall(answer)
                    while endless and sent[-1] < 20 * MOST_BYTES:
                        connection.sendall(endless)
                        sent[-1] += len(endless)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], sent
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def provider(port: int, retries: int = 0) -> OpenAIProvider:
    limits = RequestLimits(1, timeout=5, retries=retries)
    url = f"http://127.0.0.1:{port}/v1"
    return OpenAIProvider(url, api_key=KEY, headers={"x-gateway": GATEWAY}, limits=limits)


def asked(n: int = 1) -> list[Request]:
    return [Request("m", (Message("user", f"Rate text {k}."),), 0.0, 20) for k in range(n)]


@pytest.mark.parametrize("kind", ANSWERS)
def test_what_is_not_http_is_a_provider_error_without_key(kind: str) -> None:
    with answering(ANSWERS[kind]) as (port, _):
        there = provider(port)
        with pytest.raises(ProviderError) as caught:
            there.complete(asked())
        there.close()
    cause: BaseException | None = caught.value
    while cause is not None:
        assert KEY not in f"{cause!r} {cause}"
        assert GATEWAY not in f"{cause!r} {cause}"
        cause = cause.__cause__ or cause.__context__


def test_in_mid_run_it_is_asked_again_and_then_unscored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.providers.openai_api.FIRST_WAIT", 0.01)
    odd, good = ANSWERS["ssh"], completion("4")
    with answering(good, odd, good, odd, odd, good) as (port, sent):
        there = provider(port, retries=1)
        replies = there.complete(asked(4))
        there.close()
    assert [isinstance(reply, Completion) for reply in replies] == [True, True, False, True]
    assert isinstance(replies[2], Failure)
    assert "didn't send an HTTP response" in replies[2].message
    assert len(sent) == 6, "nobody else repeats a request"


@pytest.mark.parametrize("kind", ["gzip", "endless", "chunked"])
def test_a_body_without_end_is_cut(kind: str) -> None:
    bomb = gzip.compress(b"1 " * (50 << 20))
    start, endless = {
        "gzip": (OK + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(bomb) + bomb, b""),
        "endless": (OK + b"\r\n", b"1 " * 32_768),
        "chunked": (OK + b"transfer-encoding: chunked\r\n\r\n", b"10000\r\n" + b"1 " * 32_768 + b"\r\n"),
    }[kind]
    with answering(start, endless=endless) as (port, sent):
        there = provider(port)
        with pytest.raises(ProviderError, match="a body of more than 8 MB"):
            there.complete(asked())
        there.close()
    assert sent[0] < 10 * MOST_BYTES


def test_a_key_in_a_reply_is_removed_before_it_is_kept() -> None:
    with answering(completion(f"You sent {KEY} and {GATEWAY}. Score: 4")) as (port, _):
        there = provider(port)
        (reply,) = there.complete(asked())
        there.close()
    assert isinstance(reply, Completion)
    assert reply.text == "You sent [removed] and [removed]. Score: 4"


@pytest.mark.parametrize(("kind", "more"), [("tls alert", ()), ("long header", ("--json",)), ("odd reason", ())])
def test_the_command_line_never_prints_a_key(
    tmp_path: Path, repository: Path, kind: str, more: tuple[str, ...]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with answering(ANSWERS[kind]) as (port, _):
        url = f"http://127.0.0.1:{port}/v1"
        headers = {"x-gateway": "$GATEWAY_TOKEN"}
        entry = {"endpoints": {url: {"key": "CANARY_KEY", "headers": headers}}}
        (home / "endpoints.yaml").write_text(json.dumps(entry), encoding="utf-8")
        home.chmod(0o700)
        command = ["calibrate", "sample_data/summaries.jsonl", "--aspect", "coherence", "--preset", "quick"]
        command += ["--judge", f"openai:m@{url}", "--out", str(tmp_path / "out"), *more]
        environment = os.environ | {"CONCORD_HOME": str(home), "CANARY_KEY": KEY, "GATEWAY_TOKEN": GATEWAY}
        done = subprocess.run(
            [sys.executable, "-m", "core", *command],
            cwd=repository,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert ("didn't send an HTTP response" if kind != "odd reason" else "instead of a completion") in said, said
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "endpoints.yaml"]
    for canary in (KEY, GATEWAY):
        assert canary not in said
        assert not any(canary.encode() in content for content in written)
