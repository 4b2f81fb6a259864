"""`repeval` on the command line: its file scores others, and another set may teach it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.data import load_golden
from tests.core.cli.conftest import Run, read_rows

SOURCES, PER_SOURCE = 12, 4


@pytest.fixture
def golden_file() -> str:
    """Good and bad texts by turns."""
    lines = ["item_id,source_id,source,target,human_quality"]
    for k in range(SOURCES * PER_SOURCE):
        text = "a clear and friendly reply" if k % 2 else "junk broken noise"
        label = 1 + 3 * (k % 2) + (k % 3) / 2
        lines.append(f"i{k},s{k // PER_SOURCE},src {k // PER_SOURCE},{text} {'x' * k},{label}")
    Path("texts.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "texts.csv"


def test_its_file_scores_others_as_a_judge(run: Run, golden_file: str) -> None:
    run("repeval", golden_file, "--aspect", "quality", "--out", "out")
    score = ("score", golden_file, "--judge-file", "out/repeval.yaml", "--out", "v.jsonl")
    code, body = run(*score)
    assert (code, body["n_scored"], body["finished"]) == (0, SOURCES * PER_SOURCE, True)
    own = {row["item_id"]: row["score"] for row in read_rows("out/scores.jsonl") if row["part"] == "test"}
    scored = {row["item_id"]: row["score"] for row in read_rows("v.jsonl")}
    assert {item_id: scored[item_id] for item_id in own} == pytest.approx(own, abs=1e-3)
    assert run(*score, "--judge", "offline")[1]["error"]["type"] == "UsageError"
    known = run("recheck", "out/repeval.yaml", golden_file, "--aspect", "quality")
    assert known[1]["error"]["type"] == "GoldenError"  # every label is known to it


@pytest.fixture
def other_file() -> str:
    """Other texts of the same two sorts, of one kind alone and on another scale."""
    lines = ["item_id,target,human_charm"]
    for k in range(40):
        text = "a clear and friendly answer" if k % 2 else "junk broken words"
        lines.append(f"o{k},{text} {'y' * k},{20 + 50 * (k % 2) + k}")
    Path("others.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "others.csv"


def test_trained_on_another_set_it_tells_what_that_loses(run: Run, golden_file: str, other_file: str) -> None:
    command = ("repeval", golden_file, "--aspect", "quality", "--out", "out", "--level", "dataset")
    moved = (*command, "--train-on", other_file, "--train-aspect", "charm")
    code, body = run(*moved)
    told = body["trained_on"]
    assert (code, told["name"], told["aspect"]) == (0, "others", "charm")
    assert body["test"] == told["transferred"]
    assert body["test"]["n"] == SOURCES * PER_SOURCE  # no label of it was used
    assert body["test"]["value"] > 0.5  # good and bad words are the same in both
    assert "fitted on charm but is applied to quality" in " ".join(body["warnings"])
    rows = read_rows("out/scores.jsonl")
    assert [row["item_id"] for row in rows] == list(load_golden(golden_file).item_ids)

    score = ("score", golden_file, "--judge-file", "out/repeval.yaml", "--out", "v.jsonl")
    assert run(*score)[0] == 0
    assert [row["score"] for row in read_rows("v.jsonl")] == pytest.approx([row["score"] for row in rows], abs=1e-3)
