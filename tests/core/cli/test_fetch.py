"""``fetch``: a file downloaded by hand becomes a golden file that the other commands take; without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.data.public_sets import CATALOGUE
from core.providers import downloads
from tests.core.cli.conftest import Run, Say, read_rows, write_rows

VOTES = [
    {
        "article": f"Article {number}.",
        "summary_sentences": [
            {"sentence": "One.", "responses": [{"worker_id": w, "response": "yes"} for w in range(3)]},
            {"sentence": "Two.", "responses": [{"worker_id": w, "response": said} for w in range(3)]},
        ],
    }
    for number, said in enumerate(["yes", "no", "no", "yes"])
]


@pytest.fixture
def votes() -> Path:
    return write_rows("mturk_cnndm.jsonl", VOTES)


def test_a_file_from_hand_becomes_a_golden_file(votes: Path, run: Run, say: Say) -> None:
    code, body = run("fetch", "qags-cnndm", "--from", votes)
    assert code == 0
    assert (body["name"], body["out"], body["n_items"]) == ("qags-cnndm", "qags-cnndm.jsonl", 4)
    assert body["aspects"] == {"consistency": {"scale": [0, 1], "n_labelled": 4, "n_raters": 3}}
    assert body["files"][0]["checked"] == "nothing"
    code, checked = run("check", "qags-cnndm.jsonl")
    assert (code, checked["n_items"]) == (0, 4)
    assert [row["human_consistency"] for row in read_rows("qags-cnndm.jsonl")] == [1, 0.5, 0.5, 1]

    reply = say("fetch", "QAGS_cnndm", "--from", votes, "--out", "deep/q.jsonl")
    for words in (
        "QAGS CNN/DailyMail: 4 items of 4 sources, 1 system, written to deep/q.jsonl",
        "consistency: 4 labels on 0 to 1, 3 raters",
        "with nothing to compare it with",
        "Note: The whole set has 235 items",
        "Licence: none stated",
        "Cite: Wang, A.",
    ):
        assert words in reply


def test_the_list(say: Say) -> None:
    assert [entry.name for entry in CATALOGUE if f"{entry.name:<13} {entry.title}" not in say("fetch", "--list")] == []


def test_an_existing_file_stays(votes: Path, run: Run) -> None:
    Path("qags-cnndm.jsonl").write_text("mine")
    code, body = run("fetch", "qags-cnndm", "--from", votes)
    assert (code, body["error"]["type"]) == (2, "UsageError")
    assert Path("qags-cnndm.jsonl").read_text() == "mine"
    assert run("fetch", "qags-cnndm", "--from", votes, "--force")[0] == 0


def test_without_a_network(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every address leads to a proxy that nobody runs, so that no test reaches the web."""
    for name in ("HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(downloads.time, "sleep", lambda _: None)
    code, body = run("fetch", "asset")
    assert (code, body["error"]["type"]) == (1, "DownloadError")
    for words in (
        "https://raw.githubusercontent.com/facebookresearch/asset/",
        "cannot be reached",
        "Fetching needs the internet",
        "python -m core fetch asset --from human_ratings.csv",
    ):
        assert words in body["error"]["message"]
    assert list(Path().glob("*.jsonl")) == []
