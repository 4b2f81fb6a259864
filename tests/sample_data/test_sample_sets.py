"""The committed sample sets: shape, columns, scales, three raters, agreement, and groups worth correlating."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import pytest

Row = dict[str, Any]


class Expected(NamedTuple):
    n_sources: int
    n_systems: int
    kind: str
    texts: tuple[str, ...]
    scales: dict[str, tuple[int, int]]


SUMMARY_SCALES = dict.fromkeys(("coherence", "consistency", "fluency", "relevance"), (1, 5))
SETS = {
    "summaries.jsonl": Expected(24, 6, "source_target", ("source", "target"), SUMMARY_SCALES),
    "dialogue.jsonl": Expected(
        24,
        5,
        "source_context_target",
        ("source", "context", "target"),
        {"naturalness": (1, 3), "coherence": (1, 3), "engagingness": (1, 3), "groundedness": (0, 1)},
    ),
    "data_to_text.csv": Expected(
        32, 4, "data_text", ("source", "target"), {"informativeness": (1, 6), "naturalness": (1, 6)}
    ),
    "notifications.jsonl": Expected(40, 6, "source_target", ("source", "target"), {"house_style": (1, 5)}),
}
EVERY_SET = pytest.mark.parametrize("name", list(SETS))
EVERY_ASPECT = pytest.mark.parametrize(("name", "aspect"), [(n, a) for n, e in SETS.items() for a in e.scales])


def read_rows(path: Path) -> list[Row]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    with path.open(encoding="utf-8", newline="") as file:
        rows: list[Row] = [dict(row) for row in csv.DictReader(file)]
    for row in rows:
        row |= {name: json.loads(cell) for name, cell in row.items() if name.startswith(("human_", "ann_"))}
    return rows


@pytest.fixture(scope="module")
def rows_of(repository: Path) -> dict[str, list[Row]]:
    return {name: read_rows(repository / "sample_data" / name) for name in SETS}


def by_source(rows: list[Row], column: str) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        groups[row["source_id"]].append(row[column])
    return groups


@EVERY_SET
def test_every_source_has_one_item_of_every_system_and_differing_targets(
    name: str, rows_of: dict[str, list[Row]]
) -> None:
    rows, expected = rows_of[name], SETS[name]
    labels = [f"{prefix}_{aspect}" for prefix in ("human", "ann") for aspect in expected.scales]
    labels += ["reason_house_style"] if name == "notifications.jsonl" else []
    assert {tuple(row) for row in rows} == {("item_id", "source_id", "system_id", *expected.texts, *labels)}
    assert all(row[column].strip() for row in rows for column in expected.texts)
    systems = by_source(rows, "system_id")
    assert len({row["item_id"] for row in rows}) == len(rows) == expected.n_sources * expected.n_systems
    assert (len(systems), {tuple(of_source) for of_source in systems.values()}) == (
        expected.n_sources,
        {tuple(dict.fromkeys(row["system_id"] for row in rows))},
    )
    assert all(len(set(targets)) == len(targets) for targets in by_source(rows, "target").values())
    assert all(len(set(sources)) == 1 for sources in by_source(rows, "source").values())
    if name == "summaries.jsonl":
        assert all(120 <= len(row["source"].split()) <= 220 for row in rows)


@EVERY_ASPECT
def test_three_whole_ratings_on_the_scale_their_mean_and_labels_that_vary(
    name: str, aspect: str, rows_of: dict[str, list[Row]]
) -> None:
    low, high = SETS[name].scales[aspect]
    for row in rows_of[name]:
        ratings = row[f"ann_{aspect}"]
        assert len(ratings) == 3
        assert all(isinstance(rating, int) and low <= rating <= high for rating in ratings)
        assert row[f"human_{aspect}"] == pytest.approx(fmean(ratings), abs=1e-12)
    groups = by_source(rows_of[name], f"human_{aspect}").values()
    assert len({label for group in groups for label in group}) >= 2 * (high - low)
    assert sum(len(set(group)) == 1 for group in groups) <= 0.1 * len(groups)


@EVERY_SET
def test_the_house_reads_them_and_finds_only_that_labels_are_few(name: str, repository: Path) -> None:
    from core.data import check_file, load_golden

    expected = SETS[name]
    golden = load_golden(repository / "sample_data" / name)
    assert (golden.kind, golden.n_sources, golden.n_systems) == (expected.kind, expected.n_sources, expected.n_systems)
    scales = {aspect: (labels.scale.low, labels.scale.high) for aspect, labels in golden.aspects.items()}
    assert scales == expected.scales
    assert len(golden.ratings) == 3 * len(golden.items) * len(expected.scales)
    findings = check_file(repository / "sample_data" / name)["findings"]
    few = golden.aspects if name != "notifications.jsonl" else ()  # half of its labels are enough to calibrate on
    assert [finding["column"] for finding in findings] == [f"human_{aspect}" for aspect in few]
    assert all("labels to calibrate on" in finding["message"] for finding in findings)
