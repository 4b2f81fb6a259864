"""Downloads against a server on this machine: whole or not at all, bounded, https only, words for every failure."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from core.errors import DownloadError
from core.providers.downloads import MAX_REDIRECTS, download

BODY = b'[{"item": "caf\xc3\xa9"}]\n' * 20_000  # several chunks


@dataclass
class Answer:
    """What the server says: `announced` is the Content-Length, None for none."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    announced: int | None = None
    stall: bool = False


class Server(ThreadingHTTPServer):
    """Answers by path, a list of answers one after the other (the last one stays); counts what was asked."""

    answers: dict[str, list[Answer]]
    asked: list[str]
    released: threading.Event


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        waiting = self.server.answers[self.path]
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.announced is not None:
            self.send_header("Content-Length", str(answer.announced))
        self.end_headers()
        self.wfile.write(answer.body)
        if answer.stall:
            self.wfile.flush()
            self.server.released.wait(20)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server(("127.0.0.1", 0), Handler)
    running.answers, running.asked, running.released = {}, [], threading.Event()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.released.set()
    running.shutdown()
    thread.join()
    running.server_close()


Say = Callable[..., str]


@pytest.fixture
def say(server: Server) -> Say:
    """Set the answers of a path; returns its address."""

    def set_answers(path: str, *answers: Answer) -> str:
        server.answers[path] = list(answers)
        return f"http://127.0.0.1:{server.server_port}{path}"

    return set_answers


fetch = partial(download, max_bytes=10_000_000, timeout=5.0, pause=0.0, loopback_http=True)


def whole(body: bytes, **more: str) -> Answer:
    return Answer(body=body, headers=more, announced=len(body))


