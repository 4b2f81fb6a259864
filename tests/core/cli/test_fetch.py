"""``fetch``: a downloaded set becomes a golden file that the other commands take; without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.cli.conftest import Run, Say


def test_the_sets_are_listed_and_an_unknown_one_is_refused(run: Run, say: Say) -> None:
    assert "newsroom" in say("fetch")
    code, body = run("fetch", "nosuch")
    assert code == 2 and "Choose one of: summeval" in body["error"]["message"]


def test_without_a_network(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every address leads to a proxy that nobody runs, so that no test reaches the web."""
    for name in ("HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("time.sleep", lambda _: None)
    code, body = run("fetch", "newsroom")
    assert (code, body["error"]["type"]) == (1, "DownloadError")
    for words in (
        "https://raw.githubusercontent.com/lil-lab/newsroom/",
        "Can't download ",
        "Check the connection and the proxy, or download it on another machine and copy it here.",
    ):
        assert words in body["error"]["message"]
    assert list(Path().glob("*.jsonl")) == []
