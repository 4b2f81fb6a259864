"""``fetch``: a file downloaded by hand becomes a golden file that the other commands take; without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.cli.conftest import Run, Say, read_rows
from tests.core.data.conftest import as_csv
from tests.core.data.public_sets.conftest import newsroom_ratings


@pytest.fixture
def ratings() -> Path:
    path = Path("newsroom-human-eval.csv")
    path.write_bytes(as_csv(newsroom_ratings()))
    return path


def test_a_file_from_hand_becomes_a_golden_file(ratings: Path, run: Run, say: Say) -> None:
    code, body = run("fetch", "newsroom", "--from", ratings)
    assert code == 0
    assert (body["name"], body["out"], body["n_items"]) == ("newsroom", "newsroom.jsonl", 4)
    assert body["aspects"]["coherence"] == {"scale": [1, 3], "n_labelled": 4, "n_raters": 3}
    assert body["files"][0]["checked"] == "nothing"
    code, checked = run("check", "newsroom.jsonl")
    assert (code, checked["n_items"]) == (0, 4)
    assert [row["human_coherence"] for row in read_rows("newsroom.jsonl")] == [2, 2, 2, 2]

    reply = say("fetch", "NEWSROOM", "--from", ratings, "--out", "deep/n.jsonl")
    assert "4 items of 2 sources, written to deep/n.jsonl" in reply
    assert "Licence: Apache-2.0" in reply


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
        "cannot be reached",
        "Fetching needs the internet",
        "python -m core fetch newsroom --from newsroom-human-eval.csv",
    ):
        assert words in body["error"]["message"]
    assert list(Path().glob("*.jsonl")) == []
