"""The command line beyond what tests/outside records: relations between results, words for people, faults."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.core.cli.conftest import SUMMARIES, Run, read_rows, write_rows

COHERENCE = ("--aspect", "coherence")


def test_the_alignment_told_by_calibrate_comes_out_of_its_verdicts(run: Run) -> None:
    code, body = run("calibrate", SUMMARIES, "--aspect", "relevance", "--preset", "quick", "--out", "out")
    assert code == 0
    code, scored = run("score", SUMMARIES, "--judge-file", "out/judge.yaml", "--out", "v.jsonl")
    assert (code, scored["n_scored"] + scored["n_unscored"]) == (0, scored["n_items"])
    write_rows("held.jsonl", [row for row in read_rows("v.jsonl") if row["item_id"] in body["held_out_items"]])
    code, aligned = run("align", SUMMARIES, "held.jsonl", "--aspect", "relevance")
    assert code == 0
    assert aligned["value"] == pytest.approx(body["held_out"]["value"], abs=1e-12)
    assert aligned["n"] == body["held_out"]["n"] > 0


def test_options_of_calibrate_arrive(run: Run) -> None:
    options = ("--scale", "0-10", "--level", "system", "--split", "sources+systems", "--calibration-share", "0.4")
    code, body = run("calibrate", SUMMARIES, "--aspect", "fluency", "--preset", "quick", "--out", "out", *options)
    assert (code, body["held_out"]["level"]) == (0, "system")
    assert (body["settings"]["split"], body["settings"]["calibration_share"]) == ("sources+systems", 0.4)
    assert yaml.safe_load(Path("out/judge.yaml").read_text())["task"]["scale"]["high"] == 10


def test_the_search_of_the_paper_is_written_into_the_judge_file(run: Run) -> None:
    command = ("calibrate", SUMMARIES, "--aspect", "fluency", "--judge", "scripted", "--out", "out")
    small = ("--preset", "quick", "--budget", "300", "--keep", "2")
    for more, expected in (
        (("--as-in-paper",), {"revisit": "full", "rounds": 1, "refine_gate": False, "ensemble": 1}),
        ((), {"revisit": "racing", "rounds": 0, "refine_gate": True, "ensemble": 3}),
    ):
        assert run(*command, *small, *more)[0] == 0
        document = yaml.safe_load(Path("out/judge.yaml").read_text())
        assert (expected | {"keep": 2}).items() <= document["settings"].items()
        # the paper's 20 tokens a rating
        assert document["judge"]["sampling"]["max_tokens"] == (20 if more == ("--as-in-paper",) else 512)


def test_a_fault_of_ours_is_a_sentence_and_a_trace(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("core.data.check_file", broken)
    code, body = run("check", SUMMARIES)
    assert (code, body["error"]["type"]) == (1, "InternalError")
    trace = Path("home/errors.log").read_text()
    assert "ZeroDivisionError" in trace
    assert "in broken" in trace
    assert "boom" not in trace + body["error"]["message"], "a foreign message may hold a key"
