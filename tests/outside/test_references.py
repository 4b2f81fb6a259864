"""A golden set with references: judges see them only where somebody asks, and are then no use without them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fake_openai import FakeOpenAI, RunningServer
from tests.outside.conftest import Answer

MARK = "Reference:\n> The golden gnu agrees."
CHEAP = ("--rounds", "0", "--budget", "200")
Concord = Callable[..., Answer]


@pytest.fixture
def endpoint() -> Iterator[RunningServer]:
    server = RunningServer(FakeOpenAI(keep_bodies=True))
    yield server
    server.stop()


@pytest.fixture
def golden(tmp_path: Path, repository: Path) -> Path:
    """The sample summaries, each with a reference."""
    rows = [json.loads(line) for line in (repository / "sample_data" / "summaries.jsonl").read_text().splitlines()]
    return written(tmp_path / "with.jsonl", [row | {"references": ["The golden gnu agrees."]} for row in rows])


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def asked(endpoint: RunningServer) -> list[str]:
    """The prompts of all requests so far."""
    return [body["messages"][-1]["content"] for body in endpoint.fake.bodies]


def items_without(tmp_path: Path) -> Path:
    rows = [
        {"item_id": "has", "source": "s", "target": "A text.", "reference": "The golden gnu agrees."},
        {"item_id": "lacks", "source": "s", "target": "Another text."},
    ]
    return written(tmp_path / "items.jsonl", rows)


def test_a_judge_is_made_without_references_unless_asked(
    concord: Concord, endpoint: RunningServer, golden: Path, tmp_path: Path
) -> None:
    judge = f"openai:fake-judge@{endpoint.base_url}"
    command = ("calibrate", golden, "--aspect", "coherence", "--preset", "quick", "--judge", judge, *CHEAP)
    made = concord(*command, "--out", tmp_path / "plain")
    assert made.code == 0
    assert asked(endpoint)
    assert not any("golden gnu" in prompt for prompt in asked(endpoint))
    card = yaml.safe_load((tmp_path / "plain" / "judge.yaml").read_text(encoding="utf-8"))
    assert card["judge"]["sampling"]["references"] is False
    assert card["task"]["needs"] == ["target", "source"]
    scored = concord(
        *("score", items_without(tmp_path), "--judge-file", tmp_path / "plain" / "judge.yaml"),
        *("--out", tmp_path / "scores.jsonl"),
    )
    assert scored.code == 0
    rows = map(json.loads, (tmp_path / "scores.jsonl").read_text(encoding="utf-8").splitlines())
    assert all(row["score"] is not None for row in rows)


def test_a_judge_with_references_keeps_to_them(
    concord: Concord, endpoint: RunningServer, golden: Path, tmp_path: Path
) -> None:
    judge = f"openai:fake-judge@{endpoint.base_url}"
    command = ("calibrate", golden, "--aspect", "coherence", "--preset", "quick", "--judge", judge, *CHEAP)
    made = concord(*command, "--with-references", "--out", tmp_path / "seeing")
    assert made.code == 0
    assert all("golden gnu" in prompt for prompt in asked(endpoint))
    card = yaml.safe_load((tmp_path / "seeing" / "judge.yaml").read_text(encoding="utf-8"))
    assert card["judge"]["sampling"]["references"] is True
    assert card["task"]["needs"] == ["target", "source", "references"]
    endpoint.fake.bodies.clear()
    out = tmp_path / "scores.jsonl"
    scoring = ("score", items_without(tmp_path), "--judge-file", tmp_path / "seeing" / "judge.yaml", "--out", out)
    scored = concord(*scoring)
    assert scored.code == 0
    assert asked(endpoint)
    assert all(MARK in prompt for prompt in asked(endpoint))
    [lacking] = [row for row in map(json.loads, out.read_text().splitlines()) if row["item_id"] == "lacks"]
    assert lacking["reason"] == "missing input"
    adapted = concord("adapt", tmp_path / "seeing" / "judge.yaml", "--to", "mlflow", "--out", tmp_path / "a.py")
    assert adapted.code == 0
    assert "expectations" in (tmp_path / "a.py").read_text(encoding="utf-8")


def test_references_that_are_not_there_are_refused(concord: Concord, repository: Path, tmp_path: Path) -> None:
    golden = repository / "sample_data" / "summaries.jsonl"
    for command in (
        ("calibrate", golden, "--preset", "quick", "--out", tmp_path / "o"),
        ("styles", golden),
    ):
        said = concord(*command, "--aspect", "coherence", "--judge", "scripted", "--with-references")
        assert said.code == 2
        assert "No item has a reference" in said.body["error"]["message"]
    said = concord("calibrate", golden, "--aspect", "coherence", "--with-references")
    assert said.code == 2
    assert "offline judge" in said.body["error"]["message"]
