"""The table for a spreadsheet: read back as it was, and nothing in it can run."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from core.comparison import compare_table, leaderboard_csv
from core.records import Measure

ASPECT = "coherence"


def lines_of(golden: Any, judges: Any) -> list[dict[str, str]]:
    board = compare_table(golden, ASPECT, judges, Measure("spearman", "dataset"), resamples=50)
    return list(csv.DictReader(io.StringIO(leaderboard_csv(board))))


def test_numbers_come_back_unrounded_and_undefined_is_empty(noisy: Any, judge_of: Any) -> None:
    golden, judges = noisy(1.0)
    board = compare_table(golden, ASPECT, judges, Measure("spearman", "dataset"), resamples=50)
    good, flat = lines_of(golden, [*judges, judge_of("flat", [3.0] * 120)])
    assert float(good["alignment"]) == board.rows[0].alignment.value
    assert (good["statistic"], good["level"], good["n"]) == ("spearman", "dataset", "120")
    assert flat["alignment"] == flat["interval_low"] == ""
    assert "all scores are equal" in flat["reason"]


@pytest.mark.parametrize(
    "name", ["=HYPERLINK(1)", "+1+1", "-1+1", "@x", "  =1", "\t=1", "\n=1", "＝1", "＋1", "－1", "＠x"]
)
def test_no_cell_starts_a_formula(golden_of: Any, judge_of: Any, name: str) -> None:
    (line,) = lines_of(golden_of([1, 2, 3]), [judge_of(name, [1, 2, 3], note=name)])
    assert line["judge"] == f"'{name}"
    assert line["note"] == f"'{name}"


def test_negative_numbers_stay_numbers(golden_of: Any, judge_of: Any) -> None:
    (line,) = lines_of(golden_of([1, 2, 3]), [judge_of("against", [3, 2, 1])])
    assert float(line["alignment"]) == pytest.approx(-1.0)


def test_commas_quotes_and_lines_in_names_stay_in_their_cell(golden_of: Any, judge_of: Any) -> None:
    (line,) = lines_of(golden_of([1, 2, 3]), [judge_of('a, "b"\nc', [1, 2, 3])])
    assert line["judge"] == 'a, "b"\nc'
