"""The command line of DESIGN §3: JSON keys, exit codes, words for every error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.__main__ import main

ROOT = Path(__file__).parents[2]
SUMMARIES = str(ROOT / "sample_data" / "summaries.jsonl")
ALIGNMENT_KEYS = {"statistic", "level", "value", "n", "n_groups", "n_left_out", "n_unscored", "interval"}

Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command with --json in its own CONCORD_HOME; returns exit code and the one object on standard output."""
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "home"))

    def call(*arguments: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = main([*arguments, "--json"])
        out = capsys.readouterr().out
        assert len(out.strip().splitlines()) == 1, out
        return code, json.loads(out)

    return call


def test_check(run: Run) -> None:
    code, body = run("check", SUMMARIES)
    assert code == 0
    assert body["n_items"] == body["n_sources"] * body["n_systems"]
    assert body["aspects"]["coherence"]["scale"] == [1, 5]
    assert body["aspects"]["coherence"]["n_labelled"] == body["n_items"]
    assert all({"severity", "message", "row", "column"} <= finding.keys() for finding in body["findings"])


def test_calibrate_score_align(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, body = run("calibrate", SUMMARIES, "--aspect", "relevance", "--preset", "quick", "--out", str(out))
    assert code == 0
    for side in ("calibration", "held_out"):
        assert body[side].keys() >= ALIGNMENT_KEYS
        assert body["no_criteria"][side].keys() >= ALIGNMENT_KEYS
    assert body["held_out_items"]
    assert body["candidates"] > 10

    code, scored = run("score", SUMMARIES, "--judge-file", str(out / "judge.yaml"), "--out", str(tmp_path / "v.jsonl"))
    assert code == 0
    assert scored["n_scored"] + scored["n_unscored"] == scored["n_items"]

    # Held-out alignment told by calibrate comes out again from its own verdicts, item by item.
    held_out = set(body["held_out_items"])
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    kept = tmp_path / "held_out.jsonl"
    kept.write_text("".join(json.dumps(row) + "\n" for row in rows if row["item_id"] in held_out))
    code, aligned = run("align", SUMMARIES, str(kept), "--aspect", "relevance")
    assert code == 0
    assert aligned["value"] == pytest.approx(body["held_out"]["value"], abs=1e-12)
    assert aligned["n"] == body["held_out"]["n"]
    assert aligned["interval"] is not None


def test_two_runs_agree(run: Run) -> None:
    bodies = [
        run("calibrate", SUMMARIES, "--aspect", "fluency", "--preset", "quick", "--seed", "5")[1] for _ in range(2)
    ]
    assert bodies[0]["held_out"] == bodies[1]["held_out"]
    assert bodies[0]["criteria"] == bodies[1]["criteria"]


def test_sources_and_systems(run: Run) -> None:
    code, body = run("calibrate", SUMMARIES, "--aspect", "fluency", "--preset", "quick", "--split", "sources+systems")
    assert code == 0
    assert any("fall away" in warning for warning in body["warnings"])


def test_a_given_scale_is_used(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("calibrate", SUMMARIES, "--aspect", "fluency", "--preset", "quick", "--scale", "0-10")
    assert run(*command, "--out", str(out))[0] == 0
    assert yaml.safe_load((out / "judge.yaml").read_text())["task"]["scale"]["high"] == 10


def test_system_level(run: Run) -> None:
    code, body = run("calibrate", SUMMARIES, "--aspect", "fluency", "--preset", "quick", "--level", "system")
    assert code == 0
    assert body["held_out"]["level"] == "system"
    assert body["held_out"]["n"] == 6


@pytest.mark.parametrize(
    ("arguments", "code", "kind", "words"),
    [
        (("check", "none.jsonl"), 1, "GoldenError", "none.jsonl"),
        (("calibrate", SUMMARIES, "--aspect", "charm"), 1, "AspectError", "coherence"),
        (("calibrate", SUMMARIES), 2, "UsageError", "--aspect"),
        (("calibrate", SUMMARIES, "--aspect", "fluency", "--preset", "x"), 2, "UsageError", "summarisation"),
        (("calibrate", SUMMARIES, "--aspect", "fluency", "--judge", "oracle"), 2, "UsageError", "offline"),
        (("calibrate", SUMMARIES, "--aspect", "fluency", "--budget", "0"), 2, "UsageError", "budget"),
        (("score", SUMMARIES, "--judge-file", "none.yaml", "--out", "v.jsonl"), 1, "JudgeError", "none.yaml"),
        (("calibrate", SUMMARIES, "--aspect", "fluency", "--scale", "five"), 2, "UsageError", "1-5"),
        (("nonsense",), 2, "UsageError", "nonsense"),
    ],
)
def test_errors(run: Run, arguments: tuple[str, ...], code: int, kind: str, words: str) -> None:
    given, body = run(*arguments)
    assert given == code
    assert body["error"]["type"] == kind
    assert words in body["error"]["message"]


def test_alien_verdicts_are_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text('{"item_id": "alien", "score": 1}\n')
    code, body = run("align", SUMMARIES, str(path), "--aspect", "fluency")
    assert code == 2
    assert "Item ids there look like" in body["error"]["message"]


def test_constant_verdicts_are_undefined_not_zero(run: Run, tmp_path: Path) -> None:
    from core.golden import load_golden

    path = tmp_path / "v.jsonl"
    path.write_text("".join(json.dumps({"item_id": i, "score": 3}) + "\n" for i in load_golden(SUMMARIES).item_ids))
    code, body = run("align", SUMMARIES, str(path), "--aspect", "fluency")
    assert code == 0
    assert body["value"] is None
    assert body["interval"] is None
    assert body["reason"]


def test_words_name_statistic_level_n_and_interval(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path))
    assert main(["calibrate", SUMMARIES, "--aspect", "fluency", "--preset", "quick"]) == 0
    out = capsys.readouterr().out
    assert "spearman, sample level" in out
    assert "n = " in out
    assert "[" in out


def test_demo(run: Run) -> None:
    code, body = run("demo")
    assert code == 0
    assert len(body["golden_sets"]) == 3
    assert run("demo")[1] == body  # loading it twice changes nothing


def test_a_fault_of_ours_is_a_sentence_and_a_trace(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("core.golden.check_file", broken)
    code, body = run("check", SUMMARIES)
    assert code == 1
    assert body["error"]["type"] == "InternalError"
    assert "boom" in (tmp_path / "home" / "errors.log").read_text()
