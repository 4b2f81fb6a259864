"""One version of the files is read; any other is refused in words, whatever else the file holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core import load_judge
from core.errors import JudgeError
from core.export.judge_file import checked, parser_of, prompts_of
from core.export.judge_schema import VERSION
from core.judging.parse import PARSER


def test_prompts_and_parser_follow_from_the_judge(offline_card: Any, scripted_card: Any) -> None:
    assert (prompts_of(offline_card["judge"]), parser_of(offline_card["judge"])) == ({}, None)
    prompts = {"score": "score_rate_explain.v1", "draft": "draft.v1", "refine": "refine.v1"}
    assert prompts_of(scripted_card["judge"]) == prompts
    assert parser_of(scripted_card["judge"]) == PARSER


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (VERSION + 1, f"has version {VERSION + 1}, from a newer Concord; this one reads version {VERSION}. Update"),
        (99, "Update Concord"),
        (VERSION - 1, f"has version {VERSION - 1}, from before the first release"),
        (1, "Export the judge again"),
        (0, "version must be the whole number"),
        (-1, "version must be the whole number"),
        (True, "version must be the whole number"),
        ("2", "version must be the whole number"),
        (1.0, "version must be the whole number"),
        (None, "None came"),
    ],
)
def test_other_versions_are_told(offline_card: dict[str, Any], version: Any, words: str) -> None:
    with pytest.raises(JudgeError, match=words):
        checked(offline_card | {"version": version}, "judge", "mine.yaml")


@pytest.mark.parametrize("kind", ["judge", "fused"])
def test_an_older_file_is_refused_even_where_edits_are_accepted(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    card = request.getfixturevalue("offline_card" if kind == "judge" else "fused_card")
    older = {name: value for name, value in card.items() if name not in ("digest", "texts")} | {"version": 1}
    path = tmp_path / "judge.yaml"
    path.write_text(json.dumps(older), "utf-8")
    with pytest.raises(JudgeError, match="has version 1, from before the first release"):
        load_judge(path, accept_edited=True)
