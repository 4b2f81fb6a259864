"""The present version of the files is read, a later Concord brings older ones up to its own, others are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core import load_judge
from core.errors import JudgeError
from core.export import judge_reading
from core.export.judge_reading import VERSION, checked, open_file, version_problem
from core.export.judge_writing import parser_of, prompts_of
from core.judging.parse import PARSER

NEXT = 4
"""The version after the present one: 2 and 3 were used in development."""


def test_prompts_and_parser_follow_from_the_judge(offline_card: Any, scripted_card: Any) -> None:
    assert (prompts_of(offline_card["judge"]), parser_of(offline_card["judge"])) == ({}, None)
    prompts = {"score": "score_rate_explain.v1", "draft": "draft.v1", "refine": "refine.v1"}
    assert prompts_of(scripted_card["judge"]) == prompts
    assert parser_of(scripted_card["judge"]) == PARSER


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (NEXT, f"has version {NEXT}, from a newer Concord; this one reads version {VERSION}. Update"),
        (99, "Update Concord, or export the judge again with this one"),
        (
            2,
            r"was written by a development version of Concord \(file version 2\); make it anew: export the judge again",
        ),
        (
            3,
            r"was written by a development version of Concord \(file version 3\); make it anew: export the judge again",
        ),
        (0, "version must be the whole number 1; 0 came"),
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


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", ["judge", "fused"])
def test_a_development_file_is_refused_even_where_edits_are_accepted(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, version: int
) -> None:
    card = request.getfixturevalue("offline_card" if kind == "judge" else "fused_card")
    older = {name: value for name, value in card.items() if name not in ("digest", "texts")} | {"version": version}
    path = tmp_path / "judge.yaml"
    path.write_text(json.dumps(older), "utf-8")
    with pytest.raises(JudgeError, match="written by a development version"):
        load_judge(path, accept_edited=True)


def test_a_later_version_brings_files_of_this_one_up_to_it(
    scripted_card: dict[str, Any], write_card: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A made-up next version, in which the note is called differently before it is read."""
    path = write_card(scripted_card)

    def noted(card: dict[str, Any]) -> dict[str, Any]:
        return card | {"version": NEXT, "note": f"From version {card['version']}: {card['note']}"}

    monkeypatch.setattr(judge_reading, "VERSION", NEXT)
    monkeypatch.setitem(judge_reading.UPGRADES["judge"], VERSION, noted)
    file = open_file(path)
    assert file.card == noted(scripted_card) | {"digest": file.card["digest"]}
    assert not file.edited  # the digest is that of the file as it was written
    assert version_problem(VERSION, NEXT, "") == version_problem(NEXT, NEXT, "") == ""
    with pytest.raises(JudgeError, match="written by a development version"):
        open_file(write_card(scripted_card | {"version": 3}))
    with pytest.raises(JudgeError, match=f"newer Concord; this one reads version {NEXT}"):
        open_file(write_card(scripted_card | {"version": NEXT + 1}))
