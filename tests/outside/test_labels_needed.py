"""One piece of advice on the number of labels, the same wherever it is given, counted as the split will make them."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[[int], Path]


@pytest.fixture
def labelled(tmp_path: Path) -> Write:
    """Writes a golden set with so many labelled items, 4 of a source, and a column that goes along with the labels."""

    def write(n: int) -> Path:
        path, dice = tmp_path / f"golden_{n}.csv", random.Random(3)
        with path.open("w", newline="", encoding="utf-8") as file:
            sheet = csv.writer(file)
            sheet.writerow(["item_id", "source_id", "target", "human_quality", "metric_one", "metric_two"])
            for k in range(n):
                label = 1 + (7 * k + k // 4) % 5
                text = (
                    f"The {' '.join(dice.choice(['bridge', 'river', 'town', 'old', 'is', 'new']) for _ in range(8))}."
                )
                one, two = label + dice.gauss(0, 1), label + dice.gauss(0, 1)
                sheet.writerow([f"i{k}", f"s{k // 4}", text, label, f"{one:.3f}", f"{two:.3f}"])
        return path

    return write


def advice(body: dict[str, Any]) -> list[str]:
    return [finding["message"] for finding in body["findings"] if "labels to calibrate on" in finding["message"]]


def test_check_counts_the_labels_that_will_choose_criteria(concord: Callable[..., Any], labelled: Write) -> None:
    """120 labels are 60 to calibrate on: fewer than 100, though more than 100 in all."""
    body = concord("check", labelled(120)).body
    assert body["aspects"]["quality"]["n_calibration"] == 60
    (said,) = advice(body)
    assert said == "Only 60 labels to calibrate on; we recommend 100. Results may be no better than the baseline."
    assert advice(concord("check", labelled(200)).body) == []
    (fewer,) = advice(concord("check", labelled(40)).body)
    assert fewer.startswith("Only 20 labels")
