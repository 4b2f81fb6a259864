"""Pandas in and out: which columns are found, what is appended, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import load_items
from core.errors import GoldenError
from core.judge_files.loaded import ADDED, CalibratedJudge
from core.judging.offline.judge import OfflineJudge
from core.records import Scored

SAMPLE = Path(__file__).parents[3] / "sample_data" / "summaries.jsonl"


@pytest.fixture
def judge(offline_card: dict[str, Any]) -> CalibratedJudge:
    return CalibratedJudge.of(offline_card, OfflineJudge.from_state(offline_card["judge"]))


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return pd.read_json(SAMPLE, lines=True).head(12)


@pytest.fixture
def expected(judge: CalibratedJudge) -> list[float]:
    verdicts = judge.score(load_items(SAMPLE).items[:12])
    return [verdict.value for verdict in verdicts if isinstance(verdict, Scored)]


def test_columns_are_appended_and_all_else_stays(
    judge: CalibratedJudge, rows: pd.DataFrame, expected: list[float]
) -> None:
    frame = rows.set_index(pd.Index([f"r{k % 5}" for k in range(12)], name="row"))  # labels of rows may repeat
    before = frame.copy(deep=True)
    result = judge.score_frame(frame)
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(result[list(frame.columns)], before)
    assert list(result.columns[-len(ADDED) :]) == list(ADDED)
    np.testing.assert_array_equal(result["score"].to_numpy(), expected)
    assert result["calibrated"].between(1, 5).all()
    assert result["unscored"].isna().all()
    assert (result["mark"] == "").all()
    assert not result["calibration_item"].any()


def test_usual_aliases_and_given_names_are_found(
    judge: CalibratedJudge, rows: pd.DataFrame, expected: list[float]
) -> None:
    aliased = rows[["source", "target"]].rename(columns={"source": "Article", "target": "summary"})
    np.testing.assert_array_equal(judge.score_frame(aliased)["score"].to_numpy(), expected)
    odd = rows[["source", "target"]].rename(columns={"source": "spalte 1", "target": "spalte 2"})
    frame = judge.score_frame(odd, columns={"source": "spalte 1", "target": "spalte 2"})
    np.testing.assert_array_equal(frame["score"].to_numpy(), expected)


def test_repeated_ids_and_rows_of_ratings_are_items_of_their_own(
    judge: CalibratedJudge, rows: pd.DataFrame, expected: list[float]
) -> None:
    frame = pd.concat([rows, rows])[["item_id", "source", "target"]].assign(annotator_id="ann", value=3, aspect="x")
    np.testing.assert_array_equal(judge.score_frame(frame)["score"].to_numpy(), expected * 2)


def test_missing_cells_are_told_in_their_row(judge: CalibratedJudge, rows: pd.DataFrame) -> None:
    frame = rows[["source", "target"]].astype(object)
    frame.iloc[2, 0] = None
    frame.iloc[5, 1] = float("nan")
    frame.iloc[7, 0] = pd.NA
    result = judge.score_frame(frame)
    assert result["score"].isna().to_numpy().nonzero()[0].tolist() == [2, 5, 7]
    assert result["unscored"].iloc[2].startswith("missing input: The item has no source")
    assert result["unscored"].iloc[5].startswith("missing input")
    assert result["unscored"].notna().sum() == 3


def test_columns_that_are_needed_are_named(judge: CalibratedJudge, rows: pd.DataFrame) -> None:
    with pytest.raises(GoldenError, match=r"frame lacks columns that the judge needs: source\.") as told:
        judge.score_frame(rows[["item_id", "target"]])
    assert "It has: item_id, target" in str(told.value)
    with pytest.raises(GoldenError, match=r"needs: target, source\."):
        judge.score_frame(pd.DataFrame({"x": [1]}))