def test_a_file_comes_whole(say: Say, tmp_path: Path) -> None:
    told: list[tuple[int, int | None]] = []
    address = say("/data.json", whole(BODY))
    found = fetch(address, tmp_path / "deep" / "data.json", progress=lambda done, total: told.append((done, total)))
    assert (tmp_path / "deep" / "data.json").read_bytes() == BODY
    assert (found.n_bytes, found.sha256) == (len(BODY), hashlib.sha256(BODY).hexdigest())
    assert told[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert len(told) > 1


def test_a_file_of_unknown_size_comes_too(say: Say, tmp_path: Path) -> None:
    found = fetch(say("/data.json", Answer(body=BODY)), tmp_path / "data.json")
    assert found.n_bytes == len(BODY)


def test_an_older_file_is_replaced(say: Say, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text("old")
    fetch(say("/data.json", whole(b"[1]")), tmp_path / "data.json")
    assert (tmp_path / "data.json").read_bytes() == b"[1]"


def test_a_fault_that_passes_is_tried_again(say: Say, server: Server, tmp_path: Path) -> None:
    cut = Answer(body=BODY[:100], announced=len(BODY))
    address = say("/data.json", Answer(503, announced=0), cut, whole(BODY))
    assert fetch(address, tmp_path / "data.json").sha256 == hashlib.sha256(BODY).hexdigest()
    assert len(server.asked) == 3


FAILURES = {
    "not found": (Answer(404, b"no", announced=2), "answered 404: the file is no longer there", 1),
    "forbidden": (Answer(403, b"no", announced=2), "answered 403 instead of sending the file", 1),
    "server trouble": (Answer(500, b"no", announced=2), "still answered 500 after the retries", 3),
    "cut off": (Answer(body=BODY[:1000], announced=len(BODY)), "was cut off", 3),
    "empty": (whole(b""), "sent an empty file", 1),
    "page by type": (
        Answer(body=b"Sign in", announced=7, headers={"Content-Type": "text/html; charset=utf-8"}),
        "sent a web page (HTML) in the place of a data file",
        1,
    ),
    "page by content": (whole(b"\xef\xbb\xbf\n<!DOCTYPE html><title>x</title>"), "sent a web page (HTML)", 1),
    "announced too large": (Answer(body=b"[", announced=10_000_001), "larger than the 10 MB", 1),
    "redirect without target": (Answer(302, announced=0), "answered 302 instead of sending", 1),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_have_words_and_leave_nothing(name: str, say: Say, server: Server, tmp_path: Path) -> None:
    answer, words, n_asked = FAILURES[name]
    address = say("/data.json", answer)
    with pytest.raises(DownloadError) as caught:
        fetch(address, tmp_path / "data.json")
    assert words in str(caught.value)
    assert address in str(caught.value)
    assert not caught.value.offline
    assert len(server.asked) == n_asked
    assert list(tmp_path.iterdir()) == []


def test_a_body_that_grows_past_the_limit_is_stopped(say: Say, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text("old")
    with pytest.raises(DownloadError, match="larger than the 0 MB"):
        fetch(say("/data.json", Answer(body=BODY)), tmp_path / "data.json", max_bytes=1000)
    assert [path.name for path in tmp_path.iterdir()] == ["data.json"]
    assert (tmp_path / "data.json").read_text() == "old"


def test_a_server_that_stops_sending_is_given_up(say: Say, tmp_path: Path) -> None:
    stalled = Answer(body=b"[1, ", announced=1000, stall=True)
    with pytest.raises(DownloadError, match="stopped sending"):
        fetch(say("/data.json", stalled), tmp_path / "data.json", timeout=0.2, attempts=1)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_drips_is_given_up(say: Say, server: Server, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="sends too slowly"):
        fetch(say("/data.json", whole(BODY)), tmp_path / "data.json", max_seconds=0.0)
    assert len(server.asked) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_nothing(say: Say, tmp_path: Path) -> None:
    def interrupt(_done: int, _total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(say("/data.json", whole(BODY)), tmp_path / "data.json", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound but not listening: the connection is refused
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/data.json"
        with pytest.raises(DownloadError, match="cannot be reached") as caught:
            fetch(address, tmp_path / "data.json")
    assert caught.value.offline
    assert address in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_redirects_are_followed(say: Say, tmp_path: Path) -> None:
    say("/b/data.json", whole(b"[2]"))
    relative = say("/a", Answer(302, headers={"Location": "/b/data.json"}, announced=0))
    assert fetch(relative, tmp_path / "data.json").address == relative
    assert (tmp_path / "data.json").read_bytes() == b"[2]"


def test_redirects_end(say: Say, server: Server, tmp_path: Path) -> None:
    address = say("/a", Answer(302, headers={"Location": "/a"}, announced=0))
    with pytest.raises(DownloadError, match=f"redirected more than {MAX_REDIRECTS} times"):
        fetch(address, tmp_path / "data.json")
    assert len(server.asked) == MAX_REDIRECTS + 1


@pytest.mark.parametrize(
    "target", ["http://example.org/x", "ftp://example.org/x", "file:///etc/hosts", "//example.org"]
)
def test_redirects_lead_to_https_only(target: str, say: Say, tmp_path: Path) -> None:
    """``//example.org`` keeps the scheme, which is http here and not this machine."""
    address = say("/a", Answer(302, headers={"Location": target}, announced=0))
    with pytest.raises(DownloadError, match="which is not https") as caught:
        fetch(address, tmp_path / "data.json")
    assert f"{address} leads to" in str(caught.value)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9/x", "http://example.org/x", "file:///etc/hosts", "data.json", "https:///x", ""]
)
def test_only_https_is_asked(address: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="https"):
        download(address, tmp_path / "data.json", max_bytes=10, pause=0.0)


def test_loopback_http_is_for_this_machine_only(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="which is not https"):
        fetch("http://example.org/data.json", tmp_path / "data.json")


def test_a_place_that_cannot_be_written(say: Say, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DownloadError, match="cannot be written"):
        fetch(say("/data.json", whole(b"[1]")), tmp_path / "file" / "data.json")
