"""What a command says of how far it is where nobody looks at a terminal."""

import re
from pathlib import Path

import pytest

from core.cli import output
from core.cli.main import main
from core.progress import Stage
from tests.fake_openai import FakeOpenAI, RunningServer


def test_a_line_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(output.time, "monotonic", lambda: now)
    lines = output.ProgressLine("items")

    def show(message: str, done: int, of: int) -> None:
        lines.show(Stage("scoring", message, done, of))

    now = 5.0
    assert lines.line() == "starting: 0 items, 5 s so far"
    show("scoring", 20_000, 1_000_000)  # 20,000 are there from an earlier call: no part of the pace
    now = 35.0
    assert lines.line() == "scoring: 20,000 of 1,000,000 items, 30 s so far"
    now = 55.0
    show("scoring", 120_000, 1_000_000)
    # 880,000 items are left at 2,000 a second: 440 s
    assert lines.line() == "scoring: 120,000 of 1,000,000 items, 7 min left"
    now = 105.0  # nothing came since: 100,000 in 100 s
    assert lines.line() == "scoring: 120,000 of 1,000,000 items, 14 min left"
    show("held-out", 5, 10)  # fewer than before: another phase
    now = 115.0
    show("held-out", 6, 10)
    assert lines.line() == "held-out: 6 of 10 items, 40 s left"


def test_a_slow_endpoint_is_no_reason_to_be_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "LOG_SOON", 0.02)
    monkeypatch.setattr(output, "LOG_SECONDS", 0.05)
    monkeypatch.setenv("OPENAI_API_KEY", "k-slow")
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONCORD_CONCURRENCY", "8")
    golden, texts, judge = tmp_path / "golden.csv", tmp_path / "texts.csv", tmp_path / "judge"
    rows = [f"i{k},s{k},The cat number {k} sat on the mat.,{k % 5 + 1}" for k in range(16)]
    golden.write_text("\n".join(["item_id,source_id,target,human_quality", *rows]), encoding="utf-8")
    texts.write_text("\n".join(["item_id,target", *(f"t{k},Text {k}." for k in range(200))]), encoding="utf-8")
    server = RunningServer(FakeOpenAI(latency=0.03))
    try:
        asked = ["--judge", f"openai:m@{server.base_url}", "--rounds", "0", "--preset", "quick"]
        assert main(["calibrate", str(golden), "--aspect", "quality", *asked, "--out", str(judge)]) == 0
        calibrated = _counts(capsys.readouterr().err, "calls")
        assert (
            main(["score", str(texts), "--judge-file", str(judge / "judge.yaml"), "--out", str(judge / "v.csv")]) == 0
        )
        scored = _counts(capsys.readouterr().err, "items")
    finally:
        server.stop()
    assert len(set(calibrated)) >= 3  # also within a step
    assert len(set(scored)) >= 3


def _counts(said: str, unit: str) -> list[int]:
    lines = re.findall(rf"^.*: ([\d,]+) of [\d,]+ {unit}\b.*$", said, re.MULTILINE)
    assert re.search(rf" of [\d,]+ {unit}\b.* left$", said, re.MULTILINE), said
    return [int(n.replace(",", "")) for n in lines]


def test_agreement_comes_first_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden, one, other = tmp_path / "golden.csv", tmp_path / "a.csv", tmp_path / "b.csv"
    labels = [k * 7 % 5 + 1 for k in range(60)]
    rows = [f"i{k},s{k},Text {k}.,{label}" for k, label in enumerate(labels)]
    golden.write_text("\n".join(["item_id,source_id,target,human_quality", *rows]))
    one.write_text("\n".join(["item_id,score", *(f"i{k},{label}" for k, label in enumerate(labels))]))
    other.write_text("\n".join(["item_id,score", *(f"i{k},{k * 11 % 7}" for k in range(60))]))
    assert main(["align", str(golden), str(one), "--aspect", "quality"]) == 0
    assert capsys.readouterr().out.startswith("Agreement with raters: 1.00.\n")
    assert main(["compare", str(golden), str(one), str(other), "--aspect", "quality"]) == 0
    assert capsys.readouterr().out.startswith("Judge a agrees with the raters better than judge b does.\n")
