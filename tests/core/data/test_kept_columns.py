"""The columns that a golden set was read from are kept in judge files, and read other files with the same columns."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

import core
from core.cli.main import main
from core.judge_files.documents import kept_columns, read_card

SHEET = Path(__file__).parent / "sheets" / "support_answers.csv"
MAP = "target=agent_answer,source=customer_question,item_id=ticket,system_id=bot"


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


@pytest.mark.usefixtures("tmp_home")
def test_a_judge_scores_a_file_with_the_same_columns(tmp_path: Path) -> None:
    clean = pd.read_csv(SHEET, dtype=str, keep_default_na=False, encoding="utf-8-sig").drop_duplicates("ticket")
    clean = clean[clean["agent_answer"].str.strip() != ""]
    raters = [name for name in clean if name.startswith("rater_")]
    clean[raters] = clean[raters].where(clean[raters].isin(list("12345")), "")
    ids, answers = [f"N-{k}" for k in range(len(clean))], clean["agent_answer"] + " Thanks for asking."
    golden, newer, out = (tmp_path / name for name in ("golden.csv", "newer.csv", "out.jsonl"))
    clean.to_csv(golden, index=False)
    clean.assign(ticket=ids, agent_answer=answers).to_csv(newer, index=False)
    judge = tmp_path / "judge" / "judge.yaml"
    command = ("--map", MAP, "--aspect", "quality", "--judge", "offline", "--preset", "quick", "--rounds", "0")
    assert run("check", golden, "--map", MAP) == 0
    assert run("calibrate", golden, *command, "--out", judge.parent) == 0
    assert run("score", newer, "--judge-file", judge, "--out", out) == 0
    scores = {row["item_id"]: row["score"] for row in map(json.loads, out.read_text("utf-8").splitlines())}
    assert list(scores) == ids
    assert None not in scores.values()
    assert run("recheck", judge, newer, "--aspect", "quality") in (0, 1)
    with closing(core.load_judge(judge)) as loaded:
        frame = loaded.score_frame(pd.read_csv(newer))
    assert frame["score"].tolist() == pytest.approx(list(scores.values()))


@pytest.mark.usefixtures("tmp_home")
@pytest.mark.parametrize(("ids", "n_items"), [("number", 80), ("first", 79)])
def test_what_was_said_of_values_is_kept_for_the_same_file(ids: str, n_items: int, tmp_path: Path) -> None:
    said = ("--values", "missing=9", "--values", f"ids={ids}")
    judge, out = tmp_path / "judge" / "judge.yaml", tmp_path / "out.jsonl"
    command = ("--aspect", "quality", "--judge", "offline", "--preset", "quick", "--rounds", "0", *said)
    assert run("calibrate", SHEET, *command, "--out", judge.parent) == 0
    assert run("score", SHEET, "--judge-file", judge, "--out", out) == 0
    scored = [row["item_id"] for row in map(json.loads, out.read_text("utf-8").splitlines())]
    again = core.load_golden(SHEET, kept=kept_columns(read_card(judge)))
    assert len(scored) == n_items
    assert tuple(scored) == again.item_ids
    assert 9 not in {rating.value for rating in again.ratings}


def test_columns_can_be_named_as_those_of_raters(tmp_path: Path) -> None:
    path = tmp_path / "named.csv"
    path.write_text("target,Anna,Ben\n" + "".join(f"Text {k}.,{k % 5 + 1},{k % 4 + 1}\n" for k in range(8)))
    golden = core.load_golden(path, mapping="rater_1_tone=Anna,rater_2_tone=Ben")
    assert golden.aspects["tone"].values[:5] == (1, 2, 3, 4, 3)
    assert {rating.rater_id for rating in golden.ratings} == {"rater_1", "rater_2"}
