"""Downloads: whole or not at all, bounded, https only, words for every failure."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from core.errors import DownloadError
from core.providers.downloads import MAX_REDIRECTS, download

BODY = b'[{"item": "caf\xc3\xa9"}]\n' * 20_000  # several chunks
ADDRESS = "https://home/data.json"
fetch = partial(download, max_bytes=10_000_000, pause=0.0)
Answer = httpx2.Response | Exception | Callable[[], httpx2.Response]
Web = Callable[..., list[str]]


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Web:
    """Set what is answered one after the other, the last for good; returns what is asked."""

    def set_answers(*answers: Answer) -> list[str]:
        asked: list[str] = []

        def answer(request: httpx2.Request) -> httpx2.Response:
            asked.append(str(request.url))
            given = answers[min(len(asked), len(answers)) - 1]
            if isinstance(given, Exception):
                raise given
            return given() if callable(given) else given

        client = partial(httpx2.Client, transport=httpx2.MockTransport(answer))
        monkeypatch.setattr("core.providers.downloads.httpx2.Client", client)
        return asked

    return set_answers


class Body(httpx2.SyncByteStream):
    """A body in pieces; an exception among them breaks it off."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece


def body(*pieces: bytes | Exception, announced: int | None = None, **headers: str) -> Answer:
    """An answer as often as it is asked for."""
    if announced is not None:
        headers["Content-Length"] = str(announced)
    return lambda: httpx2.Response(200, headers=headers, stream=Body(*pieces))


def redirect(target: str | None) -> httpx2.Response:
    return httpx2.Response(302, headers={"Location": target} if target else {})


@pytest.mark.parametrize("announced", [len(BODY), None])
def test_a_file_comes_whole_and_takes_the_place_of_an_older_one(
    web: Web, tmp_path: Path, announced: int | None
) -> None:
    path = tmp_path / "deep" / "data.json"
    path.parent.mkdir()
    path.write_text("old")
    web(body(BODY, announced=announced))
    steps: list[tuple[int, int | None]] = []
    result = fetch(ADDRESS, path, progress=lambda done, total: steps.append((done, total)))
    assert path.read_bytes() == BODY
    assert (result.n_bytes, result.sha256) == (len(BODY), hashlib.sha256(BODY).hexdigest())
    assert steps[-1] == (len(BODY), announced)
    assert len(steps) > 1
    assert steps == sorted(steps)


def test_a_fault_that_passes_is_tried_again(web: Web, tmp_path: Path) -> None:
    site = web(httpx2.Response(503), body(BODY[:100], announced=len(BODY)), body(BODY))
    assert fetch(ADDRESS, tmp_path / "data.json").sha256 == hashlib.sha256(BODY).hexdigest()
    assert len(site) == 3


FAILURES: dict[str, tuple[Answer, str, int]] = {
    "not found": (httpx2.Response(404), "answered 404: the file is no longer there", 1),
    "forbidden": (httpx2.Response(403), "answered 403 instead of sending the file", 1),
    "server trouble": (httpx2.Response(500), "still answered 500 after the retries", 3),
    "cut off": (body(BODY[:1000], announced=len(BODY)), "was cut off", 3),
    "broken off": (body(BODY[:1000], httpx2.RemoteProtocolError("peer closed")), "was cut off (peer closed)", 3),
    "stalled": (body(b"[1, ", httpx2.ReadTimeout("")), "stopped sending", 3),
    "unreachable": (httpx2.ConnectError("refused"), "cannot be reached (refused)", 3),
    "empty": (body(announced=0), "sent an empty file", 1),
    "page by type": (body(b"Sign in", **{"Content-Type": "text/html; charset=utf-8"}), "sent a web page (HTML)", 1),
    "page by content": (body(b"\xef\xbb\xbf\n<!DOCTYPE html><title>x</title>"), "sent a web page (HTML)", 1),
    "announced too large": (body(b"[", announced=10_000_001), "larger than the 10 MB", 1),
    "grown too large": (body(BODY * 30), "larger than the 10 MB", 1),
    "redirect without target": (redirect(None), "answered 302 instead of sending", 1),
    "redirects without end": (redirect("/data.json"), f"redirected more than {MAX_REDIRECTS} times", MAX_REDIRECTS + 1),
    "redirect to http": (redirect("http://example.org/x"), "leads to http://example.org/x, which is not https", 1),
    "redirect to ftp": (redirect("ftp://example.org/x"), "which is not https", 1),
    "redirect to a file": (redirect("file:///etc/hosts"), "which is not https", 1),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures_have_words_and_leave_nothing_but_the_older_file(name: str, web: Web, tmp_path: Path) -> None:
    answer, words, n_asked = FAILURES[name]
    (tmp_path / "data.json").write_text("old")
    site = web(answer)
    with pytest.raises(DownloadError) as caught:
        fetch(ADDRESS, tmp_path / "data.json")
    assert words in str(caught.value)
    assert ADDRESS in str(caught.value)
    assert caught.value.offline == (name == "unreachable")
    assert len(site) == n_asked
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("data.json", "old")]


def test_a_server_that_drips_and_an_interruption_leave_nothing(web: Web, tmp_path: Path) -> None:
    def interrupt(_done: int, _total: int | None) -> None:
        raise KeyboardInterrupt

    more: dict[str, Any]
    for more, error in (({"max_seconds": 0.0}, DownloadError), ({"progress": interrupt}, KeyboardInterrupt)):
        site = web(body(BODY))
        with pytest.raises(error, match="sends too slowly" if error is DownloadError else None):
            fetch(ADDRESS, tmp_path / "data.json", **more)
        assert (len(site), list(tmp_path.iterdir())) == (1, [])


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound but not listening: the connection is refused
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(DownloadError, match="cannot be reached") as caught:
            fetch(f"https://127.0.0.1:{taken.getsockname()[1]}/data.json", tmp_path / "data.json")
    assert caught.value.offline


def test_redirects_are_followed(web: Web, tmp_path: Path) -> None:
    site = web(redirect("/b/data.json"), redirect("//other/data.json"), body(b"[2]"))
    assert fetch(ADDRESS, tmp_path / "data.json").address == ADDRESS
    assert site == [ADDRESS, "https://home/b/data.json", "https://other/data.json"]
    assert (tmp_path / "data.json").read_bytes() == b"[2]"


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9/x", "http://example.org/x", "file:///etc/hosts", "data.json", "https:///x", ""]
)
def test_only_https_is_asked(address: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="https"):
        fetch(address, tmp_path / "data.json")


def test_a_place_that_cannot_be_written(web: Web, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    web(body(b"[1]"))
    with pytest.raises(DownloadError, match="cannot be written"):
        fetch(ADDRESS, tmp_path / "file" / "data.json")
