"""`estimate-means` as a command: the JSON of the design, what may be wrong with the files, and how it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.comparison.corrected_means import REPEATED
from tests.core.cli.conftest import Run, write_rows

SOURCES, LABELLED = 120, 30


def made(
    gap: float = 0.8, seed: int = 0, labelled: int = LABELLED
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Golden rows of `labelled` sources and verdict rows of all, by the systems A and B, B being `gap` better."""
    generator = np.random.default_rng(seed)
    golden, verdicts = [], []
    for source in range(SOURCES):
        for system in "AB":
            truth = 3 + (gap if system == "B" else 0) + generator.normal() * 0.8
            place = {"item_id": f"d{source}-{system}", "source_id": f"d{source}", "system_id": system}
            text = f"The answer of system {system} to question {source}."
            if source < labelled:
                label = float(np.clip(np.round(truth), 1, 5))
                golden.append(place | {"target": text, "human_quality": label})
            verdicts.append(place | {"score": float(np.clip(truth + 0.5 + generator.normal() * 0.6, 1, 5))})
    return golden, verdicts


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    golden, verdicts = made()
    return write_rows(tmp_path / "golden.jsonl", golden), write_rows(tmp_path / "verdicts.jsonl", verdicts)


def test_its_json_is_that_of_the_design(files: tuple[Path, Path], run: Run) -> None:
    code, body = run("estimate-means", *files, "--aspect", "quality")
    assert code == 0
    a = body["systems"]["A"]
    assert {"corrected", "labels_only", "judge_only", "n_labelled", "n_judged"} <= a.keys()
    assert (a["n_labelled"], a["n_judged"]) == (LABELLED, SOURCES)
    low, high = a["corrected"]["interval"]
    assert low < a["corrected"]["value"] < high
    assert abs(a["corrected"]["value"] - 3) < 0.5
    assert a["judge_only"]["value"] > 3.3
    (pair,) = body["differences"]
    assert (pair["a"], pair["b"]) == ("B", "A")
    assert pair["p_holm"] < 0.05


def test_one_text_under_two_ids_counts_as_one_source(files: tuple[Path, Path], tmp_path: Path, run: Run) -> None:
    golden, verdicts = made()
    again = [row | {"item_id": f"{row['item_id']}x", "source_id": f"{row['source_id']}x"} for row in golden]
    scores = {row["item_id"]: row["score"] for row in verdicts}
    more = [
        {"item_id": row["item_id"], "system_id": row["system_id"], "score": scores[row["item_id"][:-1]]}
        for row in again
    ]
    doubled = write_rows(tmp_path / "g2.jsonl", golden + again), write_rows(tmp_path / "v2.jsonl", verdicts + more)
    one = run("estimate-means", *files, "--aspect", "quality")[1]["systems"]["A"]["labels_only"]
    body = run("estimate-means", *doubled, "--aspect", "quality")[1]
    assert body["systems"]["A"]["labels_only"]["interval"] == pytest.approx(one["interval"])
    assert body["left_out"] == {REPEATED: 2 * LABELLED}
