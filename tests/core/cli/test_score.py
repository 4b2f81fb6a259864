"""`score` on files of any length and `recheck`, as a person or a pipeline calls them: JSON, words, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from core.__main__ import main
from tests.core.cli.conftest import SUMMARIES, Run

ASPECT = "relevance"


def newer_file(path: Path, *, shuffled: bool) -> str:
    """The sample's items with a sentence more, and their labels, or labels that mean nothing."""
    rows = [json.loads(line) for line in Path(SUMMARIES).read_text("utf-8").splitlines()]
    labels = [row[f"human_{ASPECT}"] for row in rows]
    order = np.random.default_rng(0).permutation(len(rows)) if shuffled else range(len(rows))
    with path.open("w", encoding="utf-8") as file:
        for row, k in zip(rows, order, strict=True):
            kept = {name: row[name] for name in ("source_id", "system_id", "source") if name in row}
            fresh = {"item_id": f"n-{row['item_id']}", "target": f"{row['target']} So it was."}
            file.write(json.dumps(kept | fresh | {f"human_{ASPECT}": labels[k]}) + "\n")
    return str(path)


def test_a_budget_and_then_the_rest(run: Run, judge_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "v.jsonl"
    asked = ("score", SUMMARIES, "--judge-file", str(judge_file), "--out", str(out))
    code, whole = run(*asked)
    assert (code, whole["finished"], whole["n_left"]) == (0, True, 0)
    undisturbed = out.read_bytes()
    out.unlink()
    code, first = run(*asked, "--budget", str(whole["calls"] // 2))
    assert (code, first["finished"], first["n_left"]) == (0, False, 72)
    assert not out.exists()
    code, second = run(*asked)
    assert (code, second["finished"], second["resumed_from"]) == (0, True, 72)
    assert out.read_bytes() == undisturbed


def test_the_words_say_how_to_go_on(judge_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "v.jsonl"
    asked = ["score", SUMMARIES, "--judge-file", str(judge_file), "--out", str(out)]
    assert main([*asked, "--budget", "60"]) == 0
    told = capsys.readouterr().out
    assert "The budget is spent" in told
    assert f"kept in {out}.part; run the same command again" in told
    items = tmp_path / "items.jsonl"
    items.write_bytes(
        Path(SUMMARIES).read_bytes() + b"\n" + json.dumps({"item_id": "x", "target": "", "source": "s"}).encode()
    )
    assert main(["score", str(items), *asked[2:]]) == 1
    assert "the input file has changed since, or is another one" in capsys.readouterr().err
    assert main(["score", str(items), *asked[2:], "--again"]) == 0
    caught = capsys.readouterr()
    assert "144 of 145 items scored, 1 unscored (1 missing input)" in caught.out
    assert "warning: The target is empty" in caught.err


def test_a_row_that_cannot_be_read_is_named(run: Run, judge_file: Path, tmp_path: Path) -> None:
    items = tmp_path / "items.csv"
    items.write_text("item_id,target,source\na,t,s\nb,t,s,too much\n")
    code, body = run("score", str(items), "--judge-file", str(judge_file), "--out", str(tmp_path / "v.jsonl"))
    assert (code, body["error"]["type"]) == (1, "GoldenError")
    assert "items.csv, row 2: 4 cells came" in body["error"]["message"]
    assert not list(tmp_path.glob("v.jsonl*"))


@pytest.mark.parametrize(("shuffled", "fall", "code", "decision"), [
    (False, "0.9", 0, "holds"),
    (True, "0.1", 1, "fallen"),
    (False, "0.001", 0, "cannot be told"),
])  # fmt: skip
def test_the_exit_code_of_a_recheck(
    run: Run, judge_file: Path, tmp_path: Path, *, shuffled: bool, fall: str, code: int, decision: str
) -> None:
    golden = newer_file(tmp_path / "newer.jsonl", shuffled=shuffled)
    asked = ("recheck", str(judge_file), golden, "--aspect", ASPECT, "--fall", fall)
    found, body = run(*asked)
    assert (found, body["decision"]) == (code, decision)
    assert body["change"]["fall"] == float(fall)
    strict, _ = run(*asked, "--strict")
    assert strict == (0 if decision == "holds" else 1)


def test_a_recheck_from_verdicts_in_words(judge_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden = newer_file(tmp_path / "newer.jsonl", shuffled=False)
    verdicts = tmp_path / "v.jsonl"
    assert main(["score", golden, "--judge-file", str(judge_file), "--out", str(verdicts)]) == 0
    capsys.readouterr()
    more = ["--verdicts", str(verdicts), "--before", str(verdicts), "--old", SUMMARIES, "--against", "no criteria"]
    assert main(["recheck", str(judge_file), golden, "--aspect", ASPECT, *more]) in (0, 1)
    told = capsys.readouterr().out
    for words in (
        "now:  spearman",
        "then: spearman",
        "0.0% of the newer items unscored",
        "told with 80 % power",
        "the judge minus the judge without criteria, on 144",
        "Labels are distributed about as before",
    ):
        assert words in told


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (("--alpha", "0.7"), 2, "--alpha must lie between 0 and 0.5"),
        (("--against", "none.yaml"), 1, "none.yaml"),
        (("--verdicts", "none.jsonl"), 1, "no such file"),
    ],
)
def test_rechecks_that_are_put_wrongly(
    run: Run, judge_file: Path, tmp_path: Path, more: tuple[str, ...], code: int, words: str
) -> None:
    newer = newer_file(tmp_path / "newer.jsonl", shuffled=False)
    found, body = run("recheck", str(judge_file), newer, "--aspect", ASPECT, *more)
    assert found == code
    assert words in body["error"]["message"]
