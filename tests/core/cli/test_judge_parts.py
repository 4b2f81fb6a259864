"""`ablate` and `analyse`: the calibration of a judge file repeated, its parts taken away, its candidates compared."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tests.core.cli.conftest import SUMMARIES, Run, Say, write_rows

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


def test_what_the_candidates_had_in_common(run: Run) -> None:
    run("calibrate", SUMMARIES, *QUICK)
    code, body = run("analyse", "out/judge.yaml", SUMMARIES, "--out", "look")
    pool = body["pool"]
    assert (code, pool["n_measured"]) == (0, len(body["candidates"]))
    assert body["by_length"]["n"] == sum(group["n"] for group in body["by_pattern"]["groups"]) == pool["n_measured"]
    case = body["case_study"]
    assert case["before"] != case["after"]
    assert case["differences"]["spearman"]["value"] == pytest.approx(
        case["alignment_after"]["spearman"]["value"] - case["alignment_before"]["spearman"]["value"]
    )
    shown = page("look/analyses.html")
    assert shown.count("<svg") == 3
    for words in ("By exemplar size. ", "By length. ", "By pattern. ", "n = 72"):
        assert words in shown, "figures say what they rest on"
    old, new = (re.sub(rf"<{tag}>.*?</{tag}>", "", shown.split("<h2>")[1]) for tag in ("ins", "del"))
    texts = [html.unescape(re.sub(r"<[^>]+>", "", side)).split("what it added.")[1].strip() for side in (old, new)]
    assert texts == [case["before"], case["after"]], "the word diff holds both"
    fitted = [one for one in body["candidates"] if one["origin"] == "draft" and not one["exemplars"]]
    n_drafts = sum(one["origin"] == "draft" for one in body["candidates"]) - len(fitted)
    assert body["by_size"]["n"] == n_drafts, "strengths fitted to all labels were drawn from no exemplars"
    _, common = run("analyse", "out/judge.yaml", SUMMARIES, "--scope", "common")
    assert common["pool"]["n_measured"] > pool["n_measured"]


def test_what_has_no_parts_is_told(run: Run) -> None:
    run("calibrate", SUMMARIES, *QUICK, "--rounds", "0")
    other = str(Path(SUMMARIES).with_name("dialogue.jsonl"))
    for command in ("ablate", "analyse"):
        for arguments, words in (
            (("out/judge.yaml", other), "holds other items or labels"),
            (("out/judge.yaml", SUMMARIES, "--judge", "openai:gpt"), "was calibrated with offline"),
            (("gone.yaml", SUMMARIES), "cannot be read"),
        ):
            code, body = run(command, *arguments)
            assert code in (1, 2)
            assert words in body["error"]["message"]
    _, body = run("analyse", "out/judge.yaml", SUMMARIES)
    assert body["case_study"] is None  # nothing was refined


def test_why_there_is_nothing_to_analyse(run: Run, say: Say) -> None:
    """A budget that pays for no draft; one that scores drafts on first items alone; texts that are all alike."""
    rows = [{"item_id": f"i{k}", "target": "all alike here", "human_quality": 1 + k % 5} for k in range(40)]
    write_rows("alike.jsonl", rows)
    for golden, how, scope, words in (
        (SUMMARIES, (*QUICK[:-1], "none", "--budget", "40"), "complete", "this calibration never drafted"),
        (SUMMARIES, (*QUICK[:-1], "none", "--budget", "40"), "common", "this calibration never drafted"),
        (
            "alike.jsonl",
            ("--aspect", "quality", "--preset", "quick", "--out", "flat"),
            "complete",
            "do not tell the calibration items apart",
        ),
    ):
        assert run("calibrate", golden, *how)[0] == 0
        code, body = run("analyse", f"{how[how.index('--out') + 1]}/judge.yaml", golden, "--scope", scope)
        assert (code, words in body["error"]["message"]) == (2, True), body
    assert "  - none: the judge without criteria" in say("calibrate", SUMMARIES, *QUICK, "--budget", "40", "--verbose")


@pytest.mark.parametrize(("judge", "kept"), [("offline", False), ("scripted:3", True)])
def test_a_bound_on_words_that_nobody_keeps_is_said(say: Say, judge: str, kept: bool) -> None:
    said = say("calibrate", SUMMARIES, *QUICK, "--judge", judge, "--max-words", "40")
    for told in (said, said.err):  # in the result, and before the start
        assert ("The bound of 40 words is not kept" in told) is not kept
