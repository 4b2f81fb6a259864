"""``fetch``: a file downloaded by hand becomes a golden file that the other commands take; the list; wrong usage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.__main__ import main
from core.data.public_sets import CATALOGUE
from core.providers import downloads
from tests.core.cli.conftest import Run

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


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def votes(tmp_path: Path) -> str:
    path = tmp_path / "mturk_cnndm.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in VOTES), encoding="utf-8")
    return str(path)


def test_a_file_from_hand_becomes_a_golden_file(votes: str, tmp_path: Path, run: Run) -> None:
    code, body = run("fetch", "qags-cnndm", "--from", votes)
    assert code == 0
    assert (body["name"], body["out"], body["n_items"]) == ("qags-cnndm", "qags-cnndm.jsonl", 4)
    assert body["aspects"] == {"consistency": {"scale": [0, 1], "n_labelled": 4, "n_raters": 3}}
    assert body["files"][0]["checked"] == "nothing"
    assert body["licence"] == "none stated"

    code, checked = run("check", "qags-cnndm.jsonl")
    assert code == 0
    assert checked["n_items"] == 4
    labels = [json.loads(line)["human_consistency"] for line in Path("qags-cnndm.jsonl").read_text().splitlines()]
    assert labels == [1, 0.5, 0.5, 1]


def test_words_for_people(votes: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", "QAGS_cnndm", "--from", votes, "--out", "deep/q.jsonl"]) == 0
    words = capsys.readouterr().out
    assert "QAGS CNN/DailyMail: 4 items of 4 sources, 1 system, written to deep/q.jsonl" in words
    assert "consistency: 4 labels on 0 to 1, 3 raters" in words
    assert "with nothing to compare it with" in words
    assert "Note: The whole set has 235 items" in words
    assert "Licence: none stated" in words
    assert "Cite: Wang, A." in words


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", "--list"]) == 0
    words = capsys.readouterr().out
    assert all(f"{one.name:<13} {one.title}" in words for one in CATALOGUE)


WRONG = {
    "no name": ([], "UsageError", 2, "Name the set to fetch: summeval, newsroom,"),
    "unknown name": (["sumeval"], "UsageError", 2, "There is no benchmark 'sumeval'; known are summeval,"),
    "no such file": (["asset", "--from", "nowhere.csv"], "UsageError", 2, "nowhere.csv: there is no such file"),
    "too many files": (["asset", "--from", "a", "--from", "b"], "UsageError", 2, "is made from human_ratings.csv; 2"),
    "other ending": (["asset", "--out", "x.csv"], "UsageError", 2, "ending in .jsonl; 'x.csv' came"),
    "needed part": (
        ["summeval", "--from", "model_annotations.aligned.jsonl"],
        "UsageError",
        2,
        "SummEval needs summeval.json as well",
    ),
    "wrong shape": (["asset", "--from", "model_annotations.aligned.jsonl"], "GoldenError", 1, "'original'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_usage(name: str, run: Run) -> None:
    arguments, kind, exit_code, words = WRONG[name]
    Path("model_annotations.aligned.jsonl").write_text('{"id": "x"}\n{"id": "y"}\n')
    code, body = run("fetch", *arguments)
    assert (code, body["error"]["type"]) == (exit_code, kind)
    assert words in body["error"]["message"]
    assert [path.name for path in Path().glob("*.jsonl")] == ["model_annotations.aligned.jsonl"]


def test_an_existing_file_stays(votes: str, run: Run) -> None:
    Path("qags-cnndm.jsonl").write_text("mine")
    code, body = run("fetch", "qags-cnndm", "--from", votes)
    assert (code, body["error"]["type"]) == (2, "UsageError")
    assert Path("qags-cnndm.jsonl").read_text() == "mine"
    assert run("fetch", "qags-cnndm", "--from", votes, "--force")[0] == 0


def test_without_a_network(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every address leads to a proxy that nobody runs, so that no test reaches the web."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setattr(downloads.time, "sleep", lambda _: None)
    code, body = run("fetch", "asset")
    assert (code, body["error"]["type"]) == (1, "DownloadError")
    words = body["error"]["message"]
    assert "https://raw.githubusercontent.com/facebookresearch/asset/" in words
    assert "cannot be reached" in words
    assert "Fetching needs the internet" in words
    assert "python -m core fetch asset --from human_ratings.csv" in words
    assert list(Path().glob("*.jsonl")) == []
