"""The command line beyond what tests/outside records: relations between results, words for errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from core.__main__ import main
from tests.core.cli.conftest import SUMMARIES, Run

ALIGNMENT_KEYS = {"statistic", "level", "value", "n", "n_groups", "n_left_out", "n_unscored", "interval"}


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
        (("calibrate", SUMMARIES), 2, "UsageError", "--aspect"),
        (("calibrate", SUMMARIES, "--aspect", "fluency", "--preset", "x"), 2, "UsageError", "summarisation"),
        (("calibrate", SUMMARIES, "--aspect", "fluency", "--judge", "oracle"), 2, "UsageError", "offline"),
        (("calibrate", SUMMARIES, "--aspect", "fluency", "--budget", "0"), 2, "UsageError", "budget"),
        (("score", SUMMARIES, "--judge-file", "none.yaml", "--out", "v.jsonl"), 1, "JudgeError", "none.yaml"),
        (("calibrate", SUMMARIES, "--aspect", "fluency", "--scale", "five"), 2, "UsageError", "1-5"),
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


def test_verdicts_for_unknown_items_are_counted(run: Run, tmp_path: Path) -> None:
    from core.data import load_golden

    ids = [*load_golden(SUMMARIES).item_ids, "alien", "stranger"]
    path = tmp_path / "v.jsonl"
    path.write_text("".join(json.dumps({"item_id": one, "score": k % 5}) + "\n" for k, one in enumerate(ids)))
    for more in ((), ("--all",)):
        code, body = run("align", SUMMARIES, str(path), "--aspect", "fluency", "--bootstrap", "0", *more)
        assert (code, body["n_unknown"]) == (0, 2)


def test_constant_verdicts_are_undefined_not_zero(run: Run, tmp_path: Path) -> None:
    from core.data import load_golden

    path = tmp_path / "v.jsonl"
    path.write_text("".join(json.dumps({"item_id": i, "score": 3}) + "\n" for i in load_golden(SUMMARIES).item_ids))
    code, body = run("align", SUMMARIES, str(path), "--aspect", "fluency")
    assert code == 0
    assert body["value"] is None
    assert body["interval"] is None
    assert body["reason"]


@pytest.fixture
def verdict_files(tmp_path: Path) -> dict[str, str]:
    """Made-up verdicts on coherence: one rater of each item ("near"), another ("far"), and awkward ones."""
    items = [json.loads(line) for line in Path(SUMMARIES).read_text("utf-8").splitlines()]
    half = len(items) // 2
    made = {
        "near": [(item["item_id"], item["ann_coherence"][0]) for item in items],
        "far": [(item["item_id"], item["ann_fluency"][1]) for item in items[5:]],
        "first_half": [(item["item_id"], item["ann_coherence"][0]) for item in items[:half]],
        "second_half": [(item["item_id"], item["ann_coherence"][0]) for item in items[half:]],
        "three": [(item["item_id"], item["ann_coherence"][0]) for item in items[:3]],
        "constant": [(item["item_id"], 3) for item in items],
    }
    for name, rows in made.items():
        lines = "".join(json.dumps({"item_id": item_id, "score": score}) + "\n" for item_id, score in rows)
        (tmp_path / f"{name}.jsonl").write_text(lines, "utf-8")
    return {name: str(tmp_path / f"{name}.jsonl") for name in made}


def test_align_all(run: Run, verdict_files: dict[str, str]) -> None:
    command = ("align", SUMMARIES, verdict_files["near"], "--aspect", "coherence", "--bootstrap", "50", "--seed", "3")
    code, body = run(*command, "--all")
    assert code == 0
    assert {(one["statistic"], one["level"]) for one in body["alignments"]} == {
        (s, v) for s in ("pearson", "spearman", "kendall") for v in ("dataset", "sample", "system")
    }
    for one in body["alignments"]:
        assert one.keys() >= ALIGNMENT_KEYS
        alone = run(*command, "--statistic", one["statistic"], "--level", one["level"])[1]
        assert one | {"n_unknown": 0} == alone
    assert body["errors"]["mae"] > 0
    assert 0 < body["steps"]["quadratic_kappa"] < 1
    assert body["binary"] is None


def test_compare(run: Run, verdict_files: dict[str, str]) -> None:
    near, far = verdict_files["near"], verdict_files["far"]
    code, body = run("compare", SUMMARIES, near, far, "--aspect", "coherence", "--statistic", "pearson")
    assert code == 0
    assert body.keys() >= {"n_common", "a", "b", "difference", "williams"}
    n_items = len(Path(SUMMARIES).read_text("utf-8").splitlines())
    assert body["n_common"] == n_items - 5
    assert body["a"].keys() >= ALIGNMENT_KEYS
    assert body["difference"]["value"] == pytest.approx(body["a"]["value"] - body["b"]["value"])
    assert body["difference"]["interval"][0] > 0
    assert body["difference"]["p"] < 0.05
    assert body["williams"]["df"] == n_items - 8
    assert body["williams"]["t"] > 0
    assert body["williams"]["p_two_sided"] == pytest.approx(2 * body["williams"]["p_one_sided"])
    swapped = run("compare", SUMMARIES, far, near, "--aspect", "coherence", "--statistic", "pearson")[1]
    assert swapped["difference"]["value"] == pytest.approx(-body["difference"]["value"])
    assert swapped["williams"]["t"] == pytest.approx(-body["williams"]["t"])


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ("near", "near", "same up to a linear map"),
        ("near", "three", "at least 4 common items; there are 3"),
        ("constant", "near", "first judge's scores are equal"),
    ],
)
def test_compare_says_why_a_test_is_undefined(
    run: Run, verdict_files: dict[str, str], a: str, b: str, words: str
) -> None:
    code, body = run("compare", SUMMARIES, verdict_files[a], verdict_files[b], "--aspect", "coherence")
    assert code == 0
    assert (body["williams"]["t"], body["williams"]["p_two_sided"]) == (None, None)
    assert words in body["williams"]["reason"]
    if a == "constant":
        assert (body["difference"]["value"], body["difference"]["p"]) == (None, None)
        assert "first judge" in body["difference"]["reason"]


def test_two_judges_without_a_common_item(run: Run, verdict_files: dict[str, str]) -> None:
    files = verdict_files["first_half"], verdict_files["second_half"]
    code, body = run("compare", SUMMARIES, *files, "--aspect", "coherence")
    assert code == 2
    assert body["error"]["type"] == "UsageError"
    assert "no common item" in body["error"]["message"]


def test_ceiling_without_single_ratings(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "means.csv"
    path.write_text("item_id,target,human_charm\n" + "".join(f"i{k},text {k},{k % 5 + 1}\n" for k in range(20)))
    code, body = run("ceiling", str(path), "--aspect", "charm")
    assert code == 1
    assert body["error"]["type"] == "AspectError"
    assert "ann_charm" in body["error"]["message"]
    assert run("ceiling", SUMMARIES, "--aspect", "coherence", "--panel", "crowd")[1]["error"]["type"] == "AspectError"


def test_measures_in_words(
    capsys: pytest.CaptureFixture[str], verdict_files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path))

    def words(*arguments: str) -> str:
        capsys.readouterr()
        assert main([*arguments, "--aspect", "coherence", "--bootstrap", "50"]) == 0
        return capsys.readouterr().out

    compared = words("compare", SUMMARIES, verdict_files["near"], verdict_files["far"])
    assert "common items with a label" in compared
    assert "difference a - b: +0." in compared
    assert "Williams' test (Pearson, dataset level): t(" in compared
    assert "—" in words("compare", SUMMARIES, verdict_files["near"], verdict_files["constant"])
    assert "quadratic kappa" in words("align", SUMMARIES, verdict_files["near"], "--all")
    told = words("ceiling", SUMMARIES)
    assert "leave one rater out: spearman, sample level: 0." in told
    assert "Krippendorff's alpha (ordinal): 0." in told


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
    assert (body["project"], body["runs"]) == ("demo", 12)
    assert body["golden_sets"] == ["summaries", "summaries_second_batch", "summaries_new_systems"]
    assert run("demo")[1] == body  # loading it twice changes nothing
    assert run("demo", "--reset") == (0, body)
    code, refused = run("demo", "--replay", "--reset")
    assert (code, refused["error"]["type"]) == (2, "UsageError")


def test_the_replay_tells_what_the_recording_gave(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("core.providers.recorded.time.sleep", lambda _: None)
    code, body = run("demo", "--replay")
    assert (code, body["calls"], body["held_out"]["n"]) == (0, 1148, 72)
    assert body["held_out"].keys() >= ALIGNMENT_KEYS
    assert not (tmp_path / "home" / "concord.sqlite").exists()  # nothing is kept


def test_a_fault_of_ours_is_a_sentence_and_a_trace(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("core.data.check_file", broken)
    code, body = run("check", SUMMARIES)
    assert code == 1
    assert body["error"]["type"] == "InternalError"
    assert "boom" in (tmp_path / "home" / "errors.log").read_text()


def test_read_ratings(run: Run, tmp_path: Path) -> None:
    path, out = tmp_path / "replies.jsonl", tmp_path / "ratings.jsonl"
    rows = [
        {"item_id": "a", "responses": ["Rating: 2", "I give it 4/5.", "I cannot rate this."]},
        {"item_id": "b", "responses": ["Score: 9"]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, body = run("read-ratings", str(path), "--scale", "1-5", "--out", str(out))
    assert code == 0
    assert (body["n_items"], body["n_replies"], body["n_read"], body["n_unread"]) == (2, 4, 2, 2)
    assert sum(body["reasons"].values()) == 2
    told = [json.loads(line) for line in out.read_text().splitlines()]
    assert told[0]["score"] == 3.0  # (2 + 4) / 2
    assert told[1] == {"item_id": "b", "score": None, "n_read": 0, "n_unread": 1, "unread": ["out of range"]}
