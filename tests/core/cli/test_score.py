"""`score` and `recheck`, as a person or a pipeline calls them: words, exit codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import core
from tests.core.cli.conftest import SUMMARIES, Run, Say, read_rows, write_rows
from tests.fake_openai import RunningServer

ASPECT = "relevance"


def newer_file(*, shuffled: bool) -> Path:
    """The sample's items with a sentence more, and their labels, or labels that mean nothing."""
    rows = read_rows(SUMMARIES)
    labels = [row[f"human_{ASPECT}"] for row in rows]
    order = np.random.default_rng(0).permutation(len(rows)) if shuffled else range(len(rows))
    kept = ("source_id", "system_id", "source")
    newer = [
        {name: row[name] for name in kept if name in row}
        | {"item_id": f"n-{row['item_id']}", "target": f"{row['target']} So it was.", f"human_{ASPECT}": labels[k]}
        for row, k in zip(rows, order, strict=True)
    ]
    return write_rows("newer.jsonl", newer)


@pytest.mark.parametrize(
    ("shuffled", "fall", "code", "decision"),
    [
        (False, 0.9, 0, "holds"),
        (True, 0.1, 1, "fallen"),
        (False, 0.001, 0, "inconclusive"),
    ],
)
def test_the_exit_code_of_a_recheck(
    run: Run, judge_file: Path, *, shuffled: bool, fall: float, code: int, decision: str
) -> None:
    golden = newer_file(shuffled=shuffled)
    command = ("recheck", judge_file, golden, "--aspect", ASPECT, "--fall", str(fall))
    exit_code, body = run(*command)
    assert (exit_code, body["decision"], body["change"]["fall"]) == (code, decision, fall)


def test_a_few_items_of_which_none_is_read_are_exit_1_and_asked_again(
    run: Run, server: RunningServer, tmp_path: Path
) -> None:
    spec = f"openai:m@{server.base_url}"
    settings = core.CalibrationSettings(preset="quick", rounds=0, budget=150)
    core.calibrate(core.load_golden(SUMMARIES), ASPECT, spec, settings=settings).save(tmp_path / "judge")
    items = write_rows("few.jsonl", [{**row, "target": f"{row['target']} Anew."} for row in read_rows(SUMMARIES)[:5]])
    command = ("score", items, "--judge-file", tmp_path / "judge" / "judge.yaml", "--out", "few-verdicts.jsonl")
    server.fake.fault = "no-number"
    code, body = run(*command)
    assert (code, body["n_scored"], body["reasons"]) == (1, 0, {"no verdict": 5})
    assert len(Path("few-verdicts.jsonl").read_text("utf-8").splitlines()) == 5, "the replies are kept as evidence"
    server.fake.fault = ""
    code, body = run(*command, "--force")
    assert (code, body["n_scored"]) == (0, 5), "what could not be read is not found in the cache"


def test_how_sure_the_verdicts_are(judge_file: Path, run: Run) -> None:
    rest = ("score", SUMMARIES, "--judge-file", judge_file, "--out", "v.jsonl", "--force")
    code, body = run(*rest, "--abstain-over", "0.4")
    assert (code, body["intervals"]["coverage"], body["intervals"]["n"]) == (0, 0.9, 144)
    gone = body["abstention"]
    assert gone["share_kept"] == 1 - gone["n_abstained"] / 144


def test_intervals_are_never_those_of_another_text_or_judge(judge_file: Path, say: Say, run: Run) -> None:
    """They were fitted to the errors of the judge as exported; the scores of an edited one are marked and have none."""
    card = judge_file.read_text("utf-8")
    assert "Reward texts that" in card
    Path("edited.yaml").write_text(card.replace("Reward texts that", "Reward short texts that"), "utf-8")
    edited = ("score", SUMMARIES, "--judge-file", "edited.yaml", "--accept-edited", "--out", "v.jsonl", "--force")
    code, body = run(*edited, "--intervals")
    assert (code, body["intervals"]["n"], body["intervals"]["mean_width"]) == (0, 0, None)
    rows = read_rows("v.jsonl")
    assert all(row["score"] is not None for row in rows)
    assert {(row.get("low"), row.get("high"), row.get("expected_error")) for row in rows} == {(None, None, None)}
    assert say(*edited, "--abstain-over", "0.4").code == 1
    other = ("score", SUMMARIES, "--judge-file", judge_file, "--judge", "scripted:3", "--out", "w.jsonl")
    assert run(*other, "--intervals")[1]["intervals"]["n"] == 0
