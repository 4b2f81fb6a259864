"""The command line as a pipeline and as a person calls it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.__main__ import main

SUMMARIES = str(Path(__file__).parents[3] / "sample_data" / "summaries.jsonl")
Run = Callable[..., tuple[int, dict[str, Any]]]
Say = Callable[..., "Said"]


class Said(str):
    """What a command says to a person; `code` is its exit code, `err` what it says on standard error."""

    code: int
    err: str


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has its own CONCORD_HOME and working folder."""
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Run a command for a person."""

    def call(*arguments: str | Path) -> Said:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        labels = Said(captured.out)
        labels.code, labels.err = code, captured.err
        return labels

    return call


@pytest.fixture
def run(say: Say) -> Run:
    """Run a command with --json; returns exit code and the one object on standard output."""

    def call(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
        reply = say(*arguments, "--json")
        assert len(reply.strip().splitlines()) == 1, reply
        return reply.code, json.loads(reply)

    return call


def write_rows(path: str | Path, rows: list[dict[str, Any]]) -> Path:
    """`rows` as JSON lines."""
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return Path(path)


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """The JSON lines of a file."""
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


@pytest.fixture
def verdict_files() -> None:
    """Made-up verdicts on coherence: one rater of each item (near.jsonl), another (far.jsonl), and awkward ones."""
    items = read_rows(SUMMARIES)
    near = [{"item_id": item["item_id"], "score": item["ann_coherence"][0]} for item in items]
    far = [{"item_id": item["item_id"], "score": item["ann_fluency"][1]} for item in items[5:]]
    half = len(items) // 2
    alien = [{"item_id": "alien", "score": 1}, {"item_id": "stranger", "score": 2}]
    files = {"near": near, "far": far, "first_half": near[:half], "second_half": near[half:]}
    files |= {"constant": [row | {"score": 3} for row in near], "alien": alien, "more": near + alien}
    for name, rows in files.items():
        write_rows(f"{name}.jsonl", rows)
