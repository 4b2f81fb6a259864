"""The columns that a golden set was read from are kept in judge files, and read other files with the same columns."""

from __future__ import annotations

import csv
import json
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

import core
from core.cli.main import main

SHEET = Path(__file__).parent / "sheets" / "support_answers.csv"
MAP = "target=agent_answer,source=customer_question,item_id=ticket,system_id=bot"


@pytest.fixture(scope="module")
def support(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a clean golden set under own names, its judge.yaml, and a file of newer items."""
    folder = tmp_path_factory.mktemp("support")
    clean = {row["ticket"]: row for row in read(SHEET) if row["agent_answer"].strip()}
    for row in clean.values():
        for k in (1, 2, 3):
            row[f"rater_{k}_quality"] = row[f"rater_{k}_quality"] if row[f"rater_{k}_quality"] in "12345" else ""
    write(folder / "golden.csv", list(clean.values()))
    newer = [
        {
            "ticket": f"N-{k}",
            "bot": row["bot"],
            "customer_question": row["customer_question"],
            "agent_answer": f"{row['agent_answer']} Thanks for asking, number {k}.",
            **{name: row[name] for name in row if name.startswith("rater_")},
        }
        for k, row in enumerate(clean.values())
    ]
    write(folder / "newer.csv", newer)
    command = ("--map", MAP, "--aspect", "quality", "--judge", "offline", "--preset", "quick", "--rounds", "0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONCORD_HOME", str(folder / "home"))
        assert run("check", folder / "golden.csv", "--map", MAP) == 0
        assert run("calibrate", folder / "golden.csv", *command, "--out", folder / "judge") == 0
    return folder


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def scored(out: Path) -> dict[str, float | None]:
    return {row["item_id"]: row["score"] for row in map(json.loads, out.read_text("utf-8").splitlines())}


@pytest.mark.usefixtures("tmp_home")
def test_a_judge_scores_a_file_with_the_same_columns(support: Path, tmp_path: Path) -> None:
    judge, out = support / "judge" / "judge.yaml", tmp_path / "out.jsonl"
    assert run("score", support / "newer.csv", "--judge-file", judge, "--out", out) == 0
    assert all(item_id.startswith("N-") for item_id in scored(out))
    assert all(score is not None for score in scored(out).values())
    assert run("recheck", judge, support / "newer.csv", "--aspect", "quality") in (0, 1)
    with closing(core.load_judge(judge)) as loaded:
        frame = loaded.score_frame(pd.read_csv(support / "newer.csv"))
    assert frame["score"].tolist() == pytest.approx(list(scored(out).values()))
