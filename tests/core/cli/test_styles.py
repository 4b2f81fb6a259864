"""`python -m core styles`: one object, files that align again, the reply cache, the words of every refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import core
from core.__main__ import main
from tests.core.cli.conftest import SUMMARIES, Run
from tests.fake_openai import RunningServer

ASK = ("styles", SUMMARIES, "--aspect", "coherence", "--judge", "scripted", "--bootstrap", "50")


def test_each_style_is_told_and_its_file_aligns_again(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--form", "analyze_rate", "--form", "score_only", "--weighted", "--steps", "--out", str(out))
    code, body = run(*ASK, *options)
    assert code == 0
    assert [one["settings"]["form"] for one in body["styles"]] == ["analyze_rate", "score_only"]
    assert [one["settings"]["weighted"] for one in body["styles"]] == [False, True]
    assert (body["calls"], body["unfinished"], body["stopped_early"]) == (1 + 2 * 144, [], None)
    assert body["steps"]["coherence"]
    assert any("stand-in" in note for note in body["notes"])
    golden = core.load_golden(SUMMARIES)
    for told in body["styles"]:
        assert (told["n_items"], told["n_unread"], told["n_seen"]) == (144, 0, 0)
        again = core.align(golden, told["out"], "coherence", bootstrap=50)
        assert again.as_json() == told["alignment"]
    assert json.loads((out / "styles.json").read_text()) == body


def test_a_pilot_forecasts_the_whole(run: Run) -> None:
    options = ("--form", "score_only", "--samples", "4", "--pilot", "40", "--steps", "--level", "dataset")
    code, body = run(*ASK, *options)
    assert code == 0
    (told,) = body["styles"]
    assert told["settings"]["temperature"] == 1.0  # several samples make sense above 0 only
    assert told["n_items"] == 42  # 7 whole sources
    assert [point["n"] for point in told["forecast"]["points"]] == [1, 2, 5, 10, 20, 40]
    assert told["forecast"]["points"][0]["calls"] == 144


def test_a_budget_names_what_it_left_out(run: Run) -> None:
    code, body = run(*ASK, "--form", "score_only", "--form", "rate_explain", "--budget", "200")
    assert code == 0
    assert [one["style"] for one in body["unfinished"]] == ["rate-explain · 1 sample at t=0"]
    assert "200 calls" in body["stopped_early"]


def test_an_endpoint_is_paid_once(run: Run, server: RunningServer) -> None:
    ask = ("styles", SUMMARIES, "--aspect", "coherence", "--aspect", "fluency", "--form", "score_only")
    ask = (*ask, "--judge", f"openai:fake-judge@{server.base_url}", "--pilot", "24", "--bootstrap", "20")
    first = run(*ask)
    assert first[0] == 0
    assert first[1]["requests"] == 48
    sent = server.fake.requests
    second = run(*ask)
    assert server.fake.requests == sent
    assert (second[1]["requests"], second[1]["cached"]) == (0, 48)
    assert [one["alignment"] for one in second[1]["styles"]] == [one["alignment"] for one in first[1]["styles"]]


def test_what_calibrated_criteria_saw_is_not_reported(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ("calibrate", SUMMARIES, "--aspect", "coherence", "--preset", "quick", "--judge", "scripted")
    code, calibrated = run(*command, "--seed", "3", "--out", str(out))
    assert code == 0
    code, body = run(*ASK, "--criteria", str(out / "judge.yaml"), "--out", str(tmp_path / "styles"))
    assert code == 0
    (told,) = body["styles"]
    held_out = calibrated["held_out_items"]
    assert told["n_seen"] == 144 - len(held_out)
    assert told["alignment"]["n"] == len(held_out)
    rows = [json.loads(text) for text in Path(told["out"]).read_text().splitlines()]
    scores = {row["item_id"]: row["score"] for row in rows if row["item_id"] in held_out}
    again = core.align(core.load_golden(SUMMARIES), scores, "coherence", bootstrap=50)
    assert again.value == told["alignment"]["value"]
    assert any("calibrated on" in note for note in body["notes"])

    code, refused = run(
        "styles", SUMMARIES, "--aspect", "fluency", "--judge", "scripted", "--criteria", str(out / "judge.yaml")
    )
    assert (code, refused["error"]["type"]) == (2, "UsageError")
    assert "'coherence'" in refused["error"]["message"]


def test_criteria_of_unknown_origin_carry_a_note(run: Run, tmp_path: Path) -> None:
    text = tmp_path / "criteria.txt"
    text.write_text("Texts that stay faithful to the source earn the top.")
    code, body = run(*ASK, "--criteria", str(text))
    assert code == 0
    assert body["styles"][0]["n_seen"] == 0
    assert any("not known" in note for note in body["notes"])


def test_words_for_people(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path))
    assert main([*ASK, "--samples", "3", "--pilot", "40", "--steps", "--level", "dataset"]) == 0
    told = capsys.readouterr()
    assert "spearman, dataset level" in told.out
    assert "of 126 replies unread" in told.out
    assert "40 calls an item" in told.out or "no forecast" in told.out
    assert "About 127 calls" in told.err


@pytest.mark.parametrize(
    ("changes", "code", "kind", "words"),
    [
        (("--judge", "offline"), 2, "UsageError", "no language model"),
        (("--form", "poem"), 2, "UsageError", "analyze_rate"),
        (("--form", "mix"), 2, "UsageError", "2 samples"),
        (("--weighted",), 2, "UsageError", "score_only"),
        (("--aspect", "charm"), 1, "AspectError", "coherence"),
        (("--aspect", "coherence"), 2, "UsageError", "twice"),
        (("--pilot", "1"), 2, "UsageError", "n_items"),
        (("--budget", "0"), 2, "UsageError", "budget"),
        (("--criteria", "none.txt"), 2, "UsageError", "none.txt"),
        (("--criteria", "none.yaml"), 1, "JudgeError", "none.yaml"),
    ],
)
def test_errors(run: Run, changes: tuple[str, ...], code: int, kind: str, words: str) -> None:
    given, body = run(*ASK, *changes)
    assert (given, body["error"]["type"]) == (code, kind)
    assert words in body["error"]["message"]
