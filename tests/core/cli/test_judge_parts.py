"""`ablate` and `analyse`: the calibration of a judge file repeated, its parts taken away, its candidates compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.core.cli.conftest import SUMMARIES, Run, Say

QUICK = ("--aspect", "coherence", "--preset", "quick", "--out", "out")


def page(path: str) -> str:
    text = Path(path).read_text("utf-8")
    assert not re.search(r"""<(script|link|img)[^>]+(src|href)=""", text)  # needs no network
    return text


@pytest.mark.parametrize("judge", ["offline", "scripted:3"])
def test_what_each_part_brings(run: Run, judge: str) -> None:
    _, made = run("calibrate", SUMMARIES, *QUICK, "--judge", judge)
    code, body = run("ablate", "out/judge.yaml", SUMMARIES, "--no-steps", "--out", "parts")
    assert (code, body["judge"], body["warnings"]) == (0, judge, [])
    rows = {row["variant"]: row for row in body["rows"]}
    assert rows["final"]["held_out"] == made["held_out"]
    assert rows["without criteria"]["held_out"] == made["no_criteria"]["held_out"]
    assert rows["without criteria"]["difference"]["value"] == pytest.approx(-made["gain"]["value"])
    assert rows["final"]["difference"] is None
    assert "<svg" in page("parts/ablation.html")


def test_what_has_no_parts_is_told(run: Run) -> None:
    run("calibrate", SUMMARIES, *QUICK, "--rounds", "0")
    other = str(Path(SUMMARIES).with_name("dialogue.jsonl"))
    for arguments, words in (
        (("out/judge.yaml", other), "holds other items or labels"),
        (("out/judge.yaml", SUMMARIES, "--judge", "openai:gpt"), "was calibrated with offline"),
        (("gone.yaml", SUMMARIES), "cannot be read"),
    ):
        code, body = run("ablate", *arguments)
        assert code in (1, 2)
        assert words in body["error"]["message"]


@pytest.mark.parametrize(("judge", "kept"), [("offline", False), ("scripted:3", True)])
def test_a_bound_on_words_that_nobody_keeps_is_said(say: Say, judge: str, kept: bool) -> None:
    said = say("calibrate", SUMMARIES, *QUICK, "--judge", judge, "--max-words", "40")
    for told in (said, said.err):  # in the result, and before the start
        assert ("The bound of 40 words is not kept" in told) is not kept
