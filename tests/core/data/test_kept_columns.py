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


@pytest.mark.usefixtures("tmp_home")
def test_monitor_reads_the_same_columns(support: Path, tmp_path: Path) -> None:
    rows = read(support / "newer.csv")
    stamped = [row | {"day": f"2026-01-{k // 10 + 1:02}"} for k, row in enumerate(rows)]
    write(tmp_path / "traffic.csv", stamped)
    judge = ("--judge-file", support / "judge" / "judge.yaml")
    assert run("monitor", tmp_path / "traffic.csv", *judge, "--out", tmp_path / "watched") in (0, 1)
    renamed = [{f"x_{name}" if name != "day" else name: cell for name, cell in row.items()} for row in stamped]
    write(tmp_path / "renamed.csv", renamed)
    given = ("--map", "target=x_agent_answer,source=x_customer_question,item_id=x_ticket")
    assert run("monitor", tmp_path / "renamed.csv", *judge, *given, "--out", tmp_path / "again") in (0, 1)
    keys = [set(scored(tmp_path / name / "verdicts.jsonl")) for name in ("watched", "again")]
    assert len(keys[0]) > 0
    assert keys[0] == keys[1]
    wrong = ("--map", "target=nothing", "--out", tmp_path / "wrong")
    assert run("monitor", tmp_path / "traffic.csv", *judge, *wrong) == 2
