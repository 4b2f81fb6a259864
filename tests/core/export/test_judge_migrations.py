"""Files of version 1, as an earlier Concord wrote them, come up to the present version; others are told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core import load_items, load_judge
from core.errors import JudgeError
from core.export import read_card
from core.export.judge_migrations import NO_DIGEST, migrated
from core.export.judge_reading import read_document
from core.export.judge_schema import VERSION
from core.judging.parse import PARSER
from core.records import Scored

ITEMS = Path(__file__).parents[3] / "sample_data" / "summaries.jsonl"
KEPT = ("format", "created", "note", "task", "judge", "join", "criteria", "isotonic", "alignment", "golden", "split")


@pytest.mark.parametrize("name", ["judge_1_offline", "judge_1_scripted"])
def test_a_file_of_version_1_keeps_what_it_held_and_invents_nothing(old_files: Path, name: str) -> None:
    path = old_files / f"{name}.yaml"
    before, after = read_document(path), read_card(path)
    assert (before["version"], after["version"]) == (1, VERSION)
    assert {key: after[key] for key in KEPT} == {key: before[key] for key in KEPT}
    assert (after["concord"], after["digest"], after["ceiling"], after["held_out_opened"]) == ("", None, None, None)
    assert after["warnings"] == [*before["warnings"], NO_DIGEST]


def test_prompts_and_parser_follow_from_the_judge(old_files: Path) -> None:
    offline, scripted = (read_card(old_files / f"judge_1_{one}.yaml") for one in ("offline", "scripted"))
    assert (offline["prompts"], offline["parser"]) == ({}, None)
    assert scripted["prompts"] == {"score": "score_rate_explain.v1", "draft": "draft.v1", "refine": "refine.v1"}
    assert scripted["parser"] == PARSER


@pytest.mark.parametrize("name", ["judge_1_offline", "judge_1_scripted", "fused_1"])
def test_they_score(old_files: Path, name: str) -> None:
    judge = load_judge(old_files / f"{name}.yaml")
    verdicts = judge.score(load_items(ITEMS).items[:6])
    judge.close()
    assert judge.marks == ()
    assert judge.task.aspect == "relevance"
    assert len({one.value for one in verdicts if isinstance(one, Scored)}) > 1


def test_a_file_from_before_approvals_counts_as_not_approved(old_files: Path) -> None:
    card = read_document(old_files / "judge_1_offline.yaml")
    del card["approved"], card["approvals"]
    found = migrated(card, "judge", "old.yaml")
    assert (found["approved"], found["approvals"]) == (False, [])


def test_kind_and_scale_of_a_fusion_come_out_of_its_judge(old_files: Path) -> None:
    card = read_document(old_files / "fused_1.yaml")
    found = migrated(card, "fusion", "old.yaml")
    scale = {"low": 1.0, "high": 5.0, "step": 1.0}
    assert found["task"] == {"aspect": "relevance", "kind": "source_target", "scale": scale, "definition": ""}
    card["parts"] = [part for part in card["parts"] if "judge" not in part]
    assert migrated(card, "fusion", "old.yaml")["task"] is None


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (VERSION + 1, f"version {VERSION + 1}, from a newer Concord; this one reads up to version {VERSION}. Update"),
        (99, "Update Concord"),
        (0, "version must be a whole number"),
        (-1, "version must be a whole number"),
        (True, "version must be a whole number"),
        ("2", "version must be a whole number"),
        (1.0, "version must be a whole number"),
        (None, "None came"),
    ],
)
def test_other_versions_are_told(offline_card: dict[str, Any], version: Any, words: str) -> None:
    with pytest.raises(JudgeError, match=words):
        migrated(offline_card | {"version": version}, "judge", "mine.yaml")


@pytest.mark.parametrize("part", [("judge", 5), ("warnings", 7), ("judge", None)])
def test_a_damaged_old_file_is_told(old_files: Path, part: tuple[str, Any]) -> None:
    card = read_document(old_files / "judge_1_scripted.yaml") | dict([part])
    with pytest.raises(JudgeError, match="cannot be brought from version 1 to 2"):
        migrated(card, "judge", "old.yaml")


def test_a_damaged_old_fusion_is_told(old_files: Path) -> None:
    card = read_document(old_files / "fused_1.yaml")
    for spoilt in ({"parts": 3}, {"parts": [4]}, {"parts": [{"judge": {"task": 1}}]}):
        with pytest.raises(JudgeError, match="cannot be brought from version 1 to 2"):
            migrated(card | spoilt, "fusion", "old.yaml")
