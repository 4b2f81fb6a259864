"""Items that chose the judge are left out of every measure of it, and errors are those on the raters' scale."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import core
from core.__main__ import main

SUMMARIES = Path(__file__).parents[2] / "sample_data" / "summaries.jsonl"
ASPECT = "coherence"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a calibration and, by `score`, the verdicts of its judge on all items in three formats."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONCORD_HOME", str(folder / "home"))
        run = ["calibrate", SUMMARIES, "--aspect", ASPECT, "--preset", "quick", "--out", folder / "out", "--json"]
        assert main([*map(str, run)]) == 0
        for name in ("verdicts.jsonl", "verdicts.csv"):
            score = ["score", SUMMARIES, "--judge-file", folder / "out/judge.yaml", "--out", folder / name, "--json"]
            assert main([*map(str, score)]) == 0
    return folder


@pytest.fixture(scope="module")
def golden() -> core.GoldenSet:
    return core.load_golden(SUMMARIES)


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def held_out_ids(made: Path) -> set[str]:
    return set(json.loads((made / "out/summary.json").read_text("utf-8"))["held_out_items"])


def unmarked(made: Path, folder: Path) -> Path:
    """The verdicts of `score` as another tool would hand them on: without the marks."""
    kept = [{name: row[name] for name in ("item_id", "score", "calibrated")} for row in rows(made / "verdicts.jsonl")]
    (folder / "bare.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    return folder / "bare.jsonl"


def test_the_files_mark_the_items_that_the_judge_was_calibrated_on(made: Path, golden: core.GoldenSet) -> None:
    expected = set(golden.item_ids) - held_out_ids(made)
    for file in (made / "verdicts.jsonl", made / "out/verdicts.jsonl"):
        assert {row["item_id"] for row in rows(file) if row.get("calibration_item")} == expected
    with (made / "verdicts.csv").open(newline="") as file:
        assert {row["item_id"] for row in csv.DictReader(file) if row["calibration_item"] == "True"} == expected
    verdicts = core.load_judge(made / "out/judge.yaml").score(golden.items)
    assert {verdict.item_id for verdict in verdicts if verdict.calibration_item} == expected
    assert sum(verdict.calibration_item for verdict in verdicts) == len(expected)


@pytest.mark.parametrize("name", ["verdicts.csv", "out/verdicts.jsonl"])
def test_align_measures_on_held_out_items_and_says_so(made: Path, concord: Any, capsys: Any, name: str) -> None:
    held_out = json.loads((made / "out/summary.json").read_text("utf-8"))["held_out"]
    answer = concord("align", SUMMARIES, made / name, "--aspect", ASPECT)
    assert (answer.body["n"], answer.body["value"]) == (held_out["n"], pytest.approx(held_out["value"], abs=1e-6))
    n_items = len(rows(SUMMARIES))
    assert answer.body["n_calibration_left_out"] == n_items - len(held_out_ids(made))
    main(["align", str(SUMMARIES), str(made / name), "--aspect", ASPECT])
    assert f"Left out: {answer.body['n_calibration_left_out']} labelled items" in capsys.readouterr().out
    kept = concord("align", SUMMARIES, made / name, "--aspect", ASPECT, "--all-items").body
    assert (kept["n"], kept["n_calibration_left_out"]) == (n_items, 0)
    assert kept["n_calibration_kept"] == answer.body["n_calibration_left_out"]
    main(["align", str(SUMMARIES), str(made / name), "--aspect", ASPECT, "--all-items"])
    assert "Optimistic: " in capsys.readouterr().out


def taken(body: Any, name: str) -> list[Any]:
    """The values under `name` anywhere in `body`, which loses them."""
    if isinstance(body, list):
        return [value for part in body for value in taken(part, name)]
    if not isinstance(body, dict):
        return []
    own = [body.pop(name)] if name in body else []
    return own + [value for part in body.values() for value in taken(part, name)]


COMMANDS = {
    "align": ["align", "{golden}", "{verdicts}"],
    "align --all": ["align", "{golden}", "{verdicts}", "--all"],
    "compare": ["compare", "{golden}", "{verdicts}", "{verdicts}"],
    "ceiling": ["ceiling", "{golden}", "--verdicts", "{verdicts}"],
    "threshold": ["threshold", "{golden}", "{verdicts}", "--yes-from", "4"],
    "examine": ["examine", "{golden}", "{verdicts}"],
    "estimate-means": ["estimate-means", "{golden}", "{verdicts}"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_marks_and_a_judge_file_leave_out_the_same(made: Path, concord: Any, tmp_path: Path, name: str) -> None:
    def ask(verdicts: Path, *more: str | Path) -> dict[str, Any]:
        filled = [part.format(golden=SUMMARIES, verdicts=verdicts) for part in COMMANDS[name]]
        answer = concord(*filled, "--aspect", ASPECT, *more)
        assert answer.code == 0, answer.body
        return dict(answer.body)

    by_mark, bare = ask(made / "verdicts.jsonl"), unmarked(made, tmp_path)
    by_file = ask(bare, "--judge-file", made / "out/judge.yaml")
    assert by_mark == by_file
    kept, unknown = ask(made / "verdicts.jsonl", "--all-items"), ask(bare)
    assert len(rows(SUMMARIES)) - len(held_out_ids(made)) in taken(kept, "n_calibration_kept")
    taken(unknown, "n_calibration_kept")
    assert kept == unknown
    assert kept != by_mark


def test_a_judge_calibrated_on_every_item_has_nothing_left(made: Path, concord: Any, tmp_path: Path) -> None:
    held_out = held_out_ids(made)
    only = [row for row in rows(made / "verdicts.jsonl") if row["item_id"] not in held_out]
    (tmp_path / "v.jsonl").write_text("".join(json.dumps(row) + "\n" for row in only))
    for command in (["align"], ["examine"], ["threshold", "--yes-from", "4"]):
        answer = concord(command[0], SUMMARIES, tmp_path / "v.jsonl", "--aspect", ASPECT, *command[1:])
        assert answer.code == 2
        assert "--all-items" in answer.body["error"]["message"]


def test_errors_are_those_on_the_raters_scale(made: Path, golden: core.GoldenSet, concord: Any, capsys: Any) -> None:
    """MAE and bias by hand from the file's `calibrated`; a shift of `score` moves neither them nor any rank."""
    held_out = held_out_ids(made)
    labels = dict(zip(golden.item_ids, golden.labels(ASPECT), strict=True))
    read = [row for row in rows(made / "verdicts.jsonl") if row["item_id"] in held_out]
    gaps = np.array([row["calibrated"] - labels[row["item_id"]] for row in read])
    body = concord("align", SUMMARIES, made / "verdicts.jsonl", "--aspect", ASPECT, "--all").body
    assert body["basis"] == "mapped"
    assert body["errors"]["mae"] == pytest.approx(np.abs(gaps).mean(), abs=1e-9)
    assert body["errors"]["bias"] == pytest.approx(gaps.mean(), abs=1e-9)
    main(["align", str(SUMMARIES), str(made / "verdicts.jsonl"), "--aspect", ASPECT, "--all"])
    assert capsys.readouterr().out.count("on the raters' scale") >= 2
    shifted = [row | {"score": row["score"] / 10.0 - 7.0} for row in rows(made / "verdicts.jsonl")]
    (made / "shifted.jsonl").write_text("".join(json.dumps(row) + "\n" for row in shifted))
    for command in (["align", SUMMARIES, "{}", "--all"], ["ceiling", SUMMARIES, "--verdicts", "{}"]):
        first, second = (
            concord(*(made / name if part == "{}" else part for part in command), "--aspect", ASPECT).body
            for name in ("verdicts.jsonl", "shifted.jsonl")
        )
        for body in (first, second):
            body.pop("alignments", None)
            body.get("judge", {}).pop("beside_people", None)
        assert first == second
