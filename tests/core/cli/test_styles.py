"""`python -m core styles`: one object, files that align again, the reply cache, words."""

from __future__ import annotations

import json
from pathlib import Path

import core
from tests.core.cli.conftest import SUMMARIES, Run
from tests.fake_openai import RunningServer

ASK = ("styles", SUMMARIES, "--aspect", "coherence", "--judge", "scripted")


def test_each_style_is_told_and_its_file_aligns_again(run: Run) -> None:
    options = ("--form", "analyze_rate", "--form", "score_only", "--weighted", "--steps", "--out", "out")
    code, body = run(*ASK, *options)
    assert code == 0
    assert [style["settings"]["form"] for style in body["styles"]] == ["analyze_rate", "score_only"]
    assert [style["settings"]["weighted"] for style in body["styles"]] == [False, True]
    assert (body["calls"], body["unfinished"]) == (1 + 2 * 144, [])
    assert body["steps"]["coherence"]
    assert any("stand-in" in note for note in body["notes"])
    golden = core.load_golden(SUMMARIES)
    for style in body["styles"]:
        assert (style["n_items"], style["n_unread"]) == (144, 0)
        again = core.align(golden, style["out"], "coherence", core.MeasureSettings())
        assert again.as_json() == style["alignment"]
    assert json.loads(Path("out/styles.json").read_text()) == body


def test_a_form_that_fails_costs_no_other(run: Run, server: RunningServer) -> None:
    server.fake.fault, server.fake.fault_after = "no-number", 24  # of the second form on
    ask = ("styles", SUMMARIES, "--aspect", "coherence", "--form", "score_only", "--form", "rate_explain")
    ask = (*ask, "--judge", f"openai:fake-judge@{server.base_url}", "--pilot", "24")
    code, body = run(*ask, "--out", "out")
    assert code == 0
    (finished,) = body["styles"]
    assert (finished["settings"]["form"], finished["n_unread"]) == ("score_only", 0)
    (failed,) = body["unfinished"]
    assert failed["style"].startswith("rate-explain")
    assert "couldn't read any of the first 16 replies" in failed["reason"]
    assert Path(finished["out"]).is_file()
    assert json.loads(Path("out/styles.json").read_text())["unfinished"] == [failed]
