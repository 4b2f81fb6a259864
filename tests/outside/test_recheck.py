"""Newer labels are told by their texts: what a judge was calibrated or evaluated with never passes for new."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from core.__main__ import main
from tests.outside.strangers import write

ASPECT = "relevance"
Concord = Callable[..., Any]
Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows(repository: Path) -> list[Row]:
    """The sample's rows with the mean label of the aspect alone."""
    lines = (repository / "sample_data" / "summaries.jsonl").read_text("utf-8").splitlines()
    kept = ("item_id", "source_id", "system_id", "source", "target", f"human_{ASPECT}")
    return [{name: row[name] for name in kept} for row in map(json.loads, lines)]


@pytest.fixture(scope="module")
def trained(rows: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished calibration on `rows`."""
    folder = tmp_path_factory.mktemp("judge")
    golden = write(folder / "golden.jsonl", rows)
    command = f"calibrate {golden} --aspect {ASPECT} --preset quick --rounds 0 --out {folder / 'out'} --json"
    assert main(command.split()) == 0
    return folder / "out"


def degraded(rows: list[Row]) -> list[Row]:
    """New texts about the same sources, with labels that mean nothing."""
    labels = [row[f"human_{ASPECT}"] for row in rows]
    random.Random(1).shuffle(labels)
    return [
        row | {"item_id": f"n{k}", "target": f"{row['target']} That was all.", f"human_{ASPECT}": label}
        for k, (row, label) in enumerate(zip(rows, labels, strict=True))
    ]


def renamed(rows: Iterable[Row]) -> list[Row]:
    return [row | {"item_id": f"copy-{k}", "source_id": f"s-{row['source_id']}"} for k, row in enumerate(rows)]


def sides(trained: Path, rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Calibration and held-out rows."""
    held_out = set(json.loads((trained / "summary.json").read_text("utf-8"))["held_out_items"])
    return [r for r in rows if r["item_id"] not in held_out], [r for r in rows if r["item_id"] in held_out]


def recheck(concord: Concord, trained: Path, path: Path, *options: str | Path) -> Any:
    return concord("recheck", trained / "judge.yaml", path, "--aspect", ASPECT, *options)


def test_renamed_calibration_items_do_not_hide_a_drop(
    concord: Concord, trained: Path, rows: list[Row], tmp_path: Path
) -> None:
    calibration, held_out = sides(trained, rows)
    alone = recheck(concord, trained, write(tmp_path / "new.jsonl", degraded(rows)))
    mixed = recheck(concord, trained, write(tmp_path / "mixed.jsonl", [*degraded(rows), *renamed(rows)]))
    assert (alone.code, alone.body["decision"]) == (1, "fallen")
    assert (mixed.code, mixed.body["decision"]) == (1, "fallen")
    assert mixed.body["now"] == alone.body["now"]
    assert mixed.body["left_out"] == {"calibration": len(calibration), "held_out": len(held_out)}
    assert mixed.body["n_labelled"] == len(rows)
    assert alone.body["left_out"] == {}
    (said,) = [note for note in mixed.body["notes"] if "left out" in note]
    assert f"{len(calibration)} were used to choose the judge, {len(held_out)} were used to evaluate the judge" in said


def test_held_out_items_that_were_labelled_anew_are_no_newer_items(
    concord: Concord, trained: Path, rows: list[Row], tmp_path: Path
) -> None:
    _, held_out = sides(trained, rows)
    good = [row | {"item_id": f"g{k}", "target": f"{row['target']} So it was."} for k, row in enumerate(rows)]
    answer = recheck(concord, trained, write(tmp_path / "new.jsonl", [*good, *renamed(degraded(held_out))]))
    assert answer.body["left_out"] == {}  # other texts are newer ones
    anew = [row | {f"human_{ASPECT}": 6 - row[f"human_{ASPECT}"]} for row in renamed(held_out)]
    answer = recheck(concord, trained, write(tmp_path / "anew.jsonl", [*good, *anew]))
    assert answer.body["left_out"] == {"held_out": len(held_out)}
    assert answer.body["now"]["n"] == len(good)


def test_the_judge_file_knows_texts_by_digests_alone(trained: Path, rows: list[Row]) -> None:
    text = (trained / "judge.yaml").read_text("utf-8")
    texts = yaml.safe_load(text)["texts"]
    calibration, held_out = sides(trained, rows)
    for side, expected in (("calibration", calibration), ("held_out", held_out)):
        digests = texts[side].split()
        assert len(digests) == len(expected)
        assert digests == sorted(digests)
        assert {len(digest) for digest in digests} == {12}
    assert not [row for row in rows if row["target"][:30] in text]


def test_a_fused_judge_knows_its_texts_too(concord: Concord, rows: list[Row], tmp_path: Path) -> None:
    rows = [  # soon read, and no two alike
        row | {"source": row["source"][:80], "target": f"Text {k}: {row['target'][:80]}"} for k, row in enumerate(rows)
    ]
    golden = write(tmp_path / "golden.jsonl", rows)
    fused = concord("fuse", golden, "--aspect", ASPECT, "--with", "overlap,similarity", "--out", tmp_path / "fused")
    assert fused.code == 0, fused.body
    judge = tmp_path / "fused" / "fused.yaml"
    again = concord("recheck", judge, write(tmp_path / "again.jsonl", renamed(rows)), "--aspect", ASPECT)
    assert (again.code, "has a new text" in again.body["error"]["message"]) == (1, True)
    mixed = write(tmp_path / "mixed.jsonl", [*degraded(rows), *renamed(rows)])
    answer = concord("recheck", judge, mixed, "--aspect", ASPECT)
    assert sum(answer.body["left_out"].values()) == len(rows)
    assert answer.body["now"]["n"] == len(rows)
