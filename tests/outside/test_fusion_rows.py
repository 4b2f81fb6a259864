"""The rows of a fusion's table hold every coefficient."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.outside.strangers import write

Concord = Callable[..., Any]
SYSTEMS, SOURCES = 16, 24


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """Systems that hardly differ, items that do; two metrics that see the items, and one of chance."""
    rng = np.random.default_rng(5)
    rows = []
    for source in range(SOURCES):
        for system in range(SYSTEMS):
            quality = 3 + rng.normal() + 0.02 * system
            rows.append(
                {
                    **{"item_id": f"{source}-{system}", "source_id": f"s{source}", "system_id": f"m{system}"},
                    **{"source": f"Source {source}.", "target": f"Text {source} {system}."},
                    "human_wit": round(float(np.clip(quality, 1, 5)), 2),
                    "metric_good": float(quality + rng.normal()),
                    "metric_fair": float(quality + 2 * rng.normal()),
                    "metric_chance": float(rng.normal()),
                }
            )
    return write(tmp_path / "golden.jsonl", rows)


PARTS = ("--with", "metric_good,metric_fair,metric_chance")


@pytest.mark.parametrize("level", ["dataset", "system"])
def test_the_summary_holds_every_coefficient(concord: Concord, golden: Path, tmp_path: Path, level: str) -> None:
    how = ("--method", "average", "--level", level, "--out", tmp_path / "f")
    assert concord("fuse", golden, "--aspect", "wit", *PARTS, *how).code == 0
    summary = json.loads((tmp_path / "f" / "summary.json").read_text(encoding="utf-8"))
    rows = {row["item_id"]: row for row in map(json.loads, golden.read_text(encoding="utf-8").splitlines())}
    assert list(summary["coefficients"]) == ["fusion", "metric_good", "metric_fair", "metric_chance"]
    for row in summary["coefficients"].values():
        assert set(row) == {"pearson", "spearman", "kendall"}
    own = summary["fused"]
    assert summary["coefficients"]["fusion"][own["statistic"]] == pytest.approx(own["value"])
    between = summary["between"]
    assert between["names"] == list(summary["coefficients"])
    assert np.diag(between["kendall"]) == pytest.approx(1)
    sources = reported(summary, rows)
    report = [row for row in rows.values() if row["source_id"] in sources]
    good, fair = ([row[f"metric_{name}"] for row in report] for name in ("good", "fair"))
    for name, scipy_s in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr), ("kendall", stats.kendalltau)):
        assert between[name][1][2] == pytest.approx(scipy_s(good, fair).statistic), name


def reported(summary: dict[str, Any], rows: dict[str, dict[str, Any]]) -> set[str]:
    """The sources that the summary reports on: the same split, by the same seed."""
    import core

    golden = core.load_golden(Path(rows and str(summary["out"])).parent / "golden.jsonl")
    split = core.CalibrationSettings().split_of(golden, "wit")
    assert len(split.held_out) == summary["n_report"]
    return {golden.items[k].source_id for k in split.held_out}
