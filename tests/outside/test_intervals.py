"""Intervals hold what they say with few sources, no p is given where none can be trusted, Williams' test is named."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import binom

import core

DRAWS = 100


class World(NamedTuple):
    """Many small golden sets in one file: scores of two equally good judges by draw, and the true Pearson r."""

    golden: Any
    first: list[dict[str, float]]
    second: list[dict[str, float]]
    truth: float


def world(folder: Path, n_sources: int, size: int) -> World:
    """Labels of 1 to 5; a source shifts the labels of its items, and each judge's error."""
    rng = np.random.default_rng(11)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        sources = np.repeat(np.arange(n), size)
        truth = 0.7 * rng.normal(size=n)[sources] + rng.normal(size=sources.size)
        errors = [0.5 * rng.normal(size=n)[sources] + 0.8 * rng.normal(size=sources.size) for _ in range(2)]
        return np.stack([0.7 * truth + error for error in errors]), np.clip(np.rint(3 + truth), 1, 5)

    scores, labels = drawn(40_000)
    truth = float(np.mean([np.corrcoef(row, labels)[0, 1] for row in scores]))
    scores, labels = drawn(DRAWS * n_sources)
    path = golden_file(folder, labels, lambda k: k // size)
    parts = np.array_split(np.arange(labels.size), DRAWS)
    first, second = ([{f"i{k}": float(row[k]) for k in part} for part in parts] for row in scores)
    return World(core.load_golden(path), first, second, truth)


def _write(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def golden_file(folder: Path, labels: Sequence[int], source: Callable[[int], object]) -> Path:
    """A golden set of these labels of `q`, six systems in turn, each item of the source of its place."""
    return _write(
        folder / "golden.csv",
        [
            {
                **{"item_id": f"i{k}", "source_id": f"s{source(k)}", "system_id": f"m{k % 6}"},
                **{"target": f"text {k}", "human_q": int(label)},
            }
            for k, label in enumerate(labels)
        ],
    )


@pytest.mark.parametrize(("n_sources", "size"), [(3, 5)])
def test_intervals_hold_the_truth_and_equal_judges_are_seldom_told_apart(
    tmp_path: Path, n_sources: int, size: int
) -> None:
    golden, first, second, truth = world(tmp_path, n_sources, size)
    held = called = 0
    drawn = DRAWS
    for a, b in zip(first, second, strict=True):
        found = core.compare(golden, a, b, "q", core.MeasureSettings("pearson", "dataset")).difference
        if found.a.interval is None:  # all labels of one item a source can be equal
            drawn -= 1
            continue
        held += found.a.interval.low <= truth <= found.a.interval.high
        assert n_sources >= 8 or found.p is None
        called += found.p is not None and found.p <= 0.05
    # binomial limits: shares of .92 and more stay inside with 99.9 %, as does a false-positive share of 7 %
    assert drawn > 0.95 * DRAWS
    assert held >= binom.ppf(0.001, drawn, 0.92)
    assert called <= binom.ppf(0.999, drawn, 0.07)
