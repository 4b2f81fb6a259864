"""judge.yaml: what it holds, that it comes back equal, that damage is told in words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from core import CalibrationSettings, calibrate, load_judge
from core.calibration.steps import Calibration
from core.errors import JudgeError
from core.export import final_verdicts, judge_yaml, read_card, read_verdicts, write_run
from core.export.run_files import write_text
from core.golden import load_golden
from core.jobs.views.reviews import Evidence, Review, ReviewState, StateChange
from core.records import GoldenSet, Scored, Unscored

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def golden() -> GoldenSet:
    return load_golden(ROOT / "sample_data" / "summaries.jsonl")


@pytest.fixture(scope="module")
def calibrated(golden: GoldenSet) -> Calibration:
    return calibrate(golden, "relevance", settings=CalibrationSettings(preset="quick", resamples=50))


def test_file_holds_what_trust_needs(calibrated: Calibration) -> None:
    card = yaml.safe_load(judge_yaml(calibrated))
    assert card["format"] == "concord-judge"
    assert card["golden"]["digest"] == calibrated.golden_digest
    for side in ("calibration", "held_out"):
        told = card["alignment"][side]
        assert told["statistic"] == "spearman"
        assert told["level"] == "sample"
        assert told["n"] > 0
        assert told["interval"][0] <= told["value"] <= told["interval"][1]
    assert [one["text"] for one in card["criteria"]] == [one.text for one in calibrated.chosen]
    assert "no language model" in card["judge"]["notice"]


def decided(calibrated: Calibration, *states: ReviewState) -> dict[str, Review]:
    """Reviews of the chosen criteria, in their order: each went straight to the state named."""
    found = {}
    for one, to in zip(calibrated.chosen, states, strict=True):
        evidence = Evidence("r1", "held-out", calibrated.held_out) if to == "approved" else None
        change = StateChange(7, to, "Ann <b>", dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC), "good: #1", evidence)
        found[one.criteria_id] = Review(one.criteria_id, to, (change,), ())
    return found


def test_the_approval_goes_into_the_file(calibrated: Calibration, tmp_path: Path) -> None:
    n = len(calibrated.chosen)
    path = tmp_path / "judge.yaml"
    path.write_text(judge_yaml(calibrated, reviews=decided(calibrated, *["approved"] * n)), encoding="utf-8")
    card = read_card(path)
    assert card["approved"] is True
    assert not any("approved" in warning for warning in card["warnings"])
    first = card["approvals"][0]
    assert first == {
        "criteria": calibrated.chosen[0].criteria_id,
        "state": "approved",
        "by": "Ann <b>",
        "at": "2026-11-21T12:00:00+00:00",
        "reason": "good: #1",
        "evidence": {"run": "r1", "side": "held-out", "alignment": calibrated.held_out.as_json()},
    }
    assert len(card["approvals"]) == n
    load_judge(path)


def test_one_criteria_without_approval_makes_the_judge_unapproved(calibrated: Calibration) -> None:
    n = len(calibrated.chosen)
    assert n > 1
    states: list[ReviewState] = ["approved"] * (n - 1) + ["retired"]
    card = yaml.safe_load(judge_yaml(calibrated, reviews=decided(calibrated, *states)))
    assert card["approved"] is False
    assert [one["state"] for one in card["approvals"]] == states
    (said,) = [warning for warning in card["warnings"] if "Nobody has approved" in warning]
    assert f"{calibrated.chosen[-1].criteria_id}: retired" in said


def test_without_reviews_every_criteria_is_a_draft_and_the_file_says_so(
    calibrated: Calibration, golden: GoldenSet, tmp_path: Path
) -> None:
    write_run(tmp_path, calibrated, final_verdicts(calibrated, golden), 1.0)
    card = read_card(tmp_path / "judge.yaml")
    assert card["approved"] is False
    assert {(one["state"], one["by"], one["at"], one["evidence"]) for one in card["approvals"]} == {
        ("draft", "", None, None)
    }
    assert any("Nobody has approved" in warning for warning in card["warnings"])


def test_a_file_from_before_approvals_still_loads(calibrated: Calibration, tmp_path: Path) -> None:
    card = yaml.safe_load(judge_yaml(calibrated))
    del card["approved"], card["approvals"]
    path = tmp_path / "judge.yaml"
    path.write_text(yaml.safe_dump(card), encoding="utf-8")
    assert "approved" not in read_card(path)
    assert len(load_judge(path).criteria) == len(calibrated.chosen)


def test_loaded_judge_scores_as_the_run_did(calibrated: Calibration, golden: GoldenSet, tmp_path: Path) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text(judge_yaml(calibrated), encoding="utf-8")
    by_id = {item.item_id: item for item in golden.items}
    verdicts = load_judge(path).score([by_id[item_id] for item_id in calibrated.scores.item_ids])
    values = [verdict.value if isinstance(verdict, Scored) else np.nan for verdict in verdicts]
    np.testing.assert_allclose(values, calibrated.scores.values[0], atol=1e-12)


def test_human_scale_keeps_ranks(calibrated: Calibration, golden: GoldenSet) -> None:
    verdicts = [v for v in final_verdicts(calibrated, golden) if isinstance(v, Scored)]
    values = np.array([v.value for v in verdicts])
    mapped = np.array([v.calibrated for v in verdicts], dtype=float)
    order = np.argsort(values)
    assert (np.diff(mapped[order])[np.diff(values[order]) > 0] > 0).all()
    scale = calibrated.task.scale
    assert ((mapped > scale.low) & (mapped < scale.high)).all()


def test_run_files(calibrated: Calibration, golden: GoldenSet, tmp_path: Path) -> None:
    body = write_run(tmp_path / "out", calibrated, final_verdicts(calibrated, golden), 1.0)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "candidates.jsonl",
        "judge.yaml",
        "summary.json",
        "verdicts.jsonl",
    ]
    table = read_verdicts(tmp_path / "out" / "verdicts.jsonl")
    assert list(table.scores) == list(calibrated.scores.item_ids)
    held_out = {golden.items[p].item_id for p in calibrated.split.held_out}
    assert set(body["held_out_items"]) == held_out


def test_no_key_leaves(calibrated: Calibration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    assert "sk-very-secret" not in judge_yaml(calibrated)


DAMAGE: Sequence[tuple[str, Any, str]] = [
    ("format", "something-else", "no judge file"),
    ("version", 99, "version 99"),
    ("criteria", [], "lacks criteria"),
    ("task", {"aspect": "x"}, "missing or damaged"),
    ("isotonic", {"x": [1, 0], "y": [1, 2], "low": 0, "high": 3}, "map"),
]


@pytest.mark.parametrize(("part", "value", "words"), DAMAGE)
def test_damage_is_told(calibrated: Calibration, tmp_path: Path, part: str, value: Any, words: str) -> None:
    card = yaml.safe_load(judge_yaml(calibrated))
    card[part] = value
    path = tmp_path / "judge.yaml"
    path.write_text(yaml.safe_dump(card), encoding="utf-8")
    with pytest.raises(JudgeError, match=words):
        load_judge(path)


@pytest.mark.parametrize("text", ["", "[1, 2", "just words", "!!python/object/apply:os.system ['true']"])
def test_what_is_no_judge_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(JudgeError, match=r"judge\.yaml: "):
        load_judge(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match="cannot be read"):
        load_judge(tmp_path / "none.yaml")


def test_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "summary.json"
    path.write_text("old", encoding="utf-8")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Exception, match="disk is full"):
        write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["summary.json"]


def test_empty_target_is_unscored(calibrated: Calibration, tmp_path: Path, golden: GoldenSet) -> None:
    from dataclasses import replace

    path = tmp_path / "judge.yaml"
    path.write_text(judge_yaml(calibrated), encoding="utf-8")
    (verdict,) = load_judge(path).score([replace(golden.items[0], target="")])
    assert isinstance(verdict, Unscored)
    assert verdict.reason == "missing input"
