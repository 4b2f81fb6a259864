"""Downloads: whole or not at all, https only, words for every failure."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pooch
import pytest
import requests

from core.errors import DownloadError
from core.providers.downloads import ATTEMPTS, download

BODY = b"a,b\n1,2\n"
ADDRESS = "https://home/data.csv"


class Web:
    """Stands in for pooch's download of one address: each answer in turn, the last one for good."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers, self.asked = answers, list[str]()

    def __call__(self, **_: Any) -> Web:
        return self

    def fetch(self, address: str, output_file: str, _: Any) -> None:
        self.asked.append(address)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        Path(output_file).write_bytes(answer)


def answered(monkeypatch: pytest.MonkeyPatch, *answers: bytes | Exception) -> Web:
    web = Web(*answers)
    monkeypatch.setattr(pooch, "HTTPDownloader", lambda **_: web.fetch)
    monkeypatch.setattr("time.sleep", lambda _: None)
    return web


def status(code: int) -> requests.HTTPError:
    response = requests.Response()
    response.status_code = code
    return requests.HTTPError(response=response)


def test_a_file_comes_whole_and_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    web = answered(monkeypatch, requests.ConnectionError(), BODY)
    path = download(ADDRESS, tmp_path / "data.csv", hashlib.sha256(BODY).hexdigest())
    assert path == tmp_path / "data.csv"
    assert path.read_bytes() == BODY
    assert web.asked == [ADDRESS] * 2  # a connection that was lost is tried again
    assert download(ADDRESS, tmp_path / "other.csv").read_bytes() == BODY


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (status(404), "https://home/data.csv returned 404"),
        (requests.ConnectionError("refused"), "can't reach "),
        (requests.Timeout(), "can't reach "),
        (BODY + b"more", "its SHA-256 hash differs"),
    ],
)
def test_failures_have_words_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes | Exception, words: str
) -> None:
    web = answered(monkeypatch, answer)
    with pytest.raises(DownloadError, match=words):
        download(ADDRESS, tmp_path / "data.csv", hashlib.sha256(BODY).hexdigest())
    assert list(tmp_path.iterdir()) == []
    assert len(web.asked) == ATTEMPTS


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/x", "file:///etc/hosts", "data.json", ""])
def test_only_https_is_asked(address: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="https"):
        download(address, tmp_path / "data.json")
