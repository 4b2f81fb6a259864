"""judge.yaml: what it holds, that it comes back equal, that damage is told in words."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from core import CalibrationSettings, calibrate, load_judge
from core.calibration.calibration_records import Calibration
from core.data import load_golden
from core.judge_files import judge_yaml, read_card
from core.judge_files.judge_writing import label_warnings
from core.projects.judge_line import JudgeVersion, VersionDecided, VersionMade, VersionMeasured, VersionState
from core.records import AspectLabels, GoldenSet, Rating, Scale

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def golden() -> GoldenSet:
    return load_golden(ROOT / "sample_data" / "summaries.jsonl")


@pytest.fixture(scope="module")
def calibrated(golden: GoldenSet) -> Calibration:
    return calibrate(golden, "relevance", settings=CalibrationSettings(preset="quick"))


def test_skewed_labels_are_a_warning(golden: GoldenSet) -> None:
    def skewed(n_equal: int) -> list[str]:
        values = tuple(5.0 if k < n_equal else 2.0 for k in range(20))
        labels = {"wit": AspectLabels("wit", Scale(1, 5, 1), values)}
        ratings = tuple(Rating(item.item_id, who, "wit", 3.0) for item in golden.items[:20] for who in "ab")
        return label_warnings(replace(golden, items=golden.items[:20], aspects=labels, ratings=ratings), "wit")

    assert skewed(14) == []  # 14 of 20 are 70 %
    assert skewed(15) == [
        "The labels are skewed: 75 % of 20 labels are 5. The agreement depends on the few other labels."
    ]
    assert skewed(20) == []  # all equal: a calibration refuses such labels


def test_a_key_in_the_environment_does_not_leave(calibrated: Calibration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "no-usual-form-of-a-key")
    assert "no-usual-form-of-a-key" not in judge_yaml(calibrated)


def signed(calibrated: Calibration, *states: VersionState) -> JudgeVersion:
    """The third version, which came into these states one after the other."""
    at = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
    ids = tuple(criteria.criteria_id for criteria in calibrated.chosen)
    made = VersionMade("r1", ids, "edit", 2, "shorter", subject="relevance", actor="Bo", at=at)
    measured = VersionMeasured(3, "r1", "g", calibrated.calibration, calibrated.held_out, number=1)
    decisions = [VersionDecided(3, state, "good: #1", actor="Ann <b>", at=at, number=2) for state in states]
    return JudgeVersion(3, states[-1] if states else "proposed", made, (measured,), tuple(decisions))


def test_the_approval_goes_into_the_file(calibrated: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "judge.yaml"
    path.write_text(judge_yaml(calibrated, version=signed(calibrated, "approved", "current")), encoding="utf-8")
    card = read_card(path)
    assert card["approved"] is True
    assert not any("approved" in warning for warning in card["warnings"])
    decision = {"by": "Ann <b>", "at": "2026-11-21T12:00:00+00:00", "state": "approved", "reason": "good: #1"}
    evidence = {"run": "r1", "side": "held-out", "alignment": calibrated.held_out.as_json()}
    first, *others = card["approvals"]
    assert first == decision | {"criteria": calibrated.chosen[0].criteria_id, "evidence": evidence}
    assert len(others) == len(calibrated.chosen) - 1
    version = card["judge_version"]
    assert (version["number"], version["state"], version["author"], version["note"]) == (3, "current", "Bo", "shorter")
    assert version["parent"].startswith("v2-")
    assert version["approvals"][0] == decision | {"evidence": evidence}
    assert [decided["state"] for decided in version["approvals"]] == ["approved", "current"]
    assert load_judge(path).marks == ()


def test_a_version_whose_approval_was_withdrawn_is_unapproved(calibrated: Calibration) -> None:
    card = yaml.safe_load(judge_yaml(calibrated, version=signed(calibrated, "approved", "proposed")))
    assert card["approved"] is False
    assert {approval["state"] for approval in card["approvals"]} == {"proposed"}
    assert any("No one has approved this judge (version 3 is proposed)" in warning for warning in card["warnings"])
